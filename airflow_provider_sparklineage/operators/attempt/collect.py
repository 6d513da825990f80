"""Collect the driver's reports after the job, and merge them into the lineage of the try.

Collecting never raises, even if Airflow's task timeout fires meanwhile: the end of the Spark job
alone decides the task's outcome. Each failure becomes a degradation of the lineage; all failures
that need a person's attention are in one warning.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, cast

from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from msgspec.structs import replace

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError, NotAwaitedError
from airflow_provider_sparklineage.model.terms import Outcome
from airflow_provider_sparklineage.operators.attempt.submit import safe_degradation
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID
from airflow_provider_sparklineage.settings.option_kinds import KeepCaptures
from airflow_provider_sparklineage.spark.capture import bundle as bundles
from airflow_provider_sparklineage.spark.capture.lines import ReadReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.lineage.declared_and_last_known import Completed
    from airflow_provider_sparklineage.model.last_run import BothForms
    from airflow_provider_sparklineage.operators.attempt.submit import Capture
    from airflow_provider_sparklineage.operators.attempt.timing import Deadline
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.capture.receiver import Receiver


log = logger(__name__)

# The modules of the merge are imported in functions: this module is imported before the submission,
# which their import would delay more than all else.


class Collected(NamedTuple):
    """The outcome of collecting.

    :param capture: the capture, with the degradations of collecting in its manifest
    :param merged: the lineage of the try: for XCom and archive, and for the backend
    """

    capture: Capture
    merged: Completed


def collect(
    capture: Capture,
    outcome: Outcome,
    has_failed: Callable[[TaskLineage], bool],
    last_known: BothForms,
    deadline: Deadline,
) -> Collected:
    """Collect the driver's reports, and merge them into the lineage of the try.

    :param capture: the capture of the try, whose job has ended or is no longer waited for
    :param outcome: outcome of the job
    :param has_failed: called with the collected lineage; gives whether the task fails because of
        that lineage. If so, the bundle is merged again as the bundle of a failed task, so that the
        event that is sent and the bundle that is kept agree
    :param last_known: the last successful run, whose datasets take the place of inputs or outputs
        that are missing in this try's lineage
    :param deadline: the time limit, ``collect_timeout`` from now on; this function starts its clock
    """
    bundle, own_files, settings = capture.bundle, capture.own_files, capture.settings
    timeout_s = settings.collect_timeout.total_seconds()
    try:
        from airflow_provider_sparklineage.lineage.bundle import lineage_of_try
        from airflow_provider_sparklineage.spark.capture import remote_bundles

        if capture.is_resumed:
            own_files.stop_listening()  # the driver sends to the worker of the earlier try
            own_files.stop_following()
            bundle = remote_bundles.resumed(
                bundle,
                settings.capture_location,
                deadline.part(_FIND_S, _KEPT_S),
                capture.resumed_id,
            )
        if not capture.is_awaited:
            raise NotAwaitedError(capture.unsubmitted or _NOT_AWAITED)  # noqa: TRY301  (handled like other failures)
        deadline.begin(timeout_s)
        problems = _of_receiver(own_files.receiver, bundle, deadline)
        noted = (safe_degradation(*problem) for problem in problems)
        # This is saved before other steps, which may take long.
        bundle = bundle.noted(*noted, ended=datetime.now(UTC), outcome=str(outcome))
        if capture.is_refused and bundle.manifest.remote:  # no driver is going to deliver there
            remote_bundles.remove(bundle.manifest.remote, deadline.part(_END_S, _KEPT_S))
            bundle = bundle.noted(remote="")
        elif bundle.manifest.remote and bundle.path is not None:
            capture, bundle = _received(capture, bundle, deadline)
        elif capture.unsubmitted and not _has_events(bundle):
            bundle = bundle.noted(safe_degradation(DegradationCode.NO_EVENTS, capture.unsubmitted))
        merged = lineage_of_try(bundle, last_known, deadline.allowance())
        if has_failed(merged.lineage):
            outcome = Outcome.FAIL
            del merged  # two lineages of a large job may not fit into memory
            deadline.begin(timeout_s)
            # With a new report, as otherwise the second merge would count the events twice.
            bundle = replace(bundle, report=ReadReport())
            bundle = bundle.noted(ended=datetime.now(UTC), outcome=str(outcome))
            merged = lineage_of_try(bundle, last_known, deadline.allowance())
        return _collected(replace(capture, bundle=bundle), merged)
    except (Exception, AirflowTaskTimeout) as error:
        return given_up(replace(capture, bundle=bundle), outcome, last_known, error)


def _of_receiver(
    receiver: Receiver | None, bundle: CaptureBundle, deadline: Deadline
) -> Iterable[tuple[DegradationCode, str]]:
    """Take the last events of a driver without Python; give what is missing, each with a code."""
    if receiver is None:
        return ()
    from airflow_provider_sparklineage.spark.capture import tools

    receiver.close(min(_ON_ITS_WAY_S, deadline.left / 4))
    budget = deadline.part(_END_S, _KEPT_S)
    tools.note(bundle.manifest, budget, has_reported=_has_events(bundle))
    return receiver.problems()


def _received(
    capture: Capture, bundle: CaptureBundle, deadline: Deadline
) -> tuple[Capture, CaptureBundle]:
    """Download the files that drivers in a cluster have delivered; note what is missing."""
    from airflow_provider_sparklineage.spark.capture import remote, tools
    from airflow_provider_sparklineage.spark.submit.submitted_files import observer_digest

    delivered = remote.received(
        bundle.manifest,
        cast("Path", bundle.path),
        deadline.budget.part(_FOR_RECEIVING),
        waits=not capture.unsubmitted,
        follower=capture.own_files.follower,
    )
    if capture.unsubmitted and not delivered.has_begun:
        delivered = delivered.without_driver(capture.unsubmitted)
    budget = deadline.part(_END_S, _KEPT_S)
    tools.note(bundle.manifest, budget, has_reported=delivered.has_begun)
    bundle = bundle.noted(
        *(safe_degradation(d.code, d.message) for d in delivered.degradations),
        degradations=delivered.earlier,
        attempts=delivered.attempts,
        versions={**bundle.manifest.versions, bundles.OBSERVER: observer_digest()},
    )
    return replace(capture, is_delivered=delivered.is_complete), bundle


def _has_events(bundle: bundles.CaptureBundle) -> bool:
    """Whether a driver has written events into the bundle, over a mount."""
    with suppress(OSError):
        return bundle.events_path is not None and bundle.events_path.stat().st_size > 0
    return False


_ON_ITS_WAY_S = 2.0
"""Longest wait for the last events of a driver that has just ended."""

# Each call to the store has a time limit, and a failure of the store is a degradation.
_FIND_S = 10.0
_END_S = 5.0
_KEPT_S = 2.0  # once Airflow ends the process, these seconds stay reserved for collecting
_FOR_RECEIVING = 2 / 3
"""The part of the time that is for receiving; the rest is for merging the received files."""

_NOT_AWAITED = (
    "The task did not wait for the end of the job, which is still running as far as is known, "
    "so what it reads and writes is not in this event."
)


def given_up(
    capture: Capture, outcome: Outcome, last_known: BothForms, error: BaseException
) -> Collected:
    """Give the lineage of a try that cannot be collected, or of which no event can be made.

    It has the declared datasets and those of the last successful run; if they cannot be read, it
    has only the degradations.

    :param capture: the capture of the try
    :param outcome: outcome of the job
    :param last_known: the last successful run
    :param error: the reason, which becomes a degradation
    """
    log.debug("Collecting lineage failed.", exc_info=error)
    code, message = _reason(error, capture)
    capture = capture.degraded(code, message)
    manifest = capture.bundle.manifest
    from airflow_provider_sparklineage.lineage import declared_and_last_known as known

    try:
        merged = known.unmerged(manifest, outcome, last_known)
    except (Exception, AirflowTaskTimeout):  # a declaration may be the reason
        log.debug("The declared datasets cannot be reported.", exc_info=True)
        merged = known.without_datasets(manifest, outcome)
    return _collected(capture, merged)


def _collected(capture: Capture, merged: Completed) -> Collected:
    if merged.last_known is not None:
        bundle = capture.bundle.noted(last_known=merged.last_known)
        capture = replace(capture, bundle=bundle)
    return Collected(capture, merged)


def _reason(error: BaseException, capture: Capture) -> tuple[DegradationCode, str]:
    """Give the degradation of an error in collecting: its code, and a message with the fix.

    :param capture: the capture of the try, for which the fix may give a command
    """
    if isinstance(error, AirflowTaskTimeout):
        return (
            DegradationCode.COLLECTION_CUT,
            "The task's execution_timeout fired while its lineage was being collected, after "
            "Spark had ended; give the task a little more time.",
        )
    if isinstance(error, NotAwaitedError):
        return DegradationCode.APPLICATION_UNFINISHED, f"{error}{_later(capture)}"
    if isinstance(error, CaptureError):
        return DegradationCode.CAPTURE_UNAVAILABLE, str(error)
    return (
        DegradationCode.MERGE_FAILED,
        f"The collected events could not be merged ({type(error).__name__}: {error}); please "
        "report this with the capture bundle.",
    )


def _later(capture: Capture) -> str:
    """Give a sentence with the command that collects the lineage when the job has ended.

    The sentence is empty if the bundle is not that of a task.
    """
    task, conn_id = capture.bundle.manifest.task, capture.lineage_conn_id
    if task is None:
        return ""
    more = () if conn_id == DEFAULT_CONN_ID else ("--conn-id", conn_id)
    return f" This command collects it when it has ended: {bundles.collect_command(task, *more)}"


def _serious(lineage: TaskLineage, event: Event) -> list[str]:
    """List the messages of the degradations that the user must be warned of.

    The degradations are those of the event, because making the event can add some. If the event has
    no such degradation, they are those of the lineage.
    """
    from airflow_provider_sparklineage.event.model import CAPTURE_KEY

    facet = event["run"]["facets"].get(CAPTURE_KEY, {})
    entries = facet.get("degradations", ())
    named = [d["message"] for d in entries if DegradationCode(d["code"]).needs_attention]
    return named or [d.message for d in lineage.degradations if d.code.needs_attention]


def is_kept(settings: Settings, lineage: TaskLineage, event: Event) -> bool:
    """Whether the option ``keep_captures`` keeps the bundle of a try with a collected lineage.

    :param lineage: the collected lineage
    :param event: the event that was made of it, in the form for XCom and archive
    """
    if settings.keep_captures is not KeepCaptures.DEGRADED:
        return settings.keep_captures is KeepCaptures.ALL
    return lineage.outcome is Outcome.FAIL or bool(_serious(lineage, event))


def clean_up(collected: Collected, event: Event, deadline: Deadline) -> None:
    """Keep or remove the capture bundle, and log degradations that need attention as one warning.

    The try's other files are removed. Old bundles of other tries are removed from time to time.

    :param event: the event of the try, in the form for XCom and archive
    :param deadline: tells whether Airflow is ending the process: then no old bundle is removed
    """
    capture, lineage = collected.capture, collected.merged.lineage
    capture.own_files.remove()
    settings, bundle = capture.settings, capture.bundle
    serious = _serious(lineage, event)
    keep = not capture.is_awaited or is_kept(settings, lineage, event)
    where = ""
    try:
        if keep and bundle.path is not None:
            bundle.save()
            where = f" The capture bundle is kept: sparklineage show {bundle.path}"
            if bundle.manifest.remote:
                where += f", or from elsewhere airflow sparklineage show {bundle.manifest.remote}"
        else:
            bundle.remove()
    except CaptureError as error:
        serious.append(str(error))
    bundle.release()
    if serious:
        log.warning("Spark lineage of this try is incomplete. %s%s", " ".join(serious), where)
    elif keep:
        log.info("Spark lineage was collected.%s", where)
    if deadline.is_killed:  # a killed process has no time; the next try sweeps
        return
    location, now = settings.capture_location, datetime.now(UTC)
    if bundle.manifest.remote:
        from airflow_provider_sparklineage.spark.capture import remote_bundles

        is_resumable = capture.is_resumable or capture.is_submitted
        may_go_on = lineage.outcome is Outcome.FAIL and is_resumable
        remote_bundles.end(
            bundle.manifest,
            location,
            deadline.part(_END_S, _KEPT_S),
            keep=keep or may_go_on or not capture.is_delivered,
            older_than=settings.capture_retention,
            now=now,
        )
    bundles.sweep_at_times(location.folder, older_than=settings.capture_retention, now=now)
