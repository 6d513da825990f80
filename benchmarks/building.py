"""What it costs to build the history: events a second, how that grows, memory, and one event more.

Events are as :mod:`.history_events` makes them, 7 or 18 KB each. A build runs in a process of its
own, because DuckDB has threads and memory of its own; growth is that of CPU time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import history_events
from benchmarks.measuring import Growth
from benchmarks.results import Curve, Result

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZES = (12_500, 25_000, 50_000, 100_000)
FILES = 10_000
GOAL_RATE, GOAL_MB = 5000, 1000

# Builds from a source; prints seconds of the clock, of CPU, the peak of memory, and new events.
BUILD = """
import json, resource, sys, time
from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.store import Store

built = build(Store(sys.argv[1]), [source_of(one) for one in sys.argv[2:]])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([built.seconds, time.process_time(), peak, built.new]))
"""


class Build(NamedTuple):
    """A build: seconds of the clock and of CPU, MB at the peak, and how many events were new."""

    seconds: float
    cpu_s: float
    peak_mb: float
    new: int


def measured() -> Iterator[Result | Curve]:
    """Measure builds from one file, from an archive's folders, and of a store that is there."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        builds = [_from_file(folder, size) for size in SIZES]
        growth = Growth(SIZES, tuple(one.cpu_s for one in builds))
        yield from _whole(builds[-1], growth)
        yield _one_more(folder)
        yield _archive(folder)
        yield Curve("history_build", "Building the history", "events", {"seconds of CPU": growth})


def _whole(build: Build, growth: Growth) -> Iterator[Result]:
    count = SIZES[-1]
    details = f"{count / build.seconds:,.0f} events/s; {build.cpu_s:.1f} s of CPU"
    goal = count / GOAL_RATE
    yield Result(f"build from {count:,} events", build.seconds, goal, details, " s")
    yield Result("its growth with the events (exponent)", growth.exponent, 1.1, str(growth))
    details = f"of {count:,} events; DuckDB may take 500 MB of it"
    yield Result("its memory", build.peak_mb, GOAL_MB, details, " MB")


def _one_more(folder: Path) -> Result:
    """Add one event to the store that is there."""
    file = folder / "one.ndjson"
    [*_, last] = history_events.events(SIZES[-1] + 1)
    file.write_bytes(last)
    done = build(folder / f"store-{SIZES[-1]}", file)
    details = f"to {SIZES[-1]:,} events, a million accesses; {done.cpu_s:.1f} s of CPU"
    return Result("add one event", done.seconds, None, details, " s")


def _archive(folder: Path) -> Result:
    history_events.write_archive(folder / "archive", FILES)
    done = build(folder / "store", folder / "archive")
    details = f"{FILES / done.seconds:,.0f} events/s, each in a file of its own in four folders; "
    details += f"{done.cpu_s:.1f} s of CPU"
    return Result(f"build from an archive of {FILES:,} files", done.seconds, None, details, " s")


def _from_file(folder: Path, size: int) -> Build:
    file = folder / "events.ndjson"
    history_events.write(file, size)
    done = build(folder / f"store-{size}", file)
    assert done.new == size
    file.unlink()
    return done


def build(store: Path, source: Path) -> Build:
    """Build a store from a source, in a process of its own."""
    command = [sys.executable, "-c", BUILD, str(store), str(source)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Build(*json.loads(done.stdout))
