"""What a driver in a cluster delivers: whole lines, in order, once, whatever fails on the way."""

import errno
import itertools
import json
import os
import sys
import threading
import time
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_sparklineage.spark.capture import remote as layout
from airflow_provider_sparklineage.spark.submit import submitted_files

URL = "hdfs://lake/lineage/try/00001-1700000000000-0123abcd"
DOWN = OSError("down")
START = {"application_run_id": "run", "application_id": "application_1_1", "started_ms": 1}


@pytest.fixture(scope="module")
def delivery():
    """Give the module as the driver has it, and forget it afterwards."""
    sys.path.insert(0, str(submitted_files.DRIVER))
    before = set(sys.modules)
    from sparklineage_observer import delivery

    yield delivery
    sys.path.remove(str(submitted_files.DRIVER))
    for name in set(sys.modules) - before:
        if name.startswith("sparklineage_observer"):
            del sys.modules[name]


class Path(str):
    """A path of Hadoop's."""

    toUri = str.__str__  # noqa: N815  (Java's name)


class FileSystem:
    """A file system of Hadoop's, whose calls fail where a test wants them to.

    :param fails: asked before and after each call that reaches the other side; raises if it fails
    """

    def __init__(self, fails=lambda _: None, url=URL):
        self.fails = fails
        self.url = url
        self.files = {}
        self.calls = []
        self.instances = 0
        self.interrupted = threading.Event()
        self.is_closed = False

    def reach(self, call, act):
        if self.is_closed:
            raise OSError(errno.EBADF, "Filesystem closed")
        self.calls.append(call)
        self.fails(f"before {call}")
        given = act()
        self.fails(f"after {call}")
        return given

    def new_instance(self, _uri, conf):
        assert conf["fs.permissions.umask-mode"] == "007"
        self.is_closed = False
        self.instances += 1
        return self

    def setWriteChecksum(self, whether):  # noqa: N802  (Java's name)
        assert not whether

    def mkdirs(self, _path):
        return self.reach("mkdirs", lambda: True)

    def exists(self, path):
        return self.reach("exists", lambda: path in self.files)

    def create(self, path, overwrite):
        assert overwrite
        return self.reach("create", lambda: Stream(self, path))

    def rename(self, source, target):
        def act():
            if target in self.files:
                return False
            self.files[target] = self.files.pop(source)
            return True

        return self.reach("rename", act)

    def delete(self, path, recursive):
        assert not recursive
        return self.reach("delete", lambda: self.files.pop(path, None) is not None)

    def close(self):
        self.is_closed = True

    def interrupt(self):
        self.interrupted.set()

    def put(self):
        """Give what was put, by its name in the folder of the driver."""
        return {
            path.removeprefix(f"{self.url}/"): content
            for path, content in self.files.items()
            if not path.endswith(".part")
        }

    def lines(self, kind):
        """Give the content of all segments of a kind, in their order."""
        found = self.put()
        attempt = layout.Attempt("", sizes={name: len(content) for name, content in found.items()})
        return b"".join(found[s.name] for s in attempt.segments() if s.kind == kind)


class Stream:
    """A file that is being written; in a store, nothing of it is there before it is closed."""

    def __init__(self, system, path):
        self.system, self.path, self.content = system, path, b""

    def write(self, block):
        self.system.reach("write", lambda: None)
        self.content += block

    def close(self):
        def act():
            self.system.files[self.path] = self.content

        self.system.reach("close", act)


def failing(*calls, error=DOWN):
    """Make the first calls of these names fail."""
    left = list(calls)

    def fails(call):
        if call in left:
            left.remove(call)
            raise error

    return fails


class Driver:
    """A driver that delivers from a folder."""

    def __init__(self, delivery, folder, system=None):
        self.module = delivery
        self.system = system or FileSystem()
        self.folder = folder
        self.recorded = []
        jvm = SimpleNamespace(_gateway_client=None)
        self.remote = delivery.RemoteFolder(jvm, None, self.system.url)
        self.remote._classes = SimpleNamespace(
            path=Path,
            configuration=lambda _: Conf(),
            thread=SimpleNamespace(currentThread=lambda: self.system),
            file_system=SimpleNamespace(newInstance=self.system.new_instance),
        )
        self.delivery = delivery.Delivery(self.remote, str(folder), START, self.record)

    def record(self, text):
        self.recorded.append(text)
        self.write("observations", json.dumps({"error": text}) + "\n")

    def write(self, kind, text):
        with (self.folder / f"{kind}.ndjson").open("a") as file:
            file.write(text)

    def written(self, kind):
        file = self.folder / f"{kind}.ndjson"
        return file.read_bytes() if file.exists() else b""

    def deliver(self, *, is_last=False):
        return self.delivery._deliver(is_last=is_last)


class Conf(dict):
    """A configuration of Hadoop's."""

    set = dict.__setitem__


@pytest.fixture
def driver(delivery, tmp_path):
    """Give a driver that has written nothing."""
    return Driver(delivery, tmp_path)


def test_a_driver_that_writes_nothing_says_when_it_began_and_that_it_has_ended(driver):
    assert driver.deliver()
    assert driver.deliver(is_last=True)
    put = driver.system.put()
    assert [*put] == ["start.json", "end.json"]
    assert msgspec.json.decode(put["start.json"], type=layout.Start) == layout.Start(**START)
    end = msgspec.json.decode(put["end.json"], type=layout.End)
    assert end.application_run_id == "run"
    assert end.segments == {"events": 0, "observations": 0}
    assert end.errors == ()


def test_lines_that_are_new_become_a_segment_and_a_line_that_has_not_ended_waits(driver):
    driver.write("events", '{"n":1}\n{"n":2}\n{"n"')
    driver.deliver()
    driver.deliver()
    driver.write("events", ":3}\n")
    driver.write("observations", '{"kind":"start"}\n')
    driver.deliver(is_last=True)
    put = driver.system.put()
    assert put["events-00001.ndjson"] == b'{"n":1}\n{"n":2}\n'
    assert put["events-00002.ndjson"] == b'{"n":3}\n'
    assert put["observations-00001.ndjson"] == b'{"kind":"start"}\n'
    assert json.loads(put["end.json"])["segments"] == {"events": 2, "observations": 1}
    assert all(layout.SEGMENT.fullmatch(name) for name in put if name.endswith(".ndjson"))
    first, *_, last = put
    assert (first, last) == ("start.json", "end.json")


def test_half_of_a_line_at_the_end_is_left_out_and_reported(driver):
    driver.write("events", '{"n":1}\n{"n"')
    driver.deliver(is_last=True)
    assert driver.system.lines("events") == b'{"n":1}\n'
    [error] = json.loads(driver.system.put()["end.json"])["errors"]
    assert error == "the last 4 bytes of the events are no whole line"


def test_the_end_has_the_exception_by_which_python_ended(driver, monkeypatch):
    monkeypatch.setattr(sys, "last_type", KeyError, raising=False)
    driver.deliver(is_last=True)
    end = msgspec.json.decode(driver.system.put()["end.json"], type=layout.End)
    assert end.failed == "KeyError"


def test_what_is_much_becomes_several_segments_of_whole_lines(driver, monkeypatch):
    monkeypatch.setattr(sys.modules["sparklineage_observer.delivery"], "_SEGMENT_BYTES", 10)
    lines = [f'"{n}"\n' for n in range(8)] + ['"' + "x" * 33 + '"\n', '"y"\n']
    driver.write("events", "".join(lines))
    driver.deliver()
    segments = [c for name, c in driver.system.put().items() if name.startswith("events")]
    assert b"".join(segments) == "".join(lines).encode()
    assert all(segment.endswith(b"\n") for segment in segments)
    assert max(map(len, segments)) == 40  # of which the long line is the most


def test_large_segments_go_through_in_blocks(driver, monkeypatch):
    monkeypatch.setattr(sys.modules["sparklineage_observer.delivery"], "_BLOCK", 3)
    driver.write("events", "abcdefg\n")
    driver.deliver()
    assert driver.system.put()["events-00001.ndjson"] == b"abcdefg\n"


def test_a_file_that_is_replaced_is_delivered_from_its_beginning(driver):
    driver.write("events", "1\n2\n3\n")
    driver.deliver()
    (driver.folder / "events.ndjson").rename(driver.folder / "moved")
    driver.write("events", "4\n5\n6\n7\n")
    driver.deliver()
    (driver.folder / "events.ndjson").write_text("8\n")
    driver.deliver()
    assert driver.system.lines("events") == b"1\n2\n3\n4\n5\n6\n7\n8\n"


@pytest.mark.parametrize(
    ("scheme", "calls"),
    [
        pytest.param(scheme, calls, id=scheme)
        for schemes, calls in [
            (["hdfs", "file", "abfss", "viewfs"], ["create", "write", "close", "rename"]),
            (["s3a", "s3", "gs", "S3A"], ["create", "write", "close"]),
        ]
        for scheme in schemes
    ],
)
def test_a_file_is_put_aside_where_it_would_be_seen_before_it_is_whole(
    delivery, tmp_path, scheme, calls
):
    driver = Driver(delivery, tmp_path, FileSystem(url=URL.replace("hdfs", scheme)))
    driver.deliver()
    driver.system.calls.clear()
    driver.write("events", "1\n")
    driver.deliver()
    assert driver.system.calls == calls


def test_a_file_that_was_not_written_whole_is_never_closed(driver):
    """A store would take it for the whole file."""
    driver.system.fails = failing("before write", "before write")
    driver.deliver()
    assert "close" not in driver.system.calls


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["events", "observations", "half", "deliver"]), max_size=12),
    st.lists(st.integers(0, 25), max_size=8),
    st.booleans(),
    st.sampled_from([2, 3, 64]),
)
def test_nothing_is_lost_twice_or_half_wherever_calls_fail(
    delivery, tmp_path_factory, steps, distances, in_store, joined_at
):
    """Before a call has done its work as well as after, when only its answer is lost.

    :param distances: how many calls go well between two that fail
    :param joined_at: how many segments are joined to one
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(delivery, "_JOINED_AT", joined_at)
        folder = tmp_path_factory.mktemp("driver")
        faults = itertools.chain.from_iterable([False] * n + [True] for n in distances)
        contents = {}

        def fails(call):
            whole = system.put()
            for name, content in contents.items():
                is_joined = joined_at < 64 and name not in whole
                assert is_joined or whole[name] == content or name.endswith(".json"), (
                    "it has changed"
                )
            contents.update(whole)
            assert all(c.endswith((b"\n", b"}")) for c in whole.values()), "it is not whole"
            if next(faults, False):
                raise DOWN

        system = FileSystem(fails, URL.replace("hdfs", "s3a") if in_store else URL)
        driver = Driver(delivery, folder, system)
        numbers = itertools.count()
        for step in steps:
            if step == "deliver":
                driver.deliver()
            elif step == "half":
                driver.write("events", f"half {next(numbers)} ")
            else:
                driver.write(step, f"{next(numbers)}\n")
        driver.write("events", "the last\n")
        assert any(driver.deliver(is_last=True) for _ in range(len(distances) + 1))
        for kind in ("events", "observations"):
            assert system.lines(kind) == driver.written(kind)
        end = json.loads(system.put()["end.json"])
        assert end["errors"] == []
        sizes = {name: len(content) for name, content in system.put().items()}
        attempt = layout.Attempt("", end=layout.End("", end["segments"]), sizes=sizes)
        assert attempt.is_whole
        if joined_at == 64:
            assert len(sizes) == 2 + sum(end["segments"].values())


@pytest.mark.parametrize("call", ["mkdirs", "create", "write", "close", "rename"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_each_call_may_fail_once(driver, when, call):
    driver.write("events", "1\n")
    driver.system.fails = failing(f"{when} {call}")
    assert [driver.deliver(), driver.deliver(is_last=True)] == [False, True]
    assert [*driver.system.put()] == [
        "start.json",
        "events-00001.ndjson",
        "observations-00001.ndjson",
        "end.json",
    ]
    assert driver.system.lines("events") == b"1\n"


def test_a_file_system_that_the_job_has_closed_is_opened_again_unnoticed(driver, log):
    driver.deliver()
    driver.system.close()
    driver.write("events", "1\n")
    assert driver.deliver()
    assert driver.system.instances == 2
    assert driver.system.lines("events") == b"1\n"
    assert (log(), driver.recorded) == ([], [])


@pytest.fixture
def log(delivery, monkeypatch):
    """Give what was written into the driver's log."""
    lines = []
    stream = SimpleNamespace(write=lines.append, flush=lambda: None)
    monkeypatch.setattr(sys, "__stderr__", stream)
    return lambda: lines


DENIED = """An error occurred while calling o7.create.
: org.apache.hadoop.security.AccessControlException: Permission denied: user=me
\tat org.apache.hadoop"""


def test_what_fails_is_logged_once_for_each_reason_and_recorded_once_it_works_again(driver, log):
    driver.write("events", "1\n")
    errors = [DENIED, DENIED.replace("me", "us"), "no network", DENIED]
    for text in errors:
        driver.system.fails = failing("before create", error=Exception(text))
        assert not driver.deliver()
    driver.system.fails = lambda _: None
    assert driver.deliver()
    begin = f"sparklineage: cannot deliver lineage to {URL}: "
    assert log() == [
        f"{begin}AccessControlException: Permission denied: user=me\n",
        f"{begin}Exception: no network\n",
    ]
    assert driver.recorded == [
        "deliver: AccessControlException: Permission denied: user=me; delivered 0 s later",
        "deliver: Exception: no network; delivered 0 s later",
    ]
    driver.deliver(is_last=True)
    assert driver.system.lines("observations") == driver.written("observations")
    assert json.loads(driver.system.put()["end.json"])["errors"] == []


def test_a_reason_that_comes_back_is_not_recorded_again(driver):
    for _ in range(3):
        driver.write("events", "1\n")
        driver.system.fails = failing(*["before create"] * 9)
        assert not driver.deliver()
        driver.system.fails = lambda _: None
        assert driver.deliver()
    assert len(driver.recorded) == 1


def test_an_unreadable_file_of_the_container_fails_no_job(driver, log):
    (driver.folder / "events.ndjson").mkdir()
    assert not driver.deliver()
    assert "IsADirectoryError" in log()[0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("no bucket s3a://AKIA:secret@lake/x", "no bucket s3a://lake/x"),
        ("https://token@host/x refused", "https://host/x refused"),
        ("abfss://lake@account.dfs/x is not there", "abfss://lake@account.dfs/x is not there"),
        ("abfss://lake:key@account.dfs/x", "abfss://account.dfs/x"),
        ("GET https://a.net/x?sig=abc%3D&se=1 gave 403", "GET https://a.net/x?… gave 403"),
        ("what is this? x=1", "what is this? x=1"),
        ("mail to me@example.com", "mail to me@example.com"),
    ],
)
def test_the_log_has_no_secrets_of_urls(delivery, text, shown):
    assert (
        sys.modules["sparklineage_observer.delivery"].reason_of(OSError(text))
        == f"OSError: {shown}"
    )


def test_a_url_with_a_secret_is_not_logged_either(delivery, tmp_path, log):
    system = FileSystem(failing("before create"), "s3a://AKIA:secret@lake/try")
    driver = Driver(delivery, tmp_path, system)
    driver.deliver()
    assert log() == ["sparklineage: cannot deliver lineage to s3a://lake/try: OSError: down\n"]


def test_a_driver_without_a_log_goes_on(driver, monkeypatch):
    monkeypatch.setattr(sys, "__stderr__", None)
    driver.system.fails = failing("before create")
    assert not driver.deliver()
    assert driver.deliver()


# --- many segments --------------------------------------------------------------------------------


@pytest.fixture
def joins_soon(delivery, monkeypatch):
    monkeypatch.setattr(delivery, "_JOINED_AT", 4)


@pytest.mark.usefixtures("joins_soon")
def test_small_segments_are_joined_once_there_are_many(driver):
    for n in range(1, 11):
        driver.write("events", f"{n}\n")
        driver.deliver()
    driver.deliver(is_last=True)
    put = driver.system.put()
    assert put["events-00001-00004.ndjson"] == b"1\n2\n3\n4\n"
    assert sorted(name for name in put if name.startswith("events")) == [
        "events-00001-00004.ndjson",
        "events-00005-00008.ndjson",
        "events-00009.ndjson",
        "events-00010.ndjson",
    ]
    assert json.loads(put["end.json"])["segments"]["events"] == 10
    assert driver.system.lines("events") == driver.written("events")


def test_a_day_of_small_batches_is_less_than_a_hundred_files(driver):
    for n in range(3000):
        driver.write("events", f"{n}\n")
        driver.deliver()
    driver.deliver(is_last=True)
    assert len(driver.system.put()) < 120
    assert driver.system.lines("events") == driver.written("events")


@pytest.mark.usefixtures("joins_soon")
def test_large_segments_stay_as_they_are(driver, monkeypatch):
    monkeypatch.setattr(driver.module, "_SEGMENT_BYTES", 10)
    for size in (9, 9, 1, 1, 1, 1, 9, 3, 3, 3, 3, 3):
        driver.write("events", "x" * size + "\n")
        driver.deliver()
    names = [name for name in driver.system.put() if name.count("-") == 2]
    assert names == ["events-00003-00006.ndjson", "events-00008-00009.ndjson"]
    assert driver.system.lines("events") == driver.written("events")


@pytest.mark.usefixtures("joins_soon")
def test_nothing_is_joined_of_a_file_that_was_replaced(driver):
    for n in range(1, 4):
        driver.write("events", f"{n}\n")
        driver.deliver()
    (driver.folder / "events.ndjson").rename(driver.folder / "old")
    for n in range(4, 8):
        driver.write("events", f"{n}\n")
        driver.deliver()
    assert driver.system.lines("events") == b"1\n2\n3\n4\n5\n6\n7\n"
    assert driver.system.put()["events-00004-00007.ndjson"] == b"4\n5\n6\n7\n"


@pytest.mark.usefixtures("joins_soon")
@pytest.mark.parametrize("call", ["create", "write", "close", "rename", "delete"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_segments_that_cannot_be_joined_stay_and_the_job_goes_on(driver, log, when, call):
    for n in range(1, 4):
        driver.write("events", f"{n}\n")
        driver.deliver()
    driver.write("events", "4\n")
    calls = itertools.count()
    driver.system.fails = lambda c: (
        failing(f"{when} {call}")(c) if call == "delete" or next(calls) >= 8 else None
    )
    driver.deliver()
    driver.system.fails = lambda _: None
    for n in range(5, 8):
        driver.write("events", f"{n}\n")
        assert driver.deliver()
    assert driver.deliver(is_last=True)
    assert driver.system.lines("events") == driver.written("events")
    assert json.loads(driver.system.put()["end.json"])["errors"] == []
    assert log() == []


@pytest.mark.usefixtures("joins_soon")
def test_at_the_end_of_the_job_nothing_is_joined(driver):
    for n in range(1, 4):
        driver.write("events", f"{n}\n")
        driver.deliver()
    driver.write("events", "4\n")
    driver.deliver(is_last=True)
    assert "events-00004.ndjson" in driver.system.put()


# --- the thread -----------------------------------------------------------------------------------


def test_the_rest_is_delivered_at_the_end_and_then_the_thread_is_gone(driver, log):
    driver.delivery.begin()
    driver.write("events", "1\n")
    driver.delivery.finish()
    assert not driver.delivery._thread.is_alive()
    assert [*driver.system.put()] == ["start.json", "events-00001.ndjson", "end.json"]
    assert log() == []


def test_what_fails_at_the_end_is_tried_once_more(driver, log, monkeypatch):
    monkeypatch.setattr(driver.module, "_AGAIN_S", 0)
    driver.system.fails = failing(*["before create"] * 2)
    driver.delivery.begin()
    driver.delivery.finish()
    assert "end.json" in driver.system.put()


def test_what_cannot_be_delivered_is_logged_at_the_end(driver, log, monkeypatch):
    monkeypatch.setattr(driver.module, "_AGAIN_S", 0)
    driver.system.fails = failing(*["before create"] * 9)
    driver.delivery.begin()
    driver.delivery.finish()
    assert log()[-1] == f"sparklineage: not all lineage is delivered to {URL}: OSError: down\n"


def test_a_file_system_that_hangs_holds_the_job_for_a_bounded_time(driver, log, monkeypatch):
    """And the JVM no longer, whose thread is interrupted: nothing else is called then."""

    def hangs(call):
        assert driver.system.interrupted.wait(60)
        raise DOWN

    monkeypatch.setattr(driver.module, "_EXIT_S", 0.1)
    driver.system.fails = hangs
    driver.delivery.begin()
    driver.delivery.finish()
    driver.delivery._thread.join(60)
    assert driver.delivery._thread.daemon
    assert driver.system.calls == ["mkdirs"]
    assert log() == [
        f"sparklineage: not all lineage is delivered to {URL}: it took longer than 0.1 s\n"
    ]


def test_a_busy_machine_gets_more_time_as_long_as_it_goes_on(driver, log, monkeypatch):
    monkeypatch.setattr(driver.module, "_EXIT_S", 1)
    driver.delivery._began -= 2000
    driver.system.fails = lambda _: time.sleep(0.05)
    driver.delivery.begin()
    driver.write("events", "1\n")
    driver.delivery.finish()
    assert "end.json" in driver.system.put()
    assert log() == []


def test_a_young_job_does_not_wait_longer_however_much_goes_on(driver, log, monkeypatch):
    monkeypatch.setattr(driver.module, "_EXIT_S", 0.2)
    driver.system.fails = lambda _: time.sleep(0.05)
    driver.delivery.begin()
    driver.write("events", "1\n")
    begun = time.monotonic()
    driver.delivery.finish()
    assert time.monotonic() - begun < 5
    assert "it took longer than" in log()[-1]
    driver.delivery._thread.join(60)


def test_a_thread_that_cannot_be_started_is_the_observers_failure_alone(delivery, monkeypatch):
    # begun() is called where whatever is raised is recorded; it must leave nothing to finish.
    def cannot_start(thread):
        raise RuntimeError(thread.name)

    monkeypatch.setattr(threading.Thread, "start", cannot_start)
    observer = SimpleNamespace(report=None, after_write=None)
    with pytest.raises(RuntimeError, match="sparklineage"):
        delivery.begun(context(), URL, "run", "/c/observations.ndjson", observer)


class Waits:
    """An event that nobody waits for: it notes how long that would have been."""

    def __init__(self, noted, *, is_set=False):
        self.noted, self._is_set = noted, is_set

    def wait(self, seconds):
        self.noted.append(round(seconds, 1))
        return self._is_set

    def clear(self):
        self._is_set = False


def pauses(driver, *, wanted=False):
    noted = []
    driver.delivery._ending = Waits(noted)
    driver.delivery._wanted = Waits(noted, is_set=wanted)
    driver.delivery._wait()
    return noted


def test_it_is_delivered_each_30_s_and_shortly_after_a_write(driver):
    driver.delivery._began += 1
    assert pauses(driver) == [0, 30]
    assert pauses(driver, wanted=True) == [0, 30, 0.5]


def test_deliveries_that_take_long_and_those_of_an_old_application_are_fewer(driver):
    driver.delivery._took = 0.2
    assert pauses(driver) == [2, 28]
    driver.delivery._took = 60
    assert pauses(driver) == [5, 25]
    driver.delivery._began -= 1000
    assert pauses(driver) == [10, 20]
    driver.delivery._began -= 90000
    assert pauses(driver, wanted=True) == [30, 0, 0.5]


def test_pauses_grow_while_it_fails(driver):
    driver.system.fails = failing(*["before create"] * 9)
    found = []
    for _ in range(9):
        driver.deliver()
        found += pauses(driver, wanted=True)
    assert found == [2, 4, 8, 16, 32, 64, 120, 120, 120]
    driver.deliver()
    assert len(pauses(driver)) == 2


# --- a driver -------------------------------------------------------------------------------------


def context(attempt=None):
    option = SimpleNamespace(isDefined=lambda: attempt is not None, get=lambda: attempt)
    java = SimpleNamespace(applicationAttemptId=lambda: option, applicationId=lambda: "app_1")
    jsc = SimpleNamespace(sc=lambda: java, hadoopConfiguration=lambda: None)
    return SimpleNamespace(_jsc=jsc, _jvm=SimpleNamespace(_gateway_client=None))


@pytest.mark.parametrize(
    ("attempt", "number"), [(None, "00001"), ("1", "00001"), ("2", "00002"), ("?", "00001")]
)
def test_each_driver_of_a_try_has_a_folder_whose_name_sorts(delivery, monkeypatch, attempt, number):
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    observer = SimpleNamespace(report=None, after_write=None)
    made = [
        delivery.begun(context(attempt), "hdfs://lake/try/", "run", "/c/o.ndjson", observer)
        for _ in range(2)
    ]
    folders = [each._remote.url for each in made]
    assert len({*folders}) == 2
    for folder in folders:
        parent, _, name = folder.rpartition("/")
        assert parent == "hdfs://lake/try"
        assert layout.ATTEMPT.fullmatch(name)
        assert name.startswith(f"{number}-")
    assert observer.after_write == made[-1].wanted
    assert made[0]._start["application_id"] == "app_1"


class Jvm:
    """The JVM of a driver, of which a test knows the properties and the current folder."""

    def __init__(self, folder, **properties):
        self.folder = folder
        self.properties = {f"spark.sparklineage.{key}": text for key, text in properties.items()}
        self.deleted_on_exit = []
        """In the order in which they are registered; the JVM deletes the last one first."""

    def java_class(self, name, client):
        assert client is self
        if name == "java.io.File":
            return lambda file: SimpleNamespace(
                getAbsolutePath=lambda: os.path.join(self.folder, file),  # noqa: PTH118  (as Java)
                deleteOnExit=lambda: self.deleted_on_exit.append(file),
            )
        return SimpleNamespace(getProperty=self.properties.get, setProperty=self.set_property)

    def set_property(self, key, value):
        before = self.properties.get(key)
        self.properties[key] = value
        return before


@pytest.fixture
def prepared(delivery, monkeypatch):
    """Prepare in a JVM."""

    def prepare(jvm):
        py4j = SimpleNamespace(JavaClass=jvm.java_class)
        monkeypatch.setitem(sys.modules, "py4j", SimpleNamespace(java_gateway=py4j))
        monkeypatch.setitem(sys.modules, "py4j.java_gateway", py4j)
        return delivery.prepare(jvm)

    return prepare


def test_the_folder_is_made_where_the_jvm_will_look_for_it_and_for_this_user_only(
    prepared, tmp_path
):
    jvm = Jvm(tmp_path, observations="c/observations.ndjson", deliver=URL)
    assert prepared(jvm) == f"{tmp_path}/c/observations.ndjson"
    assert oct((tmp_path / "c").stat().st_mode & 0o777) == "0o700"


def test_a_folder_outside_of_a_container_is_deleted_by_the_jvm_after_its_files(prepared, tmp_path):
    jvm = Jvm(tmp_path, observations=f"{tmp_path}/c/observations.ndjson", deliver=URL)
    prepared(jvm)
    folder, *files = jvm.deleted_on_exit
    assert folder == f"{tmp_path}/c"
    assert sorted(files) == [f"{folder}/events.ndjson", f"{folder}/observations.ndjson"]


def test_a_folder_in_a_container_goes_with_the_container(prepared, tmp_path):
    jvm = Jvm(tmp_path, observations="c/observations.ndjson", deliver=URL)
    prepared(jvm)
    assert jvm.deleted_on_exit == []


def test_what_an_earlier_driver_left_in_the_folder_is_not_delivered_again(prepared, tmp_path):
    for name in ("events.ndjson", "observations.ndjson", "other"):
        (tmp_path / name).write_text("{}\n")
    prepared(Jvm(tmp_path, observations="observations.ndjson", deliver=URL))
    assert [file.name for file in tmp_path.iterdir()] == ["other"]


def test_another_process_of_the_same_jvm_leaves_all_to_the_first(prepared, tmp_path):
    jvm = Jvm(tmp_path, observations="c/observations.ndjson", deliver=URL)
    prepared(jvm)
    (tmp_path / "c" / "events.ndjson").write_text("{}\n")
    assert prepared(jvm) is None
    assert (tmp_path / "c" / "events.ndjson").exists()


def test_nothing_is_made_where_nothing_is_to_be_delivered(prepared, tmp_path):
    assert prepared(Jvm(tmp_path, observations="c/observations.ndjson")) is None
    assert prepared(Jvm(tmp_path)) is None
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_made_is_logged(prepared, tmp_path, log, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "makedirs", full)
    assert prepared(Jvm(tmp_path, observations="c/observations.ndjson", deliver=URL)) is None
    [line] = log()
    assert line.startswith("sparklineage: cannot keep lineage before it is delivered: OSError: ")
