"""The remote folders of tries: which are found by a later try, and which are deleted when."""

from __future__ import annotations

import errno
import os
import time
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from airflow_provider_sparklineage.model.budget import Budget
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity
from airflow_provider_sparklineage.spark.capture.remote_bundles import (
    announce,
    earlier_try,
    manifest_of,
    manifests,
    sweep,
)
from tests.local_store import URL, LocalStore
from tests.remote_driver import RemoteDriver

NOW = datetime(2024, 5, 6, tzinfo=UTC)
WEEK, DAY = timedelta(days=7), timedelta(days=1)
TASK = TaskIdentity("shop", "revenue", "manual", 3)


@pytest.fixture
def store(tmp_path, monkeypatch):
    store = LocalStore(tmp_path / "store").install(monkeypatch)
    store.root.mkdir()
    return store


def budget(seconds=60):
    ends = time.monotonic() + seconds
    return Budget(lambda: ends - time.monotonic())


def of_try(number, **other):
    return msgspec.structs.replace(TASK, try_number=number, **other)


def folder(store, task=TASK, *, tail="abcd1234", begun=True, written=timedelta(), **known):
    """Make a try's folder whose files were last written some time before now."""
    name = f"{task.dag_id}.{task.task_id}-try{task.try_number}-{tail}"
    run_id = f"run of {name}"
    announce(Manifest(run_id, task=task, remote=f"{URL}/{name}", **known), budget())
    if begun:
        RemoteDriver(store.root / name, run_id).starts().delivers("events", "1\n")
    for file in (store.root / name).rglob("*"):
        os.utime(file, ((NOW - written).timestamp(),) * 2)
    return store.root / name


def left(store):
    return {path for path in store.root.iterdir() if path.is_dir()}


# --- announced ------------------------------------------------------------------------------------


def test_what_is_announced_is_read(store):
    made = folder(store, max_partitions=7)
    assert manifest_of(f"{URL}/{made.name}", budget()).max_partitions == 7
    assert [file.name for file in made.iterdir() if file.is_file()] == ["manifest.json"]


@pytest.mark.parametrize(
    ("url", "package"),
    [
        ("s3://aws@lake/lineage/t", r"apache-airflow-providers-amazon\[s3fs\]"),
        ("gs://lake/lineage/t", "apache-airflow-providers-google"),
        ("abfs://azure@lake/lineage/t", "apache-airflow-providers-microsoft-azure"),
        ("hdfs://namenode/lineage/t", "doctor"),
    ],
)
def test_a_location_that_cannot_be_reached_names_what_it_needs(store, url, package):
    def fail(method, path):
        msg = "No filesystem registered for scheme"
        raise ValueError(msg)

    store.before = fail
    with pytest.raises(CaptureError, match=rf"(?s)No filesystem registered.*{package}"):
        announce(Manifest("r", remote=url), budget())


def test_an_endless_manifest_is_not_read_to_its_end(store):
    made = folder(store)
    with (made / "manifest.json").open("ab") as file:
        file.write(b" " * (20 * 1024 * 1024))
        file.write(b"{")  # which would be wrong, were it read
    assert manifest_of(f"{URL}/{made.name}", budget()).task == TASK


def test_of_what_is_below_a_location_only_tries_are_listed(store):
    made = folder(store)
    (store.root / "jars").mkdir()
    (store.root / "shop.revenue-try1-torn0000").mkdir()
    (store.root / "shop.revenue-try1-torn0000" / "manifest.json").write_text("{")
    assert [url for url, _ in manifests(URL, budget())] == [f"{URL}/{made.name}"]


def test_of_folders_that_nobody_wants_no_manifest_is_read(store):
    for number in range(20):
        folder(store, of_try(number))
    store.calls.clear()
    wanted = list(manifests(URL, budget(), lambda name: "try7-" in name))
    assert (len(wanted), store.calls["cat_file"]) == (1, 1)


# --- the try that submitted the job ---------------------------------------------------------------


def earlier(task=TASK, job=""):
    found = earlier_try(URL, Manifest("mine", task=task), budget(), job)
    return found and found.task


APPLICATION = "application_1700000000000_0001"
"""Of all doubles of drivers, as Airflow knows it on YARN."""


def test_the_last_try_before_this_one_is_found(store):
    for number in (1, 2, 3, 4):
        folder(store, of_try(number))
    assert earlier() == of_try(2)


def test_its_url_is_that_where_it_was_found(store):
    made = folder(store, of_try(1))
    found = earlier_try(URL, Manifest("mine", task=TASK), budget())
    assert found.remote == f"{URL}/{made.name}"


def test_a_try_that_submitted_nothing_is_passed_over_if_the_application_is_known(store):
    """Else it may have submitted what is gone on with, and the older try's job is another one."""
    folder(store, of_try(1))
    folder(store, of_try(2), begun=False)
    assert earlier(job=APPLICATION) == of_try(1)
    assert earlier(job="spark:revenue-driver") is None


def test_so_is_a_folder_with_another_applications_events(store):
    folder(store, of_try(1))
    RemoteDriver(folder(store, of_try(2), begun=False), "another").starts()
    assert earlier(job=APPLICATION) == of_try(1)
    assert earlier(job="spark:revenue-driver") is None


def test_where_the_application_is_known_that_of_another_try_is_not_taken(store):
    folder(store, of_try(1))
    folder(store, of_try(2), begun=False)  # submitted another one, which was killed in the queue
    found = earlier_try(
        URL, Manifest("mine", task=TASK), budget(), "application_1700000000000_0002"
    )
    assert found is None


def test_the_try_of_a_known_application_is_found_among_what_cannot_be_read(store):
    folder(store, of_try(1))
    (folder(store, of_try(2), tail="torn0000") / "manifest.json").unlink()
    found = earlier_try(
        URL, Manifest("mine", task=TASK), budget(), "application_1700000000000_0001"
    )
    assert found.task == of_try(1)


@pytest.mark.parametrize("torn", ["manifest.json", "start.json"])
def test_an_older_try_is_not_taken_where_a_later_one_cannot_be_read(store, torn):
    folder(store, of_try(1))
    made = folder(store, of_try(2))
    for file in made.rglob(torn):
        file.write_text("{")
    with pytest.raises(CaptureError):
        earlier()


def test_an_older_try_is_not_taken_where_there_was_no_time_for_a_later_one(store):
    folder(store, of_try(1))
    folder(store, of_try(2))
    left = [60.0]

    def spend(method, path):
        if method == "cat_file" and "try1" in path:
            left[0] = 0.0

    store.before = spend
    with pytest.raises(CaptureError):
        earlier_try(URL, Manifest("mine", task=TASK), Budget(lambda: left[0]))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"run_id": "another"}, id="run"),
        pytest.param({"dag_id": "shop_b"}, id="dag"),
        pytest.param({"task_id": "revenue-try1-revenue"}, id="task with a treacherous name"),
        pytest.param({"map_index": 2}, id="mapped"),
    ],
)
def test_tries_of_others_are_never_taken(store, other):
    folder(store, of_try(1, **other))
    assert earlier() is None


def test_where_the_location_cannot_be_listed_that_is_an_error(store):
    def fail(method, path):
        raise PermissionError(errno.EACCES, "Permission denied")

    store.before = fail
    with pytest.raises(CaptureError, match="Permission denied"):
        earlier()


# --- swept ----------------------------------------------------------------------------------------


def swept(older_than=WEEK, seconds=60):
    return sweep(URL, older_than=older_than, now=NOW, budget=budget(seconds))


def days(number):
    return timedelta(days=number)


@pytest.mark.parametrize(
    ("known", "written", "older_than", "goes"),
    [
        pytest.param({"ended": NOW - days(8)}, days(8), WEEK, True, id="ended long ago"),
        pytest.param({"ended": NOW - days(6)}, days(8), WEEK, False, id="ended lately"),
        pytest.param({"ended": NOW - days(8)}, days(1), WEEK, False, id="delivered lately"),
        pytest.param({"started": NOW - days(8)}, days(8), WEEK, True, id="never ended"),
        pytest.param({"started": NOW - days(9)}, days(6), WEEK, False, id="runs for long"),
        pytest.param({"started": NOW - days(2)}, days(0.5), days(0), False, id="runs, none kept"),
        pytest.param({"ended": NOW - days(0.1)}, days(0.1), days(0), True, id="ended, none kept"),
        pytest.param({}, days(8), WEEK, True, id="nobody knows"),
        pytest.param({"ended": NOW + days(1)}, -days(1), WEEK, False, id="clock ahead"),
        pytest.param(
            {
                "ended": NOW - days(0.5),
                "degradations": (Degradation(DegradationCode.APPLICATION_UNFINISHED, "Runs."),),
            },
            days(0.5),
            days(0),
            False,
            id="not waited for",
        ),
        pytest.param(
            {
                "ended": NOW - days(0.5),
                "degradations": (Degradation(DegradationCode.DELIVERY_INCOMPLETE, "No end."),),
            },
            days(0.5),
            days(0),
            False,
            id="may be delivered still",
        ),
    ],
)
def test_a_folder_goes_when_all_in_it_is_old(store, known, written, older_than, goes):
    made = folder(store, written=written, **known)
    assert swept(older_than) == goes
    assert left(store) == (set() if goes else {made})


def test_a_folder_without_a_manifest_goes_as_well(store):
    made = folder(store, written=days(8))
    (made / "manifest.json").unlink()
    assert swept() == 1


def test_an_empty_folder_stays_for_somebody_may_be_about_to_write(store):
    (store.root / "shop.revenue-try1-abcd1234").mkdir()
    assert swept() == 0


@pytest.mark.parametrize("name", ["jars", "other", "shop.revenue-try1-abc", "..", "0001-try"])
def test_what_is_not_called_like_a_try_is_not_ours(store, name):
    if name != "..":
        folder(store, ended=NOW - days(99), written=days(99)).rename(store.root / name)
    assert swept() == 0


@pytest.mark.parametrize(
    "name",
    [
        "probe",
        "trial_application.py",
        "tables/orders/dt=2024-05-06/part-0.csv",
        "tables/totals/_SUCCESS",
        "tables/totals/_temporary/0/part-00000.parquet",
    ],
)
def test_what_a_killed_doctor_has_left_goes(store, name):
    made = store.root / "try-abcd1234"
    (made / name).parent.mkdir(parents=True)
    (made / name).touch()
    os.utime(made / name, (0, 0))
    assert swept() == 1


@pytest.mark.parametrize("name", ["data.parquet", "00001-1700000000000-0123abcd/notes.txt"])
def test_a_folder_with_files_of_somebody_else_is_not_ours(store, name):
    made = folder(store, ended=NOW - days(99), written=days(99))
    (made / name).parent.mkdir(exist_ok=True)
    (made / name).touch()
    os.utime(made / name, (0, 0))
    assert swept() == 0


@pytest.mark.parametrize(
    "name",
    [
        "sending.json",
        f"manifest.json.{'0a' * 16}.part",
        "00001-1700000000001-0123abcd/events-00002.ndjson.part",
        "00001-1700000000001-0123abcd/.events-00001.ndjson.crc",
        "00001-1700000000001-0123abcd/observations-123456.ndjson",
        "00001-1700000000001-0123abcd/events-00001-00064.ndjson",
        "00001-1700000000001-0123abcd/end.json",
    ],
)
def test_a_folder_goes_with_all_that_is_ours(store, name):
    made = folder(store, ended=NOW - days(99), written=days(99))
    (made / name).parent.mkdir(exist_ok=True)
    (made / name).touch()
    os.utime(made / name, (0, 0))
    assert swept() == 1


def test_a_store_without_times_deletes_nothing_that_nobody_ended(store, monkeypatch):
    folder(store, written=days(99))
    info = store.info
    monkeypatch.setattr(store, "info", lambda f: {k: v for k, v in info(f).items() if k != "mtime"})
    assert swept() == 0


def test_one_that_cannot_be_deleted_does_not_keep_the_others(store):
    for number in range(5):
        folder(store, of_try(number), ended=NOW - days(9), written=days(9))

    def refuse(method, path):
        if method == "rm" and "try3" in path:
            raise PermissionError(errno.EACCES, "Permission denied")

    store.before = refuse
    swept()
    assert [path.name for path in left(store)] == ["shop.revenue-try3-abcd1234"]


def test_nothing_is_begun_when_the_time_is_up(store):
    for number in range(5):
        folder(store, of_try(number), ended=NOW - days(9), written=days(9))
    assert swept(seconds=0) == 0
    assert len(left(store)) == 5


def test_a_location_that_is_away_is_swept_another_time(store):
    def fail(method, path):
        raise ConnectionError

    store.before = fail
    assert swept() == 0
