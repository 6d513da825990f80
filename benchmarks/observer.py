"""What the observer costs a real PySpark job: small writes, kinds of queries, large tables.

The drivers compile with C1 only and collect garbage serially (``SPARK_SUBMIT_OPTS`` of
:func:`tests.record_events.environment`): short runs then differ by less than with the defaults.
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.spark.submit import submitted_files
from benchmarks.applications import large_tables, many_partitions, query_kinds, small_writes
from benchmarks.measuring import usual
from benchmarks.results import Result
from tests.record_events import Spark
from tests.spark import submissions

if TYPE_CHECKING:
    from collections.abc import Iterator

APPLICATIONS = Path(__file__).with_name("applications")
PAIRS = 5
sys.path.append(str(submitted_files.DRIVER))  # the observer's modules are the driver's
DEADLINE_S = importlib.import_module("sparklineage_observer.records").Limits().seconds

_COLD = "the first kind of query of a job runs what its JVM has not compiled yet"


def measured() -> Iterator[Result]:
    """Measure all of it, one result after the other."""
    spark = Spark.of(Path(sys.executable).with_name("spark-submit"))
    yield from _small_writes(spark)
    yield from _figures(spark)
    yield from _query_kinds(spark)
    yield from _large_tables(spark)


def _small_writes(spark: Spark) -> Iterator[Result]:
    """Run the writes in pairs, with listener and observer and with the listener alone.

    A pair's runs follow each other, and take turns in being the first: what else the machine does
    then falls on both alike.
    """
    jar = spark.listener
    processes, jobs, queries, firsts = [], [], [], []
    for pair in range(PAIRS):
        seconds = {}
        for observe in (True, False) if pair % 2 else (False, True):
            with tempfile.TemporaryDirectory() as folder:
                work = Path(folder)
                begun = time.perf_counter()
                application = APPLICATIONS / "small_writes.py"
                submissions.submit(spark, application, work, listener=jar, observe=observe)
                process = time.perf_counter() - begun
                seconds[observe] = process, float((work / "seconds").read_text())
                if observe:
                    first, *others = [record["observer_ms"] for record in _writes(work)]
                    firsts.append(first)
                    queries += others
        processes.append(seconds[True][0] / seconds[False][0])
        jobs.append(seconds[True][1] / seconds[False][1])
    name = f"{small_writes.WRITES} small writes, listener + observer / listener"
    details = (
        f"medians of {PAIRS} pairs ({_listed(processes)}); the last pair "
        f"{seconds[True][0]:.1f} s / {seconds[False][0]:.1f} s"
    )
    yield Result(f"{name}, full process", statistics.median(processes), 1.15, details)
    details = (
        f"({_listed(jobs)}); the last pair {seconds[True][1]:.1f} s / {seconds[False][1]:.1f} s"
    )
    yield Result(f"{name}, the job alone", statistics.median(jobs), 1.15, details)
    details = (
        f"median of {len(queries)}, next to the listener; at most {max(queries):.1f} ms, "
        f"the first of a job {statistics.median(firsts):.0f} ms"
    )
    missed = "the plan's JSON, the listing and texts are most of it, in a JVM that has just started"
    yield Result("look at a small write", statistics.median(queries), 10, details, " ms", missed)


def _figures(spark: Spark) -> Iterator[Result]:
    """Run writes with rows of each partition, and without reading footers, in turns."""
    counted = {
        "small_writes.py": f"{small_writes.WRITES} small writes",
        "many_partitions.py": f"a write of {many_partitions.PARTITIONS} partitions",
    }
    for application, name in counted.items():
        cpu: dict[int, list[float]] = {0: [], _FOOTERS: []}
        looks: dict[int, list[float]] = {0: [], _FOOTERS: []}
        for pair in range(PAIRS):
            for footers in sorted(cpu, reverse=pair % 2 == 0):
                with tempfile.TemporaryDirectory() as folder:
                    work, before = Path(folder), getrusage(RUSAGE_CHILDREN)
                    submissions.submit(
                        spark,
                        APPLICATIONS / application,
                        work,
                        listener=spark.listener,
                        conf={"spark.sparklineage.limits": f"footers={footers}"},
                    )
                    after = getrusage(RUSAGE_CHILDREN)
                    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                    cpu[footers].append(seconds)
                    looks[footers].append(_seconds_of_looks(work, are_rows=footers > 0))
        many, none = usual(cpu[_FOOTERS]), usual(cpu[0])
        details = (
            f"CPU of the full process, {PAIRS} runs each: {many:.1f} s / {none:.1f} s; "
            f"the observer by the clock {usual(looks[_FOOTERS]):.2f} s / {usual(looks[0]):.2f} s"
        )
        title = f"{name}, with the rows of partitions / without"
        missed = "a footer takes the JVM half a millisecond, and the reader has to be compiled"
        yield Result(title, many / none, 1.02, details, missed=missed)


_FOOTERS = 5000  # more than a write has files


def _seconds_of_looks(work: Path, *, are_rows: bool) -> float:
    """Give the seconds of all looks at writes, which have rows of partitions or do not."""
    found = [record for record in _records(work) if record["writes"]]
    layouts = [one for record in found for write in record["writes"] for one in write["layouts"]]
    if {"rows" in layout for layout in layouts} != {are_rows}:
        message = f"the rows of partitions are {'not ' if are_rows else ''}recorded"
        raise ValueError(message)
    return float(sum(record["observer_ms"] for record in found)) / 1000


def _query_kinds(spark: Spark) -> Iterator[Result]:
    """Count the calls of the JVM that a look takes, and time it."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        submissions.submit(spark, APPLICATIONS / "query_kinds.py", work)
        looks = json.loads((work / "looks").read_text())
        written = sum(len(record["writes"]) for record in _records(work))
    if [*looks] != [*query_kinds.KINDS] or written != 3 * query_kinds.TIMES + 1:
        message = f"{written} writes are recorded, and looks at {', '.join(looks)}"
        raise ValueError(message)
    milliseconds = {kind: [ms for ms, _ in found] for kind, found in looks.items()}
    calls = {kind: max(calls for _, calls in found) for kind, found in looks.items()}
    for kind in query_kinds.WITHOUT_DATA:
        found = milliseconds[kind]
        details = f"median of {len(found)}, the first {found[0]:.1f} ms; {calls[kind]} calls"
        yield Result(f"look at {kind}", statistics.median(found), 1, details, " ms", _COLD)
    for kind in query_kinds.KINDS[len(query_kinds.WITHOUT_DATA) :]:
        found = milliseconds[kind]
        details = f"{statistics.median(found):.1f} ms, the first {found[0]:.1f} ms"
        yield Result(f"calls of the JVM for {kind}", calls[kind], None, details)


def _listed(ratios: list[float]) -> str:
    return " ".join(f"{ratio:.2f}" for ratio in ratios)


def _large_tables(spark: Spark) -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        submissions.submit(spark, APPLICATIONS / "large_tables.py", work)
        records = list(_records(work))
    for record in records:
        for read in record["reads"]:
            if read["roots"][0].endswith("/large"):
                partitions = len(read["layouts"][0]["partitions"])
                if partitions != large_tables.SELECTED:
                    message = f"{partitions} partitions are recorded of {large_tables.SELECTED}"
                    raise ValueError(message)
                name = f"{partitions} selected partitions recorded"
                yield Result(name, record["observer_ms"] / 1000, 1.0, "one query", " s")
        for write in record["writes"]:
            if write["path"].endswith("/huge"):
                name = f"append to a table of {large_tables.DIRECTORIES} folders"
                details = f"the deadline of one query; {write['how']}: {write.get('cut', 'all')}"
                seconds = record["observer_ms"] / 1000
                yield Result(name, seconds, DEADLINE_S, details, " s")


def _records(work: Path) -> Iterator[dict[str, Any]]:
    """Give the records of queries; what went wrong in the observer is an error here, too."""
    for line in (work / "observations.ndjson").read_text().splitlines():
        record = json.loads(line)
        if "error" in record or "errors" in record:
            raise ValueError(line)
        if record["kind"] == "query":
            yield record


def _writes(work: Path) -> list[dict[str, Any]]:
    """Give the records of the small writes, each of which must be known exactly."""
    found = [record for record in _records(work) if record["writes"]]
    hows = [write["how"] for record in found for write in record["writes"]]
    if hows != ["exact"] * small_writes.WRITES:
        message = f"{hows.count('exact')} of {small_writes.WRITES} writes are known exactly"
        raise ValueError(message)
    return found
