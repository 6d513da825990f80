"""Observed subsets: united over the application, without what it had put there itself."""

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import (
    NOT_COUNTED,
    Access,
    Figures,
    Grade,
    Scope,
)
from airflow_provider_sparklineage.lineage.observed.accesses import (
    ObservedAccesses,
    UnknownPartitionsError,
)
from airflow_provider_sparklineage.model.allowance import SpentError
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.subset import to_text

T = DatasetName("file", "/lake/t")
ZERO = datetime(2024, 5, 6, tzinfo=UTC)
DT = (Dimension.of_column("dt"),)
UNPARTITIONED = Partition()


def at(second):
    return ZERO + timedelta(seconds=second)


def days(*names):
    return frozenset(Partition.from_values([("dt", n)]) for n in names)


def access(side, second, scope, dimensions=DT, **more):
    span = at(second), at(second + 1)
    return Access(T, side, *span, scope, grade=Grade.OBSERVED, dimensions=dimensions, **more)


def read(second, partitions, dimensions=DT, *, full=False, **more):
    return access(Side.READ, second, Scope(full, partitions), dimensions, **more)


def write(second, partitions, mode="dynamic", **more):
    owned = more.pop("owned", partitions if mode != "append" else None)
    owned = Scope(mode in ("whole", "create"), owned)
    return access(Side.WRITE, second, Scope(partitions=partitions), owned=owned, **more)


def observed(reads=(), writes=()):
    return ObservedAccesses(reads, writes)


def during(accesses, started, ended):
    """Give the read of an action, with the queries that were observed during it."""
    queries = accesses.during(Side.READ, started, ended)
    return Access(T, Side.READ, started, ended, queries=queries)


def is_internal(accesses, started, ended):
    return accesses.is_internal(during(accesses, started, ended))


def partitions(subset):
    return subset.partitions if subset and not subset.full else None


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        pytest.param([], None, id="nothing observed"),
        pytest.param([read(0, days("1")), read(5, days("2"))], days("1", "2"), id="united"),
        pytest.param([read(0, days())], days(), id="empty selection"),
        pytest.param([read(0, days("1")), read(5, days("1", "2"), full=True)], None, id="full"),
        pytest.param([read(0, frozenset({UNPARTITIONED}), ())], None, id="unpartitioned"),
    ],
)
def test_reads_are_united(reads, expected):
    assert partitions(observed(reads).subset(Side.READ)) == expected


def test_one_unknown_read_makes_the_input_unknown():
    with pytest.raises(UnknownPartitionsError, match="too many"):
        observed([read(0, days("1")), read(5, None, why_unknown="too many")]).subset(Side.READ)


BOTH = days("1") | {UNPARTITIONED}


@pytest.mark.parametrize(
    ("side", "accesses"),
    [
        pytest.param(Side.READ, [read(0, BOTH)], id="in one read"),
        pytest.param(
            Side.READ, [read(0, days("1")), read(5, frozenset({UNPARTITIONED}), ())], id="two reads"
        ),
        pytest.param(
            Side.READ,
            [read(0, days("1")), read(5, frozenset({UNPARTITIONED}), (), planned=True)],
            id="one read may have ended early",
        ),
        pytest.param(
            Side.WRITE,
            [write(0, days("1")), write(5, frozenset({UNPARTITIONED}), dimensions=())],
            id="two writes",
        ),
    ],
)
def test_partitions_are_unknown_if_some_of_the_data_is_in_none(side, accesses):
    found = observed(accesses) if side is Side.READ else observed(writes=accesses)
    with pytest.raises(UnknownPartitionsError, match="some in none"):
        found.subset(side)


def test_a_full_read_of_data_in_and_outside_of_partitions_is_of_all():
    assert observed([read(0, BOTH, full=True)]).subset(Side.READ) is None


def test_own_partitions_do_not_hide_that_all_was_read_before_there_were_any():
    reads = [read(0, frozenset({UNPARTITIONED}), (), full=True), read(9, days("1"))]
    assert observed(reads, [write(2, days("1"), "whole")]).subset(Side.READ) is None


def test_one_unknown_write_makes_the_output_unknown():
    with pytest.raises(UnknownPartitionsError):
        observed(writes=[write(0, days("1")), write(5, None)]).subset(Side.WRITE)


def planned_read(second, partitions, **more):
    return read(second, partitions, planned=True, **more)


@pytest.mark.parametrize(
    ("reads", "planned", "full"),
    [
        pytest.param([planned_read(0, days("1", "2"), full=True)], {"1", "2"}, False, id="alone"),
        pytest.param(
            [planned_read(0, days("1", "2")), read(1, days("2"))], {"1"}, False, id="some were read"
        ),
        pytest.param(
            [read(0, days("1", "2"), full=True), planned_read(1, days("1", "2"), full=True)],
            set(),
            True,
            id="all were read",
        ),
    ],
)
def test_partitions_are_planned_unless_another_read_opened_them(reads, planned, full):
    subset = observed(reads).subset(Side.READ)
    assert subset.partitions == days("1", "2")
    assert (subset.planned, subset.full) == (days(*planned), full)


@pytest.mark.parametrize(
    ("reads", "is_empty"),
    [
        pytest.param([read(0, frozenset())], True, id="none was opened"),
        pytest.param(
            [read(0, frozenset()), read(1, frozenset({UNPARTITIONED}))], False, id="one was"
        ),
        pytest.param([read(0, None)], False, id="not known"),
    ],
)
def test_accesses_without_partitions_are_empty(reads, is_empty):
    assert observed(reads).is_empty(Side.READ) == is_empty


def test_writes_are_united_whatever_their_mode():
    writes = [write(0, days("1"), "whole"), write(5, days("2"), "append")]
    assert partitions(observed(writes=writes).subset(Side.WRITE)) == days("1", "2")


@pytest.mark.parametrize(
    ("writes", "found", "internal", "outside"),
    [
        pytest.param([write(0, days("1", "2"))], days("1"), True, days(), id="contained"),
        pytest.param([write(0, days("1"))], days("1", "2"), False, days("2"), id="not contained"),
        pytest.param([write(9, days("1"))], days("1"), False, days("1"), id="written later"),
        pytest.param(
            [write(0, days("1"), "append")], days("1"), False, days("1"), id="append to old data"
        ),
        pytest.param(
            [write(0, days("1"), "append", owned=days("1"))], days("1"), True, days(), id="fresh"
        ),
        pytest.param(
            [write(0, days("1"), "whole"), write(2, days("2"), "append")],
            days("1", "2"),
            True,
            days(),
            id="append after whole",
        ),
        pytest.param(
            [write(0, days("1")), write(2, days("2"), "whole")],
            days("1", "2"),
            False,
            days("1"),
            id="whole removes what was there",
        ),
        pytest.param([write(0, None)], days("1"), None, days("1"), id="unknown write"),
        pytest.param([write(0, days("1"))], days(), True, days(), id="nothing read back"),
        pytest.param(
            [write(0, days("1"), "rows", owned=days())], days("1"), False, days("1"), id="rows"
        ),
    ],
)
def test_a_read_is_internal_if_its_partitions_were_written_before(writes, found, internal, outside):
    accesses = observed([read(5, found)], writes)
    assert is_internal(accesses, at(5), at(6)) is internal
    assert partitions(accesses.subset(Side.READ)) == outside


def test_a_dataset_without_partitions_is_internal_after_a_full_overwrite_only():
    everything = frozenset({UNPARTITIONED})
    for mode, internal in (("whole", True), ("create", True), ("append", False)):
        accesses = observed([read(5, everything, ())], [write(0, everything, mode, dimensions=())])
        assert is_internal(accesses, at(5), at(6)) is internal


def test_a_full_read_over_own_partitions_is_what_came_from_outside():
    accesses = observed([read(5, days("1", "2"), full=True)], [write(0, days("2"))])
    assert partitions(accesses.subset(Side.READ)) == days("1")


def test_without_an_observed_write_no_read_is_known_to_be_internal():
    assert is_internal(observed([read(5, days("1"))]), at(5), at(6)) is None


def test_accesses_are_found_by_the_time_of_the_action():
    accesses = observed([read(5, days("1"))])
    assert accesses.during(Side.READ, at(5), at(6))
    assert not accesses.during(Side.READ, at(40), at(41))
    assert not accesses.during(Side.WRITE, at(5), at(6))


def test_only_reads_at_the_time_of_the_action_decide():
    accesses = observed([read(5, days("1")), read(20, days("9"))], [write(0, days("1"))])
    assert is_internal(accesses, at(5), at(6)) is True
    assert is_internal(accesses, at(20), at(21)) is False
    assert is_internal(accesses, at(40), None) is None


@pytest.mark.parametrize(
    ("filters", "reported"),
    [
        pytest.param([("dt = '1'", "x > 0")], "dt=1 AND x > 0", id="all of one read"),
        pytest.param([("dt = '1'",), ("dt = '2'",)], "dt=1 OR dt=2", id="either of two"),
        pytest.param([("dt = '1'",), ()], None, id="one read everything"),
        pytest.param([("(t.dt IS NOT NULL)", "x > 0")], "x > 0", id="without those of a join"),
        pytest.param([("dt IS NOT NULL, x IS NOT NULL",)], None, id="a join of Iceberg"),
        pytest.param([("dt IS NOT NULL, dt = '1'",)], "dt=1", id="a filter of Iceberg"),
        pytest.param([], None, id="nothing read"),
    ],
)
def test_what_all_rows_fulfil_is_reported_of_all_reads(filters, reported):
    found = observed([read(0, None, filters=texts) for texts in filters]).filters(())
    assert (found and to_text(found)) == reported


@pytest.mark.parametrize("mode", ["whole", "create"])
def test_a_write_of_the_full_dataset_removes_what_was_written_before(mode):
    seen = observed(writes=[write(1, days("1", "2")), write(2, days("2", "3"), mode)])
    subset = seen.subset(Side.WRITE)
    assert subset.partitions == days("2", "3")
    assert subset.removed == days("1")


def hours(*values):
    return frozenset(Partition((("dt", v[0]), ("hour", v[1]))) for v in values)


def test_a_day_that_is_dropped_takes_its_hours_along():
    dropped = write(2, frozenset())._replace(removed=days("1"))
    first = write(1, hours("1a", "1b", "2a"))
    subset = observed(writes=[first, dropped]).subset(Side.WRITE)
    assert subset.partitions == hours("2a")
    assert subset.removed == days("1") | hours("1a", "1b")


def test_a_day_that_is_dropped_and_has_an_hour_again_is_not_removed():
    dropped = write(2, frozenset())._replace(removed=days("1"))
    writes = [write(1, hours("1a", "1b")), dropped, write(3, hours("1b"))]
    subset = observed(writes=writes).subset(Side.WRITE)
    assert subset.partitions == hours("1b")
    assert subset.removed == hours("1a")


def test_a_write_of_some_partitions_leaves_those_before():
    seen = observed(writes=[write(1, days("1")), write(2, days("2"))])
    assert seen.subset(Side.WRITE).partitions == days("1", "2")


def counted(second, rows, mode="append", **more):
    """Make a write of days, each with a number of rows and ten times as many bytes."""
    figures = {one: Figures(n, n * 10) for day, n in rows.items() for one in days(day)}
    replaced = frozenset() if mode == "append" else days(*rows)
    return write(second, days(*rows), mode, figures=figures, replaced=replaced, **more)


UNCOUNTED = write(2, days("1"), "append")


@pytest.mark.parametrize(
    ("writes", "rows"),
    [
        pytest.param(
            [counted(1, {"1": 5}), counted(2, {"1": 2, "2": 1})], {"1": 7, "2": 1}, id="sums"
        ),
        pytest.param(
            [counted(1, {"1": 5, "2": 3}), counted(2, {"1": 2}, "dynamic")],
            {"1": 2, "2": 3},
            id="replaced",
        ),
        pytest.param(
            [counted(1, {"1": 5, "2": 3}), counted(2, {"1": 2}, "whole")],
            {"1": 2},
            id="all replaced",
        ),
        pytest.param([counted(1, {"1": 5}), UNCOUNTED], {"1": None}, id="one is not known"),
        pytest.param(
            [UNCOUNTED, counted(3, {"1": 5}, "dynamic")], {"1": 5}, id="replaced, not known before"
        ),
        pytest.param([counted(1, {"1": 5}), write(2, days(), removed=days("1"))], {}, id="emptied"),
        pytest.param([counted(1, {"1": 5}), write(2, None)], {}, id="unknown partitions"),
        pytest.param(
            [write(1, days("1", "2"), "rows", figures={})], {"1": 0, "2": 0}, id="rows were removed"
        ),
    ],
)
def test_figures_are_those_of_what_is_left_of_the_writes(writes, rows):
    found = observed(writes=writes[::-1]).figures()
    assert {one.as_dict()["dt"]: figures.rows for one, figures in found.items()} == rows
    assert all(one == NOT_COUNTED or one.size == one.rows * 10 for one in found.values())


def test_without_time_there_are_no_figures():
    def work(_):
        raise SpentError

    assert observed(writes=[counted(1, {"1": 5})]).figures(work) == {}
