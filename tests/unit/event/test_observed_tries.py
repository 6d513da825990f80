"""Tries of which the listener reports little, and the observer saw the rest."""

from __future__ import annotations

import json
import uuid

import msgspec
import pytest

from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.expectations import DatasetSubset
from airflow_provider_sparklineage.expectations.declared import TaskFields, declared
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.lineage.partitions.comparison import PartitionStatus
from airflow_provider_sparklineage.model.last_run import LastRun, LastRunDataset
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from tests.openlineage_spec import validate_event

APPLICATION = "1a430cb0-e4c5-4dff-9254-84949bb84288"
DT = {"field": "dt", "transform": "identity", "type": "string"}


def event(kind, second, node="", inputs=(), outputs=(), **facets):
    """Give an event of the application, or of an action if it has a node."""
    parent = {"run": {"runId": APPLICATION}, "job": {"namespace": "n", "name": "app"}}
    job_type = "SQL_JOB" if node else "APPLICATION"
    return {
        "eventType": kind,
        "eventTime": f"1970-01-01T00:00:{second:06.3f}Z",
        "run": {
            "runId": str(uuid.uuid5(uuid.NAMESPACE_URL, node)) if node else APPLICATION,
            "facets": {"parent": parent} if node else {},
        },
        "job": {
            "namespace": "n",
            "name": f"app.{node}" if node else "app",
            "facets": {"jobType": {"jobType": job_type}},
        },
        "inputs": [{"namespace": "file", "name": name} for name in inputs],
        "outputs": [{"namespace": "file", "name": n, "facets": facets} for n in outputs],
    }


def action(started, ended, node, inputs=(), outputs=(), **facets):
    return [
        event("START", started, node, inputs, outputs, **facets),
        event("COMPLETE", ended, node, inputs, outputs, **facets),
    ]


def scan(name, *days, table=None):
    layout = {"base": f"file:/lake/{name}", "dimensions": [DT], "partitions": [[d] for d in days]}
    found = {"node": "FileSourceScanExec", "roots": [f"file:/lake/{name}"], "layouts": [layout]}
    return found | {"partition_filters": ["dt = x"], "table": table}


def put(name, mode, *days, **more):
    layout = {"base": f"file:/lake/{name}", "dimensions": [DT], "partitions": [[d] for d in days]}
    found = {"node": "x", "path": f"file:/lake/{name}", "mode": mode, "how": "exact"}
    return found | {"layouts": [layout]} | more


def query(started, ended, *reads, writes=(), function="count", **more):
    span = {"started": round(started * 1000), "ended": round(ended * 1000)}
    found = {"kind": "query", "function": function, "reads": list(reads), "writes": list(writes)}
    return found | span | more


@pytest.fixture
def bundle(tmp_path):
    """Make a bundle of an application with some actions, and what was observed of it."""

    def made(actions, *records, outcome="COMPLETE", **manifest):
        known = Manifest(APPLICATION, outcome=outcome, injected=("py_files",), **manifest)
        bundle = capture.create(tmp_path / "captures", known)
        events = [event("START", 0), *actions, event("COMPLETE", 59)]
        bundle.events_path.write_text("".join(f"{json.dumps(e)}\n" for e in events))
        bundle.observations_path.write_text("".join(f"{json.dumps(r)}\n" for r in records))
        return capture.load(bundle.path)

    return made


def partitions(datasets):
    return {
        d.name.name.removeprefix("/lake/"): d.subset and set(map(str, d.subset.partitions))
        for d in datasets
    }


def codes(lineage):
    return [str(d.code) for d in lineage.degradations]


READS = scan("orders", "1"), scan("rates", "5")


@pytest.mark.parametrize("failed", [True, False], ids=["in its query", "after it"])
def test_a_try_that_fails_has_read_what_it_read(bundle, failed):
    made = bundle([], query(1, 2, *READS, failed=failed), outcome="FAIL")
    lineage = task_lineage(made)
    assert partitions(lineage.inputs) == {"orders": {"dt=1"}, "rates": {"dt=5"}}
    assert codes(lineage) == ["action_failed"] * failed + ["nothing_written"]
    validate_event(merged_event(made, lineage))


def test_what_a_failed_try_has_read_is_not_replaced_by_what_the_last_run_read(bundle):
    schema = {"schema": msgspec.Raw(b'{"fields":[{"name":"x"}]}')}
    last = LastRun(
        "last",
        (LastRunDataset("file", "/lake/older", schema),),
        (LastRunDataset("file", "/lake/out", schema),),
    )
    lineage = task_lineage(bundle([], query(1, 2, *READS), outcome="FAIL", last_known=last))
    assert set(partitions(lineage.inputs)) == {"orders", "rates"}
    assert set(partitions(lineage.outputs)) == {"out"}
    [note] = [d for d in lineage.degradations if d.code == "last_known"]
    assert "no outputs of this try" in note.message


def test_a_hidden_write_that_failed_is_a_bare_output(bundle):
    command = {"node": "UpdateCommand", "target": {"path": "file:/lake/table"}}
    made = bundle([], query(1, 2, *READS, command=command, failed=True), outcome="FAIL")
    lineage = task_lineage(made)
    [table] = lineage.outputs
    assert (table.name.name, table.facets, table.columns) == ("/lake/table", {}, None)
    assert "action_failed" in codes(lineage)
    [entry] = [
        d
        for d in merged_event(made, lineage)["run"]["facets"]["sparkLineage_capture"]["datasets"]
        if d["side"] == "write"
    ]
    assert entry["failed"] is True


@pytest.mark.parametrize(
    "declaration",
    [
        pytest.param(DatasetSubset("/lake/orders", {"dt": "1"}), id="by path"),
        pytest.param(DatasetSubset("shop.orders", {"dt": "1"}), id="by table"),
    ],
)
def test_a_declaration_of_what_was_only_counted_matches(bundle, declaration):
    known = declared(TaskFields(reads=[declaration]), Manifest(APPLICATION).locator, lambda _: None)
    counted = query(1, 2, scan("orders", "1", table="spark_catalog.shop.orders"))
    lineage = task_lineage(
        bundle(
            [],
            counted,
            expectations=known.expectations,
            declared_inputs=known.inputs,
        )
    )
    [orders] = lineage.inputs
    assert orders.check.status is PartitionStatus.MATCHED
    assert codes(lineage) == ["nothing_written"]


OVERWRITE = {"lifecycleStateChange": {"lifecycleStateChange": "OVERWRITE"}}


def test_the_old_content_of_what_is_collected_and_then_overwritten_is_an_input(bundle):
    overwrite = action(3, 4, "execute_insert.lake_state", (), ["/lake/state"], **OVERWRITE)
    lineage = task_lineage(
        bundle(
            overwrite,
            query(1, 2, scan("state", "1")),
            query(3, 4, writes=[put("state", "whole", "1", "2")]),
        )
    )
    assert partitions(lineage.inputs) == {"state": {"dt=1"}}
    assert partitions(lineage.outputs) == {"state": {"dt=1", "dt=2"}}


def test_the_new_content_of_what_is_written_and_then_counted_is_none(bundle):
    write = action(1, 2, "execute_insert.lake_state", (), ["/lake/state"], **OVERWRITE)
    lineage = task_lineage(
        bundle(
            write,
            query(1, 2, writes=[put("state", "whole", "1", "2")]),
            query(3, 4, scan("state", "1")),
        )
    )
    assert partitions(lineage.inputs) == {}
    assert partitions(lineage.outputs) == {"state": {"dt=1", "dt=2"}}


def test_an_output_that_is_counted_in_the_end_is_no_intermediate(bundle):
    """Though what was written only to be read back is left out of the outputs here."""
    lineage = task_lineage(
        bundle(
            [],
            query(1, 2, writes=[put("staging", "whole", "1")]),
            query(3, 4, scan("staging", "1"), writes=[put("out", "whole", "1")]),
            query(5, 6, scan("out", "1")),
            intermediate_datasets="drop",
        )
    )
    assert set(partitions(lineage.outputs)) == {"out"}


def test_what_was_read_in_a_loop_has_all_partitions_that_were_read(bundle):
    counts = [query(n, n + 0.5, scan("orders", str(n))) for n in range(1, 50)]
    lineage = task_lineage(bundle([], *counts))
    assert partitions(lineage.inputs) == {"orders": {f"dt={n}" for n in range(1, 50)}}


def test_a_hidden_write_is_an_output_with_its_partitions(bundle):
    made = bundle([], query(1, 2, *READS, writes=[put("out", "dynamic", "9")]))
    lineage = task_lineage(made)
    assert partitions(lineage.inputs) == {"orders": {"dt=1"}, "rates": {"dt=5"}}
    assert partitions(lineage.outputs) == {"out": {"dt=9"}}
    assert "observation_untied" not in codes(lineage)
    validate_event(merged_event(made, lineage))


def test_by_a_clock_that_was_put_back_no_query_is_an_action(bundle):
    """Actions and queries belong together by time alone."""
    back = [*action(10, 11, "one"), *action(3, 4, "two")]
    lineage = task_lineage(bundle(back, query(5, 6, *READS)))
    assert lineage.inputs == ()
    assert "clock_went_backwards" in codes(lineage)


@pytest.mark.parametrize(
    ("duration", "inputs"),
    [
        pytest.param(1000, {"orders"}, id="as long as the write"),
        pytest.param(1001, {"orders"}, id="but for a millisecond"),
        pytest.param(1100, {"orders", "staging"}, id="as long as no action"),
        pytest.param(940, {"orders", "staging"}, id="as long as an action of another time"),
        pytest.param(0, {"orders", "staging"}, id="of an older observer"),
    ],
)
def test_a_query_that_is_as_long_as_an_action_ended_when_that_did(bundle, duration, inputs):
    """The observer counts from when Spark began to optimise it: 130 ms late, so is its end."""
    actions = [
        *action(1, 2, "first", ["/lake/orders"], ["/lake/staging"]),
        *action(2.04, 2.98, "second", ["/lake/staging"], ["/lake/out"]),
    ]
    lineage = task_lineage(
        bundle(
            actions,
            query(
                1.13,
                2.13,
                scan("orders", "1"),
                writes=[put("staging", "whole", "1")],
                duration=duration,
            ),
            query(
                2.05, 2.99, scan("staging", "1"), writes=[put("out", "whole", "1")], duration=940
            ),
        )
    )
    assert partitions(lineage.inputs).keys() == inputs


def test_a_query_that_is_as_long_as_two_actions_at_a_time_has_its_own_end(bundle):
    actions = [
        *action(1, 2, "first", ["/lake/orders"], ["/lake/staging"]),
        *action(1.1, 2.1, "other", ["/lake/rates"], ["/lake/copy"]),
        *action(2.14, 2.98, "second", ["/lake/staging"], ["/lake/out"]),
    ]
    write = query(
        1.2, 2.2, scan("orders", "1"), writes=[put("staging", "whole", "1")], duration=1000
    )
    read = query(2.15, 2.98, scan("staging", "1"), writes=[put("out", "whole", "1")])
    assert "staging" in partitions(task_lineage(bundle(actions, write, read)).inputs)


def test_what_cannot_be_named_is_reported(bundle):
    nameless = {"node": "BatchScanExec", "table": "a topic", "cut": "no folder"}
    lineage = task_lineage(bundle([], query(1, 2, nameless)))
    assert lineage.inputs == ()
    assert codes(lineage) == ["observation_untied", "nothing_written"]
