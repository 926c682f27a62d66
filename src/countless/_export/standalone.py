"""The cluster of each row of a CSV table, by plain Python: no package is needed.

Run it as ``python FILE table.csv > labels.csv``, or import ``cluster``.
"""

import csv
import math
import struct
import sys

MODEL: dict = {}  # filled in by the export


def cluster(row):
    """Return the cluster of a row, a mapping from column to value; None where it has none.

    A value is missing if it is None, NaN or an empty text.
    """
    features = []
    for step in MODEL["steps"]:
        value = row[step["name"]]
        value = None if value is None or value == "" or value != value else value
        if value is None:
            if not MODEL["impute"]:
                return None
            value = step["fill"]
        if "levels" in step:
            features += [float(str(value) == level) for level in step["levels"]]
            continue
        value = _round(float(value))
        if not math.isfinite(value):
            return None
        shifted = _round(value - _round(step["center"]))
        features.append(_round(shifted / _round(step["scale"])))
    pairs = zip(MODEL["vectors"], MODEL["offsets"], strict=True)
    scores = [_score(features, vector, offset) for vector, offset in pairs]
    least = min(scores)
    if MODEL["price"] is not None and least > MODEL["price"]:
        return -1
    return MODEL["labels"][scores.index(least)]


def _score(features, vector, offset):
    """Return the squared distance from a center, or a linear form."""
    if MODEL["linear"]:
        return offset - sum(value * slope for value, slope in zip(features, vector, strict=True))
    return sum((value - mean) ** 2 for value, mean in zip(features, vector, strict=True))


def _round(value):
    """Return a number in the precision of the table that the model was fitted to."""
    return struct.unpack("f", struct.pack("f", value))[0] if MODEL["single"] else value


def main():
    """Print the cluster of each row of a CSV table."""
    with open(sys.argv[1], newline="", encoding="utf-8-sig") as table:
        print("row,label")
        for number, row in enumerate(csv.DictReader(table), start=1):
            label = cluster(row)
            print(f"{number},{'' if label is None else label}")


if __name__ == "__main__":
    main()
