"""Run facet ``sparkLineage_capture``: what was collected, and what is missing and why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs
from openlineage.client.facet_v2 import RunFacet

from airflow_provider_sparklineage.event.producer import SCHEMA_BASE, producer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.model.degradations import Degradation
    from airflow_provider_sparklineage.spark.capture.events import ReadReport

CAPTURE_KEY = "sparkLineage_capture"
MAX_DEGRADATIONS = 100
"""Degradations that the facet names; of more it gives a count for each code."""


@attrs.define
class DegradationEntry:
    """An entry of ``sparkLineage_capture.degradations``."""

    code: str
    message: str
    dataset: dict[str, str] | None = None
    column: str | None = None


@attrs.define
class SparkLineageCaptureRunFacet(RunFacet):
    """Run facet ``sparkLineage_capture``: what was collected, and what is missing and why.

    The schema is shipped as ``schemas/SparkLineageCaptureRunFacet.json``.
    """

    applicationId: str | None = None  # noqa: N815  (OpenLineage facets are camelCase)
    applicationRunId: str | None = None  # noqa: N815
    sparkVersion: str | None = None  # noqa: N815
    listenerVersion: str | None = None  # noqa: N815
    actions: int = 0
    events: int = 0
    bytes: int = 0
    malformedLines: int = 0  # noqa: N815
    degradations: list[DegradationEntry] = attrs.field(factory=list)
    degradationCounts: dict[str, int] | None = None  # noqa: N815

    @staticmethod
    def _get_schema() -> str:
        return f"{SCHEMA_BASE}:capture:1-0-0"


def capture_facet(lineage: TaskLineage, report: ReadReport) -> SparkLineageCaptureRunFacet:
    """Say what was collected, and what is missing.

    :param report: what reading the events met
    """
    application = lineage.application
    counts = Counter(str(d.code) for d in lineage.degradations)
    entries = [_entry(d) for d in lineage.degradations[:MAX_DEGRADATIONS]]
    return SparkLineageCaptureRunFacet(
        applicationId=(application and application.application_id) or None,
        applicationRunId=application.run_id if application else None,
        sparkVersion=(application and application.spark_version) or None,
        listenerVersion=(application and application.listener_version) or None,
        actions=len(application.actions) if application else 0,
        events=report.events,
        bytes=report.bytes,
        malformedLines=report.malformed_lines,
        degradations=entries,
        degradationCounts=_counted(counts, entries),
        producer=producer(),
    )


def _entry(degradation: Degradation) -> DegradationEntry:
    dataset = degradation.dataset
    return DegradationEntry(
        str(degradation.code),
        degradation.message,
        dataset and dataset._asdict(),
        degradation.column,
    )


def with_dropped(facet: RunFacet, dropped: Sequence[Degradation]) -> RunFacet:
    """Say in the facet what was dropped of its event; another facet is given back as it is.

    It comes in front: a list that is cut must not lose why other things are missing.
    """
    if not dropped or not isinstance(facet, SparkLineageCaptureRunFacet):
        return facet
    known = facet.degradations
    counts = Counter(facet.degradationCounts or (d.code for d in known))
    counts += Counter(str(d.code) for d in dropped)
    entries = [*map(_entry, dropped[:MAX_DEGRADATIONS]), *known][:MAX_DEGRADATIONS]
    return attrs.evolve(facet, degradations=entries, degradationCounts=_counted(counts, entries))


def _counted(counts: Counter[str], entries: Sequence[DegradationEntry]) -> dict[str, int] | None:
    return dict(sorted(counts.items())) if len(entries) < counts.total() else None
