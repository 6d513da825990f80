"""Files of HDFS by WebHDFS."""

from __future__ import annotations

import ssl
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from types import SimpleNamespace

import pytest

pytest.importorskip("cryptography", reason="it comes with Airflow")

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from airflow_provider_sparklineage.storage import hdfs
from airflow_provider_sparklineage.storage.objects import Objects
from tests.loopback import Handler, serving
from tests.webhdfs_double import WebHDFSHandler, webhdfs

pytest.importorskip("fsspec", reason="it comes with Airflow")

ODD = ["a=b c", "ü%2F.json", "a+b&c=?#%41", "=x~y", "-x'\"\\()[]{}*", "日本", "%", "a%zz"]


@pytest.fixture(params=["webhdfs", "httpfs"])
def server(request):
    with webhdfs(has_options=request.param == "webhdfs") as server:
        yield server


def webhdfs_module():
    from airflow_provider_sparklineage.storage import webhdfs as module

    return module


def file_system(*servers, host="127.0.0.1", **options):
    from airflow_provider_sparklineage.storage.webhdfs import WebHDFS

    places = ", ".join(f"{host}:{port}" for port in servers)
    return WebHDFS(places, 9870, **{"user": "airflow", **options})


@pytest.fixture
def objects(server, monkeypatch):
    made = file_system(server.server_port)
    monkeypatch.setattr(hdfs, "of_url", lambda _: made)
    return Objects("hdfs://namenode:8020/lineage")


def test_what_is_written_is_read(objects):
    objects.write("a/b.json", b"content")
    assert objects.read("a/b.json") == b"content"
    assert objects.names("a") == ["b.json"]
    assert objects.names("") == ["a"]


def test_a_file_takes_the_place_of_one_that_is_there(objects, server):
    objects.write("a", b"first")
    objects.write("a", b"second")
    assert server.files == {"/lineage/a": b"second"}


def test_an_empty_file_is_a_file(objects):
    objects.write("mark", b"")
    assert objects.read("mark") == b""


@pytest.mark.parametrize("name", ODD)
def test_a_name_stays_what_it_is(objects, name):
    objects.write(f"folder/{name}", b"content")
    assert objects.names("folder") == [name]
    assert [path for path, _ in objects.walk("")] == [f"folder/{name}"]
    assert objects.read(f"folder/{name}") == b"content"
    objects.remove(f"folder/{name}")
    assert objects.names("folder") == []


def test_a_file_is_written_in_its_group_s_name_too(objects, server):
    # The driver writes into the folder that the worker has made, and is another user there.
    objects.write("try/manifest.json", b"{}")
    asked = {
        op: parameters["permission"]
        for op, parameters, _ in server.asked
        if "permission" in parameters
    }
    assert asked == {"MKDIRS": "770", "CREATE": "660"}


def test_nothing_is_left_of_a_file_that_could_not_be_written(objects, server):
    server.refusals["RENAME"] = (
        403,
        "SafeModeException",
        "Cannot rename. Name node is in safe mode.",
    )
    with pytest.raises(OSError, match="SafeModeException: Cannot rename"):
        objects.write("a", b"content")
    assert server.files == {}


def test_a_rename_that_is_refused_is_no_success(server):
    server.files["/a"] = b""
    with pytest.raises(FileNotFoundError if server.has_options else OSError):
        file_system(server.server_port).mv("/nothing", "/b")
    assert server.files == {"/a": b""}


def test_a_file_is_copied_to_this_machine(objects, tmp_path):
    content = bytes(range(256)) * 10_000
    objects.write("segment", content)
    objects.download("segment", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content


def test_what_is_walked_has_the_time_of_its_last_write(objects, server):
    objects.write("a/b/c", b"")
    [(name, written)] = objects.walk("a")
    assert (name, written) == ("a/b/c", datetime.fromtimestamp(server.now_ms / 1000, UTC))


def test_a_folder_goes_with_all_that_is_in_it(objects, server):
    objects.write("try/attempt/segment", b"")
    objects.write("other", b"")
    objects.remove_folder("try")
    assert set(server.files) == {"/lineage/other"}


def test_what_is_not_there_has_no_files_and_is_removed_already(objects):
    assert objects.names("nothing") == []
    assert list(objects.walk("nothing")) == []
    objects.remove("nothing")
    objects.remove_folder("nothing")
    with pytest.raises(FileNotFoundError):
        objects.read("nothing")


REFUSED = (403, "AccessControlException", "Permission denied: user=a\n\tat org.apache.hadoop")


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("LISTSTATUS", lambda objects: list(objects.walk(""))),
        ("LISTSTATUS", lambda objects: objects.names("")),
        ("OPEN", lambda objects: objects.read("a")),
        ("DELETE", lambda objects: objects.remove("a")),
        ("DELETE", lambda objects: objects.remove_folder("a")),
        ("MKDIRS", lambda objects: objects.write("a", b"")),
        ("CREATE", lambda objects: objects.write("a", b"")),
    ],
    ids=["walk", "names", "read", "remove", "remove_folder", "write", "write-file"],
)
def test_what_is_refused_is_not_an_empty_answer(objects, server, operation, action):
    server.files["/lineage/a"] = b""
    server.folders.add("/lineage")
    server.refusals[operation] = REFUSED
    with pytest.raises(PermissionError, match=r"^Permission denied: user=a$"):
        action(objects)


def test_an_error_of_a_data_node_is_no_content(objects, server):
    objects.write("a", b"content")
    server.refusals["data node"] = (500, "IOException", "Could not obtain block")
    with pytest.raises(OSError, match="IOException: Could not obtain block"):
        objects.read("a")
    with (
        pytest.raises(OSError, match="Could not obtain block"),
        file_system(server.server_port).open("/lineage/a") as file,
    ):
        file.read()


def test_a_part_of_a_file_is_read(server):
    server.files["/a"] = b"0123456789"
    store = file_system(server.server_port)
    parts = [(None, None), (2, 5), (-3, None), (None, -8), (7, None), (3, 3), (5, 99)]
    assert [store.cat_file("/a", *part) for part in parts] == [
        b"0123456789"[start:end] for start, end in parts
    ]
    with store.open("/a") as file:
        file.seek(4)
        assert file.read(3) == b"456"


def test_threads_share_no_session(server):
    store = file_system(server.server_port)
    for number in range(20):
        server.files[f"/{number}"] = str(number).encode()
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(lambda number: store.cat_file(f"/{number}"), range(20)))
        sessions = list(pool.map(lambda _: store.session, range(20)))  # kept, so that none is new
    assert read == [str(number).encode() for number in range(20)]
    assert not any(store.session is other for other in sessions)


def test_of_several_name_nodes_the_active_one_is_asked_and_asked_first_from_then_on():
    with webhdfs() as standby, webhdfs() as active:
        denial = "Operation category READ is not supported in state standby"
        for operation in ("LISTSTATUS", "OPEN", "CREATE"):
            standby.refusals[operation] = (403, "StandbyException", denial)
        active.files["/a"] = b"content"
        store = file_system(1, standby.server_port, active.server_port)  # nobody is at port 1
        assert [store.cat_file("/a") for _ in range(3)] == [b"content"] * 3
        assert len(standby.asked) == 1
        active.refusals["OPEN"] = (403, "StandbyException", denial)
        with pytest.raises(OSError, match="not supported in state standby"):
            store.cat_file("/a")


def test_who_cannot_be_reached_is_named_without_what_was_asked():
    store = file_system(1, user=None, token="secret")
    with pytest.raises(ConnectionError) as raised:
        store.ls("/")
    assert str(raised.value) == "WebHDFS at 127.0.0.1:1 cannot be reached: Connection refused"
    assert raised.value.__suppress_context__
    with pytest.raises(ConnectionError):
        store.exists("/")


def test_a_password_is_for_the_name_node_alone(server):
    store = file_system(server.server_port, password="secret")
    store.pipe_file("/a", b"content")
    assert store.cat_file("/a") == b"content"
    shown = {
        ("datanode" in asked, "Authorization" in headers) for _, asked, headers in server.asked
    }
    assert shown == {(False, True), (True, False)}


def test_an_answer_that_is_no_webhdfs_s_names_who_gave_it(server):
    store = file_system(server.server_port)
    with pytest.raises(OSError, match=r"WebHDFS at 127.0.0.1:\d+ answers 501"):
        store._call("CHECKACCESS", "options", "/")


def test_a_file_may_take_long_to_send_if_it_goes_on(monkeypatch):
    monkeypatch.setattr(webhdfs_module(), "_TIMEOUT_S", (0.1, 30.0))
    monkeypatch.setattr(webhdfs_module(), "_SENDING_TIMEOUT_S", (0.5, 30.0))

    def slowly(handler):
        left, parts = int(handler.headers.get("Content-Length") or 0), []
        while left:
            time.sleep(0.1)
            parts.append(handler.rfile.read(min(left, 2 << 20)))
            left -= len(parts[-1])
        return b"".join(parts)

    monkeypatch.setattr(WebHDFSHandler, "body", slowly)
    content = bytes(20 << 20)  # more than sockets hold
    with webhdfs() as server:
        file_system(server.server_port).pipe_file("/a", content)
        assert server.files["/a"] == content


# --- Kerberos -------------------------------------------------------------------------------------


class Demanding(Handler):
    """A name node that wants to see a ticket."""

    def get(self):
        self.answer(401, WWW_Authenticate="Negotiate")


def test_where_kerberos_is_demanded_the_error_names_the_option():
    with serving(Demanding) as server, pytest.raises(PermissionError) as raised:
        file_system(server.server_port).ls("/")
    assert "answers 401 Unauthorized. It demands Kerberos: " in str(raised.value)
    assert 'set "kerberos": true in the extra of the connection' in str(raised.value)


def asks_by_ticket(monkeypatch, **gssapi):
    """Make a file system for tickets, where the package for them is another one."""
    monkeypatch.setitem(sys.modules, "requests_kerberos", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "gssapi", SimpleNamespace(**gssapi) if gssapi else None)
    return file_system(1, user=None, kerberos=True)


def test_without_the_package_it_is_named(monkeypatch):
    with pytest.raises(ImportError, match="needs the package requests-kerberos"):
        asks_by_ticket(monkeypatch).ls("/")


@pytest.mark.parametrize(
    ("minor", "reason"),
    [
        ("No Kerberos credentials available", "No Kerberos credentials available"),
        ("Success", "The credential has expired"),
    ],
    ids=["none", "old"],
)
def test_a_process_without_a_valid_ticket_asks_nobody(monkeypatch, minor, reason):
    class GSSError(Exception):
        """As gssapi's: the minor status of an expired ticket is one of success."""

        maj_code, min_code = 720896, 100001

        def get_all_statuses(self, code, is_major):
            known = {(720896, True): ["The credential has expired"], (100001, False): [minor]}
            return known[code, is_major]

    def acquire(usage):
        raise GSSError

    exceptions = SimpleNamespace(GSSError=GSSError)
    store = asks_by_ticket(monkeypatch, Credentials=acquire, exceptions=exceptions)
    with pytest.raises(PermissionError, match=rf"ticket: {reason}\. Run `kinit`, or `airflow ker"):
        store.ls("/")


# --- certificates ---------------------------------------------------------------------------------


UNVERIFIED = pytest.mark.filterwarnings("ignore:Unverified HTTPS request")  # as the user wants it


def certificate(folder, host="127.0.0.1", days=1):
    """Make a self-signed certificate with its key, in one file; give its path."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    address = x509.IPAddress(ip_address(host))
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=9))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = folder / f"{host}-{days}.pem"
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(private + made.public_bytes(Encoding.PEM))
    return file


@pytest.fixture
def secured(tmp_path):
    """Serve WebHDFS by TLS, with a certificate; the file of it is ``server.certificate``."""

    def serve(**of):
        server = stack.enter_context(webhdfs())
        server.certificate = certificate(tmp_path, **of)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(server.certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        return server

    with ExitStack() as stack:
        yield serve


def names(server, **extra):
    from airflow_provider_sparklineage.storage.webhdfs import WebHDFS

    connection = SimpleNamespace(
        host="127.0.0.1",
        port=server.server_port,
        schema="https",
        login="airflow",
        password=None,
        extra_dejson=extra,
    )
    return WebHDFS(**hdfs._options(connection, "")).ls("/", detail=False)


@UNVERIFIED
@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NONE"])
@pytest.mark.parametrize("key", ["verify", "session_verify"])
def test_the_connection_s_verify_holds_whatever_the_environment_has(
    secured, monkeypatch, variable, key
):
    server = secured()
    monkeypatch.setenv(variable, certifi.where())
    assert names(server, **{key: False}) == []
    assert names(server, **{key: "False"}) == []
    assert names(server, **{key: str(server.certificate)}) == []
    for more in ({}, {key: True}, {key: "true"}):
        with pytest.raises(ConnectionError, match="certificate"):
            names(server, **more)


def test_the_environment_s_certificates_hold_where_the_connection_has_none(secured, monkeypatch):
    server = secured()
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(server.certificate))
    assert names(server) == []
    assert names(server, verify=True) == []


@UNVERIFIED
@pytest.mark.parametrize("of", [{"host": "127.0.0.2"}, {"days": -1}], ids=["of another", "expired"])
def test_an_odd_certificate_is_the_reason(secured, monkeypatch, of):
    server = secured(**of)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certifi.where())
    assert names(server, verify=False) == []
    with pytest.raises(ConnectionError, match="certificate"):
        names(server, verify=str(server.certificate))


def test_a_file_of_certificates_that_is_not_there_is_named(secured):
    with pytest.raises(OSError, match="/nowhere/ca"):
        names(secured(), verify="/nowhere/ca.pem")
