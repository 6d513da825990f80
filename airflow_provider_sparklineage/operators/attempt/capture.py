"""The capture bundle of a try: made and injected before spark-submit, its manifest kept up to date.

Nothing here ever fails the user's task: whatever goes wrong becomes a degradation in the manifest,
and with it in the event. The exception is ``strict=True``, which raises before anything is
submitted.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import airflow
import msgspec
from airflow.providers import openlineage as openlineage_provider
from airflow.providers.apache import spark as spark_provider
from airflow.providers.common.compat.openlineage.utils.spark import (
    inject_parent_job_information_into_spark_properties,
)
from airflow.providers.openlineage.plugins.macros import (
    lineage_job_name,
    lineage_job_namespace,
    lineage_run_id,
)
from msgspec.structs import replace

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.exceptions import (
    CaptureError,
    ListenerError,
    RemoteDriverError,
    SparkLineageError,
)
from airflow_provider_sparklineage.model.producer import DISTRIBUTION, version
from airflow_provider_sparklineage.model.terms import JobName
from airflow_provider_sparklineage.operators.attempt.submit import (
    ResolvedSubmission,
    SubmitTarget,
    injected,
    resolved,
    with_transport,
    without_secrets,
)
from airflow_provider_sparklineage.operators.masking import mask, masked, masked_message
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID
from airflow_provider_sparklineage.spark.capture import bundle
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest, TaskIdentity
from airflow_provider_sparklineage.spark.submit import injection
from airflow_provider_sparklineage.spark.submit.injection import injected_names
from airflow_provider_sparklineage.spark.submit.submitted_files import Links, PropertiesFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.expectations.declared import Declared
    from airflow_provider_sparklineage.operators.attempt.timing import Deadline
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.receiver import Receiver
    from airflow_provider_sparklineage.spark.submit.submission import Submission

log = logger(__name__)


def manifest_of(context: Context, settings: Settings, *, of_command: bool = False) -> Manifest:
    """Make the manifest of a try that begins; nothing in it is a secret."""
    ti: Any = context["ti"]
    run_id = str(lineage_run_id(ti))
    namespace = lineage_job_namespace()  # type: ignore[no-untyped-call]
    map_index = getattr(ti, "map_index", None)
    return Manifest(
        # The same try always gets the same application run id, so that a replay is recognised.
        application_run_id=str(uuid.uuid5(uuid.UUID(run_id), "spark-application")),
        task=TaskIdentity(
            dag_id=ti.dag_id,
            task_id=ti.task_id,
            run_id=ti.run_id,
            try_number=ti.try_number,
            map_index=-1 if map_index is None else map_index,
        ),
        job=JobName(namespace, lineage_job_name(ti)),
        run_id=run_id,
        worker=bundle.this_worker(),
        started=datetime.now(UTC),
        partitioning=settings.partitioning.documents(),
        max_partitions=settings.max_partitions,
        bare_partitions=settings.emit_bare_partitions_facet,
        max_event_bytes=settings.max_event_bytes,
        redact_literals=settings.redact_literals,
        column_lineage=settings.column_lineage,
        intermediate_datasets=str(settings.intermediate_datasets),
        lineage_facet=settings.emit_lineage_facet,
        backend=str(settings.backend),
        versions=_versions(),
        of_command=of_command,
        settings={name: masked(text) for name, text in settings.described().items()},
    )


def _versions() -> dict[str, str]:
    # Of Airflow's packages from their modules: to look it up in what is installed takes as long
    # as all else that is done for a manifest.
    return {
        DISTRIBUTION: version(),
        "apache-airflow": airflow.__version__,
        "apache-airflow-providers-apache-spark": spark_provider.__version__,
        "apache-airflow-providers-openlineage": openlineage_provider.__version__,
    }


_REFUSALS: dict[type[Exception], DegradationCode] = {
    ListenerError: DegradationCode.LISTENER_UNAVAILABLE,
    RemoteDriverError: DegradationCode.DRIVER_ELSEWHERE,
    CaptureError: DegradationCode.CAPTURE_UNAVAILABLE,
}


class TryCapture:
    """The bundle of one try, with the settings that the try has."""

    def __init__(self, settings: Settings, bundle: CaptureBundle) -> None:
        self.settings = settings
        self.bundle = bundle
        self.spark_properties: dict[str, str] | None = None
        """All that the job is submitted with; None where that could not be found out."""
        self.is_submitted = False
        """Whether this try submitted the job, where Airflow may go on with an earlier one's."""
        self.is_resumed = False
        """Whether it goes on with what an earlier try had submitted."""
        self.resumed_id = ""
        """By which Airflow knows that job."""
        self.is_awaited = not bundle.manifest.of_command
        """Whether the task ends no earlier than its application."""
        self.is_delivered = False
        """Whether a driver in a cluster has reported that it delivered all."""
        self.running: Callable[[], AbstractContextManager[None]] | None = None
        """Adds to the driver, where that is this process, around the job; None elsewhere."""
        self._receiver: Receiver | None = None
        self._is_refused = False
        self.lineage_conn_id = DEFAULT_CONN_ID
        self._properties_file = PropertiesFile()
        self.links = Links(bundle.path)
        """Plain paths for what Spark would misread."""

    @property
    def is_resumable(self) -> bool:
        """Whether the next try of the task may go on with the job of this one."""
        return self.is_submitted or self.is_resumed

    @classmethod
    def begin(cls, context: Context, settings: Settings, *, of_command: bool = False) -> TryCapture:
        """Make the bundle of a try; if that fails, go on without one (or raise, if strict).

        :param of_command: whether spark-submit is in a command of the user's own
        :raise CaptureError: if the bundle cannot be made and ``settings.strict``
        """
        manifest = manifest_of(context, settings, of_command=of_command)
        try:
            return cls(settings, capture.create(settings.capture_location.folder, manifest))
        except (CaptureError, OSError) as error:
            if settings.strict:
                raise
            without = cls(settings, CaptureBundle(None, manifest))
            without.degrade(DegradationCode.CAPTURE_UNAVAILABLE, str(error))
            return without

    def inject(
        self, submission: Submission, target: SubmitTarget, context: Context
    ) -> tuple[Submission, str | None]:
        """Give the submission with the listener in it, or one without it and a degradation noted.

        :return: with the properties file that it needs, if any
        :raise SparkLineageError: if the listener cannot be injected and ``settings.strict``
        """
        if self.bundle.path is not None:  # else a degradation has the reason
            with self.refusing():
                before = resolved(submission, target, self.settings)
                mask(*injection.transport_secrets(before.submission))
                return self._injected(before, target, context)
        return self.protected(submission, target)

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Note why the listener cannot be added, if it cannot; raise that too, if strict."""
        try:
            yield
        except Exception as error:
            self.refuse(error)

    def protected(
        self, submission: Submission, target: SubmitTarget
    ) -> tuple[Submission, str | None]:
        """Keep the secrets of the user's transport from the arguments: all users can read those."""
        try:
            safe = without_secrets(submission, target)
            mask(*injection.transport_secrets(safe))
            return self._with_file(safe, target)
        except Exception as error:
            log.debug("Secrets cannot be moved to a file.", exc_info=True)
            reason = str(error)
        given = with_transport(submission, target)
        mask(*injection.transport_secrets(given))
        after = injection.without_secret_transport(given)
        if after is not given:
            self.degrade(
                DegradationCode.TRANSPORT_LEFT_OUT,
                "The job was submitted without its own OpenLineage transport, which has a secret "
                f"that nothing but its arguments could have passed on: {reason}",
            )
        return after, None

    def _listen(self) -> Mapping[str, str]:
        """Take the events of a driver that can neither write nor deliver them."""
        from airflow_provider_sparklineage.operators.attempt import remote_driver

        path = cast("Path", self.bundle.events_path)
        self._receiver = remote_driver.listen(self.settings.capture_endpoint, path)
        return self._receiver.transport

    def end_receiving(self, seconds: float) -> None:
        """Take no more events, for Spark has ended, and note which are missing.

        :param seconds: that are left for all that is done with them
        """
        if self._receiver is None:
            return
        from airflow_provider_sparklineage.operators.attempt import remote_driver

        self._receiver.close(min(remote_driver.ON_ITS_WAY_S, seconds / 4))
        for code, problem in remote_driver.missing_events(self._receiver):
            self.degrade(code, problem)

    def _stop_receiving(self) -> None:
        if self._receiver is not None:
            self._receiver.close()
            self._receiver = None

    def refuse(self, error: Exception) -> None:
        """Note why nothing is added to the job.

        :raise Exception: that error if ``settings.strict``
        """
        if self.settings.strict:
            raise error
        self._stop_receiving()
        log.debug("Injecting the listener failed.", exc_info=error)
        code = _REFUSALS.get(type(error), DegradationCode.INJECTION_FAILED)
        known = isinstance(error, SparkLineageError)
        self.degrade(code, str(error) if known else f"{type(error).__name__}: {error}")

    def _injected(
        self, before: ResolvedSubmission, target: SubmitTarget, context: Context
    ) -> tuple[Submission, str | None]:
        given = before.submission
        self.spark_properties = {key: given.value(key) or "" for key in sorted(given.keys())}
        defaults = self.identity(given, context)
        after = injected(
            before, target, self.bundle, self.settings, defaults, self.links, self._listen
        )
        with_file = self._with_file(after.submission, target, is_injected=True)
        self.is_awaited = after.is_awaited
        for code, problem in after.degradations:
            self.degrade(code, problem)
        versions = {"spark": before.spark.version, "scala": before.spark.scala}
        if after.delivers and self.bundle.path is not None:
            self.note(remote=f"{self.settings.capture_location.url}/{self.bundle.path.name}")
        self.note(
            injected=injected_names(given, after.submission),
            versions={**self.bundle.manifest.versions, **versions},
        )
        return with_file

    def declare(self, declared: Declared) -> None:
        """Note what the task declares of its datasets."""
        self.note(
            declared_inputs=declared.inputs,
            declared_outputs=declared.outputs,
            expectations=declared.expectations,
            naming=dict(declared.naming),
        )
        for problem in declared.problems:
            self.degrade(DegradationCode.DECLARATION_UNUSABLE, problem)

    def announce(self) -> bool:
        """Leave what is known of the try where a driver in a cluster is going to deliver.

        :return: False if the store does not take it, and so nothing else
        :raise CaptureError: if the store does not take it and ``settings.strict``
        """
        if not self.bundle.manifest.remote:
            return True
        try:
            from airflow_provider_sparklineage.operators.attempt import remote_driver

            remote_driver.announce(self.bundle.manifest)
        except Exception as error:
            if self.settings.strict:
                raise
            # Until it is known what was delivered.
            self.degrade(DegradationCode.DELIVERY_INCOMPLETE, str(error))
            return False
        return True

    def receive(self, deadline: Deadline) -> None:
        """Put into the bundle what a driver in a cluster has delivered."""
        if not self.bundle.manifest.remote:
            return
        from airflow_provider_sparklineage.operators.attempt import remote_driver

        if self._is_refused:
            remote_driver.withdraw(self.bundle.manifest, deadline)
            self.note(remote="")
        elif self.bundle.path is not None:
            manifest = self.bundle.manifest
            delivered = remote_driver.download(manifest, self.bundle.path, deadline.budget)
            codes = {degradation.code for degradation in delivered.degradations}
            is_complete = DegradationCode.DELIVERY_INCOMPLETE not in codes
            self.is_delivered = delivered.has_ended and is_complete
            self.note(degradations=delivered.still_missing(manifest))
            for degradation in delivered.degradations:
                self.degrade(degradation.code, degradation.message)

    def identity(self, submission: Submission, context: Context) -> dict[str, str]:
        """Name the application in OpenLineage: its job names, and the task as its parent."""
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

    def _with_file(
        self, submission: Submission, target: SubmitTarget, *, is_injected: bool = False
    ) -> tuple[Submission, str | None]:
        """Write the properties file that a submission needs, if any; give both.

        A command's has all that is added, since its own arguments, which are not known, win then.

        :raise CaptureError: if no folder takes it
        """
        if target.is_command and is_injected and not target.is_elsewhere:
            submission = submission.all_in_file()
        if submission.new_file is None:
            return submission, None
        if target.is_elsewhere:
            problem = "What may be a secret has to be in a file, and there is none of ours."
            fix = "Leave spark.openlineage.transport.* to the files of that place."
            raise CaptureError(problem, fix)
        location, own = self.settings.capture_location.folder, self.bundle.path
        folders = bundle.folders_of_properties(location)
        if own is None:  # the location may be why
            folders = folders[1:]
        elif target.is_command:  # which may come to spark-submit later than others are swept
            folders = (self.links.plain(own), *folders)
        return submission, self._properties_file.write(submission.new_file, folders)

    def abandon(self) -> None:
        """Leave nothing behind of a try that is not going to be submitted."""
        self.remove_own_files()
        self.bundle.remove()

    def refused(self) -> None:
        """Note that Airflow did not submit the job: no driver is going to deliver."""
        self._is_refused = True
        self.is_awaited = True  # there is nothing to wait for

    def without_bundle(self, error: Exception) -> None:
        """Go on without collecting: the job runs as it is, and the event has the reason."""
        log.debug("Setting up lineage failed.", exc_info=True)
        self.abandon()
        self.bundle = replace(self.bundle, path=None)
        problem = str(error)
        if not isinstance(error, SparkLineageError):
            problem = f"Lineage could not be set up ({type(error).__name__}: {error})."
        self.degrade(DegradationCode.INJECTION_FAILED, problem)

    def remove_own_files(self) -> None:
        """Remove what only the job needed: links, the properties file, and what listens."""
        self._stop_receiving()
        self.links.remove()
        self._properties_file.remove()

    def resumed(self, deadline: Deadline) -> None:
        """Go on with the bundle of the try that submitted the job, if it can be found.

        That one's run is the parent of the application in its events.
        """
        self._stop_receiving()  # the driver sends to that try's worker
        self.is_resumed = True
        theirs = self._with_earlier(deadline)
        if theirs is None:
            self.note(remote="")
            self.degrade(
                DegradationCode.SUBMISSION_RESUMED,
                "The job had been submitted by an earlier try, whose capture bundle is not here, "
                "so what it read and wrote is unknown. A capture_location that all workers reach, "
                "a mount or a URL, keeps it.",
            )
            return
        self.note(
            application_run_id=theirs.application_run_id,
            injected=theirs.injected,
            versions={**theirs.versions, **self.bundle.manifest.versions},
            remote=theirs.remote,
        )
        number = theirs.task.try_number if theirs.task else 0
        self.degrade(
            DegradationCode.SUBMISSION_RESUMED,
            f"The job had been submitted by try {number}; this event has what the bundle of that "
            "try captured.",
        )

    def _with_earlier(self, deadline: Deadline) -> Manifest | None:
        """Take the bundle of the try that submitted the job, and give what it knew."""
        own = self.bundle
        if own.manifest.remote:
            # Its bundle may be on another worker; what its driver delivered is not.
            from airflow_provider_sparklineage.operators.attempt import remote_driver

            url = self.settings.capture_location.url
            return remote_driver.earlier_manifest(own.manifest, url, deadline, self.resumed_id)
        with suppress(Exception):
            location = self.settings.capture_location.folder
            if earlier := bundle.earlier_try(location, own.manifest):
                self.bundle = replace(earlier, manifest=own.manifest)
                own.remove()
                return earlier.manifest
        return None

    def degrade(self, code: DegradationCode, message: str) -> None:
        """Note in the manifest that something is missing; without secrets that the message has."""
        text = message.encode(errors="replace").decode()  # names of files may be no text
        entry = Degradation(code, masked_message(text))
        self.note(degradations=(*self.bundle.manifest.degradations, entry))

    def note(self, **changes: Any) -> None:
        """Change fields of the manifest, on disk too if there is a bundle."""
        manifest = msgspec.structs.replace(self.bundle.manifest, **changes)
        self.bundle = replace(self.bundle, manifest=manifest)
        if self.bundle.path is None:
            return
        try:
            self.bundle.save()
        except CaptureError as error:
            log.debug("%s", error)
