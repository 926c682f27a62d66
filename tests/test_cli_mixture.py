"""``countless fit`` with mixtures: options, how sure they are, pictures, and a stop half-way."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from countless._mcmc import chains, sampled
from countless.cli import main
from countless.cli.methods import make_estimator
from countless.cli.progress import follow


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == code, result.output
        return result

    return call


@pytest.fixture
def counts(tmp_path):
    """Return a table of counts from two sites with two kinds of rows, both kinds at each site."""
    random = np.random.default_rng(0)
    rows = [random.poisson([[1, 30], [30, 1]][i % 2]) for i in range(60)]
    lines = [f"{a},{b},{'east' if i < 30 else 'west'}" for i, (a, b) in enumerate(rows)]
    path = tmp_path / "counts.csv"
    path.write_text("\n".join(["a,b,site", *lines]) + "\n")
    return path


FEW = ("--sweeps", 20, "--chains", 2, "--out", "o")


def test_a_mixture_reports_its_uncertainty(run, counts, tmp_path):
    mixture = ("--method", "dp-mixture", "--model", "poisson", "--exclude", "site")
    result = run("fit", counts, *mixture, *FEW, "--sweeps", 80, "--plot")
    assert "2 clusters, found by dp-mixture" in result.stdout
    record = json.loads((tmp_path / "o" / "run.json").read_text())
    posterior = record["result"]["posterior"]
    low, high = posterior["n_clusters_interval"]
    span = f"{low} to {high}" if low < high else f"{low}"
    assert f"{span} clusters with 95 % probability; most probable: 2" in result.stdout
    assert posterior["n_clusters"]["2"] > 0.5  # in a long run it is 0.72
    assert sum(posterior["n_clusters"].values()) == pytest.approx(1)
    assert "2 chains of 40 draws: R-hat" in result.stdout
    assert posterior["diagnostics"].keys() == {"n_clusters", "log_joint", "alpha"}
    assert record["method"]["parameters"]["n_sweeps"] == 80
    # Counts stay counts, though other models of this table would get scaled columns.
    assert record["input"]["columns"][0]["done"] == "as it is"
    assert (tmp_path / "o" / "posterior.png").read_bytes().startswith(b"\x89PNG")


def test_data_sets_share_clusters(run, counts):
    mixture = ("--method", "hdp-mixture", "--model", "poisson", "--group", "site")
    result = run("fit", counts, *mixture, *FEW)
    assert "2 clusters, found by hdp-mixture" in result.stdout
    assert "2 data sets, each with 2 of them" in result.stdout
    assert "with 95 % probability" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--method", "dp-means", "--sweeps", 9), "dp-means takes no --sweeps"),
        (("--method", "dp-mixture", "--sweeps", 9, "--set", "n_sweeps=9"), "given twice"),
        (("--method", "dp-mixture", "--model", "gausian"), "'gausian' is not one of"),
        (
            ("--method", "dp-mixture", "--model", "poisson"),
            "not an integer: row 1, column 'a' has 0.5",
        ),
        (("--method", "dp-mixture", "--group", "b"), "takes no groups; leave out --group"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(run, tmp_path, arguments, says):
    (tmp_path / "t.csv").write_text("a,b\n0.5,1\n2,2\n3,1\n")
    result = run("fit", "t.csv", *arguments, "--out", "o", code=2)
    assert says in " ".join(result.stderr.split())
    assert not (tmp_path / "o").exists()


def test_progress_tells_the_time_left(monkeypatch):
    said = []
    mixture = make_estimator("dp-mixture", {"n_sweeps": 3, "n_chains": 2}, seed=0, jobs=None)
    if not hasattr(mixture, "set_callbacks"):
        pytest.skip("scikit-learn has callbacks from 1.9 on")
    follow(mixture, said.append, (9, 1))
    mixture.fit(np.arange(9.0)[:, None])
    assert len(said) == 6
    assert said[0].startswith("sweep 1 of 6 in 2 chains, ")
    assert said[-1].endswith("about 1 s left")
    assert "log joint" in said[-1]


def test_ctrl_c_keeps_the_draws_so_far(run, counts, tmp_path, monkeypatch):
    wait, turns = chains.wait, []

    def interrupted(*arguments, **settings):
        turns.append(1)
        if len(turns) == 5:
            raise KeyboardInterrupt
        return wait(*arguments, **settings)

    monkeypatch.setattr(chains, "wait", interrupted)
    endless = ("--sweeps", 10**6, "--set", "burn_in=1", "--chains", 2, "--out", "o")
    mixture = ("--method", "dp-mixture", "--model", "poisson", "--exclude", "site")
    result = run("fit", counts, *mixture, *endless)
    assert "draws of 2 chains are kept" in " ".join(result.stderr.split())
    assert "found by dp-mixture" in result.stdout
    record = json.loads((tmp_path / "o" / "run.json").read_text())
    assert record["result"]["posterior"]["n_chains"] == 2
    assert 1 <= record["result"]["posterior"]["n_draws"] < 10**6
    assert (tmp_path / "o" / "labels.csv").exists()


@pytest.mark.parametrize("method", [("dp-mixture", "--model", "poisson"), ("crosscat",)])
def test_chains_that_disagree_are_told_which_option_to_raise(run, counts, monkeypatch, method):
    monkeypatch.setattr(sampled, "TUNING", replace(sampled.TUNING, highest_r_hat=0.5))
    told = run("fit", counts, "--exclude", "site", "--method", *method, *FEW).stderr
    assert "chains disagree on" in told
    assert "raise --sweeps" in told
    assert "n_sweeps" not in told
    assert "resume" not in told
