"""Collect the driver's reports after the job, and merge them into the event of the try.

Nothing here raises, not even Airflow's task timeout if that fires in here: Spark's end alone
decides the task's outcome. Each failure becomes a degradation in the event; all failures that need
a person's attention are in one warning. While the job runs, the modules that are needed after it
are imported.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from msgspec.structs import replace

from airflow_provider_sparklineage.model.allowance import Stage
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError, NotAwaitedError
from airflow_provider_sparklineage.model.last_run import NO_LAST_RUN, BothForms
from airflow_provider_sparklineage.model.terms import Outcome
from airflow_provider_sparklineage.operators.masking import masked
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID
from airflow_provider_sparklineage.settings.option_kinds import KeepCaptures
from airflow_provider_sparklineage.spark.capture import bundle as bundles
from airflow_provider_sparklineage.spark.capture.reports import ReadReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.event.pipeline import Made
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.operators.attempt.submit import Capture
    from airflow_provider_sparklineage.operators.attempt.timing import Deadline
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest
    from airflow_provider_sparklineage.spark.capture.receiver import Receiver


log = logger(__name__)

# The modules of the merge are imported in functions: this module is imported before the submission,
# which their import would delay more than all else.


class Collected(NamedTuple):
    """The capture, and the try's event in two forms: as it is kept, and as the backend gets it."""

    capture: Capture
    made: Made


def collect(
    capture: Capture,
    outcome: Outcome,
    has_failed: Callable[[TaskLineage], bool],
    last_known: BothForms,
    task: object,
    deadline: Deadline,
) -> Collected:
    """Collect the driver's reports, and merge them into the event of the try.

    :param outcome: outcome of the job
    :param has_failed: called with the collected lineage; gives whether the task fails because of
        that lineage. If so, the bundle is merged again as the bundle of a failed task, so that the
        event that is sent and the bundle that is kept agree
    :param last_known: the last successful run, whose datasets fill the gaps of this try's lineage
    :param task: the operator, for which Airflow's emission policy is asked
    :param deadline: its clock is started here, with ``collect_timeout``
    """
    try:
        if capture.is_resumed:
            capture = resumed(capture, deadline)
        if not capture.is_awaited:
            raise _not_awaited(capture)  # noqa: TRY301  (handled like all other failures here)
        timeout_s = capture.settings.collect_timeout.total_seconds()
        deadline.begin(timeout_s)
        capture = _without_receiver(capture, deadline.left)
        capture = capture.noted(ended=datetime.now(UTC), outcome=str(outcome))
        capture = _received(capture, deadline)
        completed = _completed(capture, _merged(capture, deadline), last_known)
        if has_failed(completed.lineage):
            outcome = Outcome.FAIL
            del completed  # two lineages of a large job may not fit into memory
            deadline.begin(timeout_s)
            capture = _unread(capture).noted(
                ended=datetime.now(UTC), outcome=str(outcome), last_known=None
            )
            completed = _completed(capture, _merged(capture, deadline), last_known)
        if capture.settings.relay_spark_events:
            from airflow_provider_sparklineage.operators.attempt.publish import relayed

            # Relaying gets time of its own: has_failed() may have taken long.
            deadline.begin(timeout_s)
            lineage = relayed(completed.lineage, capture.bundle, task, deadline)
            completed = completed._replace(lineage=lineage)
        made = _event(completed, deadline)
    except (Exception, AirflowTaskTimeout) as error:
        return given_up(capture, outcome, last_known, deadline, error)
    _end(completed, made.kept, deadline)
    return Collected(completed.capture, made)


def given_up(
    capture: Capture,
    outcome: Outcome,
    last_known: BothForms,
    deadline: Deadline,
    error: BaseException,
) -> Collected:
    """Make the event of a try whose lineage cannot be collected.

    :param error: the reason, which becomes a degradation
    """
    log.debug("Collecting lineage failed.", exc_info=error)
    capture = capture.degraded(*_reason(error))
    completed, made = _rest(capture, outcome, last_known, deadline)
    _end(completed, made.kept, deadline)
    return Collected(completed.capture, made)


def _not_awaited(capture: Capture) -> NotAwaitedError:
    """Make the error for a job whose end spark-submit did not await.

    The error names the command that collects the lineage later, if the manifest has a task.
    """
    problem = (
        "spark-submit did not wait for the end of the job, which is still running as far as is "
        "known, so what it reads and writes is not in this event."
    )
    task, conn_id = capture.bundle.manifest.task, capture.lineage_conn_id
    if task is None:
        return NotAwaitedError(problem)
    more = () if conn_id == DEFAULT_CONN_ID else ("--conn-id", conn_id)
    return NotAwaitedError(problem, f"When it has ended: {bundles.collect_command(task, *more)}")


# Before the merge: the events and files that a driver has sent or delivered come into the bundle.


def resumed(capture: Capture, deadline: Deadline) -> Capture:
    """Use the captured files of the earlier try that submitted the job, if they can be found.

    In the events in these files, the parent of the application is the run of the earlier try. A
    degradation is noted, whether or not the files are found.
    """
    capture.own_files.stop_listening()  # the driver sends to the worker of the earlier try
    capture, theirs = _with_earlier(capture, deadline)
    if theirs is None:
        return capture.noted(remote="").degraded(
            DegradationCode.SUBMISSION_RESUMED,
            "The job had been submitted by an earlier try, whose capture bundle is not here, "
            "so what it read and wrote is unknown. A capture_location that all workers reach, "
            "a mount or a URL, keeps it.",
        )
    capture = capture.noted(
        application_run_id=theirs.application_run_id,
        injected=theirs.injected,
        versions={**theirs.versions, **capture.bundle.manifest.versions},
        remote=theirs.remote,
    )
    number = theirs.task.try_number if theirs.task else 0
    return capture.degraded(
        DegradationCode.SUBMISSION_RESUMED,
        f"The job had been submitted by try {number}; this event has what the bundle of that "
        "try captured.",
    )


def _with_earlier(capture: Capture, deadline: Deadline) -> tuple[Capture, Manifest | None]:
    """Give the capture with the bundle of the try that submitted the job, and its manifest.

    If the driver delivers to a store, the capture is not changed. If the try is not found, the
    manifest is None.
    """
    own, location = capture.bundle, capture.settings.capture_location
    if own.manifest.remote:
        # The earlier try's bundle may be on another worker, but the files that its driver delivered
        # are in the store.
        earlier = earlier_manifest(own.manifest, location.url, deadline, capture.resumed_id)
        return capture, earlier
    with suppress(Exception):
        if theirs := bundles.earlier_try(location.folder, own.manifest):
            capture = replace(capture, bundle=replace(theirs, manifest=own.manifest))
            own.remove()
            return capture, theirs.manifest
    return capture, None


def _without_receiver(capture: Capture, seconds: float) -> Capture:
    """Close the receiver, as Spark has ended, and note a degradation for missing events.

    :param seconds: time left for collecting and merging; the receiver waits for the last events for
        at most a quarter of this time
    """
    receiver = capture.own_files.receiver
    if receiver is None:
        return capture
    receiver.close(min(_ON_ITS_WAY_S, seconds / 4))
    for code, problem in _missing_events(receiver):
        capture = capture.degraded(code, problem)
    return capture


def _received(capture: Capture, deadline: Deadline) -> Capture:
    """Fetch into the bundle the files that a driver in a cluster has delivered."""
    manifest, path = capture.bundle.manifest, capture.bundle.path
    if not manifest.remote:
        return capture
    if capture.is_refused:
        withdraw(manifest, deadline)
        return capture.noted(remote="")
    if path is None:
        return capture
    from airflow_provider_sparklineage.spark.capture import remote_bundles

    budget = deadline.budget.part(_FOR_RECEIVING)
    delivered = remote_bundles.received(manifest, path, budget, waits=True)
    codes = {degradation.code for degradation in delivered.degradations}
    is_complete = DegradationCode.DELIVERY_INCOMPLETE not in codes
    capture = replace(capture, is_delivered=delivered.has_ended and is_complete)
    capture = capture.noted(degradations=delivered.still_missing(manifest))
    for degradation in delivered.degradations:
        capture = capture.degraded(degradation.code, degradation.message)
    return capture


_ON_ITS_WAY_S = 2.0
"""Longest wait for the last events of a driver that has just ended."""


def _missing_events(receiver: Receiver) -> Iterator[tuple[DegradationCode, str]]:
    """Yield a degradation if a closed receiver got no events, and one if it lost some."""
    if not receiver.events:
        tokens = ""
        if receiver.refused:
            tokens = f" {receiver.refused} request(s) did not have the token of this try."
        yield (
            DegradationCode.DRIVER_ELSEWHERE,
            f"The driver ran in a cluster, and no event of it came to {receiver.url}, where this "
            f"worker listened.{tokens} If the job did start a SparkSession, look in the driver's "
            "log for messages of HttpTransport, and let drivers reach [sparklineage] "
            "capture_endpoint.",
        )
    if receiver.lost:
        yield (
            DegradationCode.DELIVERY_INCOMPLETE,
            f"{len(receiver.lost)} event(s) that the driver sent to this worker were not taken: "
            f"{receiver.lost[0]}.",
        )


# The remote folder to which a driver in a cluster delivers. Each call to the store has a time
# limit, and a failure of the store is a degradation. The modules that call the store are imported
# only if there is such a driver.

_FIND_S = 10.0
_END_S = 5.0
_KEPT_S = 2.0  # once Airflow ends the process, these seconds stay reserved for collecting
_FOR_RECEIVING = 2 / 3
"""The part of the time that is for receiving; the rest is for merging the received files."""


def withdraw(manifest: Manifest, deadline: Deadline) -> None:
    """Remove a try's remote folder, to which no driver is going to deliver."""
    from airflow_provider_sparklineage.spark.capture import remote_bundles

    remote_bundles.remove(manifest.remote, deadline.part(_END_S, _KEPT_S))


def earlier_manifest(
    own: Manifest, location: str, deadline: Deadline, resumed_id: str
) -> Manifest | None:
    """Find the manifest of the try that submitted the job, on any worker; None if not found.

    No driver is going to deliver to the remote folder of this try, so the folder is removed.

    :param own: manifest of this try
    :param location: URL of the capture location
    :param resumed_id: the id by which Airflow knows the job
    """
    from airflow_provider_sparklineage.spark.capture import remote_bundles

    budget = deadline.part(_FIND_S, _KEPT_S)
    remote_bundles.remove(own.remote, budget)
    try:
        return remote_bundles.earlier_try(location, own, budget, resumed_id)
    except CaptureError as error:
        log.debug("%s", error)
        return None


def end_remote_folder(
    manifest: Manifest, settings: Settings, deadline: Deadline, *, keep: bool
) -> None:
    """Keep or remove the remote folder of a try, and now and then remove old folders.

    :param keep: whether a driver may still deliver there, or a later try or a person may need the
        files in it
    """
    from airflow_provider_sparklineage.spark.capture import remote_bundles

    budget = deadline.part(_END_S, _KEPT_S)
    if keep:
        try:
            remote_bundles.announce(manifest, budget)
        except CaptureError as error:
            log.debug("%s", error)
    else:
        remote_bundles.remove(manifest.remote, budget)
    remote_bundles.sweep_at_times(
        settings.capture_location,
        older_than=settings.capture_retention,
        now=datetime.now(UTC),
        budget=budget,
    )


# The merge of the bundle, and the completion of its gaps.


def _merged(capture: Capture, deadline: Deadline) -> TaskLineage:
    from airflow_provider_sparklineage.lineage.bundle import task_lineage

    return task_lineage(capture.bundle, deadline.budget.part(Stage.MERGING))


def _unread(capture: Capture) -> Capture:
    """Give the capture with an empty report, so that a second merge does not count events twice."""
    return replace(capture, bundle=replace(capture.bundle, report=ReadReport()))


class _Completed(NamedTuple):
    """The lineage of a try; the datasets of the last successful run fill its gaps.

    :param lineage: the lineage, filled from the kept form of the last run's event
    :param as_sent: the lineage, filled from the form that the backend got; None if both forms are
        the same
    """

    capture: Capture
    lineage: TaskLineage
    as_sent: TaskLineage | None = None


def _completed(capture: Capture, lineage: TaskLineage, last_known: BothForms) -> _Completed:
    from airflow_provider_sparklineage.event.backends import backend_of
    from airflow_provider_sparklineage.lineage.declared_and_last_known import Completion

    kept, sent = last_known
    manifest = capture.bundle.manifest
    missing = Completion(
        lineage,
        manifest.declared_inputs,
        manifest.declared_outputs,
        versions_by_schema=backend_of(manifest.backend).versions_by_schema,
    )
    if kept == NO_LAST_RUN or not missing.is_needed:
        return _Completed(capture, lineage)
    as_sent = None if sent is kept else missing.by(sent)
    return _Completed(capture.noted(last_known=kept), missing.by(kept), as_sent)


def _event(completed: _Completed, deadline: Deadline) -> Made:
    from airflow_provider_sparklineage.event.pipeline import merged_events

    capture, lineage, as_sent = completed
    # Making the event always has its part of the time, even if a callback or the relaying has used
    # up more than all.
    timeout = capture.settings.collect_timeout.total_seconds()
    deadline.begin(max(deadline.left, timeout * (1 - Stage.MERGING)))
    bundle, how = capture.bundle, capture.settings.leaving
    made = merged_events(bundle, lineage, how, masked, deadline.allowance(Stage.MERGING))
    if as_sent is None:
        return made
    as_sent = replace(as_sent, degradations=lineage.degradations)
    sent = merged_events(bundle, as_sent, how, masked, deadline.allowance(Stage.MERGING))
    return made._replace(adapted=sent.adapted)


def _rest(
    capture: Capture, outcome: Outcome, last_known: BothForms, deadline: Deadline
) -> tuple[_Completed, Made]:
    """Make an event without merged lineage; never raises.

    The event has the declared datasets and the datasets of the last run. If it cannot be made with
    these, it has only the degradations; if that fails too, it has only the header.
    """
    try:
        completed = _completed(capture, _without(capture, outcome), last_known)
        return completed, _event(completed, deadline)
    except (Exception, AirflowTaskTimeout):  # a declaration may be the reason
        from airflow_provider_sparklineage.lineage.dataset import TaskLineage

        log.debug("What is declared cannot be reported.", exc_info=True)
        lineage = TaskLineage(outcome, degradations=capture.bundle.manifest.degradations)
        completed = _Completed(capture, lineage)
    try:
        return completed, _event(completed, deadline)
    except (Exception, AirflowTaskTimeout):  # a defect in making facets
        from airflow_provider_sparklineage.event.document import empty
        from airflow_provider_sparklineage.event.pipeline import Made, header

        log.warning("The lineage of this try cannot be reported.", exc_info=True)
        bare = empty(header(capture.bundle, lineage), lineage.outcome)
        return completed, Made(bare, bare)


def _without(capture: Capture, outcome: Outcome) -> TaskLineage:
    """Give the lineage of a try whose bundle was not merged: declared datasets and degradations."""
    from airflow_provider_sparklineage.lineage.declared_and_last_known import declared_lineage

    manifest = capture.bundle.manifest
    lineage = declared_lineage(
        manifest.declared_inputs,
        manifest.declared_outputs,
        manifest.expectations,
        capture.settings.partitioning,
        manifest.limits,
    )
    degradations = (*manifest.degradations, *lineage.degradations)
    return replace(lineage, outcome=outcome, degradations=degradations)


def _end(completed: _Completed, event: Event, deadline: Deadline) -> None:
    # By now there is an event to send; if cleaning up fails, the next try sweeps.
    with suppress(Exception, AirflowTaskTimeout):
        _clean_up(completed.capture, completed.lineage, event, deadline)


def _reason(error: BaseException) -> tuple[DegradationCode, str]:
    """Give the degradation of an error in collecting: its code, and a message with the fix."""
    if isinstance(error, AirflowTaskTimeout):
        return (
            DegradationCode.COLLECTION_CUT,
            "The task's execution_timeout fired while its lineage was being collected, after "
            "Spark had ended; give the task a little more time.",
        )
    if isinstance(error, NotAwaitedError):
        return DegradationCode.APPLICATION_UNFINISHED, str(error)
    if isinstance(error, CaptureError):
        return DegradationCode.CAPTURE_UNAVAILABLE, str(error)
    return (
        DegradationCode.MERGE_FAILED,
        f"The collected events could not be merged ({type(error).__name__}: {error}); please "
        "report this with the capture bundle.",
    )


def _serious(lineage: TaskLineage, event: Event) -> list[str]:
    """List the degradations that need a person's attention, as messages.

    They are read from the event, because making the event can add degradations; only if the event
    has none, from the lineage.
    """
    from airflow_provider_sparklineage.event.model import CAPTURE_KEY

    facet = event["run"]["facets"].get(CAPTURE_KEY, {})
    entries = facet.get("degradations", ())
    named = [d["message"] for d in entries if DegradationCode(d["code"]).needs_attention]
    return named or [d.message for d in lineage.degradations if d.code.needs_attention]


def is_kept(settings: Settings, lineage: TaskLineage, event: Event) -> bool:
    """Whether the bundle of a try is kept after its lineage was collected."""
    if settings.keep_captures is not KeepCaptures.DEGRADED:
        return settings.keep_captures is KeepCaptures.ALL
    return lineage.outcome is Outcome.FAIL or bool(_serious(lineage, event))


def _clean_up(capture: Capture, lineage: TaskLineage, event: Event, deadline: Deadline) -> None:
    """Keep or remove the bundle, and log all that needs a person's attention as one warning."""
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
    if not deadline.is_killed:  # a killed process has no time; the next try sweeps
        if bundle.manifest.remote:
            is_resumable = capture.is_resumable or capture.is_submitted
            may_go_on = lineage.outcome is Outcome.FAIL and is_resumable
            may_deliver = not capture.is_delivered
            end_remote_folder(
                bundle.manifest, settings, deadline, keep=keep or may_go_on or may_deliver
            )
        bundles.sweep_at_times(
            settings.capture_location.folder,
            older_than=settings.capture_retention,
            now=datetime.now(UTC),
        )


# Modules that are needed after the job are imported while it runs, when the task only waits for it,
# in a thread. That is safe: the task would import these modules anyway, and an import that fails in
# the thread fails again, and is reported, where the module is needed. The thread is joined before
# the task goes on: Airflow's OpenLineage provider forks then, and a lock that an import holds would
# never be released in the child.


IMPORT_DELAY_S = 1.0
"""Seconds to wait before importing: spark-submit, which the imports must not delay, has started by
then, and no Spark job has ended."""


@contextmanager
def importing_meanwhile() -> Iterator[None]:
    """Import modules in a thread if the block runs longer than :data:`IMPORT_DELAY_S`.

    The block's result or exception is not changed.
    """
    timer = threading.Timer(IMPORT_DELAY_S, _import_for_collecting)
    timer.daemon = True
    with suppress(RuntimeError):  # there may be no more threads
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with suppress(AirflowTaskTimeout):  # the job has ended
            if timer.is_alive():
                timer.join()


def _import_for_collecting() -> None:
    with suppress(Exception):
        from airflow_provider_sparklineage.event import (  # noqa: F401
            archive,
            column_lineage,
            pipeline,
        )
        from airflow_provider_sparklineage.event.steps import fitting  # noqa: F401
        from airflow_provider_sparklineage.lineage import bundle  # noqa: F401
        from airflow_provider_sparklineage.operators import partition_check  # noqa: F401
        from airflow_provider_sparklineage.operators.attempt import publish  # noqa: F401
        from airflow_provider_sparklineage.spark.capture import events  # noqa: F401
