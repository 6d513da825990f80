"""A real driver delivers what listener and observer write, whatever the job does meanwhile."""

from __future__ import annotations

import json
import signal
import socket
import time
from typing import TYPE_CHECKING

import msgspec
import pytest

from airflow_provider_sparklineage.spark.capture import remote
from tests import record_events
from tests.spark import submissions

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.spark, pytest.mark.long]

KINDS = ("events", "observations")
APPLICATION = record_events.APPLICATIONS / "delivered.py"


class Run:
    """A driver that has ended, its container and what it has delivered."""

    def __init__(self, spark, work: Path, scenario: str, ends: int, deliver: str = ""):
        submissions.submit(
            spark,
            APPLICATION,
            work,
            listener=spark.listener,
            conf={"spark.app.name": scenario},
            ends=ends,
            deliver=deliver or f"file://{work}/remote",
        )
        self.ended = time.monotonic()
        self.work = work
        self.container = work / "scratch" / submissions.CONTAINER
        self.log = (work / "scratch" / "spark.log").read_text().splitlines()

    @property
    def attempt(self) -> Path:
        """The folder of the one driver."""
        [attempt] = (self.work / "remote").iterdir()
        return attempt

    def written(self, kind: str) -> bytes:
        return (self.container / f"{kind}.ndjson").read_bytes()

    def segments(self, kind: str) -> list[bytes]:
        files = sorted(self.attempt.glob(f"{kind}-*.ndjson"))
        numbers = range(1, len(files) + 1)
        assert [file.name for file in files] == [f"{kind}-{n:05d}.ndjson" for n in numbers]
        return [file.read_bytes() for file in files]

    def folders(self) -> set[str]:
        """Give the folders that are written to as far as is delivered."""
        records = map(json.loads, b"".join(self.segments("observations")).splitlines())
        return {w["path"].rpartition("/")[2] for r in records for w in r.get("writes", ())}


@pytest.fixture(scope="module")
def troubled(spark, tmp_path_factory):
    """Run a job that does what it can to be in the way of the delivery."""
    work = tmp_path_factory.mktemp("troubled")
    (work / "remote").write_text("no folder can be made here")
    return Run(spark, work, "troubled", ends=3)


def test_all_that_is_written_is_delivered_in_whole_lines_and_once(troubled):
    for kind in KINDS:
        segments = troubled.segments(kind)
        assert len(segments) > 2
        assert all(segment.endswith(b"\n") for segment in segments)
        assert b"".join(segments) == troubled.written(kind)


def test_writes_before_and_after_the_end_of_a_context_are_delivered(troubled):
    assert troubled.folders() == {"before", "thread0", "thread1", "thread2", "after"}


def test_what_an_exit_handler_of_the_job_does_is_delivered_too(troubled):
    """It stops the second context, of which the listener then reports the end."""
    events = [json.loads(line) for line in b"".join(troubled.segments("events")).splitlines()]
    ends = [e["job"]["name"] for e in events if e["eventType"] == "COMPLETE"]
    assert ends.count("troubled") == 2, ends


def test_the_beginning_and_the_end_are_delivered_as_the_worker_reads_them(troubled):
    assert remote.ATTEMPT.fullmatch(troubled.attempt.name)
    start = (troubled.attempt / remote.START).read_bytes()
    assert msgspec.json.decode(start, type=remote.Start).application_run_id == submissions.TAG
    end = msgspec.json.decode((troubled.attempt / remote.END).read_bytes(), type=remote.End)
    assert end.application_run_id == submissions.TAG
    assert end.segments == {kind: len(troubled.segments(kind)) for kind in KINDS}
    assert end.errors == ()
    assert end.delivery_ms > 0


def test_there_is_nothing_else_in_the_folder(troubled):
    names = {file.name for file in troubled.attempt.iterdir()} - {remote.START, remote.END}
    assert {name for name in names if not remote.SEGMENT.fullmatch(name)} == set()


def test_folders_and_files_are_for_the_group_and_those_of_the_container_for_one_user(troubled):
    def mode(path):
        return oct(path.stat().st_mode & 0o777)

    assert mode(troubled.attempt) == "0o770"
    assert {mode(file) for file in troubled.attempt.iterdir()} == {"0o660"}
    assert mode(troubled.container) == "0o700"


def test_a_folder_that_can_be_made_later_has_an_error_in_the_log_and_in_the_observations(troubled):
    [line] = [line for line in troubled.log if line.startswith("sparklineage:")]
    assert "cannot deliver lineage to file:" in line
    errors = [
        record["error"]
        for record in map(json.loads, troubled.written("observations").splitlines())
        if "error" in record
    ]
    [error] = errors
    assert error.startswith("deliver: ")
    assert error.endswith("s later")


def test_a_driver_that_is_killed_loses_what_was_after_its_last_delivery(spark, tmp_path):
    run = Run(spark, tmp_path, "killed", ends=-signal.SIGKILL)
    assert not (run.attempt / remote.END).exists()
    for kind in KINDS:
        delivered = b"".join(run.segments(kind))
        assert delivered.endswith(b"\n")
        assert run.written(kind).startswith(delivered)
    assert run.folders() == {"delivered"}


def test_a_file_system_that_hangs_holds_a_driver_for_seconds(spark, tmp_path):
    """This one takes connections, and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        url = f"hdfs://me:secret@127.0.0.1:{port}/lineage"
        run = Run(spark, tmp_path, "short", ends=0, deliver=url)
    assert 9 < run.ended - float((tmp_path / "ended").read_text()) < 60
    [line] = [line for line in run.log if line.startswith("sparklineage:")]
    assert "it took longer than 10 s" in line
    assert "secret" not in line
    assert b"only" in run.written("observations")
