"""When a read is internal: each guard alone decides, on actions made by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.lineage.access.history import (
    Read,
    Write,
    WriteHistory,
    overwrites_whole,
)
from airflow_provider_sparklineage.lineage.application.accumulation import (
    Action,
    ActionState,
)
from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
from airflow_provider_sparklineage.lineage.columns import Column, ColumnLineage, Transformation
from airflow_provider_sparklineage.model.datasets import DatasetName

START = datetime(2026, 1, 1, tzinfo=UTC)
SRC, TABLE = DatasetName("file", "/src"), DatasetName("file", "/table")
NODE = "app.execute_insert_into_hadoop_fs_relation_command.table"


def raw(value):
    return msgspec.Raw(json.dumps(value).encode())


def at(seconds):
    return START + timedelta(seconds=seconds)


def living(change):
    return {"lifecycleStateChange": raw({"lifecycleStateChange": change})}


OUTPUT = ActionDataset(TABLE, living("OVERWRITE"), {})
ACTION = Action("r", NODE, "SQL_JOB", at(0), at(1), ActionState.COMPLETE, (), (OUTPUT,))
LINEAGE = ColumnLineage({"a": {Column(SRC, "a"): (Transformation("DIRECT", "IDENTITY"),)}})


def sorted_by(edges):
    return {Column(SRC, "s"): (Transformation("INDIRECT", "SORT"),), **edges}


def test_an_overwrite_with_nothing_against_it_is_whole():
    assert overwrites_whole(ACTION, OUTPUT, LINEAGE, ["a"])


@pytest.mark.parametrize(
    ("action", "output", "lineage", "columns"),
    [
        pytest.param(ACTION, replace(OUTPUT, facets={}), LINEAGE, ["a"], id="no lifecycle"),
        pytest.param(
            ACTION,
            replace(OUTPUT, facets=living("CREATE")),
            LINEAGE,
            ["a"],
            id="CREATE",
        ),
        pytest.param(
            ACTION,
            replace(OUTPUT, facets=living(None)),
            LINEAGE,
            ["a"],
            id="null",
        ),
        pytest.param(
            replace(ACTION, job_name="app.overwrite_partitions_dynamic.table"),
            OUTPUT,
            LINEAGE,
            ["a"],
            id="not a file write",
        ),
        pytest.param(
            replace(ACTION, sql="INSERT OVERWRITE t partition (dt = 1) SELECT"),
            OUTPUT,
            LINEAGE,
            ["a"],
            id="PARTITION clause",
        ),
        pytest.param(
            replace(
                ACTION,
                properties={
                    "spark.sql.sources.partitionOverwriteMode": frozenset({"STATIC", "Dynamic"})
                },
            ),
            OUTPUT,
            LINEAGE,
            ["a"],
            id="dynamic mode said once",
        ),
        pytest.param(
            replace(
                ACTION, properties={"spark.sql.maxConcurrentOutputFileWriters": frozenset({"8"})}
            ),
            OUTPUT,
            LINEAGE,
            ["a"],
            id="concurrent writers",
        ),
        pytest.param(
            replace(
                ACTION,
                properties={"spark.sql.optimizer.plannedWrite.enabled": frozenset({"false"})},
            ),
            OUTPUT,
            LINEAGE,
            ["a"],
            id="no planned write",
        ),
        pytest.param(
            ACTION,
            OUTPUT,
            replace(LINEAGE, dataset=sorted_by({})),
            ["a"],
            id="sort over the dataset",
        ),
        pytest.param(
            ACTION,
            OUTPUT,
            ColumnLineage({"a": sorted_by(LINEAGE.fields["a"])}),
            ["a"],
            id="sort said per field",
        ),
        pytest.param(ACTION, OUTPUT, LINEAGE, ["a", "dt"], id="column without sources"),
        pytest.param(ACTION, OUTPUT, LINEAGE, [], id="no schema"),
    ],
)
def test_anything_that_points_at_a_part_decides(action, output, lineage, columns):
    assert not overwrites_whole(action, output, lineage, columns)


@pytest.mark.parametrize(
    "job", ["app.atomic_create_table_as_select.t", "app.atomic_replace_table_as_select.t"]
)
def test_a_v2_table_by_select_is_whole_by_itself(job):
    action = replace(ACTION, job_name=job)
    assert overwrites_whole(action, replace(OUTPUT, facets={}), ColumnLineage(), [])


# --- the history -------------------------------------------------------------------------------


def history(*writes):
    made = WriteHistory()
    for write in writes:
        made.add(TABLE, write)
    return made


def write(seconds=1, **kwargs):
    return Write(at(seconds), kwargs.pop("lineage", LINEAGE), kwargs.pop("whole", False), **kwargs)


def other(name):
    return ColumnLineage({"a": {Column(SRC, name): (Transformation("DIRECT", "IDENTITY"),)}})


def sources(origin):
    return {column.field for column in origin.lineage.fields["a"]}


def test_nothing_written_is_no_origin():
    assert history().origin(TABLE, Read(at(9))) is None


def test_a_write_that_had_not_ended_is_not_read():
    assert history(write(5)).origin(TABLE, Read(at(4))) is None
    assert history(write(5)).origin(TABLE, Read(at(5))) is not None


def test_a_late_reader_of_an_early_state_sees_the_early_state():
    made = history(write(1, lineage=other("p")), write(5, lineage=other("q"), whole=True))
    assert sources(made.origin(TABLE, Read(at(3)))) == {"p"}
    assert sources(made.origin(TABLE, Read(at(6)))) == {"q"}


def test_writes_noted_out_of_order_are_read_in_order():
    made = history(write(5, lineage=other("q"), whole=True), write(1, lineage=other("p")))
    assert sources(made.origin(TABLE, Read())) == {"q"}


def test_an_overwrite_replaces_and_an_append_adds():
    made = history(write(1, lineage=other("p")), write(2, lineage=other("q")))
    assert sources(made.origin(TABLE, Read())) == {"p", "q"}


def test_an_append_after_a_whole_overwrite_leaves_it_internal():
    made = history(write(1, whole=True), write(2, appends=True))
    assert made.origin(TABLE, Read()).internal


@pytest.mark.parametrize(
    ("writes", "found", "internal"),
    [
        pytest.param([write(size=10)], 10, True, id="as much as was written"),
        pytest.param([write(size=10)], 11, False, id="more"),
        pytest.param([write(size=10)], 9, False, id="less proves nothing"),
        pytest.param([write(size=10, whole=True)], 11, False, id="more than a whole overwrite"),
        pytest.param([write(size=10, whole=True)], 9, True, id="less than a whole overwrite"),
        pytest.param([write(size=10, whole=True)], None, True, id="nobody says"),
        pytest.param([write(size=None)], 10, False, id="nobody said when writing"),
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
    assert history(*writes).origin(TABLE, Read(size=found)).internal is internal


def test_equal_sizes_of_other_partitions_prove_nothing():
    made = history(write(size=10, locations=frozenset({"/table/dt=06"})))
    read = Read(size=10, locations=frozenset({"/table/dt=05"}))
    assert made.origin(TABLE, read) is None


def test_the_partition_that_was_written_is_in_what_is_read():
    made = history(write(locations=frozenset({"/table/dt=06"})))
    for location in ("/table/dt=06", "/table/dt=06/h=1", "/table/dt=*"):
        assert sources(made.origin(TABLE, Read(locations=frozenset({location})))) == {"a"}


def test_a_size_that_is_found_settles_an_overwrite_for_good():
    made = history(
        write(1, lineage=other("p"), size=10),
        write(2, lineage=other("q"), size=7),
        write(3, lineage=other("r"), size=2, appends=True),
    )
    assert sources(made.origin(TABLE, Read(at(4), size=30))) == {"p", "q", "r"}
    assert sources(made.origin(TABLE, Read(at(5), size=9))) == {"q", "r"}
    assert sources(made.origin(TABLE, Read())) == {"q", "r"}
    assert made.origin(TABLE, Read()).internal


def day(number, seconds, **kwargs):
    location = frozenset({f"/table/dt={number}"})
    return write(seconds, locations=location, replaced=location, **kwargs)


def read_of(*days, seconds=9, size=None):
    return Read(at(seconds), size, frozenset(f"/table/dt={number}" for number in days) or None)


@pytest.mark.parametrize(
    ("read", "internal"),
    [
        pytest.param(read_of(1), True, id="one"),
        pytest.param(read_of(1, 2), True, id="both"),
        pytest.param(read_of(1, 3), False, id="one that was not written"),
        pytest.param(read_of(2, seconds=1), False, id="one that was not written yet"),
        pytest.param(read_of(), False, id="the whole"),
        pytest.param(read_of(size=12), True, id="the whole, with no more in it"),
        pytest.param(read_of(size=13), False, id="the whole, with more in it"),
    ],
)
def test_locations_that_were_replaced_are_internal(read, internal):
    made = history(day(1, 1, size=5), day(2, 2, size=7))
    origin = made.origin(TABLE, read)
    assert (origin is not None and origin.internal) is internal


def test_a_location_that_was_replaced_twice_is_of_the_last_write():
    made = history(day(1, 1, lineage=other("p")), day(1, 2, lineage=other("q")))
    assert sources(made.origin(TABLE, read_of(1))) == {"q"}


@pytest.mark.parametrize("is_read_between", [True, False])
def test_the_whole_has_nothing_of_a_write_whose_locations_were_replaced(is_read_between):
    made = history(day(1, 1, lineage=other("p")), day(2, 2, lineage=other("r")))
    if is_read_between:
        assert sources(made.origin(TABLE, read_of(seconds=2))) == {"p", "r"}
    made.add(TABLE, day(1, 3, lineage=other("q")))
    assert sources(made.origin(TABLE, read_of())) == {"q", "r"}
    assert sources(made.origin(TABLE, Read())) == {"q", "r"}


def is_read(written, read):
    return any(
        "*" in one
        or "*" in other
        or f"{one}/".startswith(f"{other}/")
        or other.startswith(f"{one}/")
        for one in written
        for other in read
    )


def naively_left(writes, read):
    """Look at every write: who of them is in what is read."""
    left, replaced = [], set()
    for made in sorted(writes, key=lambda w: w.ended)[::-1]:
        here = (
            read.locations is None or not made.locations or is_read(made.locations, read.locations)
        )
        if made.ended <= read.started and here:
            if not made.locations or not made.locations <= replaced:
                left += [column.field for column in made.lineage.fields["a"]]
            replaced |= made.replaced
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
def test_a_read_finds_the_writes_that_looking_at_all_of_them_finds(written, read):
    made = WriteHistory()
    writes = []
    for number, (ended, where, replaces) in enumerate(written):
        replaced = where if where and replaces and "/t/d=*" not in where else frozenset()
        writes.append(write(ended, lineage=other(f"c{number}"), locations=where, replaced=replaced))
        made.add(TABLE, writes[-1])
        for moment, place in read:
            asked = Read(at(moment), None, place)
            origin = made.origin(TABLE, asked)
            found = sources(origin) if origin else set()
            assert found == naively_left(writes, asked)


def test_an_overwritten_table_of_a_database_is_whole():
    action = replace(ACTION, job_name="app.execute_save_into_data_source_command.t")
    table = replace(OUTPUT, name=DatasetName("postgres://host:5432", "db.public.t"))
    assert overwrites_whole(action, table, ColumnLineage(), [])
    assert not overwrites_whole(action, OUTPUT, LINEAGE, ["a"])  # Delta says it of partitions too
