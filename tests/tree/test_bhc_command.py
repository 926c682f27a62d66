"""Bayesian hierarchical clustering from the command line, and saved."""

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import make_blobs

from countless import BayesianHierarchicalClustering
from countless._errors import ModelFileError
from countless.cli import main
from countless.serialize.model_file import load_model, save_model


@pytest.fixture(scope="module")
def table():
    X, _ = make_blobs(80, centers=3, cluster_std=0.6, random_state=4)
    return X


def test_a_saved_model_predicts_as_before(table, tmp_path):
    model = BayesianHierarchicalClustering("diagonal").fit(table)
    save_model(tmp_path / "model.zip", model)
    again = load_model(tmp_path / "model.zip").estimator
    np.testing.assert_array_equal(again.predict(table), model.predict(table))
    np.testing.assert_allclose(again.score_samples(table), model.score_samples(table), rtol=1e-12)
    np.testing.assert_array_equal(again.linkage_matrix_, model.linkage_matrix_)
    assert again.log_evidence_ == model.log_evidence_


def test_arrays_that_do_not_fit_are_refused(table, tmp_path):
    model = BayesianHierarchicalClustering("diagonal").fit(table)
    model.node_statistics_ = model.node_statistics_[:, :-1]
    save_model(tmp_path / "model.zip", model)
    with pytest.raises(ModelFileError, match="node_statistics_ are not those of its model"):
        load_model(tmp_path / "model.zip")


def test_command_line(table, tmp_path):
    data, out = tmp_path / "table.csv", tmp_path / "out"
    np.savetxt(data, table, delimiter=",", header="a,b", comments="")
    command = ["fit", str(data), "--method", "bhc", "--set", "model=diagonal", "--out", str(out)]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "3 clusters, found by bhc" in done.output
    done = CliRunner().invoke(main, ["predict", str(out / "model.zip"), str(data)])
    assert done.exit_code == 0, done.output
    wrong = [*command[:-2], "--set", "alpha=-1", "--out", str(tmp_path / "other")]
    done = CliRunner().invoke(main, wrong)
    assert done.exit_code == 2
    assert "alpha must be a positive number; got -1" in done.output
    assert not (tmp_path / "other").exists()
