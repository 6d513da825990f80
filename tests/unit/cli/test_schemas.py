"""``sparklineage schema``: what it prints of the tables and the answers of the history."""

from __future__ import annotations

import json

import jsonschema
import pytest

from airflow_provider_sparklineage.cli.schemas import ANSWERS
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


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ANSWERS)
def test_the_schema_of_an_answer_is_one_and_refuses_other_keys(run, name):
    schema = json.loads(run("schema", f"history.{name}").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert all(one["additionalProperties"] is False for one in schema["$defs"].values())
    assert not jsonschema.Draft202012Validator(schema).is_valid({})


def test_the_schema_of_a_hop_has_its_keys_in_their_order_and_says_what_they_mean(run):
    hop = json.loads(run("schema", "history.trace").out)["$defs"]["Hop"]
    assert hop["required"][:6] == [
        "depth", "dataset", "partition", "column", "run", "transformations",
    ]  # fmt: skip
    assert hop["properties"]["run"]["description"] == (
        "the run that wrote the version; null if no such run is known"
    )
    assert hop["description"] == (
        "A version of a partition of which the question's subject was made, or one made of it."
    )


def test_the_list_of_schemas_has_the_answers(run):
    assert {f"history.{name}" for name in ANSWERS} <= set(run("schema").out.split())
