"""Kernels that are registered for a type of clusters."""

from typing import NamedTuple

import joblib
import numpy as np
import pytest
from numba import typeof

from countless.kernels.models import implement
from countless.models import Gaussian


class Nothing(NamedTuple):
    statistics: np.ndarray


def test_every_required_kernel_function_is_needed():
    with pytest.raises(TypeError, match="Nothing: missing or unknown add_row, log_marginal"):
        implement(Nothing, refresh=None)


def test_unknown_kernel_functions_are_refused():
    with pytest.raises(TypeError, match="merge_rows"):
        implement(Nothing, merge_rows=None)


def test_models_from_mapped_files_are_compiled_for_no_more_than_others(tmp_path):
    X = np.arange(8.0).reshape(4, 2)
    bound = Gaussian().bind(X)
    joblib.dump(bound, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    assert not mapped.scale.flags.writeable
    assert typeof(mapped.clusters(2)) == typeof(bound.clusters(2))
