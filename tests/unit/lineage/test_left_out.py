"""What merging leaves out when time or memory is up, and that it claims nothing wrong for it."""

from __future__ import annotations

import itertools
import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from airflow_provider_sparklineage.event.pipeline import events_of
from airflow_provider_sparklineage.lineage.application import accumulation
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.lineage.partitions.selection import Selected
from airflow_provider_sparklineage.model.allowance import Limit
from airflow_provider_sparklineage.model.representation import Adaptation
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from tests.allowances import lasting

RUN = "018f0000-0000-7000-8000-000000000000"
BEGIN = datetime(2024, 5, 6, tzinfo=UTC)


def line(run_id, minute, kind, inputs=(), outputs=()):
    event = {
        "eventTime": (BEGIN + timedelta(minutes=minute)).isoformat(),
        "eventType": kind,
        "run": {"runId": run_id, "facets": {"parent": {"run": {"runId": RUN}}}},
        "job": {"namespace": "tests", "name": "job.execute_insert_into_hadoop_fs_relation_command"},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }
    return msgspec.json.encode(event) + b"\n"


def dataset(name, columns, *, made_of=None):
    facets = {"schema": {"fields": [{"name": f"c{n}"} for n in range(columns)]}}
    if made_of:
        sources = [
            {
                "namespace": "file",
                "name": made_of,
                "field": f"c{n}",
                "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}],
            }
            for n in range(columns)
        ]
        fields = {f"c{n}": {"inputFields": sources} for n in range(columns)}
        facets["columnLineage"] = {"fields": fields}
        facets["lifecycleStateChange"] = {"lifecycleStateChange": "OVERWRITE"}
    return {"namespace": "file", "name": name, "facets": facets}


@pytest.fixture
def chain(tmp_path):
    """Make the bundle of a chain of tables: /0 is read, each is made of the one before."""

    def chain(tables, columns):
        bundle = capture.create(tmp_path, Manifest(application_run_id=RUN, outcome="COMPLETE"))
        lines = [line(RUN, 0, "START")]
        for n in range(tables):
            read = dataset(f"/{n}", columns)
            written = dataset(f"/{n + 1}", columns, made_of=f"/{n}")
            lines.append(line(f"run-{n}", 2 * n, "START", [read], []))
            lines.append(line(f"run-{n}", 2 * n + 1, "COMPLETE", [read], [written]))
        lines.append(line(RUN, 1000, "COMPLETE"))
        bundle.events_path.write_bytes(b"".join(lines))
        return bundle

    return chain


def merged(bundle, looks):
    return task_lineage(capture.load(bundle.path), lasting(looks))


def sources(lineage):
    """Give the columns of each output, with what they are made of."""
    return {
        d.name.name: {name: set(edges) for name, edges in d.columns.fields.items()}
        for d in lineage.outputs
        if d.columns
    }


def messages(lineage):
    return [d.message for d in lineage.degradations if d.code == "collection_cut"]


# --- time -----------------------------------------------------------------------------------------


def test_wherever_time_is_up_datasets_stay_or_their_actions_are_declared_to_be_missing(chain):
    bundle = chain(tables=3, columns=25)
    full = task_lineage(bundle)
    of_full = sources(full)
    cut_within_columns = 0
    for looks in itertools.count():
        lineage = merged(bundle, looks)
        found = sources(lineage)
        outputs = {d.name for d in lineage.outputs}
        if not messages(lineage):
            assert found == of_full
            assert outputs == {d.name for d in full.outputs}
            break
        assert looks < 500
        cut_within_columns += len(outputs) == 3 and len(found) < 3
        for name, columns in found.items():
            # What there is, is all of it: no column lacks some of its sources.
            assert columns.keys() == of_full[name].keys()
            for edges in columns.values():
                assert len({c.field for c in edges}) == 25
    assert cut_within_columns > 2


def test_no_column_of_a_table_is_known_once_those_of_one_write_are_not(chain, monkeypatch):
    monkeypatch.setattr(Limit, "TRANSFORMATIONS", 250)
    lineage = task_lineage(chain(tables=3, columns=10))
    assert [d.name.name for d in lineage.outputs] == ["/1", "/2", "/3"]
    assert sources(lineage).keys() == {"/1"}
    [message] = messages(lineage)
    assert message == (
        "The column lineage of 2 dataset(s) was left out (/2, /3), because the job has more than "
        "250 transformations of columns."
    )
    codes = {d.code for d in lineage.degradations}
    assert "column_lineage_missing" not in codes  # it is not that the listener reported none


def test_columns_that_a_loop_writes_again_and_again_take_room_once(tmp_path, monkeypatch):
    monkeypatch.setattr(Limit, "TRANSFORMATIONS", 250)
    bundle = capture.create(tmp_path, Manifest(application_run_id=RUN, outcome="COMPLETE"))
    read, written = dataset("/0", 10), dataset("/1", 10, made_of="/0")
    lines = [line(RUN, 0, "START")]
    for n in range(5):
        lines.append(line(f"run-{n}", 2 * n, "START", [read], []))
        lines.append(line(f"run-{n}", 2 * n + 1, "COMPLETE", [read], [written]))
    bundle.events_path.write_bytes(b"".join([*lines, line(RUN, 1000, "COMPLETE")]))
    lineage = task_lineage(bundle)
    assert messages(lineage) == []
    assert len(sources(lineage)["/1"]) == 10


def test_an_event_is_made_with_the_names_alone_when_there_is_no_time_for_more(chain):
    bundle = chain(tables=3, columns=10)
    lineage = task_lineage(bundle)
    event = events_of(lineage, Adaptation(), bundle.report, allowance=lasting(0)).kept
    assert [d["name"] for d in event["outputs"]] == ["/1", "/2", "/3"]
    assert [d["facets"] for d in event["outputs"]] == [{}, {}, {}]
    entries = event["run"]["facets"]["sparkLineage_capture"]["degradations"]
    assert any("The facets of 4 dataset(s) were left out" in e["message"] for e in entries)


def test_partitions_that_there_is_no_time_for_are_not_known(chain):
    bundle = chain(tables=1, columns=2)
    at = int(BEGIN.timestamp() * 1000)
    layout = {
        "base": "/0",
        "dimensions": [{"field": "dt"}],
        "partitions": [[str(n)] for n in range(2000)],
    }
    read = {"node": "scan", "roots": ["/0"], "partition_filters": ["dt"], "layouts": [layout]}
    record = {"kind": "query", "started": at, "ended": at + 1000, "reads": [read]}
    bundle.observations_path.write_text(json.dumps(record) + "\n")
    [full] = task_lineage(bundle).inputs
    assert len(full.subset.partitions) == 2000
    cut = 0
    for looks in itertools.count():
        lineage = merged(bundle, looks)
        if not messages(lineage):
            assert lineage.inputs[0].subset == full.subset
            break
        assert looks < 200
        known = [d for d in lineage.inputs if d.subset]
        assert all(d.subset == full.subset for d in known)
        cut += len(lineage.inputs) > len(known)
    assert cut


def test_locations_of_partitions_that_there_is_no_time_for_are_not_named(chain):
    bundle = chain(tables=1, columns=2)
    read = dataset("/0", 2)
    places = [f"/0/dt={n}" for n in range(2000)]
    read["inputFacets"] = {"subset": {"inputCondition": {"type": "location", "locations": places}}}
    written = dataset("/1", 2, made_of="/0")
    lines = [line(RUN, 0, "START"), line("run-0", 1, "COMPLETE", [read], [written])]
    bundle.events_path.write_bytes(b"".join([*lines, line(RUN, 1000, "COMPLETE")]))
    [full] = task_lineage(bundle).inputs
    assert full.selected.skipped == 2000
    looks, subsets = 0, set()
    while messages(lineage := merged(bundle, looks)):
        subsets |= {d.selected for d in lineage.inputs}
        looks += 1
    assert looks > 2000 / 100  # it is asked for all along
    assert lineage.inputs == (full,)
    assert subsets <= {Selected(), full.selected}


# --- memory ---------------------------------------------------------------------------------------


def test_a_facet_that_is_too_large_costs_the_columns_and_not_the_dataset(chain, monkeypatch):
    bundle = chain(tables=2, columns=20)
    monkeypatch.setattr(Limit, "FACET_BYTES", 2000)
    lineage = task_lineage(bundle)
    assert [d.name.name for d in lineage.outputs] == ["/1", "/2"]
    assert all(d.column_names for d in lineage.outputs)
    assert sources(lineage) == {}
    assert messages(lineage) == [
        "The events are more than merging keeps in memory, and 2 facet(s) were left out.",
        "The column lineage of 2 dataset(s) was left out (/1, /2), because what the listener "
        "reports of it is too large to be read.",
    ]


def test_facets_are_bounded_all_together(chain, monkeypatch):
    bundle = chain(tables=3, columns=10)
    facet = len(msgspec.json.encode(dataset("/1", 10, made_of="/0")["facets"]["columnLineage"]))
    monkeypatch.setattr(Limit, "FACETS_BYTES", facet + 600)
    lineage = task_lineage(bundle)
    assert sources(lineage).keys() == {"/1"}
    assert any("2 facet(s) were left out" in message for message in messages(lineage))


def test_actions_are_bounded(chain, monkeypatch):
    monkeypatch.setattr(Limit, "DATASETS", 4)
    lineage = task_lineage(chain(tables=3, columns=2))
    assert [d.name.name for d in lineage.outputs] == ["/1", "/2"]
    assert messages(lineage) == [
        "The events are more than merging keeps in memory, and 2 event(s) of further actions were "
        "left out."
    ]


def test_a_statement_that_there_is_no_room_for_may_have_written_a_part(monkeypatch):
    monkeypatch.setattr(Limit, "STATEMENTS_BYTES", 20)
    kept = accumulation.Memory()
    statements = ["INSERT INTO a", "INSERT OVERWRITE b SELECT 1", "INSERT INTO a"]
    found = [kept.statement(statement) for statement in statements]
    assert found == ["INSERT INTO a", "PARTITION (", "INSERT INTO a"]
    assert kept.left_out == {"SQL statement(s)": 1}


def test_observed_partitions_are_bounded(chain, monkeypatch):
    monkeypatch.setattr(Limit, "PARTITIONS", 3)
    bundle = chain(tables=1, columns=2)
    layout = {"base": "/0", "dimensions": [{"field": "dt"}], "partitions": [["1"]] * 4}
    read = {"node": "scan", "roots": ["/0"], "layouts": [layout]}
    bundle.observations_path.write_text(json.dumps({"kind": "query", "reads": [read]}) + "\n")
    lineage = task_lineage(bundle)
    assert lineage.inputs[0].subset is None
    assert messages(lineage) == [
        "The partitions that were observed were left out, and those that the listener reports are "
        "used, because they are more than 3."
    ]


def test_partitions_that_many_queries_read_count_once(chain, monkeypatch):
    bundle = chain(tables=1, columns=2)
    layout = {"base": "/0", "dimensions": [{"field": "dt"}], "partitions": [["1"], ["2"], ["3"]]}
    query = {"kind": "query", "reads": [{"node": "scan", "roots": ["/0"], "layouts": [layout]}]}
    bundle.observations_path.write_text((json.dumps(query) + "\n") * 4)
    # Each list takes memory, however much of it is shared.
    monkeypatch.setattr(Limit, "PARTITIONS", 3 + 1 + 1 + 1)
    assert messages(task_lineage(bundle)) == []
    monkeypatch.setattr(Limit, "PARTITIONS", 3 + 1 + 1)
    assert len(messages(task_lineage(bundle))) == 1
