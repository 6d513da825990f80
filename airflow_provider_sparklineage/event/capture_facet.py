"""Run facet ``sparkLineage_capture``: the collected lineage, and the missing parts with reasons.

The schema is shipped as ``schemas/SparkLineageCaptureRunFacet.json``.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import replaced
from airflow_provider_sparklineage.event.model import CAPTURE_KEY
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.model.producer import SCHEMA_BASE, facet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.model.degradations import Degradation
    from airflow_provider_sparklineage.spark.capture.lines import ReadReport

MAX_DATASETS = 500
"""Datasets whose witness the facet names, outputs first; if there are more, it gives counts."""
MAX_DEGRADATIONS = 100
"""Degradations that the facet names; if there are more, it gives a count for each code."""


def capture_facet(
    lineage: TaskLineage,
    report: ReadReport,
    inputs: Sequence[LineageDataset],
    outputs: Sequence[LineageDataset],
) -> dict[str, Any]:
    """Make the facet: the application, the numbers of events read, the witnesses, the degradations.

    :param report: result of reading the listener's events
    :param inputs: the inputs as the event has them
    :param outputs: the outputs as the event has them
    """
    application = lineage.application
    bare = facet(
        f"{SCHEMA_BASE}:capture:1-0-0",
        applicationId=(application and application.application_id) or None,
        applicationRunId=_uuid(application.run_id) if application else None,
        sparkVersion=(application and application.spark_version) or None,
        listenerVersion=(application and application.listener_version) or None,
        actions=len(application.actions) if application else 0,
        events=report.events,
        bytes=report.bytes,
        malformedLines=report.malformed_lines,
        degradations=[],
    )
    seen = [
        (dataset, side)
        for side, of_side in ((Side.WRITE, outputs), (Side.READ, inputs))
        for dataset in of_side
        if dataset.witness is not None
    ]
    if seen:
        bare["datasets"] = [_accessed(*each) for each in seen[:MAX_DATASETS]]
    if len(seen) > MAX_DATASETS:
        bare["datasetCounts"] = dict(sorted(Counter(str(side) for _, side in seen).items()))
    return with_degradations(bare, lineage.degradations)


def _accessed(dataset: LineageDataset, side: Side) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "dataset": dataset.name._asdict(),
        "side": str(side),
        "witness": str(dataset.witness),
        "accessed": str(dataset.accessed),
    }
    if dataset.failed:
        entry["failed"] = True
    if dataset.writes > 1:
        entry["writes"] = dataset.writes
    if dataset.planned:
        entry["planned"] = len(dataset.planned)
    return entry


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def _uuid(run_id: str) -> str | None:
    return run_id if _UUID.fullmatch(run_id) else None  # OpenLineage allows no other run ids


def declared(event: Event, lost: Sequence[Degradation]) -> Event:
    """Declare in the capture facet the losses that a step has caused.

    An event without the facet stays as it is: it is the event of a job that has not run, from which
    a step takes hardly anything.
    """
    capture = event["run"]["facets"].get(CAPTURE_KEY)
    if capture is None or not lost:
        return event
    facets = {**event["run"]["facets"], CAPTURE_KEY: with_degradations(capture, lost)}
    return replaced(event, run_facets=facets)


def with_degradations(
    capture: dict[str, Any], more: Sequence[Degradation], *, in_front: bool = False
) -> dict[str, Any]:
    """Give the facet with more degradations; if they are too many, also with counts of all codes.

    :param in_front: whether the new ones come first, so that none of them is lost from a full list
    """
    if not more:
        return capture
    known: list[dict[str, Any]] = capture["degradations"]
    counts = Counter(capture.get("degradationCounts") or (d["code"] for d in known))
    counts += Counter(d.code for d in more)
    new = [_entry(d) for d in more[:MAX_DEGRADATIONS]]
    entries = ([*new, *known] if in_front else [*known, *new])[:MAX_DEGRADATIONS]
    made = {**capture, "degradations": entries}
    if len(entries) < counts.total():
        made["degradationCounts"] = {str(code): counts[code] for code in sorted(counts)}
    return made


def _entry(degradation: Degradation) -> dict[str, Any]:
    entry: dict[str, Any] = {"code": str(degradation.code), "message": degradation.message}
    if degradation.dataset is not None:
        entry["dataset"] = degradation.dataset._asdict()
    if degradation.side is not None:
        entry["side"] = str(degradation.side)
    if degradation.column is not None:
        entry["column"] = degradation.column
    return entry
