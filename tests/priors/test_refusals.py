"""What is not a prior, a size, a partition or a number of rows gets one line that says so."""

import numpy as np
import pytest

from countless.priors import (
    Beta,
    DirichletProcess,
    FiniteDirichlet,
    Gamma,
    PitmanYor,
    SizePrior,
    UniformPartition,
)

DP = DirichletProcess()

REFUSED = [
    (lambda: DirichletProcess(0.0), ValueError, "alpha must be positive; got 0.0"),
    (lambda: DirichletProcess(np.nan), ValueError, "alpha must be finite; got nan"),
    (lambda: DirichletProcess("1"), TypeError, "alpha must be a number; got '1'"),
    (lambda: DirichletProcess(True), TypeError, "alpha must be a number; got True"),
    (lambda: DirichletProcess(Beta()), TypeError, "alpha must be a number; got Beta"),
    (lambda: PitmanYor(1.0, 1.0), ValueError, "discount must be from 0 to below 1; got 1.0"),
    (lambda: PitmanYor(1.0, -0.1), ValueError, "discount must be from 0 to below 1; got -0.1"),
    (lambda: PitmanYor(-0.5, 0.5), ValueError, "alpha must be above minus the discount, -0.5"),
    (lambda: PitmanYor(0.0, 0.0), ValueError, "alpha must be above minus the discount"),
    (lambda: PitmanYor(-0.1, Beta()), ValueError, "alpha must not be negative where"),
    (lambda: FiniteDirichlet(-1.0, 3), ValueError, "alpha must be positive; got -1.0"),
    (lambda: FiniteDirichlet(1.0, 0), ValueError, "n_components must be at least 1; got 0"),
    (lambda: FiniteDirichlet(1.0, 2.5), TypeError, "n_components must be an integer; got 2.5"),
    (lambda: SizePrior(3), TypeError, "log_size_weight must be a function; got 3"),
    (lambda: Gamma(0.0), ValueError, "shape must be positive; got 0.0"),
    (lambda: Gamma(1.0, -1.0), ValueError, "rate must be positive; got -1.0"),
    (lambda: Beta(1.0, np.inf), ValueError, "b must be finite; got inf"),
    (lambda: DP.sample(0), ValueError, "n must be at least 1; got 0"),
    (lambda: DP.weights(2.0), TypeError, "n must be an integer; got 2.0"),
    (lambda: UniformPartition().sample(-1), ValueError, "n must be at least 1; got -1"),
    (lambda: DP.log_prob(), TypeError, "give either labels or sizes"),
    (lambda: DP.log_prob([0], sizes=[1]), TypeError, "give either labels or sizes"),
    (lambda: DP.log_prob([]), ValueError, "labels is empty"),
    (lambda: DP.log_prob([0.0, np.nan]), ValueError, "labels has no label at row 1"),
    (lambda: DP.log_prob(sizes=[2, 0]), ValueError, "integers from 1; cluster 1 has 0"),
    (lambda: DP.log_prob(sizes=[2.5]), ValueError, "integers from 1; cluster 0 has 2.5"),
    (lambda: DP.log_prob(sizes=[1, np.nan]), ValueError, "integers from 1; cluster 1 has nan"),
    (lambda: DP.log_prob(sizes=[np.inf]), ValueError, "integers from 1; cluster 0 has inf"),
    (lambda: DP.log_predictive(["2"]), TypeError, "sizes must be integers; got values of"),
    (lambda: DP.log_prob(sizes=[[1]]), ValueError, "sizes must have one dimension"),
]

BAD_WEIGHTS = [
    (lambda size: [0.0, 1.0], "for 4 sizes it returned an array of shape"),
    (lambda size: np.where(size == 3, np.nan, 0.0), "log_size_weight of size 3 is nan"),
    (lambda size: np.where(size == 2, np.inf, 0.0), "log_size_weight of size 2 is inf"),
    (lambda size: np.where(size < 2, -np.inf, 0.0), "forbids size 1 and allows larger ones"),
    (lambda size: np.where(size == 3, -np.inf, 0.0), "forbids size 3 and allows larger ones"),
    (lambda size: np.full(len(size), -np.inf), "forbids size 1"),
]


@pytest.mark.parametrize(("ask", "error", "message"), REFUSED, ids=range(len(REFUSED)))
def test_bad_input_is_named(ask, error, message):
    with pytest.raises(error) as raised:
        ask()
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(("function", "message"), BAD_WEIGHTS, ids=range(len(BAD_WEIGHTS)))
def test_a_function_of_the_size_is_checked(function, message):
    with pytest.raises(ValueError, match=message):
        SizePrior(function).log_normalizer(4)


def test_a_constant_function_is_the_uniform_prior():
    constant = SizePrior(lambda size: -3.0)
    weighted = constant.n_clusters_distribution(5)
    uniform = UniformPartition().n_clusters_distribution(5) * np.exp(-3.0 * np.arange(6))
    np.testing.assert_allclose(weighted, uniform / uniform.sum())
    labels = [0, 1, 1]
    assert SizePrior(lambda size: 0.0).log_prob(labels) == UniformPartition().log_prob(labels)


def test_a_function_may_take_any_power_of_sizes():
    prior = SizePrior(lambda size: size**-2)
    assert prior.log_weight([1, 2]) == 1.25
