"""What the observer wrote of a try, read and bound to the datasets of its events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.application.binding import Observations, bind
from airflow_provider_sparklineage.model.budget import TOO_LONG, Budget, SpentError, because
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture.observations import Messages, ObservationReport

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.lineage.application.accumulation import SparkApplication
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.capture.observations import ObservationRecord

MAX_PARTITIONS = 500_000
"""Of all that was observed; each takes about 1 KB."""


def observed(
    bundle: CaptureBundle,
    application: SparkApplication,
    locator: Locator,
    budget: Budget,
) -> tuple[Observations | None, list[Degradation]]:
    """Read what the observer wrote, all of it or nothing: partitions of a part would be wrong.

    :return: None for the observations, if there are none
    """
    report = ObservationReport()
    try:
        records = _bounded(bundle.observations(report, budget.is_spent))
    except CaptureError as error:  # the events are as good as they are without
        return None, [Degradation(DegradationCode.OBSERVATIONS_MISSING, str(error))]
    except SpentError as reason:
        return None, [_unobserved(reason)]
    if report.cut:
        return None, [_unobserved(TOO_LONG)]
    if not records and not report.malformed_lines:
        # A job that dies before it makes a session is recognised by the lack of events already.
        if "py_files" in bundle.manifest.injected and application.events:
            return None, [
                Degradation(
                    DegradationCode.OBSERVATIONS_MISSING,
                    "The observer wrote nothing, so no partitions are known; another "
                    "sitecustomize before ours on the driver's Python path would explain it.",
                )
            ]
        return None, []
    datasets = [d for a in application.actions for d in (*a.inputs, *a.outputs)]
    identities: dict[DatasetName, set[DatasetName]] = {d.name: set() for d in datasets}
    for dataset in datasets:
        identities[dataset.name] |= dataset.symlinks
    try:
        observations = bind(records, identities, locator, budget)
    except SpentError as reason:
        return None, [_unobserved(reason)]
    return observations, _observation_troubles(report, observations)


def _bounded(records: Iterable[ObservationRecord]) -> list[ObservationRecord]:
    """List records.

    :raise SpentError: if they have more partitions than may be in memory
    """
    found, partitions = [], 0
    for record in records:
        layouts = [
            *(layout for read in record.reads for layout in read.layouts or ()),
            *(layout for write in record.writes for layout in (*write.layouts, *write.removed)),
        ]
        partitions += sum(len(layout.partitions) for layout in layouts)
        if partitions > MAX_PARTITIONS:
            msg = f"they are more than {MAX_PARTITIONS}"
            raise SpentError(msg)
        found.append(record)
    return found


def _unobserved(reason: object) -> Degradation:
    return Degradation(
        DegradationCode.COLLECTION_CUT,
        "The partitions that were observed were left out, and those that the listener reports are "
        f"used, {because(reason)}",
    )


def _observation_troubles(
    report: ObservationReport, observations: Observations
) -> list[Degradation]:
    malformed = Messages(report.malformed)
    malformed.count = report.malformed_lines
    problems = (
        (report.errors, DegradationCode.OBSERVER_FAILED, "The observer failed at times: {}."),
        (
            malformed,
            DegradationCode.MALFORMED_OBSERVATIONS,
            "Lines of the observer's file cannot be read and were left out: {}.",
        ),
        (report.stopped, DegradationCode.OBSERVATION_CUT, "The observer stopped looking: {}."),
        (
            Messages(observations.unmatched),
            DegradationCode.OBSERVATION_UNTIED,
            "Read or written, but no dataset in the listener's events: {}.",
        ),
    )
    return [Degradation(code, text.format(met)) for met, code, text in problems if met.count]
