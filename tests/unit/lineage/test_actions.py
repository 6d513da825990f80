"""Which actions make outputs of a task: those that wrote data."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
from airflow_provider_sparklineage.lineage.application.accumulation import (
    Action,
    ActionState,
    SparkApplication,
)
from airflow_provider_sparklineage.lineage.merge import merge
from airflow_provider_sparklineage.lineage.observed.accesses import Observations
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Outcome

START = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE, TABLE = DatasetName("file", "/source"), DatasetName("file", "/table")
LINK = DatasetName("file:/warehouse", "default.table")
INSERT = "execute_insert_into_hadoop_fs_relation_command"


def dataset(name, *, lifecycle="", link=None):
    facets = {}
    if lifecycle:
        facets["lifecycleStateChange"] = {"lifecycleStateChange": lifecycle}
    if link:
        facets["symlinks"] = {"identifiers": [{"namespace": link[0], "name": link[1]}]}
    raw = {name: msgspec.Raw(json.dumps(facet).encode()) for name, facet in facets.items()}
    return ActionDataset(name, raw, {})


def action(node, second=0, *, reads=(), lifecycle="", link=None, state=ActionState.COMPLETE):
    at = START + timedelta(seconds=second)
    inputs = tuple(map(dataset, reads))
    outputs = (dataset(TABLE, lifecycle=lifecycle, link=link),)
    name = f"app.{node}.table"
    return Action(f"{second}", name, "SQL_JOB", at, at, state, inputs, outputs)


def merged(*actions, observations=None):
    application = SparkApplication("run", "namespace", "job", actions)
    return merge(application, Outcome.COMPLETE, observations=observations)


@pytest.mark.parametrize(
    "node",
    [
        "execute_create_data_source_table_command",
        "execute_create_table_command",
        "execute_create_table_like_command",
        "create_table",
        "execute_alter_table_add_partition_command",
        "execute_alter_table_set_location_command",
        "alter_table",
        "execute_repair_table_command",
    ],
)
@pytest.mark.parametrize("state", [ActionState.COMPLETE, ActionState.FAILED])
def test_a_table_that_is_only_defined_is_no_output(node, state):
    lineage = merged(action(node, lifecycle="CREATE", state=state))
    assert lineage.outputs == ()
    assert {str(d.code) for d in lineage.degradations} == {"nothing_written"}


@pytest.mark.parametrize(
    ("node", "lifecycle"),
    [
        ("execute_create_data_source_table_as_select_command", "CREATE"),
        ("execute_create_hive_table_as_select_command", "CREATE"),
        ("atomic_create_table_as_select", "CREATE"),
        ("execute_save_into_data_source_command", "CREATE"),
        ("execute_truncate_table_command", "TRUNCATE"),
        ("execute_alter_table_rename_command", "RENAME"),
        ("execute_insert_into_hadoop_fs_relation_command", ""),
    ],
)
def test_a_table_whose_data_changes_is_an_output(node, lifecycle):
    assert [d.name for d in merged(action(node, lifecycle=lifecycle)).outputs] == [TABLE]


def test_an_output_that_is_gone_is_reported_to_be():
    seen = Observations(gone=frozenset({SOURCE, TABLE}))
    lineage = merged(action(INSERT, reads=[SOURCE]), observations=seen)
    gone = [d for d in lineage.degradations if d.code == "output_gone"]
    assert [(d.dataset, d.side) for d in gone] == [(TABLE, Side.WRITE)]
    assert [d.name for d in lineage.outputs] == [TABLE]


def test_what_an_application_is_called_makes_no_definition_of_its_writes():
    write = replace(action(INSERT), job_name=f"create_table.{INSERT}.table")
    assert [d.name for d in merged(write).outputs] == [TABLE]


def test_a_table_that_is_written_has_what_its_definition_names():
    create = action("create_table", lifecycle="CREATE", link=LINK)
    [output] = merged(create, action(INSERT, 1, reads=[SOURCE])).outputs
    assert output.symlinks == {LINK}
    assert "lifecycleStateChange" in output.facets


def test_what_is_read_of_a_table_that_was_defined_before_is_an_input():
    """Its definition put nothing there, so nothing of it is the application's own."""
    create = action("execute_create_data_source_table_command", lifecycle="CREATE")
    outputs = (dataset(DatasetName("file", "/copy")),)
    copy = replace(action(INSERT, 1, reads=[TABLE]), outputs=outputs)
    lineage = merged(create, copy)
    assert [d.name for d in lineage.inputs] == [TABLE]
    assert [d.name.name for d in lineage.outputs] == ["/copy"]
