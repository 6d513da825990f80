"""Spark's own events, made ready to be sent on, and sent in order through any transport."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.event import emitter, relay, sending
from airflow_provider_sparklineage.event.relay import fit_to_pass_on
from airflow_provider_sparklineage.model.exceptions import DeliveryError
from tests.conftest import golden

CASES = ("staging_chain", "failing_action", "iceberg_merge", "catalog_tables")


def lines_of(case):
    return golden(case).read_bytes().splitlines(keepends=True)


def no_mask(text):
    return text


def an_event(**facets):
    return {
        "eventTime": "2024-05-06T00:00:00Z",
        "eventType": "COMPLETE",
        "producer": "https://example.org/spark",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": "00000000-0000-7000-8000-000000000001", "facets": facets},
        "job": {"namespace": "spark", "name": "app"},
    }


# --- what is sent ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_events_are_prepared_in_their_order_and_in_full(case):
    prepared = relay.prepare(golden(case), no_mask)
    assert prepared.why == ""
    for line, original in zip(prepared.lines, lines_of(case), strict=True):
        event, recorded = json.loads(line), json.loads(original)
        exception = recorded["run"]["facets"].get("spark.exception")
        if exception:  # reported by its class, as in the merged event
            recorded["run"]["facets"]["spark.exception"] = event["run"]["facets"]["spark.exception"]
        recorded["job"].setdefault("facets", {})
        assert event == recorded


@pytest.mark.parametrize("case", CASES)
def test_the_client_sends_what_the_listener_wrote(case):
    for line in lines_of(case):
        recorded = json.loads(line)
        sent = Serde.to_dict(emitter.run_event(recorded))
        for side, own in (("inputs", "inputFacets"), ("outputs", "outputFacets")):
            for dataset in recorded[side]:
                dataset.setdefault(own, {})
                dataset.setdefault("facets", {})
        assert sent == Serde.remove_nulls_and_enums(recorded)


def test_an_exception_is_reported_by_its_class():
    facet = {
        "_producer": "p",
        "message": "java.sql.SQLException: cannot log in with password hunter2",
        "stackTrace": "at hunter2",
    }
    event = fit_to_pass_on(an_event(**{"spark.exception": facet}), no_mask, literals=False)
    assert event["run"]["facets"]["spark.exception"] == {
        "_producer": "p",
        "message": "java.sql.SQLException",
    }


def test_properties_that_spark_would_redact_are_hidden_and_others_are_not():
    facet = {"properties": {"spark.hadoop.fs.s3a.secret.key": "hunter2", "spark.master": "yarn"}}
    event = fit_to_pass_on(an_event(spark_properties=facet), no_mask, literals=False)
    assert event["run"]["facets"]["spark_properties"]["properties"] == {
        "spark.hadoop.fs.s3a.secret.key": "***",
        "spark.master": "yarn",
    }


@pytest.mark.parametrize("value", [5, ["hunter2"], {"value": "hunter2"}, True], ids=str)
def test_properties_that_spark_would_redact_are_hidden_whatever_their_values_are(value):
    facet = {"environment-properties": {"db.password": value, "clusters": [{"token": value}]}}
    event = fit_to_pass_on(an_event(**{"environment-properties": facet}), no_mask, literals=False)
    assert event["run"]["facets"]["environment-properties"]["environment-properties"] == {
        "db.password": "***",
        "clusters": [{"token": "***"}],
    }


def test_secrets_of_airflow_and_users_of_uris_are_hidden_and_names_stay():
    event = an_event(spark_jobDetails={"jobDescription": "token hunter2"})
    event["inputs"] = [
        {
            "namespace": "postgres://scott:tiger@db:5432",
            "name": "hunter2",
            "facets": {"dataSource": {"uri": "postgres://scott:tiger@db:5432"}},
        }
    ]
    fit = fit_to_pass_on(event, lambda text: text.replace("hunter2", "***"), literals=False)
    text = json.dumps(fit)
    assert "scott" not in text
    assert fit["inputs"][0]["name"] == "hunter2"
    assert fit["run"]["facets"]["spark_jobDetails"]["jobDescription"] == "token ***"


def test_literals_are_hidden_on_request_only():
    event = an_event(**{"spark.logicalPlan": {"plan": "x = 'hunter2'"}})
    event["job"]["facets"] = {"sql": {"query": "select * from t where x = 'hunter2'"}}
    condition = {"type": "compare", "left": {"field": "x"}, "value": "hunter2"}
    transformation = {"description": "x = 'hunter2'"}
    event["inputs"] = [
        {
            "namespace": "n",
            "name": "t",
            "inputFacets": {"subset": {"inputCondition": condition}},
            "facets": {"columnLineage": {"dataset": [{"transformations": [transformation]}]}},
        }
    ]
    assert fit_to_pass_on(event, no_mask, literals=False)["job"] == event["job"]
    hidden = fit_to_pass_on(event, no_mask, literals=True)
    assert "hunter2" not in json.dumps(hidden)
    assert hidden["job"]["facets"]["sql"]["query"] == "select * from t where x = ?"
    assert hidden["inputs"][0]["inputFacets"]["subset"]["inputCondition"]["value"] == "?"


def test_lines_that_are_no_events_are_left_out(tmp_path):
    file = tmp_path / "events.ndjson"
    first, second = lines_of("staging_chain")[:2]
    file.write_bytes(first + b"nonsense\n{}\n\xff\n" + second + second[:50])
    prepared = relay.prepare(file, no_mask)
    assert [json.loads(line)["eventTime"] for line in prepared.lines] == [
        json.loads(line)["eventTime"] for line in (first, second)
    ]


def test_no_more_is_read_than_may_be(tmp_path):
    first, second = lines_of("staging_chain")[:2]
    file = tmp_path / "events.ndjson"
    file.write_bytes(first + second)
    for size, count in ((0, 0), (len(first) - 1, 0), (len(first), 1), (len(first) + 1, 1)):
        prepared = relay.prepare(file, no_mask, max_bytes=size)
        assert len(prepared.lines) == count
        assert prepared.why == f"they have more than {size} bytes"
    assert len(relay.prepare(file, no_mask, max_bytes=len(first + second)).lines) == 2


def test_no_file_is_no_event(tmp_path):
    assert relay.prepare(tmp_path / "events.ndjson", no_mask) == relay.Prepared()


def test_preparing_ends_when_time_is_up():
    prepared = relay.prepare(golden("staging_chain"), no_mask, past_deadline=lambda: True)
    assert (prepared.lines, prepared.why) == ([], "time was up")


# --- how it is sent -------------------------------------------------------------------------------


class Client:
    """Takes events as a transport does that fails at some of them."""

    def __init__(self, failures=None, transport=None):
        self.failures = failures or {}
        self.seen = []
        self.transport = transport

    def emit(self, event):
        self.seen.append(event.eventTime)
        if failure := self.failures.get(len(self.seen)):
            raise failure

    def close(self, timeout):
        return self.transport.close(timeout)


def http_error(status):
    error = RuntimeError(f"{status} of the server")
    error.response = SimpleNamespace(status_code=status)
    return error


def of_a_composite_transport(status):
    error = RuntimeError("Transport failed to emit event")
    error.__cause__ = http_error(status)
    return error


def reported_by(client, lines, **going_on):
    reported = []
    emitter.send_all(client, lines, lambda kind, value: reported.append((kind, value)), **going_on)
    return reported


def test_events_are_sent_in_their_order():
    client, lines = Client(), lines_of("staging_chain")
    reported = reported_by(client, lines)
    assert client.seen == [json.loads(line)["eventTime"] for line in lines]
    assert reported == [("sent", n) for n in range(1, len(lines) + 1)]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(http_error(500), id="broken server"),
        pytest.param(http_error(401), id="no access"),
        pytest.param(of_a_composite_transport(404), id="composite"),
        pytest.param(ConnectionError("refused"), id="no connection"),
    ],
)
def test_a_transport_that_fails_is_not_asked_again(failure):
    client = Client({2: failure})
    reported = reported_by(client, lines_of("staging_chain"))
    assert len(client.seen) == 2
    assert reported[0] == ("sent", 1)
    assert reported[1][0] == "stopped"
    assert str(failure) in reported[1][1]


@pytest.mark.parametrize("failure", [http_error(422), of_a_composite_transport(400)])
def test_one_event_that_is_refused_does_not_stop_the_others(failure):
    client, lines = Client({2: failure}), lines_of("staging_chain")
    reported = reported_by(client, lines)
    assert len(client.seen) == len(lines)
    assert [kind for kind, _ in reported].count("refused") == 1
    assert reported[-1] == ("sent", len(lines) - 1)


def test_an_event_that_one_of_several_transports_did_not_take_is_no_reason_to_stop(tmp_path):
    """Nor was it sent: what is kept of it is kept."""
    nowhere = {"type": "http", "url": "http://127.0.0.1:9", "retry": {"total": 0}}
    file = {"type": "file", "log_file_path": str(tmp_path / "events"), "append": True}
    transport = {"type": "composite", "transports": {"away": nowhere, "file": file}}
    lines = lines_of("staging_chain")
    reported = reported_by(OpenLineageClient(config={"transport": transport}), lines)
    assert len((tmp_path / "events").read_text().splitlines()) == len(lines)
    assert {kind for kind, _ in reported} == {"refused"}
    assert "ConnectionError" in reported[0][1]


def test_what_datahub_refuses_of_an_event_does_not_stop_the_others():
    refusal = DeliveryError("DataHub stored 3 aspects; 1 were refused.", is_refusal=True)
    client, lines = Client({2: refusal}), lines_of("staging_chain")
    assert [kind for kind, _ in reported_by(client, lines)].count("refused") == 1
    assert len(client.seen) == len(lines)


def test_an_event_that_the_client_cannot_make_is_refused():
    event = json.loads(lines_of("staging_chain")[0])
    event["run"]["runId"] = "no uuid"
    client = Client()
    [(kind, _)] = reported_by(client, [json.dumps(event).encode()])
    assert (kind, client.seen) == ("refused", [])


def test_nothing_is_sent_once_the_worker_has_gone():
    client = Client()
    assert reported_by(client, lines_of("staging_chain"), going_on=lambda: False) == []
    assert client.seen == []


@pytest.mark.parametrize(
    ("done", "stats", "expected"),
    [
        pytest.param(True, {"failed": 0, "pending": 0}, [], id="all arrived"),
        pytest.param(True, {"failed": 2, "pending": 0}, [("lost", 2)], id="some failed"),
        pytest.param(False, {"failed": 1, "pending": 3}, [("lost", 4)], id="time was up"),
    ],
)
def test_what_a_transport_took_and_did_not_deliver_is_reported(mocker, done, stats, expected):
    transport = SimpleNamespace(close=lambda _: done, get_stats=lambda: stats)
    composite = SimpleNamespace(close=lambda _: done, transports=[transport, object()])
    report = mocker.stub()
    emitter.close(Client(transport=transport), 1.0, report)
    emitter.close(Client(transport=composite), 1.0, report)
    assert report.call_args_list == [mocker.call(*result) for result in expected * 2]


def test_a_process_that_is_ended_in_mid_word_is_still_heard():
    sent = sending._outcome_of(
        b'{"sent": 1}\n{"refused": "no"}\n{"sent": 2}\n{"se', b"", "time was up", -9
    )
    assert sent == sending.Sent(("", "no", ""), "time was up")


def test_a_process_that_crashes_is_reported_with_its_last_words():
    sent = sending._outcome_of(b"", b"Traceback\nImportError: nothing there\n", "", 1)
    assert sent.stopped == "the process that sends them ended with 1: ImportError: nothing there"


@pytest.mark.parametrize(
    ("sent", "why", "sentence"),
    [
        (sending.Sent(("", "", "")), "", ""),
        (
            sending.Sent(("",), stopped="time was up"),
            "",
            "Of 3 Spark events 1 were sent on: time was up.",
        ),
        (
            sending.Sent(("", "", ""), stopped="time was up"),
            "",
            "All 3 Spark events were given to Airflow's OpenLineage transport, which had not ended "
            "yet (time was up): it may not have sent all of them.",
        ),
        (
            sending.Sent(("", "422 no.", "")),
            "",
            "Of 3 Spark events 2 were sent on: one was refused (422 no).",
        ),
        (
            sending.Sent(("", "", ""), lost=2),
            "they have more than 9 bytes",
            "Of 3 Spark events 1 were sent on: 2 did not arrive (Airflow's transport sends later "
            "and logs why); further ones were not read, because they have more than 9 bytes.",
        ),
    ],
)
def test_what_was_not_sent_is_one_sentence(sent, why, sentence):
    assert relay._missing(relay.Prepared([b"", b"", b""], why), sent) == sentence
