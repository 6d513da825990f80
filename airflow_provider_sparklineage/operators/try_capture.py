"""One try of a task: what is injected before spark-submit, and what is collected after it.

Nothing here ever fails the user's task: whatever goes wrong becomes one warning and a degradation
in the event. The exception is ``strict=True``, which raises before anything is submitted.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from airflow.providers.common.compat.openlineage.utils.spark import (
    inject_parent_job_information_into_spark_properties,
)
from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from airflow.providers.openlineage.plugins.macros import (
    lineage_job_namespace,
)

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import (
    CaptureError,
    ListenerError,
    RemoteDriverError,
    SparkLineageError,
)
from airflow_provider_sparklineage.model.last_run import NO_LAST_RUN, LastRun
from airflow_provider_sparklineage.model.outcome import Outcome
from airflow_provider_sparklineage.operators.deadline import Budget
from airflow_provider_sparklineage.operators.identity import manifest_of
from airflow_provider_sparklineage.operators.injection import (
    Read,
    SubmitTarget,
    injected,
    read,
)
from airflow_provider_sparklineage.operators.masking import mask, masked, masked_message
from airflow_provider_sparklineage.settings.option_kinds import KeepCaptures
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import retention
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, ManifestDegradation
from airflow_provider_sparklineage.spark.submit import distribution, transport
from airflow_provider_sparklineage.spark.submit.injection import injected_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.event.event_parts import OpenLineageParts
    from airflow_provider_sparklineage.expectations.declared import Declared
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.submit.submission import Submission

log = logger(__name__)

_REFUSALS: dict[type[Exception], DegradationCode] = {
    ListenerError: DegradationCode.LISTENER_UNAVAILABLE,
    RemoteDriverError: DegradationCode.DRIVER_ELSEWHERE,
    CaptureError: DegradationCode.CAPTURE_UNAVAILABLE,
}


class Attempt:
    """Lineage of one try, from before the submission to the finished lineage."""

    def __init__(
        self,
        settings: Settings,
        bundle: CaptureBundle,
        task: object = None,
        last_known: LastRun = NO_LAST_RUN,
    ) -> None:
        self.settings = settings
        self.bundle = bundle
        self.budget = Budget()
        self._task = task
        self._last_known = last_known
        self.spark_properties: dict[str, str] | None = None
        """All that the job is submitted with; None where that could not be found out."""
        self.is_submitted = False
        """Whether this try submitted the job, where Airflow may go on with an earlier one's."""
        self._properties_file: Path | None = None
        self.lineage: TaskLineage | None = None
        """What was collected; None until then, and if it could not be."""

    # --- before -----------------------------------------------------------------------------------

    @classmethod
    def begin(
        cls, context: Context, settings: Settings, last_known: LastRun = NO_LAST_RUN
    ) -> Attempt:
        """Make the capture bundle of a try; if that fails, go on without one (or raise, if strict).

        :param last_known: what stands in for what this try will not know of itself
        :raise CaptureError: if the bundle cannot be made and ``settings.strict``
        """
        manifest = manifest_of(context, settings)
        try:
            bundle = capture.create(settings.capture_location, manifest)
            return cls(settings, bundle, context.get("task"), last_known)
        except (CaptureError, OSError) as error:
            if settings.strict:
                raise
            attempt = cls(settings, CaptureBundle(None, manifest), last_known=last_known)
            attempt.degrade(DegradationCode.CAPTURE_UNAVAILABLE, str(error))
            return attempt

    def inject(self, submission: Submission, target: SubmitTarget, context: Context) -> Submission:
        """Give the submission with the listener in it, or the same one with a degradation noted.

        :raise SparkLineageError: if the listener cannot be injected and ``settings.strict``
        """
        before: Read | None = None
        try:
            before = read(submission, target, self.settings)
            mask(*transport.secrets(before.submission))
            if self.bundle.path is not None:
                return self._injected(before, target, context)
        except Exception as error:
            if self.settings.strict:
                raise
            self._refused(error)
        # The user's keys are protected all the same, unless their file could not be read.
        return submission if before is None else transport.without_secrets(before.submission)

    def _refused(self, error: Exception) -> None:
        log.debug("Injecting the listener failed.", exc_info=error)
        if self.bundle.path is None:  # it is said why
            return
        code = _REFUSALS.get(type(error), DegradationCode.INJECTION_FAILED)
        known = isinstance(error, SparkLineageError)
        self.degrade(code, str(error) if known else f"{type(error).__name__}: {error}")

    def _injected(self, before: Read, target: SubmitTarget, context: Context) -> Submission:
        said = before.submission
        self.spark_properties = {key: said.value(key) or "" for key in sorted(said.keys())}
        after = injected(before, target, self.bundle, self.settings, self._defaults(said, context))
        for code, problem in after.degradations:
            self.degrade(code, problem)
        versions = {"spark": before.spark.version, "scala": before.spark.scala}
        self._note(
            injected=injected_names(said, after.submission),
            versions={**self.bundle.manifest.versions, **versions},
        )
        return after.submission

    def declare(self, declared: Declared) -> None:
        """Note what the task says of its datasets."""
        self._note(
            declared_inputs=declared.inputs,
            declared_outputs=declared.outputs,
            expectations=declared.expectations,
            naming=dict(declared.naming),
        )
        for problem in declared.problems:
            self.degrade(DegradationCode.DECLARATION_UNUSABLE, problem)

    def _defaults(self, submission: Submission, context: Context) -> dict[str, str]:
        """Identity of the application in OpenLineage: its job names, and the task as its parent."""
        task = self.bundle.manifest.task
        namespace = lineage_job_namespace()  # type: ignore[no-untyped-call]
        own = {"spark.openlineage.namespace": namespace}
        if task is not None:
            own["spark.openlineage.appName"] = f"{task.dag_id}.{task.task_id}"
        known = dict.fromkeys(submission.keys(), "")
        parents: dict[str, str] = inject_parent_job_information_into_spark_properties(
            known, context
        )
        return own | {key: value for key, value in parents.items() if key not in known}

    def properties_file(self, submission: Submission) -> str | None:
        """Write the properties file that a submission needs, if any, readable for this user only.

        It contains all that the file said which it stands for, because ``--properties-file``
        replaces that.
        """
        if submission.new_file is None:
            return None
        handle, name = tempfile.mkstemp(  # which makes it 0600
            prefix=retention.PROPERTIES_PREFIX,
            dir=None if self.bundle.path is None else self.settings.capture_location,
        )
        self._properties_file = Path(name)
        os.close(handle)
        distribution.write_properties(self._properties_file, submission.new_file)
        return name

    def abandon(self) -> None:
        """Leave nothing behind of a try that is not going to be submitted."""
        self._remove_properties_file()
        self.bundle.remove()

    def without_capture(self, error: Exception) -> None:
        """Go on without collecting: the job runs as it is, and the event says why."""
        log.debug("Setting up lineage failed.", exc_info=True)
        self.abandon()
        self.bundle = replace(self.bundle, path=None)
        said = str(error)
        if not isinstance(error, SparkLineageError):
            said = f"Lineage could not be set up ({type(error).__name__}: {error})."
        self.degrade(DegradationCode.INJECTION_FAILED, said)

    def _remove_properties_file(self) -> None:
        if self._properties_file is not None:
            self._properties_file.unlink(missing_ok=True)

    # --- after ------------------------------------------------------------------------------------
    # What merges is imported here: it takes longer than all else that a submission waits for.

    def resumed(self) -> None:
        """Go on with the bundle of the try that submitted the job, if it can be found.

        That one's run is the parent of the application in its events.
        """
        earlier = None
        with suppress(Exception):
            earlier = retention.earlier_try(self.settings.capture_location, self.bundle.manifest)
        if earlier is None:
            self.degrade(
                DegradationCode.SUBMISSION_RESUMED,
                "The job had been submitted by an earlier try, whose capture bundle is not here, "
                "so what it read and wrote is unknown. A capture_location on a mount that all "
                "workers have keeps it.",
            )
            return
        own, theirs = self.bundle, earlier.manifest
        self.bundle = replace(earlier, manifest=own.manifest)
        own.remove()
        self._note(
            application_run_id=theirs.application_run_id,
            injected=theirs.injected,
            versions={**theirs.versions, **own.manifest.versions},
        )
        number = theirs.task.try_number if theirs.task else 0
        self.degrade(
            DegradationCode.SUBMISSION_RESUMED,
            f"The job had been submitted by try {number}, and what that try had set up to be "
            "captured is what is said here.",
        )

    def finish(
        self, outcome: Outcome, has_failed: Callable[[TaskLineage], bool] = lambda _: False
    ) -> OpenLineageParts:
        """Collect and merge into what Airflow's OpenLineage provider will send.

        Never raises, not even Airflow's task timeout if that fires in here: Spark has ended by now,
        and how it ended is the task's outcome.

        :param has_failed: asked, with what was collected, whether the task fails because of it;
            then all is said of a failed task, the same by what is sent and by the bundle
        """
        try:
            lineage = self._merged(outcome)
            if has_failed(lineage):
                outcome = Outcome.FAIL
                lineage = self._merged(outcome)
            if self.settings.relay_spark_events:
                from airflow_provider_sparklineage.operators.relaying import relayed

                # Its own time: what has been asked may have taken long.
                self.budget.begin(self.settings.collect_timeout.total_seconds())
                lineage = relayed(lineage, self.bundle, self._task, self.budget)
            parts = self._parts(lineage)
            self.lineage = lineage
        except (Exception, AirflowTaskTimeout) as error:
            log.debug("Collecting lineage failed.", exc_info=True)
            self.degrade(*_reason(error))
            lineage, parts = self._rest(outcome)
        # By now there is an event to send; if cleaning up does not work out, the next try sweeps.
        with suppress(Exception, AirflowTaskTimeout):
            self._clean_up(lineage)
        return parts

    def _merged(self, outcome: Outcome) -> TaskLineage:
        from airflow_provider_sparklineage.event.from_bundle import task_lineage

        self.budget.begin(self.settings.collect_timeout.total_seconds())
        self._note(ended=datetime.now(UTC), outcome=str(outcome))
        return self._completed(task_lineage(self.bundle, self.budget.past_deadline))

    def _completed(self, lineage: TaskLineage) -> TaskLineage:
        """Let what the last successful run touched stand in where this try has nothing to say."""
        from airflow_provider_sparklineage.event.from_bundle import completion

        missing = completion(lineage, self.bundle.manifest)
        if self._last_known == NO_LAST_RUN or not missing.is_needed:
            return lineage
        self._note(last_known=self._last_known)
        return missing.by(self._last_known)

    def _rest(self, outcome: Outcome) -> tuple[TaskLineage, OpenLineageParts]:
        """Give what is left to say of a try that could not be merged; never raises."""
        try:
            lineage = self._completed(self._without(outcome))
            return lineage, self._parts(lineage)
        except (Exception, AirflowTaskTimeout):  # what is declared may be why
            from airflow_provider_sparklineage.lineage.dataset import TaskLineage

            log.debug("What is declared cannot be said.", exc_info=True)
            lineage = TaskLineage(outcome, degradations=self.bundle.manifest.known)
        try:
            return lineage, self._parts(lineage)
        except (Exception, AirflowTaskTimeout):  # a defect in making facets
            from airflow_provider_sparklineage.event.event_parts import OpenLineageParts

            log.warning("The lineage of this try cannot be said.", exc_info=True)
            return lineage, OpenLineageParts([], [])

    def _parts(self, lineage: TaskLineage) -> OpenLineageParts:
        from airflow_provider_sparklineage.event import facets

        representation = self.bundle.manifest.representation
        return facets.parts(lineage, self.bundle.report, representation, masked)

    def _without(self, outcome: Outcome) -> TaskLineage:
        """Lineage of a try of which nothing was collected: what was declared, and why no more."""
        from airflow_provider_sparklineage.lineage.declared import declared_lineage

        manifest = self.bundle.manifest
        lineage = declared_lineage(
            manifest.declared_inputs,
            manifest.declared_outputs,
            manifest.expectations,
            self.settings.partitioning,
            manifest.limits,
        )
        degradations = (*manifest.known, *lineage.degradations)
        return replace(lineage, outcome=outcome, degradations=degradations)

    def _clean_up(self, lineage: TaskLineage) -> None:
        """Keep or remove the bundle, and say once what needs a person's attention."""
        self._remove_properties_file()
        serious = [d.message for d in lineage.degradations if d.code.needs_attention]
        keep = self.settings.keep_captures is KeepCaptures.ALL or (
            self.settings.keep_captures is KeepCaptures.DEGRADED
            and (bool(serious) or lineage.outcome is Outcome.FAIL)
        )
        where = ""
        try:
            if keep and self.bundle.path is not None:
                self.bundle.save()
                where = f" The capture bundle is kept: sparklineage show {self.bundle.path}"
            else:
                self.bundle.remove()
        except CaptureError as error:
            serious.append(str(error))
        self.bundle.release()
        if serious:
            log.warning("Spark lineage of this try is incomplete. %s%s", " ".join(serious), where)
        elif keep:
            log.info("Spark lineage was collected.%s", where)
        if not self.budget.is_killed:  # else the next try has the time for it
            retention.sweep_at_times(
                self.settings.capture_location,
                older_than=self.settings.capture_retention,
                now=datetime.now(UTC),
            )

    def degrade(self, code: DegradationCode, message: str) -> None:
        """Note in the manifest that something is missing; without secrets that the message has."""
        said = message.encode(errors="replace").decode()  # names of files may be no text
        entry = ManifestDegradation(str(code), masked_message(said))
        self._note(degradations=(*self.bundle.manifest.degradations, entry))

    def _note(self, **changes: Any) -> None:
        manifest = msgspec.structs.replace(self.bundle.manifest, **changes)
        self.bundle = replace(self.bundle, manifest=manifest)
        if self.bundle.path is None:
            return
        try:
            self.bundle.save()
        except CaptureError as error:
            log.debug("%s", error)


def _reason(error: BaseException) -> tuple[DegradationCode, str]:
    """Say why collecting failed, and what to do."""
    if isinstance(error, AirflowTaskTimeout):
        return (
            DegradationCode.COLLECTION_CUT,
            "The task's execution_timeout fired while its lineage was being collected, after "
            "Spark had ended; give the task a little more time.",
        )
    if isinstance(error, CaptureError):
        return DegradationCode.CAPTURE_UNAVAILABLE, str(error)
    return (
        DegradationCode.MERGE_FAILED,
        f"The collected events could not be merged ({type(error).__name__}: {error}); please "
        "report this with the capture bundle.",
    )
