"""What the listener wrote: nothing, half of it, or something else."""

from __future__ import annotations

from tests.faults.registry import Area

AREA = Area(
    "What the listener wrote",
    "Each line is read by itself: one that is no event costs that event, never the others.",
)
fault = AREA.fault


@fault("The listener writes nothing", "no_events", "observation_untied")
def _(bench):
    bench.job["events"] = None


@fault("The listener writes an empty file", "no_events", "observation_untied")
def _(bench):
    bench.events = b""


@fault("The driver is killed while the listener writes", "torn_event", "application_unfinished")
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
