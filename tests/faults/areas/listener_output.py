"""What the listener wrote: nothing, half of it, or something else."""

from __future__ import annotations

import errno
import json

from tests.conftest import golden
from tests.faults.registry import Area

AREA = Area(
    "What the listener wrote",
    "Each line is read by itself: one that is no event costs that event, never the others.",
)
fault = AREA.fault
BACK = "clock_went_backwards"


@fault("The listener writes nothing", "no_events")
def _(bench):
    bench.job["events"] = None


@fault("The listener writes an empty file", "no_events")
def _(bench):
    bench.events = b""


@fault("The last line of the events is torn", "torn_event", "application_unfinished")
def _(bench):
    bench.events = bench.events[:-40]


@fault("A line is garbage", "malformed_events")
def _(bench):
    bench.events = b"garbage\n" + bench.events


@fault("A line is NUL bytes", "malformed_events")
def _(bench):
    bench.events = b"\0" * 4096 + b"\n" + bench.events


@fault("A line is invalid UTF-8", "malformed_events")
def _(bench):
    bench.events += b'{"eventTime": "\xff"}\n'


@fault("Every line is there twice")
def _(bench):
    bench.events = b"".join(line * 2 for line in bench.events.splitlines(keepends=True))


@fault("The lines are in reverse order", BACK)
def _(bench):
    bench.events = b"\n".join(reversed(bench.events.splitlines())) + b"\n"


@fault("There are empty lines between the events")
def _(bench):
    bench.events = bench.events.replace(b"\n", b"\n\n \n")


@fault(
    "A line has no event type, and is of an earlier time",
)
def _(bench):
    first = json.loads(bench.events.splitlines()[0])
    del first["eventType"]
    bench.events += json.dumps(first).encode() + b"\n"


@fault("An event has no time", "malformed_events")
def _(bench):
    bench.events += b'{"run": {"runId": "x"}, "job": {"namespace": "n", "name": "j"}}\n'


@fault("A dataset has no name", "malformed_events", "application_unfinished")
def _(bench):
    *others, last = bench.events.splitlines(keepends=True)
    event = json.loads(last)
    event["inputs"] = [{"namespace": "file"}]
    bench.events = b"".join(others) + json.dumps(event).encode() + b"\n"


@fault("The application reports no end", "application_unfinished")
def _(bench):
    lines = bench.events.splitlines(keepends=True)
    bench.events = b"".join(line for line in lines if not _ends_application(line))


@fault("The events are another application's", "foreign_events", "no_events")
def _(bench):
    bench.job["recorded_as"] = "00000000-0000-0000-0000-000000000000"


@fault("The events of another application are among ours", "foreign_events")
def _(bench):
    text = golden("staging_chain").read_bytes()
    bench.events = text + bench.events


@fault("A line is JSON of another kind", "malformed_events")
def _(bench):
    bench.events += b'[1, 2]\n"text"\nnull\n17\n'


@fault("A line is ten megabytes of one text", "malformed_events")
def _(bench):
    bench.events += b'{"eventTime": "' + b"x" * 10_000_000 + b'"}\n'


@fault("A line is nested a hundred thousand deep", "malformed_events")
def _(bench):
    bench.events += b"[" * 100_000 + b"\n"


@fault("A facet is nested 900 deep", "malformed_events")
def _(bench):
    bench.events = _with_facet(bench.events, "deep", "[" * 900 + "]" * 900)


@fault("A facet has the shape of another")
def _(bench):
    bench.events = _with_facet(bench.events, "dataSource", '["no", "object"]')


@fault("A facet has a number that is none", "malformed_events")
def _(bench):
    bench.events = _with_facet(bench.events, "shop", '{"x": 1e999}')


@fault("Ten thousand events of one action")
def _(bench):
    lines = bench.events.splitlines(keepends=True)
    bench.events = b"".join(lines[:-1]) + lines[-2] * 10_000 + lines[-1]


@fault("The file of events is a folder", "capture_unavailable")
def _(bench):
    bench.job["events"] = None
    bench.meanwhile("pathlib.Path(location).unlink(); pathlib.Path(location).mkdir()")


@fault("The file of events may not be read", "capture_unavailable")
def _(bench):
    bench.disk(errno.EACCES, "events.ndjson", reading=True)


@fault("The disk gives an I/O error when the events are read", "capture_unavailable")
def _(bench):
    bench.breaks(".spark.capture.events.read_events", OSError(errno.EIO, "Input/output error"))


@fault("The file of events is a link to itself", "capture_unavailable")
def _(bench):
    bench.job["events"] = None
    bench.meanwhile("pathlib.Path(location).unlink(); pathlib.Path(location).symlink_to(location)")


@fault("The file of events is a pipe that nobody writes to", "capture_unavailable")
def _(bench):
    bench.job["events"] = None
    bench.meanwhile("pathlib.Path(location).unlink(); __import__('os').mkfifo(location)")


@fault("The file of events is a device without an end", "capture_unavailable")
def _(bench):
    bench.job["events"] = None
    bench.meanwhile("p = pathlib.Path(location); p.unlink(); p.symlink_to('/dev/zero')")


@fault("The file of events has a hole of a terabyte", "malformed_events")
def _(bench):
    bench.meanwhile("__import__('os').truncate(location, 1 << 40)")


@fault("A line is of seventy megabytes", "malformed_events", within=20)
def _(bench):
    bench.meanwhile("open(location, 'ab').write(b'x' * 70_000_000 + b'\\n')")


@fault("A schema is nested 450 deep", "malformed_events")
def _(bench):
    field = '{"name":"a","type":"struct","fields":['
    bench.events = _with_facet(bench.events, "schema2", field * 450 + "]}" * 450)


def _ends_application(line):
    event = json.loads(line)
    kind = event["job"].get("facets", {}).get("jobType", {}).get("jobType")
    return kind == "APPLICATION" and event["eventType"] == "COMPLETE"


def _with_facet(events, name, text):
    """Give each dataset a facet."""
    return events.replace(
        b'"facets":{"dataSource"', f'"facets":{{"{name}":{text},"dataSource"'.encode()
    )
