"""After the job: the reports of the driver, collected and merged into the event of the try.

Nothing here raises, not even Airflow's task timeout if that fires in here: how Spark ended is the
task's outcome. Whatever goes wrong becomes a degradation in the event, and a problem that needs a
person's attention one warning. While the job runs, the modules that are needed after it are
imported.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from msgspec.structs import replace

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError, NotAwaitedError
from airflow_provider_sparklineage.model.last_run import NO_LAST_RUN, BothForms
from airflow_provider_sparklineage.model.terms import Outcome
from airflow_provider_sparklineage.operators.masking import masked
from airflow_provider_sparklineage.settings.option_kinds import KeepCaptures
from airflow_provider_sparklineage.spark.capture import bundle as retention
from airflow_provider_sparklineage.spark.capture.reports import ReadReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.event.pipeline import Made
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.operators.attempt.capture import TryCapture
    from airflow_provider_sparklineage.operators.attempt.timing import Deadline
    from airflow_provider_sparklineage.settings.resolution import Settings


log = logger(__name__)

# The merge is imported where it is used: this module is imported before the submission, which would
# wait longer for that import than for all else.


def collect(
    capture: TryCapture,
    deadline: Deadline,
    outcome: Outcome,
    has_failed: Callable[[TaskLineage], bool],
    last_known: BothForms,
    task: object,
) -> Made:
    """Collect and merge into the event of the try.

    :param outcome: of the job
    :param has_failed: asked, with what was collected, whether the task fails because of it; then
        what is sent and what the bundle keeps are of a failed task alike
    :param last_known: what stands in for what this try does not know of itself
    :param task: the operator, as Airflow's emission policy wants it
    """
    collecting = _Collecting(capture, last_known)
    try:
        deadline.begin(capture.settings.collect_timeout.total_seconds())
        capture.end_receiving(deadline.left)
        lineage = collecting.completed(collecting.merged(outcome, deadline))
        if has_failed(lineage):
            outcome = Outcome.FAIL
            del lineage  # a large job has no room for two
            deadline.begin(capture.settings.collect_timeout.total_seconds())
            lineage = collecting.completed(collecting.merged_again(outcome, deadline))
        if capture.settings.relay_spark_events:
            from airflow_provider_sparklineage.operators.attempt.publish import relayed

            # Its own time: what has been asked may have taken long.
            deadline.begin(capture.settings.collect_timeout.total_seconds())
            lineage = relayed(lineage, capture.bundle, task, deadline)
        made = collecting.event(lineage, deadline)
    except (Exception, AirflowTaskTimeout) as error:
        return given_up(capture, deadline, outcome, last_known, error)
    _end(capture, deadline, lineage, made.kept)
    return made


def given_up(
    capture: TryCapture,
    deadline: Deadline,
    outcome: Outcome,
    last_known: BothForms,
    error: BaseException,
) -> Made:
    """Make the event of a try whose lineage cannot be collected.

    :param error: why
    """
    log.debug("Collecting lineage failed.", exc_info=error)
    capture.degrade(*_reason(error))
    lineage, made = _Collecting(capture, last_known).rest(outcome, deadline)
    _end(capture, deadline, lineage, made.kept)
    return made


def _end(capture: TryCapture, deadline: Deadline, lineage: TaskLineage, event: Event) -> None:
    # By now there is an event to send; if cleaning up does not work out, the next try sweeps.
    with suppress(Exception, AirflowTaskTimeout):
        _clean_up(capture, lineage, event, deadline)


_FOR_MERGING = 2 / 3
"""The rest is for the event of what was merged until then."""


class _Collecting:
    def __init__(self, capture: TryCapture, last_known: BothForms) -> None:
        self._capture = capture
        self._last_known = last_known
        self._as_sent: TaskLineage | None = None
        """What is completed by what the backend was sent of the last run, if that is another."""

    def merged(self, outcome: Outcome, deadline: Deadline) -> TaskLineage:
        from airflow_provider_sparklineage.lineage.bundle import task_lineage

        self._capture.note(ended=datetime.now(UTC), outcome=str(outcome))
        self._capture.receive(deadline)
        return task_lineage(self._capture.bundle, deadline.budget.part(_FOR_MERGING))

    def merged_again(self, outcome: Outcome, deadline: Deadline) -> TaskLineage:
        """Merge a bundle that was read before, now that the task ends in another way."""
        from airflow_provider_sparklineage.lineage.bundle import task_lineage

        # Reading counts into the report of the bundle, and the last run may not be needed now.
        self._capture.bundle = replace(self._capture.bundle, report=ReadReport())
        self._capture.note(ended=datetime.now(UTC), outcome=str(outcome), last_known=None)
        return task_lineage(self._capture.bundle, deadline.budget.part(_FOR_MERGING))

    def completed(self, lineage: TaskLineage) -> TaskLineage:
        """Let what the last successful run accessed stand in where this try knows nothing."""
        from airflow_provider_sparklineage.event.backends import backend_of
        from airflow_provider_sparklineage.lineage.declared_and_last_known import Completion

        kept, sent = self._last_known
        manifest = self._capture.bundle.manifest
        missing = Completion(
            lineage,
            manifest.declared_inputs,
            manifest.declared_outputs,
            versions_by_schema=backend_of(manifest.backend).versions_by_schema,
        )
        self._as_sent = None
        if kept == NO_LAST_RUN or not missing.is_needed:
            return lineage
        self._capture.note(last_known=kept)
        if sent is not kept:
            self._as_sent = missing.by(sent)
        return missing.by(kept)

    def rest(self, outcome: Outcome, deadline: Deadline) -> tuple[TaskLineage, Made]:
        """Give what is left to report of a try that could not be merged; never raises."""
        try:
            lineage = self.completed(self._without(outcome))
            return lineage, self.event(lineage, deadline)
        except (Exception, AirflowTaskTimeout):  # what is declared may be why
            from airflow_provider_sparklineage.lineage.dataset import TaskLineage

            log.debug("What is declared cannot be reported.", exc_info=True)
            lineage = TaskLineage(outcome, degradations=self._capture.bundle.manifest.degradations)
            self._as_sent = None
        try:
            return lineage, self.event(lineage, deadline)
        except (Exception, AirflowTaskTimeout):  # a defect in making facets
            from airflow_provider_sparklineage.event.document import empty
            from airflow_provider_sparklineage.event.pipeline import Made, header

            log.warning("The lineage of this try cannot be reported.", exc_info=True)
            bare = empty(header(self._capture.bundle, lineage), lineage.outcome)
            return lineage, Made(bare, bare)

    def event(self, lineage: TaskLineage, deadline: Deadline) -> Made:
        from airflow_provider_sparklineage.event.pipeline import merged_events

        # What was kept for it, though a callback or a backend may have taken longer than all.
        timeout = self._capture.settings.collect_timeout.total_seconds()
        deadline.begin(max(deadline.left, timeout * (1 - _FOR_MERGING)))
        bundle, how = self._capture.bundle, self._capture.settings.leaving
        made = merged_events(bundle, lineage, how, masked, deadline.budget)
        if self._as_sent is None:
            return made
        as_sent = replace(self._as_sent, degradations=lineage.degradations)
        sent = merged_events(bundle, as_sent, how, masked, deadline.budget)
        return made._replace(adapted=sent.adapted)

    def _without(self, outcome: Outcome) -> TaskLineage:
        """Lineage of a try of which nothing was collected: what was declared, and why no more."""
        from airflow_provider_sparklineage.lineage.declared_and_last_known import declared_lineage

        manifest = self._capture.bundle.manifest
        lineage = declared_lineage(
            manifest.declared_inputs,
            manifest.declared_outputs,
            manifest.expectations,
            self._capture.settings.partitioning,
            manifest.limits,
        )
        degradations = (*manifest.degradations, *lineage.degradations)
        return replace(lineage, outcome=outcome, degradations=degradations)


def _reason(error: BaseException) -> tuple[DegradationCode, str]:
    """Give the reason why collecting failed, and what to do."""
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
    """List what a person should know: as the event has it, of which its making may lose more."""
    from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY

    facet = event["run"]["facets"].get(CAPTURE_KEY, {})
    entries = facet.get("degradations", ())
    named = [d["message"] for d in entries if DegradationCode(d["code"]).needs_attention]
    return named or [d.message for d in lineage.degradations if d.code.needs_attention]


def is_kept(settings: Settings, lineage: TaskLineage, event: Event) -> bool:
    """Whether the bundle of a try that was collected outlives it."""
    if settings.keep_captures is not KeepCaptures.DEGRADED:
        return settings.keep_captures is KeepCaptures.ALL
    return lineage.outcome is Outcome.FAIL or bool(_serious(lineage, event))


def _clean_up(capture: TryCapture, lineage: TaskLineage, event: Event, deadline: Deadline) -> None:
    """Keep or remove the bundle, and warn once of what needs a person's attention."""
    capture.remove_own_files()
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
    if not deadline.is_killed:  # else the next try has the time for it
        if bundle.manifest.remote:
            from airflow_provider_sparklineage.operators.attempt import remote_driver

            may_go_on = lineage.outcome is Outcome.FAIL and capture.is_resumable
            may_deliver = not capture.is_delivered
            remote_driver.end_remote_folder(
                bundle.manifest, settings, deadline, keep=keep or may_go_on or may_deliver
            )
        retention.sweep_at_times(
            settings.capture_location.folder,
            older_than=settings.capture_retention,
            now=datetime.now(UTC),
        )


# Modules that are needed after the job are imported while it runs, when the task only waits for it:
# in a thread, which is safe here. It imports modules that the task would import anyway, and an
# import that fails in it fails again, and is reported, where it is needed. It has ended before the
# task goes on: Airflow's OpenLineage provider forks then, and a lock that an import holds would
# never be released in the child.


IMPORT_DELAY_S = 1.0
"""By then spark-submit has been started, which this must not delay. No job of Spark is over."""


@contextmanager
def importing_meanwhile() -> Iterator[None]:
    """Import while what is in here runs, if it takes long enough; its outcome stays what it is."""
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
