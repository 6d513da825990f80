"""Observed subsets: united over the application, without what it had put there itself."""

from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_sparklineage.lineage.access.observed import (
    ObservedSubsets,
    UnknownPartitionsError,
)
from airflow_provider_sparklineage.lineage.application.binding import Access, Observations
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.subset import to_text

T = DatasetName("file", "/lake/t")
ZERO = datetime(2024, 5, 6, tzinfo=UTC)
DT = (Dimension.of("dt"),)
WHOLE = Partition()


def at(second):
    return ZERO + timedelta(seconds=second)


def days(*names):
    return frozenset(Partition.of([("dt", n)]) for n in names)


def access(second, partitions, dimensions=DT, **more):
    return Access(T, at(second), at(second + 1), dimensions, partitions, **more)


def write(second, partitions, mode="dynamic", **more):
    owned = more.pop("owned", partitions if mode != "append" else frozenset())
    return access(second, partitions, mode=mode, owned=owned or frozenset(), **more)


def subsets(reads=(), writes=()):
    return ObservedSubsets(Observations({T: tuple(reads)}, {T: tuple(writes)}))


def partitions(subset):
    return subset.partitions if subset and not subset.whole else None


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        pytest.param([], None, id="nothing observed"),
        pytest.param([access(0, days("1")), access(5, days("2"))], days("1", "2"), id="united"),
        pytest.param([access(0, days())], days(), id="empty selection"),
        pytest.param(
            [access(0, days("1")), access(5, days("1", "2"), whole=True)], None, id="whole"
        ),
        pytest.param([access(0, frozenset({WHOLE}), ())], None, id="unpartitioned"),
    ],
)
def test_reads_are_united(reads, expected):
    assert partitions(subsets(reads).of_input(T)) == expected


def test_one_unknown_read_makes_the_input_unknown():
    with pytest.raises(UnknownPartitionsError, match="too many"):
        subsets([access(0, days("1")), access(5, None, why_unknown="too many")]).of_input(T)


def test_one_unknown_write_makes_the_output_unknown():
    with pytest.raises(UnknownPartitionsError):
        subsets(writes=[write(0, days("1")), write(5, None)]).of_output(T)


def test_writes_are_united_whatever_their_mode():
    writes = [write(0, days("1"), "whole"), write(5, days("2"), "append")]
    assert partitions(subsets(writes=writes).of_output(T)) == days("1", "2")


@pytest.mark.parametrize(
    ("writes", "read", "internal", "outside"),
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
def test_a_read_is_internal_if_its_partitions_were_written_before(writes, read, internal, outside):
    observed = subsets([access(5, read)], writes)
    assert observed.is_internal(T, at(5), at(6)) is internal
    assert partitions(observed.of_input(T)) == outside


def test_a_dataset_without_partitions_is_internal_after_a_whole_overwrite_only():
    everything = frozenset({WHOLE})
    for mode, internal in (("whole", True), ("create", True), ("append", False)):
        observed = subsets([access(5, everything, ())], [write(0, everything, mode, dimensions=())])
        assert observed.is_internal(T, at(5), at(6)) is internal


def test_a_whole_read_over_own_partitions_is_what_came_from_outside():
    observed = subsets([access(5, days("1", "2"), whole=True)], [write(0, days("2"))])
    assert partitions(observed.of_input(T)) == days("1")


def test_without_an_observed_write_nothing_is_said_of_internal():
    assert subsets([access(5, days("1"))]).is_internal(T, at(5), at(6)) is None


def test_reads_are_looked_for_at_the_time_of_the_action():
    observed = subsets([access(5, days("1"))])
    assert observed.was_read(T, at(5), at(6))
    assert not observed.was_read(T, at(40), at(41))


def test_only_reads_at_the_time_of_the_action_decide():
    observed = subsets([access(5, days("1")), access(20, days("9"))], [write(0, days("1"))])
    assert observed.is_internal(T, at(5), at(6)) is True
    assert observed.is_internal(T, at(20), at(21)) is False
    assert observed.is_internal(T, at(40), None) is None


@pytest.mark.parametrize(
    ("modes", "whole"),
    [
        (["whole"], True),
        (["create"], True),
        (["dynamic"], False),
        (["whole", "append"], False),
        ([], None),
    ],
)
def test_a_whole_overwrite_is_what_the_command_says(modes, whole):
    observed = subsets(writes=[write(0, days("1"), mode) for mode in modes])
    assert observed.is_whole_overwrite(T, at(0), at(1)) is whole


@pytest.mark.parametrize(
    ("filters", "told"),
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
def test_what_all_rows_fulfil_is_told_of_all_reads(filters, told):
    found = subsets([access(0, None, filters=texts) for texts in filters]).filters(T, ())
    assert (found and to_text(found)) == told
