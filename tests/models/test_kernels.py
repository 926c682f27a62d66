"""Kernels that are registered for a type of clusters."""

from typing import NamedTuple

import numpy as np
import pytest

from countless.kernels.models import implement


class Nothing(NamedTuple):
    statistics: np.ndarray


def test_every_question_needs_an_answer():
    with pytest.raises(TypeError, match="Nothing: missing or unknown add_row, log_marginal"):
        implement(Nothing, refresh=None)


def test_unknown_questions_are_refused():
    with pytest.raises(TypeError, match="merge_rows"):
        implement(Nothing, merge_rows=None)
