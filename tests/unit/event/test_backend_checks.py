"""Asking a backend: a server on the loopback that answers as Marquez does, or as anything else."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import threading
import time
import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_sparklineage.event.backends.checks import (
    Endpoint,
    check,
    compare,
    endpoint_of,
)
from airflow_provider_sparklineage.settings.checks import FIELDS, Status, UrlPlace
from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT, read
from tests.loopback import Handler, serving

NAMESPACES, JOBS, LINEAGE = "/api/v1/namespaces", "/api/v1/jobs", "/api/v1/lineage"
MARQUEZ = {
    NAMESPACES: (200, {"namespaces": []}),
    JOBS: (200, {"jobs": [], "totalCount": 0}),
    LINEAGE: (422, {"errors": ["run must not be null"]}),
}
HTML = (200, "<html>Sign in</html>")


class _Handler(Handler):
    """Answers as configured, and remembers what it was asked."""

    def get(self):
        path = self.path.partition("?")[0]
        body = self.body().decode()
        self.server.asked.append((self.command, path, body, self.headers.get("Authorization")))
        if self.server.silent.is_set():
            return
        code, content = self.server.answers.get(path, (404, {"code": 404}))
        text = content if isinstance(content, str) else json.dumps(content)
        kind = "text/html" if text.startswith("<") else "application/json"
        location = {"Location": "https://login.example.org/?token=secret"}
        self.answer(code, text, Content_Type=kind, **(location if 300 <= code < 400 else {}))

    post = get


@pytest.fixture
def server():
    silent = threading.Event()
    with serving(_Handler, answers=dict(MARQUEZ), asked=[], silent=silent) as running:
        yield running


def only(checks):
    [found] = checks
    return found


def test_a_marquez_is_read_and_takes_events_and_stores_none(server):
    checks = check(Endpoint(server.url, api_key="k"))
    assert [c.status for c in checks] == [Status.OK, Status.OK]
    assert server.asked == [
        ("GET", NAMESPACES, "", "Bearer k"),
        ("GET", JOBS, "", "Bearer k"),
        ("POST", LINEAGE, "{}", "Bearer k"),
    ]


@pytest.mark.parametrize(
    ("answers", "message", "fix"),
    [
        ({NAMESPACES: HTML}, "with a web page: there is no API of Marquez", "port 5000"),
        ({NAMESPACES: (404, {})}, "answers 404, and not as Marquez", "without /api/v1"),
        ({NAMESPACES: (200, {"datasets": []})}, "answers 200, and not as", "without /api/v1"),
        ({NAMESPACES: (302, "")}, "sends elsewhere, to https://login.example.org.", "for the key"),
        ({NAMESPACES: (302, "")}, "sends elsewhere, to https://login.example.org.", "in a place;"),
        ({NAMESPACES: HTML}, "with a web page: there is no API of Marquez", "in a place ("),
        ({NAMESPACES: (401, {})}, "without a valid key", "API key into a place for the key."),
        ({NAMESPACES: (503, "<html>")}, "does not reach it", "Start the backend"),
        ({NAMESPACES: (500, {})}, "answers 500 to its own lists", "log"),
        ({JOBS: (500, {})}, "answers 500 to its own lists", "remove its rows"),
    ],
)
def test_what_is_no_sound_marquez_is_reported_with_the_fix(server, answers, message, fix):
    server.answers |= answers
    place = UrlPlace("a place", "a place for the key")
    found = only(check(Endpoint(server.url, place=place)))
    assert found.status is Status.FAILED
    assert message in found.message
    assert fix in found.fix
    assert "secret" not in found.message
    assert not [asked for asked in server.asked if asked[0] == "POST"], "an event could be stored"


@pytest.mark.parametrize("code", [200, 405, 415])
def test_a_way_for_events_that_is_shut_is_reported(server, code):
    server.answers[LINEAGE] = (code, {})
    read_path, write_path = check(Endpoint(server.url))
    assert read_path.status is Status.OK
    assert write_path.status is Status.FAILED
    assert f"answers {code} to an empty event" in write_path.message


PLACES = pytest.mark.parametrize(
    ("place", "named"),
    [
        pytest.param(FIELDS, "the connection's {}", id="fields of a connection"),
        pytest.param(UrlPlace("transport.url in X"), "transport.url in X", id="one URL"),
    ],
)


@PLACES
def test_nothing_listens(place, named):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        found = only(check(Endpoint(url, place=place)))
    assert f"Nothing listens at {url}/api" in found.message
    assert f"correct {named.format('host and port')} (" in found.fix


@PLACES
def test_a_host_without_an_ip_address(place, named):
    found = only(check(Endpoint("http://marquez.invalid:5000", place=place)))
    assert "has no IP address" in found.message
    assert found.fix == f"Correct {named.format('host')}."


@PLACES
def test_no_answer_in_time(server, place, named):
    server.silent.set()  # the handler returns, and the connection is closed without an answer
    broken_off = only(check(Endpoint(server.url, place=place)))
    assert "breaks the connection off" in broken_off.message
    assert f"use https in {named.format('schema')}, else" in broken_off.fix
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        found = only(check(Endpoint(url, timeout=0.05, place=place)))
    assert "does not answer within 0.05 seconds" in found.message
    assert f"Check {named.format('host and port')}, and that no firewall" in found.fix


class _Hostile(Handler):
    """Answers in each way that costs who asks time, memory or a secret."""

    def get(self):
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        getattr(self, f"_{self.server.way}")()

    post = get

    def _drip_headers(self):
        self._drip(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1000)

    def _drip_body(self):
        self._drip(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1000)

    def _drip(self, content):
        for byte in content:
            if self.server.released.wait(0.02):
                return
            self.wfile.write(bytes([byte]))
            self.wfile.flush()

    def _flood(self):
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while not self.server.released.is_set():
                self.wfile.write(b" " * 1024 * 1024)

    def _bomb(self):
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(self.server.packed)))
        self.end_headers()
        self.wfile.write(self.server.packed)

    def _echo(self):
        self.answer(500 if "lineage" in self.path else 404, str(self.headers))

    def _elsewhere(self):
        self.answer(307, Location=self.server.to)

    def _deep(self):
        self.answer(200, "[" * 1_000_000)

    def log_message(self, *args):
        pass


@pytest.fixture
def hostile():
    with serving(_Hostile, way="", to="", asked=[], released=threading.Event()) as running:
        yield running
        running.released.set()


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("drip_headers", "does not answer within 0.5 seconds"),
        ("drip_body", "does not answer within 0.5 seconds"),
        ("flood", "answers with more than 16 MiB"),
        ("bomb", "answers 200, and not as Marquez"),
        ("echo", "answers 404, and not as Marquez"),
        ("deep", "answers 200, and not as Marquez"),
    ],
)
def test_a_hostile_server_gets_little_time_and_memory_and_nothing_of_its_answer_is_shown(
    hostile, way, message
):
    hostile.way, hostile.packed = way, gzip.compress(bytes(64 * 1024 * 1024), 1)
    endpoint = Endpoint(hostile.url, "s3cr3t-key", timeout=0.5 if "drip" in way else 30)
    begun = time.monotonic()
    tracemalloc.start()
    found = only(check(endpoint))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert message in found.message
    assert "s3cr3t-key" not in f"{found.message} {found.fix}"
    assert time.monotonic() - begun < 10
    assert most < 60e6


def test_a_redirect_is_not_followed_and_its_end_not_given_the_key(server, hostile):
    hostile.way, hostile.to = "elsewhere", f"{server.url}{NAMESPACES}?session=s3cr3t"
    found = only(check(Endpoint(hostile.url, api_key="k")))
    assert f"sends elsewhere, to {server.url.rpartition(':')[0]}." in found.message
    assert server.asked == []


@pytest.mark.parametrize("location", ["", "/login?x=1", "//", "x" * 10_000])
def test_a_redirect_to_nowhere_is_reported_in_few_words(hostile, location):
    hostile.way, hostile.to = "elsewhere", location
    found = only(check(Endpoint(hostile.url)))
    assert "sends elsewhere, to another path." in found.message


@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://127.0.0.1:70", "ftp://127.0.0.1"])
def test_only_http_is_spoken(url):
    assert "cannot be asked" in only(check(Endpoint(url), is_marquez=False)).message


def test_a_user_in_the_url_authenticates_and_is_not_shown(hostile):
    hostile.way = "echo"
    found = only(check(Endpoint(hostile.url.replace("//", "//me:s3cr3t@"))))
    assert {key for _, key in hostile.asked} == {"Basic bWU6czNjcjN0"}
    assert "s3cr3t" not in found.message
    assert "me@" not in found.message


def test_what_netrc_has_for_every_host_is_given_to_none(hostile, tmp_path, monkeypatch):
    hostile.way = "echo"
    (tmp_path / "netrc").write_text("default login me password s3cr3t\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    check(Endpoint(hostile.url, web_url=hostile.url))
    assert {key for _, key in hostile.asked} == {None}


@PLACES
def test_a_server_without_tls(server, place, named):
    found = only(check(Endpoint(server.url.replace("http:", "https:"), place=place)))
    assert "does not speak TLS" in found.message
    assert found.fix == f"Use http instead of https in {named.format('schema')}."


def test_a_certificate_that_nobody_trusts(server, tmp_path):
    server.socket = _context(tmp_path).wrap_socket(server.socket, server_side=True)
    url = server.url.replace("http:", "https:")
    found = only(check(Endpoint(url)))
    assert "is not trusted by this machine" in found.message
    assert "REQUESTS_CA_BUNDLE" in found.fix


def _context(folder):
    """Make a certificate for the loopback that signs itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    path = folder / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


def test_a_proxy_that_is_not_there(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    found = only(check(Endpoint("http://marquez.example:5000")))
    assert "proxy" in found.message
    assert "NO_PROXY" in found.fix


def test_web_pages_are_looked_at_without_the_key(server):
    server.answers["/"] = HTML
    pages = check(Endpoint(server.url, api_key="k", web_url=server.url))[-1]
    assert pages.status is Status.OK
    assert server.asked[-1] == ("GET", "/", "", None)


def test_a_wrong_url_of_web_pages_is_a_warning(server):
    web_place = "[sparklineage] web_url"
    pages = check(Endpoint(server.url, web_url=server.url, web_place=web_place))[-1]
    assert pages.status is Status.WARNING
    assert f"Correct {web_place}: it is" in pages.fix


def test_of_another_backend_only_an_answer_is_asked(server):
    found = only(check(Endpoint(server.url), is_marquez=False))
    assert found.status is Status.OK
    assert [asked[0] for asked in server.asked] == ["GET"]


# --- Airflow's transport --------------------------------------------------------------------------

HTTP = {"type": "http", "url": "http://marquez:5000/"}


def connection(extra=None, **fields):
    return read("lineage", extra=json.dumps(extra or {}), **fields)


def test_without_a_transport_the_fix_is_one_setting():
    found = compare(connection({"transport": HTTP}), None)
    assert found.status is Status.FAILED
    assert found.fix == "Set AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID=lineage."
    assert "into the extra of a sparklineage connection" in compare(None, None).fix


@pytest.mark.parametrize(
    ("fields", "transport", "status"),
    [
        ({"host": "marquez", "port": 5000}, HTTP, Status.OK),
        ({"host": "marquez", "port": 5000}, {**HTTP, "url": "http://other:5000"}, Status.WARNING),
        (
            {"host": "marquez", "port": 5000},
            {"type": "composite", "transports": [{"type": "console"}, HTTP]},
            Status.OK,
        ),
        ({"host": "marquez", "port": 5000}, {"type": "kafka"}, Status.OK),
        ({}, HTTP, Status.OK),
    ],
)
def test_both_ends_are_compared(fields, transport, status):
    assert compare(connection(**fields), transport).status is status


@pytest.mark.parametrize(
    ("config_conn_id", "sent"),
    [
        pytest.param("", "the transport of Airflow's [openlineage].", id="the configuration's"),
        pytest.param("other", "the transport of connection other.", id="another connection's"),
    ],
)
def test_of_two_ends_both_places_are_named(config_conn_id, sent):
    found = compare(connection(host="marquez", port=5001), HTTP, config_conn_id)
    assert "correct the connection's host, port and schema, or" in found.fix
    assert found.fix.endswith(sent)


@pytest.mark.parametrize(
    ("password", "added", "status"),
    [
        ("k3y", {}, Status.WARNING),
        ("k3y", {"auth": {"type": "api_key", "apiKey": "k3y"}}, Status.OK),
        ("k3y", {"custom_headers": {"Authorization": "Bearer k3y"}}, Status.OK),
        (None, {}, Status.OK),
    ],
    ids=["not sent", "sent", "sent in a header", "none"],
)
def test_a_key_that_airflow_does_not_send_is_reported(password, added, status):
    sent = {"type": "http", "url": "http://marquez:5000", **added}
    found = compare(connection(host="http://marquez:5000", password=password), sent)
    assert found.status is status
    wanted = '"auth": {"type": "airflow_connection_api_key", "conn_id": "lineage"}'
    assert (wanted in found.fix) is (status is Status.WARNING)


DATAHUB = {"type": DATAHUB_TRANSPORT, "server": "http://gms:8080/"}


@pytest.mark.parametrize(
    ("transport", "status", "message"),
    [
        (DATAHUB, Status.WARNING, "to http://gms:8080, and connection lineage looks at it at"),
        (
            {"type": "composite", "transports": [HTTP, DATAHUB]},
            Status.OK,
            "Airflow sends lineage to http://marquez:5000, where it is looked at.",
        ),
        (
            {"type": DATAHUB_TRANSPORT, "folder": "/lineage"},
            Status.OK,
            "by its transport to DataHub, which is not compared with a URL",
        ),
    ],
    ids=["elsewhere", "to both", "to a folder"],
)
def test_a_transport_to_datahub_is_compared_by_its_server(transport, status, message):
    found = compare(connection(host="http://marquez:5000"), transport)
    assert found.status is status
    assert message in found.message


@pytest.mark.parametrize("added", [{"token": "k3y"}, {"headers": {"Authorization": "Bearer k3y"}}])
def test_a_token_that_airflow_sends_to_datahub_is_one(added):
    given = connection({"backend": "datahub"}, host="http://gms:8080", password="k3y")
    assert compare(given, DATAHUB).status is Status.WARNING
    assert compare(given, DATAHUB | added).status is Status.OK


def test_a_transport_that_airflow_does_not_use_is_reported():
    given = connection({"transport": HTTP})
    assert compare(given, HTTP, "lineage").status is Status.OK
    unused = compare(given, HTTP)
    assert unused.status is Status.WARNING
    assert unused.fix == "Set AIRFLOW__OPENLINEAGE__CONFIG_CONN_ID=lineage."


def test_certificates_are_checked_as_the_transport_checks_them():
    given = connection({"transport": {**HTTP, "verify": False}})
    place = UrlPlace("transport.url in the connection's extra")
    assert endpoint_of(given, None) == Endpoint("http://marquez:5000", verify=False, place=place)
    another = connection({"transport": {**HTTP, "verify": False}}, host="another")
    assert endpoint_of(another, "http://web") == Endpoint("http://another", None, "http://web")
    assert endpoint_of(connection(), None) is None
