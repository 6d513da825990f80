"""Which listener a jar has, and the error for a jar that is damaged."""

from __future__ import annotations

import zipfile

import pytest

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import listener
from airflow_provider_sparklineage.spark.submit.listener import Identity
from tests.unit.listener_jars import listener_jar, other_jar


@pytest.mark.parametrize(
    ("name", "scala", "version", "expected"),
    [
        pytest.param("renamed.jar", "2.12", "1.45.0", Identity("1.45.0", "2.12"), id="renamed"),
        pytest.param(
            "openlineage-spark_2.13-1.53.0.jar",
            "2.12",
            "1.37.0",
            Identity("1.37.0", "2.12"),
            id="inside counts for more than the name",
        ),
        pytest.param(
            "openlineage-spark_2.12-1.9.0.jar", None, None, Identity("1.9.0", "2.12"), id="name"
        ),
        pytest.param("x.jar", None, None, Identity(None, None), id="unknown"),
    ],
)
def test_a_jar_has_the_identity_of_its_listener(tmp_path, name, scala, version, expected):
    assert listener.read_jar(listener_jar(tmp_path / name, scala, version)) == expected


@pytest.mark.parametrize(
    ("properties", "version"),
    [
        pytest.param(r"built\=C:\users" "\nversion=1.45.0\n", "1.45.0", id="in another line"),
        pytest.param("built=C:\\users\nbuild.version=1\n", "1.53.0", id="no version in the file"),
    ],
)
def test_a_wrong_escape_in_the_version_file_does_not_refuse_the_jar(tmp_path, properties, version):
    jar = listener_jar(tmp_path / "openlineage-spark_2.13-1.53.0.jar", version=None)
    with zipfile.ZipFile(jar, "a") as archive:
        archive.writestr("io/openlineage/spark/agent/version.properties", properties)
    assert listener.read_jar(jar) == Identity(version, "2.13")


def test_a_missing_jar_is_reported_with_the_fix(tmp_path):
    with pytest.raises(ListenerError, match=r"does not exist\. Correct \[sparklineage\]"):
        listener.read_jar(tmp_path / "openlineage-spark_2.13-1.53.0.jar")


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9])
def test_a_truncated_jar_is_refused(tmp_path, kept):
    jar = listener_jar(tmp_path / "truncated.jar")
    content = jar.read_bytes()
    jar.write_bytes(content[: int(len(content) * kept)])
    with pytest.raises(ListenerError, match=r"not a readable .* Fetch it again"):
        listener.read_jar(jar)


def test_a_jar_whose_listener_is_damaged_is_refused(tmp_path):
    jar = listener_jar(tmp_path / "damaged.jar")
    content = jar.read_bytes()
    at = zipfile.ZipFile(jar).getinfo(listener.LISTENER_CLASS.replace(".", "/") + ".class")
    start = at.header_offset + 30 + len(at.filename)
    end = start + at.compress_size
    jar.write_bytes(content[:start] + b"\xff" * at.compress_size + content[end:])
    with pytest.raises(ListenerError, match="not a readable"):
        listener.read_jar(jar)


def test_another_jar_is_no_listener(tmp_path):
    jar = other_jar(tmp_path / "openlineage-spark_2.13-1.53.0.jar")
    assert not listener.holds_listener(jar)
    with pytest.raises(ListenerError, match="not a readable"):
        listener.read_jar(jar)


def test_a_jar_with_a_comment_behind_it_is_read(tmp_path):
    jar = listener_jar(tmp_path / "signed.jar")
    with zipfile.ZipFile(jar, "a") as archive:
        archive.comment = b"built by the shop" * 100
    assert listener.holds_listener(jar)


def test_a_shaded_copy_of_the_class_is_no_listener(tmp_path):
    jar = other_jar(tmp_path / "shop.jar")
    with zipfile.ZipFile(jar, "a") as archive:
        archive.writestr(f"shop/{listener.LISTENER_CLASS.replace('.', '/')}.class", b"")
    assert not listener.holds_listener(jar)
