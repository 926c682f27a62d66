"""When rows are compared with centers by bounds, neighbor lists, products and projections."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pruning:
    """Constants of the search for nearest centers: they change its time, never its labels.

    Exceptions are the two of local passes, which compare rows with listed centers only. Chosen by
    ``python benchmarks/dp_means.py``, as the fewest user CPU seconds over its sets.
    """

    # A listed center is compared unless it is this much farther, divided by the number of
    # dimensions: in few dimensions a distance costs less than letting the bounds become loose.
    slack: float = 4.0
    # Longest list of neighbors; at most one in so many centers is listed (a distance costs about as
    # much as so many entries of a product), and all lists take at most this share of the table.
    most_neighbors: int = 128
    centers_a_neighbor: int = 8
    lists_share: float = 1 / 64
    # In more dimensions lists decide hardly any row.
    list_dimensions: int = 32
    # Length of the lists of a local pass, in all and for each dimension, and the passes before they
    # are made again: they become stale as centers move.
    local_neighbors: int = 32
    local_neighbors_a_dimension: int = 8
    passes_a_list: int = 4
    # Bytes of a table whose products are computed in one kernel; above, each tile is one call of
    # NumPy. Then the values of a tile in either.
    kernel_table: int = 2**25
    kernel_tile: int = 2**13
    tile: int = 2**17
    # Least number of centers that are projected, largest share of their variance outside the span,
    # and least factor by which the number of dimensions must fall.
    projected_centers: int = 512
    outside_span: float = 0.02
    fewer_dimensions: int = 3


PRUNING = Pruning()
