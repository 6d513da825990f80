"""What a read finds of the writes that the listener reported, and of nothing older."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import (
    Access,
    Scope,
)
from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.lineage.ledger import ReportedWrites
from airflow_provider_sparklineage.model.datasets import DatasetName

START = datetime(2026, 1, 1, tzinfo=UTC)
SRC, TABLE = DatasetName("file", "/src"), DatasetName("file", "/table")


def at(seconds):
    return START + timedelta(seconds=seconds)


LINEAGE = ColumnLineage({"a": {Column(SRC, "a"): (Transformation("DIRECT", "IDENTITY"),)}})
END = 100


def reported(*writes):
    made = ReportedWrites()
    for access, lineage in writes:
        made.add(access, lineage)
    return made


def write(seconds=1, *, lineage=LINEAGE, full=False, locations=None, replaced=None, **known):
    owned = Scope(full, locations=replaced)
    scope = Scope(locations=locations)
    return Access(TABLE, Side.WRITE, at(0), at(seconds), scope, owned, **known), lineage


def read(seconds=END, *, size=None, locations=None):
    return Access(TABLE, Side.READ, at(seconds), None, Scope(locations=locations), size=size)


def other(name):
    return ColumnLineage({"a": {Column(SRC, name): (Transformation("DIRECT", "IDENTITY"),)}})


def sources(provenance):
    return {column.field for column in provenance.columns.fields["a"]}


def sources_at_the_end(made):
    return {column.field for column in made.at_the_end().columns.fields["a"]}


def test_where_nothing_was_written_all_is_from_outside():
    assert reported().provenance(read(9)) is None


def test_a_write_that_had_not_ended_is_not_read():
    assert reported(write(5)).provenance(read(4)) is None
    assert reported(write(5)).provenance(read(5)) is not None


def test_a_late_reader_of_an_early_state_sees_the_early_state():
    made = reported(write(1, lineage=other("p")), write(5, lineage=other("q"), full=True))
    assert sources(made.provenance(read(3))) == {"p"}
    assert sources(made.provenance(read(6))) == {"q"}


def test_writes_noted_out_of_order_are_read_in_order():
    made = reported(write(5, lineage=other("q"), full=True), write(1, lineage=other("p")))
    assert sources_at_the_end(made) == {"q"}


def test_an_overwrite_replaces_and_an_append_adds():
    made = reported(write(1, lineage=other("p")), write(2, lineage=other("q")))
    assert sources_at_the_end(made) == {"p", "q"}


def test_an_append_after_a_full_overwrite_leaves_it_internal():
    made = reported(write(1, full=True), write(2, appends=True))
    assert made.provenance(read()).internal


@pytest.mark.parametrize(
    ("writes", "found", "internal"),
    [
        pytest.param([write(size=10)], 10, True, id="as much as was written"),
        pytest.param([write(size=10)], 11, False, id="more"),
        pytest.param([write(size=10)], 9, False, id="less proves nothing"),
        pytest.param([write(size=10, full=True)], 11, False, id="more than a full overwrite"),
        pytest.param([write(size=10, full=True)], 9, True, id="less than a full overwrite"),
        pytest.param([write(size=10, full=True)], None, True, id="not reported"),
        pytest.param([write(size=None)], 10, False, id="not reported when writing"),
        pytest.param([write(size=10), write(2, size=10, appends=True)], 20, True, id="appends add"),
        pytest.param(
            [write(size=10), write(2, size=10)], 20, False, id="partial overwrites may replace"
        ),
        pytest.param(
            [write(size=10), write(2, size=7)], 7, True, id="as much as the last overwrite"
        ),
    ],
)
def test_sizes_prove_and_disprove(writes, found, internal):
    assert reported(*writes).provenance(read(size=found)).internal is internal


def test_equal_sizes_of_other_partitions_prove_nothing():
    made = reported(write(size=10, locations=frozenset({"/table/dt=06"})))
    other_day = read(size=10, locations=frozenset({"/table/dt=05"}))
    assert made.provenance(other_day) is None


def test_the_partition_that_was_written_is_in_what_is_read():
    made = reported(write(locations=frozenset({"/table/dt=06"})))
    for location in ("/table/dt=06", "/table/dt=06/h=1", "/table/dt=*", "/table/dt=0[67]"):
        assert sources(made.provenance(read(locations=frozenset({location})))) == {"a"}


def test_a_size_that_is_found_settles_an_overwrite_for_good():
    made = reported(
        write(1, lineage=other("p"), size=10),
        write(2, lineage=other("q"), size=7),
        write(3, lineage=other("r"), size=2, appends=True),
    )
    assert sources(made.provenance(read(4, size=30))) == {"p", "q", "r"}
    assert sources(made.provenance(read(5, size=9))) == {"q", "r"}
    assert sources_at_the_end(made) == {"q", "r"}
    assert made.provenance(read()).internal


def day(number, seconds, **kwargs):
    location = frozenset({f"/table/dt={number}"})
    return write(seconds, locations=location, replaced=location, **kwargs)


def read_of(*days, seconds=9, size=None):
    locations = frozenset(f"/table/dt={number}" for number in days) or None
    return read(seconds, size=size, locations=locations)


@pytest.mark.parametrize(
    ("asked", "internal"),
    [
        pytest.param(read_of(1), True, id="one"),
        pytest.param(read_of(1, 2), True, id="both"),
        pytest.param(read_of(1, 3), False, id="one that was not written"),
        pytest.param(read_of(2, seconds=1), False, id="one that was not written yet"),
        pytest.param(read_of(), False, id="all of it"),
        pytest.param(read_of(size=12), True, id="all of it, with no more in it"),
        pytest.param(read_of(size=13), False, id="all of it, with more in it"),
    ],
)
def test_locations_that_were_replaced_are_internal(asked, internal):
    made = reported(day(1, 1, size=5), day(2, 2, size=7))
    found = made.provenance(asked)
    assert (found is not None and found.internal) is internal


def test_a_location_that_was_replaced_twice_is_of_the_last_write():
    made = reported(day(1, 1, lineage=other("p")), day(1, 2, lineage=other("q")))
    assert sources(made.provenance(read_of(1))) == {"q"}


@pytest.mark.parametrize("is_read_between", [True, False])
def test_all_of_it_has_nothing_of_a_write_whose_locations_were_replaced(is_read_between):
    made = reported(day(1, 1, lineage=other("p")), day(2, 2, lineage=other("r")))
    if is_read_between:
        assert sources(made.provenance(read_of(seconds=2))) == {"p", "r"}
    made.add(*day(1, 3, lineage=other("q")))
    assert sources(made.provenance(read_of())) == {"q", "r"}
    assert sources_at_the_end(made) == {"q", "r"}


def is_read(written, read):
    return any(
        "*" in one
        or "*" in other
        or f"{one}/".startswith(f"{other}/")
        or other.startswith(f"{one}/")
        for one in written
        for other in read
    )


def naively_left(writes, asked):
    """Look at every write: which of them is in what is read."""
    left, replaced = [], set()
    where = asked.scope.locations
    for made, lineage in sorted(writes, key=lambda pair: pair[0].ended)[::-1]:
        locations = made.scope.locations
        here = where is None or not locations or is_read(locations, where)
        if made.ended <= asked.started and here:
            if not locations or not locations <= replaced:
                left += [column.field for column in lineage.fields["a"]]
            replaced |= made.owned.locations
    return set(left)


PLACES = st.frozensets(
    st.sampled_from(["/t", "/t/d=1", "/t/d=2", "/t/d=2/h=1", "/t/d=2/h=2", "/t/d=*", "/t2"]),
    min_size=1,
    max_size=2,
)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.none() | PLACES, st.booleans()), max_size=8),
    st.lists(st.tuples(st.integers(1, 10), st.none() | PLACES), min_size=1, max_size=3),
)
def test_a_read_finds_the_writes_that_looking_at_all_of_them_finds(written, reads):
    made = ReportedWrites()
    writes = []
    for number, (ended, where, replaces) in enumerate(written):
        replaced = where if where and replaces and "/t/d=*" not in where else frozenset()
        writes.append(write(ended, lineage=other(f"c{number}"), locations=where, replaced=replaced))
        made.add(*writes[-1])
        for seconds, locations in reads:
            asked = read(seconds, locations=locations)
            provenance = made.provenance(asked)
            found = sources(provenance) if provenance else set()
            assert found == naively_left(writes, asked)


# --- columns of several writes --------------------------------------------------------------------


def test_what_one_write_was_made_of_stays_its_own_when_others_are_united_with_it():
    direct, summed = (Transformation("DIRECT", kind) for kind in ("IDENTITY", "AGGREGATION"))
    edges = {Column(SRC, "a"): (direct,)}
    one = ColumnLineage({"a": edges, "b": edges})
    more = ColumnLineage({"a": {Column(SRC, "z"): (summed,)}, "c": {Column(SRC, "a"): (summed,)}})
    writes = reported(*(write(n, lineage=given) for n, given in enumerate((one, more, more), 1)))
    assert writes.at_the_end().columns.fields == {
        "a": {Column(SRC, "a"): (direct,), Column(SRC, "z"): (summed,)},
        "b": {Column(SRC, "a"): (direct,)},
        "c": {Column(SRC, "a"): (summed,)},
    }
    assert edges == {Column(SRC, "a"): (direct,)}
    assert more.fields["a"] == {Column(SRC, "z"): (summed,)}
