"""Jobs that nobody waits for, and ``airflow sparklineage collect``, which fetches their lineage."""

from __future__ import annotations

import json
import shlex
import tempfile
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from tests.conftest import golden
from tests.lineage_backend import receiving, send_by
from tests.openlineage_spec import validate_event
from tests.remote_driver import RemoteDriver

pytestmark = pytest.mark.airflow

TRY = TaskIdentity("shop", "revenue", "manual", 1)
READ = ["/lake/customers", "/lake/orders", "/lake/rates"]
ALREADY = "shop.revenue (try 1) was collected already; --again sends it once more.\n"
NOT_WAITING = {"spark.yarn.submit.waitAppCompletion": "false"}


@pytest.fixture
def backend(monkeypatch):
    with receiving() as server:
        send_by(monkeypatch, type="http", url=server.url, retry={"total": 0})
        yield server


@pytest.fixture
def lake(spark_submit, backend, monkeypatch, tmp_path):
    """Give the folder that stands for a file system which workers and drivers reach."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", f"file://{tmp_path}/lake")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "1")
    connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "cluster"}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))
    return tmp_path / "lake"


def submitted(execute, context=None, **arguments):
    """Submit a job of which spark-submit does not wait for the end."""
    given = {"conf": dict(NOT_WAITING), "durable": False, **arguments}
    task = SparkLineageSubmitOperator(task_id="revenue", application="job.py", **given)
    execute(task) if context is None else execute(task, context)
    return task


def recorded(run_id):
    """Give what listener and observer report of a job."""
    events = golden("staging_chain").read_text()
    of_recording = json.loads(events.splitlines()[0])["run"]["runId"]
    observed = golden("staging_chain").parent / "observed" / "staging_chain.ndjson"
    return events.replace(of_recording, run_id), observed.read_text()


def announced(location):
    """Give the folder of the one try to which no driver has delivered."""
    [found] = [m.parent for m in location.glob("*/manifest.json") if not [*m.parent.glob("*/*")]]
    return found


def application_of(folder):
    return json.loads((folder / "manifest.json").read_text())["application_run_id"]


def delivered(lake, *, has_ended=True, **end):
    """Deliver as the driver of the one job does that has delivered nothing; give the folder."""
    folder = announced(lake)
    run_id = application_of(folder)
    events, observed = recorded(run_id)
    driver = RemoteDriver(folder, run_id).starts()
    if has_ended:
        driver.delivers("events", events).delivers("observations", observed).ends(**end)
    else:
        driver.delivers("events", "".join(events.splitlines(keepends=True)[:-1]))
    return folder


@pytest.fixture
def collect(capsys):
    """Run the command as Airflow does; give exit code and output."""
    [command] = [c for c in cli.AIRFLOW_COMMANDS if c.name == "collect"]

    def run(run="manual", **options):
        defaults = {"dag": None, "task": None, "now": False, "again": False, "dry_run": False}
        conn_id = {"conn_id": "sparklineage_default"}
        capsys.readouterr()
        code = cli._guarded(command.run, SimpleNamespace(run=run, **conn_id, **defaults | options))
        out, err = capsys.readouterr()
        return code, out, err

    return run


def degradations(event):
    facet = event["run"]["facets"]["sparkLineage_capture"]
    return {d["code"]: d["message"] for d in facet.get("degradations", ())}


def names(datasets):
    return [dataset["name"] for dataset in datasets]


# --- the task -------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["none", "degraded", "all"])
def test_the_event_of_a_job_that_nobody_waits_for_has_what_is_declared_and_names_the_command(
    lake, archive, execute, monkeypatch, keep
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", keep)
    submitted(execute, reads=["file:///lake/orders"])
    event = archive.read(TRY)
    assert event["eventType"] == "COMPLETE"
    assert names(event["inputs"]) == ["/lake/orders"]
    assert list(degradations(event)) == ["application_unfinished"]
    message = degradations(event)["application_unfinished"]
    command = "airflow sparklineage collect manual --dag shop --task revenue"
    assert "The task did not wait for the end of the job" in message
    assert message.endswith(f" This command collects it when it has ended: {command}")
    [manifest] = lake.glob("*/manifest.json")
    kept = json.loads(manifest.read_text())
    assert "outcome" not in kept
    assert "ended" not in kept
    assert sorted(f.name for f in manifest.parent.iterdir()) == ["manifest.json", "sending.json"]


def test_the_words_to_copy_are_those_of_a_shell(lake, archive, execute, context):
    context["ti"].run_id = "manual__2024-05-06T00:00:00+00:00 it's"
    task = submitted(execute, context, lineage_conn_id="sparklineage_default")
    facet = task.get_openlineage_facets_on_complete(None).run_facets["sparkLineage_capture"]
    [entry] = facet.degradations
    words = shlex.split(entry["message"].partition("ended: ")[2])
    assert words[3:] == [context["ti"].run_id, "--dag", "shop", "--task", "revenue"]


def test_a_job_that_is_waited_for_leaves_no_such_event(lake, archive, execute):
    submitted(execute, conf={})
    assert "application_unfinished" not in degradations(archive.read(TRY))


# --- the command ----------------------------------------------------------------------------------


def test_what_was_delivered_later_is_sent_as_the_try_would_have(
    lake, archive, backend, execute, collect
):
    submitted(execute)
    before = archive.archived("shop/manual/revenue/-1/1")
    folder = delivered(lake)
    code, out, err = collect()
    assert (code, out) == (0, "1 event was sent.\n"), err
    start, end = backend.events
    assert [e["eventType"] for e in backend.events] == ["START", "COMPLETE"]
    assert {e["run"]["runId"] for e in backend.events} == {before.event["run"]["runId"]}
    assert start["eventTime"] == before.sending["started"]
    assert names(end["inputs"]) == READ
    assert end["run"]["facets"]["parent"]["job"]["name"] == "shop"
    assert end["job"]["facets"]["jobType"]["jobType"] == "TASK"
    assert degradations(end) == {}
    for event in backend.events:
        validate_event(event)
    kept = archive.archived("shop/manual/revenue/-1/1")
    assert names(kept.event["inputs"]) == READ
    assert archive.unsent() == []
    assert not folder.exists()


def test_of_a_job_that_runs_nothing_is_sent(lake, archive, backend, execute, collect):
    submitted(execute)
    before = archive.read(TRY)
    code, out, err = collect()
    assert (code, out) == (1, "")
    assert "The job of shop.revenue (try 1) is still running as far as is known" in err
    assert "No driver delivered anything" in err
    folder = delivered(lake, has_ended=False)
    code, out, err = collect()
    assert (code, out) == (1, "")
    assert (
        "It has not reported its end. If it was killed, --now collects the part that is there."
        in err
    )
    assert backend.events == []
    assert archive.read(TRY) == before
    assert folder.exists()


def test_what_a_killed_job_has_delivered_is_collected_by_order(lake, backend, execute, collect):
    submitted(execute)
    folder = delivered(lake, has_ended=False)
    assert collect(now=True)[0] == 0
    _, end = backend.events
    assert end["eventType"] == "FAIL"
    assert names(end["inputs"]) == READ
    assert "The driver reported no end" in degradations(end)["delivery_incomplete"]
    # It was not killed after all.
    [start] = folder.glob("*/start.json")
    end = {"application_run_id": application_of(folder), "segments": {"events": 1}}
    start.with_name("end.json").write_text(json.dumps(end))
    backend.events.clear()
    assert collect()[:2] == (0, "1 event was sent.\n")
    assert [e["eventType"] for e in backend.events] == ["START", "COMPLETE"]


def test_a_second_time_nothing_is_sent_unless_that_is_wanted(
    lake, backend, execute, collect, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    submitted(execute)
    delivered(lake)
    assert collect()[0] == 0
    first = list(backend.events)
    code, out, _ = collect()
    assert (code, out) == (0, ALREADY)
    assert backend.events == first
    assert collect(again=True)[:2] == (0, "1 event was sent.\n")
    assert backend.events == [*first, *first]


def test_a_plan_changes_nothing(lake, archive, backend, execute, collect):
    submitted(execute)
    folder = delivered(lake)
    before = archive.read(TRY)
    code, out, _ = collect(dry_run=True)
    assert code == 0
    assert "shop.revenue  COMPLETE  " in out
    assert out.endswith("1 to be sent.\n")
    assert backend.events == []
    assert archive.read(TRY) == before
    assert folder.exists()


@pytest.mark.parametrize(
    ("options", "is_found"),
    [
        pytest.param({"dag": "shop"}, True, id="its DAG"),
        pytest.param({"dag": "shop", "task": "revenue"}, True, id="its task"),
        pytest.param({"dag": "other"}, False, id="another DAG"),
        pytest.param({"task": "orders"}, False, id="another task"),
        pytest.param({"run": "scheduled"}, False, id="another run"),
    ],
)
def test_a_bundle_is_found_by_its_run(lake, execute, collect, options, is_found):
    submitted(execute)
    delivered(lake)
    code, _, err = collect(**options)
    assert code == (0 if is_found else 1)
    assert ("There is no capture bundle of" in err) is not is_found


def test_a_bundle_is_found_by_its_url(lake, backend, execute, collect):
    submitted(execute)
    folder = delivered(lake)
    assert collect(f"file://{folder}")[:2] == (0, "1 event was sent.\n")


def test_without_an_archive_it_is_sent_as_well(lake, backend, execute, collect, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "none")
    submitted(execute)
    delivered(lake)
    assert collect()[:2] == (0, "1 event was sent.\n")
    _, end = backend.events
    assert names(end["inputs"]) == READ
    assert end["run"]["facets"]["parent"]["job"]["name"] == "shop"


def test_while_the_backend_is_down_nothing_is_lost(lake, archive, backend, execute, collect):
    submitted(execute)
    folder = delivered(lake)
    backend.status = 500
    code, out, _ = collect()
    assert (code, out) == (1, "0 of 1 events were sent.\n")
    assert folder.exists()
    assert len(archive.unsent()) == 1
    backend.status = 201
    backend.events.clear()
    assert collect()[:2] == (0, "1 event was sent.\n")
    assert [e["eventType"] for e in backend.events] == ["START", "COMPLETE"]
    assert not folder.exists()
    assert archive.unsent() == []


def test_a_later_run_follows_so_that_it_stays_the_latest(lake, archive, backend, execute, collect):
    submitted(execute)
    delivered(lake)
    later = archive.read(TRY)
    later["eventTime"] = "2099-01-01T00:00:00+00:00"
    later["run"]["runId"] = "00000000-0000-7000-8000-000000000001"
    added = {"started": "", "runFacets": {}, "jobFacets": {}}
    archive.write(TaskIdentity("shop", "revenue", "later", 1), Written(later), added)
    assert collect()[:2] == (0, "1 event was sent.\n")
    assert [e["run"]["runId"] for e in backend.events][2:] == [later["run"]["runId"]]


def test_what_airflows_emission_policy_holds_back_is_kept_and_not_sent(
    lake, archive, backend, execute, collect, monkeypatch
):
    monkeypatch.setattr(
        "airflow_provider_sparklineage.operators.attempt.publish._is_emitted", lambda *_: False
    )
    submitted(execute)
    folder = delivered(lake)
    code, out, _ = collect()
    assert (code, backend.events) == (0, [])
    assert "emission policy" in out
    assert names(archive.read(TRY)["inputs"]) == READ
    assert not folder.exists()


def test_what_airflow_adds_is_not_made_up(lake, archive, backend, execute, collect, monkeypatch):
    """Without it nobody knows whether the event may be sent."""
    submitted(execute)
    folder = delivered(lake)
    (folder / "sending.json").write_text("{")
    assert collect()[:2] == (0, "1 event was sent.\n")  # the archive has it
    submitted(execute)
    folder = delivered(lake)
    (folder / "sending.json").unlink()
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "none")
    backend.events.clear()
    code, _, err = collect()
    assert (code, backend.events) == (1, [])
    assert "sending.json cannot be read" in err
    assert folder.exists()


def test_a_damaged_manifest_keeps_no_other_try_from_being_collected(
    lake, backend, execute, collect
):
    submitted(execute)
    delivered(lake)
    (lake / "shop.revenue-try9-abcdefgh").mkdir()
    (lake / "shop.revenue-try9-abcdefgh" / "manifest.json").write_text("{")
    assert collect()[:2] == (0, "1 event was sent.\n")


def test_what_a_worker_that_was_killed_has_left_is_collected_and_not_removed(
    lake, backend, execute, collect
):
    """It may also be a worker that is about to collect it."""
    submitted(execute)
    folder = delivered(lake)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["degradations"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert collect()[:2] == (0, "1 event was sent.\n")
    assert json.loads((folder / "manifest.json").read_text())["outcome"] == "COMPLETE"
    assert "collected already" in collect()[1]


def test_what_came_too_late_for_a_task_that_waited_is_collected(
    lake, archive, backend, execute, collect
):
    submitted(execute, conf={})
    assert "driver_elsewhere" in degradations(archive.read(TRY))
    folder = delivered(lake, failed="SystemError")
    assert collect()[:2] == (0, "1 event was sent.\n")
    _, end = backend.events
    assert (end["eventType"], names(end["inputs"])) == ("COMPLETE", READ)  # as Airflow knows
    assert degradations(end) == {}
    assert not folder.exists()


def test_a_job_that_ended_by_an_exception_has_failed(lake, backend, execute, collect):
    submitted(execute)
    delivered(lake, failed="ValueError")
    collect()
    _, end = backend.events
    assert end["eventType"] == "FAIL"


# --- without a URL --------------------------------------------------------------------------------


def test_on_a_shared_mount_what_the_driver_has_written_in_place_is_collected(
    lake, backend, execute, collect, monkeypatch, tmp_path
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", str(tmp_path / "captures"))
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION_SHARED", "True")
    submitted(execute)
    assert collect()[0] == 1
    folder = announced(tmp_path / "captures")
    texts = recorded(application_of(folder))
    for kind, text in zip(("events", "observations"), texts, strict=True):
        (folder / f"{kind}.ndjson").write_text(text)
    assert collect()[:2] == (0, "1 event was sent.\n")
    _, end = backend.events
    assert (end["eventType"], names(end["inputs"])) == ("COMPLETE", READ)
    assert not folder.exists()
