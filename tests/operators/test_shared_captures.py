"""Workers that share a capture location, on machines of their own: none harms what others do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import ownership
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity

pytestmark = pytest.mark.airflow  # as are the other tests that start processes

# A worker of one host: makes tries one after the other, and sweeps as eagerly as it can.
WORKER = """
import pathlib, sys, time
from datetime import UTC, datetime, timedelta
import msgspec
from msgspec.structs import replace
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity, Worker

location, host, seconds = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
ends = time.monotonic() + seconds
number = 0
while time.monotonic() < ends:
    number += 1
    task = TaskIdentity("shop", host, "manual", number)
    manifest = Manifest("run-" + host, task=task, worker=Worker(host, 1))
    bundle = capture.create(location, manifest)
    assert bundle.lock is not None, "it is not held"
    lines = []
    for line in range(5):
        lines.append(f"{host} {number} {line}")
        with bundle.events_path.open("a") as events:
            events.write(lines[-1] + chr(10))
        capture.sweep(location, older_than=timedelta(0), now=datetime.now(UTC))
        capture.sweep_at_times(location, older_than=timedelta(0), now=datetime.now(UTC))
    assert bundle.events_path.read_text().split(chr(10))[:-1] == lines, "events are lost"
    assert capture.load(bundle.path).manifest == manifest, "the manifest is another"
    earlier = capture.earlier_try(location, manifest)
    assert earlier is None or earlier.manifest.task.task_id == host, "that is another task's"
    if earlier is not None:
        earlier.remove()
    ended = replace(bundle, manifest=msgspec.structs.replace(manifest, ended=datetime.now(UTC)))
    ended.save()
    ended.release()
print(number, flush=True)
"""

# The try that is killed, and the next one, which takes up what it has submitted.
SUBMITS = """
import pathlib, sys, time
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity
task = TaskIdentity("shop", "revenue", "manual", 1)
bundle = capture.create(pathlib.Path(sys.argv[1]), Manifest("run-1", task=task))
bundle.events_path.write_text("what Spark reports")
print(bundle.path, flush=True)
time.sleep(60)
"""
RESUMES = """
import pathlib, sys
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity
task = TaskIdentity("shop", "revenue", "manual", 2)
sys.stdin.readline()
earlier = capture.earlier_try(pathlib.Path(sys.argv[1]), Manifest("run-2", task=task))
print(earlier and earlier.path, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def location(tmp_path):
    folder = tmp_path / "captures"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def start(tmp_path, location):
    """Start processes that share nothing but the location, and leave none of them behind."""
    started = []

    def start(code, *arguments):
        own = tmp_path / f"host-{len(started)}"
        own.mkdir()
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(location), *arguments],
            env={**os.environ, "TMPDIR": str(own), "HOME": str(own)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def go_on(process):
    process.stdin.write("\n")
    process.stdin.flush()


@contextmanager
def cut_after(seconds):
    """Let no test hang."""

    def cut(*_):
        pytest.fail(f"nothing after {seconds} s")

    before = signal.signal(signal.SIGALRM, cut)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_eager_sweepers_leave_the_tries_of_other_hosts_alone(start, location):
    with cut_after(120):
        workers = [start(WORKER, f"host{n}", "3") for n in range(3)]
        for worker in workers:
            printed, errors = worker.communicate()
            assert (worker.returncode, errors) == (0, "")
            assert int(printed) > 1
    capture.sweep(location, older_than=timedelta(0), now=datetime.now(UTC))
    assert [path.name for path in location.iterdir() if path.is_dir()] == []


def test_of_what_a_killed_worker_submitted_one_try_takes_hold_and_no_sweep_removes_it(
    start, location
):
    now = datetime.now(UTC)
    long_ago = (now - timedelta(days=30)).timestamp()
    with cut_after(120):
        killed = start(SUBMITS)
        bundle = killed.stdout.readline().strip()
        killed.kill()
        killed.wait()
        for file in location.glob("*/*"):
            os.utime(file, (long_ago, long_ago))
        resuming = [start(RESUMES) for _ in range(3)]
        for process in resuming:
            go_on(process)
        found = [process.stdout.readline().strip() for process in resuming]
        assert sorted(found) == sorted([bundle, "None", "None"])
        assert capture.sweep(location, older_than=timedelta(0), now=now) == 0
        for process in resuming:
            go_on(process)
            process.wait()
    assert capture.sweep(location, older_than=timedelta(0), now=now) == 1


def test_a_worker_that_is_killed_while_it_sweeps_or_waits_holds_nothing(start, location):
    with cut_after(120):
        worker = start(WORKER, "host", "60")
        while not list(location.glob("*/events.ndjson")):
            assert worker.poll() is None
        worker.kill()
        worker.wait()
    for folder in location.glob("*/"):
        lock = ownership.acquire_lock(folder)
        assert lock is not None
        lock.release()
    later = Manifest("run-99", task=TaskIdentity("shop", "host", "manual", 99))
    earlier = capture.earlier_try(location, later)
    if earlier is not None:
        earlier.release()
