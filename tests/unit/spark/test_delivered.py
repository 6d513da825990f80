"""What drivers in a cluster delivered becomes the bundle of their try; what is missing, it says."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import random
import threading
import time
from itertools import count

import msgspec
import pytest

from airflow_provider_sparklineage.model.budget import Budget
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import download, remote, remote_bundles
from airflow_provider_sparklineage.spark.capture.bundle import Manifest, TaskIdentity
from airflow_provider_sparklineage.spark.capture.remote import received
from airflow_provider_sparklineage.spark.capture.remote_bundles import fetched
from tests.local_store import URL, LocalStore
from tests.remote_driver import STARTED_MS, RemoteDriver

RUN, OTHER = "0191f0a0-0000-7000-8000-000000000001", "0191f0a0-0000-7000-8000-000000000002"
NAME = "shop.revenue-try1-abcd1234"
MANIFEST = Manifest(application_run_id=RUN, remote=f"{URL}/{NAME}")
INCOMPLETE = DegradationCode.DELIVERY_INCOMPLETE


@pytest.fixture
def store(tmp_path, monkeypatch):
    return LocalStore(tmp_path / "store").install(monkeypatch)


@pytest.fixture
def folder(store):
    path = store.root / NAME
    path.mkdir(parents=True)
    return path


@pytest.fixture
def into(tmp_path):
    path = tmp_path / "bundle"
    path.mkdir()
    return path


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Let who waits wait no longer than it takes to say so: a pause is time that has passed."""
    clock = SleepingClock()
    # An event of this test alone: a thread of another test may wait, too.
    monkeypatch.setattr(remote, "Event", lambda: SleepingEvent(clock))
    return clock


class SleepingClock:
    """Time passes while somebody sleeps, and only then."""

    def __init__(self):
        self.now = 0.0
        self.while_asleep = lambda: None

    def sleep(self, seconds):
        assert seconds >= 0
        self.now += seconds + 0.001
        self.while_asleep()

    def budget(self, seconds):
        return Budget(lambda: seconds - self.now)


class SleepingEvent(threading.Event):
    """Waiting for it takes no time, but for that of a clock."""

    def __init__(self, clock):
        super().__init__()
        self.clock = clock

    def wait(self, seconds):
        self.clock.sleep(seconds)
        return self.is_set()


def receive(into, budget=None, waits=False, manifest=MANIFEST):
    return received(manifest, into, budget or budget_of(60), waits=waits)


def budget_of(seconds):
    ends = time.monotonic() + seconds
    return Budget(lambda: ends - time.monotonic())


def events(into):
    return (into / "events.ndjson").read_text()


def messages(delivered):
    return [d.message for d in delivered.degradations]


def codes(delivered):
    return [d.code for d in delivered.degradations]


# --- what is delivered is what is read ------------------------------------------------------------


def test_what_was_delivered_in_parts_is_whole(folder, into):
    driver = RemoteDriver(folder, RUN).starts().delivers("events", "1\n2\n", "3\n")
    driver.delivers("observations", "a\n").ends()
    delivered = receive(into)
    assert (events(into), (into / "observations.ndjson").read_text()) == ("1\n2\n3\n", "a\n")
    assert (delivered.has_begun, delivered.has_ended, delivered.degradations) == (True, True, ())
    assert sorted(file.name for file in into.iterdir()) == ["events.ndjson", "observations.ndjson"]


def test_hundreds_of_parts_are_in_the_order_of_their_numbers(folder, into):
    lines = [f"{n}\n" for n in range(300)]
    RemoteDriver(folder, RUN).starts().delivers("events", *lines).ends()
    assert receive(into).degradations == ()
    assert events(into) == "".join(lines)


def test_a_number_of_six_digits_comes_after_those_of_five(folder, into):
    driver = RemoteDriver(folder, RUN).starts().loses("events", 99_998)
    driver.delivers("events", "99999\n", "100000\n", "100001\n").ends()
    assert messages(receive(into))[0].endswith("events 1 to 99998.")
    assert events(into) == "99999\n100000\n100001\n"


def test_a_driver_that_was_started_again_comes_after_the_first(folder, into):
    RemoteDriver(folder, RUN, 2).starts().delivers("events", "3\n").ends()
    RemoteDriver(folder, RUN, 1).starts().delivers("events", "1\n", "2\n").ends()
    assert receive(into).degradations == ()
    assert events(into) == "1\n2\n3\n"


def test_two_drivers_that_deliver_at_the_same_time_are_one_after_the_other(folder, into):
    first, second = (RemoteDriver(folder, RUN, n).starts() for n in (1, 2))
    for n in range(3):
        first.delivers("events", f"first {n}\n")
        second.delivers("events", f"second {n}\n")
    first.ends()
    second.ends()
    receive(into)
    in_turn = [f"{driver} {n}\n" for driver in ("first", "second") for n in range(3)]
    assert events(into) == "".join(in_turn)


def test_to_download_again_is_to_have_it_once(folder, into):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n", "2\n").ends()
    for _ in range(2):
        receive(into)
    assert events(into) == "1\n2\n"


def test_where_nothing_was_delivered_the_bundle_stays_as_it_is(folder, into):
    (into / "events.ndjson").write_text("by somebody else\n")
    receive(into)
    assert events(into) == "by somebody else\n"


def test_a_part_without_an_end_of_its_last_line_does_not_spoil_the_next(folder, into):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n2", "3\n", "").ends()
    receive(into)
    assert events(into) == "1\n2\n3\n"


def test_what_is_downloaded_is_this_users_alone(folder, into):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n").ends()
    before = os.umask(0)
    try:
        receive(into)
    finally:
        os.umask(before)
    assert (into / "events.ndjson").stat().st_mode & 0o777 == 0o600


# --- what is not there, or is not ours ------------------------------------------------------------


def test_nothing_is_delivered_by_a_driver_that_is_somewhere_else(folder, into):
    delivered = receive(into)
    assert codes(delivered) == [DegradationCode.DRIVER_ELSEWHERE]
    assert not delivered.has_begun


def test_both_names_of_the_folder_are_in_the_message(folder, into):
    given = {"capture_location_in_spark": "hdfs://other/lineage"}
    (message,) = messages(receive(into, manifest=msgspec.structs.replace(MANIFEST, settings=given)))
    assert f"lake/lineage/{NAME}" in message
    assert f"hdfs://other/lineage/{NAME}" in message


def test_a_driver_without_an_end_was_killed(folder, into):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n")
    delivered = receive(into)
    assert (codes(delivered), events(into)) == ([INCOMPLETE], "1\n")
    assert "reported no end" in messages(delivered)[0]
    assert (delivered.has_begun, delivered.has_ended) == (True, False)


def test_the_end_is_that_of_the_last_driver(folder, into):
    RemoteDriver(folder, RUN, 1).starts().delivers("events", "1\n")
    RemoteDriver(folder, RUN, 2).starts().delivers("events", "2\n").ends()
    delivered = receive(into)
    assert (delivered.has_ended, codes(delivered), events(into)) == (True, [INCOMPLETE], "1\n2\n")


@pytest.mark.parametrize(
    ("spoil", "gap"),
    [
        pytest.param(lambda d: d.loses("events").delivers("events", "x\n"), "events 1", id="first"),
        pytest.param(
            lambda d: d.delivers("events", "x\n").loses("events", 2), "events 2 to 3", id="last"
        ),
        pytest.param(
            lambda d: d.delivers("events", "x\n").loses("events").delivers("events", "y\n"),
            "events 2",
            id="in the middle",
        ),
        pytest.param(
            lambda d: d.delivers("events", "x\n").loses("observations"), "observations 1", id="kind"
        ),
    ],
)
def test_numbers_that_are_not_there_are_named(folder, into, spoil, gap):
    spoil(RemoteDriver(folder, RUN).starts()).ends()
    delivered = receive(into)
    assert codes(delivered) == [INCOMPLETE]
    assert messages(delivered)[0].endswith(f": {gap}.")


def test_a_count_that_nobody_could_have_delivered_takes_no_time(folder, into):
    RemoteDriver(folder, RUN).starts().ends(segments={"events": 10**15})
    assert messages(receive(into))[0].endswith(f": events 1 to {10**15}.")


def test_what_the_driver_had_trouble_with_is_passed_on_without_its_secrets(folder, into):
    RemoteDriver(folder, RUN).starts().ends(errors=["token=abcdefgh refused", *"abcdef"])
    (message,) = messages(receive(into))
    assert "token=*** refused; a; b." in message


def test_events_of_another_application_are_nobodys(folder, into):
    RemoteDriver(folder, OTHER, 2).starts().delivers("events", "theirs\n").ends()
    RemoteDriver(folder, RUN, 1).starts().delivers("events", "ours\n").ends()
    delivered = receive(into)
    assert (codes(delivered), events(into)) == ([DegradationCode.FOREIGN_EVENTS], "ours\n")
    assert delivered.has_ended


def test_an_end_of_another_application_is_no_end(folder, into):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n").ends(application_run_id=OTHER)
    delivered = receive(into)
    assert not delivered.has_ended
    assert "end.json is of another application" in " ".join(messages(delivered))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("{", id="torn"),
        pytest.param("[]", id="another kind"),
        pytest.param("{}", id="empty"),
        pytest.param(b"\xff\xfe", id="no text"),
        pytest.param("[" * 60_000, id="deep"),
        pytest.param('{"application_run_id": "' + "x" * 100_000, id="endless"),
    ],
)
def test_a_start_that_is_none_belongs_to_nobody(folder, into, content):
    RemoteDriver(folder, RUN).puts("start.json", content).delivers("events", "1\n").ends()
    delivered = receive(into)
    assert not (into / "events.ndjson").exists()
    assert set(codes(delivered)) == {DegradationCode.DRIVER_ELSEWHERE, INCOMPLETE}
    assert "start.json cannot be read" in " ".join(messages(delivered))


def test_a_folder_that_may_not_be_looked_into_does_not_hide_the_others(folder, into, store):
    RemoteDriver(folder, RUN, 1).starts().delivers("events", "1\n").ends()
    closed = RemoteDriver(folder, RUN, 2).folder

    def refuse(method, path):
        if path == str(closed):
            raise PermissionError(errno.EACCES, "Permission denied", path)

    store.before = refuse
    delivered = receive(into)
    assert events(into) == "1\n"
    assert "cannot be listed: PermissionError" in messages(delivered)[0]


HOSTILE = [
    "../../escaped.ndjson",
    "events-00001.ndjson.part",
    ".events-00001.ndjson.crc",
    "events-0001.ndjson",
    "events-000001.ndjson",
    "events-\u0660\u0660\u0660\u0660\u0661.ndjson",
    "events-00001.ndjson\n",
    "event-00001.ndjson",
    "events-9999999999.ndjson",
    "EVENTS-00002.ndjson",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_other_names_are_nobodys(folder, into, store, name):
    driver = RemoteDriver(folder, RUN).starts().delivers("events", "1\n").ends()
    listed = store.ls
    extra = {"name": f"{driver.folder}/{name}", "size": 4, "type": "file"}
    store.ls = lambda path, **how: [
        *listed(path, **how),
        *([extra] if path == str(driver.folder) else []),
    ]
    assert receive(into).degradations == ()
    assert events(into) == "1\n"


def test_links_pipes_and_folders_are_no_parts(folder, into, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret\n")
    driver = RemoteDriver(folder, RUN).starts().delivers("events", "1\n")
    (driver.folder / "events-00002.ndjson").symlink_to(secret)
    os.mkfifo(driver.folder / "events-00003.ndjson")
    (driver.folder / "events-00004.ndjson").mkdir()
    driver.ends()
    receive(into)
    assert events(into) == "1\n"


@pytest.mark.parametrize(
    "name",
    ["..", "00001", "00001-1700000000000-0123ABCD", "tmp", "00001-1700000000000-0123abcd.part"],
)
def test_other_folders_are_no_drivers(folder, into, name, store):
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "start.json").write_text("{")
    assert codes(receive(into)) == [DegradationCode.DRIVER_ELSEWHERE]


def test_of_thousands_of_folders_the_last_ones_are_looked_into(folder, into, store):
    for number in range(1, 200):
        RemoteDriver(folder, OTHER, number).starts()
    RemoteDriver(folder, RUN, 200).starts().delivers("events", "1\n").ends()
    delivered = receive(into)
    assert events(into) == "1\n"
    assert store.calls["ls"] < 50
    assert len(messages(delivered)[0]) < 500


# --- stores that are slow, or fail ----------------------------------------------------------------


def test_the_end_is_waited_for(folder, into, clock):
    driver = RemoteDriver(folder, RUN).starts()
    steps = count()

    def goes_on():
        if next(steps) == 3:
            driver.delivers("events", "late\n").ends()

    clock.while_asleep = goes_on
    assert receive(into, clock.budget(30), waits=True).degradations == ()
    assert events(into) == "late\n"
    assert clock.now < 10


def test_a_start_that_is_listed_late_is_waited_for(folder, into, clock):
    clock.while_asleep = lambda: (
        list(folder.iterdir())
        or RemoteDriver(folder, RUN).starts().delivers("events", "late\n").ends()
    )
    assert receive(into, clock.budget(30), waits=True).degradations == ()


def test_parts_that_are_listed_later_than_the_end_are_waited_for(folder, into, clock):
    driver = RemoteDriver(folder, RUN).starts().ends(segments={"events": 1})
    clock.while_asleep = lambda: driver.puts("events-00001.ndjson", "late\n")
    assert receive(into, clock.budget(30), waits=True).degradations == ()
    assert events(into) == "late\n"


def test_nobody_waits_longer_than_half_of_the_time(folder, into, clock):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n")
    assert codes(receive(into, clock.budget(20), waits=True)) == [INCOMPLETE]
    assert 10 <= clock.now <= 12
    assert events(into) == "1\n"


def test_where_no_driver_has_begun_a_part_of_that_is_enough(folder, into, clock):
    assert codes(receive(into, clock.budget(20), waits=True)) == [DegradationCode.DRIVER_ELSEWHERE]
    assert 3 <= clock.now <= 5


def test_nobody_waits_who_only_wants_to_see(folder, into, clock):
    RemoteDriver(folder, RUN).starts()
    receive(into, clock.budget(20), waits=False)
    assert clock.now == 0


def test_a_task_that_is_killed_waits_no_more(folder, into, clock):
    killed = []
    clock.while_asleep = lambda: killed.append(clock.now)
    left = Budget(lambda: (3 if killed else 3000) - clock.now)
    receive(into, left, waits=True)
    assert clock.now < 5


def test_a_store_that_fails_once_is_asked_again_with_another_connection(folder, into, store):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n").ends()

    def fail(method, path):
        if store.calls[method] == 1 and method in ("ls", "get_file"):
            raise ConnectionResetError(errno.ECONNRESET, "reset")

    store.before = fail
    assert receive(into).degradations == ()
    assert store.forgotten == 1


def test_a_store_that_is_away_is_declared(into, store):
    def fail(method, path):
        msg = "password=abcdefgh"
        raise ConnectionError(msg)

    store.before = fail
    delivered = receive(into)
    assert codes(delivered) == [INCOMPLETE]
    assert "ConnectionError: password=***" in messages(delivered)[0]
    assert store.calls["ls"] == 3


@pytest.mark.parametrize("method", ["ls", "get_file"])
def test_what_could_not_be_collected_names_the_command_that_does_it_later(
    folder, into, store, method
):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n").ends()

    def fail(asked, path):
        if asked == method:
            raise ConnectionError

    store.before = fail
    manifest = msgspec.structs.replace(MANIFEST, task=TaskIdentity("shop", "revenue", "manual", 1))
    [message] = messages(receive(into, manifest=manifest))
    command = "airflow sparklineage collect manual --dag shop --task revenue"
    assert message.endswith(f" This command collects it later: {command}")


@pytest.mark.parametrize("method", ["ls", "cat_file", "get_file"])
def test_a_store_that_hangs_is_left_to_itself(folder, into, store, method):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n").ends()
    released = threading.Event()
    store.before = lambda asked, _: asked == method and released.wait(30)
    begun = time.monotonic()
    try:
        delivered = receive(into, budget_of(0.4))
        assert time.monotonic() - begun < 10
        assert set(codes(delivered)) == {INCOMPLETE}
        assert "in time" in messages(delivered)[0] or "no answer" in messages(delivered)[0]
    finally:
        released.set()
    assert [file.name for file in into.iterdir() if file.name != "events.ndjson"] == []


def test_what_arrived_in_time_is_kept(folder, into, store):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n", "2\n", "3\n").ends()
    released = threading.Event()
    store.before = lambda _, path: "events-00003" in path and released.wait(30)
    try:
        delivered = receive(into, budget_of(1))
    finally:
        released.set()
    assert events(into) == "1\n2\n"
    assert "1 of 3 files could not be downloaded in time" in messages(delivered)[0]


def test_where_time_is_short_the_first_and_the_latest_are_kept(folder, into, store):
    lines = [f"{n}\n" for n in range(1, 101)]
    RemoteDriver(folder, RUN).starts().delivers("events", *lines).ends()
    released, taken, waiting = threading.Event(), count(), []

    def slow(method, path):
        if method == "get_file" and next(taken) >= 20:
            waiting.append(path)
            released.wait(30)

    store.before = slow
    try:
        # Once all eight downloads wait, there is only time to join what has arrived.
        delivered = receive(into, Budget(lambda: 10.0 if len(waiting) == 8 else 60.0))
    finally:
        released.set()
    assert events(into).split() == ["1", *map(str, range(82, 101))]
    assert "could not be downloaded in time, of which the latest" in messages(delivered)[0]


def test_the_time_ends_for_thousands_of_small_parts_as_well(folder, into, store):
    RemoteDriver(folder, RUN).starts().delivers("events", *["1\n"] * 1000).ends()
    asked = count()
    # Each question for the time takes a part of it, as each file does on a slow machine.
    delivered = receive(into, Budget(lambda: 10 - next(asked) / 40))
    assert "in time" in messages(delivered)[0]
    assert next(asked) < 2000


def test_a_thread_that_nobody_waits_for_does_not_ask_on(folder, into, store, clock):
    RemoteDriver(folder, RUN).starts()

    def left():
        if clock.now and threading.current_thread() is threading.main_thread():
            msg = "Airflow's timeout"
            raise KeyboardInterrupt(msg)
        return 3600.0

    clock.while_asleep = lambda: time.sleep(0.05)
    with pytest.raises(KeyboardInterrupt):
        receive(into, Budget(left), waits=True)
    asking = [t for t in threading.enumerate() if t.name == "sparklineage-delivered"]
    for thread in asking:
        thread.join(10)
    assert not any(thread.is_alive() for thread in asking)


def test_folders_at_which_nobody_looked_are_counted(folder, into):
    for number in range(1, 31):
        RemoteDriver(folder, OTHER, number).starts()
    found = messages(receive(into))
    assert any("10 earlier folder(s) of drivers" in message for message in found)


# --- segments that the driver has joined ----------------------------------------------------------


def joined(driver, first, last, lines=None, kind="events", *, stay=False):
    """Join segments as the driver of a long job does."""
    names = [f"{kind}-{n:05d}.ndjson" for n in range(first, last + 1)]
    content = "".join(lines) if lines is not None else None
    if content is None:
        content = "".join((driver.folder / name).read_text() for name in names)
    driver.puts(f"{kind}-{first:05d}-{last:05d}.ndjson", content)
    if not stay:
        for name in names:
            (driver.folder / name).unlink()


@pytest.mark.parametrize("stay", [True, False])
def test_joined_segments_are_read_once(folder, into, stay):
    lines = [f"{n}\n" for n in range(1, 11)]
    driver = RemoteDriver(folder, RUN).starts().delivers("events", *lines)
    joined(driver, 2, 8, stay=stay)
    driver.ends()
    assert receive(into).degradations == ()
    assert events(into) == "".join(lines)


def test_segments_that_are_joined_while_they_are_downloaded_are_read(folder, into, store):
    lines = [f"{n}\n" for n in range(1, 11)]
    driver = RemoteDriver(folder, RUN).starts().delivers("events", *lines).ends()
    done = []

    def join(method, path):
        if method == "get_file" and not done:
            done.append(path)
            joined(driver, 2, 8)

    store.before = join
    assert receive(into).degradations == ()
    assert events(into) == "".join(lines)


@pytest.mark.parametrize(
    ("names", "expected", "gaps"),
    [
        (["1-3", "2-5"], "1-3", ["events 4 to 6"]),
        (["1-6", "2-3"], "1-6", []),
        (["3-2", "1-6"], "1-6", []),
        (["1-1", "1-6"], "1-6", []),
        (["2-6"], "2-6", ["events 1"]),
    ],
)
def test_joined_segments_that_do_not_fit_are_left_out(folder, into, names, expected, gaps):
    driver = RemoteDriver(folder, RUN).starts().loses("events", 6)
    for name in names:
        first, _, last = name.partition("-")
        driver.puts(f"events-{int(first):05d}-{int(last):05d}.ndjson", f"{name}\n")
    delivered = receive(into) if driver.ends() else None
    assert events(into) == f"{expected}\n"
    assert [m.rpartition(": ")[2].rstrip(".") for m in messages(delivered)] == gaps


# --- while the job runs ---------------------------------------------------------------------------


@pytest.fixture
def follower(into, monkeypatch):
    """Follow a job by hand."""
    monkeypatch.setattr(download, "_FIRST_S", 3600)
    follower = remote.followed(capture.CaptureBundle(into, MANIFEST))
    yield follower
    follower.stop().remove()


def test_what_was_downloaded_while_the_job_ran_is_not_downloaded_again(
    folder, into, store, follower
):
    driver = RemoteDriver(folder, RUN).starts().delivers("events", "1\n", "2\n")
    driver.delivers("observations", "a\n")
    follower.follow()
    driver.delivers("events", "3\n").ends()
    follower.follow()
    assert store.calls["get_file"] == 4
    delivered = received(MANIFEST, into, budget_of(60), waits=True, follower=follower)
    assert (events(into), delivered.degradations) == ("1\n2\n3\n", ())
    assert store.calls["get_file"] == 4
    assert sorted(f.name for f in into.iterdir()) == ["events.ndjson", "observations.ndjson"]


def test_segments_that_were_joined_after_they_were_downloaded_are_not_downloaded_again(
    folder, into, store, follower
):
    lines = [f"{n}\n" for n in range(1, 11)]
    driver = RemoteDriver(folder, RUN).starts().delivers("events", *lines)
    follower.follow()
    joined(driver, 1, 8)
    driver.ends()
    delivered = received(MANIFEST, into, budget_of(60), waits=True, follower=follower)
    assert (events(into), delivered.degradations) == ("".join(lines), ())
    assert store.calls["get_file"] == 10


def test_segments_of_which_some_were_downloaded_before_they_were_joined_are_read_once(
    folder, into, store, follower
):
    lines = [f"{n}\n" for n in range(1, 11)]
    driver = RemoteDriver(folder, RUN).starts().delivers("events", *lines[:4])
    follower.follow()
    driver.delivers("events", *lines[4:])
    joined(driver, 1, 8)
    driver.ends()
    delivered = received(MANIFEST, into, budget_of(60), waits=True, follower=follower)
    assert (events(into), delivered.degradations) == ("".join(lines), ())


def test_a_store_that_fails_while_the_job_runs_is_asked_again_when_it_has_ended(
    folder, into, store, monkeypatch
):
    monkeypatch.setattr(download, "_FIRST_S", 0.01)
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n").ends()
    asked = threading.Event()

    def fail(method, path):
        if threading.current_thread().name.startswith("sparklineage-f"):
            asked.set()
            raise PermissionError(errno.EACCES, "Permission denied")

    store.before = fail
    follower = remote.followed(capture.CaptureBundle(into, MANIFEST))
    assert asked.wait(30)
    delivered = received(MANIFEST, into, budget_of(60), waits=True, follower=follower)
    assert (events(into), delivered.degradations) == ("1\n", ())


@pytest.mark.parametrize("method", ["ls", "get_file"])
def test_a_store_that_hangs_while_the_job_runs_is_left_to_itself(
    folder, into, store, monkeypatch, method
):
    monkeypatch.setattr(download, "_FIRST_S", 0.01)
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n").ends()
    hung, released = threading.Event(), threading.Event()

    def hang(asked, path):
        if asked == method and not hung.is_set():
            hung.set()
            released.wait(30)

    store.before = hang
    follower = remote.followed(capture.CaptureBundle(into, MANIFEST))
    assert hung.wait(30)
    try:
        delivered = received(MANIFEST, into, budget_of(60), waits=True, follower=follower)
    finally:
        released.set()
    assert (events(into), delivered.degradations) == ("1\n", ())


def test_a_job_that_delivers_nothing_to_a_store_is_not_followed(into):
    assert remote.followed(capture.CaptureBundle(into, Manifest(RUN))) is None


def test_a_part_that_cannot_be_read_does_not_hide_the_others(folder, into, store):
    driver = RemoteDriver(folder, RUN).starts()
    driver.delivers("events", *[f"{n}\n" for n in range(8)]).ends()

    def refuse(method, path):
        if method == "get_file" and int(path[-8]) in range(2, 8):
            raise PermissionError(errno.EACCES, "Permission denied")

    store.before = refuse
    delivered = receive(into)
    assert events(into) == "0\n7\n"
    assert "3 more file(s) could not be read either" in messages(delivered)[0]


def test_a_part_that_did_not_arrive_whole_is_left_out(folder, into, store):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n", "22222\n").ends()
    get = store.get_file

    def cut(path, target):
        get(path, target)
        if "00002" in path:
            os.truncate(target, 3)

    store.get_file = cut
    delivered = receive(into)
    assert events(into) == "1\n"
    assert "3 of its 6 bytes arrived" in messages(delivered)[0]


def test_a_full_disk_keeps_what_there_was_room_for(folder, into, monkeypatch):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n", "2\n", "3\n").ends()
    copied = count(1)
    copy = download.shutil.copyfileobj

    def full(source, target, size):
        if next(copied) == 2:
            target.write(b"hal")
            target.flush()
            raise OSError(errno.ENOSPC, "No space left on device")
        copy(source, target, size)

    monkeypatch.setattr(download.shutil, "copyfileobj", full)
    delivered = receive(into)
    assert events(into) == "1\n"
    assert "could not keep 2 file(s) of it" in messages(delivered)[0]
    assert "No space left" in messages(delivered)[0]
    assert [file.name for file in into.iterdir()] == ["events.ndjson"]


def test_what_would_fill_the_disk_is_left_where_it_is(folder, into, store):
    driver = RemoteDriver(folder, RUN).starts().delivers("events", "1\n", "2\n", "3\n").ends()
    os.truncate(driver.folder / "events-00002.ndjson", 3 * 1024**3)  # without any data in it
    [message] = messages(receive(into))
    assert "1 file(s) are beyond 2147483648 bytes" in message
    assert events(into) == "1\n3\n"
    assert store.calls["get_file"] == 2


def test_a_bundle_that_is_gone_is_declared(folder, tmp_path):
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n").ends()
    assert "could not keep it" in messages(receive(tmp_path / "gone"))[0]


# --- stores and drivers by chance -----------------------------------------------------------------


class Chance:
    """Drivers, and a store, of which a seed decides what they do."""

    def __init__(self, seed, folder, store):
        self.random, self.folder, self.store = random.Random(seed), folder, store
        self.wanted = {"events": [], "observations": []}
        self.error, self.hidden = None, set()
        store.before = self.fail
        listed = store.ls
        store.ls = lambda path, **how: self.seen(listed(path, **how))

    def fail(self, method, _):
        if self.error and self.error[0] == method and self.random.random() < 0.5:
            raise self.error[1]

    def seen(self, found):
        """Leave out files that the store lists late, and list some twice."""
        kept = [each for each in found if self.name(each) not in self.hidden]
        if self.random.random() < 0.5:
            self.hidden.clear()
        return kept + kept[: self.random.choice([0, 0, 2])]

    @staticmethod
    def name(listed):
        return (listed["name"] if isinstance(listed, dict) else listed).rpartition("/")[2]

    def drive(self, number, follower):
        self.driver, self.follower = RemoteDriver(self.folder, RUN, number).starts(), follower
        self.delivered = {"events": [], "observations": []}
        steps = (self.deliver, self.deliver, self.join, self.lose, self.hide, self.break_down)
        steps += (self.work, self.deliver_as_another, self.follow)
        for _ in range(self.random.randint(1, 25)):
            self.random.choice(steps)(self.random.choice(["events", "events", "observations"]))
        if self.random.random() < 0.8:
            self.driver.ends()
        for kind, lines in self.delivered.items():
            self.wanted[kind] += [line for _, line in lines]

    def deliver(self, kind):
        number = self.driver.counts[kind] + 1
        line = f"{self.driver.folder.name} {number}\n"
        self.driver.delivers(kind, line)
        self.delivered[kind].append((number, line))

    def join(self, kind):
        """Join some segments whose numbers follow each other; some of them cannot be deleted."""
        files = self.driver.folder
        there = [n for n, _ in self.delivered[kind] if (files / f"{kind}-{n:05d}.ndjson").exists()]
        first = last = self.random.choice(there or [0])
        while last + 1 in there and self.random.random() < 0.8:
            last += 1
        if last > first:
            joined(self.driver, first, last, kind=kind, stay=self.random.random() < 0.2)

    def lose(self, kind):
        self.driver.loses(kind)

    def hide(self, _):
        names = sorted(file.name for file in self.driver.folder.iterdir())
        self.hidden.update(self.random.sample(names, 1))

    def break_down(self, _):
        errors = [TimeoutError(), PermissionError(13, "no"), ValueError("slow down")]
        methods = ["ls", "get_file", "cat_file"]
        self.error = (self.random.choice(methods), self.random.choice(errors))

    def work(self, _):
        self.error = None

    def deliver_as_another(self, _):
        tail = f"{self.random.randrange(16**8):08x}"
        other = RemoteDriver(self.folder, OTHER, self.random.randint(2, 9), tail)
        other.starts().delivers("events", "another application's\n")

    def follow(self, _):
        with contextlib.suppress(Exception):
            self.follower.follow()


@pytest.mark.parametrize("seed", range(60))
def test_by_chance_each_line_is_there_once_and_in_order_or_its_loss_is_declared(
    folder, into, store, follower, seed
):
    chance = Chance(seed, folder, store)
    for number in range(1, chance.random.choice([2, 2, 3])):
        chance.drive(number, follower)
    if chance.random.random() < 0.7:
        chance.error = None
    delivered = received(MANIFEST, into, budget_of(20), waits=False, follower=follower)
    found = {
        kind: file.read_text().splitlines(keepends=True) if file.exists() else []
        for kind in chance.wanted
        for file in [into / f"{kind}.ndjson"]
    }
    for kind, lines in chance.wanted.items():
        left = iter(lines)
        assert all(line in left for line in found[kind]), "not in order, twice, or another's"
    if found != chance.wanted:
        assert {*codes(delivered)} & {INCOMPLETE, DegradationCode.DRIVER_ELSEWHERE}
    assert not [file for file in into.iterdir() if file.name.startswith(".")]


# --- a bundle that is remote ----------------------------------------------------------------------


def announced(manifest=MANIFEST):
    remote_bundles.announce(manifest, budget_of(60))
    return manifest


def test_a_remote_bundle_is_one_here(folder, into):
    announced(msgspec.structs.replace(MANIFEST, outcome="COMPLETE", max_partitions=7))
    RemoteDriver(folder, RUN).starts().delivers("events", "1\n").ends()
    bundle, delivered = fetched(f"{URL}/{NAME}", into, budget_of(60))
    assert delivered.has_ended
    assert capture.load(into).manifest == bundle.manifest
    assert (bundle.manifest.max_partitions, bundle.manifest.outcome) == (7, "COMPLETE")
    assert events(into) == "1\n"


def test_what_was_missing_and_is_there_now_is_missing_no_more(folder, into):
    own = Degradation(DegradationCode.EXTENSION_UNAVAILABLE, "It is not there.")
    outdated = [
        Degradation(code, "At that time.")
        for code in (INCOMPLETE, DegradationCode.DRIVER_ELSEWHERE, DegradationCode.FOREIGN_EVENTS)
    ]
    unfinished = Degradation(DegradationCode.APPLICATION_UNFINISHED, "It was not waited for.")
    known = (*outdated, own, unfinished)
    announced(msgspec.structs.replace(MANIFEST, degradations=known))
    driver = RemoteDriver(folder, RUN).starts()
    bundle, _ = fetched(f"{URL}/{NAME}", into, budget_of(60))
    assert bundle.manifest.degradations[:2] == (own, unfinished)
    assert [d.code for d in bundle.manifest.degradations[2:]] == [INCOMPLETE]
    driver.ends()
    bundle, _ = fetched(f"{URL}/{NAME}", into, budget_of(60))
    assert bundle.manifest.degradations == (own,)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="none"),
        pytest.param("{", id="torn"),
        pytest.param(json.dumps({"application_run_id": 7}), id="another"),
    ],
)
def test_what_has_no_manifest_is_no_bundle(folder, into, content):
    if content is not None:
        (folder / "manifest.json").write_text(content)
    with pytest.raises(CaptureError, match=r"manifest|capture location"):
        fetched(f"{URL}/{NAME}", into, budget_of(60))


# --- several drivers for one application ----------------------------------------------------------


def attempts(folder, into):
    delivered = received(MANIFEST, into, Budget(lambda: 5), waits=False)
    return [(one.number, int(one.started.timestamp() * 1000)) for one in delivered.attempts]


def test_one_driver_is_no_attempt_of_several(folder, into):
    RemoteDriver(folder, RUN).starts().delivers("events", "{}\n").ends()
    assert attempts(folder, into) == []


def test_each_driver_that_a_cluster_started_is_an_attempt(folder, into):
    RemoteDriver(folder, RUN).starts().delivers("events", "{}\n")
    RemoteDriver(folder, OTHER, tail="00000000").starts().delivers("events", "{}\n").ends()
    RemoteDriver(folder, RUN, number=2).starts().ends()
    assert attempts(folder, into) == [(1, STARTED_MS + 1), (2, STARTED_MS + 2)]


def test_an_attempt_that_died_before_it_could_deliver_counts_by_the_number_of_the_next(
    folder, into
):
    RemoteDriver(folder, RUN, number=3).starts().delivers("events", "{}\n").ends()
    assert attempts(folder, into) == [(3, STARTED_MS + 3)]


def test_drivers_with_one_number_are_numbered_by_time(folder, into):
    for number, tail in ((1, "00000001"), (1, "00000002"), (2, "00000003")):
        RemoteDriver(folder, RUN, number=number, tail=tail).starts()
    assert [number for number, _ in attempts(folder, into)] == [1, 2, 3]
