"""Turn a capture bundle into the lineage of its task.

``execute()``, ``sparklineage merge`` and a replay all call :func:`task_lineage`, so they give the
same lineage. The function reads the listener's events and the observer's records, brings the two
together (:mod:`.observed`), merges them (:mod:`.merge`), and adds the problems met while reading
the bundle: events that are missing, left out, or not delivered.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accumulation import (
    SparkApplication,
    accumulate,
)
from airflow_provider_sparklineage.lineage.application.repairs import Clock, with_canonical_names
from airflow_provider_sparklineage.lineage.columns import edges
from airflow_provider_sparklineage.lineage.declared_and_last_known import Completion
from airflow_provider_sparklineage.lineage.merge import merge
from airflow_provider_sparklineage.lineage.observed.corrections import observed
from airflow_provider_sparklineage.model.allowance import UNLIMITED, Allowance, Stage
from airflow_provider_sparklineage.model.budget import MORE_TIME, Budget, garbage_collector_paused
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.representation import ColumnLineageForm
from airflow_provider_sparklineage.model.terms import Outcome, Side

if TYPE_CHECKING:
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
    from airflow_provider_sparklineage.spark.capture.lines import ReadReport


# --- the lineage ----------------------------------------------------------------------------------


@garbage_collector_paused()
def task_lineage(bundle: CaptureBundle, allowance: Allowance = UNLIMITED) -> TaskLineage:
    """Read a capture bundle, and merge it to the lineage of its task.

    :param allowance: only events that are read before the stage is over are merged
    :raise CaptureError: if the event file is there but cannot be read
    """
    manifest = bundle.manifest
    locator = manifest.locator
    is_late = partial(allowance.is_over, Stage.READING)
    events = bundle.events(is_late)
    clock = Clock(manifest.application_run_id, lambda: bundle.clock_put_back(is_late))
    if bundle.is_in_order:
        events = clock.corrected(events)
    application = accumulate(events, manifest.application_run_id)
    application = with_canonical_names(application, locator)
    looking = Budget(lambda: 0.0 if allowance.is_over(Stage.OBSERVATIONS) else math.inf)
    witnessed = observed(bundle, application, locator, looking)
    observations = None if clock.put_back else witnessed.observations
    application = application if clock.put_back else witnessed.application
    lineage = merge(
        application,
        outcome_of(bundle, application),
        declared_inputs=manifest.declared_inputs,
        allowance=allowance,
        declared_outputs=manifest.declared_outputs,
        observations=observations,
        expectations=manifest.expectations,
        locator=locator,
        limits=manifest.limits,
        intermediates=manifest.intermediates,
    )
    if manifest.column_lineage == ColumnLineageForm.LEGACY:
        lineage = in_legacy_form(lineage)
    # Missing events are not reported where their reason is known already, or reading was cut.
    is_delivered = bool(manifest.remote)
    reasons = _UNDELIVERED if is_delivered else _WITHOUT_LISTENER
    explained = any(d.code in reasons for d in manifest.degradations)
    met = [] if explained or bundle.report.cut else incomplete(application, is_delivered)
    degradations = [
        *manifest.degradations,
        *met,
        *left_out(bundle.report, application),
        *clock.degradations(),
        *witnessed.degradations,
        *lineage.degradations,
    ]
    is_part = any(d.code is DegradationCode.DELIVERY_INCOMPLETE for d in manifest.degradations)
    if is_part:
        lineage = _of_a_part(lineage)
    # Without all events, missing outputs do not show that the application wrote none.
    if bundle.report.cut or is_part or not application.events:
        degradations = [d for d in degradations if d.code is not DegradationCode.NOTHING_WRITTEN]
    lineage = replace(lineage, degradations=tuple(degradations))
    return _completed(lineage, manifest)


def _of_a_part(lineage: TaskLineage) -> TaskLineage:
    """Remove the missing partitions, because an event that was not delivered may name them."""
    inputs, outputs = (
        tuple(replace(dataset, check=dataset.check.of_a_part()) for dataset in datasets)
        for datasets in (lineage.inputs, lineage.outputs)
    )
    return replace(lineage, inputs=inputs, outputs=outputs)


def outcome_of(bundle: CaptureBundle, application: SparkApplication) -> Outcome:
    """Give the outcome of the try, as its worker reports it.

    Without such a report, the outcome is COMPLETE if the application reported its end, else FAIL.
    """
    if bundle.manifest.outcome:
        return Outcome(bundle.manifest.outcome)
    return Outcome.COMPLETE if application.finished else Outcome.FAIL


def in_legacy_form(lineage: TaskLineage) -> TaskLineage:
    """Repeat the influences on all columns of an output with each column: the legacy form.

    An output that would have too many edges keeps the compact form, and a degradation reports it.
    """
    outputs, refused = [], []
    for dataset in lineage.outputs:
        expanded = edges.legacy(dataset.columns) if dataset.columns else None
        outputs.append(replace(dataset, columns=expanded) if expanded else dataset)
        if dataset.columns and expanded is None:
            refused.append(
                Degradation(
                    DegradationCode.LEGACY_REFUSED,
                    f"The column lineage of {dataset.name} is in the compact form: in the legacy "
                    f"form it would have more than {edges.MAX_LEGACY_EDGES} edges.",
                    dataset.name,
                    side=Side.WRITE,
                )
            )
    degradations = (*lineage.degradations, *refused)
    return replace(lineage, outputs=tuple(outputs), degradations=degradations)


def _completed(lineage: TaskLineage, manifest: Manifest) -> TaskLineage:
    """Complete the lineage from the last run if the worker did so: a replay gives equal lineage."""
    if manifest.last_known is None:
        return lineage
    # The worker puts the last run into the manifest only if lineage was missing without it: for a
    # try that succeeded, only if its backend versions datasets by schema.
    declared = manifest.declared_inputs, manifest.declared_outputs
    return Completion(lineage, *declared, versions_by_schema=True).by(manifest.last_known)


# --- reasons why events are missing ---------------------------------------------------------------


_WITHOUT_LISTENER = frozenset(
    {
        DegradationCode.INJECTION_FAILED,
        DegradationCode.LISTENER_UNAVAILABLE,
        DegradationCode.DRIVER_ELSEWHERE,
        DegradationCode.APPLICATION_UNFINISHED,
        DegradationCode.SUBMISSION_RESUMED,
        DegradationCode.CAPTURE_UNAVAILABLE,
        DegradationCode.NO_EVENTS,
        DegradationCode.NOT_SUBMITTED,
    }
)
"""Degradations of the worker that explain why there are no events."""
_UNDELIVERED = _WITHOUT_LISTENER | {DegradationCode.DELIVERY_INCOMPLETE}
"""Degradations that explain missing events where a driver in a cluster delivers the events."""


def incomplete(application: SparkApplication, is_delivered: bool = False) -> list[Degradation]:
    """Report that an application has no events, or that its events lack its start or its end.

    :param is_delivered: whether the application's driver delivers the events. If so, a missing end
        is not reported: without ``spark.stop()`` an application ends only after its Python code,
        which has delivered the events by then
    """
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
    if not application.finished and not is_delivered:
        missing.append(
            Degradation(
                DegradationCode.APPLICATION_UNFINISHED,
                "The application never reported its end: its driver was killed, so its last "
                "actions may be missing.",
            )
        )
    return missing


def left_out(report: ReadReport, application: SparkApplication) -> list[Degradation]:
    """Report the events, lines and facets of the event file that were not merged."""
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
