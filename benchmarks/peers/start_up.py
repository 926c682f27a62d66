"""How long a new process takes to import the library, and then to do a small fit."""

import json
import sys
import time
from pathlib import Path


def main():
    question, answer = map(Path, sys.argv[1:])
    data = json.loads(question.read_text())["data"]
    start = time.perf_counter()
    import numpy as np

    from countless import DPMeans

    imported = time.perf_counter()
    DPMeans(penalty=1.0).fit(np.load(data))
    fitted = time.perf_counter()
    answer.write_text(json.dumps({"import": imported - start, "fit": fitted - imported}))


if __name__ == "__main__":
    main()
