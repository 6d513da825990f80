"""Turn a capture bundle into the lineage of its task.

``execute()``, ``sparklineage merge`` and a replay all call :func:`merged_lineage`, so they give the
same lineage. The function reads the listener's events and the observer's records, brings the two
together (:mod:`.observed`), merges them (:mod:`.merge`), and adds the problems met while reading
the bundle: events that are missing, left out, or not delivered.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accumulation import (
    SparkApplication,
    accumulate,
)
from airflow_provider_sparklineage.lineage.application.repairs import (
    saved_models,
    with_canonical_names,
)
from airflow_provider_sparklineage.lineage.declared_and_last_known import Completed, completed
from airflow_provider_sparklineage.lineage.merge import merge
from airflow_provider_sparklineage.lineage.observed.binding import Observed
from airflow_provider_sparklineage.lineage.observed.corrections import corrected
from airflow_provider_sparklineage.model.allowance import (
    UNLIMITED,
    Allowance,
    SpentError,
    Stage,
    cut_short,
    garbage_collector_paused,
)
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.model.last_run import NO_LAST_RUN, BothForms
from airflow_provider_sparklineage.model.terms import Outcome
from airflow_provider_sparklineage.spark.capture.bundle import OBSERVER
from airflow_provider_sparklineage.spark.capture.observations import Messages
from airflow_provider_sparklineage.spark.capture.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.lineage.observed.accesses import Observations
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.spark.capture.bundle import (
        CaptureBundle,
        DriverAttempt,
        Manifest,
    )
    from airflow_provider_sparklineage.spark.capture.lines import ReadReport
    from airflow_provider_sparklineage.spark.capture.observations import ObservationReport


# --- the lineage ----------------------------------------------------------------------------------


def task_lineage(bundle: CaptureBundle, allowance: Allowance = UNLIMITED) -> TaskLineage:
    """Read a capture bundle, and merge it to the lineage of its task.

    Inputs, outputs or facets that are missing come from the last successful run, if the worker has
    noted it in the manifest (:func:`.with_last_run`).

    :param allowance: see :func:`merged_lineage`
    :raise CaptureError: if the event file exists but cannot be read
    """
    known = bundle.manifest.last_known or NO_LAST_RUN
    # The worker puts the last run into the manifest only if lineage was missing without it: for a
    # try that succeeded, only if its backend versions datasets by schema.
    last = BothForms(known, known, versions_by_schema=True)
    return lineage_of_try(bundle, last, allowance).lineage


def lineage_of_try(bundle: CaptureBundle, last_known: BothForms, allowance: Allowance) -> Completed:
    """Merge the bundle of a try that has just ended.

    Inputs, outputs or facets that are missing come from the last successful run
    (:func:`.with_last_run`).

    :param last_known: the last successful run
    :param allowance: see :func:`merged_lineage`
    :raise CaptureError: if the event file exists but cannot be read
    """
    lineage = merged_lineage(bundle, allowance)
    return completed(lineage, bundle.manifest, last_known)


@garbage_collector_paused()
def merged_lineage(bundle: CaptureBundle, allowance: Allowance) -> TaskLineage:
    """Merge a capture bundle to the lineage of its task, as Spark reports it.

    :param allowance: the limits of time and memory; events that do not fit are not merged
    :raise CaptureError: if the event file exists but cannot be read
    """
    manifest = bundle.manifest
    reading = Reading(bundle, partial(allowance.is_over, Stage.READING))
    events = reading.events()
    application = accumulate(events, manifest.application_run_id)
    locator = replace(manifest.locator, models=saved_models(application))
    application = with_canonical_names(application, locator)
    witnessed, observations, problems = _observed(
        reading, application, manifest, locator, allowance
    )
    # Missing events are not reported where their reason is known already, or reading was cut.
    is_delivered = bool(manifest.remote)
    reasons = _UNDELIVERED if is_delivered else _WITHOUT_LISTENER
    explained = any(d.code in reasons for d in manifest.degradations)
    met = [] if explained or reading.report.cut else incomplete(application, is_delivered)
    degradations = (
        *manifest.degradations,
        *met,
        *left_out(application),
        *unread_events(reading.report),
        *reading.clock.degradations(),
        *problems,
    )
    if reading.clock.put_back:  # only times bind what was observed to actions
        witnessed, observations = application, None
    lineage = merge(
        witnessed,
        outcome_of(manifest, application),
        declared_inputs=manifest.declared_inputs,
        allowance=allowance,
        declared_outputs=manifest.declared_outputs,
        observations=observations,
        expectations=manifest.expectations,
        locator=locator,
        limits=manifest.limits,
        intermediates=manifest.intermediates,
        column_lineage=manifest.column_lineage,
        is_read=application.events > 0 and not reading.report.cut,
        is_delivered=all(
            d.code is not DegradationCode.DELIVERY_INCOMPLETE for d in manifest.degradations
        ),
    )
    lineage = replace(lineage, degradations=(*degradations, *lineage.degradations))
    return with_attempts(lineage, witnessed, manifest.attempts)


def with_attempts(
    lineage: TaskLineage, application: SparkApplication, attempts: Sequence[DriverAttempt]
) -> TaskLineage:
    """Mark the datasets that only an earlier attempt of the driver accessed.

    A cluster may start the driver of an application again. The lineage has what all attempts did,
    because an attempt that failed may have written. An action belongs to the last attempt that had
    begun before the action.

    :param application: the application, with all actions that were merged
    :param attempts: the attempts in their order; empty if the first one was the only one
    """
    if not attempts:
        return lineage
    read: dict[DatasetName, int] = {}
    written: dict[DatasetName, int] = {}
    last = attempts[-1].number
    for action in application.actions:
        begun = [one.number for one in attempts if one.started <= action.started]
        number = begun[-1] if begun else attempts[0].number
        for of_side, datasets in ((read, action.inputs), (written, action.outputs)):
            for dataset in datasets:
                of_side[dataset.name] = max(number, of_side.get(dataset.name, number))

    def marked(dataset: LineageDataset, of_side: Mapping[DatasetName, int]) -> LineageDataset:
        number = of_side.get(dataset.name, last)
        return dataset if number == last else replace(dataset, attempt=number)

    return replace(
        lineage,
        inputs=tuple(marked(dataset, read) for dataset in lineage.inputs),
        outputs=tuple(marked(dataset, written) for dataset in lineage.outputs),
        attempts=last,
    )


# --- both witnesses -------------------------------------------------------------------------------


def _observed(
    reading: Reading,
    application: SparkApplication,
    manifest: Manifest,
    locator: Locator,
    allowance: Allowance,
) -> tuple[SparkApplication, Observations | None, list[Degradation]]:
    """Read the observer's records, and use them to correct the listener's actions.

    :param reading: reads the records out of the bundle
    :param manifest: the bundle's manifest
    :param locator: finds the dataset and the partition of a path
    :param allowance: when no time is left, no record is used, and a degradation reports it
    :return: the application with the actions that only the observer saw, and without skipped
        writes; the observations, None if the observer wrote nothing or its records were not used;
        and the problems with the records
    """
    try:
        records = reading.records(partial(allowance.is_over, Stage.OBSERVATIONS))
        if not records and not reading.observed.malformed_lines:
            return application, None, [*_nothing_observed(manifest, application)]
        seen = corrected(Observed.of(application, records, locator, allowance))
        observations = seen.observations()
    except CaptureError as error:  # the events are still valid without observations
        return application, None, [Degradation(DegradationCode.OBSERVATIONS_MISSING, str(error))]
    except SpentError as reason:
        text = (
            "The partitions that were observed were left out, and those that the listener reports "
            "are used"
        )
        return application, None, [cut_short(text, reason)]
    problems = [
        *_observer_problems(reading.observed),
        *_outdated_observer(reading.observed, manifest),
        *_unmatched(observations),
    ]
    return seen.application, observations, problems


def _nothing_observed(manifest: Manifest, application: SparkApplication) -> Iterator[Degradation]:
    # A job that ends before it makes a session has no events either, which is reported already.
    if {"py_files", "observer"} & set(manifest.injected) and application.events:
        yield Degradation(
            DegradationCode.OBSERVATIONS_MISSING,
            "The observer wrote nothing, so no partitions are known; another "
            "sitecustomize before ours on the driver's Python path would explain it.",
        )


def _observer_problems(report: ObservationReport) -> Iterator[Degradation]:
    """Report the observer's own errors, and the lines of its file that were not read."""
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
    )
    for messages, code, text in problems:
        if messages.count:
            yield Degradation(code, text.format(messages))


def _outdated_observer(report: ObservationReport, manifest: Manifest) -> Iterator[Degradation]:
    """Report that the driver had an observer of another version than the worker's.

    The worker puts its own observer into each submission, but for drivers that have one in their
    image.
    """
    own = manifest.versions.get(OBSERVER)
    if own is not None and report.observers - {own}:
        yield Degradation(
            DegradationCode.OBSERVER_OUTDATED,
            "The observer in the driver is of another version than this worker's "
            "airflow-provider-sparklineage, so partitions and columns may be missing. Where the "
            "drivers' image has it, copy the zip there that `sparklineage fetch-listener` leaves "
            "next to the jar.",
        )


def _unmatched(observations: Observations) -> Iterator[Degradation]:
    messages = Messages(observations.unmatched)
    if messages.count:
        text = f"These were read or written, and cannot be named as datasets: {messages}."
        yield Degradation(DegradationCode.OBSERVATION_UNTIED, text)


# --- the outcome ----------------------------------------------------------------------------------


def outcome_of(manifest: Manifest, application: SparkApplication) -> Outcome:
    """Give the outcome of the try, as its worker notes it in the manifest.

    Without such a note, the outcome is COMPLETE if the application reported its end, else FAIL.
    """
    if manifest.outcome:
        return Outcome(manifest.outcome)
    return Outcome.COMPLETE if application.finished else Outcome.FAIL


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


def incomplete(application: SparkApplication, is_delivered: bool) -> Iterator[Degradation]:
    """Report that an application has no events, or that its events lack its start or its end.

    :param is_delivered: whether the application's driver delivers the events. If so, a missing end
        is not reported: the events are delivered when the Python code ends, and without
        ``spark.stop()`` the application ends only after that
    """
    if not application.events:
        yield Degradation(
            DegradationCode.NO_EVENTS,
            "The listener wrote no events of this application. If the job did start a "
            "SparkSession, look in its log for messages of OpenLineageSparkListener, and for "
            "spark.openlineage.disabled.",
        )
        return
    if not application.begun:
        yield Degradation(
            DegradationCode.CAPTURE_UNAVAILABLE,
            "The events begin in the middle of the application: their file was removed or "
            "replaced while the job ran, and what the job had done by then may be missing.",
        )
    if not application.finished and not is_delivered:
        yield Degradation(
            DegradationCode.APPLICATION_UNFINISHED,
            "The application never reported its end: its driver was killed, so its last "
            "actions may be missing.",
        )


def left_out(application: SparkApplication) -> Iterator[Degradation]:
    """Report the events and facets that were read but not merged."""
    if application.foreign_events:
        yield Degradation(
            DegradationCode.FOREIGN_EVENTS,
            f"{application.foreign_events} event(s) in the file are of another application "
            f"than {application.run_id} and were left out.",
        )
    if application.left_out:
        what = ", ".join(f"{count} {what}" for what, count in sorted(application.left_out.items()))
        yield Degradation(
            DegradationCode.COLLECTION_CUT,
            f"The events are more than merging keeps in memory, and {what} were left out.",
        )


def unread_events(report: ReadReport) -> Iterator[Degradation]:
    """Report the lines of the event file that were not read."""
    if report.torn:
        yield Degradation(
            DegradationCode.TORN_EVENT,
            "The last line of the event file is incomplete, because the driver ended while "
            "writing it.",
        )
    if report.malformed_lines:
        named = "; ".join(report.malformed)
        yield Degradation(
            DegradationCode.MALFORMED_EVENTS,
            f"{report.malformed_lines} line(s) cannot be read as OpenLineage run events and "
            f"were left out: {named}.",
        )
    if report.cut:
        yield cut_short(f"Collecting took too long and ended after {report.events} events")
