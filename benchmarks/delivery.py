"""What delivering costs a job that writes: fifty writes, with it and without, in pairs.

The folder to deliver to is one of this machine. That of a cluster takes longer to answer, but what
waits for it is a thread of its own; the job waits at exit only.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.applications import small_writes
from benchmarks.results import Result
from tests.record_events import Spark
from tests.spark import submissions

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATION = Path(__file__).parent / "applications" / "small_writes.py"
PAIRS = 5
_SHARE, _JOB_S = 0.02, 60


class _Run(NamedTuple):
    """Seconds of the process, and those of its thread that delivers."""

    process: float
    delivering: float = 0.0
    segments: int = 0


def measured() -> Iterator[Result]:
    """Measure runs in pairs, which take turns in being the first."""
    spark = Spark.of(Path(sys.executable).with_name("spark-submit"))
    pairs = []
    for pair in range(PAIRS):
        order = (True, False) if pair % 2 else (False, True)
        runs = {deliver: _run(spark, deliver=deliver) for deliver in order}
        pairs.append((runs[True], runs[False]))
    ratios = [delivered.process / local.process for delivered, local in pairs]
    delivering = [delivered.delivering for delivered, _ in pairs]
    last, local = pairs[-1]
    name = f"{small_writes.WRITES} writes, delivered"
    listed = " ".join(f"{ratio:.2f}" for ratio in ratios)
    details = (
        f"the full process, median of {PAIRS} pairs ({listed}), without a pause between writes; "
        f"the last pair {last.process:.1f} s / {local.process:.1f} s"
    )
    yield Result(f"{name} / not delivered", statistics.median(ratios), 1 + _SHARE, details)
    details = (
        f"of the thread that delivers, of which the job waits for the end, median of {PAIRS}; "
        f"{last.segments} segments; the goal is 2 % of a job of 60 s"
    )
    seconds = statistics.median(delivering)
    yield Result(f"{name}: time that it takes", seconds, _SHARE * _JOB_S, details, " s")


def _run(spark: Spark, *, deliver: bool) -> _Run:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        url = (work / "remote").as_uri() if deliver else ""
        begun = time.perf_counter()
        submissions.submit(spark, APPLICATION, work, listener=spark.listener, deliver=url)
        process = time.perf_counter() - begun
        if not deliver:
            return _Run(process)
        [end] = work.glob("remote/*/end.json")
        delivered = json.loads(end.read_text())
        if delivered["errors"]:
            raise ValueError(delivered["errors"])
        segments = sum(delivered["segments"].values())
        return _Run(process, delivered["delivery_ms"] / 1000, segments)
