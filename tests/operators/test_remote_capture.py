"""Drivers in a cluster that deliver: their event is that of a driver on the worker."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from airflow import sdk
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from airflow_provider_sparklineage.cli import main
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.budget import Budget
from airflow_provider_sparklineage.model.last_run import BothForms
from airflow_provider_sparklineage.model.terms import Outcome
from airflow_provider_sparklineage.operators.attempt import collect, publish
from airflow_provider_sparklineage.operators.attempt.submit import Capture, OwnFiles
from airflow_provider_sparklineage.operators.attempt.timing import Deadline
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.settings.resolution import resolve
from airflow_provider_sparklineage.spark.capture import remote_bundles
from airflow_provider_sparklineage.spark.capture.bundle import (
    CaptureBundle,
    Manifest,
    TaskIdentity,
)
from airflow_provider_sparklineage.spark.capture.remote_bundles import fetched
from tests.clusters import TaskState
from tests.conftest import golden
from tests.remote_driver import RemoteDriver
from tests.spark_submit_double import degradations

pytestmark = pytest.mark.airflow

DELIVER = "from tests.remote_driver import deliver; deliver(conf)"
WITHOUT_END = f"{DELIVER}; [file.unlink() for file in lake.rglob('end.json')]"


def operator(**kwargs):
    return SparkLineageSubmitOperator(
        task_id="revenue", application="job.py", durable=False, **kwargs
    )


@pytest.fixture
def lake(spark_submit, monkeypatch, tmp_path):
    """Let the capture location be a URL; bundles of the worker are in a folder of the test."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", f"file://{tmp_path}/lake")
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "3")
    submits_to(monkeypatch, "cluster")
    return tmp_path / "lake"


def submits_to(monkeypatch, deploy_mode):
    connection = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": deploy_mode}}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps(connection))


@pytest.fixture
def runs(spark_submit, execute, lake):
    """Run a job whose driver is in the cluster."""

    def runs(events="staging_chain", code=DELIVER, task=None, **script):
        code = f"lake = pathlib.Path({str(lake)!r}); {code}"
        spark_submit.does(events, code=code, **script)
        task = task or operator()
        try:
            execute(task)
        except Exception:
            assert script.get("exit")
        return task

    return runs


def observed(events):
    """Give the script of a driver whose observer wrote what was recorded of a job."""
    return {"observed": str(golden(events).parent / "observed" / f"{events}.ndjson")}


def facets(task):
    """Give what Airflow gets of a try, without what differs from run to run."""
    lineage = task.get_openlineage_facets_on_complete(None)
    text = msgspec.json.encode(lineage, enc_hook=lambda value: vars(value)).decode()
    # In what people read of a job is the minute in which it ran.
    return json.loads(re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "", text))


def folders(lake):
    return sorted(path.name for path in lake.iterdir())


def bundles(tmp_path):
    return sorted(tmp_path.glob("sparklineage-*/*/manifest.json"))


def manifest_in(folder):
    return msgspec.json.decode((folder / "manifest.json").read_bytes(), type=Manifest)


# --- as on the worker -----------------------------------------------------------------------------


JOBS = ["staging_chain", "partitioned_writes", "delta_tables", "iceberg_merge", "thirty_actions"]


@pytest.mark.parametrize("script", [{}, {"exit": 1}], ids=["succeeds", "fails"])
@pytest.mark.parametrize("events", JOBS)
def test_the_event_of_a_job_is_the_same_wherever_its_driver_runs(runs, monkeypatch, events, script):
    script = observed(events) | script
    delivered = facets(runs(events, **script))
    submits_to(monkeypatch, "client")
    assert delivered == facets(runs(events, code="", **script))
    assert delivered["inputs"]
    assert "sparkLineage_capture" in delivered["run_facets"]


def test_without_the_applications_own_end_it_has_ended_when_all_is_delivered(runs, spark_submit):
    """An application that is not stopped ends later than its Python, which delivers."""
    recorded = golden("staging_chain").read_bytes()
    last = recorded.splitlines(keepends=True)[-1]
    assert json.loads(last)["eventType"] == "COMPLETE"
    task = runs(bytes=len(recorded) - len(last))
    assert degradations(task).keys().isdisjoint({"application_unfinished", "delivery_incomplete"})


def test_nothing_is_left_of_a_try_of_which_all_is_known(runs, lake, tmp_path):
    runs(**observed("staging_chain"))
    assert folders(lake) == []
    assert bundles(tmp_path) == []


def test_the_log_names_a_bundle_that_is_kept_as_a_person_elsewhere_reaches_it(
    runs, lake, monkeypatch, caplog, capsys
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    runs(**observed("staging_chain"))
    [message] = [m for m in caplog.messages if "The capture bundle is kept" in m]
    here, there = re.findall(r"sparklineage show ([^\s,]+)", message)
    assert there == f"file://{lake}/{folders(lake)[0]}"
    capsys.readouterr()
    assert main(["show", there]) == 0
    shown = capsys.readouterr().out
    assert main(["show", here]) == 0
    assert shown == capsys.readouterr().out


def test_the_manifest_is_there_with_all_that_is_expected_before_the_driver_begins(runs, lake):
    seen = lake.parent / "seen.json"
    task = operator(writes=["/lake/revenue"])
    look = f"import shutil; shutil.copy(*lake.glob('*/manifest.json'), {str(seen)!r}); {DELIVER}"
    runs(code=look, task=task)
    manifest = msgspec.json.decode(seen.read_bytes(), type=Manifest)
    assert [dataset.name for dataset in manifest.declared_outputs] == ["/lake/revenue"]
    assert "spark.sparklineage.deliver" in manifest.injected
    assert manifest.remote.startswith(f"file://{lake}/shop.revenue-try1-")


# --- what is missing, and what is kept ------------------------------------------------------------


@pytest.mark.parametrize("umask", [0, 0o77], ids=oct)
def test_the_drivers_group_may_deliver_and_nobody_else_may_look(lake, umask):
    lake.mkdir(mode=0o755)
    before = os.umask(umask)
    try:
        manifest = Manifest("r", remote=f"file://{lake}/try1")
        remote_bundles.announce(manifest, Deadline().part(60))
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (lake / "try1", lake / "try1/manifest.json")]
    assert modes == [0o770, 0o660]
    assert lake.stat().st_mode & 0o777 == 0o755


def test_of_a_killed_driver_is_known_what_it_had_delivered(runs, lake, tmp_path):
    task = runs(code=WITHOUT_END)
    assert "reported no end" in degradations(task)["delivery_incomplete"]
    assert "application_unfinished" not in degradations(task)
    assert facets(task)["inputs"]
    [folder], [kept] = folders(lake), bundles(tmp_path)
    assert (lake / folder / "manifest.json").read_bytes() == kept.read_bytes()
    assert manifest_in(lake / folder).outcome == "COMPLETE"


def test_of_a_driver_that_delivers_elsewhere_both_places_are_named(runs, lake, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION_IN_SPARK", "hdfs://other/lake")
    message = degradations(runs(code=""))["driver_elsewhere"]
    assert f"file://{lake}/shop.revenue-try1-" in message
    assert "hdfs://other/lake/shop.revenue-try1-" in message


def test_the_bundle_is_kept_in_both_places_or_in_none(runs, lake, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    task = runs()
    [kept] = bundles(tmp_path)
    [folder] = folders(lake)
    into = tmp_path / "into"
    into.mkdir()
    deadline = Deadline()
    deadline.begin(60)
    bundle, delivered = fetched(f"file://{lake}/{folder}", into, deadline.budget)
    assert delivered.has_ended
    for name in ("events.ndjson", "manifest.json"):
        assert (into / name).read_bytes() == (kept.parent / name).read_bytes()
    event = merged_event(bundle, task_lineage(bundle))
    assert [d["name"] for d in event["inputs"]] == [d["name"] for d in facets(task)["inputs"]]


def test_what_may_be_delivered_later_is_kept_whatever_is_kept(runs, lake, tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "none")
    runs(code=WITHOUT_END, exit=1)
    assert len(folders(lake)) == 1
    assert bundles(tmp_path) == []


def test_what_others_left_long_ago_is_deleted(runs, lake):
    long_ago = datetime.now(UTC) - timedelta(days=99)
    old = lake / "shop.costs-try1-abcd1234"
    old.mkdir(parents=True)
    (old / "manifest.json").write_bytes(msgspec.json.encode(Manifest("r", ended=long_ago)))
    os.utime(old / "manifest.json", (0, 0))
    (lake / "of somebody else").mkdir()
    runs(**observed("staging_chain"))
    assert folders(lake) == ["of somebody else"]


# --- a location that cannot be worked with --------------------------------------------------------

UNREACHABLE = {
    "no provider": ("gs://lake/lineage", r"apache-airflow-providers-google"),
    "no connection": ("hdfs://nobody@namenode/lineage", "nobody"),
    "a file in its place": ("file://{tmp}/file/lineage", "NotADirectoryError"),
}


@pytest.fixture(params=UNREACHABLE)
def unreachable(request, lake, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    url, reason = UNREACHABLE[request.param]
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", url.format(tmp=tmp_path))
    return reason


def test_the_job_runs_and_the_event_names_what_is_wrong(unreachable, runs, spark_submit):
    task = runs(code="")
    assert spark_submit.ran
    assert unreachable in degradations(task)["delivery_incomplete"]
    assert "no_events" not in degradations(task)


def test_a_strict_try_is_refused_before_it_is_submitted(
    unreachable, execute, spark_submit, tmp_path
):
    with pytest.raises(Exception, match="capture location"):
        execute(operator(strict=True))
    assert not spark_submit.ran
    assert bundles(tmp_path) == []


def test_a_strict_try_that_is_refused_has_the_arguments_that_it_had(unreachable, execute):
    task = operator(strict=True)
    before = {name: getattr(task, name) for name in task.lineage_injected_fields}
    with pytest.raises(Exception, match="capture location"):
        execute(task)
    after = {name: getattr(task, name) for name in task.lineage_injected_fields}
    assert after == {**before, "conf": before["conf"] or {}}


def test_what_could_not_be_announced_and_is_delivered_is_not_missing(runs, lake, monkeypatch):
    written = lake.parent / "in the way"
    written.touch()
    lake.symlink_to(written)
    opens = f"import os; os.unlink({str(lake)!r}); lake.mkdir(); {DELIVER}"
    task = runs(code=opens)
    assert "delivery_incomplete" not in degradations(task)
    assert facets(task)["inputs"]


# --- a worker that is ended, and one that goes on -------------------------------------------------


def test_a_task_that_is_killed_waits_for_no_driver(runs, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__COLLECT_TIMEOUT", "600")
    task = operator()
    execute_stock = SparkSubmitOperator.execute

    def execute(self, context):
        try:
            return execute_stock(self, context)
        finally:
            self.lineage_try.deadline.killed()

    monkeypatch.setattr(SparkSubmitOperator, "execute", execute)
    begun = time.monotonic()
    runs(code=WITHOUT_END, task=task)
    assert time.monotonic() - begun < 60
    assert "reported no end" in degradations(task)["delivery_incomplete"]
    assert facets(task)["inputs"]


@pytest.mark.parametrize(
    ("of_try", "of_store"),
    [
        pytest.param({"is_refused": True}, "remove", id="a job that was not submitted"),
        pytest.param({"is_resumable": True}, "earlier_try", id="a job of another try"),
        pytest.param({}, "announce", id="what is kept"),
    ],
)
def test_a_task_that_is_killed_meanwhile_has_time_left_for_its_event(of_try, of_store, monkeypatch):
    waited = []

    def hang(*arguments):
        deadline.killed()
        [budget] = [a for a in arguments if isinstance(a, Budget)]
        waited.append(budget.left)

    deadline, manifest = Deadline(), Manifest("r", remote="file:///nowhere/try1")
    capture = Capture(resolve(), CaptureBundle(None, manifest), OwnFiles(None), **of_try)
    for name in ("remove", "sweep"):
        monkeypatch.setattr(remote_bundles, name, lambda *_, **__: None)
    monkeypatch.setattr(remote_bundles, of_store, hang)
    known = BothForms()
    collected = collect.collect(capture, Outcome.FAIL, lambda _: False, known, deadline)
    collected, events = publish.with_events(collected, known, None, deadline)
    collect.clean_up(collected, events.kept, deadline)
    [left] = waited
    assert left <= 1  # of three; after five, Airflow ends the process


def test_a_store_that_did_not_answer_is_not_waited_for_twice(unreachable, runs, lake, monkeypatch):
    monkeypatch.setattr(publish, "keep_additions", lambda *_: pytest.fail("asked again"))
    runs(code="")


@pytest.fixture
def resume(monkeypatch, execute, context, lake):
    """Execute a second try, of a job that a first one had submitted and that has ended."""
    if not hasattr(sdk, "ResumableJobMixin"):
        pytest.skip("Airflow resumes submissions from 3.3 on")
    monkeypatch.setattr(SparkSubmitOperator, "get_job_status", lambda *_: "SUCCEEDED")
    monkeypatch.setattr(
        SparkSubmitOperator, "execute", lambda self, context: self.execute_resumable(context)
    )

    def run(number=2):
        task = SparkLineageSubmitOperator(task_id="revenue", application="job.py")
        context["ti"].try_number = number
        context["task_state_store"] = TaskState(
            {task.external_id_key: "application_1700000000000_0001"}
        )
        execute(task, context)
        return task

    return run


def submitted(lake, number, events="staging_chain"):
    """Leave what an earlier try had submitted, on another worker."""
    name = f"shop.revenue-try{number}-abcd123{number}"
    run_id = f"0191f0a0-0000-7000-8000-00000000000{number}"
    identity = TaskIdentity("shop", "revenue", "manual", number, -1)
    manifest = Manifest(run_id, task=identity, remote=f"file://{lake}/{name}")
    deadline = Deadline()
    deadline.begin(60)
    remote_bundles.announce(manifest, deadline.budget)
    if events:
        recorded = golden(events).read_text()
        of_recording = json.loads(recorded.splitlines()[0])["run"]["runId"]
        driver = RemoteDriver(lake / name, run_id).starts()
        driver.delivers("events", recorded.replace(of_recording, run_id)).ends()
    return name


def test_another_worker_finds_what_was_delivered_to_the_first(resume, lake, spark_submit):
    submitted(lake, 1)
    task = resume()
    assert not spark_submit.ran
    inputs = [d["name"] for d in facets(task)["inputs"]]
    assert inputs == ["/lake/customers", "/lake/orders", "/lake/rates"]
    assert "submitted by try 1" in degradations(task)["submission_resumed"]
    assert degradations(task).keys().isdisjoint({"delivery_incomplete", "driver_elsewhere"})
    assert folders(lake) == ["shop.revenue-try1-abcd1231"]  # a degraded one is kept


def test_a_try_that_only_waited_is_not_the_one_that_submitted(resume, lake):
    submitted(lake, 1)
    submitted(lake, 2, events=None)
    assert "submitted by try 1" in degradations(resume(3))["submission_resumed"]


def test_what_nobody_delivered_is_unknown(resume, lake):
    task = resume()
    assert "whose capture bundle is not here" in degradations(task)["submission_resumed"]
    assert "driver_elsewhere" not in degradations(task)
    assert folders(lake) == []
