"""One ledger for each dataset: which evidence decides, and what all accesses are together."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import (
    Access,
    ActionDataset,
    Grade,
    Scope,
)
from airflow_provider_sparklineage.lineage.application.accumulation import Action, ActionState
from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.lineage.ledger import Ledgers
from airflow_provider_sparklineage.lineage.observed.accesses import Observations
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Partition

START = datetime(2026, 1, 1, tzinfo=UTC)
SRC, TABLE = DatasetName("file", "/src"), DatasetName("file", "/table")
NODE = "app.execute_insert_into_hadoop_fs_relation_command.table"
LINEAGE = ColumnLineage({"a": {Column(SRC, "a"): (Transformation("DIRECT", "IDENTITY"),)}})
ONE = frozenset({Partition.from_values([("dt", "1")])})
TWO = frozenset({Partition.from_values([("dt", "2")])})


def at(seconds):
    return START + timedelta(seconds=seconds)


def raw(value):
    return msgspec.Raw(json.dumps(value).encode())


def action(seconds):
    span = at(seconds), at(seconds + 1)
    return Action(str(seconds), NODE, "SQL_JOB", *span, ActionState.COMPLETE, (), ())


def output(lifecycle=None, size=None, locations=None):
    facets = {"schema": raw({"fields": [{"name": "a"}]})}
    if lifecycle:
        facets["lifecycleStateChange"] = raw({"lifecycleStateChange": lifecycle})
    sides = {"outputStatistics": raw({"size": size})} if size else {}
    return ActionDataset(TABLE, facets, sides, locations)


def found(size=None, locations=None):
    sides = {"inputStatistics": raw({"size": size, "fileCount": 1})} if size else {}
    return ActionDataset(TABLE, {}, sides, locations)


def query(side, seconds, partitions, **more):
    return Access(TABLE, side, at(seconds), at(seconds + 1), Scope(partitions=partitions), **more)


def ledger(*, reads=(), writes=()):
    """Give a ledger with these observed accesses, or with no observer at all."""
    of = {
        side: {TABLE: tuple(accesses)} for side, accesses in zip(Side, (reads, writes), strict=True)
    }
    observations = Observations(of[Side.READ], of[Side.WRITE]) if reads or writes else None
    return Ledgers(observations).of(TABLE)


def written(made, dataset, seconds=0):
    made.enter_write(made.write_by(action(seconds), dataset, LINEAGE), LINEAGE, frozenset({SRC}))


def read(made, dataset, seconds=5):
    access = made.read_by(action(seconds), dataset)
    provenance = made.provenance(access)
    made.enter_read(access, provenance, for_write=True)
    return provenance


@pytest.mark.parametrize(
    ("put", "got", "internal", "grade"),
    [
        pytest.param(output("OVERWRITE"), found(), True, Grade.LIFECYCLE, id="overwritten"),
        pytest.param(output(), found(), False, Grade.LIFECYCLE, id="appended"),
        pytest.param(output(size=7), found(7), True, Grade.SIZE, id="all that is there"),
        pytest.param(output("OVERWRITE", 7), found(8), False, Grade.SIZE, id="more than written"),
    ],
)
def test_without_an_observer_the_listener_decides(put, got, internal, grade):
    made = ledger()
    written(made, put)
    provenance = read(made, got)
    assert (provenance.internal, provenance.grade) == (internal, grade)
    assert made.is_assumed is internal


@pytest.mark.parametrize(
    ("put", "owned", "internal"),
    [
        pytest.param(output(), Scope(partitions=ONE), True, id="though it looks like an append"),
        pytest.param(output("OVERWRITE", 7), Scope(), False, id="though it looks overwritten"),
    ],
)
def test_what_was_observed_decides(put, owned, internal):
    made = ledger(reads=[query(Side.READ, 5, ONE)], writes=[query(Side.WRITE, 0, ONE, owned=owned)])
    written(made, put)
    provenance = read(made, found(7))
    assert (provenance.internal, provenance.grade) == (internal, Grade.OBSERVED)
    assert (made.is_read_back, made.is_assumed) == (internal, False)


def test_columns_are_known_whatever_the_evidence():
    made = ledger(reads=[query(Side.READ, 5, ONE)], writes=[query(Side.WRITE, 0, TWO)])
    written(made, output())
    assert read(made, found()).columns == LINEAGE
    assert made.contents().sources == {SRC}


OTHER = ColumnLineage({"a": {Column(SRC, "b"): (Transformation("DIRECT", "IDENTITY"),)}})


def rewritten(first, second, *, gap=1, **more):
    """Enter a write of some columns and then one of others, each with its observed query."""
    writes = [
        query(Side.WRITE, 0, first, replaced=first or frozenset()),
        query(Side.WRITE, 1 + gap, second, **more),
    ]
    made = ledger(writes=writes)
    written(made, output())
    access = made.write_by(action(1 + gap), output(), OTHER)
    made.enter_write(access, OTHER, frozenset({TABLE}))
    return made.contents()


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"replaced": ONE}, id="overwritten"),
        pytest.param({"replaced": ONE, "gap": 0}, id="right after the first"),
        pytest.param({"second": TWO, "removed": ONE}, id="emptied"),
        pytest.param({"second": ONE | TWO, "replaced": ONE | TWO}, id="with more"),
    ],
)
def test_of_a_partition_that_is_overwritten_the_last_write_counts(second):
    contents = rewritten(ONE, **{"second": ONE, **second})
    assert (contents.columns, contents.sources) == (OTHER, {TABLE})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(ONE, {"owned": Scope(partitions=ONE)}, id="appended"),
        pytest.param(ONE | TWO, {"replaced": ONE}, id="overwritten in part"),
        pytest.param(ONE, {"replaced": ONE, "exact": False}, id="not certain"),
        pytest.param(ONE, {"second": TWO, "replaced": TWO}, id="another"),
        pytest.param(ONE, {"second": None}, id="unknown"),
        pytest.param(None, {"replaced": ONE}, id="of an unknown write"),
        pytest.param(ONE, {"replaced": ONE, "gap": -1}, id="at the same time"),
    ],
)
def test_data_that_may_still_be_there_keeps_its_columns(first, second):
    contents = rewritten(first, **{"second": ONE, **second})
    assert contents.columns.fields["a"].keys() == {Column(SRC, "a"), Column(SRC, "b")}
    assert contents.sources == {SRC, TABLE}


def test_a_read_before_the_overwrite_finds_what_was_there_then():
    made = ledger(
        reads=[query(Side.READ, 2, ONE)],
        writes=[query(Side.WRITE, n, ONE, replaced=ONE) for n in (0, 4)],
    )
    written(made, output())
    assert read(made, found(), 2).columns == LINEAGE
    made.enter_write(made.write_by(action(4), output(), OTHER), OTHER, frozenset({SRC}))
    assert read(made, found(), 6).columns == OTHER


def test_nothing_put_there_is_no_provenance():
    made = ledger(reads=[query(Side.READ, 5, ONE)])
    assert read(made, found()) is None
    assert not made.is_read_back


def test_a_full_overwrite_that_was_observed_is_as_its_command_was():
    full = query(Side.WRITE, 0, ONE, owned=Scope(full=True))
    made = ledger(writes=[full])
    assert made.write_by(action(0), output(), LINEAGE).owned.full
    part = query(Side.WRITE, 0, ONE, owned=Scope(partitions=ONE))
    made = ledger(writes=[full, part])
    assert not made.write_by(action(0), output("OVERWRITE"), LINEAGE).owned.full


def test_an_overwritten_folder_is_owned_and_no_more():
    folder = frozenset({"/table/dt=1"})
    write = ledger().write_by(action(0), output("OVERWRITE", locations=folder), LINEAGE)
    assert write.owned == Scope(locations=folder)


def test_one_access_that_was_not_observed_leaves_a_side_unknown():
    made = ledger(reads=[query(Side.READ, 5, ONE)], writes=[query(Side.WRITE, 0, ONE)])
    written(made, output(size=1))
    read(made, found())
    assert made.is_observed(Side.READ)
    assert made.is_observed(Side.WRITE)
    written(made, output(), seconds=20)
    assert made.is_observed(Side.WRITE)  # as CREATE TABLE, it wrote no data
    written(made, output(size=1), seconds=30)
    read(made, found(), seconds=40)
    assert not made.is_observed(Side.READ)
    assert not made.is_observed(Side.WRITE)


def test_locations_are_united_until_one_access_has_none():
    made = ledger()
    for day in "12":
        read(made, found(locations=frozenset({f"/table/dt={day}"})))
    assert made.locations(Side.READ) == {"/table/dt=1", "/table/dt=2"}
    read(made, found())
    assert made.locations(Side.READ) is None


def test_locations_that_were_read_back_are_none_of_the_inputs():
    folder = frozenset({"/table/dt=1"})
    made = ledger()
    written(made, output("OVERWRITE", locations=folder))
    assert read(made, found(locations=folder)).internal
    assert made.locations(Side.READ) == frozenset()
    assert made.locations(Side.WRITE) == folder
