"""``sparklineage schema``: what it prints of the tables of the history."""

from __future__ import annotations

import json

import jsonschema
import pytest

from airflow_provider_sparklineage.history.tables import TABLES


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_the_schema_of_a_table_describes_each_of_its_columns(run, table):
    schema = json.loads(run("schema", f"history.{table.name}").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    printed = {name: (c["sqlType"], c["description"]) for name, c in schema["properties"].items()}
    assert printed == {c.name: (c.type, c.description) for c in table.columns}


def test_the_schema_of_a_table_takes_its_rows_and_no_others(run):
    schema = json.loads(run("schema", "history.runs").out)
    validator = jsonschema.Draft202012Validator(schema)
    row = dict.fromkeys(schema["required"]) | {"run_id": "r", "map_index": -1, "is_ours": True}
    assert validator.is_valid(row)
    assert not validator.is_valid(row | {"map_index": "-1"})
    assert not validator.is_valid(row | {"other": 1})


def test_the_list_of_schemas_has_the_tables(run):
    assert {f"history.{table.name}" for table in TABLES} <= set(run("schema").out.split())
