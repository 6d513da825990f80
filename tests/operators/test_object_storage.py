"""Files where Airflow keeps objects, through Airflow."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from airflow.sdk import ObjectStoragePath
from fsspec.implementations.local import LocalFileSystem

from airflow_provider_sparklineage.storage import hdfs
from airflow_provider_sparklineage.storage.objects import Objects
from tests.webhdfs_double import webhdfs

pytestmark = pytest.mark.airflow


@pytest.fixture
def connected(monkeypatch):
    """Let a connection be there, and Airflow have asked for none before."""

    def connect(conn_id, **fields):
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", json.dumps(fields))

    hdfs._file_system.cache_clear()
    yield connect
    hdfs._file_system.cache_clear()


@pytest.mark.smoke
def test_airflow_finds_hdfs(connected):
    with webhdfs() as server:
        connected("hdfs_found", conn_type="webhdfs", host="127.0.0.1", port=server.server_port)
        path = ObjectStoragePath("hdfs://hdfs_found@namenode:8020/lineage/a")
        path.parent.mkdir(parents=True)
        path.write_bytes(b"content")
        assert path.read_bytes() == b"content"
        assert Objects("hdfs://hdfs_found@namenode:8020/lineage").read("a") == b"content"


def test_that_airflow_looks_for_file_systems_imports_no_library():
    code = (
        "import sys; from airflow_provider_sparklineage.storage import hdfs; "
        "print(sorted({'requests', 'fsspec', 'airflow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "url",
    [
        *("file:///", "file:///mnt/a b", "file:///mnt/", "file://who@/mnt", "file:///a#b?c%20"),
        *("local:///a", "file://~/a", "file://mnt/a", "file://who@mnt/a"),
    ],
)
@pytest.mark.parametrize("name", ["", "a", "a/b.json"])
def test_a_mounted_location_is_where_airflow_would_look(url, name):
    path = ObjectStoragePath(url).joinpath(*name.split("/"))
    store, place = Objects(url)._place(name)
    assert type(store) is type(path.fs)
    assert place.rstrip("/") == path.path.rstrip("/")


def test_a_mounted_location_needs_no_provider(tmp_path):
    code = (
        "import sys; from airflow_provider_sparklineage.storage.objects import Objects; "
        f"Objects({tmp_path.as_uri()!r}).write('a', b'1'); "
        "print(sorted(name for name in sys.modules if name.startswith('airflow.providers.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert (tmp_path / "a").read_bytes() == b"1"


def test_a_store_needs_the_file_system_of_its_own_provider_alone(monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", '{"conn_type": "aws", "login": "a", "password": "b"}')
    code = (
        "import airflow.sdk; from airflow_provider_sparklineage.storage.objects import Objects; "
        "airflow.sdk.ObjectStoragePath = None; "  # it imports the file systems of all providers
        "objects = Objects('s3://lake@bucket/lineage'); store, place = objects._place('a/b'); "
        "assert (type(store).__name__, place) == ('S3FileSystem', 'bucket/lineage/a/b'); "
        "assert objects._place('')[0] is store; "
        "objects.forget(); assert objects._place('')[0] is not store; "
        "from airflow.sdk.io import attach; assert 'fs' not in vars(attach('s3', 'lake'))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


HOST = {"conn_type": "webhdfs", "host": "nn1, nn2"}


@pytest.mark.parametrize(
    ("fields", "urls"),
    [
        (HOST, ["http://nn1:9870", "http://nn2:9870"]),
        ({**HOST, "port": 50070}, ["http://nn1:50070", "http://nn2:50070"]),
        ({**HOST, "host": "nn1:14000,nn2"}, ["http://nn1:14000", "http://nn2:9870"]),
        ({**HOST, "schema": "https"}, ["https://nn1:9871", "https://nn2:9871"]),
        ({**HOST, "extra": {"use_ssl": "True"}}, ["https://nn1:9871", "https://nn2:9871"]),
        ({**HOST, "extra": {"use_https": True}}, ["https://nn1:9871", "https://nn2:9871"]),
        ({**HOST, "extra": {"use_ssl": "False"}}, ["http://nn1:9870", "http://nn2:9870"]),
        ({"conn_type": "hdfs"}, ["http://namenode:9870"]),
    ],
    ids=["hosts", "port", "ports", "schema", "hook-tls", "fsspec-tls", "no-tls", "of-the-url"],
)
def test_a_connection_says_where_webhdfs_is(connected, fields, urls):
    connected("hdfs_places", **fields)
    found = hdfs.of_url("hdfs://hdfs_places@namenode:8020/lineage")
    assert found._name_nodes == [f"{url}/webhdfs/v1" for url in urls]


@pytest.mark.parametrize(
    ("fields", "asks_as"),
    [
        ({}, {"user.name": "hadoop"}),
        ({"login": "alice"}, {"user.name": "alice"}),
        ({"login": "alice", "password": "open sesame"}, {}),
        ({"extra": {"kerberos": True}}, {}),
        ({"login": "alice", "extra": {"kerberos": True}}, {}),
        ({"extra": {"kerberos": "false"}}, {"user.name": "hadoop"}),
        ({"extra": {"token": "abc"}}, {"delegation": "abc"}),
        (
            {"login": "airflow", "extra": {"proxy_to": "alice"}},
            {"user.name": "airflow", "doas": "alice"},
        ),
    ],
    ids=["nobody", "login", "password", "kerberos", "ticket", "no-kerberos", "token", "proxy"],
)
def test_a_connection_says_who_asks(connected, monkeypatch, fields, asks_as):
    monkeypatch.setenv("HADOOP_USER_NAME", "hadoop")  # as for Hadoop's own clients
    connected("hdfs_users", conn_type="webhdfs", host="nn", **fields)
    assert hdfs.of_url("hdfs://hdfs_users@nn/").pars == asks_as


@pytest.mark.parametrize(
    ("fields", "is_asked_by_ticket"),
    [
        ({"login": "alice"}, True),
        ({"extra": {"kerberos": False}}, False),
        ({"login": "alice", "password": "open sesame"}, False),
        ({"extra": {"token": "abc"}}, False),
    ],
    ids=["login", "no-kerberos", "password", "token"],
)
def test_an_airflow_that_has_kerberos_asks_by_it(
    connected, monkeypatch, fields, is_asked_by_ticket
):
    monkeypatch.setenv("AIRFLOW__CORE__SECURITY", "kerberos")  # what Airflow's own hook goes by
    connected("hdfs_secure", conn_type="webhdfs", host="nn", **fields)
    assert hdfs.of_url("hdfs://hdfs_secure@nn/").kerb is is_asked_by_ticket


def test_a_connection_says_whom_to_trust(connected):
    extra = {"use_ssl": True, "verify": "/etc/ca.pem", "cert": "/etc/client.pem"}
    connected("hdfs_trust", conn_type="webhdfs", host="nn", extra=extra)
    session = hdfs.of_url("hdfs://hdfs_trust@nn/").session
    assert (session.verify, session.cert) == ("/etc/ca.pem", "/etc/client.pem")


def test_without_a_connection_the_name_node_of_the_url_is_asked(connected):
    assert hdfs.of_url("hdfs://nn:8020/lineage").url == "http://nn:9870/webhdfs/v1"
    with pytest.raises(ValueError, match="neither a host nor a connection that has one"):
        Objects("hdfs:///lineage").read("a")


def test_a_folder_s_files_are_written_aside_and_renamed(tmp_path):
    store = Objects(f"file://{tmp_path}/lineage")
    store.write("a/b", b"first")
    store.write("a/b", b"second")
    assert (tmp_path / "lineage/a/b").read_bytes() == b"second"
    assert store.names("a") == ["b"]
    assert [name for name, _ in store.walk("")] == ["a/b"]
    store.download("a/b", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"second"
    store.remove_folder("a")
    store.remove_folder("a")
    assert store.names("") == []


def test_an_object_store_s_files_are_put(monkeypatch):
    from airflow.sdk import io
    from fsspec.implementations.memory import MemoryFileSystem

    class InMemory(MemoryFileSystem):
        """What s3fs is to fsspec."""

        store, pseudo_dirs, cachable = {}, [""], False

        def mv(self, *_, **__):
            pytest.fail("a copy, and a right to delete that nobody needs to give")

        def makedirs(self, *_, **__):
            pytest.fail("a bucket is looked for")

    attached = io.attach("s3", "lake", fs=InMemory())
    assert attached is io.attach("s3", "lake")
    store = Objects("s3://lake@bucket/lineage")
    store.write("a/b", b"content")
    assert store.read("a/b") == b"content"
    assert store.names("a") == ["b"]
    store.forget()
    assert "fs" not in vars(attached)


def test_a_file_that_is_renamed_during_a_listing_hides_no_other(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"content")
    part = tmp_path / "b.part"
    part.write_bytes(b"")
    info = LocalFileSystem.info

    def without_the_part(store, entry, **options):
        part.unlink(missing_ok=True)
        return info(store, entry, **options)

    monkeypatch.setattr(LocalFileSystem, "info", without_the_part)
    assert Objects(f"file://{tmp_path}").files("") == {"a": 7}


def test_a_folder_that_cannot_be_listed_is_no_empty_folder(tmp_path, monkeypatch):
    def all_renamed(store, entry, **options):
        raise FileNotFoundError(entry)

    (tmp_path / "a").write_bytes(b"content")
    monkeypatch.setattr(LocalFileSystem, "info", all_renamed)
    with pytest.raises(FileNotFoundError):
        Objects(f"file://{tmp_path}").files("")
    assert Objects(f"file://{tmp_path}/none").files("") == {}
