"""What a try leaves in Airflow: the event exactly as sent, as an XCom and in the archive."""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import uuid
from pathlib import Path

import pytest
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowTaskTimeout,
)
from openlineage.client.event_v2 import Job, Run, RunEvent
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.event import archive as archives
from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.event.pipeline import ready_to_send
from airflow_provider_sparklineage.expectations import Expectation, Kind
from airflow_provider_sparklineage.history import incoming
from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.sources import LocalFiles, refused
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.lineage.application.accumulation import SparkApplication
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.model.last_run import LastRun, LastRunDataset
from airflow_provider_sparklineage.model.representation import Adaptation
from airflow_provider_sparklineage.operators import partition_check
from airflow_provider_sparklineage.operators.attempt import prepare, publish
from airflow_provider_sparklineage.operators.attempt.other_runs import EarlierLineage
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.settings.resolution import resolve
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity

pytestmark = pytest.mark.airflow

TASK = TaskIdentity("shop", "revenue", "manual", 1)
MARQUEZ = Adaptation(backend="marquez")


def operator(**kwargs):
    return SparkLineageSubmitOperator(task_id="revenue", application="job.py", **kwargs)


@pytest.fixture
def pushed(context):
    return lambda: xcom.decode(context["ti"].xcoms["sparklineage"])


@pytest.fixture
def archive(tmp_path, monkeypatch):
    url = f"file://{tmp_path}/archive"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", url)
    return Archive(url)


@pytest.fixture
def complaints(caplog):
    caplog.set_level(logging.WARNING)
    known = re.compile("is not (shown in Airflow|in the archive)")
    return lambda: [r.getMessage() for r in caplog.records if known.search(r.getMessage())]


def parts_of(event):
    return event["inputs"], event["outputs"], event["run"]["facets"], event["job"]["facets"]


def sent(task, context):
    """Parts of the event that Airflow's OpenLineage provider gets."""
    lineage = task.get_openlineage_facets_on_complete(context["ti"])
    event = RunEvent(
        eventTime="2024-05-06T00:00:00Z",
        run=Run(str(uuid.uuid4()), facets=lineage.run_facets),
        job=Job("tests", "shop.revenue", facets=lineage.job_facets),
        inputs=lineage.inputs,
        outputs=lineage.outputs,
    )
    return parts_of(json.loads(Serde.to_json(event)))


def codes(event):
    return [d["code"] for d in event["run"]["facets"]["sparkLineage_capture"]["degradations"]]


def test_what_is_sent_is_the_xcom_with_descriptions(spark_submit, execute, context, pushed):
    spark_submit.does(events="staging_chain")
    task = operator()
    execute(task)
    event = pushed()
    assert event == context["ti"].xcoms["sparklineage"]
    assert parts_of(ready_to_send(event, MARQUEZ)) == sent(task, context)
    assert parts_of(event) != sent(task, context)
    assert event["eventType"] == "COMPLETE"
    assert event["job"]["name"] == "shop.revenue"
    assert event["outputs"]


def test_an_event_that_is_too_large_to_send_is_whole_in_archive_and_history(
    spark_submit, execute, context, archive, tmp_path, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__MAX_EVENT_BYTES", "9000")
    monkeypatch.setattr(archives, "DEFAULT_MAX_EVENT_BYTES", 1000)
    store = Store(f"{tmp_path}/history")
    build(store, ())
    spark_submit.does(events="staging_chain")
    task = operator()
    execute(task)
    assert "detail_dropped" not in codes(archive.read(TASK))
    assert "detail_dropped" in [
        d["code"] for d in sent(task, context)[2]["sparkLineage_capture"]["degradations"]
    ]
    assert build(store, ()).new == 1
    [file] = Path(archive.url.removeprefix("file://")).rglob("1.json")
    assert build(store, [LocalFiles(file, str(file), refused)]).new == 0


def test_the_lineage_is_not_in_memory_any_more_when_its_event_is_written(
    spark_submit, execute, monkeypatch
):
    def in_memory():
        gc.collect()
        # Not isinstance(), for which an object may import modules.
        return [one for one in gc.get_objects() if type(one) is SparkApplication]

    def published(*_args, **_more):
        left.extend(in_memory())

    left, of_other_tests = [], in_memory()
    monkeypatch.setattr(publish, "publish", published)
    spark_submit.does("staging_chain")
    task = operator()
    execute(task)
    assert task.lineage_try.collected
    assert {*map(id, left)} <= {*map(id, of_other_tests)}


def test_a_failed_try_leaves_its_event_as_well(spark_submit, execute, context, pushed, archive):
    spark_submit.does(events="staging_chain", exit=1)
    task = operator()
    with pytest.raises(AirflowException):
        execute(task)
    assert pushed()["eventType"] == "FAIL"
    assert parts_of(ready_to_send(pushed(), MARQUEZ)) == sent(task, context)
    assert archive.read(TASK) == pushed()


def test_a_try_that_fails_for_its_partitions_is_a_failed_one(
    spark_submit, execute, pushed, archive, monkeypatch
):
    spark_submit.does(events="staging_chain")
    task = operator()
    failure = AirflowFailException("wrong partition")
    monkeypatch.setattr(partition_check, "follow_up", lambda *_: [failure])
    with pytest.raises(AirflowException, match="wrong partition"):
        execute(task)
    assert pushed()["eventType"] == archive.read(TASK)["eventType"] == "FAIL"


def test_every_try_is_in_the_archive_in_full(spark_submit, execute, context, pushed, archive):
    spark_submit.does(events="staging_chain")
    task = operator()
    execute(task)
    context["ti"].try_number = 2
    execute(task)
    assert archive.tries(TASK) == [1, 2]
    assert archive.read(TASK)["run"]["runId"] != pushed()["run"]["runId"]
    assert parts_of(archive.read(TASK))[:2] == parts_of(pushed())[:2]


def test_an_xcom_is_bounded_and_reports_what_was_dropped(
    spark_submit, execute, context, pushed, archive, monkeypatch
):
    monkeypatch.setattr(xcom, "MAX_BYTES", 1500)
    spark_submit.does(events="staging_chain")
    execute(operator())
    value = context["ti"].xcoms["sparklineage"]
    assert len(json.dumps(value)) <= 1500
    assert "detail_dropped" in codes(pushed())
    degradations = pushed()["run"]["facets"]["sparkLineage_capture"]["degradations"]
    assert any(xcom.BOUND in d["message"] for d in degradations)
    assert [d["name"] for d in pushed()["outputs"]] == [
        d["name"] for d in archive.read(TASK)["outputs"]
    ]
    assert "detail_dropped" not in codes(archive.read(TASK))


def test_what_is_expected_is_there_while_the_job_runs(spark_submit, execute, context):
    spark_submit.does(events="staging_chain")
    execute(operator(reads=["/lake/orders"], writes=["/lake/revenue/dt=2024-05-06"]))
    assert [*context["ti"].xcoms] == [xcom.EXPECTED_KEY, xcom.KEY]
    value = context["ti"].xcoms[xcom.EXPECTED_KEY]
    assert [(e["side"], e["dataset"]["name"], e.get("expected")) for e in value["entries"]] == [
        ("read", "/lake/orders", None),
        ("write", "/lake/revenue", {"summary": "dt=2024-05-06"}),
    ]
    assert (value["try_number"], value["unlisted"]) == (1, 0)


def test_the_folder_of_the_last_run_s_tables_is_not_expected(context):
    names = [DatasetName("file", name) for name in ("/lake", "/lake/planes", "/other")]
    paths = tuple(Expectation(Kind.PATH, dataset=name) for name in names)
    manifest = Manifest("", task=TASK, expectations=paths)
    tables = LastRun(inputs=(LastRunDataset("file", "/lake/flights"),))
    for known in (EarlierLineage(tables), EarlierLineage(stand_in=tables)):
        prepared = prepare.Prepared(resolve(), known)
        prepare.push_expected(manifest, context, prepared)
        entries = context["ti"].xcoms[xcom.EXPECTED_KEY]["entries"]
        assert [e["dataset"]["name"] for e in entries] == ["/lake/planes", "/other"]


@pytest.mark.parametrize(("max_bytes", "entries"), [(50, None), (1500, 6)])
def test_it_has_the_bound_of_xcoms(spark_submit, execute, context, monkeypatch, max_bytes, entries):
    monkeypatch.setattr(xcom, "MAX_BYTES", max_bytes)
    execute(operator(writes=[f"/lake/{n}/dt=2024-05-06" for n in range(50)]))
    value = context["ti"].xcoms.get(xcom.EXPECTED_KEY)
    assert (value and len(value["entries"])) == entries
    assert len(json.dumps(value)) <= 1500


def test_a_task_whose_expectations_cannot_be_pushed_runs(spark_submit, execute, context):
    spark_submit.does(events="staging_chain")
    push = context["ti"].xcom_push

    def refused(key, value):
        if key == xcom.EXPECTED_KEY:
            raise ConnectionError
        push(key=key, value=value)

    context["ti"].xcom_push = refused
    execute(operator(writes=["/lake/revenue/dt=2024-05-06"]))
    assert [*context["ti"].xcoms] == [xcom.KEY]


def test_what_fits_nowhere_is_logged(spark_submit, execute, context, complaints, monkeypatch):
    monkeypatch.setattr(xcom, "MAX_BYTES", 50)
    execute(operator())
    assert context["ti"].xcoms == {}
    [complaint] = complaints()
    assert xcom.BOUND in complaint


def test_without_lineage_nothing_is_left(spark_submit, execute, context, archive, tmp_path):
    execute(operator(lineage=False))
    assert context["ti"].xcoms == {}
    assert not (tmp_path / "archive").exists()


@pytest.mark.parametrize("url", ["nosuch://bucket/x", "file:///proc/nowhere"])
def test_an_unreachable_archive_is_one_warning(
    spark_submit, execute, pushed, complaints, monkeypatch, url
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", url)
    spark_submit.does(events="staging_chain")
    execute(operator())
    assert pushed()["outputs"]
    [complaint] = complaints()
    assert "is not in the archive" in complaint
    assert url in complaint
    assert "archive_url" in complaint


@pytest.mark.parametrize("error", [RuntimeError("database is away"), AirflowTaskTimeout("late")])
def test_a_push_that_fails_changes_neither_how_the_task_ends_nor_what_is_kept(
    spark_submit, execute, context, complaints, archive, error
):
    def fail(**_):
        raise error

    context["ti"].xcom_push = fail
    execute(operator())
    [complaint] = complaints()
    assert "is not shown in Airflow" in complaint
    assert archive.tries(TASK) == [1]


def test_a_killed_try_does_not_wait_for_the_archive(spark_submit, execute, archive, monkeypatch):
    given = []

    class Noting(Archive):
        def write(self, *_, **__):
            given.append(self.timeout_s)

    monkeypatch.setattr(archives, "Archive", Noting)
    task = operator()
    execute(task)

    def killed(*_):
        task.lineage_try.deadline.killed()
        return []

    monkeypatch.setattr(partition_check, "follow_up", killed)
    execute(task)
    assert given == [publish.ARCHIVE_TIMEOUT_S, 1.0]


@pytest.fixture
def without_transport(monkeypatch):
    monkeypatch.setattr("airflow.providers.openlineage.conf.is_disabled", lambda: True)


def of_home(home):
    return Archive(f"file://{home}/sparklineage/archive", is_default=True)


@pytest.mark.parametrize("archived", [True, False])
def test_lineage_is_collected_for_the_archive_alone_but_not_for_the_xcom(
    spark_submit, execute, context, tmp_path, without_transport, monkeypatch, archived
):
    url = f"file://{tmp_path}/archive"
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", url if archived else "none")
    spark_submit.does(events="staging_chain")
    execute(operator())
    assert Archive(url).tries(TASK) == ([1] if archived else [])
    assert ("sparklineage" in context["ti"].xcoms) is archived


# --- the archive in AIRFLOW_HOME ------------------------------------------------------------------


def test_with_a_local_executor_every_try_is_kept_with_nothing_set_up(
    spark_submit, execute, pushed, home
):
    spark_submit.does(events="staging_chain")
    execute(operator())
    assert of_home(home).read(TASK) == pushed()
    folder = home / "sparklineage" / "archive"
    assert (folder.stat().st_mode & 0o777, folder.owner()) == (0o700, home.owner())


def test_with_a_remote_executor_nothing_is_kept(spark_submit, execute, home, monkeypatch):
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", "CeleryExecutor")
    execute(operator())
    assert not home.exists()


@pytest.mark.parametrize("setting", ["none", "file"])
def test_a_setting_takes_the_place_of_the_default(
    spark_submit, execute, home, tmp_path, monkeypatch, setting
):
    url = f"file://{tmp_path}/archive" if setting == "file" else setting
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", url)
    execute(operator())
    assert not home.exists()


def test_it_is_swept_by_the_tries(spark_submit, execute, home):
    old = TaskIdentity("shop", "revenue", "old", 1)
    of_home(home).write(old, Written({"job": {}}))
    [file] = home.rglob("*.json")
    os.utime(file, (0, 0))
    execute(operator())
    assert of_home(home).tries(old) == []
    assert of_home(home).tries(TASK) == [1]


def test_a_folder_that_is_not_its_users_is_one_warning(
    spark_submit, execute, home, pushed, complaints
):
    home.mkdir()
    (home / "sparklineage").touch()
    execute(operator())
    assert pushed()
    [complaint] = complaints()
    assert "[sparklineage] archive_url to another one, or to none" in complaint


def test_where_nobody_set_up_openlineage_it_is_reason_enough(
    spark_submit, execute, context, home, without_transport, caplog
):
    spark_submit.does(events="staging_chain")
    with caplog.at_level(logging.INFO):
        execute(operator())
    assert of_home(home).tries(TASK) == [1]
    assert "sparklineage" in context["ti"].xcoms
    [(level, text)] = [
        (record.levelno, record.getMessage())
        for record in caplog.records
        if "to send it" in record.getMessage()
    ]
    assert level == logging.INFO
    assert text.startswith("The lineage of this try is kept for its tab")
    assert "disabled" not in text


def test_where_openlineage_is_switched_off_it_is_no_reason(
    spark_submit, execute, context, home, without_transport, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__OPENLINEAGE__DISABLED", "True")
    execute(operator())
    assert not home.exists()
    assert context["ti"].xcoms == {}


def test_of_a_strict_task_lineage_has_to_be_sent(spark_submit, execute, home, without_transport):
    with pytest.raises(SettingsError, match="no transport"):
        execute(operator(strict=True))
    assert not spark_submit.ran


# --- the history ----------------------------------------------------------------------------------


@pytest.fixture
def history(tmp_path, monkeypatch):
    """Make a store of a history, which is next to no archive."""
    store = Store(str(tmp_path / "history"))
    build(store, ())
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__HISTORY_URL", store.files.root.as_uri())
    return store


def delivered(store):
    names = incoming.waiting(store).names
    return [incoming.parsed(store.files.read(f"incoming/{name}")) for name in names]


def test_the_end_of_a_task_delivers_what_the_archive_has(spark_submit, execute, archive, history):
    spark_submit.does(events="staging_chain")
    execute(operator())
    [(sender, event)] = delivered(history)
    place = archive.place(TASK)
    assert sender == incoming.Sender("shop", "revenue", "manual", -1, 1, place)
    assert event == Path(place.removeprefix("file://")).read_bytes()
    assert build(history, ()).new == 1
    source = LocalFiles(Path(archive.url.removeprefix("file://")), archive.url, refused)
    assert build(history, [source]).new == 0


def test_it_delivers_without_an_archive_and_without_a_transport_too(
    spark_submit, execute, history, without_transport, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "none")
    spark_submit.does(events="staging_chain")
    execute(operator())
    [(sender, event)] = delivered(history)
    assert sender.source == ""
    assert json.loads(event)["outputs"]


def test_where_there_is_no_history_nothing_is_delivered(spark_submit, execute, archive, tmp_path):
    execute(operator())
    assert not (tmp_path / "history").exists()


def test_a_history_that_takes_nothing_is_one_warning(
    spark_submit, execute, archive, history, caplog
):
    (history.files.root / "incoming").touch()
    execute(operator())
    [complaint] = [r.getMessage() for r in caplog.records if "the history" in r.getMessage()]
    assert "The event of this try was not delivered to the history" in complaint
    assert archive.tries(TASK) == [1]


def test_a_task_merges_where_tasks_are_to_do_it(
    spark_submit, execute, archive, history, monkeypatch
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__HISTORY_MERGED_BY", "tasks")
    execute(operator())
    assert delivered(history) == []
    assert history.manifest.rows["events"] == 1


def test_a_merge_that_fails_is_one_warning_and_the_next_one_has_the_event(
    spark_submit, execute, archive, history, monkeypatch, caplog
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__HISTORY_MERGED_BY", "tasks")
    with history.building():
        execute(operator())
    [complaint] = [r.getMessage() for r in caplog.records if "the history" in r.getMessage()]
    assert "is not merged into the history yet" in complaint
    assert "is being built already" in complaint
    assert len(delivered(history)) == 1
