"""What is swept and what is not: never the bundle of a try that runs."""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import ownership
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity

NOW = datetime(2024, 5, 6, tzinfo=UTC)
WEEK = timedelta(days=7)
SWEPT = f".swept-{os.getuid()}"
only_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def temp(tmp_path_factory, monkeypatch):
    """Stand in for the temporary folder, which is swept, too."""
    folder = tmp_path_factory.mktemp("temp")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def bundle(location, ended=None, written=None):
    """Make a bundle whose files were last written some time before now."""
    made = capture.create(location, Manifest(application_run_id="r", ended=ended))
    for file in made.path.iterdir():
        os.utime(file, ((NOW - (written or timedelta())).timestamp(),) * 2)
    return made


def left(location):
    return {path for path in location.iterdir() if path.is_dir()}


def test_only_bundles_that_ended_long_ago_go(tmp_path):
    old = bundle(tmp_path, ended=NOW - timedelta(days=8))
    new = bundle(tmp_path, ended=NOW - timedelta(days=6))
    for made in (old, new):
        made.release()
    (tmp_path / "stranger").mkdir()
    assert capture.sweep(tmp_path, older_than=WEEK, now=NOW) == 1
    assert left(tmp_path) == {new.path, tmp_path / "stranger"}


def test_what_a_killed_worker_left_counts_from_its_last_write(tmp_path):
    old = bundle(tmp_path, written=timedelta(days=8))
    new = bundle(tmp_path, written=timedelta(days=6))
    for made in (old, new):
        made.release()  # as the system does for a killed process
    capture.sweep(tmp_path, older_than=WEEK, now=NOW)
    assert left(tmp_path) == {new.path}


def test_a_try_that_runs_is_left_alone_however_old_it_looks(tmp_path):
    running = bundle(tmp_path, ended=NOW - timedelta(days=99), written=timedelta(days=99))
    assert capture.sweep(tmp_path, older_than=timedelta(0), now=NOW) == 0
    assert left(tmp_path) == {running.path}
    running.release()
    assert capture.sweep(tmp_path, older_than=timedelta(0), now=NOW) == 1


def test_a_try_that_has_just_begun_is_left_alone(tmp_path):
    begun = bundle(tmp_path, written=timedelta(minutes=5))
    begun.release()
    capture.sweep(tmp_path, older_than=timedelta(0), now=NOW)
    assert left(tmp_path) == {begun.path}


def test_a_bundle_without_a_manifest_goes_as_well(tmp_path):
    torn = bundle(tmp_path, written=timedelta(days=8))
    torn.release()
    (torn.path / "manifest.json").unlink()
    os.utime(torn.path / ownership.LOCK_FILE, (0, 0))
    capture.sweep(tmp_path, older_than=WEEK, now=NOW)
    assert left(tmp_path) == set()


@pytest.mark.parametrize(("hours", "stays"), [(2, False), (0.5, True)])
def test_an_empty_folder_that_a_network_file_system_left_of_a_bundle_goes_an_hour_later(
    tmp_path, hours, stays
):
    left_over = tmp_path / "shop.revenue-try1-abcdefgh"
    left_over.mkdir()
    os.utime(left_over, ((NOW - timedelta(hours=hours)).timestamp(),) * 2)
    capture.sweep(tmp_path, older_than=timedelta(0), now=NOW)
    assert left_over.exists() is stays


def test_a_bundle_that_disappears_while_it_is_swept_is_not_made_again(tmp_path, monkeypatch):
    gone = bundle(tmp_path, ended=NOW - timedelta(days=8))
    other = bundle(tmp_path, ended=NOW - timedelta(days=8))
    monkeypatch.setattr(capture, "own_bundles", lambda _: [gone.path, other.path])
    gone.remove()
    other.release()
    assert capture.sweep(tmp_path, older_than=WEEK, now=NOW) == 1
    assert left(tmp_path) == set()


@pytest.mark.parametrize("name", ["sparklineage", "poetry", "try-outs", "tryst-abcdefgh"])
def test_folders_of_others_that_have_a_lock_of_that_name_stay(tmp_path, name):
    """A capture location can be a folder that others use: /tmp, or ~/.cache with our own jars."""
    (tmp_path / name).mkdir()
    for file in (tmp_path / name / ownership.LOCK_FILE, tmp_path / name / "precious.jar"):
        file.touch()
        os.utime(file, (0, 0))
    assert capture.sweep(tmp_path, older_than=WEEK, now=NOW) == 0
    assert (tmp_path / name / "precious.jar").exists()


def test_a_link_is_no_bundle(tmp_path):
    outside = bundle(tmp_path / "outside", written=timedelta(days=8))
    outside.release()
    captures = tmp_path / "captures"
    captures.mkdir()
    (captures / outside.path.name).symlink_to(outside.path)
    assert capture.sweep(captures, older_than=WEEK, now=NOW) == 0
    assert list(outside.path.iterdir())


def test_where_the_file_system_knows_no_locks_nothing_goes(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(ownership.fcntl, "flock", no_locks)
    bundle(tmp_path, ended=NOW - timedelta(days=8))
    assert capture.sweep(tmp_path, older_than=WEEK, now=NOW) == 0


def test_a_properties_file_that_a_killed_worker_left_goes_after_an_hour(tmp_path):
    old, new = (tmp_path / f"{capture.PROPERTIES_PREFIX}{n}" for n in ("1", "2"))
    others = tmp_path / ".properties-of-somebody"
    two_hours = timedelta(hours=2)
    for file, age in ((old, two_hours), (new, timedelta(minutes=5)), (others, two_hours)):
        file.write_text("secret")
        os.utime(file, ((NOW - age).timestamp(),) * 2)
    capture.sweep(tmp_path, older_than=WEEK, now=NOW)
    assert (old.exists(), new.exists(), others.exists()) == (False, True, True)


def old_properties(folder, name="x"):
    file = folder / f"{capture.PROPERTIES_PREFIX}{name}"
    file.write_text("secret")
    os.utime(file, ((NOW - timedelta(hours=2)).timestamp(),) * 2)
    return file


def test_a_properties_file_that_fell_back_to_the_temporary_folder_goes_as_well(tmp_path, temp):
    file = old_properties(temp)
    capture.sweep(tmp_path, older_than=WEEK, now=NOW)
    assert not file.exists()


def test_what_only_leads_to_an_old_file_is_no_properties_file(tmp_path, temp):
    precious = old_properties(tmp_path.parent, "precious")
    link, folder = (temp / f"{capture.PROPERTIES_PREFIX}{name}" for name in ("link", "folder"))
    link.symlink_to(precious)
    folder.mkdir()
    os.utime(folder, (0, 0))
    capture.sweep(tmp_path, older_than=WEEK, now=NOW)
    assert (precious.exists(), link.is_symlink(), folder.is_dir()) == (True, True, True)


@only_root
def test_the_properties_files_of_other_users_stay(tmp_path, temp):
    file = old_properties(temp)
    os.chown(file, 12345, -1)
    capture.sweep(tmp_path, older_than=WEEK, now=NOW)
    assert file.exists()


@only_root
def test_a_time_that_another_user_set_does_not_end_the_sweep(tmp_path, temp, monkeypatch):
    theirs = old_properties(tmp_path, "theirs")
    os.chown(theirs, 12345, -1)
    # Not every file system stores such a time.
    monkeypatch.setattr(ownership, "modified", lambda status: own_time(status))
    own = old_properties(temp)
    capture.sweep(tmp_path, older_than=WEEK, now=NOW)
    assert (theirs.exists(), own.exists()) == (True, False)


def own_time(status):
    at = 10**14 if status.st_uid == 12345 else status.st_mtime
    return datetime.fromtimestamp(at, UTC)  # the year 3170843 is none


@only_root
def test_the_bundles_of_other_users_stay(tmp_path):
    made = bundle(tmp_path, ended=NOW - timedelta(days=8))
    made.release()
    os.chown(made.path, 12345, -1)
    assert capture.sweep(tmp_path, older_than=WEEK, now=NOW) == 0
    assert (made.path / "manifest.json").exists()


@pytest.mark.parametrize(("minutes", "expected"), [(-5, 1), (5, 0), (65, 1)])
def test_of_many_tries_one_an_hour_sweeps(tmp_path, minutes, expected):
    capture.sweep_at_times(tmp_path, older_than=WEEK, now=NOW)
    os.utime(tmp_path / SWEPT, (NOW.timestamp(),) * 2)
    bundle(tmp_path, ended=NOW - timedelta(days=8)).release()
    later = NOW + timedelta(minutes=minutes)
    assert capture.sweep_at_times(tmp_path, older_than=WEEK, now=later) == expected


def planted_link(last, outside):
    last.symlink_to(outside)


def planted_hard_link(last, outside):
    last.hardlink_to(outside)


def planted_pipe(last, outside):
    os.mkfifo(last)


def planted_folder(last, outside):
    last.mkdir()


@pytest.mark.parametrize(
    "planted",
    [planted_link, planted_hard_link, planted_pipe, planted_folder],
    ids=lambda plant: plant.__name__,
)
def test_what_somebody_puts_where_the_last_sweep_is_noted_is_neither_followed_nor_believed(
    tmp_path, planted
):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.touch()
    os.utime(outside, (0, 0))
    planted(tmp_path / SWEPT, outside)
    bundle(tmp_path, ended=NOW - timedelta(days=8)).release()
    assert capture.sweep_at_times(tmp_path, older_than=WEEK, now=NOW) == 1
    assert outside.stat().st_mtime == 0


@only_root
def test_another_user_cannot_keep_the_folder_from_being_swept(tmp_path):
    (tmp_path / SWEPT).touch()
    os.utime(tmp_path / SWEPT, (NOW.timestamp(),) * 2)
    os.chown(tmp_path / SWEPT, 12345, -1)
    bundle(tmp_path, ended=NOW - timedelta(days=8)).release()
    assert capture.sweep_at_times(tmp_path, older_than=WEEK, now=NOW) == 1


def test_a_lock_that_is_a_link_is_not_taken_and_makes_nothing(tmp_path):
    outside = tmp_path / "outside"
    (tmp_path / ownership.LOCK_FILE).symlink_to(outside)
    with pytest.raises(OSError, match="symbolic links"):
        ownership.acquire_lock(tmp_path)
    assert not outside.exists()


def test_a_location_that_is_not_there_has_nothing_to_sweep(tmp_path):
    assert capture.sweep_at_times(tmp_path / "x", older_than=WEEK, now=NOW) == 0


# --- what an earlier try submitted -------------------------------------------------------------


def of_try(number, task="revenue", map_index=-1):
    task = TaskIdentity("shop", task, "manual", number, map_index)
    return Manifest(application_run_id=f"run-{number}", task=task)


def test_the_last_try_before_this_one_is_found_and_held(tmp_path):
    for number in (1, 2, 3):
        capture.create(tmp_path, of_try(number)).release()
    for other in (of_try(2, task="costs"), of_try(2, map_index=0)):
        capture.create(tmp_path, other).release()
    found = capture.earlier_try(tmp_path, of_try(3))
    assert found.manifest == of_try(2)
    assert ownership.acquire_lock(found.path) is None
    found.release()


def test_a_try_that_still_runs_is_not_taken_over(tmp_path):
    capture.create(tmp_path, of_try(1))
    assert capture.earlier_try(tmp_path, of_try(2)) is None


def test_a_first_try_has_none_before_it(tmp_path):
    assert capture.earlier_try(tmp_path, of_try(1)) is None


@only_root
def test_a_bundle_that_another_user_made_is_no_earlier_try(tmp_path):
    made = capture.create(tmp_path, of_try(1))
    made.release()
    os.chown(made.path, 12345, -1)
    assert capture.earlier_try(tmp_path, of_try(2)) is None
