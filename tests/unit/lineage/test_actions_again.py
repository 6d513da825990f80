"""Columns of writes that come again and again: they are composed anew where anything is new."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_sparklineage.lineage import actions as module
from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
from airflow_provider_sparklineage.lineage.application.accumulation import (
    Action,
    ActionState,
    SparkApplication,
)
from airflow_provider_sparklineage.lineage.columns import composition
from airflow_provider_sparklineage.lineage.merge import merge
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Outcome

START = datetime(2026, 1, 1, tzinfo=UTC)
INSERT = "app.execute_insert_into_hadoop_fs_relation_command.table"


def dataset(name, **facets):
    raw = {name: msgspec.Raw(json.dumps(facet).encode()) for name, facet in facets.items()}
    return ActionDataset(DatasetName("file", f"/{name}"), raw, {})


def write(number, source, column, target, *, overwrites):
    """Make an action that makes column x of one dataset of a column of another."""
    at = START + timedelta(seconds=number)
    made_of = [{"namespace": "file", "name": f"/{source}", "field": column}]
    facets = {
        "columnLineage": {"fields": {"x": {"inputFields": made_of}}},
        "schema": {"fields": [{"name": "x"}]},
    }
    if overwrites:
        facets["lifecycleStateChange"] = {"lifecycleStateChange": "OVERWRITE"}
    inputs, outputs = (dataset(source),), (dataset(target, **facets),)
    return Action(str(number), INSERT, "SQL_JOB", at, at, ActionState.COMPLETE, inputs, outputs)


def merged(writes):
    made = [write(n, *of, overwrites=overwrites) for n, (*of, overwrites) in enumerate(writes)]
    return merge(SparkApplication("run", "namespace", "job", tuple(made)), Outcome.COMPLETE)


def parts(lineage):
    """Give what there is of it but the actions, in the order that events have."""
    return [
        [(d.name, d.columns and list(map(list_of, d.columns.fields.items()))) for d in side]
        for side in (lineage.inputs, lineage.outputs)
    ], lineage.degradations


def list_of(field):
    name, edges = field
    return name, list(edges.items())


NAMES = st.sampled_from(["a", "b", "c"])
WRITES = st.lists(
    st.tuples(NAMES, st.sampled_from(["x", "y"]), NAMES, st.booleans()), min_size=2, max_size=4
)


@settings(deadline=None, max_examples=100)
@given(WRITES, WRITES)
def test_a_loop_has_the_columns_that_it_has_if_nothing_is_remembered(loop, other):
    writes = [*loop, *loop, *other, *loop, *other]
    with patch.object(module._Composed, "is_of", lambda *_: False):
        expected = parts(merged(writes))
    assert parts(merged(writes)) == expected


def test_a_loop_composes_its_columns_until_nothing_changes_any_more():
    loop = [("a", "x", "b", True), ("b", "x", "c", True)]
    composed = composition.compose
    with patch.object(composition, "compose", side_effect=composed) as compose:
        lineage = merged(loop * 10)
    assert compose.call_count == 2
    [output] = [d for d in lineage.outputs if d.name.name == "/c"]
    [source] = output.columns.fields["x"]
    assert source.dataset.name == "/a"


@pytest.mark.parametrize(
    ("overwrites", "sources"),
    [
        pytest.param(True, {"/d"}, id="overwrites it"),
        pytest.param(False, {"/a", "/d"}, id="appends to it"),
    ],
)
def test_an_intermediate_that_another_write_changes_is_composed_anew(overwrites, sources):
    again = ("b", "x", "c", True)
    lineage = merged([("a", "x", "b", True), again, ("d", "x", "b", overwrites), again])
    [output] = [d for d in lineage.outputs if d.name.name == "/c"]
    assert {column.dataset.name for column in output.columns.fields["x"]} == sources
