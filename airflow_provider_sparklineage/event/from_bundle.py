"""A capture bundle to the lineage of its task, for ``execute()``, ``merge`` and a replay alike."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event.backends import backend_of
from airflow_provider_sparklineage.event.document import Header
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.lineage import columns
from airflow_provider_sparklineage.lineage.application.accumulation import (
    SparkApplication,
    accumulate,
)
from airflow_provider_sparklineage.lineage.application.binding import Observations, bind
from airflow_provider_sparklineage.lineage.application.canonical_names import with_canonical_names
from airflow_provider_sparklineage.lineage.application.clock import Clock
from airflow_provider_sparklineage.lineage.carried_forward import Completion
from airflow_provider_sparklineage.lineage.failed_lineage import failed
from airflow_provider_sparklineage.lineage.merge import merge
from airflow_provider_sparklineage.model.budget import (
    MORE_TIME,
    TOO_LONG,
    UNLIMITED,
    Budget,
    SpentError,
)
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.model.outcome import Outcome
from airflow_provider_sparklineage.settings.option_kinds import ColumnLineageForm
from airflow_provider_sparklineage.spark.capture.observations import Messages, ObservationReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
    from airflow_provider_sparklineage.spark.capture.events import ReadReport
    from airflow_provider_sparklineage.spark.capture.observations import ObservationRecord


MAX_PARTITIONS = 500_000
"""Of all that was observed; each takes about 1 KB."""

_FOR_READING = 0.5
_FOR_OBSERVATIONS = 0.5


_WITHOUT_LISTENER = frozenset(
    {
        DegradationCode.INJECTION_FAILED,
        DegradationCode.LISTENER_UNAVAILABLE,
        DegradationCode.DRIVER_ELSEWHERE,
        DegradationCode.SUBMISSION_RESUMED,
        DegradationCode.CAPTURE_UNAVAILABLE,
        DegradationCode.NOT_SUBMITTED,
    }
)
"""What the worker knows to be the reason why there are no events."""


def task_lineage(bundle: CaptureBundle, budget: Budget = UNLIMITED) -> TaskLineage:
    """Read and merge a bundle.

    :param budget: half of it is for reading; what was read until then is merged
    :raise CaptureError: if the event file is there but cannot be read
    """
    manifest = bundle.manifest
    locator = manifest.locator
    reading = budget.part(_FOR_READING)
    events, clock = bundle.events(reading.is_spent), Clock(manifest.application_run_id)
    if bundle.is_in_order:
        events = clock.corrected(events)
    application = accumulate(events, manifest.application_run_id)
    application = with_canonical_names(application, locator)
    observations, met_observing = _observed(
        bundle, application, locator, budget.part(_FOR_OBSERVATIONS)
    )
    if clock.put_back:
        observations = None
    lineage = merge(
        application,
        outcome_of(bundle, application),
        declared_inputs=manifest.declared_inputs,
        budget=budget,
        declared_outputs=manifest.declared_outputs,
        observations=observations,
        expectations=manifest.expectations,
        locator=locator,
        limits=manifest.limits,
        intermediates=manifest.intermediates,
    )
    if manifest.column_lineage == ColumnLineageForm.LEGACY:
        lineage = in_legacy_form(lineage)
    # What was not read says nothing about the job, nor does a job without the listener.
    explained = any(d.code in _WITHOUT_LISTENER for d in manifest.degradations)
    met = [] if explained or bundle.report.cut else _incomplete(application)
    degradations = [
        *manifest.degradations,
        *met,
        *_read_troubles(bundle.report, application),
        *clock.degradations(),
        *met_observing,
        *lineage.degradations,
    ]
    if bundle.report.cut or not application.events:  # then having no outputs means nothing
        degradations = [d for d in degradations if d.code is not DegradationCode.NOTHING_WRITTEN]
    tables = observations.tables if observations else {}
    lineage = replace(lineage, degradations=tuple(degradations), tables=tables)
    if manifest.last_known is None:
        return lineage
    return completion(lineage, manifest).by(manifest.last_known)


def failed_lineage(lineage: TaskLineage, manifest: Manifest) -> TaskLineage:
    """Give what :func:`task_lineage` would give if the task of a successful job fails."""
    return failed(lineage, manifest.expectations, manifest.locator, manifest.limits)


def completion(lineage: TaskLineage, manifest: Manifest) -> Completion:
    """Find what of a try the last run's lineage would have to stand in for."""
    return Completion(
        lineage,
        manifest.declared_inputs,
        manifest.declared_outputs,
        versions_by_schema=backend_of(manifest.backend).versions_by_schema,
    )


def in_legacy_form(lineage: TaskLineage) -> TaskLineage:
    """Give each column what influences all of them, but for outputs where that is too much."""
    outputs, refused = [], []
    for dataset in lineage.outputs:
        expanded = columns.legacy(dataset.columns) if dataset.columns else None
        outputs.append(replace(dataset, columns=expanded) if expanded else dataset)
        if dataset.columns and expanded is None:
            refused.append(
                Degradation(
                    DegradationCode.LEGACY_REFUSED,
                    f"The column lineage of {dataset.name} is in the compact form: in the legacy "
                    f"form it would have more than {columns.MAX_LEGACY_EDGES} edges.",
                    dataset.name,
                )
            )
    degradations = (*lineage.degradations, *refused)
    return replace(lineage, outputs=tuple(outputs), degradations=degradations)


def _observed(
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
    fix = f"; {MORE_TIME}" if str(reason) == TOO_LONG else ""
    return Degradation(
        DegradationCode.COLLECTION_CUT,
        "The partitions that were observed were left out, and those that the listener reports are "
        f"used, because {reason}{fix}.",
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


def outcome_of(bundle: CaptureBundle, application: SparkApplication) -> Outcome:
    """How the try ended: as its worker reports, else whether the application reported its end."""
    if bundle.manifest.outcome:
        return Outcome(bundle.manifest.outcome)
    return Outcome.COMPLETE if application.finished else Outcome.FAIL


def merged_event(
    bundle: CaptureBundle,
    lineage: TaskLineage,
    mask: Callable[[str], str] = str,
    budget: Budget = UNLIMITED,
) -> Event:
    """Make the merged RunEvent.

    :param mask: hides the secrets in a text; Airflow knows them
    """
    representation = bundle.manifest.representation
    return event_of(lineage, bundle.report, representation, mask, header(bundle, lineage), budget)


def header(bundle: CaptureBundle, lineage: TaskLineage) -> Header:
    """Name run, job and time of an event: the manifest's, else the application's."""
    manifest, application = bundle.manifest, lineage.application
    time = manifest.ended or (application and application.last_event) or manifest.started
    job = manifest.job
    return Header(
        _uuid(manifest.run_id or manifest.application_run_id),
        job.namespace if job else (application and application.namespace) or "default",
        job.name if job else (application and application.job_name) or "unknown",
        time.isoformat() if time else "1970-01-01T00:00:00+00:00",
    )


def _uuid(run_id: str) -> str:
    """Make a run id of what an event calls one: OpenLineage wants a UUID, and may get another."""
    try:
        return str(uuid.UUID(run_id))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, run_id))


def _incomplete(application: SparkApplication) -> list[Degradation]:
    if not application.events:
        return [
            Degradation(
                DegradationCode.NO_EVENTS,
                "The listener wrote no events of this application. If the job did start a "
                "SparkSession, look in its log for messages of OpenLineageSparkListener, and for "
                "spark.openlineage.disabled.",
            )
        ]
    missing = []
    if not application.begun:
        missing.append(
            Degradation(
                DegradationCode.CAPTURE_UNAVAILABLE,
                "The events begin in the middle of the application: their file was removed or "
                "replaced while the job ran, and what the job had done by then may be missing.",
            )
        )
    if not application.finished:
        missing.append(
            Degradation(
                DegradationCode.APPLICATION_UNFINISHED,
                "The application never reported its end: its driver was killed, so its last "
                "actions may be missing.",
            )
        )
    return missing


def _read_troubles(report: ReadReport, application: SparkApplication) -> list[Degradation]:
    troubles = []
    if application.foreign_events:
        troubles.append(
            Degradation(
                DegradationCode.FOREIGN_EVENTS,
                f"{application.foreign_events} event(s) in the file are of another application "
                f"than {application.run_id} and were left out.",
            )
        )
    if application.left_out:
        what = ", ".join(f"{count} {what}" for what, count in sorted(application.left_out.items()))
        troubles.append(
            Degradation(
                DegradationCode.COLLECTION_CUT,
                f"The events are more than merging keeps in memory, and {what} were left out.",
            )
        )
    if report.torn:
        troubles.append(
            Degradation(
                DegradationCode.TORN_EVENT,
                "The last line of the event file is incomplete, because the driver ended while "
                "writing it.",
            )
        )
    if report.malformed_lines:
        named = "; ".join(report.malformed)
        troubles.append(
            Degradation(
                DegradationCode.MALFORMED_EVENTS,
                f"{report.malformed_lines} line(s) cannot be read as OpenLineage run events and "
                f"were left out: {named}.",
            )
        )
    if report.cut:
        troubles.append(
            Degradation(
                DegradationCode.COLLECTION_CUT,
                f"Collecting took too long and ended after {report.events} events; {MORE_TIME}.",
            )
        )
    return troubles
