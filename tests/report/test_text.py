"""Text for a terminal: data is shown, never obeyed."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from countless._path.path import Plateau
from countless._report.plain import how_sure, number, percent, printable
from countless._report.summary import ClusterSummary, Trait
from countless._report.text import clusters_view, columns_view
from countless.preprocess.plan import ColumnReport

NASTY = "[bold]x[/bold] \x1b[31m\x07\r\n:smile: \u202eabc"


def rendered(view):
    out = io.StringIO()
    Console(file=out, width=120, force_terminal=False, markup=False, emoji=False).print(view)
    return out.getvalue()


@given(st.text())
def test_nothing_printable_is_a_command(text):
    assert printable(text).isprintable()
    if text.isprintable():
        assert printable(text) == text


def test_data_is_neither_markup_nor_control():
    trait = Trait("length" + NASTY, NASTY, 0.5, 0.1, 1.0)
    cluster = ClusterSummary(0, 3, 0.5, 1, [trait])
    views = [
        columns_view([ColumnReport(NASTY, "numeric", 0, None, True, "left out: " + NASTY)]),
        clusters_view([cluster], lambda row, column: NASTY, lambda row: NASTY),
    ]
    for view in views:
        text = rendered(view)
        assert all(line.isprintable() for line in text.split("\n"))
        assert "[bold]x[/bold]" in text
        assert ":smile:" in text
        assert "\\x1b[31m" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.5, "-0.5"), (12.3456, "12.35"), (12345.6, "12346"), (1e12, "1e+12")],
)
def test_numbers(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.004, "<1 %"), (0.006, "1 %"), (0.5, "50 %"), (1.0, "100 %")],
)
def test_shares(share, text):
    assert percent(share) == text


def test_neighbours_that_are_alike_share_a_line_in_wide_tables():
    many = [ColumnReport(f"c{i}", "numeric", int(i == 7), None, True, "as is") for i in range(30)]
    text = rendered(columns_view(many))
    assert "c0 to c6 (7)" in text
    assert "c8 to c29 (22)" in text
    assert len(text.splitlines()) == 4
    assert len(rendered(columns_view(many[:20])).splitlines()) == 21
    unlike = [column._replace(n_missing=i) for i, column in enumerate(many * 2)]
    assert "20 more columns" in rendered(columns_view(unlike))


def test_many_clusters_show_fewer_traits():
    traits = [Trait(f"feature {i}", None, 1.0, 0.0, 1.0) for i in range(4)]
    clusters = [ClusterSummary(label, 1, 0.1, 0, traits) for label in range(9)]

    def lines(shown):
        view = clusters_view(shown, lambda row, column: "1", lambda row: "row")
        return len(rendered(view).splitlines())

    assert lines(clusters[:8]) == 1 + 8 * 5
    assert lines(clusters) == 1 + 9 * 3


def test_typical_values_are_short_and_missing_values_are_named():
    cluster = ClusterSummary(0, 3, 0.5, 1, [Trait("length", None, 9.0, 1.0, 2.0)])
    for cell, shown in (("9.220195123470049", " 9.2202 "), ("9.25", " 9.25 "), ("", " (missing) ")):
        view = clusters_view([cluster], lambda row, column, cell=cell: cell, lambda row: "row 7")
        assert shown in rendered(view)


def test_confidence_is_stated_with_the_next_best_number():
    best = Plateau(3, 10.0, 40.0, 1.4, 0.2, 1.2)
    next_one = Plateau(1, 60.0, float("inf"), float("inf"), float("inf"), 0.1)
    assert how_sure(0.7, [best, next_one]).endswith("; next best: 1 cluster")
    weak = next_one._replace(score=-0.5)
    assert how_sure(0.7, [best, weak]).endswith("; no other number stands out")
    assert how_sure(0.0, [next_one]) == "Confidence 0.00: too few rows to judge"


def test_long_lists_end_with_how_many_more():
    clusters = [ClusterSummary(label, 1, 0.01, 0, []) for label in range(33)]
    assert "13 more clusters" in rendered(
        clusters_view(clusters, lambda row, column: "", lambda row: "")
    )
    noise = [ClusterSummary(-1, 1, 0.01, 0, [])]
    assert "noise" in rendered(clusters_view(noise, lambda row, column: "", lambda row: ""))
