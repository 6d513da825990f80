"""Filling the cache: complete and checked, or not at all."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import gzip
import hashlib
import os
import stat
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.model import files
from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import (
    commands,
    distribution,
    fetching,
    listener,
    listener_selection,
)
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
from tests.loopback import Handler, serving

CONTENT = b"the listener"
SPARK = SparkDistribution(None, "4.0.1", "2.13")


@pytest.fixture
def env(tmp_path, monkeypatch):
    """Give an environment with an empty cache; what is expected to come is CONTENT."""
    monkeypatch.setitem(listener.PINS, "2.13", hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PATH": "/nowhere"}


@pytest.fixture
def given(tmp_path):
    path = tmp_path / "given.jar"
    path.write_bytes(CONTENT)
    return path


def left(env):
    return sorted(path.name for path in fetching.cache_folder(env).iterdir())


def test_a_given_file_is_cached_and_nothing_else_stays(env, given):
    jar = fetching.fetch("2.13", fetching.from_location(str(given)), env)
    assert jar.read_bytes() == CONTENT
    assert left(env) == [".lock", jar.name]


def test_a_url_is_fetched(env, given):
    fetching.fetch("2.13", fetching.from_location(given.as_uri()), env)
    assert fetching.is_cached("2.13", env)


def test_what_is_cached_is_not_fetched_again(env, given):
    jar = fetching.fetch("2.13", fetching.from_location(str(given)), env)
    nobody = "http://127.0.0.1:9/listener.jar"
    assert listener_selection.fetch_for(SPARK, "spark-submit", env, location=nobody) == jar


def test_a_location_where_nothing_is_is_reported_even_if_the_cache_has_the_jar(env, given):
    fetching.fetch("2.13", fetching.from_location(str(given)), env)
    given.unlink()
    with pytest.raises(ListenerError, match=f"There is no file {given}"):
        listener_selection.fetch_for(SPARK, "spark-submit", env, location=str(given))


@pytest.mark.parametrize("location", ["http://[", "s3://lake/listener.jar", "file://["])
def test_a_location_from_which_nothing_can_be_taken_is_reported(env, location):
    with pytest.raises(ListenerError, match="Give the path or the URL"):
        listener_selection.fetch_for(SPARK, "spark-submit", env, location=location)


@pytest.mark.parametrize("version", ["2.4.8", "3.1.3"])
def test_nothing_is_fetched_for_a_spark_that_no_listener_fits(env, version):
    progress = []
    old = SparkDistribution(None, *distribution.declared(version))
    with pytest.raises(ListenerError, match=f"Spark {version}. The first that it works with is 3"):
        listener_selection.fetch_for(old, "spark-submit", env, progress=progress.append)
    assert progress == []


def test_a_damaged_jar_in_the_cache_is_replaced(env, given):
    jar = fetching.cached("2.13", env)
    jar.parent.mkdir(parents=True)
    jar.write_bytes(CONTENT[:5])
    fetching.fetch("2.13", fetching.from_location(str(given)), env)
    assert jar.read_bytes() == CONTENT


def test_a_jar_of_the_right_size_with_zeros_in_it_is_replaced(env, given):
    jar = fetching.fetch("2.13", fetching.from_location(str(given)), env)
    jar.write_bytes(bytes(len(CONTENT)))
    assert not fetching.is_cached("2.13", env)
    fetching.fetch("2.13", fetching.from_location(str(given)), env)
    assert jar.read_bytes() == CONTENT


def test_a_fetched_jar_and_its_name_are_on_the_disk_before_it_is_used(env, given, mocker):
    done = []
    opened = "/proc/self/fd/{}"
    mocker.patch.object(os, "fsync", lambda h: done.append(str(Path(opened.format(h)).readlink())))
    jar = fetching.fetch("2.13", fetching.from_location(str(given)), env)
    [content, folder] = done
    assert "/.fetch-" in content
    assert folder == str(jar.parent)


def test_a_file_with_another_digest_is_not_used(env, given):
    given.write_bytes(b"something else")
    with pytest.raises(ListenerError, match=r"SHA-256 digest \w+, not \w+; it is not used"):
        fetching.fetch("2.13", fetching.from_location(str(given)), env)
    assert left(env) == [".lock"]


@pytest.mark.parametrize("location", ["/nowhere/x.jar", "file:///nowhere/x.jar"])
def test_a_location_with_nothing_there_is_reported(env, location):
    with pytest.raises(ListenerError, match=r"/nowhere/x\.jar"):
        fetching.fetch("2.13", fetching.from_location(location), env)


def test_the_credentials_of_urls_are_not_reported(env):
    url = "http://ci:s3cr3t@127.0.0.1:9/x.jar?token=t0k3n&key=k3y"
    with pytest.raises(ListenerError, match=r"http://127\.0\.0\.1:9/x\.jar could not") as refused:
        fetching.fetch("2.13", fetching.from_location(url), env)
    assert "s3cr3t" not in str(refused.value)
    assert "t0k3n" not in str(refused.value)


class Mirror(Handler):
    """Gives the jar to who knows the password, by the path that is asked for."""

    def get(self):
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        if self.path == "/moved.jar":
            self.answer(302, Location=self.server.other)
        elif self.path == "/short.jar":
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(CONTENT)
        elif self.path == "/drip.jar":
            self.send_response(200)
            self.send_header("Content-Length", "10000")
            self.end_headers()
            for _ in range(10000):
                self.wfile.write(b"x")
                time.sleep(0.05)
        elif self.path == "/x.jar":
            self.answer(200, CONTENT.decode())
        elif self.path == "/packed.jar":
            is_packed = "gzip" in self.headers.get("Accept-Encoding", "")
            content = gzip.compress(CONTENT) if is_packed else CONTENT
            self.send_response(200)
            if is_packed:
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        else:
            self.answer(404)


@pytest.fixture
def mirror():
    with serving(Mirror, asked=[], other="") as server:
        yield server


def test_a_mirror_gets_the_user_of_the_url(env, mirror):
    url = mirror.url.replace("//", "//ci%40shop:p%3Ass@")
    jar = fetching.fetch("2.13", fetching.from_location(f"{url}/x.jar"), env)
    assert jar.read_bytes() == CONTENT
    token = base64.b64encode(b"ci@shop:p:ss").decode()
    assert mirror.asked == [("/x.jar", f"Basic {token}")]


def test_a_mirror_that_packs_what_it_sends_is_asked_for_the_jar_as_it_is(env, mirror):
    jar = fetching.fetch("2.13", fetching.from_location(f"{mirror.url}/packed.jar"), env)
    assert jar.read_bytes() == CONTENT


def test_a_mirror_that_sends_too_much_is_not_read_to_its_end(env, mirror, monkeypatch):
    monkeypatch.setattr(fetching, "_MAX_BYTES", len(CONTENT) - 1)
    with pytest.raises(ListenerError, match="sends more than 0 MB"):
        fetching.fetch("2.13", fetching.from_location(f"{mirror.url}/x.jar"), env)
    assert left(env) == [".lock"]


def test_the_user_is_not_sent_on_to_another_host(env, mirror):
    with serving(Mirror, asked=[], other="") as other:
        mirror.other = f"{other.url}/x.jar"
        url = mirror.url.replace("//", "//ci:s3cr3t@")
        fetching.fetch("2.13", fetching.from_location(f"{url}/moved.jar"), env)
        assert other.asked == [("/x.jar", None)]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        pytest.param("/none.jar", "404 Not Found", id="answer"),
        pytest.param("/short.jar", r"IncompleteRead\(12 bytes read, 88 more", id="truncated"),
    ],
)
def test_a_mirror_without_the_jar_is_named_with_the_reason(env, mirror, path, reason):
    url = mirror.url.replace("//", "//ci:s3cr3t@") + path
    with pytest.raises(ListenerError, match=rf"could not be fetched \({reason}") as refused:
        fetching.fetch("2.13", fetching.from_location(url), env)
    assert "s3cr3t" not in str(refused.value)
    assert left(env) == [".lock"]


def test_a_server_that_gives_a_byte_at_a_time_is_left(env, mirror):
    fetcher = fetching.from_location(f"{mirror.url}/drip.jar", limit_s=0.5)
    with pytest.raises(ListenerError, match=r"/drip\.jar could not be fetched within 0 s"):
        fetching.fetch("2.13", fetcher, env)
    assert left(env) == [".lock"]


def test_nobody_at_the_urls_port_is_the_reason(env):
    with pytest.raises(ListenerError, match=r"\(\[Errno 111\] Connection refused\)"):
        fetching.fetch("2.13", fetching.from_location("http://127.0.0.1:9/x.jar"), env)


def test_a_cache_that_cannot_be_written_is_reported_with_the_fix(env, given):
    Path(env["XDG_CACHE_HOME"]).touch()  # a file where the folder should be
    with pytest.raises(ListenerError, match=r"Make it writable, set XDG_CACHE_HOME .*_jar"):
        fetching.fetch("2.13", fetching.from_location(str(given)), env)


def test_a_filled_cache_needs_not_be_written(env, given, monkeypatch):
    jar = fetching.fetch("2.13", fetching.from_location(str(given)), env)

    def read_only(*_args, **_kwargs):
        raise PermissionError(13, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", read_only)
    assert fetching.fetch("2.13", fetching.from_location(str(given)), env) == jar


def test_there_is_no_listener_for_every_scala(env, given):
    with pytest.raises(ListenerError, match=r"no listener for Scala 2\.11\. There are"):
        fetching.fetch("2.11", fetching.from_location(str(given)), env)


def test_of_two_that_fill_the_cache_one_waits_and_finds_it_filled(env, given, mocker):
    folder = fetching.cache_folder(env)
    folder.mkdir(parents=True)
    fetcher, reported = mocker.Mock(wraps=fetching.from_location(str(given))), []

    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other one is at it
        waiting = threading.Event()
        second = threading.Thread(
            target=fetching.fetch,
            args=("2.13", fetcher, env, lambda line: (reported.append(line), waiting.set())),
        )
        second.start()
        assert waiting.wait(10)
        fetching.cached("2.13", env).write_bytes(CONTENT)
    second.join(10)
    assert reported == ["Another process is filling the cache; waiting for it …"]
    fetcher.assert_not_called()


def test_who_has_waited_for_another_that_failed_does_not_wait_once_more(env):
    """Of the tasks on a worker each would wait for all before it: hours, where nothing answers."""
    folder = fetching.cache_folder(env)
    folder.mkdir(parents=True)
    asked, failed = [], []
    waiting = threading.Event()

    def fetch():
        try:
            fetching.fetch("2.13", asked.append, env, lambda _: waiting.set())
        except ListenerError as error:
            failed.append(str(error))

    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the other one is at it, and will not succeed
        second = threading.Thread(target=fetch)
        second.start()
        assert waiting.wait(10)
    second.join(10)
    assert asked == []
    [message] = failed
    assert message.startswith("Another process has just failed to fetch the listener")


def test_who_waits_for_one_that_hangs_goes_on_without(env):
    folder = fetching.cache_folder(env)
    folder.mkdir(parents=True)
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ListenerError, match=r"has been filling the cache .* fetch-"):
            fetching.fetch("2.13", lambda _: pytest.fail("two fetch"), env, limit_s=0.3)


@contextlib.contextmanager
def held(folder, name=".lock", seconds_ago=0.0):
    """Hold a lock of the cache, as another process does that took it so long ago."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / name).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        at = time.time() - seconds_ago
        os.utime(folder / name, (at, at))
        yield


@pytest.mark.parametrize("seconds_ago", [31, 86400, -86400], ids=["just", "a day", "tomorrow"])
def test_who_finds_a_lock_that_is_held_for_long_fetches_as_well_at_once(env, given, seconds_ago):
    with held(fetching.cache_folder(env), seconds_ago=seconds_ago):
        begun = time.monotonic()
        fetching.fetch("2.13", fetching.from_location(str(given)), env, limit_s=30)
        assert time.monotonic() - begun < 5
    assert fetching.is_cached("2.13", env)


def test_no_more_than_one_fetches_next_to_a_lock_that_is_held_for_long(env):
    folder = fetching.cache_folder(env)
    with held(folder, seconds_ago=31), held(folder, ".lock-2"):
        begun = time.monotonic()
        with pytest.raises(fetching.BusyCacheError, match="has been filling the cache"):
            fetching.fetch("2.13", lambda _: pytest.fail("three fetch"), env, limit_s=30)
        assert time.monotonic() - begun < 5


def test_the_time_of_the_lock_is_that_of_its_present_holder(env, given):
    with held(fetching.cache_folder(env), seconds_ago=86400):
        pass

    def fetcher(work):
        assert time.time() - (work.parent / ".lock").stat().st_mtime < 5
        return fetching.from_location(str(given))(work)

    fetching.fetch("2.13", fetcher, env)


def test_a_task_never_waits_longer_than_half_a_minute_for_the_cache():
    assert fetching.TASK_LIMIT_S <= 30


def test_that_the_cache_is_held_is_not_noted_as_a_failure(env, tmp_path, monkeypatch):
    env |= a_spark(tmp_path, "sleep 60") | {"PATH": os.environ["PATH"]}
    monkeypatch.setattr(fetching, "TASK_LIMIT_S", 0.3)
    with held(fetching.cache_folder(env)), pytest.raises(fetching.BusyCacheError):
        listener_selection.fetch_for(SPARK, "spark-submit", env, in_task=True)
    assert fetching.recent_failure("2.13", env) is None


def test_what_killed_fetches_have_left_is_removed_and_what_others_do_stays(env, given):
    folder = fetching.cache_folder(env)
    for name, seconds_ago in ((".fetch-old", 7200), (".fetch-future", -7200), (".fetch-new", 60)):
        (folder / name).mkdir(parents=True)
        (folder / name / "listener.jar").touch()
        at = time.time() - seconds_ago
        os.utime(folder / name, (at, at))
    (folder / ".fetch-link").symlink_to(folder / ".fetch-new")
    fetching.fetch("2.13", fetching.from_location(str(given)), env)
    assert {name for name in left(env) if name.startswith(".fetch")} == {
        ".fetch-new",
        ".fetch-link",
    }


def test_a_pipe_in_the_cache_is_no_jar_and_is_replaced(env, given):
    jar = fetching.cached("2.13", env)
    jar.parent.mkdir(parents=True)
    os.mkfifo(jar)
    assert fetching.cache_problem("2.13", env) == "cannot be read (it is no regular file)"
    fetching.fetch("2.13", fetching.from_location(str(given)), env)
    assert jar.read_bytes() == CONTENT


def test_without_java_the_resolver_is_not_started(env, tmp_path):
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-4.0.1.jar").touch()
    with pytest.raises(ListenerError, match="There is no Java to run Spark with"):
        listener_selection.fetch_for(SPARK, "spark-submit", {**env, "SPARK_HOME": str(tmp_path)})


# --- Spark's resolver --------------------------------------------------------------------------


@pytest.fixture
def submitted(monkeypatch):
    """Stand in for spark-submit: note how it is called, store CONTENT, print where it is."""
    calls = []

    def run(command, env, timeout_s, progress):
        file = Path(command[command.index("--properties-file") + 1])
        calls.append((command, file.read_text(), env))
        stored = file.parent / "ivy" / "jars"
        stored.mkdir(parents=True)
        (stored / "io.openlineage_openlineage-spark_2.13-1.53.0.jar").write_bytes(CONTENT)
        return f"The jars for the packages stored in: {stored}\n"

    monkeypatch.setattr(commands, "_run_resolver", run)
    return calls


def test_sparks_resolver_is_asked_by_the_sites_settings(env, submitted):
    defaults = {
        "spark.jars.ivySettings": "/etc/ivysettings.xml",
        "spark.driver.extraJavaOptions": "-Dhttps.proxyHost=proxy",
        "spark.jars": "/opt/a.jar",
        "spark.master": "yarn",
        "spark.openlineage.transport.auth.apiKey": "s3cr3t",
    }
    fetcher = commands.from_spark(
        "2.13",
        "/opt/spark-submit",
        defaults,
        repositories="https://nexus/maven",
        env={"A": "b"},
        timeout_s=10,
    )
    assert fetching.fetch("2.13", fetcher, env).read_bytes() == CONTENT
    [(command, properties, environment)] = submitted
    assert command[:5] == ["/opt/spark-submit", "--master", "local[1]", "--deploy-mode", "client"]
    assert (
        command[command.index("--packages") + 1] == "io.openlineage:openlineage-spark_2.13:1.53.0"
    )
    assert command[command.index("--repositories") + 1] == "https://nexus/maven"
    assert "ivysettings.xml" in properties
    assert "proxyHost" in properties
    assert not [word for word in ("a.jar", "yarn", "s3cr3t") if word in properties]
    assert environment["A"] == "b"


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("Host repo.example not found. url=x", "Host repo.example not found"),
        ("JAVA_HOME is not set", "JAVA_HOME is not set"),
        ("Host a not found\nTimeoutError: no end within 600 s\n", "no end within 600 s"),
        ("", "spark-submit gave no reason"),
    ],
)
def test_an_unreachable_repository_is_reported_with_the_fix(env, monkeypatch, output, cause):
    monkeypatch.setattr(commands, "_run_resolver", lambda *_: output)
    fetcher = commands.from_spark("2.13", "spark-submit", {}, timeout_s=10)
    with pytest.raises(ListenerError, match=rf"{cause}.*--repositories.*proxyHost.*--from"):
        fetching.fetch("2.13", fetcher, env)


def a_spark(tmp_path, script):
    """Make a Spark of which ``spark-submit`` does what a script says, with a Java."""
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True)
    (home / "jars" / "spark-core_2.13-4.0.1.jar").touch()
    binaries = {
        home / "bin" / "spark-submit": script,
        tmp_path / "jdk" / "bin" / "java": "echo 'openjdk version \"17.0.15\"' >&2",
    }
    for path, content in binaries.items():
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/bin/sh\n{content}\n")
        path.chmod(0o755)
    return {"SPARK_HOME": str(home), "JAVA_HOME": str(tmp_path / "jdk")}


def test_a_resolver_that_hangs_is_ended_and_tasks_do_not_ask_it_again_for_a_while(
    env, tmp_path, monkeypatch
):
    asked = tmp_path / "asked"
    env |= a_spark(tmp_path, f"echo x >> {asked}; sleep 60") | {"PATH": os.environ["PATH"]}
    monkeypatch.setattr(fetching, "TASK_LIMIT_S", 0.5)
    for _ in range(3):
        with pytest.raises(ListenerError, match=r"TimeoutError: no end within .*--repositories"):
            listener_selection.fetch_for(SPARK, "spark-submit", env, in_task=True)
    assert asked.read_text() == "x\n"
    monkeypatch.setattr(fetching, "LIMIT_S", 0.5)
    with pytest.raises(ListenerError, match="TimeoutError"):  # whoever asks for it, asks again
        listener_selection.fetch_for(SPARK, "spark-submit", env)
    assert asked.read_text() == "x\nx\n"


@pytest.fixture
def taken(monkeypatch):
    """Note each digest that is taken, for which a whole file is read."""
    taken, file_digest = [], hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: taken.append(a) or file_digest(*a))
    return taken


def test_the_digest_of_a_cached_jar_is_taken_once_before_a_job(env, given, taken):
    jar = listener_selection.fetch_for(SPARK, "spark-submit", env, location=str(given))
    options = SimpleNamespace(fetch_listener=True, listener_jar=None)
    taken.clear()
    assert listener_selection.jar_in_task(SPARK, "spark-submit", options, env) == str(jar)
    files.digest_of(jar)  # as for the tools folder
    assert len(taken) == 1
    os.utime(jar, (1, 1))
    files.digest_of(jar)  # it may be another file
    assert len(taken) == 2


def note_of(env):
    return fetching.cached("2.13", env).with_suffix(f".checked-{os.getuid()}")


@pytest.fixture
def is_read_anew(env, given, taken):
    """Whether another process reads the cached jar to know its digest, which is noted."""
    listener_selection.fetch_for(SPARK, "spark-submit", env, location=str(given))
    assert fetching.is_cached("2.13", env)

    def ask():
        files.digests.clear()
        taken.clear()
        assert fetching.is_cached("2.13", env)
        return bool(taken)

    assert not ask()
    return ask


def test_a_digest_is_remembered_for_a_day(env, is_read_anew):
    note = note_of(env)
    assert stat.S_IMODE(note.lstat().st_mode) == 0o600
    for age_s in (25 * 3600, -25 * 3600):
        at = time.time() - age_s
        os.utime(note, (at, at))
        assert is_read_anew()
        assert not is_read_anew()


@pytest.mark.parametrize("content", [b"\xff garbage", b"3", b"[]", b'["a", "b"]', b"[" * 60_000])
def test_a_digest_that_cannot_be_read_is_taken_anew(env, is_read_anew, content):
    note_of(env).write_bytes(content)
    assert is_read_anew()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_a_digest_that_another_user_noted_is_not_believed(env, is_read_anew):
    os.chown(note_of(env), 12345, -1)
    assert is_read_anew()


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_of_a_jar_that_others_may_write_no_digest_is_remembered(env, is_read_anew, mode):
    note_of(env).unlink()
    fetching.cached("2.13", env).chmod(mode)
    assert is_read_anew()
    assert not note_of(env).exists()


def test_a_jar_that_was_changed_is_no_more_the_one_that_was_published(env, is_read_anew):
    jar = fetching.cached("2.13", env)
    status, note = jar.stat(), note_of(env).read_bytes()
    jar.write_bytes(b"x" * status.st_size)
    os.utime(jar, ns=(status.st_atime_ns, status.st_mtime_ns))  # the time of change remains
    files.digests.clear()
    assert "is not the file" in fetching.cache_problem("2.13", env)
    assert note_of(env).read_bytes() == note


def test_a_failed_fetch_is_believed_for_a_quarter_of_an_hour(env):
    error = ListenerError("No route to the mirror.", "Set a proxy.")
    fetching.note_failure("2.13", env, error)
    noted = fetching.recent_failure("2.13", env)
    assert (noted.problem, noted.fix) == (error.problem, error.fix)
    assert fetching.recent_failure("2.12", env) is None
    [file] = fetching.cache_folder(env).iterdir()
    for age_s in (16 * 60, -16 * 60):  # a clock was wrong
        at = time.time() - age_s
        os.utime(file, (at, at))
        assert fetching.recent_failure("2.13", env) is None


@pytest.mark.parametrize("content", [b"\xff garbage", b'["a"', b"3", b"{}", b'["a", "b", "c"]'])
def test_a_noted_failure_that_cannot_be_read_counts_as_none(env, content):
    fetching.note_failure("2.13", env, ListenerError("a"))
    [file] = fetching.cache_folder(env).iterdir()
    file.write_bytes(content)
    assert fetching.recent_failure("2.13", env) is None


def test_the_note_of_a_failure_follows_no_link_and_is_its_users_alone(env, tmp_path):
    fetching.note_failure("2.13", env, ListenerError("a"))
    [file] = fetching.cache_folder(env).iterdir()
    file.unlink()
    precious = tmp_path / "precious"
    precious.write_text("kept")
    file.symlink_to(precious)
    fetching.note_failure("2.13", env, ListenerError("a"))
    assert precious.read_text() == "kept"
    assert stat.S_IMODE(file.lstat().st_mode) == 0o600
    assert fetching.recent_failure("2.13", env).problem == "a"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
def test_a_failure_that_another_user_noted_counts_as_none(env):
    fetching.note_failure("2.13", env, ListenerError("a"))
    [file] = fetching.cache_folder(env).iterdir()
    os.chown(file, 12345, -1)
    assert fetching.recent_failure("2.13", env) is None


def test_a_failure_that_cannot_be_noted_is_not(env, tmp_path):
    (tmp_path / "cache").touch()  # a file where the folder of the cache should be
    fetching.note_failure("2.13", env, ListenerError("a"))
    assert fetching.recent_failure("2.13", env) is None


def test_a_task_does_not_wait_for_long_for_another_process_that_fetches(env, tmp_path, monkeypatch):
    env |= a_spark(tmp_path, "sleep 60") | {"PATH": os.environ["PATH"]}
    monkeypatch.setattr(fetching, "TASK_LIMIT_S", 0.3)
    folder = fetching.cache_folder(env)
    folder.mkdir(parents=True)
    with (folder / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ListenerError, match="Another process has been filling the cache"):
            listener_selection.fetch_for(SPARK, "spark-submit", env, in_task=True)


# --- the command -------------------------------------------------------------------------------


def test_the_command_needs_no_spark_where_the_jar_is_given(env, given, monkeypatch, capsys):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    command = ["fetch-listener", "--spark-version", "4.0.1", "--from", str(given)]
    assert cli.main(command) == 0
    printed = capsys.readouterr()
    assert printed.out.strip() == str(fetching.cached("2.13", env))
    assert "Fetching openlineage-spark_2.13 1.53.0 for Spark 4.0.1" in printed.err
    assert cli.main(command) == 0  # and the second time it is there
    assert capsys.readouterr().err == ""


def test_the_command_reports_what_is_no_version(capsys):
    assert cli.main(["fetch-listener", "--spark-version", "newest"]) == 2
    assert "'newest' is no version of Spark" in capsys.readouterr().err
