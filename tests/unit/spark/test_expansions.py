"""Projections that Spark leaves out of the JSON of a plan; the driver's JVM is doubled."""

import json
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files
from tests.unit.spark.test_write_commands import Sequence, answers


@pytest.fixture
def fill(monkeypatch):
    """Give the observer's function as the driver has it."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    from sparklineage_observer import commands

    return commands._fill_projections


ASKED = []


class Expression(SimpleNamespace):
    """An expression that notes how often it is asked for its JSON."""

    def __str__(self):
        return self.text

    def toJSON(self):  # noqa: N802  (Spark's name)
        ASKED.append(self.text)
        return json.dumps([{"class": self.text}])


def projection(*texts):
    return Sequence(*(Expression(text=text) for text in texts))


def unlimited():
    return answers(check=None)


EXPAND = answers(
    projections=Sequence(
        projection("id#1", "amount", "amount#2"),
        projection("id#1", "cust", "cast(cust#3 as double)"),
    )
)
FILLED = [
    [[{"class": "id#1"}], [{"class": "amount"}], [{"class": "amount#2"}]],
    [[{"class": "id#1"}], [{"class": "amount"}], [{"class": "cast(cust#3 as double)"}]],
]


def tree():
    """Give a join of a relation and an Expand, below a command."""
    return [
        {"class": "Insert", "num-children": 1},
        {"class": "Join", "num-children": 2},
        {"class": "Filter", "num-children": 1},
        {"class": "Relation", "num-children": 0},
        {"class": "Expand", "num-children": 1, "projections": None},
        {"class": "Relation", "num-children": 0},
    ]


def test_projections_that_are_left_out_are_asked_for_once_each(fill):
    ASKED.clear()
    nodes = tree()
    plan = answers(children=Sequence(answers(children=Sequence(None, EXPAND))))
    fill(nodes, '"projections":null', plan, unlimited())
    assert nodes[4]["projections"] == FILLED
    assert ASKED == ["id#1", "amount", "amount#2", "cast(cust#3 as double)"]


def test_a_query_that_is_a_field_of_its_command_is_filled(fill):
    query = [{"class": "Expand", "num-children": 0, "projections": None}]
    nodes = [{"class": "SaveIntoDataSourceCommand", "num-children": 0, "query": query}]
    fill(nodes, '"projections":null', answers(query=EXPAND), unlimited())
    assert query[0]["projections"] == FILLED


def test_a_plan_without_such_nodes_costs_no_call(fill):
    fill(tree(), '"projections":[]', None, None)


def test_projections_of_other_nodes_stay_null(fill):
    nodes = [{"class": "logical.ReplaceData", "num-children": 0, "projections": None}]
    fill(nodes, '"projections":null', answers(projections=object()), unlimited())
    assert nodes[0]["projections"] is None
