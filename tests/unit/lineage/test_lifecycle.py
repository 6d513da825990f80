"""When a write replaced everything: each guard alone decides, on actions made by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
from airflow_provider_sparklineage.lineage.application.accumulation import (
    Action,
    ActionState,
)
from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.lineage.ledger import overwrites_everything
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


def schema(*columns):
    return {"schema": raw({"fields": [{"name": name} for name in columns]})}


OUTPUT = ActionDataset(TABLE, living("OVERWRITE") | schema("a"), {})
ACTION = Action("r", NODE, "SQL_JOB", at(0), at(1), ActionState.COMPLETE, (), (OUTPUT,))
LINEAGE = ColumnLineage({"a": {Column(SRC, "a"): (Transformation("DIRECT", "IDENTITY"),)}})


def sorted_by(edges):
    return {Column(SRC, "s"): (Transformation("INDIRECT", "SORT"),), **edges}


def test_an_overwrite_with_nothing_against_it_replaces_everything():
    assert overwrites_everything(ACTION, OUTPUT, LINEAGE)


@pytest.mark.parametrize(
    ("action", "output", "reported"),
    [
        pytest.param(ACTION, replace(OUTPUT, facets=schema("a")), LINEAGE, id="no lifecycle"),
        pytest.param(
            ACTION,
            replace(OUTPUT, facets=living("CREATE") | schema("a")),
            LINEAGE,
            id="CREATE",
        ),
        pytest.param(
            ACTION,
            replace(OUTPUT, facets=living(None) | schema("a")),
            LINEAGE,
            id="null",
        ),
        pytest.param(
            replace(ACTION, job_name="app.overwrite_partitions_dynamic.table"),
            OUTPUT,
            LINEAGE,
            id="not a file write",
        ),
        pytest.param(
            replace(ACTION, sql="INSERT OVERWRITE t partition (dt = 1) SELECT"),
            OUTPUT,
            LINEAGE,
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
            id="dynamic mode reported once",
        ),
        pytest.param(
            replace(
                ACTION, properties={"spark.sql.maxConcurrentOutputFileWriters": frozenset({"8"})}
            ),
            OUTPUT,
            LINEAGE,
            id="concurrent writers",
        ),
        pytest.param(
            replace(
                ACTION,
                properties={"spark.sql.optimizer.plannedWrite.enabled": frozenset({"false"})},
            ),
            OUTPUT,
            LINEAGE,
            id="no planned write",
        ),
        pytest.param(
            ACTION,
            OUTPUT,
            replace(LINEAGE, dataset=sorted_by({})),
            id="sort over the dataset",
        ),
        pytest.param(
            ACTION,
            OUTPUT,
            ColumnLineage({"a": sorted_by(LINEAGE.fields["a"])}),
            id="sort of each field",
        ),
        pytest.param(
            ACTION,
            replace(OUTPUT, facets=OUTPUT.facets | schema("a", "dt")),
            LINEAGE,
            id="column without sources",
        ),
        pytest.param(ACTION, replace(OUTPUT, facets=living("OVERWRITE")), LINEAGE, id="no schema"),
    ],
)
def test_anything_that_points_at_a_part_decides(action, output, reported):
    assert not overwrites_everything(action, output, reported)


@pytest.mark.parametrize(
    "job", ["app.atomic_create_table_as_select.t", "app.atomic_replace_table_as_select.t"]
)
def test_a_v2_table_by_select_replaces_everything_by_itself(job):
    action = replace(ACTION, job_name=job)
    assert overwrites_everything(action, replace(OUTPUT, facets={}), ColumnLineage())


def test_an_overwritten_table_of_a_database_is_replaced():
    action = replace(ACTION, job_name="app.execute_save_into_data_source_command.t")
    table = replace(OUTPUT, name=DatasetName("postgres://host:5432", "db.public.t"))
    assert overwrites_everything(action, table, ColumnLineage())
    assert not overwrites_everything(action, OUTPUT, LINEAGE)  # Delta reports it of partitions too
