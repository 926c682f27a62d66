"""From a table to a matrix: kinds of columns, missing values, scales; the same at predict."""

import json
from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from countless._data.columns import Roles, examine_columns, named_columns
from countless._data.table import Numbers, Table, Unusable, Words
from countless._errors import InputError
from countless.preprocess.plan import plan_preparation, row_weights, weighted_median
from countless.preprocess.prepare import CategoricalStep, Preparation

NAN = np.nan


def words(*texts):
    levels = tuple(dict.fromkeys(text for text in texts if text is not None))
    return Words(np.array([-1 if text is None else levels.index(text) for text in texts]), levels)


def numbers(*values):
    return Numbers(np.array(values, dtype=float))


def table_of(**columns):
    first = next(iter(columns.values()))
    return Table("t.csv", columns, len(first.missing))


def plan_of(table, roles=None, **choices):
    return plan_preparation(table, examine_columns(table, roles or Roles()), **choices)


@pytest.mark.parametrize(
    ("column", "kind", "used"),
    [
        (numbers(1, 2, 2, 7), "numeric", True),
        (numbers(1, 2, NAN, 7), "numeric", True),
        (numbers(3, 3, NAN, 3), "constant", False),
        (numbers(NAN, NAN, NAN, NAN), "empty", False),
        (numbers(1, 2, 3, 4), "identifier", False),
        (numbers(0, 1, 2, 3), "identifier", False),
        (numbers(2, 3, 4, 5), "numeric", True),
        (words("a", "b", "a", None), "categorical", True),
        (words("a", "a", "a", None), "constant", False),
        (words("a", "b", "c", "d"), "identifier", False),
        (Unusable("dates", 0), "other", False),
        (Unusable("nothing", 4), "empty", False),
    ],
)
def test_kinds(column, kind, used):
    table = Table("t.csv", {"x": column, "also": numbers(5, 1, 1, 2)}, 4)
    fact = examine_columns(table, Roles())[0]
    assert (fact.kind, fact.used) == (kind, used)


def test_nearly_distinct_and_many_levels():
    names = words(*[f"name {i}" for i in range(100)], "name 7")
    towns = words(*[f"town {i % 150}" for i in range(600)])
    assert examine_columns(table_of(n=names, x=numbers(*range(5, 106))), Roles())[0].kind == (
        "identifier"
    )
    facts = examine_columns(table_of(t=towns, x=numbers(*range(5, 605))), Roles())
    assert facts[0].kind == "text"
    forced = examine_columns(table_of(t=towns), Roles(categorical=("t",)))
    assert forced[0].used


def test_a_few_words_among_numbers_are_refused():
    column = words(*[str(i) for i in range(20)], "abc")
    column = Words(np.concatenate([column.codes, column.codes[:20]]), column.levels)
    table = table_of(age=column, x=numbers(*range(5, 46)))
    with pytest.raises(InputError, match=r"'age', row 21 is 'abc', but 40 other rows hold numbers"):
        examine_columns(table, Roles())
    assert not examine_columns(table, Roles(exclude=("age",)))[0].used
    assert examine_columns(table, Roles(categorical=("age",)))[0].kind == "categorical"


def test_text_that_is_all_numbers_is_text():
    table = table_of(code=words("01", "02", "01"), x=numbers(5, 1, 1))
    assert examine_columns(table, Roles())[0].kind == "categorical"


def test_decimal_commas_next_to_decimal_points_are_refused():
    table = table_of(x=words("1,5", "2,5", "1,5"), y=numbers(5, 6, 8))
    with pytest.raises(InputError, match=r"as '1,5'; say --decimal ,"):
        examine_columns(table, Roles())


def test_a_mistake_among_dates_is_named():
    table = table_of(day=words(*[f"2024-01-{day}" for day in range(10, 30)], "2024-02-30"))
    with pytest.raises(InputError, match="row 21 is '2024-02-30', but 20 other rows hold dates"):
        examine_columns(table, Roles())


def test_zeros_and_ones_are_binary_and_count_as_a_category_of_two():
    plan = plan_of(table_of(b=numbers(0, 1, 1, 0), x=numbers(5, 1, 1, 2)))
    assert (plan.columns[0].kind, plan.columns[0].done) == ("binary", "as a category of two")
    apart = plan.prepared.matrix[0, 0] - plan.prepared.matrix[1, 0]
    assert apart**2 == pytest.approx(2)  # as two levels, one-hot encoded


def test_free_text_is_told_what_to_do_with():
    said = words(
        "it was a very good day", "we did not like it at all", "nothing to say of this one"
    )
    fact = examine_columns(table_of(said=said, x=numbers(5, 1, 1)), Roles())[0]
    assert fact.kind == "text"
    assert "--texts" in fact.left_out


def test_another_unit_than_at_the_fit_is_a_warning():
    fitted = plan_of(table_of(x=Numbers(np.array([0.1, 0.5, 0.7]), "%"))).preparation
    assert Preparation.from_json(fitted.to_json()) == fitted
    note = fitted.apply(table_of(x=numbers(10, 50, 70))).notes
    assert note == [
        "column 'x' holds plain numbers, and held percent as shares of 1 when the model was fitted"
    ]


def test_why_no_column_is_left_is_said():
    large = 2.0**60
    table = table_of(x=numbers(large, large), y=words("a", "a"), z=Unusable("dates", 0))
    with pytest.raises(InputError, match=r"'x' \(too large.*'y' \(always 'a'\), 'z' \(holds dates"):
        examine_columns(table, Roles())
    with pytest.raises(InputError, match="one row only"):
        examine_columns(table_of(x=numbers(1)), Roles())


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        (Roles(columns=("name",)), "'name' is identifier .*--id name"),
        (Roles(columns=("x",), exclude=("x",)), "both used and set aside by --exclude"),
        (Roles(columns=("x",), weight="x"), "set aside by --weight"),
        (Roles(exclude=("x",)), "no column to cluster by"),
    ],
)
def test_roles_that_cannot_be(roles, message):
    table = table_of(x=numbers(1, 5, 2), name=words("a", "b", "c"))
    with pytest.raises(InputError, match=message):
        examine_columns(table, roles)


def test_names_are_found_or_suggested():
    table = table_of(length=numbers(1), mass=numbers(1))
    assert named_columns(table, ["mass,length", "mass"]) == ("mass", "length")
    with pytest.raises(InputError, match="did you mean 'length'"):
        named_columns(table, ["lenght"])
    with pytest.raises(InputError, match="it has length, mass"):
        named_columns(table, ["zzz"])


def test_standardising_and_indicators():
    table = table_of(x=numbers(1, 3, 5, 7), c=words("b", "a", "b", "b"))
    plan = plan_of(table)
    matrix = plan.prepared.matrix
    np.testing.assert_allclose(matrix[:, 0], (np.array([1, 3, 5, 7]) - 4) / np.sqrt(5))
    np.testing.assert_array_equal(matrix[:, 1:], [[0, 1], [1, 0], [0, 1], [0, 1]])
    assert [f.level for f in plan.preparation.features()] == [None, "a", "b"]
    np.testing.assert_array_equal(plan_of(table, scale=False).prepared.matrix[:, 0], [1, 3, 5, 7])


def test_missing_values_are_refused_dropped_or_filled():
    table = table_of(x=numbers(1, NAN, 5, 9), c=words("b", "a", None, "b"))
    with pytest.raises(
        InputError, match=r"'x' has 1 missing value, the first in row 2 \(2 missing values in 2 col"
    ):
        plan_of(table)
    dropped = plan_of(table, missing="drop", scale=False)
    # In the rows without missing values c is constant; without c, row 3 has no missing value.
    assert dropped.prepared.rows.tolist() == [0, 2, 3]
    assert dropped.prepared.matrix.tolist() == [[1], [5], [9]]
    assert "constant" in dropped.columns[1].done
    filled = plan_of(table, missing="impute", scale=False)
    assert filled.prepared.matrix[:, 0].tolist() == [1, 5, 5, 9]
    assert filled.prepared.matrix[2, 1:].tolist() == [0, 1]
    with pytest.raises(InputError, match="has a missing value; say --missing impute"):
        plan_of(table_of(x=numbers(1, 2, NAN, NAN), y=numbers(NAN, NAN, 4, 5)), missing="drop")


def test_infinite_and_huge_values_are_named():
    with pytest.raises(InputError, match="'x', row 3 is infinite"):
        plan_of(table_of(x=numbers(1, 2, -np.inf)))
    with pytest.raises(InputError, match="'x' holds numbers too large"):
        plan_of(table_of(x=numbers(1e300, -1e300, 5)))


def test_float32_stays_float32():
    table = Table("t", {"x": Numbers(np.array([1, 5, 2], dtype=np.float32))}, 3)
    assert plan_of(table).prepared.matrix.dtype == np.float32


@given(
    st.lists(
        st.tuples(st.floats(-1e3, 1e3), st.sampled_from("abc"), st.integers(0, 4)),
        min_size=3,
        max_size=12,
    )
)
def test_weights_equal_repeats(rows):
    values, letters, weights = (list(part) for part in zip(*rows, strict=True))
    values, letters, weights = [0.0, 1.0, *values], ["a", "b", *letters], [1, 1, *weights]
    table = table_of(x=numbers(*values), c=words(*letters))
    weighted = plan_of(
        table, Roles(categorical=("c",)), weight=np.array(weights, dtype=float)
    ).preparation
    repeated = plan_of(
        table_of(x=numbers(*np.repeat(values, weights)), c=words(*np.repeat(letters, weights))),
        Roles(columns=("x",), categorical=("c",)),
    ).preparation
    # Levels that only rows without weight have are kept, so compare what weights can change.
    for one, other in zip(weighted.steps, repeated.steps, strict=True):
        if isinstance(one, CategoricalStep):
            assert one.fill == other.fill
        else:
            numbers_of = attrgetter("fill", "center", "scale")
            np.testing.assert_allclose(numbers_of(one), numbers_of(other), rtol=1e-9, atol=1e-9)


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 5)), min_size=1, max_size=20))
def test_weighted_median_is_the_median_of_repeats(rows):
    values, weights = (np.array(part) for part in zip((1.0, 1), *rows, strict=True))
    expected = np.median(np.repeat(values, weights))
    assert weighted_median(values, weights.astype(float)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((1, -2), "row 2 is -2"),
        ((NAN, 1), "row 1 is empty"),
        ((np.inf, 1), "inf"),
        ((0, 0), "is 0"),
    ],
)
def test_bad_weights_are_named(values, message):
    with pytest.raises(InputError, match=message):
        row_weights(table_of(w=numbers(*values)), "w")


def test_weights_must_be_numbers():
    with pytest.raises(InputError, match="'w' must hold numbers; row 2 is 'x'"):
        row_weights(table_of(w=words(None, "x")), "w")


@pytest.fixture
def fitted():
    table = table_of(x=numbers(1, NAN, 5, 9), c=words("b", "a", None, "b"))
    return plan_of(table, missing="impute").preparation


def test_json_round_trip(fitted):
    assert Preparation.from_json(json.loads(json.dumps(fitted.to_json()))) == fitted


def test_same_preparation_for_new_rows(fitted):
    # The order of the columns and of the levels is another one, and a column is new.
    new = table_of(extra=numbers(0, 0), c=words("b", "new"), x=numbers(5, NAN))
    prepared = fitted.apply(new)
    x = fitted.steps[0]
    np.testing.assert_allclose(prepared.matrix[:, 0], (5 - x.center) / x.scale)
    assert prepared.matrix[:, 1:].tolist() == [[0, 1], [0, 0]]
    assert len(prepared.notes) == 1
    assert "'new'" in prepared.notes[0]
    assert "1 row with" in prepared.notes[0]
    assert fitted.apply(new, missing="drop").rows.tolist() == [0]
    with pytest.raises(InputError, match="'x' has 1 missing value"):
        fitted.apply(new, missing="error")


def test_columns_of_another_kind_are_named(fitted):
    with pytest.raises(InputError, match="lacks column 'c'"):
        fitted.apply(table_of(x=numbers(1)))
    with pytest.raises(InputError, match="'x' must hold numbers; row 1 is 'abc'"):
        fitted.apply(table_of(x=words("abc"), c=words("a")))
    with pytest.raises(InputError, match="'c' holds dates"):
        fitted.apply(Table("t", {"x": numbers(1), "c": Unusable("dates", 0)}, 1))
    empty = fitted.apply(Table("t", {"x": Unusable("nothing", 1), "c": Unusable("nothing", 1)}, 1))
    assert empty.matrix[0, 1:].tolist() == [0, 1]


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.update(missing="guess"),
        lambda value: value.update(dtype="object"),
        lambda value: value.update(steps=[]),
        lambda value: value.update(more=1),
        lambda value: value["steps"].append(value["steps"][0]),
        lambda value: value["steps"][0].update(scale=0.0),
        lambda value: value["steps"][0].update(center="1"),
        lambda value: value["steps"][0].update(kind="lambda"),
        lambda value: value["steps"][0].update(name=3),
        lambda value: value["steps"][1].update(levels=["a", "a", "b"]),
        lambda value: value["steps"][1].update(levels=["x"]),
        lambda value: value["steps"][1].update(levels="ab"),
    ],
)
def test_changed_json_is_refused(fitted, change):
    value = fitted.to_json()
    change(value)
    with pytest.raises(ValueError, match="preparation"):
        Preparation.from_json(value)
