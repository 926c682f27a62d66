"""Short names of clusters: what sets each apart most, and as much more as makes names differ."""

from __future__ import annotations

from collections.abc import Sequence


def short_names(ranked: Sequence[Sequence[str]], fallback: Sequence[str]) -> list[str]:
    """Return a name for each cluster; all are different.

    The name is the first of the texts: one text changes more rarely than several do when rows are
    drawn anew. Clusters that would share a name take their next texts, too.

    Parameters
    ----------
    ranked : sequence of sequences of str
        What sets each cluster apart, most first.
    fallback : sequence of str
        The different names of clusters that nothing sets apart, or nothing else than others.

    Examples
    --------
    >>> short_names([["ice", "puck"], ["ice", "rink"], []], ["cluster 0", "cluster 1", "cluster 2"])
    ['ice, puck', 'ice, rink', 'cluster 2']
    """
    lengths = [1] * len(ranked)
    while True:
        names = [
            ", ".join(texts[:length]) or other
            for texts, length, other in zip(ranked, lengths, fallback, strict=True)
        ]
        shared = [at for at, name in enumerate(names) if names.count(name) > 1]
        longer = [at for at in shared if lengths[at] < len(ranked[at])]
        if not longer:
            break
        for at in longer:
            lengths[at] += 1
    for at in shared:
        names[at] = f"{names[at]} ({fallback[at]})"
    return names
