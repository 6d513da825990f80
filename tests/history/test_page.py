"""What the page asks, of a store that was built from a simulated world."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.plugins.history import graph, partitions, plans
from airflow_provider_sparklineage.plugins.history.asking import History
from airflow_provider_sparklineage.plugins.history.datasets import Catalog
from airflow_provider_sparklineage.plugins.history.texts import partition_of
from airflow_provider_sparklineage.plugins.history.visibility import Visibility
from tests.history import events
from tests.history.simulation import world

ALL = Visibility(lambda _: True, lambda _: True, frozenset)
NOTHING = Visibility(lambda _: False, lambda _: False, frozenset)


@pytest.fixture(scope="module", params=range(3))
def history(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("history")
    events.write_archive(world(request.param, 20), folder / "archive")
    Store.create(str(folder / "store")).build([source_of(str(folder / "archive"))])
    opened = History(str(folder / "store"))
    yield opened
    opened.close()


@pytest.fixture
def datasets(history):
    found = Catalog(history).search("", ALL)
    assert found["count"] == len(found["datasets"]) > 1
    return [(one["namespace"], one["name"]) for one in found["datasets"]]


def test_partitions_that_are_stale_are_those_of_the_query(history, datasets):
    for dataset in datasets:
        found = json.loads(json.dumps(partitions.of(dataset, history, ALL)))
        shown = found["partitions"]
        assert len(shown["names"]) == len(shown["states"]) == len(set(shown["names"]))
        marked = {
            n for n, state in zip(shown["names"], shown["states"], strict=True) if state == "s"
        }
        assert {partition_of(one["partition"]) for one in history.stale(dataset)} <= marked
        assert bool(marked) == bool(found["causes"])


def test_each_partition_has_a_graph_and_plans(history, datasets):
    for dataset in datasets:
        shown = partitions.of(dataset, history, ALL)["partitions"]
        there = zip(shown["names"], shown["states"], strict=True)
        for name in [name for name, state in there if state != "n"][:5]:
            wanted = graph.Wanted(dataset, name or None)
            found = json.loads(json.dumps(graph.of(wanted, history, ALL)))
            assert found["upstream"]["hidden"] == found["downstream"]["hidden"] == 0
            assert json.dumps(plans.of(wanted, history, ALL))


def test_who_may_see_no_dag_finds_nothing_that_a_dag_did(history, datasets):
    runs = {row["job"] for row in history.rows("SELECT job FROM runs WHERE dag_id IS NOT NULL")}
    assert runs
    for dataset in datasets:
        shown = json.dumps(partitions.of(dataset, history, NOTHING))
        assert [job for job in runs if f'"{job}"' in shown] == []
