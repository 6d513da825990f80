"""What an event costs the process that sends it to DataHub: half its datasets read, half written.

The server is another process, takes what it is sent and stores nothing.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.datahub import DataHubTransport, conversion
from airflow_provider_sparklineage.datahub.sending import batches
from airflow_provider_sparklineage.datahub.transport import DataHubConfig
from benchmarks.measuring import Growth, in_turns, peak_mb
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

DATASETS, COLUMNS, OF = 300, 200, 2
"""Each column of an output is made of some columns of one input."""
SIZES = (50, 100, 200, 400)
_GOAL_S, _GOAL_MB, _GOAL_RATIO = 3, 300, 1.5

_SERVER = """
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        body = b'{"value":"success"}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def measured() -> Iterator[Result]:
    """Measure all of it; memory first, see :func:`.peak_mb`."""
    with serving() as url:
        transport = DataHubTransport(DataHubConfig.from_dict({"server": url, "timeout": 600}))
        size = f"{DATASETS} datasets of {COLUMNS} columns"
        given = event(DATASETS)
        emit = partial(transport.emit, given)
        yield Result(f"peak memory, {size}", peak_mb(emit), _GOAL_MB, "converted, sent", unit=" MB")
        document = Serde.to_dict(given)
        write = partial(Serde.to_json, given)
        sent, made, written = in_turns(emit, partial(_made, document), write)
        count, requests = _counted(document)
        details = (
            f"CPU of the process, of which the conversion {made:.2f} s; {count:,} aspects in "
            f"{requests} requests"
        )
        yield Result(f"sending, {size}", sent, _GOAL_S, details, unit=" s")
        details = "OpenLineage's client, the same event as JSON, and not sent"
        yield Result(f"sending / writing, {size}", sent / written, _GOAL_RATIO, details)
        growth = Growth.of(SIZES, lambda datasets: partial(transport.emit, event(datasets)))
        yield Result("exponent of the growth with the datasets", growth.exponent, 1.2, str(growth))


def _made(document: dict[str, Any]) -> int:
    return sum(1 for _ in conversion.proposals(document))


def _counted(document: dict[str, Any]) -> tuple[int, int]:
    sizes = [len(batch) for batch in batches(conversion.proposals(document))]
    return sum(sizes), len(sizes)


@contextmanager
def serving() -> Iterator[str]:
    """Serve in a process of its own; give the URL."""
    command = [sys.executable, "-c", _SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def event(datasets: int) -> RunEvent:
    """Make an event; its facets are plain, as those of Airflow's are not."""
    pairs = range(datasets // 2)
    return RunEvent(
        eventTime="2026-01-01T00:00:00Z",
        eventType=RunState.COMPLETE,
        producer="https://bench",
        run=Run("01890a5d-ac96-774b-bcce-b302099a8057", {}),
        job=Job("bench", "shop.wide", {}),
        inputs=[
            InputDataset("hive://metastore", f"db.in{i}", facets={"schema": _schema()})
            for i in pairs
        ],
        outputs=[
            OutputDataset(
                "hive://metastore",
                f"db.out{i}",
                facets={"schema": _schema(), "columnLineage": _lineage(f"db.in{i}")},
            )
            for i in pairs
        ],
    )


def _schema() -> Any:
    return {"fields": [{"name": f"column_{i}", "type": "string"} for i in range(COLUMNS)]}


def _lineage(source: str) -> Any:
    return {
        "fields": {
            f"column_{i}": {
                "inputFields": [
                    _input(source, f"column_{(i + offset) % COLUMNS}", "DIRECT", "TRANSFORMATION")
                    for offset in range(OF)
                ]
            }
            for i in range(COLUMNS)
        },
        "dataset": [_input(source, "column_0", "INDIRECT", "FILTER")],
    }


def _input(source: str, column: str, kind: str, subtype: str) -> dict[str, Any]:
    transformation = {"type": kind, "subtype": subtype, "description": "", "masking": False}
    return {
        "namespace": "hive://metastore",
        "name": source,
        "field": column,
        "transformations": [transformation],
    }
