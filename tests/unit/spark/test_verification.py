"""A jar is checked before each job, and unpacked once for a content."""

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
def unpacked(mocker):
    return mocker.spy(listener, "_unpacked_damage")


def test_a_whole_jar_is_unpacked_once(jar, cache, unpacked):
    assert [listener.damage(jar, cache) for _ in range(3)] == ["", "", ""]
    assert unpacked.call_count == 1


def test_whatever_its_file_is_called_and_when_it_was_written(jar, cache, unpacked):
    listener.damage(jar, cache)
    copy = jar.with_name("copy.jar")
    copy.write_bytes(jar.read_bytes())
    assert listener.damage(copy, cache) == ""
    assert unpacked.call_count == 1


def test_another_content_of_the_same_size_and_time_is_unpacked(jar, cache, unpacked):
    listener.damage(jar, cache)
    before = jar.stat()
    content = bytearray(jar.read_bytes())
    content[40] ^= 0xFF
    jar.write_bytes(content)
    os.utime(jar, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert listener.damage(jar, cache)
    assert unpacked.call_count == 2


def test_a_published_jar_is_not_unpacked(jar, cache, monkeypatch, unpacked):
    content = jar.read_bytes()
    pin = listener.Pin(hashlib.sha256(content).hexdigest(), len(content))
    monkeypatch.setitem(listener.PINS, "2.13", pin)
    assert listener.damage(jar, cache) == ""
    unpacked.assert_not_called()


def test_a_damaged_class_is_named(jar, cache, unpacked):
    listener.damage(jar, cache)
    with_a_damaged_class(jar)
    problem = "io/openlineage/spark/Shaded.class in it cannot be read"
    for _ in range(2):
        assert listener.damage(jar, cache) == problem
    assert unpacked.call_count == 3  # only that a jar is whole is kept


@pytest.mark.parametrize("bytes_left", [0, 100, -1, -30])
def test_a_truncated_jar_is_damaged(jar, cache, bytes_left):
    jar.write_bytes(jar.read_bytes()[:bytes_left])
    assert listener.damage(jar, cache) == "it is no archive"


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_whatever_byte_is_damaged_nothing_is_raised(jar, mask):
    whole = jar.read_bytes()
    for at in range(len(whole)):
        jar.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        with suppress(OSError):  # as bzip2 calls what is none of its own; those who ask know it
            assert isinstance(listener._unpacked_damage(jar), str)


def test_a_disk_that_fails_once_is_not_remembered(jar, cache, monkeypatch):
    def fails(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr(zipfile.ZipFile, "read", fails)
        with pytest.raises(OSError, match="Input/output error"):
            listener.damage(jar, cache)
    assert listener.damage(jar, cache) == ""


def test_a_jar_that_changed_while_it_was_unpacked_is_unpacked_again(jar, cache, monkeypatch):
    whole = jar.read_bytes()
    torn = whole[:-30]

    def completed(_):
        jar.write_bytes(whole)
        return ""

    jar.write_bytes(torn)
    with monkeypatch.context() as copying:
        copying.setattr(listener, "_unpacked_damage", completed)
        listener.damage(jar, cache)
    jar.write_bytes(torn)
    assert listener.damage(jar, cache) == "it is no archive"


def test_what_cannot_be_kept_is_unpacked_each_time(jar, cache, monkeypatch, unpacked):
    monkeypatch.setattr(remembered, "_folders", lambda _: [])
    for _ in range(2):
        assert listener.damage(jar, cache) == ""
    assert unpacked.call_count == 2


def test_processes_that_check_at_once_do_not_disturb_each_other(jar, cache):
    code = (
        "import sys, pathlib\n"
        "from airflow_provider_sparklineage.spark.submit import listener\n"
        "jar, cache = map(pathlib.Path, sys.argv[1:])\n"
        "for _ in range(20):\n"
        "    assert listener.damage(jar, cache) == ''\n"
    )
    command = [sys.executable, "-c", code, str(jar), str(cache)]
    others = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    for _ in range(20):
        jar.touch()
        assert listener.damage(jar, cache) == ""
    for other in others:
        _, printed = other.communicate(timeout=60)
        assert (other.returncode, printed) == (0, b"")
    assert len(list(cache.iterdir())) == 1  # and no part of a file
