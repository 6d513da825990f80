"""The capture bundle: private, complete or not there at all, and removed when its time is over."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture import bundle, ownership
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity
from airflow_provider_sparklineage.spark.submit import submitted_files

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def manifest(**kwargs):
    return Manifest(application_run_id="r", **kwargs)


def test_a_bundle_and_its_location_are_private(tmp_path):
    bundle = capture.create(tmp_path / "a" / "b", manifest())
    assert oct(bundle.path.stat().st_mode & 0o777) == "0o700"
    assert oct(bundle.path.parent.stat().st_mode & 0o777) == "0o700"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077], ids=oct)
def test_whatever_the_umask_a_bundle_is_this_users_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        bundle = capture.create(tmp_path / "a" / "b", manifest())
        submitted_files.write_observer(bundle.path)
        bundle.save()
    finally:
        os.umask(before)
    modes = {path.name: oct(path.stat().st_mode & 0o077) for path in bundle.path.iterdir()}
    names = [".lock", "events.ndjson", "manifest.json", "sparklineage_observer.zip"]
    assert modes == dict.fromkeys(names, "0o0")
    assert bundle.path.stat().st_mode & 0o077 == 0
    assert capture.create(bundle.path.parent, manifest()).path  # and is accepted the next time


def test_a_file_for_events_that_nobody_wrote_to_has_none(tmp_path):
    bundle = capture.create(tmp_path, manifest())
    assert bundle.events_path.read_bytes() == b""
    assert list(bundle.events()) == []
    assert bundle.report.malformed_lines == 0


def test_a_link_in_the_place_of_the_manifest_is_not_followed(tmp_path):
    bundle = capture.create(tmp_path / "captures", manifest())
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (bundle.path / ".manifest.json").symlink_to(precious)
    with pytest.raises(CaptureError, match="manifest cannot be written"):
        bundle.save()
    assert precious.read_text() == "precious"


def test_a_bundle_that_became_a_link_is_removed_without_what_it_leads_to(tmp_path):
    bundle = capture.create(tmp_path / "captures", manifest())
    precious = tmp_path / "precious"
    bundle.path.rename(precious)
    bundle.path.symlink_to(precious)
    bundle.remove()
    assert (precious / "manifest.json").exists()


def test_a_bundle_is_read_as_it_was_written(tmp_path):
    task = TaskIdentity("d", "t", "r", 1)
    bundle = capture.create(tmp_path, manifest(task=task, started=NOW))
    assert capture.load(bundle.path).manifest == bundle.manifest


def test_a_new_bundle_is_held_even_if_one_that_sweeps_looks_at_it_first(tmp_path, monkeypatch):
    make = tempfile.mkdtemp

    def made_and_looked_at(**kwargs):
        path = make(**kwargs)
        threading.Timer(0.3, ownership.acquire_lock(Path(path)).release).start()
        return path

    monkeypatch.setattr(tempfile, "mkdtemp", made_and_looked_at)
    bundle = capture.create(tmp_path, manifest())
    assert bundle.lock is not None
    assert ownership.acquire_lock(bundle.path) is None


def test_two_bundles_of_one_try_are_two_directories(tmp_path):
    task = TaskIdentity("d/../x", "täsk", "r", 1)
    paths = {capture.create(tmp_path, manifest(task=task)).path for _ in range(2)}
    assert len(paths) == 2
    assert all(path.parent == tmp_path for path in paths)


def test_a_location_that_others_can_write_to_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(CaptureError, match="writable for others"):
        capture.create(tmp_path, manifest())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_a_location_of_somebody_else_is_refused(tmp_path):
    os.chown(tmp_path, 12345, -1)
    with pytest.raises(CaptureError, match="belongs to another user"):
        capture.create(tmp_path, manifest())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a link away")
def test_a_location_that_is_a_link_of_somebody_else_is_refused(tmp_path):
    """The default one is in the temporary folder, where anybody may be there first."""
    (tmp_path / "dags").mkdir(mode=0o700)
    location = tmp_path / "sparklineage-0"
    location.symlink_to(tmp_path / "dags")
    capture.create(location, manifest()).remove()
    os.chown(location, 12345, -1, follow_symlinks=False)
    with pytest.raises(CaptureError, match="belongs to another user"):
        capture.create(location, manifest())


def a_file(path):
    path.touch()
    return path


def a_pipe(path):
    os.mkfifo(path)
    return path


def a_device(_path):
    return Path(os.devnull)


def below_a_file(path):
    path.touch()
    return path / "captures"


def a_link_to_itself(path):
    path.symlink_to(path)
    return path


def below_a_link_to_itself(path):
    path.symlink_to(path)
    return path / "captures"


@pytest.mark.parametrize(
    "place",
    [a_file, a_pipe, a_device, below_a_file, a_link_to_itself, below_a_link_to_itself],
    ids=lambda place: place.__name__,
)
def test_a_location_that_can_be_no_folder_is_reported_with_the_option(tmp_path, place):
    location = place(tmp_path / "captures")
    with pytest.raises(CaptureError, match=r"Set \[sparklineage\] capture_location"):
        capture.create(location, manifest())
    assert bundle.sweep_at_times(location, older_than=timedelta(7), now=NOW) == 0


@pytest.mark.skipif(os.getuid() != 0, reason="root can search every folder, and become another")
def test_a_location_below_a_folder_that_may_not_be_searched_is_reported(tmp_path):
    (tmp_path / "locked").mkdir(mode=0o700)
    code = (
        "import os, pathlib, sys\n"
        "from airflow_provider_sparklineage.model.exceptions import CaptureError\n"
        "from airflow_provider_sparklineage.spark.capture import bundle\n"
        "os.setuid(12345)\n"
        "try:\n"
        "    bundle.create(pathlib.Path(sys.argv[1]), bundle.Manifest(application_run_id='r'))\n"
        "except CaptureError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "locked" / "captures")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Permission denied" in done.stdout
    assert "Set [sparklineage] capture_location" in done.stdout


@pytest.mark.parametrize("content", [None, b"", b"{}", b"garbage", b'{"application_run_id": 5}'])
def test_a_directory_without_a_readable_manifest_is_no_bundle(tmp_path, content):
    if content is not None:
        (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(CaptureError, match="manifest"):
        capture.load(tmp_path)


def test_events_that_cannot_be_read_are_an_error(tmp_path):
    bundle = capture.create(tmp_path, manifest())
    bundle.events_path.unlink()
    bundle.events_path.mkdir()
    with pytest.raises(CaptureError, match="cannot be read"):
        list(bundle.events())


def test_a_bundle_whose_manifest_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def full(_self):
        msg = "no space left"
        raise CaptureError(msg)

    monkeypatch.setattr(capture.CaptureBundle, "save", full)
    with pytest.raises(CaptureError):
        capture.create(tmp_path, manifest())
    assert list(tmp_path.iterdir()) == []


def test_a_manifest_keeps_what_is_missing_with_the_keys_of_before(tmp_path):
    missing = Degradation(DegradationCode.NO_EVENTS, "The listener wrote nothing.")
    bundle = capture.create(tmp_path, manifest(degradations=(missing,)))
    kept = json.loads((bundle.path / "manifest.json").read_text())
    assert kept["degradations"] == [{"code": "no_events", "message": "The listener wrote nothing."}]
    assert capture.load(bundle.path).manifest.degradations == (missing,)


def test_a_bundle_that_the_job_has_replaced_by_a_link_gets_no_manifest(tmp_path):
    bundle = capture.create(tmp_path / "captures", manifest())
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    capture.remove(bundle.path)
    bundle.path.symlink_to(elsewhere)
    with pytest.raises(CaptureError, match="was replaced by a link"):
        bundle.save()
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("dag_id", "task_id"),
    [
        pytest.param("shop", "revenue", id="plain"),
        pytest.param("shop.eu", "group.revenue", id="dots"),
        pytest.param("shop", "a-try2-b", id="one that looks like a try"),
        pytest.param("Umsätze/täglich", "ü" * 250, id="odd and long"),
    ],
)
def test_by_its_name_a_bundle_may_be_of_its_task(tmp_path, dag_id, task_id):
    task = TaskIdentity(dag_id, task_id, "manual", 1)
    bundle = capture.create(tmp_path / "captures", Manifest("run", task=task))
    name = bundle.path.name
    bundle.remove()
    for dag, of_task in ((dag_id, task_id), (dag_id, ""), ("", task_id), ("", "")):
        assert capture.may_be_of(name, dag, of_task)
    assert not capture.may_be_of(name, "other", "")
    assert not capture.may_be_of(name, dag_id, "other")
