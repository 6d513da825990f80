"""``airflow sparklineage resend``: what is chosen, sent and noted, against a server of ours."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import msgspec
import pytest
from airflow.providers.openlineage.plugins.listener import get_openlineage_listener

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.cli import sender
from airflow_provider_sparklineage.event.archive import Archive, task_of
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.event.steps import size
from airflow_provider_sparklineage.history.store import Folder, Owner
from airflow_provider_sparklineage.model.representation import Answered
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from tests.history.test_special_files import KINDS
from tests.loopback import Handler, serving

pytestmark = pytest.mark.airflow


class _Backend(Handler):
    def post(self):
        event = json.loads(self.body())
        self.server.events.append(event)
        self.answer(self.server.answers.get(event["job"]["name"], self.server.status))


@pytest.fixture
def backend(monkeypatch):
    with serving(_Backend, events=[], status=201, answers={}) as server:
        transport = {"type": "http", "url": server.url, "retry": {"total": 0}}
        monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
        monkeypatch.setattr(get_openlineage_listener().adapter, "_client", None)
        yield server


@pytest.fixture
def keep(archive):
    """Keep the event of a run that ended some hours ago."""
    now = datetime.now(UTC)  # not when the tests were collected: that may be an hour ago

    def keep(hours, *, job="shop.revenue", is_unsent=True, sending=True, state="COMPLETE"):
        dag_id, task_id = job.split(".")
        ended = now - timedelta(hours=hours)
        number = f"{len(archive.entries()):012}"
        event = {
            "eventType": state,
            "eventTime": ended.isoformat(),
            "producer": "https://example.org/tests",
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {
                "runId": f"00000000-0000-7000-8000-{number}",
                "facets": {"sparkLineage_capture": {}},
            },
            "job": {"namespace": "tests", "name": job, "facets": {}},
            "inputs": [],
            "outputs": [{"namespace": "file", "name": f"/{job}", "facets": {}, "outputFacets": {}}],
        }
        started = (ended - timedelta(minutes=5)).isoformat()
        added = {"started": started, "runFacets": {}, "jobFacets": {}} if sending else None
        identity = TaskIdentity(dag_id, task_id, f"run-{hours}", 1)
        archive.write(identity, Written(event), added, is_unsent=is_unsent)
        return event

    return keep


@pytest.fixture
def resend(capsys):
    """Run the command as Airflow does; give exit code and output."""
    [command] = [c for c in cli.AIRFLOW_COMMANDS if c.name == "resend"]

    def run(dag_id=None, task_id=None, run_id=None, *, since=None, dry_run=False):
        args = SimpleNamespace(
            dag_id=dag_id,
            task_id=task_id,
            run_id=run_id,
            since=since,
            dry_run=dry_run,
            conn_id="sparklineage_default",
        )
        code = cli._guarded(command.run, args)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def sent(backend):
    return [(e["eventType"], e["eventTime"], e["run"]["runId"]) for e in backend.events]


def pair(event):
    started = datetime.fromisoformat(event["eventTime"]) - timedelta(minutes=5)
    run_id = event["run"]["runId"]
    return [
        ("START", started.isoformat(), run_id),
        (event["eventType"], event["eventTime"], run_id),
    ]


def test_no_more_columns_are_sent_again_than_the_backend_answers_in_time(
    keep, resend, backend, archive, monkeypatch
):
    monkeypatch.setattr(size, "_LEAST", 1000)  # the event has few columns
    keep(1)
    [entry] = archive.entries()
    event = archive.archived(entry.name).event
    fields = [{"name": f"c{n}", "type": "int"} for n in range(40)]
    event["outputs"][0]["facets"]["schema"] = {"fields": fields}
    event["run"]["facets"]["sparkLineage_capture"]["degradations"] = []
    archive.write(task_of(entry.name), Written(event), {"started": ""}, is_unsent=True)
    archive.note_answered(entry.name, Answered(40, 1, 3000, is_whole=True, seconds=8.0))
    assert resend()[0] == 0
    [sent] = backend.events
    assert "schema" not in sent["outputs"][0]["facets"]
    message = sent["run"]["facets"]["sparkLineage_capture"]["degradations"][0]["message"]
    assert "it took 8.0 s for 40 columns" in message


def unsent(archive):
    return sorted(entry.name for entry in archive.unsent())


def test_what_was_not_sent_is_sent_in_order_and_with_the_times_and_ids_it_had(
    backend, archive, keep, resend
):
    last, first = keep(1), keep(3, state="FAIL")
    keep(2, is_unsent=False)
    code, out, err = resend()
    assert (code, out, err) == (0, "2 events were sent.\n", "")
    assert sent(backend) == [*pair(first), *pair(last)]
    assert unsent(archive) == []
    assert resend() == (0, "There is nothing to send.\n", "")


def test_sent_twice_it_is_the_same(backend, keep, resend):
    keep(1)
    resend("shop")
    resend("shop")
    half = len(backend.events) // 2
    assert backend.events[:half] == backend.events[half:]


def test_a_later_run_follows_so_that_it_stays_the_latest(backend, archive, keep, resend):
    old, _, latest = keep(9), keep(5, is_unsent=False), keep(1, is_unsent=False)
    code, out, _ = resend()
    assert (code, out) == (0, "1 event was sent.\n")
    assert sent(backend) == [*pair(old), pair(latest)[1]]


@pytest.mark.parametrize(
    ("chosen", "hours"),
    [
        ({"dag_id": "shop"}, [3, 2, 1]),
        ({"dag_id": "shop", "task_id": "orders"}, [2]),
        ({"dag_id": "shop", "task_id": "revenue", "run_id": "run-3"}, [3]),
        ({"since": "150m"}, [2, 1, 0.5]),
        ({"dag_id": "shop", "since": "2d"}, [3, 2, 1]),
        ({"dag_id": "nothing"}, []),
    ],
    ids=str,
)
def test_what_is_chosen_is_listed_and_not_sent(backend, archive, keep, resend, chosen, hours):
    kept = {
        hours: keep(hours, job=job, is_unsent=False)
        for hours, job in (
            (1, "shop.revenue"),
            (2, "shop.orders"),
            (3, "shop.revenue"),
            (0.5, "other.task"),
        )
    }
    code, out, _ = resend(**chosen, dry_run=True)
    assert code == 0
    lines = [line for line in out.splitlines() if "once more" not in line][:-1]
    assert [line.split()[-1] for line in lines] == [kept[h]["run"]["runId"] for h in hours]
    assert backend.events == []
    assert archive.unsent() == []


def test_a_list_says_what_follows(keep, resend, backend):
    keep(3)
    keep(1, is_unsent=False)
    _, out, _ = resend(dry_run=True)
    first, second, summary = out.splitlines()
    assert "shop.revenue  COMPLETE  00000000" in first
    assert second.endswith("(once more, to stay the latest)")
    assert summary == "1 to be sent."


def test_a_backend_that_is_still_down_stops_it_and_the_marks_stay(backend, archive, keep, resend):
    backend.status = 500
    keep(2)
    keep(1)
    code, out, err = resend()
    assert (code, out) == (1, "0 of 2 events were sent.\n")
    assert "Sending stopped: " in err
    assert len(backend.events) == 1
    assert len(unsent(archive)) == 2


def test_one_that_is_refused_keeps_its_mark_and_does_not_keep_the_others(
    backend, archive, keep, resend
):
    backend.answers["shop.bad"] = 422
    keep(2, job="shop.bad")
    keep(1)
    code, out, err = resend()
    assert (code, out) == (1, "1 of 2 events were sent.\n")
    assert "The event of shop.bad (00000000-" in err
    assert unsent(archive) == ["shop/run-2/bad/-1/1"]


def test_one_whose_start_was_sent_and_whose_end_was_not_is_marked(backend, archive, keep, resend):
    """The backend takes its run for one that runs."""
    keep(1, is_unsent=False)

    def only_start(handler):
        event = json.loads(handler.body())
        handler.answer(201 if event["eventType"] == "START" else 500)

    backend.RequestHandlerClass.post, before = only_start, backend.RequestHandlerClass.post
    try:
        assert resend("shop")[0] == 1
    finally:
        backend.RequestHandlerClass.post = before
    assert unsent(archive) == ["shop/run-1/revenue/-1/1"]
    assert resend()[:2] == (0, "1 event was sent.\n")
    assert unsent(archive) == []


def test_a_file_that_cannot_be_read_is_reported_and_skipped(backend, archive, home, keep, resend):
    keep(2)
    keep(1)
    [file] = home.rglob("run-2/revenue/-1/1.json")
    file.write_text("{")
    code, out, err = resend()
    assert (code, out) == (1, "1 event was sent.\n")
    assert "shop/run-2/revenue/-1/1 is skipped: The stored lineage is damaged" in err


def test_one_that_cannot_be_made_into_an_event_does_not_keep_the_others(
    backend, archive, home, keep, resend
):
    """As one of a version that wrote them otherwise."""
    damaged = keep(2, is_unsent=False)
    keep(1)
    [file] = home.rglob("run-2/revenue/-1/1.json")
    file.write_text(json.dumps({"sending": {}, **damaged, "inputs": None, "outputs": None}))
    code, out, err = resend("shop")
    assert (code, out) == (1, "1 of 2 events were sent.\n")
    assert "shop/run-2/revenue/-1/1 is skipped: " in err
    assert unsent(archive) == []


def test_what_was_held_back_is_not_sent(backend, keep, resend):
    keep(2, sending=False, is_unsent=False)
    keep(1)
    code, out, err = resend("shop")
    assert (code, out) == (0, "1 event was sent.\n")
    assert "1 of 2 are not for sending" in err
    assert len(backend.events) == 2


def test_a_failed_run_is_sent_with_what_the_last_successful_one_knew(
    keep, resend, backend, monkeypatch
):
    lasts = []

    def events(*given, with_start, with_neutral):
        lasts.append(given[3] and given[3]["eventTime"])
        return []

    keep(9, is_unsent=False)
    before = keep(8, is_unsent=False)
    keep(7, is_unsent=False, job="shop.other")
    keep(6, state="FAIL")
    keep(5, state="FAIL")
    keep(4, is_unsent=False)
    monkeypatch.setattr(sender.sending, "lines_of", events)
    resend()
    assert lasts == [before["eventTime"], before["eventTime"], None]


def test_more_than_fit_into_one_batch(backend, archive, keep, resend, monkeypatch):
    monkeypatch.setattr(sender, "_BATCH", 2)
    events = [keep(hours) for hours in (5, 4, 3, 2, 1)]
    assert resend()[:2] == (0, "5 events were sent.\n")
    assert sent(backend) == [one for event in events for one in pair(event)]


def test_large_events_are_not_held_in_memory_at_once(backend, keep, resend, monkeypatch):
    monkeypatch.setattr(sender, "_BATCH_BYTES", 1)
    for hours in (2, 1):
        keep(hours)
    assert resend()[:2] == (0, "2 events were sent.\n")
    assert len(backend.events) == 4


def test_without_a_transport_nothing_is_sent(keep, resend, archive, monkeypatch):
    monkeypatch.setattr("airflow.providers.openlineage.conf.is_disabled", lambda: True)
    keep(1)
    code, _, err = resend()
    assert code == 1
    assert "it has no transport" in err
    assert len(unsent(archive)) == 1


@pytest.mark.parametrize(
    ("url", "code", "message"),
    [
        ("none", 2, "There is no archive"),
        ("gs://bucket/lineage", 2, "not noted which events were not sent. Choose some"),
        ("file:///dev/null/x", 0, ""),
    ],
)
def test_an_archive_that_does_not_know(resend, monkeypatch, url, code, message):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", url)
    found, _, err = resend()
    assert found == code
    assert message in err


def test_an_archive_that_is_away_is_an_error(home, resend):
    (home / "sparklineage").mkdir(parents=True)
    (home / "sparklineage" / "archive").touch()
    code, _, err = resend()
    assert code == 1
    assert "could not be read from" in err


@pytest.mark.parametrize("since", ["2", "h", "2w", "-2h", "2 h"])
def test_a_time_that_is_none_is_refused(resend, since):
    code, _, err = resend(since=since)
    assert code == 2
    assert "Write it as 30m, 2h or 7d" in err


def test_the_bar_comes_to_its_end(backend, keep, resend, monkeypatch):
    from contextlib import contextmanager

    seen = {}

    @contextmanager
    def progress(what, total):
        yield lambda done: seen.setdefault(what, [total]).append(done)

    monkeypatch.setattr(sender.commands, "progress", progress)
    for hours in (3, 2, 1):
        keep(hours)
    resend()
    [total, *reached] = seen["Sending events"]
    assert total == 3
    assert reached == sorted(reached)
    assert reached[-1] == 3


# --- several at once ------------------------------------------------------------------------------


def test_of_two_at_once_one_sends_and_the_other_is_refused(
    backend, archive, keep, resend, monkeypatch
):
    event = keep(1)
    others = []
    arrived = _Backend.post

    def post(self):
        others.append(resend())
        arrived(self)

    monkeypatch.setattr(_Backend, "post", post)
    assert resend()[0] == 0
    assert sent(backend) == pair(event)
    assert [code for code, _, _ in others] == [1, 1]
    assert all("being sent already, by process" in err for _, _, err in others)
    monkeypatch.setattr(_Backend, "post", arrived)
    assert resend() == (0, "There is nothing to send.\n", "")


def test_a_lock_that_a_killed_process_has_left_is_taken_over(backend, archive, keep, resend):
    event = keep(1)
    ended = subprocess.Popen(["true"])
    ended.wait()
    owner = Owner(socket.gethostname(), ended.pid, "killed", datetime.now(UTC))
    Folder(archive._store().root).write(sender._LOCK, msgspec.json.encode(owner))
    assert resend()[0] == 0
    assert sent(backend) == pair(event)


@pytest.mark.parametrize("name", ["a b", "a%20b", "a#b", "a?b"])
def test_an_archive_with_an_odd_path_has_a_lock_too(tmp_path, name):
    (tmp_path / name).mkdir()
    with sender.alone(Archive(f"file://{tmp_path / name}")):
        assert (tmp_path / name / sender._LOCK).is_file()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_in_the_place_of_the_lock_does_not_keep_events_back(
    backend, archive, keep, resend, make
):
    event = keep(1)
    make(archive._store().root / sender._LOCK)
    code, _, err = resend()
    assert (code, sent(backend)) == (0, pair(event))
    assert "sent without a lock" in err


def test_two_collectors_wait_for_each_other_and_do_not_fail(archive, keep, capsys):
    keep(1)
    with sender.alone(archive):
        begun = time.monotonic()
        with sender.alone(archive, 0.5):
            assert time.monotonic() - begun > 0.5
    assert "sent without a lock" in capsys.readouterr().err
    with sender.alone(archive, 0.5):
        pass
    assert capsys.readouterr().err == ""


# --- what is in the place of an event -------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_mark", [False, True], ids=["event", "mark"])
def test_what_is_in_the_place_of_an_event_does_not_keep_the_others_back(
    backend, archive, keep, resend, kind, is_mark
):
    keep(2)
    last = keep(1)
    first = unsent(archive)[1]
    file = archive._store().root / (f"=unsent/{first}" if is_mark else f"{first}.json")
    file.unlink()
    KINDS[kind](file)
    begun = time.monotonic()
    code, _, err = resend()
    assert time.monotonic() - begun < 20
    assert sent(backend)[-2:] == pair(last)
    assert is_mark or (code == 1 and "is skipped" in err)
