"""Formatting: text that is safe to print, numbers and percentages."""

import math
from collections.abc import Mapping, Sequence
from typing import Any


def printable(text: str) -> str:
    """Escape every control character in a text.

    Examples
    --------
    >>> printable("red \\x1b[31m")
    'red \\\\x1b[31m'
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def number(value: float, deviation: float | None = None) -> str:
    """Format a number with its significant digits: four, or two of the deviation.

    Examples
    --------
    >>> number(0.12345), number(2.0), number(1234567.0)
    ('0.1235', '2', '1234567')
    >>> number(2008.53, deviation=0.8), number(3706.4, deviation=800.0)
    ('2008.53', '3706')
    >>> number(2.998, deviation=0.5), number(3.0, deviation=0.5), number(-0.2, deviation=20.0)
    ('3.00', '3', '0')
    """
    if value == 0:
        return "0"
    if deviation and math.isfinite(deviation) and 1e-4 < abs(deviation) < 1e9:
        decimals = max(0, 1 - math.floor(math.log10(abs(deviation))))
        # An integer has no decimals; a rounded number keeps its zeros, which show its precision.
        whole = abs(value - round(value)) < 1e-9 * abs(value)
        text = f"{value:.0f}" if whole else f"{value:.{decimals}f}"
        return text if float(text) else text.removeprefix("-")
    if 1e3 <= abs(value) < 1e9:
        return f"{value:.0f}"
    return f"{value:.4g}"


def percent(share: float) -> str:
    """Format a share in per cent; a positive share is never rounded to 0.

    Examples
    --------
    >>> percent(0.254), percent(0.001), percent(0.0)
    ('25 %', '<1 %', '0 %')
    """
    return "<1 %" if 0 < share < 0.005 else f"{share * 100:.0f} %"


def counted_clusters(number: int) -> str:
    """Format a number of clusters.

    Examples
    --------
    >>> counted_clusters(1), counted_clusters(3)
    ('1 cluster', '3 clusters')
    """
    return f"{number} cluster" if number == 1 else f"{number} clusters"


def how_sure(confidence: float, plateaus: Sequence[Any]) -> str:
    """Format the confidence in the number of clusters, and the next best number.

    Examples
    --------
    >>> from countless._path.path import Plateau
    >>> best = Plateau(3, 10.0, 40.0, 1.4, 0.2, 1.2)
    >>> how_sure(0.75, [best, Plateau(5, 5.0, 7.0, 0.4, 0.1, 0.3)])
    'Confidence 0.75; next best: 5 clusters'
    >>> how_sure(0.9, [best, Plateau(5, 5.0, 7.0, 0.1, 0.3, -0.2)])
    'Confidence 0.90; no other number stands out'
    """
    if len(plateaus) == 1 and confidence == 0:
        return "Confidence 0.00: too few rows to judge"
    others = [plateau.n_clusters for plateau in plateaus[1:] if plateau.score > 0]
    rival = "no other number stands out"
    if others:
        rival = f"next best: {others[0]} cluster{'s' if others[0] > 1 else ''}"
    return f"Confidence {confidence:.2f}; {rival}"


def users_choice(n_supported: int, confidence: float) -> str:
    """State that the number of clusters is the user's choice, and what the data support.

    Examples
    --------
    >>> users_choice(3, 0.874)
    'This number of clusters is your choice; the data says 3, with confidence 0.87'
    """
    return (
        "This number of clusters is your choice; "
        f"the data says {n_supported}, with confidence {confidence:.2f}"
    )


# An answer with less confidence is called weak.
WEAK = 0.3


def how_probable(confidence: float) -> str:
    """Format the probability that the number of clusters is right.

    Examples
    --------
    >>> how_probable(0.874)
    'Confidence 0.87: the probability that this number of clusters is right'
    """
    return f"Confidence {confidence:.2f}: the probability that this number of clusters is right"


def what_to_try(n_clusters: int, confidence: float) -> list[str]:
    """Return suggestions for a weak answer or a single cluster; otherwise an empty list.

    Examples
    --------
    >>> what_to_try(3, 0.9)
    []
    >>> len(what_to_try(1, 0.9))
    2
    """
    if n_clusters > 1 and confidence >= WEAK:
        return []
    why = "This is a weak answer" if confidence < WEAK else "If you expected several"
    return [
        f"{why}: look at the candidates (--plot), or leave out columns that have nothing to do "
        "with the clusters (--exclude).",
        "--method dp-mixture says how probable each number of clusters is; --method NAME takes "
        "one of the candidates at its word.",
    ]


def how_sure_of_draws(found: Mapping[str, Any]) -> tuple[str, str]:
    """Format the credible interval of the number of clusters, and whether chains agree.

    Examples
    --------
    >>> agreed = {"n_clusters": (1.004, 312.2)}
    >>> draws = {"n_chains": 4, "n_draws": 100, "diagnostics": agreed, "probability": 0.95}
    >>> draws |= {"n_clusters_interval": [3, 5], "n_clusters": {3: 0.7, 4: 0.2, 5: 0.1}}
    >>> for line in how_sure_of_draws(draws):
    ...     print(line)
    3 to 5 clusters with 95 % probability; most probable: 3 (70 %)
    4 chains of 100 draws: R-hat 1.00 (1 where they agree), effective size 312
    """
    low, high = found["n_clusters_interval"]
    span = f"{low} to {high}" if low < high else f"{low}"
    likeliest = max(found["n_clusters"], key=lambda k: found["n_clusters"][k])
    r_hat, size = found["diagnostics"]["n_clusters"]
    chains = f"{found['n_chains']} chain{'s' if found['n_chains'] > 1 else ''}"
    draws = f"{found['n_draws']} draw{'s' if found['n_draws'] > 1 else ''}"
    agreement = f"R-hat {r_hat:.2f} (1 where they agree), "
    return (
        f"{span} cluster{'s' if high > 1 else ''} with {percent(found['probability'])} "
        f"probability; most probable: {likeliest} ({percent(found['n_clusters'][likeliest])})",
        f"{chains} of {draws}: {agreement if math.isfinite(r_hat) else ''}"
        f"effective size {size:.0f}",
    )
