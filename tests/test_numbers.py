"""What holds text is refused in one line that names the cell."""

import numpy as np
import pandas as pd
import pytest

from countless import DPMeans, penalty_path
from countless._threads import count_threads

TEXT = [
    ([[1.0, 2.0], [3.0, "four"]], "row 1, column 1 is 'four'"),
    (np.array([["1", "2"], ["x", "4"]]), "row 1, column 0 is 'x'"),
    (pd.DataFrame({"a": [1.0, 2.0], "b": ["3", "four"]}), "row 1, column 'b' is 'four'"),
]


@pytest.mark.parametrize(("X", "where"), TEXT)
@pytest.mark.parametrize("use", [lambda X: DPMeans(penalty=1.0).fit(X), penalty_path])
def test_a_cell_of_text_is_named(use, X, where):
    with pytest.raises(ValueError, match=f"^X holds text: {where}$"):
        use(X)


def test_other_errors_of_a_table_stay():
    with pytest.raises(ValueError, match="inhomogeneous"):
        DPMeans(penalty=1.0).fit([[1.0], [2.0, 3.0]])
    assert DPMeans(penalty=1.0).fit([["1"], ["9"]]).n_clusters_ == 2


@pytest.mark.parametrize("n_jobs", ["x", 0, 1.5, True])
def test_a_wrong_number_of_threads_is_named(n_jobs):
    with pytest.raises(ValueError, match=r"^n_jobs must be None or a whole number other than 0"):
        DPMeans(penalty=1.0, n_jobs=n_jobs).fit([[1.0], [2.0]])
    assert count_threads(2) == 2
