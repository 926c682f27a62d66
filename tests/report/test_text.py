"""Text for a terminal: data is shown, never obeyed."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from countless.io.plan import ColumnReport
from countless.report.plain import number, percent, printable
from countless.report.summary import ClusterSummary, Trait
from countless.report.text import clusters_view, columns_view

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
    unlike = [column._replace(n_gaps=i) for i, column in enumerate(many * 2)]
    assert "20 more columns" in rendered(columns_view(unlike))


def test_long_lists_end_with_how_many_more():
    clusters = [ClusterSummary(label, 1, 0.01, 0, []) for label in range(33)]
    assert "13 more clusters" in rendered(
        clusters_view(clusters, lambda row, column: "", lambda row: "")
    )
    noise = [ClusterSummary(-1, 1, 0.01, 0, [])]
    assert "noise" in rendered(clusters_view(noise, lambda row, column: "", lambda row: ""))
