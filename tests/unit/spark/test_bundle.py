"""The capture bundle: private, complete or not there at all, and removed when its time is over."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime

import pytest

from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity

NOW = datetime(2026, 1, 10, tzinfo=UTC)


def manifest(**kwargs):
    return Manifest(application_run_id="r", **kwargs)


def test_a_bundle_and_its_location_are_private(tmp_path):
    bundle = capture.create(tmp_path / "a" / "b", manifest())
    assert oct(bundle.path.stat().st_mode & 0o777) == "0o700"
    assert oct(bundle.path.parent.stat().st_mode & 0o777) == "0o700"


def test_a_bundle_is_read_as_it_was_written(tmp_path):
    task = TaskIdentity("d", "t", "r", 1)
    bundle = capture.create(tmp_path, manifest(task=task, started=NOW))
    assert capture.load(bundle.path).manifest == bundle.manifest


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


def test_a_location_that_is_a_file_is_reported_with_the_option(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CaptureError, match=r"Set \[sparklineage\] capture_location"):
        capture.create(tmp_path / "file", manifest())


@pytest.mark.parametrize("content", [None, b"", b"{}", b"garbage", b'{"application_run_id": 5}'])
def test_a_directory_without_a_readable_manifest_is_no_bundle(tmp_path, content):
    if content is not None:
        (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(CaptureError, match="manifest"):
        capture.load(tmp_path)


def test_events_that_cannot_be_read_are_an_error(tmp_path):
    bundle = capture.create(tmp_path, manifest())
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
