"""The archive in AIRFLOW_HOME: its user's alone, complete or not at all, and swept."""

from __future__ import annotations

import errno
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from airflow_provider_sparklineage.event import archive as archives
from airflow_provider_sparklineage.event.archive import Archive, OwnFolder, name_of
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.model.exceptions import ArchiveError
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from airflow_provider_sparklineage.storage.objects import Objects

local = pytest.importorskip("fsspec.implementations.local", reason="it comes with Airflow")

TASK = TaskIdentity("shop", "revenue", "manual", 1)
FILE = "shop/manual/revenue/-1/1.json"
NOW = datetime(2026, 5, 6, 12, tzinfo=UTC)
QUARTER = timedelta(days=90)


def event(name="shop.revenue"):
    return {
        "job": {"namespace": "tests", "name": name},
        "run": {"facets": {"sparkLineage_capture": {}}},
    }


@pytest.fixture
def root(tmp_path):
    return tmp_path / "home" / "sparklineage" / "archive"


@pytest.fixture
def archive(root):
    return Archive(f"file://{root}", is_default=True)


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def files(root):
    return sorted(str(f.relative_to(root)) for f in root.rglob("*") if f.is_file())


def test_it_is_for_its_user_only_whatever_the_umask(archive, root, umask):
    archive.write(TASK, Written(event()), is_unsent=True)
    made = [root, *root.rglob("*")]
    assert {mode(path) for path in made if path.is_dir()} == {0o700}
    assert {mode(path) for path in made if path.is_file()} == {0o600}
    assert archive.read(TASK) == event()


def test_a_folder_that_others_can_read_is_closed(archive, root):
    root.mkdir(parents=True)
    root.chmod(0o755)
    archive.write(TASK, Written(event()))
    assert mode(root) == 0o700


def test_a_folder_of_another_user_is_refused(archive, root, monkeypatch):
    root.mkdir(parents=True)
    monkeypatch.setattr(os, "getuid", lambda: root.stat().st_uid + 1)
    with pytest.raises(ArchiveError, match="no folder of this user") as refused:
        archive.write(TASK, Written(event()))
    assert "to another one, or to none" in refused.value.fix
    for ask in (archive.read, archive.tries, lambda task: archive.unmark(name_of(task))):
        with pytest.raises(ArchiveError, match="no folder of this user"):
            ask(TASK)
    assert files(root) == []


def test_its_user_may_put_it_on_another_disk(archive, root, tmp_path):
    (tmp_path / "disk").mkdir()
    root.parent.mkdir(parents=True)
    root.symlink_to(tmp_path / "disk")
    archive.write(TASK, Written(event()))
    assert files(tmp_path / "disk") == [FILE]
    assert archive.read(TASK) == event()


def test_names_in_paths_of_homes_are_taken_as_they_are(tmp_path):
    root = tmp_path / "a@b #1?x=%2F ж"
    archive = Archive(f"file://{root}", is_default=True)
    archive.write(TASK, Written(event()))
    assert files(root) == [FILE]
    assert [entry.name for entry in archive.entries()] == [FILE.removesuffix(".json")]


def test_nothing_stays_of_what_could_not_be_written(archive, root, monkeypatch):
    archive.write(TASK, Written(event("first")))

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(ArchiveError, match="No space left"):
        archive.write(TASK, Written(event("second")))
    assert files(root) == [FILE]
    assert archive.read(TASK) == event("first")


def test_what_could_not_be_written_is_not_marked(archive, monkeypatch):
    """There would be nothing to send, and for as long as the mark is there somebody would try."""
    write = Objects.write

    def full(folder, name, content):
        if content:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(folder, name, content)

    monkeypatch.setattr(Objects, "write", full)
    with pytest.raises(ArchiveError, match="No space left"):
        archive.write(TASK, Written(event()), is_unsent=True)
    assert archive.unsent() == []


def test_a_folder_that_was_swept_while_it_was_empty_is_made_again(archive, root, monkeypatch):
    real, calls = local.LocalFileSystem.pipe_file, []

    def swept(store, path, *args):
        calls.append(path)
        if len(calls) == 1:
            Path(path).parent.rmdir()
        return real(store, path, *args)

    monkeypatch.setattr(local.LocalFileSystem, "pipe_file", swept)
    archive.write(TASK, Written(event()))
    assert len(calls) == 2
    monkeypatch.undo()
    assert archive.read(TASK) == event()


def test_a_link_in_the_place_of_an_event_is_replaced_and_not_written_to(archive, root, tmp_path):
    (root / FILE).parent.mkdir(parents=True)
    (tmp_path / "other").write_text("theirs")
    (root / FILE).symlink_to(tmp_path / "other")
    archive.write(TASK, Written(event()))
    assert (tmp_path / "other").read_text() == "theirs"
    assert archive.read(TASK) == event()


# --- what is in it --------------------------------------------------------------------------------


def test_entries_are_those_of_a_dag_a_task_or_a_run(archive):
    for dag_id in ("a", "b"):
        for run_id in ("r1", "r:2"):
            for task_id in ("t", "u"):
                archive.write(TaskIdentity(dag_id, task_id, run_id, 1), Written(event()))

    def names(*of):
        return sorted(entry.name for entry in archive.entries(*of))

    assert len(names()) == 8
    assert len(names("a")) == 4
    assert names("a", "t") == ["a/r%3A2/t/-1/1", "a/r1/t/-1/1"]
    assert names("a", "t", "r:2") == ["a/r%3A2/t/-1/1"]
    assert names("c") == names("a", "nothing") == []


def test_marks_and_strangers_are_no_entries(archive, root):
    archive.write(TASK, Written(event()), is_unsent=True)
    (root / "shop" / "notes.json").write_text("{}")
    (root / "shop" / "manual" / "revenue" / "-1" / "2.json.0a1b.part").write_text("{")
    archive.sweep_at_times(older_than=QUARTER, now=NOW)
    assert [entry.name for entry in archive.entries()] == ["shop/manual/revenue/-1/1"]
    assert archive.tries(TASK) == [1]


def test_nothing_is_in_an_archive_that_is_not_there_yet(archive, root):
    assert archive.entries() == archive.unsent() == archive.tries(TASK) == []
    archive_is_made = root.exists()
    assert not archive_is_made


@pytest.mark.parametrize("is_default", [True, False], ids=["default", "configured"])
def test_an_event_is_marked_until_it_was_sent(root, is_default):
    if not is_default:
        pytest.importorskip("airflow", reason="a configured archive is one of Airflow's objects")
    archive = Archive(f"file://{root}", is_default=is_default)
    archive.write(TASK, Written(event()), is_unsent=True)
    assert [entry.name for entry in archive.unsent()] == ["shop/manual/revenue/-1/1"]
    archive.unmark(name_of(TASK))
    archive.unmark(name_of(TASK))
    assert archive.unsent() == []
    assert archive.read(TASK) == event()


def test_an_object_store_has_no_marks():
    archive = Archive("s3://bucket/lineage")
    assert not archive.has_marks
    assert archive.unsent() == []
    archive.unmark(name_of(TASK))


def test_what_airflow_adds_is_kept_and_given_to_nobody_who_reads_the_event(archive, root):
    archive.write(TASK, Written(event()), {"started": "2024-05-06T00:00:00+00:00"})
    assert archive.read(TASK) == event()
    kept = archive.archived("shop/manual/revenue/-1/1")
    assert kept == (event(), {"started": "2024-05-06T00:00:00+00:00"})
    archive.write(TASK, Written(event()))
    assert archive.archived("shop/manual/revenue/-1/1") == (event(), None)


# --- sweeping -------------------------------------------------------------------------------------


def aged(root, days):
    for path in root.rglob("*"):
        if path.is_file():
            then = NOW.timestamp() - days * 86400
            os.utime(path, (then, then))


def of_run(run_id):
    return TaskIdentity(TASK.dag_id, TASK.task_id, run_id, 1)


def test_what_is_older_than_the_retention_goes_with_its_mark_and_its_empty_folders(archive, root):
    archive.write(of_run("old"), Written(event()), is_unsent=True)
    aged(root, 91)
    archive.write(of_run("new"), Written(event()))
    os.utime(root / "shop/new/revenue/-1/1.json", (NOW.timestamp(), NOW.timestamp()))
    assert archive.sweep_at_times(older_than=QUARTER, now=NOW) == 2
    assert [entry.name for entry in archive.entries()] == ["shop/new/revenue/-1/1"]
    assert sorted(path.name for path in (root / "shop").iterdir()) == ["new"]
    assert not (root / "=unsent").exists()


def test_it_is_swept_once_an_hour(archive, root):
    now = datetime.now(UTC) + timedelta(minutes=1)  # after the sweep has marked its time
    archive.sweep_at_times(older_than=timedelta(days=1), now=now)
    archive.write(TASK, Written(event()))
    aged(root / "shop", 1000)
    assert archive.sweep_at_times(older_than=timedelta(days=1), now=now) == 0
    later = now + timedelta(hours=2)
    assert archive.sweep_at_times(older_than=timedelta(days=1), now=later) == 1


def test_a_sweep_ends_when_its_time_is_up(archive, root):
    for number in range(20):
        archive.write(of_run(str(number)), Written(event()))
    aged(root, 1000)
    assert OwnFolder(f"file://{root}").sweep(older_than=QUARTER, now=NOW, seconds=-1) == 0
    assert len(files(root)) == 20
    assert OwnFolder(f"file://{root}").sweep(older_than=QUARTER, now=NOW, seconds=60) == 20
    assert list(root.iterdir()) == []


def test_a_sweep_follows_no_link(archive, root, tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "file").write_text("theirs")
    archive.write(TASK, Written(event()))
    (root / "shop" / "link").symlink_to(tmp_path / "theirs")
    aged(root, 1000)
    aged(tmp_path / "theirs", 1000)
    OwnFolder(f"file://{root}").sweep(older_than=QUARTER, now=NOW, seconds=60)
    assert (tmp_path / "theirs" / "file").exists()


def test_an_archive_of_the_users_own_is_never_swept(root, monkeypatch):
    def none(*_, **__):
        raise AssertionError

    monkeypatch.setattr(archives.OwnFolder, "sweep", none)
    Archive(f"file://{root}").sweep_at_times(older_than=timedelta(), now=NOW)
