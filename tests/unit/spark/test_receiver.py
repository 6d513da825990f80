"""The worker's end of the listener's HTTP transport."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import RemoteDriverError
from airflow_provider_sparklineage.spark.capture import receiver as module
from airflow_provider_sparklineage.spark.capture.receiver import Endpoint, Receiver

LONGEST_S = 20
LOOPBACK = Endpoint("127.0.0.1", range(1))


@pytest.fixture
def events(tmp_path):
    path = tmp_path / "events.ndjson"
    path.touch(0o600)
    return path


@pytest.fixture
def receiver(events):
    receiver = Receiver(LOOPBACK, events)
    yield receiver
    receiver.close()


def send(receiver, body, token=None, path="/api/v1/lineage", method="POST", **headers):
    """Send as the listener does; give the status."""
    connection = http.client.HTTPConnection(urlsplit(receiver.url).netloc, timeout=LONGEST_S)
    try:
        authorization = {"Authorization": f"Bearer {receiver.token if token is None else token}"}
        connection.request(method, path, body, authorization | headers)
        return connection.getresponse().status
    finally:
        connection.close()


def begun(receiver, text):
    """Begin a request; give its socket."""
    host, port = urlsplit(receiver.url).hostname, urlsplit(receiver.url).port
    connection = socket.create_connection((host, port), timeout=LONGEST_S)
    connection.sendall(text.encode())
    return connection


def until_it_reads(receiver):
    """Wait until it has begun to take an event."""
    until(receiver._one_at_a_time.locked, "it does not begin")


def refusals(receiver):
    """Give the reasons of ``delivery_incomplete`` for which connections were turned away."""
    for code, message in receiver.problems():
        if code == DegradationCode.DELIVERY_INCOMPLETE and "turned away" in message:
            return message.partition("turned away: ")[2].partition(". An event")[0]
    return ""


def until(condition, what):
    ends = time.monotonic() + LONGEST_S
    while not condition():
        assert time.monotonic() < ends, what
        time.sleep(0.01)


def head(receiver, length):
    return (
        f"POST /api/v1/lineage HTTP/1.1\r\nAuthorization: Bearer {receiver.token}\r\n"
        f"Content-Length: {length}\r\n\r\n"
    )


def test_each_event_becomes_a_line(receiver, events):
    sent = [{"run": n, "text": "é\n" * n} for n in range(3)]
    assert [send(receiver, json.dumps(event)) for event in sent] == [201] * 3
    assert [json.loads(line) for line in events.read_text().splitlines()] == sent
    assert receiver.events == 3


def test_an_event_that_is_written_over_lines_becomes_one(receiver, events):
    send(receiver, json.dumps({"a": {"b": 1}}, indent=2))
    [line] = events.read_text().splitlines()
    assert json.loads(line) == {"a": {"b": 1}}


def test_what_is_in_the_file_stays(receiver, events):
    events.write_text("before\n")
    send(receiver, "{}")
    assert events.read_text() == "before\n{}\n"


def test_events_that_are_sent_at_once_do_not_mix(receiver, events):
    sent = [json.dumps({"n": n, "text": str(n % 10) * 200_000}) for n in range(12)]
    with ThreadPoolExecutor(12) as pool:
        assert set(pool.map(lambda body: send(receiver, body), sent)) == {201}
    assert sorted(events.read_text().splitlines()) == sorted(sent)


@pytest.mark.parametrize("token", ["", "another", "é"])
def test_without_the_token_nothing_is_taken(receiver, events, token):
    header = {"Authorization": f"Bearer {token}".encode("latin-1")}
    connection = http.client.HTTPConnection(urlsplit(receiver.url).netloc, timeout=LONGEST_S)
    connection.request("POST", "/api/v1/lineage", "{}", header)
    assert connection.getresponse().status == 401
    connection.close()
    assert (events.read_text(), receiver.events) == ("", 0)
    assert refusals(receiver) == "1 without the token of this try"


def test_each_receiver_has_a_token_of_its_own(receiver, events):
    other = Receiver(LOOPBACK, events)
    other.close()
    assert other.token != receiver.token
    assert send(receiver, "{}", token=other.token) == 401


@pytest.mark.parametrize(
    ("method", "path", "status"), [("POST", "/other", 404), ("GET", "/api/v1/lineage", 501)]
)
def test_nothing_else_is_answered(receiver, events, method, path, status):
    assert send(receiver, "{}", method=method, path=path) == status
    assert events.read_text() == ""


def test_its_answer_does_not_say_what_it_is(receiver):
    with begun(receiver, head(receiver, 2) + "{}") as connection:
        answer = connection.makefile("rb").read().decode()
    assert "Python" not in answer
    assert "Server" not in answer


def test_a_body_of_unknown_length_is_refused(receiver, events):
    text = head(receiver, 0).replace("Content-Length: 0", "Transfer-Encoding: chunked")
    with begun(receiver, text) as connection:
        assert connection.makefile("rb").readline().split()[1] == b"411"
    assert events.read_text() == ""


def test_an_event_that_no_line_may_be_is_refused_unread(receiver, events, monkeypatch):
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 100)
    with begun(receiver, head(receiver, 101)) as connection:
        assert connection.makefile("rb").readline().split()[1] == b"413"
    assert send(receiver, "1" * 100) == 201
    assert (len(receiver.lost), receiver.events) == (1, 1)


def test_what_would_make_the_file_too_large_is_refused_and_asked_for_only_once(
    receiver, events, monkeypatch
):
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    assert [send(receiver, "1" * 5), send(receiver, "2" * 5)] == [201, 507]
    assert events.read_text() == "11111\n"
    assert send(receiver, "333") == 201, "a smaller one has room"
    assert len(receiver.lost) == 1


def test_an_event_whose_sender_is_gone_leaves_nothing(receiver, events):
    with begun(receiver, head(receiver, 100) + "{"):
        pass
    assert send(receiver, "{}") == 201
    assert events.read_text() == "{}\n"


def test_a_full_disk_leaves_no_half_of_an_event(receiver, events, monkeypatch):
    def copies_half(source, target, _):
        target.write(source.read(3))

    with monkeypatch.context() as full:
        full.setattr(module.shutil, "copyfileobj", copies_half)
        assert send(receiver, "first") == 507
    assert events.read_text() == ""
    assert send(receiver, "second") == 201
    assert events.read_text() == "second\n"
    assert receiver.lost == [os.strerror(errno.ENOSPC)]


def test_events_are_in_the_order_in_which_they_were_sent(receiver, events):
    # The listener gives the first up after its time, and sends the next.
    with begun(receiver, head(receiver, 5) + "fir") as slow, ThreadPoolExecutor(1) as pool:
        until_it_reads(receiver)
        second = pool.submit(send, receiver, "second")
        slow.sendall(b"st")
        assert second.result(LONGEST_S) == 201
    assert events.read_text() == "first\nsecond\n"


@pytest.fixture
def dripping(receiver):
    """Hold all connections that there may be, and send a byte now and then on each."""
    connections = [begun(receiver, "P") for _ in range(module.CONNECTIONS)]
    ended = threading.Event()

    def drip():
        while not ended.wait(0.05):
            for connection in connections:
                with contextlib.suppress(OSError):
                    connection.send(b"O")

    dripper = threading.Thread(target=drip)
    dripper.start()
    yield connections
    ended.set()
    dripper.join()
    for connection in connections:
        connection.close()


def test_connections_without_a_request_do_not_become_more_threads_and_are_counted(receiver):
    before = threading.active_count()
    idle = [begun(receiver, "POST ") for _ in range(module.CONNECTIONS + 20)]
    try:
        for connection in idle[:20]:
            with contextlib.suppress(ConnectionResetError):  # what it had sent was not read
                assert connection.recv(1) == b""
        until(lambda: threading.active_count() - before <= module.CONNECTIONS, "more threads")
        assert refusals(receiver) == "20 which gave way to later ones"
    finally:
        for connection in idle:
            connection.close()


def test_connections_that_drip_do_not_keep_the_listener_out(receiver, dripping, events):
    assert send(receiver, "{}") == 201
    assert events.read_text() == "{}\n"
    assert refusals(receiver) == "1 which gave way to later ones"


def test_all_headers_together_have_a_deadline(receiver, dripping, monkeypatch):
    monkeypatch.setattr(module, "HEADERS_S", 0.2)
    for connection in dripping:
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    assert refusals(receiver) == "16 without a whole request in 0.2 s"


def test_closing_does_not_wait_for_connections_that_drip(receiver, dripping, monkeypatch):
    monkeypatch.setattr(module, "SEND_S", 0.1)
    started = time.monotonic()
    receiver.close(LONGEST_S)
    assert time.monotonic() - started < LONGEST_S / 2
    assert refusals(receiver) == "16 without a whole request when the job ended"


def test_an_event_that_drips_does_not_hold_up_the_others(receiver, events, monkeypatch):
    monkeypatch.setattr(module, "READ_S", 0.2)
    with begun(receiver, head(receiver, 10_000_000) + "{") as slow, ThreadPoolExecutor(1) as pool:
        until_it_reads(receiver)
        second = pool.submit(send, receiver, "second")
        with contextlib.suppress(OSError):
            while not second.done():
                slow.send(b" ")
                time.sleep(0.05)
        assert second.result(LONGEST_S) == 201
    assert events.read_text() == "second\n"
    assert receiver.lost == ["one that came too slowly"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("GET /api/v1/lineage HTTP/1.1\r\n\r\n", id="another method"),
        pytest.param("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n", id="TLS"),
        pytest.param("POST /" + "x" * 70_000 + " HTTP/1.1\r\n\r\n", id="a long path"),
        pytest.param("POST / HTTP/1.1\r\n" + "a: b\r\n" * 200 + "\r\n", id="many headers"),
        pytest.param(f"POST / HTTP/1.1\r\na: {'x' * 70_000}\r\n\r\n", id="a long header"),
        pytest.param("POST / HTTP/9.9\r\n\r\n", id="a later version"),
    ],
)
def test_a_request_of_another_program_is_counted_and_learns_nothing(receiver, text):
    with begun(receiver, "") as connection:
        with contextlib.suppress(OSError):  # it is refused before all of it was sent
            connection.sendall(text.encode("latin-1"))
        with contextlib.suppress(ConnectionResetError):
            assert b"Python" not in connection.makefile("rb").read()
    until(lambda: receiver.refusals, "it is not counted")
    assert refusals(receiver) == "1 with a request that no listener sends"


def test_a_program_that_only_looks_whether_the_port_is_open_is_not_counted(receiver):
    begun(receiver, "").close()
    assert send(receiver, "{}") == 201
    until(lambda: not receiver._server._open, "it is still open")
    assert not receiver.refusals


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        pytest.param({"Transfer-Encoding": "chunked"}, "one of unknown length", id="chunked"),
        pytest.param({"Content-Length": "9" * 5000}, "one of unknown length", id="endless"),
        pytest.param({"Content-Encoding": "gzip"}, "one that is compressed", id="gzip"),
    ],
)
def test_an_event_in_another_form_is_lost_and_counted(receiver, events, headers, why):
    given = {"Authorization": f"Bearer {receiver.token}", "Content-Length": "2", **headers}
    lines = "".join(f"{key}: {text}\r\n" for key, text in given.items())
    with begun(receiver, f"POST /api/v1/lineage HTTP/1.1\r\n{lines}\r\n{{}}") as connection:
        assert connection.makefile("rb").readline().split()[1] in (b"411", b"415")
    assert (receiver.lost, events.read_text()) == ([why], "")


@pytest.mark.parametrize("more", ["POST", "{}"])
def test_an_event_behind_another_of_its_connection_is_lost_and_counted(receiver, events, more):
    second = head(receiver, 2) + "{}" if more == "POST" else more
    with contextlib.closing(begun(receiver, f"{head(receiver, 2)}{{}}{second}")) as connection:
        assert connection.recv(64).startswith(b"HTTP/1.0 201")
    assert events.read_text() == "{}\n"
    assert receiver.lost == ["one behind another of the same connection"]


def test_a_connection_that_breaks_in_its_headers_is_counted(receiver):
    connection = begun(receiver, head(receiver, 2)[:60])
    until(lambda: receiver._server._open, "it is not accepted")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()  # with a reset
    until(lambda: receiver.refusals, "it is not counted")
    assert refusals(receiver) == "1 that broke before its request was whole"


def test_without_a_free_file_descriptor_nothing_spins_and_it_is_counted(
    receiver, events, monkeypatch
):
    tried = []

    def full(_):
        tried.append(1)
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as descriptors:
        descriptors.setattr(module.socketserver.TCPServer, "get_request", full)
        with begun(receiver, ""):
            time.sleep(0.35)
    assert len(tried) < 10
    assert send(receiver, "{}") == 201
    assert "not accepted (Too many open files)" in refusals(receiver)


def test_closing_takes_what_is_on_its_way(receiver, events):
    with begun(receiver, head(receiver, 4) + "la") as connection:
        until_it_reads(receiver)
        closing = threading.Thread(target=receiver.close, args=(LONGEST_S,))
        closing.start()
        connection.sendall(b"st")
        closing.join(LONGEST_S)
    assert events.read_text() == "last\n"


def test_closing_waits_no_longer_than_it_may(receiver, events):
    with begun(receiver, head(receiver, 4) + "la") as connection:
        until_it_reads(receiver)
        started = time.monotonic()
        receiver.close(0.1)
        assert time.monotonic() - started < LONGEST_S / 2
        connection.sendall(b"te")
        assert connection.makefile("rb").readline().split()[1] == b"410"
    assert events.read_text() == ""
    assert receiver.lost == ["one that was too late"]


def test_nobody_listens_when_it_is_closed(receiver):
    receiver.close()
    receiver.close()
    with pytest.raises(ConnectionRefusedError):
        send(receiver, "{}")


def test_each_task_of_a_worker_has_a_port_of_the_range(events):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RemoteDriverError, match="Address already in use"):
            Receiver(Endpoint("127.0.0.1", range(port, port + 1)), events)


def test_a_file_that_is_a_link_is_not_followed(events, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(events)
    with pytest.raises(OSError, match="symbolic link"):
        Receiver(LOOPBACK, link)
