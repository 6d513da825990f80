"""The archive on a real store, and on stores that are away, slow or hold something else."""

from __future__ import annotations

import json
import time

import pytest

from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.model.exceptions import ArchiveError, DocumentError
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

pytestmark = pytest.mark.airflow

TASK = TaskIdentity("shop", "revenue", "manual__2024-05-06T00:00:00+00:00", 1)
FILE = "shop/manual__2024-05-06T00%3A00%3A00%2B00%3A00/revenue/-1/1.json"


def event(name="shop.revenue"):
    return {
        "job": {"namespace": "tests", "name": name},
        "run": {"facets": {"sparkLineage_capture": {}}},
    }


def of_try(number):
    return TaskIdentity(TASK.dag_id, TASK.task_id, TASK.run_id, number)


@pytest.fixture
def archive(tmp_path):
    return Archive(f"file://{tmp_path}/archive")


def test_a_try_is_kept_in_a_file_of_its_own(archive, tmp_path):
    archive.write(TASK, Written(event()))
    assert json.loads((tmp_path / "archive" / FILE).read_text()) == event()
    assert archive.read(TASK) == event()


def test_nothing_stays_next_to_it(archive, tmp_path):
    archive.write(TASK, Written(event("first")))
    archive.write(TASK, Written(event("second")))
    files = [f for f in (tmp_path / "archive").rglob("*") if f.is_file()]
    assert files == [tmp_path / "archive" / FILE]
    assert archive.read(TASK)["job"]["name"] == "second"


def test_tries_are_listed_in_their_order(archive, tmp_path):
    for number in (10, 2, 1):
        archive.write(of_try(number), Written(event()))
    folder = (tmp_path / "archive" / FILE).parent
    (folder / "3.json.0a1b.part").write_text("{")
    (folder / "notes.json").write_text("{}")
    assert archive.tries(TASK) == [1, 2, 10]


def test_a_task_without_lineage_has_no_tries(archive):
    assert archive.tries(TASK) == []
    with pytest.raises(ArchiveError, match="FileNotFoundError"):
        archive.read(TASK)


def test_another_store():
    """One without folders, and without an atomic move."""
    from airflow.sdk.io import attach
    from fsspec.implementations.memory import MemoryFileSystem

    attach(protocol="memory", fs=MemoryFileSystem())
    archive = Archive("memory://bucket/lineage")
    archive.write(TASK, Written(event()))
    assert archive.tries(TASK) == [1]
    assert archive.read(TASK) == event()


def test_archiving_is_no_lineage_of_the_task(archive):
    from airflow.sdk.lineage import get_hook_lineage_collector

    archive.write(TASK, Written(event()))
    archive.read(TASK)
    assert str(archive.url) not in repr(get_hook_lineage_collector().collected_assets)


def test_what_is_no_event_is_refused(archive, tmp_path):
    archive.write(TASK, Written(event()))
    for text in ("", "{", "[1]", "\ufeff"):
        (tmp_path / "archive" / FILE).write_text(text)
        with pytest.raises(DocumentError, match=r"no lineage|damaged and cannot be read"):
            archive.read(TASK)


@pytest.mark.parametrize("url", ["nosuch://bucket/x", "file:///proc/nowhere", "file:///dev/null/x"])
def test_an_unreachable_archive_is_one_error(url):
    with pytest.raises(ArchiveError, match=r"could not be written to .*archive_url"):
        Archive(url).write(TASK, Written(event()))


def test_a_store_that_hangs_is_left_in_time(archive, monkeypatch):
    from fsspec.implementations.local import LocalFileSystem

    monkeypatch.setattr(LocalFileSystem, "makedirs", lambda *_, **__: time.sleep(30))
    started = time.monotonic()
    with pytest.raises(ArchiveError, match=r"no answer within 0\.1 s"):
        archive.within(0.1).write(TASK, Written(event()))
    assert time.monotonic() - started < 5
