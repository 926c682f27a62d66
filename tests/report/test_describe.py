"""Descriptions of clusters: against plain loops, the formulas of the paper, and bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from countless import describe
from countless._report.describe import short_names
from countless._report.summary import summarize_clusters
from countless._report.words import count_words, distinctive_words, log_odds, siblings_of
from countless.preprocess.prepare import Feature

RNG = np.random.default_rng(5)
LABELS = np.array([0] * 8 + [1] * 6 + [2] * 4 + [-1] * 2)
X = RNG.normal(size=(20, 3)) + 4 * LABELS[:, None]
NEAR = RNG.normal(size=(20, 5)) + LABELS[:, None]  # clusters that overlap
TOPICS = (
    ["goal", "puck", "rink", "skate", "referee"],
    ["orbit", "rocket", "moon", "launch", "shuttle"],
    ["engine", "wheel", "brake", "clutch", "gear"],
)
COMMON = ["because", "people", "think", "question", "answer", "today"]


class Fitted(BaseEstimator):
    """Clusters that were found before."""

    def __init__(self, labels):
        self.labels_ = np.asarray(labels)

    def fit(self, X, y=None):
        return self


def corpus(n_texts, random):
    """Return the topic and the text of each row; topics 1 and 2 are near each other."""
    topic = np.arange(n_texts) % 3
    texts = []
    for one in topic:
        # The first word of a topic is in most of its texts, the next ones in fewer.
        own = [w for i, w in enumerate(TOPICS[one]) if random.random() < 0.9 - 0.2 * i]
        texts.append(" ".join([*own, *random.choice(COMMON, 3), "the", "of"]))
    rows = np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 2.0]])[topic]
    return topic, texts, rows + random.normal(scale=0.1, size=rows.shape)


@pytest.fixture(scope="module")
def corpus_300():
    return corpus(300, np.random.default_rng(0))


def test_typical_and_borderline_rows_are_those_of_a_plain_loop():
    table = describe(Fitted(LABELS), NEAR)
    assert table["cluster"].tolist() == [0, 1, 2, -1]
    assert table["size"].tolist() == [8, 6, 4, 2]
    assert table["share"].sum() == pytest.approx(1)
    means = {c: NEAR[c == LABELS].mean(axis=0) for c in range(3)}
    for cluster in range(3):
        mine = np.flatnonzero(cluster == LABELS)
        own = {row: np.square(NEAR[row] - means[cluster]).sum() for row in mine}
        rival = {
            row: min(np.square(NEAR[row] - means[c]).sum() for c in means if c != cluster)
            for row in mine
        }
        typical = sorted(mine, key=own.__getitem__)[:3]
        rest = [row for row in mine if row not in typical]
        borderline = sorted(rest, key=lambda row: rival[row] - own[row])[:3]
        assert table["typical"][cluster] == typical
        assert table["borderline"][cluster] == borderline
    assert table["borderline"][3] == []


def test_it_is_the_table_that_the_command_prints():
    table = describe(Fitted(LABELS), X, names=["a", "b", "c"])
    features = [Feature(name, None, 0.0, 1.0) for name in "abc"]
    for at, summary in enumerate(summarize_clusters(X, LABELS, features)):
        assert table["cluster"][at] == summary.label
        assert table["typical"][at][0] == summary.typical
        assert table["effect_sizes"][at] == pytest.approx([t.difference for t in summary.traits])
        for text, trait in zip(table["sets_apart"][at], summary.traits, strict=True):
            assert text.startswith(f"{trait.column}: ")
            assert text.endswith(f"({trait.difference:+.1f} sd)")


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_binary_columns_and_categories_read_as_shares(scale):
    milk = np.array([1.0] * 8 + [0.0] * 11 + [1.0])
    frame = pd.DataFrame({"milk": milk, "two": 2 * milk, "kind": np.where(milk > 0, "x", "y")})
    table = describe(Fitted(milk > 0), frame)
    texts = dict(zip(table["cluster"], table["sets_apart"], strict=True))
    assert "milk: 100 %, others 0 % (+2.0 sd)" in texts[1]
    assert "kind = x: 100 %, others 0 % (+2.0 sd)" in texts[1]
    assert "two: 2, others 0 (+2.0 sd)" in texts[1]
    assert "kind = y: 100 %, others 0 % (+2.0 sd)" in texts[0]
    # Standardized as the command does it, and rounded to float32.
    scaled = ((milk - 0.4) / scale).astype(np.float32)[:, None]
    for summary in summarize_clusters(scaled, milk, [Feature("milk", None, 0.4, scale)]):
        assert summary.traits[0].is_share


def test_numbers_between_0_and_1_are_not_shares():
    values = RNG.random((20, 1))
    for summary in summarize_clusters(values, values[:, 0] > 0.5, [Feature("v", None, 0.0, 1.0)]):
        assert not summary.traits[0].is_share


@pytest.mark.parametrize("library", [pd, pl])
def test_the_frame_is_of_the_library_of_the_rows(library):
    table = describe(Fitted(LABELS), library.DataFrame({"u": X[:, 0], "v": X[:, 1]}))
    assert isinstance(table, library.DataFrame)
    assert table["size"].to_list() == [8, 6, 4, 2]


def test_without_a_library_of_data_frames_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr("countless._report.describe.find_spec", lambda package: None)
    with pytest.raises(ImportError, match="pip install pandas"):
        describe(Fitted(LABELS), X)


def test_sparse_rows_and_small_blocks_change_nothing(monkeypatch):
    whole = describe(Fitted(LABELS), X)
    monkeypatch.setattr("countless._report.describe.BLOCK_NUMBERS", 9)
    pd.testing.assert_frame_equal(describe(Fitted(LABELS), X), whole)
    pd.testing.assert_frame_equal(describe(Fitted(LABELS), sp.csr_matrix(X)), whole)


def test_missing_values_of_a_frame_are_no_values():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    frame.loc[[3, 11], "a"] = np.nan
    table = describe(Fitted(LABELS), frame)
    assert all(np.isfinite(np.concatenate(table["effect_sizes"])))


def test_log_odds_are_those_of_the_paper():
    inside, outside, prior = RNG.integers(1, 30, size=(3, 6)).astype(float)
    ratio, score = log_odds(inside, outside, prior)
    for w in range(6):
        n_i, n_j, n_0 = inside.sum(), outside.sum(), prior.sum()
        here = (inside[w] + prior[w]) / (n_i + n_0 - inside[w] - prior[w])
        there = (outside[w] + prior[w]) / (n_j + n_0 - outside[w] - prior[w])
        variance = 1 / (inside[w] + prior[w]) + 1 / (outside[w] + prior[w])
        assert ratio[w] == pytest.approx(np.log(here) - np.log(there))
        assert score[w] == pytest.approx((np.log(here) - np.log(there)) / np.sqrt(variance))


def test_words_are_compared_with_siblings_and_all_others():
    labels = np.arange(30) % 3
    rates = np.array([[8, 1, 4, 3, 3, 2, 2], [1, 8, 4, 3, 3, 2, 2], [1, 5, 1, 3, 3, 2, 2]])
    counts = RNG.poisson(rates[labels])
    siblings = np.array([[False, True, True], [False, False, True], [False, True, False]])
    found = distinctive_words(counts, list("abcdefg"), labels, siblings)
    assert sum(map(len, found)) >= 2
    own = np.array([counts[labels == c].sum(axis=0) for c in range(3)], dtype=float)
    for cluster, words in enumerate(found):
        ratio, near = log_odds(
            own[cluster], own[siblings[cluster]].sum(axis=0), own.sum(axis=0) / 3
        )
        _, far = log_odds(own[cluster], own.sum(axis=0) - own[cluster], own.sum(axis=0) / 3)
        score = (near + far) / 2
        expected = [at for at in np.argsort(-score) if score[at] >= 2]
        assert [word.word for word in words] == ["abcdefg"[at] for at in expected]
        assert [word.score for word in words] == pytest.approx(score[expected])
        assert [word.log_odds for word in words] == pytest.approx(ratio[expected])


def test_siblings_are_the_other_side_of_the_merge():
    centers = np.array([[0.0], [1.0], [10.0], [12.0], [30.0]])
    siblings = siblings_of(np.ones(5), centers)
    assert [np.flatnonzero(row).tolist() for row in siblings] == [[1], [0], [3], [2], [0, 1, 2, 3]]
    assert not siblings_of(np.ones(1), centers[:1]).any()


def test_texts_give_the_words_of_their_topics(corpus_300):
    topic, texts, rows = corpus_300
    table = describe(Fitted(topic), rows, texts=texts, classes=topic)
    for cluster, words, odds in zip(
        table["cluster"], table["words"], table["log_odds"], strict=True
    ):
        assert set(words) == set(TOPICS[cluster])
        assert min(odds) > 0
    assert table["class"].tolist() == table["cluster"].tolist()
    assert table["class_share"].tolist() == [1, 1, 1]
    counts, words = count_words(texts)
    by_counts = describe(Fitted(topic), rows, counts=counts, words=words, classes=topic)
    pd.testing.assert_frame_equal(by_counts, table)
    frame = pl.DataFrame(counts.toarray(), schema=words, orient="row")
    by_frame = describe(Fitted(topic), rows, counts=frame, classes=topic)
    pd.testing.assert_frame_equal(by_frame, table)


def test_names_are_stable_under_resampling(corpus_300):
    topic, texts, rows = corpus_300
    names = describe(Fitted(topic), rows, texts=texts).set_index("cluster")["name"].sort_index()
    assert names.tolist() == ["goal", "orbit", "engine"]
    random = np.random.default_rng(1)
    kept = []
    for _ in range(40):
        drawn = random.integers(0, 300, size=300)
        again = describe(Fitted(topic[drawn]), rows[drawn], texts=[texts[i] for i in drawn])
        kept += (again.set_index("cluster")["name"].sort_index() == names).tolist()
    assert np.mean(kept) >= 0.95


def test_names_differ():
    fallback = [f"cluster {i}" for i in range(4)]
    names = short_names([["a", "b"], ["a", "c"], ["a"], []], fallback)
    assert names == ["a, b", "a, c", "a", "cluster 3"]
    assert short_names([["a"], ["a"]], fallback[:2]) == ["a (cluster 0)", "a (cluster 1)"]


def test_names_of_edits_are_kept(corpus_300):
    topic, texts, rows = corpus_300
    model = Fitted(topic)
    model.cluster_names_ = ["ice", "", ""]
    table = describe(model, rows, texts=texts)
    assert sorted(table["name"]) == ["engine", "ice", "orbit"]


def test_texts_without_words_have_none():
    table = describe(Fitted(LABELS), X, texts=["the 1 2"] * 20)
    assert table["words"].tolist() == [[]] * 4


def test_given_names_of_rows_stand_for_positions():
    table = describe(Fitted(LABELS), X, rows=[f"r{i}" for i in range(20)])
    assert table["typical"][0] == [f"r{i}" for i in describe(Fitted(LABELS), X)["typical"][0]]


HOLED = X.copy()
HOLED[4, 1] = np.nan


@pytest.mark.parametrize(
    ("rows", "extra", "message"),
    [
        (HOLED, {}, "X: row 4, column 1 is nan"),
        (sp.csr_matrix(HOLED), {}, "X: row 4, column 1 is nan"),
        (X[:, 0], {}, "X must have two dimensions; got 1"),
        (X, {"names": ["a"]}, "names has 1 entries for 3 columns"),
        (X, {"texts": ["a"] * 19}, "texts has 19 entries for 20 rows"),
        (X, {"texts": "one text"}, "texts must be a list with one entry for each of the 20 rows"),
        (X, {"texts": ["a"] * 19 + [None]}, "texts: row 19 is None"),
        (X, {"rows": ["a"] * 21}, "rows has 21 entries for 20 rows"),
        (X, {"classes": [1]}, "classes has 1 entries for 20 rows"),
        (X, {"counts": np.ones((20, 2))}, "words must name the columns of counts"),
        (X, {"counts": np.ones((19, 1)), "words": ["a"]}, "counts has 19 rows for 20 rows of X"),
        (X, {"counts": np.ones((20, 2)), "words": ["a"]}, "words has 1 entries for 2 columns"),
        (X, {"counts": -np.eye(20)[:, 7:8], "words": ["a"]}, "counts: row 7 has a negative count"),
        (X, {"words": ["a"]}, "words are the columns of counts"),
        (X, {"counts": X, "texts": ["a"] * 20}, "give texts or counts, not both"),
        (sp.eye_array(20, format="csr"), {}, "X is a graph"),
    ],
)
def test_bad_input_is_named(rows, extra, message):
    with pytest.raises(ValueError, match=message):
        describe(Fitted(LABELS), rows, **extra)
