"""One try of a task: what is injected before spark-submit, and what is collected after it.

Nothing here ever fails the user's task: whatever goes wrong becomes one warning and a degradation
in the event. The exception is ``strict=True``, which raises before anything is submitted.
"""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import javaproperties
import msgspec
from airflow.providers.common.compat.openlineage.utils.spark import (
    inject_parent_job_information_into_spark_properties,
)
from airflow.providers.common.compat.sdk import AirflowTaskTimeout
from airflow.providers.openlineage.plugins.macros import (
    lineage_job_namespace,
)

from airflow_provider_sparklineage.degradations import DegradationCode
from airflow_provider_sparklineage.exceptions import CaptureError, ListenerError, SparkLineageError
from airflow_provider_sparklineage.lineage import facets
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.lineage.task import declared_lineage, task_lineage
from airflow_provider_sparklineage.operators.budget import Budget
from airflow_provider_sparklineage.operators.identity import manifest_of
from airflow_provider_sparklineage.operators.masking import mask, masked
from airflow_provider_sparklineage.option_kinds import KeepCaptures
from airflow_provider_sparklineage.spark import (
    capture,
    choice,
    class_path,
    distribution,
    driver_zip,
    transport,
)
from airflow_provider_sparklineage.spark.capture import (
    CaptureBundle,
    ManifestDegradation,
)
from airflow_provider_sparklineage.spark.conf import (
    Injection,
    Observation,
    can_observe,
    inject,
    injected_names,
    refuse_connect,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.lineage.parts import OpenLineageParts
    from airflow_provider_sparklineage.operators.declared import Declared
    from airflow_provider_sparklineage.settings import Settings
    from airflow_provider_sparklineage.spark.distribution import SparkDistribution
    from airflow_provider_sparklineage.spark.submission import Submission

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SubmitTarget:
    """Where the submission goes, as the operator's hook resolves it from the Spark connection."""

    spark_binary: str
    master: str
    deploy_mode: str | None
    properties_file: str | None

    @property
    def environment_is_private(self) -> bool:
        """Whether ``env_vars`` stay such; on YARN and Kubernetes the hook makes conf of them."""
        return "yarn" not in self.master and "k8s" not in self.master


class Attempt:
    """Lineage of one try, from before the submission to the finished lineage."""

    def __init__(self, settings: Settings, bundle: CaptureBundle, task: object = None) -> None:
        self.settings = settings
        self.bundle = bundle
        self.budget = Budget()
        self._task = task
        self.spark_properties: dict[str, str] | None = None
        """All that the job is submitted with; None where that could not be found out."""
        self._properties_file: Path | None = None
        self.lineage: TaskLineage | None = None
        """What was collected; None until then, and if it could not be."""

    # --- before -----------------------------------------------------------------------------------

    @classmethod
    def begin(cls, context: Context, settings: Settings) -> Attempt:
        """Make the capture bundle of a try; if that fails, go on without one (or raise, if strict).

        :raise CaptureError: if the bundle cannot be made and ``settings.strict``
        """
        manifest = manifest_of(context, settings)
        try:
            if settings.capture_location.is_dir():
                capture.sweep(
                    settings.capture_location,
                    older_than=settings.capture_retention,
                    now=datetime.now(UTC),
                )
            bundle = capture.create(settings.capture_location, manifest)
            return cls(settings, bundle, context.get("task"))
        except (CaptureError, OSError) as error:
            if settings.strict:
                raise
            attempt = cls(settings, CaptureBundle(None, manifest))
            attempt.degrade(DegradationCode.CAPTURE_UNAVAILABLE, str(error))
            return attempt

    def inject(self, submission: Submission, target: SubmitTarget, context: Context) -> Submission:
        """Give the submission with the listener in it, or the same one with a degradation noted.

        :raise SparkLineageError: if the listener cannot be injected and ``settings.strict``
        """
        read: Submission | None = None
        try:
            found = self._spark(submission, target)
            read = self._read(submission, target, found)
            mask(*transport.secrets(read))
            if self.bundle.path is None:
                return transport.without_secrets(read)
            return self._injected(read, found, target, context)
        except Exception as error:
            code = DegradationCode.INJECTION_FAILED
            if isinstance(error, ListenerError):
                code = DegradationCode.LISTENER_UNAVAILABLE
            elif isinstance(error, _DriverElsewhereError):
                code = DegradationCode.DRIVER_ELSEWHERE
            if self.settings.strict:
                raise
            log.debug("Injecting the listener failed.", exc_info=True)
            said = (
                str(error)
                if isinstance(error, SparkLineageError)
                else f"{type(error).__name__}: {error}"
            )
            if self.bundle.path is not None:  # else it is said why
                self.degrade(code, said)
            # The user's keys are protected all the same, unless it is unknown what else their file
            # says.
            return submission if read is None else transport.without_secrets(read)

    def _spark(self, submission: Submission, target: SubmitTarget) -> SparkDistribution:
        return choice.spark_of(target.spark_binary, distribution.environment(submission.env_vars))

    def _read(
        self, submission: Submission, target: SubmitTarget, found: SparkDistribution
    ) -> Submission:
        """Read what the properties file says, or ``spark-defaults.conf`` where there is none."""
        if target.properties_file:
            said = distribution.read_properties(Path(target.properties_file))
        else:
            said = found.defaults(distribution.environment(submission.env_vars))
        return replace(submission, file_properties=said)

    def _injected(
        self,
        before: Submission,
        found: SparkDistribution,
        target: SubmitTarget,
        context: Context,
    ) -> Submission:
        env = distribution.environment(before.env_vars)
        self.spark_properties = {key: before.value(key) or "" for key in sorted(before.keys())}
        deploy_mode = target.deploy_mode or before.value("spark.submit.deployMode")
        if deploy_mode == "cluster":
            msg = (
                "The driver runs in the cluster and not on this worker, so its lineage cannot be "
                "collected; use deploy_mode='client' where lineage is wanted."
            )
            raise _DriverElsewhereError(msg)
        refuse_connect(before, target.master, env)
        own = class_path.the_one(class_path.listeners(before, found), before, found)
        jars: tuple[str, ...] = ()
        if own is None:
            jar = choice.jar_for(found, self.settings.listener_jar, env)
            jars = (str(jar.absolute()),)
        injection = Injection(
            jars=jars,
            events_path=self.bundle.events_path or Path(os.devnull),
            application_run_id=self.bundle.manifest.application_run_id,
            defaults=self._defaults(before, context),
            submit_opts=env.get("SPARK_SUBMIT_OPTS", "") if target.environment_is_private else None,
            observation=self._observation(before),
        )
        after = inject(before, injection)
        self._note(
            injected=injected_names(before, after),
            versions={
                **self.bundle.manifest.versions,
                "spark": found.version,
                "scala": found.scala,
            },
        )
        return after

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

    def _observation(self, submission: Submission) -> Observation | None:
        """Put the observer into the bundle; where that is not possible, lineage goes on without."""
        bundle, path = self.bundle.path, self.bundle.observations_path
        if not self.settings.observe or bundle is None or path is None:
            return None
        if not can_observe(submission):
            self.degrade(
                DegradationCode.OBSERVER_UNAVAILABLE,
                "The application is no Python file, so the partitions that it reads and writes "
                "could not be observed.",
            )
            return None
        try:
            observer = driver_zip.write(bundle)
        except CaptureError as error:
            self.degrade(DegradationCode.OBSERVER_UNAVAILABLE, str(error))
            return None
        return Observation(observer, path, self.bundle.manifest.application_run_id)

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
            prefix=capture.PROPERTIES_PREFIX,
            dir=None if self.bundle.path is None else self.settings.capture_location,
        )
        self._properties_file = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            javaproperties.dump(dict(submission.new_file), file)
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
        self.budget.begin(self.settings.collect_timeout.total_seconds())
        self._note(ended=datetime.now(UTC), outcome=str(outcome))
        return task_lineage(self.bundle, self.budget.expired)

    def _rest(self, outcome: Outcome) -> tuple[TaskLineage, OpenLineageParts]:
        """Give what is left to say of a try that could not be merged; never raises."""
        try:
            lineage = self._without(outcome)
            return lineage, self._parts(lineage)
        except (Exception, AirflowTaskTimeout):  # what is declared may be why
            log.debug("What is declared cannot be said.", exc_info=True)
            lineage = TaskLineage(outcome, degradations=self.bundle.manifest.known)
            return lineage, self._parts(lineage)

    def _parts(self, lineage: TaskLineage) -> OpenLineageParts:
        representation = self.bundle.manifest.representation
        return facets.parts(lineage, self.bundle.report, representation, masked)

    def _without(self, outcome: Outcome) -> TaskLineage:
        """Lineage of a try of which nothing was collected: what was declared, and why no more."""
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
        if serious:
            log.warning("Spark lineage of this try is incomplete. %s%s", " ".join(serious), where)
        elif keep:
            log.info("Spark lineage was collected.%s", where)

    def degrade(self, code: DegradationCode, message: str) -> None:
        """Note in the manifest that something is missing."""
        said = message.encode(errors="replace").decode()  # names of files may be no text
        entry = ManifestDegradation(str(code), said)
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


class _DriverElsewhereError(SparkLineageError):
    """Raised when the driver will not be a child of this worker."""
