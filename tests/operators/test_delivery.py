"""What was not sent is marked in the archive: made with the event, gone when it was delivered."""

from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, datetime
from functools import partial

import pytest
from airflow.providers.common.compat.sdk import AirflowException
from airflow.providers.openlineage.plugins.listener import get_openlineage_listener
from airflow.providers.openlineage.plugins.macros import lineage_run_id
from airflow.sdk import DAG
from msgspec.structs import replace
from openlineage.client.event_v2 import Job, Run, RunEvent, RunState

from airflow_provider_sparklineage.event.steps import size
from airflow_provider_sparklineage.model.representation import Answered
from airflow_provider_sparklineage.operators import partition_check
from airflow_provider_sparklineage.operators.attempt import publish
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT
from tests.lineage_backend import receiving, send_by
from tests.loopback import Handler, serving
from tests.unit.datahub.gms import Scripted, gms

pytestmark = pytest.mark.airflow

NAME = "shop/manual/revenue/-1/1"
RETRY = {"total": 0}


@pytest.fixture
def backend():
    with receiving() as server:
        yield server


@pytest.fixture
def transport(monkeypatch):
    return partial(send_by, monkeypatch)


@pytest.fixture
def is_marked(archive):
    return lambda: [entry.name for entry in archive.unsent()] == [NAME]


def operator(**kwargs):
    return SparkLineageSubmitOperator(task_id="revenue", application="job.py", **kwargs)


def deliver(task, context, run_id=None):
    """Send the event as Airflow's provider does: hook and client in one process."""
    lineage = task.get_openlineage_facets_on_complete(context["ti"])
    event = RunEvent(
        eventTime="2024-05-06T02:00:00Z",
        eventType=RunState.COMPLETE,
        run=Run(run_id or lineage_run_id(context["ti"]), facets=lineage.run_facets),
        job=Job("tests", "shop.revenue", facets=lineage.job_facets),
        inputs=lineage.inputs,
        outputs=lineage.outputs,
    )
    get_openlineage_listener().adapter.emit(event)


def test_an_event_is_marked_until_it_has_arrived(
    spark_submit, execute, context, backend, transport, is_marked
):
    transport(type="http", url=backend.url, retry=RETRY)
    spark_submit.does("staging_chain")
    task = operator()
    execute(task)
    assert is_marked()
    deliver(task, context)
    assert len(backend.events) == 1
    assert not is_marked()


@pytest.mark.parametrize("status", [500, 422, 404])
def test_the_mark_stays_if_the_backend_does_not_take_it(
    spark_submit, execute, context, backend, transport, is_marked, status
):
    backend.status = status
    transport(type="http", url=backend.url, retry=RETRY)
    task = operator()
    execute(task)
    deliver(task, context)
    assert is_marked()


def test_the_mark_stays_if_nobody_listens(spark_submit, execute, context, transport, is_marked):
    transport(type="http", url="http://127.0.0.1:9", retry=RETRY)
    task = operator()
    execute(task)
    deliver(task, context)
    assert is_marked()


def test_the_mark_stays_if_the_process_ends_before(spark_submit, execute, transport, is_marked):
    transport(type="http", url="http://127.0.0.1:9")
    execute(operator())
    assert is_marked()


def test_the_mark_of_a_failed_try_goes_with_its_event(
    spark_submit, execute, context, backend, transport, is_marked
):
    transport(type="http", url=backend.url, retry=RETRY)
    spark_submit.does(exit=1)
    task = operator()
    with pytest.raises(AirflowException):
        execute(task)
    assert is_marked()
    deliver(task, context)
    assert not is_marked()


def test_an_event_of_another_run_is_not_taken_for_it(
    spark_submit, execute, context, backend, transport, is_marked
):
    transport(type="http", url=backend.url, retry=RETRY)
    task = operator()
    execute(task)
    deliver(task, context, run_id="00000000-0000-7000-8000-000000000009")
    assert is_marked()
    deliver(task, context)
    assert not is_marked()


def test_the_client_is_as_it_was_when_the_event_has_arrived(
    spark_submit, execute, context, backend, transport
):
    transport(type="http", url=backend.url, retry=RETRY)
    task = operator()
    execute(task)
    client = get_openlineage_listener().adapter.get_or_create_openlineage_client()
    before = client.emit
    deliver(task, context)
    assert client.emit == before


@pytest.mark.parametrize(
    "transport_of",
    [
        lambda url: {"type": "async_http", "url": url},
        lambda url: {"type": "composite", "transports": [{"type": "async_http", "url": url}]},
        lambda _: {"type": "noop"},
        lambda _: {"type": "my.module.Transport"},
    ],
    ids=["sends later", "sends later to several", "sends nothing", "nobody knows"],
)
def test_where_nobody_can_tell_whether_it_arrived_nothing_is_marked(
    spark_submit, execute, archive, transport, transport_of
):
    transport(**transport_of("http://127.0.0.1:9"))
    execute(operator())
    assert archive.unsent() == []
    assert archive.archived(NAME).sending


# --- the time of the answer -----------------------------------------------------------------------


@pytest.fixture
def takes(monkeypatch):
    """Let the client wait some seconds, by its clock, for the answer to an event."""

    def takes(seconds):
        ticks = iter((0.0, seconds))
        monkeypatch.setattr(publish, "_clock", lambda: next(ticks))

    return takes


def limit_of(event):
    """Find the limit in the messages of an event."""
    capture = event["run"]["facets"]["sparkLineage_capture"]
    found = [re.search(r"at most ([\d,]+),", d["message"]) for d in capture["degradations"]]
    return {match[1] for match in found if match}


def test_the_next_run_sends_as_many_columns_as_the_last_one_was_answered_in_time(
    spark_submit, execute, context, backend, transport, archive, takes, monkeypatch
):
    monkeypatch.setattr(size, "_LEAST", 1000)  # the job has few columns
    transport(type="http", url=backend.url, retry=RETRY)
    spark_submit.does("staging_chain")
    for seconds in (9.0, 1.0):
        takes(seconds)
        task = operator()
        task.lineage_try.prepare(context)  # as rendering does
        execute(task)
        deliver(task, context)
        assert archive.answered(NAME).seconds == seconds
    whole, less = backend.events
    answered = archive.answered(NAME)
    assert limit_of(whole) == set()
    assert limit_of(less) == {str(answered.limit)}
    assert answered.columns <= answered.limit < answered.slow == size.count_columns(whole)
    assert not answered.is_whole
    assert "detail_dropped" not in json.dumps(archive.archived(NAME).event)


def test_the_time_stays_if_nobody_listens(spark_submit, execute, context, transport, archive):
    before = Answered(100, 2, 3000, is_whole=True, seconds=0.5)
    archive.note_answered(NAME, before)
    transport(type="http", url="http://127.0.0.1:9", retry=RETRY)
    task = operator()
    execute(task)
    deliver(task, context)
    assert archive.answered(NAME) == before


def test_while_no_answer_has_come_the_event_counts_as_not_answered(
    spark_submit, execute, context, transport, archive
):
    class Waiting(Handler):
        def post(self):
            self.body()
            meanwhile.append(archive.answered(NAME))
            self.answer(201)

    meanwhile = []
    with serving(Waiting) as server:
        transport(type="http", url=server.url, retry=RETRY)
        task = operator()
        execute(task)
        deliver(task, context)
    [answered] = meanwhile
    assert answered.seconds is None
    assert archive.answered(NAME) == replace(answered, seconds=archive.answered(NAME).seconds)
    assert archive.answered(NAME).seconds > 0


def test_with_a_limit_of_the_user_nothing_is_measured(
    spark_submit, execute, context, backend, transport, archive, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__MAX_COLUMNS", "3001")
    transport(type="http", url=backend.url, retry=RETRY)
    task = operator()
    execute(task)
    deliver(task, context)
    assert len(backend.events) == 1
    assert archive.answered(NAME) is None


@pytest.mark.parametrize("kind", ["console", "file"])
def test_other_transports_that_can_be_watched(
    spark_submit, execute, context, transport, is_marked, kind, tmp_path
):
    transport(type=kind, log_file_path=str(tmp_path / "events"), append=True)
    task = operator()
    execute(task)
    assert is_marked()
    deliver(task, context)
    assert not is_marked()


DATAHUB = {"type": DATAHUB_TRANSPORT, "timeout": 0.5}


def test_the_mark_goes_when_datahub_has_all_of_the_event(
    spark_submit, execute, context, transport, is_marked
):
    with gms(token=None) as datahub:
        transport(**DATAHUB, server=datahub.url)
        spark_submit.does("staging_chain")
        task = operator()
        execute(task)
        assert is_marked()
        deliver(task, context)
    assert datahub.stored
    assert not is_marked()


def test_the_mark_stays_if_datahub_did_not_take_the_event(
    spark_submit, execute, context, transport, is_marked
):
    with gms(always=Scripted(503)) as datahub:
        transport(**DATAHUB, server=datahub.url)
        spark_submit.does("staging_chain")
        task = operator()
        execute(task)
        deliver(task, context)
    assert is_marked()


@pytest.mark.parametrize(("datahub_is_up", "status", "stays"), [
    (True, 201, False), (False, 201, True), (True, 500, True), (False, 500, True)
])  # fmt: skip
def test_of_several_places_all_have_to_take_the_event(
    spark_submit, execute, context, backend, transport, is_marked, datahub_is_up, status, stays
):
    backend.status = status
    with gms(always=None if datahub_is_up else Scripted(503), token=None) as datahub:
        marquez = {"type": "http", "url": backend.url, "retry": RETRY}
        children = {"datahub": {**DATAHUB, "server": datahub.url}, "marquez": marquez}
        transport(type="composite", transports=children)
        spark_submit.does("staging_chain")
        task = operator()
        execute(task)
        assert is_marked()
        deliver(task, context)
    assert len(backend.events) == 1
    assert bool(datahub.stored) == datahub_is_up
    assert is_marked() == stays


def test_a_client_that_cannot_be_made_sends_nothing(
    spark_submit, execute, context, monkeypatch, is_marked
):
    monkeypatch.delenv("AIRFLOW__OPENLINEAGE__TRANSPORT")
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID", "missing")
    monkeypatch.setattr(get_openlineage_listener().adapter, "_client", None)
    task = operator()
    execute(task)
    assert task.get_openlineage_facets_on_complete(context["ti"]).run_facets
    assert is_marked()


def test_without_a_transport_nothing_is_marked_and_it_can_be_sent_later(
    spark_submit, execute, monkeypatch, archive
):
    monkeypatch.setattr("airflow.providers.openlineage.conf.is_disabled", lambda: True)
    execute(operator())
    assert archive.unsent() == []
    assert archive.archived(NAME).sending


@pytest.mark.parametrize("control", ["emit", "extract_operator_metadata"])
def test_what_airflows_policy_holds_back_is_neither_marked_nor_for_sending(
    spark_submit, execute, context, monkeypatch, archive, control
):
    path = f"{SparkLineageSubmitOperator.__module__}.{SparkLineageSubmitOperator.__name__}"
    rule = {"scope": {"operator": path}, "controls": {control: False}}
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__EMISSION_POLICY", json.dumps([rule]))
    task = operator()
    context["task"] = task
    execute(task)
    assert archive.unsent() == []
    assert archive.archived(NAME).sending is None


def test_what_a_person_ended_is_neither_marked_nor_for_sending(
    spark_submit, execute, context, monkeypatch, archive
):
    task = operator()

    def ended(*_):
        task.lineage_try.deadline.killed()
        return []

    monkeypatch.setattr(partition_check, "follow_up", ended)
    states = {context["ti"].run_id: {"revenue": "failed"}}
    monkeypatch.setattr(context["ti"], "get_task_states", lambda **_: states, raising=False)
    execute(task)
    assert archive.unsent() == []
    assert archive.archived(NAME).sending is None


def test_what_airflow_adds_is_kept_with_the_event(spark_submit, execute, context, archive):
    started = datetime(2024, 5, 7, 1, tzinfo=UTC)
    context["ti"].start_date = started
    context["dag_run"].data_interval_start = datetime(2024, 5, 6, tzinfo=UTC)
    context["dag_run"].data_interval_end = datetime(2024, 5, 7, tzinfo=UTC)
    context["task"] = task = operator(doc_md="Revenue by segment.")
    spark_submit.does("staging_chain")
    execute(task)
    sending = archive.archived(NAME).sending
    assert sending["started"] == started.isoformat()
    parent = sending["runFacets"]["parent"]
    assert (parent["job"]["namespace"], parent["job"]["name"]) == ("tests", "shop")
    assert parent["run"]["runId"] == spark_submit.given.conf["spark.openlineage.rootParentRunId"]
    assert sending["runFacets"]["nominalTime"]["nominalStartTime"] == "2024-05-06T00:00:00+00:00"
    assert sending["jobFacets"]["jobType"]["jobType"] == "TASK"
    text = sending["jobFacets"]["documentation"]["description"]
    assert text == task.doc
    assert text.endswith("Revenue by segment.")


def test_the_try_is_kept_with_the_event_whatever_an_executor_is_configured_with(
    spark_submit, execute, context, archive
):
    context["task"] = task = operator(doc_md="Revenue.", executor_config={"pod": object()})
    context["dag"] = DAG("shop", schedule=None)
    spark_submit.does("staging_chain")
    execute(task)
    of_try = archive.archived(NAME).sending["runFacets"]["airflow"]
    assert of_try["taskInstance"]["try_number"] == context["ti"].try_number
    assert of_try["task"]["executor_config"] == {"pod": "<<non-serializable: object>>"}


def test_no_secret_of_a_text_is_kept(spark_submit, execute, context, archive):
    from airflow.sdk.log import mask_secret

    # Of all that tests have masked in this process, the masker takes the first that fits.
    secret = f"key-of-{uuid.uuid4().hex}"
    mask_secret(secret)
    context["task"] = task = operator(doc_md=f"The key is {secret}.")
    execute(task)
    sending = archive.archived(NAME).sending
    assert "The key is ***." in sending["jobFacets"]["documentation"]["description"]
    assert secret not in json.dumps(sending)


def test_a_client_that_is_not_known_gets_the_event_all_the_same(
    spark_submit, execute, context, monkeypatch, is_marked
):
    class Client:
        __slots__ = ("seen",)

        def emit(self, event):
            self.seen = event

    client = Client()
    monkeypatch.setattr(get_openlineage_listener().adapter, "_client", client)
    spark_submit.does("staging_chain")
    task = operator()
    execute(task)
    lineage = task.get_openlineage_facets_on_complete(context["ti"])
    assert lineage.outputs
    client.emit(lineage)
    assert client.seen is lineage
    assert is_marked()


def test_a_provider_that_is_not_known_costs_nothing_but_the_sending(
    spark_submit, execute, context, archive
):
    del context["dag_run"].clear_number
    context["ti"].dag_run.clear_number = 0
    del context["dag_run"]
    execute(operator())
    assert archive.archived(NAME).sending is None
    assert "sparklineage" in context["ti"].xcoms
