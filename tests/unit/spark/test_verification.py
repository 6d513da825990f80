"""A listener's jar is checked before each job: by its digest, or by unpacking all of it."""

from __future__ import annotations

import hashlib
import zipfile

import pytest

from airflow_provider_sparklineage.spark.submit import listener
from airflow_provider_sparklineage.spark.submit.listener import Identity
from tests.unit.listener_jars import listener_jar, with_a_damaged_class


@pytest.fixture
def jar(tmp_path):
    return listener_jar(tmp_path / "listener.jar")


def test_a_whole_jar_has_no_damage(jar):
    assert listener.damage(jar) == ""


def test_a_published_jar_is_known_by_its_digest_and_not_unpacked(tmp_path, monkeypatch, mocker):
    jar = tmp_path / "listener.jar"
    jar.write_bytes(b"published")
    monkeypatch.setitem(listener.PINS, "2.13", hashlib.sha256(b"published").hexdigest())
    unpacked = mocker.spy(listener, "damage")
    assert listener.read_jar(jar) == Identity(listener.VERSION, "2.13")
    unpacked.assert_not_called()


def test_a_damaged_class_is_named(jar):
    with_a_damaged_class(jar)
    assert listener.damage(jar) == "io/openlineage/spark/Shaded.class in it cannot be read"


@pytest.mark.parametrize("bytes_left", [0, 100, -1, -30])
def test_a_truncated_jar_is_damaged(jar, bytes_left):
    jar.write_bytes(jar.read_bytes()[:bytes_left])
    assert listener.damage(jar) == "it is no archive"


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_whatever_byte_is_damaged_nothing_is_raised(jar, mask):
    whole = jar.read_bytes()
    for at in range(len(whole)):
        jar.write_bytes(whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :])
        assert isinstance(listener.damage(jar), str)
        assert isinstance(listener.holds_listener(jar), bool)


def test_a_disk_that_fails_is_named(jar, monkeypatch):
    def fails(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(zipfile.ZipFile, "read", fails)
    assert listener.damage(jar) == "Input/output error"
