"""Expected against observed: every status, and what does not change it."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.expectations import Kind, Source
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.partitions.comparison import PartitionStatus, reconcile
from airflow_provider_sparklineage.lineage.partitions.expected import Expected
from airflow_provider_sparklineage.model.partitioning import NULL, Dimension, Partition

DT = (Dimension.of_column("dt"),)


def partitions(*values, label="dt"):
    return frozenset(Partition.from_values([(label, value)]) for value in values)


def expected(*values, kind=Kind.PATH, dimensions=DT, **more):
    return Expected(kind, partitions(*values), dimensions, **more)


def seen(*values, dimensions=DT):
    return Subset(dimensions, partitions(*values, label=dimensions[0].label))


def inferred(*dates):
    sources = tuple(Source(Kind.INFERRED, "a", "{{ ds }}", d, "dt") for d in dates)
    return Expected(Kind.INFERRED, sources=sources)


IDENTITY_ONLY = Expected(Kind.DECLARED)


def where(*predicates, partitions=None, dimensions=DT):
    choices = tuple((partitions, text) for text in predicates)
    return Expected(Kind.DECLARED, dimensions=dimensions, choices=choices)


WHERE = where("country = 'PL'")
MAY = where("dt >= '2024-05-01' AND dt <= '2024-05-31'")
LOCATION = Expected(Kind.PATH, locations=frozenset({"t/2024/05/06"}))
GLOB = expected("2024-05-*", is_glob=True)


@pytest.mark.parametrize(
    ("wanted", "found", "status"),
    [
        pytest.param(None, seen("1"), "undeclared", id="nothing expected"),
        pytest.param(None, None, "undeclared", id="nothing expected, nothing seen"),
        pytest.param(IDENTITY_ONLY, seen("1"), "undeclared", id="identity only"),
        pytest.param(WHERE, seen("1"), "unobserved", id="a predicate of the data"),
        pytest.param(WHERE, None, "unobserved", id="a predicate, nothing seen"),
        pytest.param(MAY, seen(), "unobserved", id="a predicate, no partitions"),
        pytest.param(MAY, seen("2024-05-06", "2024-05-07"), "matched", id="all of it fulfils"),
        pytest.param(MAY, seen("2024-05-06", "2024-06-01"), "unexpected", id="some does not"),
        pytest.param(
            where("dt = '2024-05-06'", "dt = '2024-05-07'"),
            seen("2024-05-07"), "matched", id="either predicate",
        ),
        pytest.param(
            where("region = 'eu'", partitions=partitions("1")),
            seen("1"), "matched", id="partitions next to a predicate of the data",
        ),
        pytest.param(
            where("dt = '2'", partitions=partitions("1")),
            seen("1"), "unexpected", id="partitions that the predicate forbids",
        ),
        pytest.param(
            where("amount > 0", partitions=partitions("1", "2")),
            seen("1"), "missing", id="partitions next to a predicate, one missing",
        ),
        pytest.param(
            Expected(
                Kind.DECLARED, None, DT, choices=((partitions("1"), ""), (None, "dt = '7'"))
            ),
            seen("1", "7"), "matched", id="partitions of one statement, predicate of another",
        ),
        pytest.param(LOCATION, seen("1"), "unobserved", id="nor is a location"),
        pytest.param(expected("1"), None, "unobserved", id="nothing seen"),
        pytest.param(expected("1"), seen("1"), "matched", id="path"),
        pytest.param(expected("1", kind=Kind.DECLARED), seen("1"), "matched", id="declared"),
        pytest.param(expected("1", "2"), seen("2", "1"), "matched", id="several"),
        pytest.param(expected(), seen(), "matched", id="none at all"),
        pytest.param(expected("1", "2"), seen("1"), "missing", id="one is missing"),
        pytest.param(expected("1"), seen(), "missing", id="no partitions"),
        pytest.param(expected("1"), seen("1", "2"), "unexpected", id="one too many"),
        pytest.param(expected("1"), seen("2"), "unexpected", id="another one"),
        pytest.param(expected(), seen("1"), "unexpected", id="none was expected"),
        pytest.param(expected(NULL), seen(None), "matched", id="null is a value"),
        pytest.param(expected("1"), seen(None), "unexpected", id="null is no day"),
        pytest.param(GLOB, seen("2024-05-06", "2024-05-07"), "matched", id="glob"),
        pytest.param(GLOB, seen("2024-06-01"), "unexpected", id="outside of the glob"),
        pytest.param(GLOB, seen(), "missing", id="glob of nothing"),
        pytest.param(inferred("2024-05-06"), seen("2024-05-06"), "matched", id="inferred"),
        pytest.param(inferred("2024-05-06"), seen("20240506"), "matched", id="another format"),
        pytest.param(
            inferred("2024-05-01", "2024-05-03"),
            seen("2024-05-01", "2024-05-02", "2024-05-03"),
            "matched",
            id="first and last inferred",
        ),
        pytest.param(
            inferred("2024-05-01"), seen("2024-05-01", "2024-05-02"), "undeclared", id="first only"
        ),
        pytest.param(inferred("2024-05-01"), seen("2024-05-02"), "undeclared", id="inferred never"),
        pytest.param(inferred("2024-05-01"), None, "undeclared", id="inferred, nothing seen"),
        pytest.param(
            expected("1"), seen("1", dimensions=(Dimension.of_column("region"),)), "unobserved",
            id="another dimension",
        ),
    ],
)  # fmt: skip
def test_every_status(wanted, found, status):
    assert reconcile(wanted, found).status == status


@pytest.mark.parametrize(
    ("one", "other", "dimension"),
    [
        pytest.param("20240506", "2024-05-06", Dimension.of_column("dt"), id="compact"),
        pytest.param(
            "06.05.2024", "2024-05-06", Dimension(("dt",), format="%d.%m.%Y"), id="format"
        ),
        pytest.param(
            "2024-05-06", "19849", Dimension.of_column("ts", "day", "dt"), id="Iceberg's days"
        ),
        pytest.param(
            "2024-05-06T03", "476379", Dimension.of_column("ts", "hour", "dt"), id="hours"
        ),
        pytest.param(
            "2024-05-06 03:15:00", "476379", Dimension.of_column("ts", "hour", "dt"), id="within"
        ),
        pytest.param("2024-05", "652", Dimension.of_column("ts", "month", "dt"), id="months"),
        pytest.param(
            "2024-05-06", "652", Dimension.of_column("ts", "month", "dt"), id="a day's month"
        ),
        pytest.param("2024", "54", Dimension.of_column("ts", "year", "dt"), id="years"),
        pytest.param("1970-01-01", "0", Dimension.of_column("ts", "day", "dt"), id="epoch"),
        pytest.param(
            "1969-12-31", "-1", Dimension.of_column("ts", "day", "dt"), id="before the epoch"
        ),
        pytest.param("05", "5", Dimension.of_column("dt"), id="Spark reads 05 as 5"),
        pytest.param("0100", "100", Dimension.of_column("dt", type="int"), id="integers"),
        pytest.param(
            "202405", "2024-05", Dimension.of_column("dt", type="string"), id="months of text"
        ),
        pytest.param(
            "2024-05-06T03:00:00",
            "2024-05-06 03:00:00",
            Dimension.of_column("dt", type="timestamp"),
            id="timestamps",
        ),
        pytest.param("00", "0", Dimension.of_column("dt"), id="zero"),
    ],
)
def test_values_are_compared_in_one_format(one, other, dimension):
    for a, b in ((one, other), (other, one)):
        wanted = Expected(Kind.PATH, partitions(a), (Dimension.of_column("dt"),))
        found = Subset((dimension,), partitions(b))
        if dimension.format and b == other:
            continue  # the format is that of the table
        assert reconcile(wanted, found).status == PartitionStatus.MATCHED


@pytest.mark.parametrize(
    ("glob", "value", "kind", "status"),
    [
        ("202405*", "20240506", "", "matched"),  # as the folder has it, not in the one format
        ("202405*", "20240506", "int", "matched"),
        ("202405*", "2024-05-06", "date", "matched"),  # a layout writes it so
        ("202405*", "20240606", "int", "unexpected"),
        ("0*", "5", "int", "matched"),  # Spark reads 05 as 5
        ("0*", "5", "string", "unexpected"),
        ("2024-05-{06,07}", "2024-05-07", "", "matched"),
        ("2024-05-{06,07}", "2024-05-08", "", "unexpected"),
        ("2024-0{5-0[1-6],6-*}", "2024-06-30", "", "matched"),
        ("2024-05-0[^6]", "2024-05-07", "", "matched"),
        ("2024-05-0[!6]", "2024-05-06", "", "unexpected"),
        ("a\\*b", "a*b", "string", "matched"),
        ("a,b*", "a,bc", "string", "matched"),
        ("{a", "{a", "string", "matched"),
        ("a}{b", "a}{b", "string", "matched"),
        ("[z-a]", "[z-a]", "string", "matched"),
        ("[]-]", "-", "string", "matched"),
    ],
)
def test_globs_are_read_as_hadoop_reads_them_and_match_any_format_of_a_folder(
    glob, value, kind, status
):
    dimensions = (Dimension.of_column("dt", type=kind),)
    wanted = expected(glob, is_glob=True)
    assert reconcile(wanted, seen(value, dimensions=dimensions)).status == status


@pytest.mark.parametrize(
    ("wanted", "here", "other", "status"),
    [
        pytest.param("56", "5", "6", "matched", id="one path each"),
        pytest.param("56", "56", "5", "matched", id="both here"),
        pytest.param("56", "5", "5", "missing", id="one on neither side"),
        pytest.param("56", "7", "5", "unexpected", id="another one instead of it"),
        pytest.param("56", "57", "6", "unexpected", id="another one, too"),
        pytest.param("6", "5", "6", "undeclared", id="the path is of the other side"),
        pytest.param("6", "5", "7", "unexpected", id="the path is of neither"),
        pytest.param("56", "", "56", "undeclared", id="nothing here, all there"),
        pytest.param("56", "5", None, "unobserved", id="may be there"),
        pytest.param("56", "56", None, "matched", id="all here"),
        pytest.param("5", "6", None, "unobserved", id="may be of the other side"),
        pytest.param("5", "56", None, "unexpected", id="another one, too, nothing known of there"),
    ],
)
def test_a_path_has_no_side(wanted, here, other, status):
    other_side = None if other is None else seen(*other)
    check = reconcile(expected(*wanted), seen(*here), is_on_both_sides=True, other=other_side)
    assert check.status == status
    if status == "missing":
        assert check.missing == partitions("6")


def test_a_declaration_has_a_side():
    wanted = expected("5", "6", kind=Kind.DECLARED)
    assert reconcile(wanted, seen("5"), is_on_both_sides=True, other=seen("6")).status == "missing"


def test_a_glob_next_to_thousands_of_plain_values_costs_no_more_than_they_do():
    days = [str(day) for day in range(5_000)]
    check = reconcile(expected(*days, "x*", is_glob=True), seen(*days, "xy"))
    assert check.status == "matched"


def test_a_day_next_to_a_glob_covers_its_hours():
    hours = (Dimension.of_column("ts", "hour", "ts_hour", "int"), Dimension.of_column("region"))
    wanted = Partition.from_values([("ts", "2024-05-06"), ("region", "*")])
    accessed = Partition.from_values([("ts_hour", "476379"), ("region", "eu")])
    check = reconcile(
        Expected(Kind.PATH, frozenset({wanted}), is_glob=True), Subset(hours, frozenset({accessed}))
    )
    assert check.status == "matched"


@pytest.mark.parametrize(("day", "status"), [("6", "matched"), ("7", "undeclared")])
def test_an_inferred_date_matches_columns_that_are_a_date_together(day, status):
    values = [("year", "2024"), ("month", "5"), ("day", day)]
    dimensions = tuple(Dimension.of_column(label, type="integer") for label, _ in values)
    sources = (Source(Kind.INFERRED, "a", "{{ ds }}", "2024-05-06", "year/month/day"),)
    wanted = Expected(Kind.INFERRED, sources=sources)
    assert (
        reconcile(wanted, Subset(dimensions, frozenset({Partition.from_values(values)}))).status
        == status
    )


@pytest.mark.parametrize(
    ("one", "other"), [("2024-05-06", "2024-05-07"), ("a", "A"), ("100", "0100")]
)
def test_different_values_stay_different(one, other):
    assert reconcile(expected(one), seen(other)).status == PartitionStatus.UNEXPECTED


@pytest.mark.parametrize(
    ("kind", "status"),
    [("string", "unexpected"), ("int", "matched"), ("", "matched"), ("varchar(2)", "unexpected")],
)
def test_zeros_distinguish_texts_and_not_numbers(kind, status):
    dimensions = (Dimension.of_column("dt", type=kind),)
    assert reconcile(expected("05"), seen("5", dimensions=dimensions)).status == status


@pytest.mark.parametrize(
    ("wanted", "found", "status"),
    [
        ("2024-05-06T00:00:00+00:00", "2024-05-06 00:00:00", "unobserved"),
        ("2024-05-06T02:00:00+02:00", "2024-05-06T00:00:00Z", "matched"),
        ("2024-05-06T00:00:00", "2024-05-06 00:00:00", "matched"),
        # Clocks are put back: one local hour, two times.
        ("2024-10-27T02:30:00+02:00", "2024-10-27T02:30:00+01:00", "unexpected"),
    ],
)
def test_a_time_with_a_zone_is_compared_with_its_like_only(wanted, found, status):
    dimensions = (Dimension.of_column("dt", type="timestamp"),)
    assert reconcile(expected(wanted), seen(found, dimensions=dimensions)).status == status


def test_texts_of_times_are_two_with_a_zone_and_without():
    dimensions = (Dimension.of_column("dt", type="string"),)
    wanted = expected("2024-05-06T00:00:00+00:00")
    assert reconcile(wanted, seen("2024-05-06T00:00:00", dimensions=dimensions)).status == (
        PartitionStatus.UNEXPECTED
    )


def test_a_day_covers_the_hours_of_its_column():
    hours = (Dimension.of_column("ts", "hour", "ts_hour", "int"),)
    wanted = Expected(
        Kind.DECLARED, partitions("2024-05-06", label="ts"), (Dimension.of_column("ts"),)
    )
    assert reconcile(wanted, seen("476376", "476379", dimensions=hours)).status == "matched"
    assert reconcile(wanted, seen("476379", "476400", dimensions=hours)).status == "unexpected"
    assert reconcile(wanted, seen(dimensions=hours)).status == "missing"


def test_labels_are_those_of_spark_whatever_their_case():
    wanted = Expected(Kind.DECLARED, partitions("1", label="DT"), (Dimension.of_column("DT"),))
    assert reconcile(wanted, seen("1")).status == PartitionStatus.MATCHED


def test_a_partial_partition_covers_all_that_have_its_values():
    both = frozenset(Partition.from_values([("dt", "1"), ("region", r)]) for r in ("a", "b"))
    found = Subset((Dimension.of_column("dt"), Dimension.of_column("region")), both)
    assert reconcile(expected("1"), found).status == PartitionStatus.MATCHED
    assert reconcile(expected("2"), found).unexpected == both


def test_mixed_cases_name_both():
    check = reconcile(expected("1", "2"), seen("2", "3"))
    assert check.status == PartitionStatus.UNEXPECTED
    assert (check.missing, check.unexpected) == (partitions("1"), partitions("3"))


@given(
    st.frozensets(st.integers(1, 12), max_size=6),
    st.frozensets(st.integers(1, 12), max_size=6),
    st.randoms(use_true_random=False),
)
def test_representation_does_not_change_the_status(wanted, found, rng: random.Random):
    def in_any_format(numbers):
        forms = ("2024-05-{:02}", "202405{:02}")
        return [rng.choice(forms).format(n) for n in numbers for _ in range(2)]

    plain = reconcile(
        expected(*(f"2024-05-{n:02}" for n in wanted)), seen(*(f"2024-05-{n:02}" for n in found))
    )
    assert (
        reconcile(expected(*in_any_format(wanted)), seen(*in_any_format(found))).status
        == plain.status
    )
    truth = (
        PartitionStatus.UNEXPECTED
        if found - wanted
        else PartitionStatus.MISSING
        if wanted - found
        else "matched"
    )
    assert plain.status == truth


DAY = Dimension.of_column("ts", "day", "day")
HOUR = Dimension.of_column("ts", "hour", "hour")
REGION = Dimension.of_column("region", type="string")
# Values of each label, with what they are in canonical form.
FORMS = {
    "day": {"2024-05-06": "2024-05-06", "20240507": "2024-05-07", "19849": "2024-05-06"},
    "hour": {"2024-05-06T03": "2024-05-06T03", "476380": "2024-05-06T04", NULL: NULL},
    "region": {"eu": "eu", "05": "05", "5": "5", NULL: NULL},
}


def rows(labels, *, shuffled=False, days_of_hours=False):
    """Make partitions with some of the labels each, and as many as not the same labels."""

    def values(label):
        return st.sampled_from([*FORMS[label], *(["2024-05-06"] if days_of_hours else ())])

    def row(some):
        return st.tuples(*(st.tuples(st.just(label), values(label)) for label in some))

    some = st.permutations(labels) if shuffled else st.just(labels)
    parts = some.flatmap(lambda order: st.integers(0, len(order)).map(lambda n: order[:n]))
    return st.frozensets(parts.flatmap(row).map(Partition), max_size=6)


def covers(wanted, found):
    """Whether each value that is wanted is the one that was found, or begins it."""
    accessed = found.as_dict()
    for label, value in wanted.values:
        canonical = FORMS[label].get(value, value)
        seen = FORMS[label].get(accessed[label]) if label in accessed else None
        is_of = seen is not None and label == "hour" and seen[: len(canonical)] == canonical
        if seen != canonical and not is_of:
            return False
    return True


@given(
    rows(("day", "region"), shuffled=True) | rows(("hour", "region"), days_of_hours=True),
    rows(("day", "region", "hour")) | rows(("hour", "day"), shuffled=True),
)
def test_a_partition_is_compared_with_each_other_one(wanted, found):
    check = reconcile(
        Expected(Kind.DECLARED, wanted, (DAY, HOUR, REGION)), Subset((DAY, HOUR, REGION), found)
    )
    alike = {p: {(k, FORMS[k].get(v, v)) for k, v in p.values} for p in wanted}
    missing = {p for p in wanted if not any(covers(p, f) for f in found)}
    # Of those that say the same, one is named.
    assert check.missing <= missing
    assert {*map(frozenset, map(alike.get, check.missing))} == {
        *map(frozenset, map(alike.get, missing))
    }
    assert check.unexpected == {f for f in found if not any(covers(p, f) for p in wanted)}
