"""All queries on one format: the tables, one application, and its merged event."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.terms import OBSERVATIONS
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from tests import record_events
from tests.observed_partitions import lost
from tests.spark import submissions
from tests.truth import opened
from tests.truth.planting import PARTITIONED_BY, SHARED, copies, plant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.truth.queries import Query

FORMATS: Mapping[str, tuple[str, ...]] = {
    "parquet": (),
    "delta": ("delta",),
    "iceberg": ("iceberg",),
}
"""With the connectors that they need."""


@dataclass(frozen=True)
class Run:
    """What came of the queries on a format.

    :param files: that each query opened; None if that was not traced
    :param lost: partitions that were observed, and are neither in the event nor in a degradation
    """

    kind: str
    lake: Path
    event: dict[str, Any]
    files: Mapping[str, set[Path]] | None
    is_shared: bool = False
    lost: Sequence[str] = ()

    def home(self, query: Query) -> str:
        """Name the folder or namespace with the tables that a query reads."""
        return SHARED if self.is_shared else query.name


@dataclass(frozen=True)
class Options:
    """How to run the queries.

    :param scale: scale factor of the data
    :param way: to write all results in; else each in the next of those that the format has
    :param shared: whether all queries read the same tables, else each has its own copies
    :param trace: whether to look at the files that are opened
    """

    scale: float = 0.02
    way: str = ""
    shared: bool = False
    trace: bool = True


def run(
    spark: record_events.Spark, kind: str, queries: Sequence[Query], work: Path, options: Options
) -> Run:
    """Run the queries in one application, listened to and observed.

    :param work: a folder to be made
    """
    lake = work / "lake"
    (lake / "planted").mkdir(parents=True)
    plant(lake / "planted", options.scale)
    plan = {
        "format": kind,
        "way": options.way,
        "partitioned_by": PARTITIONED_BY,
        "queries": [
            {
                "name": query.name,
                "home": SHARED if options.shared else query.name,
                "sql": query.sql,
                "tables": query.tables,
                "partitioned_by": query.partitioned_by,
            }
            for query in queries
        ],
    }
    (lake / "plan.json").write_text(json.dumps(plan))
    applications = record_events.APPLICATIONS
    tables, connectors = applications / "truth_tables.py", FORMATS[kind]
    submissions.submit(spark, tables, work, observe=False, connectors=connectors)
    (work / "scratch").rename(work / "making")
    if kind != "iceberg" and not options.shared:
        copies(lake, queries)
    trace_log = work / "opened.log"
    submissions.submit(
        spark,
        applications / "truth_queries.py",
        work,
        listener=spark.listener,
        connectors=connectors,
        under=opened.tracing(trace_log) if options.trace else (),
    )
    names = [query.name for query in queries]
    files = opened.during_queries(trace_log, lake, names) if options.trace else None
    event = merged(work)
    return Run(kind, lake, event, files, options.shared, lost(work / OBSERVATIONS, event))


def merged(work: Path) -> dict[str, Any]:
    """Merge what was collected of a run."""
    first = json.loads((work / "events.ndjson").read_text().splitlines()[0])
    application = first["run"]["runId"]
    bundle = CaptureBundle(work, Manifest(application, max_partitions=10_000))
    return merged_event(bundle, task_lineage(bundle))
