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
from airflow_provider_sparklineage.model.terms import Outcome
from airflow_provider_sparklineage.operators.masking import masked
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID
from airflow_provider_sparklineage.settings.option_kinds import KeepCaptures
from airflow_provider_sparklineage.spark.capture import bundle as bundles
from airflow_provider_sparklineage.spark.capture.lines import ReadReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.event.pipeline import Events
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.lineage.declared_and_last_known import Completed
    from airflow_provider_sparklineage.model.last_run import BothForms
    from airflow_provider_sparklineage.model.rules import PartitionRules
    from airflow_provider_sparklineage.operators.attempt.submit import Capture
    from airflow_provider_sparklineage.operators.attempt.timing import Deadline
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import (
        CaptureBundle,
        CaptureLocation,
        Manifest,
    )
    from airflow_provider_sparklineage.spark.capture.receiver import Receiver


log = logger(__name__)

# The modules of the merge are imported in functions: this module is imported before the submission,
# which their import would delay more than all else.


class Collected(NamedTuple):
    """The capture, and the try's event in two forms: as it is kept, and as the backend gets it."""

    capture: Capture
    events: Events


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
        missing = _missing_events(capture.own_files.receiver, deadline.left)
        capture = _ended(capture, outcome, missing)
        capture = received(capture, deadline)
        merged = _merged(capture.bundle, last_known, deadline)
        if has_failed(merged.lineage):
            outcome = Outcome.FAIL
            del merged  # two lineages of a large job may not fit into memory
            deadline.begin(timeout_s)
            capture = _ended(_unread(capture), outcome)
            merged = _merged(capture.bundle, last_known, deadline)
        if capture.settings.relay_spark_events:
            from airflow_provider_sparklineage.operators.attempt.publish import relayed

            # Relaying gets time of its own: has_failed() may have taken long.
            deadline.begin(timeout_s)
            lineage = relayed(merged.lineage, capture.bundle, task, deadline)
            merged = merged._replace(lineage=lineage)
        collected = _with_events(capture, merged, deadline)
    except (Exception, AirflowTaskTimeout) as error:
        return given_up(capture, outcome, last_known, deadline, error)
    _end(collected, merged.lineage, deadline)
    return collected


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
    lineage, collected = _rest(capture, outcome, last_known, deadline)
    _end(collected, lineage, deadline)
    return collected


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
    own, location = capture.bundle, capture.settings.capture_location
    earlier = _earlier_bundle(own, location, deadline, capture.resumed_id)
    if earlier is None:
        problem = (
            "The job had been submitted by an earlier try, whose capture bundle is not here, "
            "so what it read and wrote is unknown. A capture_location that all workers reach, "
            "a mount or a URL, keeps it."
        )
        return capture.noted((DegradationCode.SUBMISSION_RESUMED, problem), remote="")
    theirs = earlier.manifest
    problem = (
        f"The job had been submitted by try {theirs.try_number}; this event has what the bundle of "
        "that try captured."
    )
    return replace(capture, bundle=replace(earlier, manifest=own.manifest)).noted(
        (DegradationCode.SUBMISSION_RESUMED, problem),
        application_run_id=theirs.application_run_id,
        injected=theirs.injected,
        versions={**theirs.versions, **own.manifest.versions},
        remote=theirs.remote,
    )


def _earlier_bundle(
    own: CaptureBundle, location: CaptureLocation, deadline: Deadline, resumed_id: str
) -> CaptureBundle | None:
    """Find the bundle of the try that submitted the job; None if it is not found.

    If the driver delivers to a store, the earlier try may have run on another worker. Then the
    bundle has the folder of this try, and the manifest of the earlier one.

    :param own: the bundle of this try, which is removed if another one is found
    :param resumed_id: the id by which Airflow knows the job
    """
    if not own.manifest.remote:
        with suppress(Exception):
            if earlier := bundles.earlier_try(location.folder, own.manifest):
                own.remove()
                return earlier
        return None
    from airflow_provider_sparklineage.spark.capture import remote_bundles

    budget = deadline.part(_FIND_S, _KEPT_S)
    remote_bundles.remove(own.manifest.remote, budget)  # no driver is going to deliver there
    try:
        theirs = remote_bundles.earlier_try(location.url, own.manifest, budget, resumed_id)
    except CaptureError as error:
        log.debug("%s", error)
        return None
    return None if theirs is None else replace(own, manifest=theirs)


def _ended(
    capture: Capture, outcome: Outcome, problems: Iterable[tuple[DegradationCode, str]] = ()
) -> Capture:
    """Note that the job has ended; this is saved before other steps, which may take long."""
    return capture.noted(*problems, ended=datetime.now(UTC), outcome=str(outcome))


_ON_ITS_WAY_S = 2.0
"""Longest wait for the last events of a driver that has just ended."""


def _missing_events(
    receiver: Receiver | None, seconds: float
) -> tuple[tuple[DegradationCode, str], ...]:
    """Close a receiver, as Spark has ended; give a degradation if it got no event or lost one.

    :param receiver: None if the driver does not send its events to this worker
    :param seconds: time left for collecting and merging; the receiver waits for the last events for
        at most a quarter of this time
    """
    if receiver is None:
        return ()
    receiver.close(min(_ON_ITS_WAY_S, seconds / 4))
    problems = []
    if not receiver.events:
        tokens = ""
        if receiver.refused:
            tokens = f" {receiver.refused} request(s) did not have the token of this try."
        problem = (
            f"The driver ran in a cluster, and no event of it came to {receiver.url}, where this "
            f"worker listened.{tokens} If the job did start a SparkSession, look in the driver's "
            "log for messages of HttpTransport, and let drivers reach [sparklineage] "
            "capture_endpoint."
        )
        problems.append((DegradationCode.DRIVER_ELSEWHERE, problem))
    if receiver.lost:
        problem = (
            f"{len(receiver.lost)} event(s) that the driver sent to this worker were not taken: "
            f"{receiver.lost[0]}."
        )
        problems.append((DegradationCode.DELIVERY_INCOMPLETE, problem))
    return tuple(problems)


# Each call to the store has a time limit, and a failure of the store is a degradation. The module
# that calls the store is imported only if a driver in a cluster delivers to one.

_FIND_S = 10.0
_END_S = 5.0
_KEPT_S = 2.0  # once Airflow ends the process, these seconds stay reserved for collecting
_FOR_RECEIVING = 2 / 3
"""The part of the time that is for receiving; the rest is for merging the received files."""


def received(capture: Capture, deadline: Deadline) -> Capture:
    """Fetch into the bundle the files that a driver in a cluster has delivered."""
    manifest, path = capture.bundle.manifest, capture.bundle.path
    if not manifest.remote:
        return capture
    from airflow_provider_sparklineage.spark.capture import remote_bundles

    if capture.is_refused:
        capture = capture.noted(remote="")
        remote_bundles.remove(manifest.remote, deadline.part(_END_S, _KEPT_S))
        return capture
    if path is None:
        return capture
    budget = deadline.budget.part(_FOR_RECEIVING)
    delivered = remote_bundles.received(manifest, path, budget, waits=True)
    problems = ((d.code, d.message) for d in delivered.degradations)
    capture = replace(capture, is_delivered=delivered.is_complete)
    return capture.noted(*problems, degradations=delivered.earlier)


# The merge of the bundle, and the completion of its gaps.


def _merged(bundle: CaptureBundle, last_known: BothForms, deadline: Deadline) -> Completed:
    from airflow_provider_sparklineage.lineage.bundle import task_lineage
    from airflow_provider_sparklineage.lineage.declared_and_last_known import completed

    versions_by_schema = _versions_by_schema(bundle.manifest)
    lineage = task_lineage(bundle, deadline.allowance())
    return completed(lineage, bundle.manifest, last_known, versions_by_schema=versions_by_schema)


def _versions_by_schema(manifest: Manifest) -> bool:
    from airflow_provider_sparklineage.event.backends import backend_of

    return backend_of(manifest.backend).versions_by_schema


def _unread(capture: Capture) -> Capture:
    """Give the capture with an empty report, so that a second merge does not count events twice."""
    return replace(capture, bundle=replace(capture.bundle, report=ReadReport()))


def _with_events(capture: Capture, merged: Completed, deadline: Deadline) -> Collected:
    from airflow_provider_sparklineage.event.document import header
    from airflow_provider_sparklineage.event.pipeline import events_of

    lineage, as_sent, last_known = merged
    if last_known is not None:
        capture = capture.noted(last_known=last_known)
    # Making the event always has its part of the time, even if a callback or the relaying has used
    # up more than all.
    timeout = capture.settings.collect_timeout.total_seconds()
    deadline.begin(max(deadline.left, timeout * (1 - Stage.MERGING)))
    bundle, how = capture.bundle, capture.settings.adaptation
    form, of = bundle.manifest.representation, header(bundle.manifest, lineage.application)
    if as_sent is not None:
        as_sent = replace(as_sent, degradations=lineage.degradations)
    left = deadline.allowance(Stage.MERGING)
    events = events_of(lineage, how, bundle.report, form, masked, of, left, as_sent)
    return Collected(capture, events)


def _rest(
    capture: Capture, outcome: Outcome, last_known: BothForms, deadline: Deadline
) -> tuple[TaskLineage, Collected]:
    """Make an event without merged lineage; never raises.

    The event has the declared datasets and the datasets of the last run. If it cannot be made with
    these, it has only the degradations; if that fails too, it has only the header.
    """
    manifest = capture.bundle.manifest
    try:
        rest = _without(manifest, capture.settings.partitioning, outcome, last_known)
        return rest.lineage, _with_events(capture, rest, deadline)
    except (Exception, AirflowTaskTimeout):  # a declaration may be the reason
        from airflow_provider_sparklineage.lineage.dataset import TaskLineage

        log.debug("What is declared cannot be reported.", exc_info=True)
        lineage = TaskLineage(outcome, degradations=manifest.degradations)
    try:
        from airflow_provider_sparklineage.lineage.declared_and_last_known import Completed

        return lineage, _with_events(capture, Completed(lineage), deadline)
    except (Exception, AirflowTaskTimeout):  # a defect in making facets
        from airflow_provider_sparklineage.event.document import empty, header
        from airflow_provider_sparklineage.event.pipeline import Events

        log.warning("The lineage of this try cannot be reported.", exc_info=True)
        bare = empty(header(manifest, lineage.application), outcome)
        return lineage, Collected(capture, Events(bare, bare))


def _without(
    manifest: Manifest, rules: PartitionRules, outcome: Outcome, last_known: BothForms
) -> Completed:
    """Give the lineage of a try whose bundle was not merged: declared datasets and degradations."""
    from airflow_provider_sparklineage.lineage.declared_and_last_known import (
        completed,
        declared_lineage,
    )

    versions_by_schema = _versions_by_schema(manifest)
    lineage = declared_lineage(
        manifest.declared_inputs,
        manifest.declared_outputs,
        manifest.expectations,
        rules,
        manifest.limits,
    )
    degradations = (*manifest.degradations, *lineage.degradations)
    lineage = replace(lineage, outcome=outcome, degradations=degradations)
    return completed(lineage, manifest, last_known, versions_by_schema=versions_by_schema)


def _end(collected: Collected, lineage: TaskLineage, deadline: Deadline) -> None:
    # By now there is an event to send; if cleaning up fails, the next try sweeps.
    with suppress(Exception, AirflowTaskTimeout):
        _clean_up(collected.capture, lineage, collected.events.kept, deadline)


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
    """List the degradations that the user must be warned of, as messages.

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
    """Keep or remove the bundle, and log all that the user must be warned of, as one warning."""
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
