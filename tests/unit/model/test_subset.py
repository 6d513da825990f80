"""Conditions: their algebra and containment agree with a model that tries every row."""

import time
from datetime import date, datetime, timedelta
from itertools import product
from operator import eq, ge, gt, le, lt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.partitioning import NULL, Partition
from airflow_provider_sparklineage.model.subset import (
    EVERYTHING,
    NOTHING,
    Binary,
    Compare,
    Comparison,
    Description,
    Locations,
    Operator,
    Partitions,
    conjunction,
    containment,
    contains,
    date_range,
    disjunction,
    folded,
    intersection,
    terms,
    to_text,
    union,
)

EQUAL, GREATER, AT_LEAST, LESS, AT_MOST = Comparison
AND, OR = Operator


def partitions(*rows):
    """``partitions({"dt": "1"}, …)``: null is None."""
    return Partitions(frozenset(Partition.of(row.items()) for row in rows))


def days(*values):
    return partitions(*({"dt": value} for value in values))


def locations(*paths):
    return Locations(frozenset(paths))


X1, X2, Y1 = (Compare(field, EQUAL, value) for field, value in ("x1", "x2", "y1"))
DAY, OTHER_DAY, NULL_DAY = days("2024-05-06"), days("2024-05-07"), days(None)
EU = partitions({"region": "eu"})
DAY_IN_EU = partitions({"dt": "2024-05-06", "region": "eu"})
WORDS = Description("amount LIKE '1%'")


# A model of data: rows whose fields a and b have numbers or null, that lie at a path, and for which
# what the words say holds or not. The meaning of a condition is the set of rows that it selects.

FIELDS = ("a", "b")
PATHS = ("/l/a", "/l/a/b", "/l/c")
WORDS_OF_MODEL = Description("words")


def rows(values, words=(True,), paths=("/l/a",)):
    every = product((*values, None), (*values, None), words, paths)
    return [dict(zip((*FIELDS, "words", "path"), row, strict=True)) for row in every]


ALL_ROWS = rows(range(-1, 5), (True, False), PATHS)
WHOLE_ROWS = rows(range(-1, 5))
HALF_ROWS = rows([n / 2 for n in range(-2, 10)])

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
        lambda row: Partition.of(sorted(row.items()))
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


DECIDABLE = nested(PARTITIONS | COMPARES)
CONDITIONS = nested(PARTITIONS | COMPARES | LOCATIONS | st.just(WORDS_OF_MODEL))


@given(CONDITIONS)
def test_folding_keeps_the_meaning(condition):
    assert meaning(folded(condition), ALL_ROWS) == meaning(condition, ALL_ROWS)


@given(CONDITIONS)
def test_folding_is_idempotent(condition):
    assert folded(folded(condition)) == folded(condition)


@pytest.mark.parametrize("combine", [union, intersection])
@given(a=CONDITIONS, b=CONDITIONS, c=CONDITIONS)
def test_union_and_intersection_are_associative(combine, a, b, c):
    assert combine(combine(a, b), c) == combine(a, combine(b, c))


@pytest.mark.parametrize("combine", [union, intersection])
@given(a=CONDITIONS, b=CONDITIONS)
def test_union_and_intersection_are_commutative(combine, a, b):
    assert combine(a, b) == combine(b, a)


@pytest.mark.parametrize("combine", [union, intersection])
@given(a=CONDITIONS)
def test_union_and_intersection_are_idempotent(combine, a):
    assert combine(a, a) == folded(a)


@given(a=CONDITIONS, b=CONDITIONS)
def test_union_and_intersection_mean_what_they_say(a, b):
    first, second = meaning(a, ALL_ROWS), meaning(b, ALL_ROWS)
    assert meaning(union(a, b), ALL_ROWS) == first | second
    assert meaning(intersection(a, b), ALL_ROWS) == first & second


@pytest.mark.parametrize("rows", [WHOLE_ROWS, HALF_ROWS], ids=["whole", "halves"])
@settings(max_examples=30)
@given(outer=DECIDABLE, inner=DECIDABLE)
def test_containment_never_contradicts_the_model(rows, outer, inner):
    is_inside = meaning(inner, rows) <= meaning(outer, rows)
    assert contains(outer, inner) in (is_inside, None)


@given(outer=CONDITIONS, inner=CONDITIONS)
def test_containment_never_contradicts_the_model_with_words_and_paths(outer, inner):
    if contains(outer, inner):
        assert meaning(inner, ALL_ROWS) <= meaning(outer, ALL_ROWS)


@given(outer=PARTITIONS, inner=PARTITIONS)
def test_partitions_in_partitions_are_always_decided(outer, inner):
    is_inside = meaning(inner, WHOLE_ROWS) <= meaning(outer, WHOLE_ROWS)
    assert contains(outer, inner) is is_inside


def listed(values):
    return disjunction([Compare("id", EQUAL, str(value)) for value in values])


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        pytest.param(range(1000), range(1000), True, id="the same"),
        pytest.param(range(1001), range(1000), True, id="fewer"),
        pytest.param(range(999), range(1000), False, id="more"),
        pytest.param(range(1000), [f"{n}.0" for n in range(1000)], None, id="spelled otherwise"),
    ],
)
def test_long_lists_are_compared_without_trying_each_with_each(monkeypatch, outer, inner, expected):
    monkeypatch.setattr(containment, "_COMPARED", 5_000)  # as much less as there are fewer values
    one, other = listed(outer), listed(inner)
    started = time.process_time()
    assert contains(one, other) is expected
    # Linear takes some hundredths of a second; a million comparisons take several.
    assert time.process_time() - started < 1


def test_any_number_of_values_is_tried_with_a_short_condition():
    assert contains(Compare("id", AT_LEAST, "0"), listed(range(2000))) is True


def test_a_null_is_in_no_list_even_of_its_own_name():
    assert contains(disjunction([Compare("dt", EQUAL, NULL), X1]), NULL_DAY) is not True


@given(DECIDABLE)
def test_a_condition_without_words_contains_itself(condition):
    assert contains(condition, condition) is True


@given(a=DECIDABLE, b=DECIDABLE)
def test_a_union_contains_its_parts_and_an_intersection_lies_in_them(a, b):
    assert contains(union(a, b), a) is True
    assert contains(a, intersection(a, b)) is True


def dt(comparison, value):
    return Compare("dt", comparison, value)


MAY = conjunction([dt(AT_LEAST, "2024-05-01"), dt(AT_MOST, "2024-05-31")])
FROM_5 = Compare("x", GREATER, "5")


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        pytest.param(DAY, DAY_IN_EU, True, id="fewer dimensions hold those that extend them"),
        pytest.param(DAY_IN_EU, DAY, False, id="but not the reverse"),
        pytest.param(EVERYTHING, DAY, True, id="everything"),
        pytest.param(DAY, EVERYTHING, False, id="a day is not everything"),
        pytest.param(NOTHING, NOTHING, True, id="nothing in nothing"),
        pytest.param(NOTHING, DAY, False, id="a day is not nothing"),
        pytest.param(WORDS, NOTHING, True, id="nothing in words"),
        pytest.param(WORDS, locations(), True, id="no location in words"),
        pytest.param(EVERYTHING, WORDS, True, id="words in everything"),
        pytest.param(WORDS, WORDS, None, id="words in the same words"),
        pytest.param(disjunction([DAY, OTHER_DAY]), DAY_IN_EU, True, id="one of the days, in eu"),
        pytest.param(NULL_DAY, NULL_DAY, True, id="null in null"),
        pytest.param(MAY, NULL_DAY, False, id="null compares with nothing"),
        pytest.param(MAY, DAY, True, id="a day in its month"),
        pytest.param(MAY, days("2024-05-06", "2024-06-01"), False, id="a day of the next month"),
        pytest.param(MAY, DAY_IN_EU, True, id="a day in its month, in eu"),
        pytest.param(MAY, EU, False, id="eu has other months"),
        pytest.param(MAY, days("20240506"), None, id="dates of two formats"),
        pytest.param(MAY, days("2024-05"), None, id="a month may be its first day"),
        pytest.param(DAY, dt(EQUAL, "2024-05-06"), True, id="equal to the only day"),
        pytest.param(DAY, dt(EQUAL, "2024-05-06 00:00:00"), None, id="its midnight may be the day"),
        pytest.param(DAY, dt(EQUAL, "2024-05-07"), False, id="equal to another day"),
        pytest.param(
            DAY_IN_EU,
            conjunction([dt(EQUAL, "2024-05-06"), Compare("region", EQUAL, "eu")]),
            True,
            id="equal to both of two dimensions",
        ),
        pytest.param(days("2024-05-01"), MAY, False, id="a month is more than its first day"),
        pytest.param(FROM_5, Compare("x", GREATER, "10"), True, id="numbers, not text"),
        pytest.param(FROM_5, Compare("x", AT_LEAST, "5.0"), False, id="the bound itself"),
        pytest.param(Compare("x", AT_LEAST, "6"), FROM_5, None, id="no whole number between"),
        pytest.param(Compare("x", GREATER, "m"), Compare("x", GREATER, "p"), None, id="texts"),
        pytest.param(Compare("x", AT_LEAST, "m"), Compare("x", GREATER, "m"), True, id="one text"),
        pytest.param(FROM_5, Compare("y", GREATER, "10"), False, id="another field"),
        pytest.param(Compare("x", EQUAL, "1"), Compare("x", EQUAL, "01"), None, id="one number"),
        pytest.param(Compare("x", EQUAL, "EU"), Compare("x", EQUAL, "eu "), None, id="one text?"),
        pytest.param(Compare("x", EQUAL, "eu"), Compare("x", EQUAL, "us"), False, id="two texts"),
        pytest.param(
            disjunction([Compare("f", EQUAL, "true"), Compare("f", EQUAL, "false")]),
            EVERYTHING,
            None,
            id="a flag has no third value",
        ),
        pytest.param(DAY, conjunction([DAY, WORDS]), True, id="words can only narrow"),
        pytest.param(conjunction([DAY, WORDS]), DAY, None, id="words may narrow or not"),
        pytest.param(conjunction([DAY, WORDS]), OTHER_DAY, False, id="whatever the words say"),
        pytest.param(disjunction([DAY, WORDS]), OTHER_DAY, None, id="words may widen"),
        pytest.param(locations("/l/a"), locations("/l/a/b/", "/l/a"), True, id="paths below"),
        pytest.param(locations("/l/a"), locations("/l/ab"), False, id="paths beside"),
        pytest.param(locations("/l/a/b"), locations("/l/a"), None, id="it may all lie below"),
        pytest.param(locations("/"), locations("/l"), True, id="root"),
        pytest.param(DAY, locations("/l/dt=2024-05-06"), None, id="paths are no partitions"),
        pytest.param(
            locations("/l/a"), conjunction([locations("/l/a/b"), X1]), True, id="paths, narrowed"
        ),
        pytest.param(dt(AT_LEAST, "0001-01-01"), dt(AT_LEAST, "0001-01-01"), True, id="year 1"),
        pytest.param(dt(AT_MOST, "9999-12-31"), dt(LESS, "9999-12-31"), True, id="year 9999"),
    ],
)
def test_containment(outer, inner, expected):
    assert contains(outer, inner) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        pytest.param(locations(), NOTHING, id="no locations select nothing"),
        pytest.param(Binary(OR, DAY, OTHER_DAY), days("2024-05-06", "2024-05-07"), id="days"),
        pytest.param(Binary(AND, DAY, OTHER_DAY), NOTHING, id="two days at once"),
        pytest.param(Binary(AND, DAY, EU), DAY_IN_EU, id="two dimensions at once"),
        pytest.param(Binary(OR, DAY, DAY_IN_EU), DAY, id="a day holds its regions"),
        pytest.param(Binary(OR, X1, Binary(AND, X1, Y1)), X1, id="OR absorbs"),
        pytest.param(Binary(AND, X1, Binary(OR, Y1, X1)), X1, id="AND absorbs"),
        pytest.param(
            Binary(OR, Binary(AND, DAY_IN_EU, X1), DAY), DAY, id="partitions absorb by meaning"
        ),
        pytest.param(Binary(OR, EVERYTHING, WORDS), EVERYTHING, id="everything or words"),
        pytest.param(Binary(AND, EVERYTHING, WORDS), WORDS, id="everything and words"),
        pytest.param(Binary(AND, NOTHING, WORDS), NOTHING, id="nothing and words"),
        pytest.param(Binary(OR, NOTHING, WORDS), WORDS, id="nothing or words"),
        pytest.param(
            Binary(AND, Y1, Binary(AND, X2, X1)), Binary(AND, Binary(AND, X1, X2), Y1), id="sorted"
        ),
        pytest.param(
            Binary(OR, locations("/l/a/"), locations("/l/a/b", "/l/c")),
            locations("/l/a", "/l/c"),
            id="paths below others go",
        ),
        pytest.param(
            Binary(AND, locations("/l"), locations("/l/a", "/m")), locations("/l/a"), id="deeper"
        ),
        pytest.param(Binary(AND, locations("/l"), locations("/m")), NOTHING, id="no common path"),
        pytest.param(
            partitions({"a": "1", "b": "2"}, {"b": "2", "a": "1"}),
            partitions({"a": "1", "b": "2"}),
            id="one partition in two orders",
        ),
        pytest.param(
            partitions({"p": "a=b/%2F"}, {"p": "Zürich"}, {"p": None}),
            partitions({"p": "a=b/%2F"}, {"p": "Zürich"}, {"p": None}),
            id="values are as data have them",
        ),
    ],
)
def test_folding(condition, expected):
    assert folded(condition) == expected


def test_of_no_conditions_all_select_everything_and_any_selects_nothing():
    assert conjunction([]) == EVERYTHING
    assert disjunction([]) == NOTHING


def test_long_lists_fold_to_shallow_trees():
    chain = Compare("x", EQUAL, "0")
    for number in range(1, 5_000):
        chain = Binary(OR, chain, Compare("x", EQUAL, str(number)))
    result = folded(chain)
    assert len(set(terms(result))) == 5_000
    assert hash(result) == hash(folded(result))


def run_of(label, values, **fixed):
    return frozenset(Partition.of([(label, v), *fixed.items()]) for v in values)


def bounds(label, first, last):
    return conjunction([Compare(label, AT_LEAST, first), Compare(label, AT_MOST, last)])


def every_day(first, last):
    start, end = date.fromisoformat(first), date.fromisoformat(last)
    return [str(start + timedelta(days=n)) for n in range((end - start).days + 1)]


def hours(first, count, spelling):
    start = datetime.fromisoformat(first)
    return [(start + timedelta(hours=n)).strftime(spelling) for n in range(count)]


@pytest.mark.parametrize(
    ("values", "spelling", "first", "last"),
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
def test_a_gap_free_run_of_dates_is_a_range(values, spelling, first, last):
    expected = bounds("dt", first or values[0], last or values[-1])
    assert date_range(run_of("dt", values), spelling) == expected


def test_labels_of_one_value_are_compared_too():
    partitions = run_of("dt", ["2024-05-06", "2024-05-07"], region="a=b")
    expected = conjunction(
        [bounds("dt", "2024-05-06", "2024-05-07"), Compare("region", EQUAL, "a=b")]
    )
    assert date_range(partitions, "%Y-%m-%d") == expected


DAYS_WITH_GAP = run_of("dt", ["2024-05-06", "2024-05-08"])
TWO_DAYS = run_of("dt", ["2024-05-06", "2024-05-07"])


@pytest.mark.parametrize(
    ("partitions", "spelling"),
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
def test_what_is_no_run_of_dates_is_no_range(partitions, spelling):
    assert date_range(partitions, spelling) is None


@given(st.dates(), st.integers(2, 400))
def test_a_range_contains_exactly_its_days(first, count):
    last = min(date.max, first + timedelta(days=min(count - 1, (date.max - first).days)))
    if last == first:
        return
    found = date_range(run_of("dt", every_day(str(first), str(last))), "%Y-%m-%d")
    assert contains(found, days(*every_day(str(first), str(last)))) is True
    if first > date.min:
        assert contains(found, days(str(first - timedelta(days=1)))) is False
    if last < date.max:
        assert contains(found, days(str(last + timedelta(days=1)))) is False


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
