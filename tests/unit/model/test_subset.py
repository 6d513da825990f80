"""Conditions: their algebra agrees with a model that tries every row."""

from datetime import date, datetime, timedelta
from itertools import product
from operator import eq, ge, gt, le, lt

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.partitioning import NULL, Dimension, Partition
from airflow_provider_sparklineage.model.subset import (
    EVERYTHING,
    NOTHING,
    Binary,
    Compare,
    Comparison,
    Description,
    Evaluation,
    Locations,
    Operator,
    Partitions,
    conjunction,
    date_range,
    disjunction,
    terms,
    to_text,
)

EQUAL, GREATER, AT_LEAST, LESS, AT_MOST = Comparison
AND, OR = Operator


def partitions(*rows):
    """``partitions({"dt": "1"}, …)``: null is None."""
    return Partitions(frozenset(Partition.from_values(row.items()) for row in rows))


def days(*values):
    return partitions(*({"dt": value} for value in values))


def locations(*paths):
    return Locations(frozenset(paths))


X1, X2, Y1 = (Compare(field, EQUAL, value) for field, value in ("x1", "x2", "y1"))
DAY = days("2024-05-06")
WORDS = Description("amount LIKE '1%'")


# A model of data: rows whose fields a and b have numbers or null, that are at a path, and for which
# the words are true or not. The meaning of a condition is the set of rows that it selects.

FIELDS = ("a", "b")
PATHS = ("/l/a", "/l/a/b", "/l/c")
WORDS_OF_MODEL = Description("words")


def rows(values, words=(True,), paths=("/l/a",)):
    every = product((*values, None), (*values, None), words, paths)
    return [dict(zip((*FIELDS, "words", "path"), row, strict=True)) for row in every]


ALL_ROWS = rows(range(-1, 5), (True, False), PATHS)

COMPARE = {EQUAL: eq, GREATER: gt, AT_LEAST: ge, LESS: lt, AT_MOST: le}


def has(row, label, value):
    return row[label] == (None if value == NULL else float(value))


def meaning(condition, rows):
    """Positions of the rows that a condition selects."""

    def where(predicate):
        return {number for number, row in enumerate(rows) if predicate(row)}

    match condition:
        case Partitions(partitions):
            return where(
                lambda row: any(all(has(row, *pair) for pair in p.values) for p in partitions)
            )
        case Locations(locations):
            return where(
                lambda row: any(f"{row['path']}/".startswith(f"{path}/") for path in locations)
            )
        case Compare(field, comparison, value):
            compare = COMPARE[comparison]
            return where(lambda row: row[field] is not None and compare(row[field], float(value)))
        case Binary(Operator.AND, left, right):
            return meaning(left, rows) & meaning(right, rows)
        case Binary(Operator.OR, left, right):
            return meaning(left, rows) | meaning(right, rows)
        case Description(text):
            return where(lambda row: row[text])


VALUES = st.integers(0, 3).map(str)
# Labels in one order, as the partitions of a dataset have them.
PARTITIONS = st.frozensets(
    st.dictionaries(st.sampled_from(FIELDS), VALUES | st.none(), max_size=2).map(
        lambda row: Partition.from_values(sorted(row.items()))
    ),
    max_size=4,
).map(Partitions)
COMPARES = st.builds(Compare, st.sampled_from(FIELDS), st.sampled_from(Comparison), VALUES)
LOCATIONS = st.frozensets(st.sampled_from(PATHS), max_size=2).map(Locations)


def nested(leaves):
    return st.recursive(
        leaves,
        lambda inner: st.builds(Binary, st.sampled_from(Operator), inner, inner),
        max_leaves=7,
    )


CONDITIONS = nested(
    st.just(EVERYTHING) | st.just(NOTHING) | PARTITIONS | COMPARES | LOCATIONS
    | st.just(WORDS_OF_MODEL)
)  # fmt: skip
JOIN = pytest.mark.parametrize("join", [conjunction, disjunction])


def canonical(condition):
    return conjunction([condition])


@given(CONDITIONS)
def test_the_canonical_form_keeps_the_meaning(condition):
    assert meaning(canonical(condition), ALL_ROWS) == meaning(condition, ALL_ROWS)


@JOIN
@given(CONDITIONS)
def test_what_is_joined_is_in_canonical_form(join, condition):
    assert join([canonical(condition)]) == canonical(condition)
    assert join([condition]) == canonical(condition)


@JOIN
@given(a=CONDITIONS, b=CONDITIONS, c=CONDITIONS)
def test_joining_is_associative(join, a, b, c):
    assert join([join([a, b]), c]) == join([a, join([b, c])])


@JOIN
@given(a=CONDITIONS, b=CONDITIONS)
def test_joining_is_commutative(join, a, b):
    assert join([a, b]) == join([b, a])


@JOIN
@given(a=CONDITIONS)
def test_joining_is_idempotent(join, a):
    assert join([a, a]) == canonical(a)


@given(a=CONDITIONS, b=CONDITIONS)
def test_and_selects_what_both_select_and_or_what_either_does(a, b):
    first, second = meaning(a, ALL_ROWS), meaning(b, ALL_ROWS)
    assert meaning(disjunction([a, b]), ALL_ROWS) == first | second
    assert meaning(conjunction([a, b]), ALL_ROWS) == first & second


def dt(comparison, value):
    return Compare("dt", comparison, value)


MAY = conjunction([dt(AT_LEAST, "2024-05-01"), dt(AT_MOST, "2024-05-31")])
FROM_5 = Compare("x", GREATER, "5")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        pytest.param(Binary(OR, X1, Binary(AND, X1, Y1)), X1, id="OR absorbs"),
        pytest.param(Binary(AND, X1, Binary(OR, Y1, X1)), X1, id="AND absorbs"),
        pytest.param(Binary(OR, EVERYTHING, WORDS), EVERYTHING, id="everything or words"),
        pytest.param(Binary(AND, EVERYTHING, WORDS), WORDS, id="everything and words"),
        pytest.param(Binary(AND, NOTHING, WORDS), NOTHING, id="nothing and words"),
        pytest.param(Binary(OR, NOTHING, WORDS), WORDS, id="nothing or words"),
        pytest.param(
            Binary(AND, Y1, Binary(AND, X2, X1)), Binary(AND, Binary(AND, X1, X2), Y1), id="sorted"
        ),
    ],
)
def test_the_canonical_form(condition, expected):
    assert canonical(condition) == expected


def test_of_no_conditions_all_select_everything_and_any_selects_nothing():
    assert conjunction([]) == EVERYTHING
    assert disjunction([]) == NOTHING


def test_long_lists_become_shallow_trees():
    chain = Compare("x", EQUAL, "0")
    for number in range(1, 5_000):
        chain = Binary(OR, chain, Compare("x", EQUAL, str(number)))
    result = canonical(chain)
    assert len(set(terms(result))) == 5_000
    assert hash(result) == hash(canonical(result))


def run_of(label, values, **fixed):
    return frozenset(Partition.from_values([(label, v), *fixed.items()]) for v in values)


def bounds(label, first, last):
    return conjunction([Compare(label, AT_LEAST, first), Compare(label, AT_MOST, last)])


def every_day(first, last):
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    return [str(start + timedelta(days=n)) for n in range((end - start).days + 1)]


def hours(first, count, date_format):
    start = datetime.fromisoformat(first)
    return [(start + timedelta(hours=n)).strftime(date_format) for n in range(count)]


@pytest.mark.parametrize(
    ("values", "date_format", "first", "last"),
    [
        (every_day("2024-02-27", "2024-03-02"), "%Y-%m-%d", "2024-02-27", "2024-03-02"),
        (["20231231", "20240101"], "%Y%m%d", "20231231", "20240101"),
        (["2023-12", "2024-01"], "%Y-%m", "2023-12", "2024-01"),
        (["202312", "202401"], "%Y%m", "202312", "202401"),
        (["1969", "1970", "1971"], "%Y", "1969", "1971"),
        (hours("2024-05-06T22", 4, "%Y-%m-%d %H"), "%Y-%m-%d %H", "2024-05-06 22", "2024-05-07 01"),
        (hours("2024-05-06T22", 4, "%Y-%m-%d-%H"), "%Y-%m-%d-%H", "2024-05-06-22", "2024-05-07-01"),
        (["2024-05-06T23:59", "2024-05-07T00:00"], "%Y-%m-%dT%H:%M", None, None),
        (["1969-12-31", "1970-01-01"], "%Y-%m-%d", "1969-12-31", "1970-01-01"),
        (["0001-01-01", "0001-01-02"], "%Y-%m-%d", "0001-01-01", "0001-01-02"),
        (["9999-12-30", "9999-12-31"], "%Y-%m-%d", "9999-12-30", "9999-12-31"),
    ],
    ids=[
        *("leap day", "compact days", "months", "compact months", "years", "hours", "hours with -"),
        *("minutes", "epoch", "year 1", "year 9999"),
    ],
)
def test_a_gap_free_run_of_dates_is_a_range(values, date_format, first, last):
    expected = bounds("dt", first or values[0], last or values[-1])
    assert date_range(run_of("dt", values), date_format) == expected


def test_labels_of_one_value_are_compared_too():
    partitions = run_of("dt", ["2024-05-06", "2024-05-07"], region="a=b")
    expected = conjunction(
        [bounds("dt", "2024-05-06", "2024-05-07"), Compare("region", EQUAL, "a=b")]
    )
    assert date_range(partitions, "%Y-%m-%d") == expected


DAYS_WITH_GAP = run_of("dt", ["2024-05-06", "2024-05-08"])
TWO_DAYS = run_of("dt", ["2024-05-06", "2024-05-07"])


@pytest.mark.parametrize(
    ("partitions", "date_format"),
    [
        pytest.param(frozenset(), "%Y-%m-%d", id="none"),
        pytest.param(run_of("dt", ["2024-05-06"]), "%Y-%m-%d", id="one"),
        pytest.param(DAYS_WITH_GAP, "%Y-%m-%d", id="gap"),
        pytest.param(TWO_DAYS, "%Y%m%d", id="another format"),
        pytest.param(TWO_DAYS, "", id="no format"),
        pytest.param(TWO_DAYS, "%d/%m/%Y", id="does not sort as text"),
        pytest.param(TWO_DAYS, "%Y-%m-%d %j", id="unknown directive"),
        pytest.param(TWO_DAYS | run_of("dt", [None]), "%Y-%m-%d", id="null"),
        pytest.param(TWO_DAYS | run_of("dt", ["2024-5-8"]), "%Y-%m-%d", id="without zero"),
        pytest.param(TWO_DAYS | run_of("dt", ["2024-05-32"]), "%Y-%m-%d", id="no date"),
        pytest.param(run_of("dt", ["0000-12-31", "0001-01-01"]), "%Y-%m-%d", id="year 0"),
        pytest.param(run_of("dt", ["2024-05-06", "2024-05-07"], r=None), "%Y-%m-%d", id="null r"),
        pytest.param(TWO_DAYS | run_of("dt", ["2024-05-08"], r="eu"), "%Y-%m-%d", id="labels"),
        pytest.param(
            run_of("dt", ["2024-05-06"], r="eu") | run_of("dt", ["2024-05-07"], r="us"),
            "%Y-%m-%d",
            id="two labels vary",
        ),
    ],
)
def test_what_is_no_run_of_dates_is_no_range(partitions, date_format):
    assert date_range(partitions, date_format) is None


@given(st.dates(), st.integers(2, 400))
def test_a_range_contains_exactly_its_days(first, count):
    last = min(date.max, first + timedelta(days=min(count - 1, (date.max - first).days)))
    assume(last != first)
    found = date_range(run_of("dt", every_day(str(first), str(last))), "%Y-%m-%d")
    evaluation = Evaluation([Dimension.of_column("dt", type="date")])

    def selects(day):
        return evaluation.selects(found, Partition.from_values([("dt", str(day))]))

    assert all(map(selects, every_day(str(first), str(last))))
    if first > date.min:
        assert selects(first - timedelta(days=1)) is False
    if last < date.max:
        assert selects(last + timedelta(days=1)) is False


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        pytest.param(NOTHING, "no partition", id="nothing"),
        pytest.param(EVERYTHING, "everything", id="everything"),
        pytest.param(DAY, "dt=2024-05-06", id="one partition"),
        pytest.param(days("b", "a"), "dt=a, dt=b", id="two"),
        pytest.param(days(*"abcde"), "dt=a … dt=e (5 partitions)", id="many"),
        pytest.param(locations(), "no location", id="no location"),
        pytest.param(locations("/l/a"), "/l/a", id="location"),
        pytest.param(dt(EQUAL, "2024-05-06"), "dt=2024-05-06", id="equal"),
        pytest.param(dt(AT_LEAST, "2024-05-06"), "dt >= 2024-05-06", id="at least"),
        pytest.param(MAY, "2024-05-01 <= dt <= 2024-05-31", id="range"),
        pytest.param(
            Binary(AND, dt(LESS, "9"), dt(GREATER, "1")), "1 < dt < 9", id="open range, reversed"
        ),
        pytest.param(
            Binary(AND, dt(LESS, "9"), dt(LESS, "8")), "dt < 9 AND dt < 8", id="bounds of one side"
        ),
        pytest.param(
            Binary(AND, dt(LESS, "9"), Compare("x", GREATER, "1")), "dt < 9 AND x > 1", id="fields"
        ),
        pytest.param(WORDS, "amount LIKE '1%'", id="words"),
        pytest.param(
            Binary(AND, DAY, Binary(OR, WORDS, FROM_5)),
            "dt=2024-05-06 AND (amount LIKE '1%' OR x > 5)",
            id="nested",
        ),
        pytest.param(
            disjunction([Compare("x", EQUAL, str(n)) for n in range(10)]),
            "x=0 OR x=1 OR x=2 OR x=3 OR x=4 OR x=5 OR x=6 OR x=7 OR … (2 more)",
            id="long list",
        ),
    ],
)
def test_words_for_people(condition, expected):
    assert to_text(condition) == expected


def test_words_for_people_are_bounded():
    text = to_text(Description("x" * 1000))
    assert (len(text), text[-1]) == (300, "…")
