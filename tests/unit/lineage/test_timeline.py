"""What happened during an action is found as if each thing had been looked at."""

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import (
    SLACK,
    Access,
    Scope,
    Timeline,
)
from airflow_provider_sparklineage.lineage.observed.accesses import ObservedAccesses
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition

START = datetime(2026, 1, 1, tzinfo=UTC)
TABLE = DatasetName("file", "/t")


def at(seconds):
    return START + timedelta(seconds=seconds)


times = st.integers(0, 30)
spans = st.tuples(times, st.integers(0, 10)).map(lambda s: (at(s[0]), at(s[0] + s[1])))


@settings(max_examples=30)
@given(st.lists(spans), spans, st.booleans())
def test_a_timeline_finds_what_overlaps_and_only_that(things, action, has_ended):
    timeline = Timeline((*span, number) for number, span in enumerate(things))
    started, ended = action[0], action[1] if has_ended else None
    expected = {
        number
        for number, (began, until) in enumerate(things)
        if until + SLACK >= started and (ended is None or began <= ended + SLACK)
    }
    found = timeline.during(started, ended)
    assert sorted(found) == sorted(expected)
    assert [things[n][0] for n in found] == sorted(things[n][0] for n in found)


parts = st.frozensets(st.sampled_from("abcd").map(lambda v: Partition.from_values([("p", v)])))
writes = st.builds(
    lambda span, mode, partitions, owned: Access(
        TABLE,
        Side.WRITE,
        *span,
        Scope(partitions=partitions),
        Scope(mode in ("whole", "create"), owned & partitions),
        dimensions=(Dimension.of_column("p"),),
    ),
    spans,
    st.sampled_from(["whole", "create", "append", "dynamic"]),
    parts,
    parts,
)
reads = st.builds(
    lambda span, found: Access(TABLE, Side.READ, *span, Scope(partitions=found)), spans, parts
)


def owned_before(written, time):
    """Fold the writes before a time from the first, as the policy defines it."""
    owned, all_is_ours = frozenset(), False
    for write in sorted(written, key=lambda w: w.ended):
        if write.ended > time + SLACK:
            continue
        if write.owned.full:
            owned, all_is_ours = write.scope.partitions, True
        else:
            owned |= write.scope.partitions if all_is_ours else write.owned.partitions
    return owned


def is_internal(observed, started, ended):
    queries = observed.during(Side.READ, started, ended)
    return observed.is_internal(Access(TABLE, Side.READ, started, ended, queries=queries))


@settings(max_examples=30)
@given(st.lists(writes, min_size=1), st.lists(reads, min_size=1), st.lists(times, max_size=5))
def test_what_is_the_applications_own_depends_on_no_order_of_asking(written, read, asked):
    observed = ObservedAccesses(read, written)
    for seconds in asked:
        is_internal(observed, at(seconds), at(seconds + 1))
    outside = frozenset().union(
        *(access.scope.partitions - owned_before(written, access.started) for access in read)
    )
    found = observed.subset(Side.READ)
    assert (found.partitions if found else outside) == outside
    for access in reversed(read):
        alone = ObservedAccesses((access,), written)
        expected = access.scope.partitions <= owned_before(written, access.started)
        assert is_internal(alone, access.started, access.ended) is expected
