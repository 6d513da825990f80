"""Mistakes of the user, and faults of the machine: one line that says what to do, and no defect."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy", reason="it comes with Airflow")

from sqlalchemy.exc import OperationalError

from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.model.files import open_regular
from tests.conftest import golden

STAGING = str(golden("staging_chain"))


@pytest.fixture(scope="module")
def event(tmp_path_factory):
    """Write the merged event of a recorded run to a file."""
    file = tmp_path_factory.mktemp("event") / "event.json"
    with file.open("wb") as out:
        subprocess.run(_python("merge", STAGING), check=True, stdout=out)
    return file


@pytest.fixture(scope="module")
def built(tmp_path_factory, event):
    """Build a history."""
    folder = tmp_path_factory.mktemp("built") / "store"
    subprocess.run(_python("history", "build", event, "--store", folder), check=True)
    return folder


@pytest.fixture
def store(built, tmp_path):
    """Copy the history, for tests that damage it."""
    return shutil.copytree(built, tmp_path / "store")


def _python(*argv):
    return [sys.executable, "-m", "airflow_provider_sparklineage.cli", *map(str, argv)]


def advice(done, *expected_codes):
    """Check that a command failed with one line, and that no defect is blamed; give the line."""
    [line] = done.err.splitlines()
    assert done.code in (expected_codes or (2,))
    assert line.startswith("sparklineage: ")
    assert "defect" not in line
    return line


# --- places that cannot be ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "fix"),
    [
        pytest.param("{file}", "Correct the path.", id="a file"),
        pytest.param("{file}/store", "Correct the path.", id="below a file"),
        pytest.param("/proc/nowhere/store", "Correct the path.", id="below a place that is not"),
        pytest.param("{loop}", "Correct the path.", id="a link to itself"),
        pytest.param("gs://lake/store", "install apache-airflow-providers-google", id="GCS"),
        pytest.param("foo://lake/store", "Airflow has no file system for foo://", id="a scheme"),
        pytest.param("http://[", "Give a path, or a URL such as s3://", id="no URL"),
        pytest.param("://", "Give a path, or a URL such as s3://", id="no scheme"),
        pytest.param("file:///%00", "Give a path, or a URL such as s3://", id="no path"),
        pytest.param("hdfs://nobody.invalid/x", "Try again when it can be reached", id="an outage"),
    ],
)
@pytest.mark.parametrize("question", ["trace", "build"])
def test_a_place_where_no_store_can_be_is_reported(run, tmp_path, event, place, fix, question):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    url = place.format(file=tmp_path / "file", loop=tmp_path / "loop")
    if (question, place) == ("trace", "/proc/nowhere/store"):
        fix = "There is no history at"
    argv = ("trace", "revenue") if question == "trace" else ("history", "build", str(event))
    line = advice(run(*argv, "--store", url))
    assert fix in line
    assert "Remove its manifest.json" not in line


def test_a_source_that_is_no_url_is_reported(run, tmp_path):
    line = advice(run("history", "build", "http://[", "--store", str(tmp_path)))
    assert line == (
        "sparklineage: http://[ is no URL. Give a path, or a URL such as s3://bucket/folder."
    )


@pytest.mark.parametrize("command", ["show", "merge", "explain"])
def test_a_text_without_a_scheme_is_a_path(run, command):
    argv = ("explain", "--run", "://") if command == "explain" else (command, "://")
    assert advice(run(*argv)) == "sparklineage: : does not exist."


def test_a_url_without_a_bundle_is_reported_as_that(run, tmp_path):
    line = advice(run("show", f"file://{tmp_path}/nothing"))
    assert f"There is no capture bundle at file://{tmp_path}/nothing" in line
    assert "capture_location needs a connection" in line


def test_a_store_whose_name_duckdb_cannot_have_is_reported(run, tmp_path, event):
    name = os.fsdecode(bytes(tmp_path) + b"/\xe9t\xe9")
    for argv in (("trace", "revenue"), ("history", "build", str(event)), ("history", "show")):
        line = advice(run(*argv, "--store", name))
        assert line.endswith("Name another folder; if this one is in UTF-8, set PYTHONUTF8=1.")


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a socket"])
@pytest.mark.parametrize("question", ["build", "trace"])
def test_a_source_that_cannot_be_read_is_counted(run, tmp_path, kind, question):
    source = tmp_path / "events.json"
    if kind == "a pipe":
        os.mkfifo(source)
    elif kind == "a device":
        source.symlink_to("/dev/null")
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(source))
    if question == "trace":
        done = run("trace", "revenue", "--events", str(source))
    else:
        done = run("history", "build", str(source), "--store", str(tmp_path / "store"), "--strict")
    assert "note: skipped: unreadable: 1" in done.err.splitlines()
    assert done.code == (2 if question == "trace" else 1)


# --- stores that are damaged, or none -------------------------------------------------------------


@pytest.mark.parametrize("marks", ["", "{to", "[1]", '{"a": 1}', None])
def test_damaged_marks_are_read_anew(run, store, event, marks):
    [file] = (store / "marks").iterdir()
    if marks is None:
        file.unlink()
    else:
        file.write_text(marks)
    before = Store.open(str(store)).manifest.rows
    done = run("history", "build", str(event), "--store", str(store))
    assert (done.code, done.err) == (0, "")
    assert "1 event was read" in done.out
    assert "0 are new" in done.out
    assert Store.open(str(store)).manifest.rows == before


def test_a_manifest_of_something_else_is_not_to_be_removed(run, tmp_path):
    (tmp_path / "manifest.json").write_text('{"application_run_id": "x"}')
    line = advice(run("history", "show", "--store", str(tmp_path)))
    assert line.endswith(
        "is no history: its manifest.json is of something else. Name the folder of a history: "
        "--store URL."
    )


def test_a_time_without_a_zone_is_damage(run, store):
    manifest = json.loads((store / "manifest.json").read_text())
    (store / "manifest.json").write_text(json.dumps({**manifest, "built_at": "2024-01-01T00:00"}))
    assert "cannot be read (ValidationError" in advice(
        run("history", "show", "--store", str(store))
    )


def test_a_lock_that_is_a_folder_is_reported(run, store, event):
    (store / "lock.json").mkdir()
    line = advice(run("history", "build", str(event), "--store", str(store)))
    assert "it is no regular file" in line
    assert "Remove its manifest.json" not in line


def test_a_store_that_others_may_not_read_is_not_called_damaged(run, store, monkeypatch):
    [tables] = {file.parent for file in store.glob("generations/*/*.parquet")}

    def refuse(path):
        if path.parent == tables:
            raise PermissionError(13, "Permission denied", str(path))
        return open_regular(path)

    monkeypatch.setattr("airflow_provider_sparklineage.history.store.open_regular", refuse)
    line = advice(run("history", "show", "--store", str(store)))
    assert line.endswith("Run it as a user who may do that, or name another place.")


# --- numbers, dates and names ---------------------------------------------------------------------


TIMES = ("0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "2024-01-01T00:00+24:00", "tomorrow")


@pytest.mark.parametrize("time", TIMES)
def test_a_time_that_no_calendar_has_is_reported(run, built, time):
    line = advice(run("trace", "revenue", "--store", str(built), "--as-of", time))
    assert line == (
        f"sparklineage: --as-of {time} is no time. Write it as 2024-10-16 or 2024-10-16T08:00."
    )


@pytest.mark.parametrize("zone", ["+24:00", "+99:00"])
def test_a_zone_that_cannot_be_is_reported(run, zone):
    line = advice(run("explain", "{{ ds }}", "--logical-date", f"2024-01-01T00:00{zone}"))
    assert "is no date or time. Write it as" in line


@pytest.mark.parametrize("days", ["-1", "nan", "inf", "1e308", "1e400", "x"])
def test_days_that_cannot_be_kept_are_refused(run, store, days, capsys):
    before = Store.open(str(store)).manifest
    with pytest.raises(SystemExit, match="2"):
        run("history", "build", str(store), "--store", str(store), f"--keep={days}")
    assert f"--keep: '{days}' is no number of days, 0 to 365,000\n" in capsys.readouterr().err
    assert Store.open(str(store)).manifest == before


def test_a_file_name_that_is_not_utf_8_is_a_name(run, tmp_path, event):
    folder = tmp_path / "events"
    folder.mkdir()
    shutil.copy(event, os.fsencode(folder) + b"/\xff.json")
    store = str(tmp_path / "store")
    for new in ("1 is new", "0 are new"):
        done = run("history", "build", str(folder), "--store", store)
        assert (done.code, done.err) == (0, "")
        assert new in done.out or "new" not in done.out


# --- output ---------------------------------------------------------------------------------------


COMMANDS = [("merge", STAGING), ("show", STAGING), ("schema",), ("schema", "history.runs")]


def in_shell(redirection, *argv):
    """Run a command with its output redirected; give the code, and the lines on stderr."""
    script = f'exec "$0" "$@" {redirection}'
    done = subprocess.run(
        ["/bin/sh", "-c", script, *_python(*argv)], capture_output=True, text=True, check=False
    )
    lines = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    return done.returncode, lines


@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that Linux alone has")
def test_an_output_that_is_full_is_reported(argv):
    code, [line] = in_shell(">/dev/full", *argv)
    assert code == 1
    assert line == (
        "sparklineage: OSError: [Errno 28] No space left on device. Make room there, or name "
        "another place."
    )


@pytest.mark.parametrize("argv", COMMANDS[1:3], ids=" ".join)
def test_an_output_that_is_closed_is_reported(argv):
    code, [line] = in_shell(">&-", *argv)
    assert code == 1
    assert line == (
        "sparklineage: The standard output is closed. To have none, send it to /dev/null."
    )


def test_an_output_that_nobody_reads_is_no_failure():
    assert in_shell("| true", *COMMANDS[2]) == (0, [])


def test_errors_and_input_may_be_closed():
    assert in_shell("2>&- <&-", "show", STAGING)[0] == 0
    assert in_shell("<&-", "merge", "-")[0] == 2  # nothing comes from there


def test_a_disk_that_is_full_is_reported(tmp_path, event):
    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    done = subprocess.run(
        _python("history", "build", event, "--store", tmp_path / "store"),
        preexec_fn=limited,
        capture_output=True,
        text=True,
        check=False,
    )
    [line] = done.stderr.splitlines()
    assert done.returncode == 2
    assert line.endswith("Make room there, or name another place.")


# --- what is not installed ------------------------------------------------------------------------


FETCH = ("fetch-listener", "--spark-version", "4.0.1", "--from", "http://127.0.0.1:9/x.jar")


@pytest.mark.parametrize(("missing", "argv"), [("rich", ("show", STAGING)), ("requests", FETCH)])
def test_a_package_that_is_missing_is_reported(tmp_path, missing, argv):
    script = (
        f"import sys; sys.modules[{missing!r}] = None; "
        f"from airflow_provider_sparklineage.cli import main; sys.exit(main({list(argv)}))"
    )
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False
    )
    line = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert missing in line
    assert line.endswith("pip install airflow-provider-sparklineage brings all that it needs.")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            OperationalError("SELECT 1", {}, Exception("connection refused")),
            "OperationalError: (builtins.Exception) connection refused. Airflow's database does "
            "not give that; `airflow db check` tries it.",
        ),
        (
            MemoryError("2 GB"),
            "MemoryError: 2 GB. Run it where there is more memory, or on fewer events at once.",
        ),
    ],
    ids=["database", "memory"],
)
def test_what_the_machine_lacks_is_reported(run, monkeypatch, error, reason):
    def failing(*_args, **_kwargs):
        raise error

    monkeypatch.setattr("airflow_provider_sparklineage.cli.events.events_of", failing)
    assert advice(run("show", STAGING), 1) == f"sparklineage: {reason}"


def test_an_interruption_is_no_traceback(run, monkeypatch):
    def interrupted(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("airflow_provider_sparklineage.cli.events.events_of", interrupted)
    done = run("show", STAGING)
    assert (done.code, done.err) == (130, "")
