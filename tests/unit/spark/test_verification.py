"""A jar is checked once for each change of its file, and once a day."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress

import pytest

from airflow_provider_sparklineage.spark.submit import listener, remembered
from tests.unit.listener_jars import listener_jar, with_a_damaged_class


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / "cache"


@pytest.fixture
def jar(tmp_path):
    return listener_jar(tmp_path / "listener.jar")


@pytest.fixture
def digests(mocker):
    return mocker.spy(hashlib, "file_digest")


@pytest.fixture
def unpacked(mocker):
    return mocker.spy(listener, "_damage")


def test_a_jar_is_read_once_as_long_as_it_is_the_same(jar, cache, digests):
    found = [listener.verified(jar, cache) for _ in range(3)]
    assert found == [found[0]] * 3
    assert found[0].problem == ""
    assert digests.call_count == 1


def test_and_once_a_day(jar, cache, digests, unpacked):
    listener.verified(jar, cache)
    [stamp] = cache.iterdir()
    os.utime(stamp, (stamp.stat().st_mtime - 25 * 3600,) * 2)
    for _ in range(2):
        listener.verified(jar, cache)
    assert digests.call_count == 2
    assert unpacked.call_count == 1  # as the digest is that of a content that was whole


def written_again(jar):
    jar.write_bytes(jar.read_bytes())


def replaced_by_a_copy_with_its_time(jar):
    before = jar.stat()
    copy = jar.with_name("copy")
    copy.write_bytes(jar.read_bytes())
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    copy.replace(jar)


def edited_and_its_time_set_back(jar):
    before = jar.stat()
    jar.write_bytes(jar.read_bytes())
    os.utime(jar, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        written_again,
        replaced_by_a_copy_with_its_time,
        edited_and_its_time_set_back,
    ],
    ids=lambda change: change.__name__,
)
def test_a_changed_file_is_read_again(jar, cache, digests, change):
    listener.verified(jar, cache)
    change(jar)
    listener.verified(jar, cache)
    assert digests.call_count == 2


def test_a_published_jar_is_not_unpacked(jar, cache, monkeypatch, unpacked):
    content = jar.read_bytes()
    pin = listener.Pin(hashlib.sha256(content).hexdigest(), len(content))
    monkeypatch.setitem(listener.PINS, "2.13", pin)
    assert listener.verified(jar, cache).problem == ""
    unpacked.assert_not_called()


def test_a_damaged_class_is_named_and_remembered(jar, cache, unpacked):
    listener.verified(jar, cache)
    with_a_damaged_class(jar)
    problem = "io/openlineage/spark/Shaded.class in it cannot be read"
    for _ in range(2):
        assert listener.verified(jar, cache).problem == problem
    assert unpacked.call_count == 2


@pytest.mark.parametrize("bytes_left", [0, 100, -1, -30])
def test_a_truncated_jar_is_damaged(jar, cache, bytes_left):
    jar.write_bytes(jar.read_bytes()[:bytes_left])
    assert listener.verified(jar, cache).problem == "it is no archive"


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_whatever_byte_is_damaged_nothing_is_raised(jar, mask):
    whole = jar.read_bytes()
    for at in range(len(whole)):
        jar.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        with suppress(OSError):  # as bzip2 calls what is none of its own; those who ask know it
            assert isinstance(listener._damage(jar), str)


def test_a_disk_that_fails_once_is_not_remembered(jar, cache, monkeypatch):
    def fails(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr(zipfile.ZipFile, "read", fails)
        with pytest.raises(OSError, match="Input/output error"):
            listener.verified(jar, cache)
    assert listener.verified(jar, cache).problem == ""


def test_a_jar_that_was_unpacked_while_it_was_copied_is_unpacked_again(jar, cache, monkeypatch):
    """Its digest was that of the whole one, and what was unpacked a part."""
    with monkeypatch.context() as torn:
        torn.setattr(listener, "_damage", lambda _: "it is no archive")
        assert listener.verified(jar, cache).problem == "it is no archive"
    jar.touch()
    assert listener.verified(jar, cache).problem == ""


def test_what_cannot_be_remembered_is_checked_each_time(jar, cache, monkeypatch, digests):
    monkeypatch.setattr(remembered, "_folders", lambda _: [])
    for _ in range(2):
        assert listener.verified(jar, cache).problem == ""
    assert digests.call_count == 2


def test_processes_that_check_at_once_do_not_disturb_each_other(jar, cache):
    code = (
        "import sys, pathlib\n"
        "from airflow_provider_sparklineage.spark.submit import listener\n"
        "jar, cache = map(pathlib.Path, sys.argv[1:])\n"
        "for _ in range(20):\n"
        "    assert listener.verified(jar, cache).problem == ''\n"
    )
    command = [sys.executable, "-c", code, str(jar), str(cache)]
    others = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    for _ in range(20):
        jar.touch()
        assert listener.verified(jar, cache).problem == ""
    for other in others:
        _, printed = other.communicate(timeout=60)
        assert (other.returncode, printed) == (0, b"")
    assert len(list(cache.iterdir())) == 1  # and no part of a file
