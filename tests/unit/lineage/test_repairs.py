"""What the listener reports wrongly of a table made by a query, on actions made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import Access, ActionDataset, Scope
from airflow_provider_sparklineage.lineage.application.accumulation import (
    Action,
    ActionState,
    SparkApplication,
)
from airflow_provider_sparklineage.lineage.application.repairs import repaired
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.lineage.observed.accesses import Observations
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition

START = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS, OTHER, TABLE = (DatasetName("file", name) for name in ("/orders", "/other", "/table"))


def at(seconds):
    return START + timedelta(seconds=seconds)


def action(name, started, ended, read=ORDERS, written=None):
    inputs = (ActionDataset(read, {}, {}),)
    outputs = (ActionDataset(written, {}, {}),) if written else ()
    times = at(started), at(ended)
    return Action(name, f"app.{name}.t", "SQL_JOB", *times, ActionState.COMPLETE, inputs, outputs)


# As it was with Delta 4.0.0 and its extension on Spark 4.0: of the inner execution of `saveAsTable`
# in overwrite mode there is no START, and its COMPLETE comes a tenth of a second before its query
# begins; of the one that reads a table to be copied, COMPLETE comes when the query is over.
OUTER = action("atomic_replace_table_as_select", 0, 9, written=TABLE)
END = action("overwrite_by_expression_exec_v1", 3, 3)
SAVE = action("execute_save_into_data_source_command", 0, 9, written=TABLE)
SCAN = action("columnar_to_row", 8.1, 8.1, written=ORDERS)


def application(*actions):
    return SparkApplication("run", "ns", "app", actions)


@pytest.mark.parametrize("actions", [(OUTER, END), (SAVE, SCAN)], ids=["too early", "too late"])
def test_what_a_write_of_delta_reads_is_known_whenever_its_inner_execution_is_reported(actions):
    partitions = frozenset({Partition.from_values([("dt", "1")])})
    dimensions = (Dimension.of_column("dt"),)
    read = Access(
        ORDERS, Side.READ, at(3.1), at(8), Scope(partitions=partitions), dimensions=dimensions
    )
    lineage = merge(
        application(*actions),
        Outcome.COMPLETE,
        observations=Observations({ORDERS: (read,)}),
    )
    [orders] = lineage.inputs
    assert [d.name for d in lineage.outputs] == [TABLE]
    assert orders.subset is not None
    assert orders.subset.partitions == partitions


def test_a_table_that_is_read_as_it_is_is_not_written():
    [alone] = repaired(application(SCAN)).actions
    assert (alone.inputs, alone.outputs) == (SCAN.inputs, ())


def test_what_only_the_end_of_the_write_names_is_read_by_it():
    end = replace(END, inputs=(*END.inputs, ActionDataset(OTHER, {}, {})))
    [joined] = repaired(application(OUTER, end)).actions
    assert joined == replace(OUTER, inputs=joined.inputs)
    assert [d.name for d in joined.inputs] == [ORDERS, OTHER]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(action("overwrite_by_expression_exec_v1", 3, 3, OTHER), id="other data"),
        pytest.param(action("columnar_to_row", 10, 10), id="after the write"),
        pytest.param(action("columnar_to_row", 3, 10), id="longer than the write"),
        pytest.param(action("collect_limit", 3, 3), id="another node"),
    ],
)
def test_an_action_that_is_not_of_the_write_stays(other):
    assert repaired(application(OUTER, other)).actions == (OUTER, other)


def test_an_insert_into_a_directory_is_the_one_write_inside_of_it():
    """Or the outer execution, of which no columns are reported, would replace what was written."""
    around = action("execute_insert_into_data_source_dir_command", 0, 4, written=TABLE)
    inner = action("execute_insert_into_hadoop_fs_relation_command", 1, 3, written=TABLE)
    facets = {"columnLineage": b"{}"}
    [dataset] = inner.outputs
    inner = replace(inner, outputs=(replace(dataset, facets=facets),))
    [found] = repaired(SparkApplication("run", "ns", "app", (around, inner))).actions
    [output] = found.outputs
    assert output.facets == facets
