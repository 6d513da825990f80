"""Files in a real HDFS, by WebHDFS and a connection of Airflow."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from airflow_provider_sparklineage.storage.objects import Objects
from tests.unit.storage.test_webhdfs import ODD

pytestmark = [pytest.mark.spark, pytest.mark.airflow]

OWNER = "airflow"


@pytest.fixture
def folder(cluster):
    """Make a folder of the worker's user and no others; give its path."""
    path = f"/store/{uuid.uuid4().hex}"
    cluster.make_folder(path, OWNER, "770")
    return path


@pytest.fixture
def store(cluster, folder, monkeypatch):
    """Give the folder as a user sees it."""

    def of(user):
        host, _, port = cluster.webhdfs.partition(":")
        connection = {"conn_type": "webhdfs", "host": host, "port": int(port), "login": user}
        conn_id = f"hdfs_{port}_{user}"
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(connection))
        return Objects(f"hdfs://{conn_id}@{cluster.namenode}{folder}")

    return of


def test_files_are_what_they_are_on_a_disk(store, tmp_path):
    files = store(OWNER)
    for name in ODD:
        files.write(f"odd/{name}", name.encode())
        files.write(f"odd/{name}", name.encode()[::-1])
    assert sorted(files.names("odd")) == sorted(ODD)
    assert {name for name, written in files.walk("") if written} == {f"odd/{n}" for n in ODD}
    assert [files.read(f"odd/{name}") for name in ODD] == [n.encode()[::-1] for n in ODD]
    files.remove(f"odd/{ODD[0]}")
    assert ODD[0] not in files.files("odd")
    files.download(f"odd/{ODD[1]}", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == ODD[1].encode()[::-1]
    files.remove_folder("odd")
    files.remove_folder("odd")
    assert (files.names(""), list(files.walk("odd"))) == ([], [])
    with pytest.raises(FileNotFoundError):
        files.read("odd")


def test_a_large_file_comes_whole(store, tmp_path):
    files, content = store(OWNER), bytes(range(256)) * (20 << 12)
    files.write("large", content)
    assert files.read("large") == content
    assert files.read("large", 3) == content[:3]
    files.download("large", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content


def test_several_threads_write_and_read(store):
    files = store(OWNER)
    names = [f"attempt/events-{number:05d}.ndjson" for number in range(100)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: files.write(name, name.encode()), names))
        assert list(pool.map(files.read, names)) == [name.encode() for name in names]
    assert sorted(files.names("attempt")) == [name.rpartition("/")[2] for name in names]


def test_what_is_written_is_its_group_s_as_well(store, cluster, folder):
    store(OWNER).write("try/manifest.json", b"{}")
    found = {
        path: cluster.files().info(f"{folder}/{path}") for path in ("try", "try/manifest.json")
    }
    permissions = {path: (info["permission"], info["owner"]) for path, info in found.items()}
    assert permissions == {"try": ("770", OWNER), "try/manifest.json": ("660", OWNER)}
    assert {i["group"] for i in found.values()} == {cluster.files().info(folder)["group"]}


def test_who_may_not_gets_an_error_and_no_empty_folder(store):
    store(OWNER).write("a", b"")
    stranger = store("stranger")
    for asked in (
        lambda: stranger.read("a"),
        lambda: stranger.names(""),
        lambda: list(stranger.walk("")),
        lambda: stranger.write("b", b""),
        lambda: stranger.remove("a"),
    ):
        with pytest.raises(PermissionError, match="Permission denied: user=stranger"):
            asked()


def test_nothing_is_left_of_what_has_no_room(store, cluster, folder):
    cluster.dfsadmin("-setSpaceQuota", "1m", folder)
    with pytest.raises(
        OSError, match=r"QuotaExceededException: The DiskSpace quota of .* exceeded"
    ):
        store(OWNER).write("a", b"content")
    assert store(OWNER).names("") == []
