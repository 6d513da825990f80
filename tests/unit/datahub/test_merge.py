"""``sparklineage merge --format datahub``: what it prints is what DataHub's own commands read."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.model.terms import JobName
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity
from tests.conftest import golden
from tests.unit.datahub.sdk import require_sdk

STAGING = str(golden("staging_chain"))
JOB = ("--job-namespace", "airflow", "--job-name", "shop.revenue")


def merged(run, *arguments):
    """Give what is printed, as text, with the documents in it."""
    done = run("merge", STAGING, *JOB, "--format", "datahub", *arguments)
    documents = json.loads(done.out)
    assert documents
    return done, documents


def test_datahub_ingest_reads_all_of_it(run, tmp_path):
    require_sdk()
    from datahub.ingestion.api.common import PipelineContext
    from datahub.ingestion.source.file import FileSourceConfig, GenericFileSource

    done, documents = merged(run)
    file = tmp_path / "lineage.json"
    file.write_text(done.out)
    source = GenericFileSource(PipelineContext("test"), FileSourceConfig(path=str(file)))
    read = [unit.metadata for unit in source.get_workunits_internal()]
    assert not source.get_report().failures
    assert [(mcp.entityUrn, mcp.aspectName, mcp.changeType) for mcp in read] == [
        (one["entityUrn"], one["aspectName"], one["changeType"]) for one in documents
    ]


def test_a_proposal_is_a_line(run):
    done, documents = merged(run)
    lines = done.out.splitlines()[1:-1]
    assert [json.loads(line.rstrip(",")) for line in lines] == documents


def test_the_same_bundle_gives_the_same_bytes(run):
    assert merged(run)[0].out == merged(run)[0].out


def test_notes_and_exit_code_are_those_of_the_event(run):
    done, _ = merged(run, "--strict")
    event = run("merge", STAGING, *JOB, "--strict")
    assert (done.err, done.code) == (event.err, event.code)
    assert done.code == 1


def test_the_named_job_is_the_task_in_datahub(run):
    _, documents = merged(run)
    assert "urn:li:dataJob:(urn:li:dataFlow:(airflow,shop,prod),revenue)" in {
        one["entityUrn"] for one in documents
    }


def of_transport(run, transport):
    return json.dumps(merged(run, "--transport", transport)[1])


def test_names_are_those_of_the_transport(run, tmp_path):
    given = {"env": "DEV", "platform_instance": "eu", "cluster": "c", "indirect": False}
    sent = {"type": "DataHubTransport", "server": "http://gms:8080", "token": "s3cr3t", **given}
    file = tmp_path / "transport.json"
    file.write_text(json.dumps(sent))
    text = of_transport(run, json.dumps(given))
    assert "(urn:li:dataPlatform:file,eu.lake/revenue,DEV)" in text
    assert "(airflow,eu.shop,c)" in text
    conditions = '"transformOperation": "INDIRECT:'
    assert conditions in of_transport(run, "{}")
    assert conditions not in text
    assert of_transport(run, str(file)) == of_transport(run, json.dumps(sent)) == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--transport", "[]"), "is neither JSON nor a file of it (FileNotFoundError)"),
        (("--transport", '{"env": '), "is neither JSON nor a file of it (JSONDecodeError)"),
        (("--transport", '[{"env": 1}]'), "is no JSON object. E.g. --transport '{"),
        (("--transport", '{"evn": "DEV"}'), "unknown key 'evn'. Did you mean env?"),
        (("--transport", '{"env": "LIVE"}'), "unknown env 'LIVE'"),
        (("--format", "openlineage", "--transport", "{}"), "--transport needs --format datahub."),
    ],
    ids=["a file that is not there", "half of it", "a list", "a key", "a value", "an event"],
)
def test_a_transport_that_cannot_be_is_refused(run, arguments, message):
    done = run("merge", STAGING, "--format", "datahub", *arguments)
    assert done.code in (1, 2)
    assert done.out == ""
    assert message in done.err


def test_an_unknown_format_is_refused(capsys, run):
    with pytest.raises(SystemExit):
        run("merge", STAGING, "--format", "atlas")
    assert "datahub" in capsys.readouterr().err


def test_a_bundle_knows_its_dag_and_its_try_whatever_dots_their_ids_have(run, tmp_path):
    text = golden("staging_chain").read_text()
    application = json.loads(text.splitlines()[0])["run"]["runId"]
    task = TaskIdentity("team.daily", "load.revenue", "scheduled__2024-05-06", 2)
    job = JobName("airflow", "team.daily.load.revenue")
    bundle = capture.create(tmp_path, Manifest(application_run_id=application, task=task, job=job))
    bundle.events_path.write_text(text)
    documents = json.loads(run("merge", str(bundle.path), "--format", "datahub").out)

    flow = "urn:li:dataFlow:(airflow,team.daily,prod)"
    [found] = [d for d in documents if d["aspectName"] == "dataProcessInstanceProperties"]
    assert f"urn:li:dataJob:({flow},load.revenue)" in {d["entityUrn"] for d in documents}
    assert found["aspect"]["json"]["name"] == "scheduled__2024-05-06, try 2"
