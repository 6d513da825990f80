"""What is kept and converted has datasets as they are called, whatever a backend can hold."""

from __future__ import annotations

import json
from functools import partial

import pytest
from airflow.providers.common.compat.sdk import AirflowException
from airflow.providers.openlineage.plugins.listener import get_openlineage_listener
from airflow.providers.openlineage.plugins.macros import lineage_run_id
from airflow.providers.openlineage.utils.utils import get_task_documentation
from msgspec import Raw
from openlineage.client.event_v2 import Dataset, Job, Run, RunEvent, RunState
from openlineage.client.facet_v2 import documentation_job

from airflow_provider_sparklineage.datahub.transport import neutral_of
from airflow_provider_sparklineage.event import stored, xcom
from airflow_provider_sparklineage.event.model import name_of
from airflow_provider_sparklineage.model.last_run import LastRun, LastRunDataset
from airflow_provider_sparklineage.operators.attempt import other_runs, prepare
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT
from airflow_provider_sparklineage.settings.resolution import resolve
from tests.lineage_backend import receiving, send_by
from tests.operators.test_resend import resend  # noqa: F401  (a fixture)

pytestmark = pytest.mark.airflow

SOURCE = Dataset("s3://lake~eu", "orders")
AT_MARQUEZ = ("s3://lake_eu", "orders")
"""What Marquez has in its place."""


@pytest.fixture
def backend():
    with receiving() as server:
        yield server


@pytest.fixture
def datahub(tmp_path):
    """Give the folder of a transport to DataHub, and its configuration."""
    folder = tmp_path / "datahub"
    return folder, {"type": DATAHUB_TRANSPORT, "folder": str(folder)}


@pytest.fixture
def both(monkeypatch, backend, datahub):
    """Send to Marquez and to DataHub."""
    marquez = {"type": "http", "url": backend.url, "retry": {"total": 0}}
    send_by(monkeypatch, type="composite", transports=[marquez, datahub[1]])


@pytest.fixture
def run(spark_submit, execute, context):
    """Run a task that reads a bucket with an odd name; give it and the event that Airflow makes."""

    def of(hook="on_complete"):
        spark_submit.does("staging_chain")
        made = SparkLineageSubmitOperator(
            task_id="revenue", application="job.py", inlets=[SOURCE], doc="Revenue by day."
        )
        context["task"] = made
        made.render_template_fields(context)
        execute(made)
        lineage = getattr(made, f"get_openlineage_facets_{hook}")(
            *[context["ti"]] * (hook != "on_start")
        )
        sent = RunEvent(
            eventTime="2024-05-06T02:00:00Z",
            eventType=RunState.COMPLETE,
            run=Run(lineage_run_id(context["ti"]), facets=lineage.run_facets),
            job=Job("tests", "shop.revenue", facets={**lineage.job_facets, **documented(made)}),
            inputs=lineage.inputs,
            outputs=lineage.outputs,
        )
        return made, sent

    return of


def documented(task):
    """Give the facet that Airflow's provider makes of a task's text, over the operator's own."""
    text, kind = get_task_documentation(task)
    return {"documentation": documentation_job.DocumentationJobFacet(text, kind)}


def names(event):
    return {name_of(d) for d in event["inputs"]}


def converted(folder):
    return "".join(file.read_text() for file in folder.iterdir())


def test_marquez_gets_its_names_and_datahub_the_real_ones(both, run, backend, datahub):
    get_openlineage_listener().adapter.emit(run()[1])
    [received] = backend.events
    assert AT_MARQUEZ in names(received)
    assert (SOURCE.namespace, SOURCE.name) not in names(received)
    assert "lake~eu" in converted(datahub[0])
    assert "lake_eu" not in converted(datahub[0])


def test_what_is_kept_has_the_real_names(both, run, context, archive):
    task, _ = run()
    kept = [
        xcom.decode(context["ti"].xcoms[xcom.KEY]),
        archive.archived("shop/manual/revenue/-1/1").event,
        task.lineage_try.collected,
    ]
    for event in kept:
        assert (SOURCE.namespace, SOURCE.name) in names(event)
        assert AT_MARQUEZ not in names(event)
        capture = event["run"]["facets"]["sparkLineage_capture"]
        assert "backend_repaired" not in [d["code"] for d in capture["degradations"]]


def test_the_event_that_marquez_gets_declares_the_name_that_it_has_there(both, run):
    _, sent = run()
    [note] = [
        d
        for d in sent.run.facets["sparkLineage_capture"].degradations
        if d["code"] == "backend_repaired"
    ]
    assert note["message"].endswith(f"It is called {AT_MARQUEZ[0]}/{AT_MARQUEZ[1]}.")


def test_datahub_gets_the_users_text_of_the_job_and_not_the_one_for_marquez(both, run):
    _, sent = run()
    assert sent.job.facets["documentation"].description.endswith("\n\n—\n\nRevenue by day.")
    found = neutral_of(sent)["job"]["facets"]["documentation"]
    assert (found["description"], found["contentType"]) == ("Revenue by day.", "text/plain")


def test_where_nobody_converts_events_they_carry_nothing(run, backend, monkeypatch):
    send_by(monkeypatch, type="http", url=backend.url)
    assert neutral_of(run()[1]) is None


def test_a_start_carries_nothing(both, run):
    assert neutral_of(run(hook="on_start")[1]) is None


@pytest.mark.parametrize("way", ["composite", "named", "transform", "alone"])
def test_a_transport_to_datahub_is_found_wherever_it_stands(run, datahub, monkeypatch, way):
    below = datahub[1]
    send_by(
        monkeypatch,
        **{
            "composite": {"type": "composite", "transports": [{"type": "console"}, below]},
            "named": {"type": "composite", "transports": {"hub": below}},
            "transform": {
                "type": "transform",
                "transport": below,
                "transformer_class": "openlineage.client.transport.transform.transformers."
                "job_namespace_replace_transformer.JobNamespaceReplaceTransformer",
            },
            "alone": below,
        }[way],
    )
    assert neutral_of(run()[1]) is not None


def test_secrets_in_facets_of_others_are_hidden_in_what_is_carried(both, run):
    task, _ = run()
    current = task.lineage_try
    kept = current.events.kept
    theirs = {"_producer": "https://example.org", "password": "hunter2", "name": "x"}
    event = {**kept, "inputs": [{**kept["inputs"][0], "facets": {"theirs": theirs}}]}
    made = current.events._replace(kept=event)
    lineage = prepare.operator_lineage(made, current.adaptation, current.prepared, task)
    [source] = lineage.run_facets["sparkLineage_capture"].neutral["inputs"]
    assert source["facets"]["theirs"] == {**theirs, "password": "***"}


def test_a_defect_in_what_is_carried_costs_the_backend_nothing(both, run, caplog):
    task, sent = run()
    current = task.lineage_try
    made = current.events._replace(kept={"damaged": True})
    lineage = prepare.operator_lineage(made, current.adaptation, current.prepared, task)
    assert lineage.inputs == sent.inputs
    assert "as it is sent to another backend" in caplog.text


def test_the_next_start_has_the_names_and_facets_that_the_end_was_sent_with(both, run):
    task, sent = run()
    kept = task.lineage_try.collected
    known = other_runs.EarlierLineage(stored.last_run(kept), event=kept)
    resolved = task.lineage_try.prepared.settings
    prepared = prepare.Prepared(resolved, known, known.in_form_of(task.lineage_try.events.adapted))
    begin = prepare.expected_event(task.lineage_try.declared(task, resolved.partitioning), prepared)
    start = prepare.operator_lineage(begin, resolved.adaptation, prepared)
    assert [(d.namespace, d.name) for d in start.inputs] == [
        (d.namespace, d.name) for d in sent.inputs
    ]
    schemas = partial(map, lambda dataset: dataset.facets.get("schema"))
    assert [*schemas(start.outputs)] == [*schemas(sent.outputs)]


def test_a_run_that_fails_keeps_real_names_and_is_sent_with_those_of_the_last_run(
    both, run, spark_submit, execute
):
    before, sent = run()
    kept = before.lineage_try.collected
    known = other_runs.EarlierLineage(stored.last_run(kept), event=kept)
    spark_submit.does(exit=1)
    task = SparkLineageSubmitOperator(task_id="revenue", application="job.py")
    task.lineage_try.prepared = prepare.Prepared(
        before.lineage_try.prepared.settings,
        known,
        known.in_form_of(before.lineage_try.events.adapted),
    )
    with pytest.raises(AirflowException):
        execute(task)
    made = task.lineage_try.events
    assert names(made.kept) == names(kept)
    assert names(made.adapted) == {(d.namespace, d.name) for d in sent.inputs}
    capture = made.adapted["run"]["facets"]["sparkLineage_capture"]
    codes = [d["code"] for d in capture["degradations"]]
    assert "last_known" in codes
    assert "backend_repaired" not in codes  # that is of the run before


@pytest.mark.parametrize("backend_then", ["generic", "marquez"])
def test_gaps_are_filled_for_the_backend_that_the_job_was_submitted_with(
    both, spark_submit, execute, monkeypatch, backend_then
):
    facets = {"schema": Raw(b'{"_producer": "x", "_schemaURL": "x", "fields": []}')}
    last = LastRun("run-1", (), (LastRunDataset("s3://lake", "idle", facets),))
    spark_submit.does("staging_chain")
    task = SparkLineageSubmitOperator(
        task_id="revenue", application="job.py", outlets=[Dataset("s3://lake", "idle")]
    )
    # While the fields were rendered, Airflow could not give the settings.
    known = other_runs.EarlierLineage(last)
    task.lineage_try.prepared = prepare.Prepared(resolve(), known, known)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__BACKEND", backend_then)
    execute(task)
    [idle] = [d for d in task.lineage_try.events.kept["outputs"] if d["name"] == "idle"]
    assert ("schema" in idle["facets"]) is (backend_then == "marquez")


def test_what_is_sent_again_reaches_both_as_it_did_at_first(
    both,
    run,
    backend,
    datahub,
    resend,  # noqa: F811
):
    get_openlineage_listener().adapter.emit(run()[1])
    [first] = backend.events
    backend.events.clear()
    before = converted(datahub[0])
    assert "Revenue by day." in before
    for file in datahub[0].iterdir():
        file.unlink()
    code, *_ = resend("shop")
    assert code == 0
    start, end = backend.events
    for side in ("inputs", "outputs"):
        assert json.dumps(end[side]) == json.dumps(first[side])
    assert names(start) == names(end)
    again = converted(datahub[0])
    assert "lake~eu" in again
    assert "lake_eu" not in again
    assert "Revenue by day." in again
    assert "wrote revenue" not in again
