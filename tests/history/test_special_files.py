"""A pipe, a folder or a bad link in the place of a file: nothing hangs, nothing is a defect."""

from __future__ import annotations

import contextlib
import io
import os
import random
import shutil
import signal
import socket
from pathlib import Path

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from tests.unit.history.facts.events import dataset, ours

TOO_LONG_S = 20
TRIED = int(os.environ.get("SPECIAL_FILES", "2"))
SEEN = {"witness": "both", "accessed": "part", "writes": 1, "failed": False}


def _socket(path):
    with contextlib.chdir(path.parent), socket.socket(socket.AF_UNIX) as bound:
        bound.bind(path.name)  # a path from the root could be too long


KINDS = {
    "pipe": os.mkfifo,
    "socket": _socket,
    "folder": os.mkdir,
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to nothing": lambda path: path.symlink_to("nowhere"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
}
COMMANDS = (
    ("trace", "/orders", "--store", "{store}"),
    ("impact", "/orders", "--store", "{store}"),
    ("drift", "/orders", "--store", "{store}"),
    ("history", "build", "{archive}", "--store", "{store}"),
    ("history", "build", "{archive}", "--store", "{new}"),
    ("trace", "/orders", "--column", "id", "--events", "{archive}"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Give a folder with an archive, and a store that was built of it."""
    folder = tmp_path_factory.mktemp("whole")
    archive = Archive(f"file://{folder}/archive")
    for number in (1, 2):
        identity = TaskIdentity("shop", "revenue", f"run-{number}", 1)
        written = Written(ours(writes=[(dataset("/orders"), SEEN)]))
        archive.write(identity, written, {}, is_unsent=True)
    assert _run(COMMANDS[3], folder)[0] == 0
    return folder


def _run(command, folder):
    places = {name: str(folder / name) for name in ("store", "archive", "new")}
    out, err = io.StringIO(), io.StringIO()

    def end(*_):
        msg = f"{command} hangs"
        raise TimeoutError(msg)

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(TOO_LONG_S)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main([part.format(**places) for part in command])
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return code, out.getvalue(), err.getvalue()


def _files(folder):
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", KINDS)
def test_no_command_hangs_at_what_is_in_the_place_of_a_file(whole, tmp_path, kind):
    chance = random.Random(kind)
    files = [*_files(whole), Path("store/lock.json"), Path("archive/shop/other.json")]
    for number, file in enumerate(chance.sample(files, TRIED)):
        folder = tmp_path / str(number)
        shutil.copytree(whole, folder)
        (folder / file).unlink(missing_ok=True)
        KINDS[kind](folder / file)
        command = chance.choice(COMMANDS)
        code, out, err = _run(command, folder)
        answer = f"{kind} at {file}: {command}: {code}, {out!r}, {err!r}"
        assert code in (0, 1, 2), answer
        assert out or err, answer
        assert "defect" not in err, answer
        assert "Traceback" not in err, answer
