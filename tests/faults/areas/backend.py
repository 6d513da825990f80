"""The lineage backend and the archive, which answer badly or not at all."""

from __future__ import annotations

import gzip
import json
import socket
import time

from tests.faults.registry import Area
from tests.loopback import Handler, serving

AREA = Area(
    "The backend and the archive",
    "Spark's own events (`relay_spark_events`) and the archive are sent within a time of their "
    "own, and the task's event is complete without them.",
)
fault = AREA.fault
LOST = "relay_incomplete"


class _Backend(Handler):
    def post(self):
        self.body()
        self.server.answers(self)


def _relays(bench, url, **transport):
    transport = {"type": "http", "url": url, "retry": {"total": 0}, **transport}
    bench.monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
    bench.lineage["relay_spark_events"] = True
    bench.set("collect_timeout", 2)


def _answering(answers):
    def happens(bench):
        server = bench.resources.enter_context(serving(_Backend, answers=answers))
        _relays(bench, server.url)

    return happens


for status in (301, 400, 401, 403, 404, 413, 429, 500, 502, 503):
    fault(f"The backend answers {status}", LOST)(
        _answering(lambda handler, status=status: handler.answer(status, "no"))
    )


OF_BACKEND = {
    "sends a thousand headers": lambda handler: handler.wfile.write(
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 1000 + b"\r\n"
    ),
    "redirects to a file": lambda handler: handler.answer(302, Location="file:///etc/passwd"),
    "redirects to a URL that is none": lambda handler: handler.answer(302, Location="http://["),
    "says that its answer is compressed, which it is not": lambda handler: handler.answer(
        200, "no", Content_Encoding="gzip"
    ),
    "speaks no HTTP": lambda handler: handler.wfile.write(b"220 mail.example ESMTP\r\n"),
    "never ends its answer": lambda handler: _unending(handler),
}


def _unending(handler):
    handler.wfile.write(b"HTTP/1.1 500 no\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(60):
        handler.wfile.write(b"1\r\nx\r\n")
        time.sleep(0.1)


for what, answers in OF_BACKEND.items():
    fault(f"The backend {what}", LOST)(_answering(answers))

for what, proxy in {
    "is not there": "http://127.0.0.1:1",
    "is no URL": "http://[",
    "has a password, and is not there": "http://shop:hunter2hunter2@127.0.0.1:1",
}.items():

    @fault(f"The proxy {what}", LOST)
    def _(bench, proxy=proxy):
        _answering(lambda handler: handler.answer(201))(bench)
        bench.monkeypatch.setenv("http_proxy", proxy)
        bench.monkeypatch.delenv("no_proxy", raising=False)
        bench.monkeypatch.delenv("NO_PROXY", raising=False)


@fault("The backend redirects for ever", LOST)
def _(bench):
    _answering(lambda handler: handler.answer(307, Location=handler.path))(bench)


@fault("The backend never answers", LOST)
def _(bench):
    _answering(bench.hang)(bench)


@fault("The backend answers byte by byte", LOST)
def _(bench):
    def drip(handler):
        handler.send_response(201)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(60):
            handler.wfile.write(b" ")
            time.sleep(0.1)

    _answering(drip)(bench)


@fault("The backend ends the connection", LOST)
def _(bench):
    _answering(lambda handler: handler.connection.shutdown(socket.SHUT_RDWR))(bench)


@fault("The backend is not there", LOST)
def _(bench):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _relays(bench, f"http://127.0.0.1:{port}")


@fault("The backend speaks no TLS", LOST)
def _(bench):
    server = bench.resources.enter_context(serving(_Backend, answers=None))
    _relays(bench, server.url.replace("http:", "https:"))


@fault("The transport is of a kind that nobody knows", LOST)
def _(bench):
    _relays(bench, "http://127.0.0.1:1", type="pigeon")


def _to_datahub(answers):
    def happens(bench):
        server = bench.resources.enter_context(serving(_Backend, answers=answers))
        transport = {
            "type": "airflow_provider_sparklineage.datahub.DataHubTransport",
            "server": server.url,
            "headers": {"X-Api-Key": "hunter2hunter2"},
            "timeout": 2,
        }
        bench.monkeypatch.setenv("AIRFLOW__OPENLINEAGE__TRANSPORT", json.dumps(transport))
        bench.lineage["relay_spark_events"] = True
        bench.set("collect_timeout", 2)

    return happens


def _compressed(handler):
    content = gzip.compress(b" " * 200_000_000, 1)
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Encoding", "gzip")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


OF_DATAHUB = {
    "answers with a page": lambda handler: handler.answer(200, "<html>", Content_Type="text/html"),
    "redirects to another host": lambda handler: handler.answer(302, Location="http://127.0.0.2/"),
    "repeats the request and refuses it": lambda handler: handler.answer(
        403, json.dumps({"message": str(handler.headers)}), Content_Type="application/json"
    ),
    "wants a pause of an hour": lambda handler: handler.answer(429, Retry_After="3600"),
    "answers with little that unpacks to much": _compressed,
    "never answers": lambda _: time.sleep(5),
}
for what, answers in OF_DATAHUB.items():
    fault(f"DataHub {what}", LOST)(_to_datahub(answers))


@fault("The archive is below a file", warns="is not in the archive")
def _(bench):
    (bench.home / "file").touch()
    bench.set("archive_url", f"file://{bench.home}/file/archive")


@fault(
    "A folder is in the archive where the event of the try belongs", warns="is not in the archive"
)
def _(bench):
    (bench.home / "archive" / "shop" / "manual" / "revenue" / "-1" / "1.json").mkdir(parents=True)
    bench.set("archive_url", f"file://{bench.home}/archive")


@fault("The archive is of a store that nobody knows", warns="is not in the archive")
def _(bench):
    bench.set("archive_url", "nowhere://bucket/lineage")


@fault(
    "The archive never answers",
    warns="is not in the archive",
    leaves=("thread sparklineage-archive",),
    within=15,
)
def _(bench):
    bench.shorten(".operators.attempt.publish.ARCHIVE_TIMEOUT_S", 0.3)
    bench.patch(".event.archive.Archive._store", bench.hang)
    bench.set("archive_url", f"file://{bench.home}/archive")
