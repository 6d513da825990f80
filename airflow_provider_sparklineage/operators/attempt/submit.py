"""Put the listener into a task's submission, and begin the capture of its try.

The input is the operator's arguments as a ``Submission``, and the place to which they are
submitted. The output is the arguments with listener, extensions and observer in them, as far as
these can be added, and the :class:`Capture`, which has the bundle for the driver's reports. The
bundle's manifest has the reason for each part that cannot be added.
"""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import airflow
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
    SettingsError,
    SparkLineageError,
)
from airflow_provider_sparklineage.model.producer import DISTRIBUTION, version
from airflow_provider_sparklineage.model.representation import MismatchPolicy
from airflow_provider_sparklineage.model.terms import Frozen, JobName
from airflow_provider_sparklineage.operators.attempt.timing import Deadline
from airflow_provider_sparklineage.operators.masking import mask, masked, masked_message
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID
from airflow_provider_sparklineage.spark.capture import bundle as bundles
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest, TaskIdentity
from airflow_provider_sparklineage.spark.submit import additions, deploy_mode, injection
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS
from airflow_provider_sparklineage.spark.submit.submission import listed
from airflow_provider_sparklineage.spark.submit.submitted_files import Links, PropertiesFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.expectations.declared import Declared
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.download import Follower
    from airflow_provider_sparklineage.spark.capture.receiver import Receiver
    from airflow_provider_sparklineage.spark.submit.additions import ResolvedSubmission
    from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
    from airflow_provider_sparklineage.spark.submit.submission import Submission

log = logger(__name__)


def manifest_of(context: Context, settings: Settings, *, of_command: bool = False) -> Manifest:
    """Make the manifest of a try that begins; the manifest has no secrets.

    :param of_command: whether spark-submit is in a command of the user's own
    """
    ti: Any = context["ti"]
    run_id = str(lineage_run_id(ti))
    namespace = lineage_job_namespace()  # type: ignore[no-untyped-call]
    map_index = getattr(ti, "map_index", None)
    task = context.get("task")
    policy = MismatchPolicy.of_arguments(
        getattr(task, "on_partition_mismatch", "warn"), getattr(task, "check_partitions_of", None)
    )
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
        worker=bundles.this_worker(),
        started=datetime.now(UTC),
        partitioning=settings.partitioning.documents(),
        max_partitions=settings.max_partitions,
        bare_partitions=settings.emit_bare_partitions_facet,
        redact_literals=settings.redact_literals,
        on_partition_mismatch=policy.consequence,
        check_partitions_of=policy.of,
        column_lineage=settings.column_lineage,
        intermediate_datasets=str(settings.intermediate_datasets),
        lineage_facet=settings.emit_lineage_facet,
        backend=str(settings.backend),
        versions=_versions(),
        of_command=of_command,
        settings={name: masked(text) for name, text in settings.described().items()},
    )


def _versions() -> dict[str, str]:
    # Airflow's versions come from its modules: a look-up in the metadata of installed packages
    # takes as long as all the rest of making a manifest.
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


def listen(endpoint: str, path: Path) -> Receiver:
    """Listen for the events of a driver without Python, and append them to a file.

    :param endpoint: ``[sparklineage] capture_endpoint``
    :param path: the existing file, in which each event gets a line
    :raise SettingsError: if the endpoint cannot be understood
    :raise RemoteDriverError: if the worker cannot listen there
    """
    from airflow_provider_sparklineage.spark.capture.receiver import HOSTNAME, Endpoint, Receiver

    hostname = ""
    if HOSTNAME in endpoint:
        from airflow.utils.net import get_hostname

        hostname = str(get_hostname())  # type: ignore[no-untyped-call]
    try:
        receiver = Receiver(Endpoint.read(endpoint, hostname), path)
    except (OSError, RuntimeError) as error:
        msg = f"This worker cannot take what the driver would send: {error}."
        raise RemoteDriverError(msg) from error
    mask(receiver.token)
    return receiver


class OwnFiles:
    """The links, the properties file and the open port of a try, which are removed after the job.

    :param bundle: folder of the try's bundle, if there is one
    """

    def __init__(self, bundle: Path | None) -> None:
        self.links = Links(bundle)
        """Links that give plain paths to files whose own path Spark would misread."""
        self.properties = PropertiesFile()
        self.receiver: Receiver | None = None
        self.follower: Follower | None = None

    def listen(self, endpoint: str, path: Path) -> Mapping[str, str]:
        """Listen for the events of a driver that can neither write nor deliver files of events.

        The parameters are those of the function :func:`listen`.

        :return: the properties by which the listener sends its events to this worker
        """
        if self.receiver is None:  # a task may start several drivers
            self.receiver = listen(endpoint, path)
        return self.receiver.transport

    def stop_listening(self) -> None:
        """Close the port, so that no more events are taken."""
        if self.receiver is not None:
            self.receiver.close()
            self.receiver = None

    def follow(self, bundle: CaptureBundle) -> None:
        """Download what a driver in a cluster delivers, while its job runs."""
        if bundle.manifest.remote:
            from airflow_provider_sparklineage.spark.capture import remote

            self.follower = remote.followed(bundle)

    def stop_following(self) -> None:
        """Remove what was downloaded while the job ran."""
        if self.follower is not None:
            self.follower.stop().remove()
            self.follower = None

    def remove(self) -> None:
        """Remove the links, the properties file and the downloaded files, and close the port."""
        self.stop_listening()
        self.stop_following()
        self.links.remove()
        self.properties.remove()


# The capture of a try. Nothing here fails the user's task: each failure becomes a degradation in
# the manifest, and so in the event. The exception is ``strict=True``, which raises before anything
# is submitted.


class Capture(Frozen, frozen=True):
    """The bundle of a try and the course of its job; each stage passes a changed copy on.

    :param spark_properties: all properties that the job is submitted with; None if they could not
        be found out
    :param is_awaited: whether the task ends no earlier than its application
    :param is_in_process: whether the listener goes into a driver that is the task's own process
    :param is_resumable: whether Airflow tries to resume the job that an earlier try submitted
    :param is_submitted: whether this try submitted the job itself
    :param resumed_id: the id by which Airflow knows the job of the earlier try
    :param is_refused: whether Airflow did not submit the job, so that no driver is going to deliver
    :param is_found_by_name: whether another process has to find the bundle at the capture location
    :param is_taken_up: whether another process of this try submitted the job
    :param is_delivered: whether a driver in a cluster has reported that it delivered all its files
    :param unsubmitted: a sentence on the failure of spark-submit, if the driver would run in a
        cluster; empty if spark-submit did not fail, or that is not known
    """

    settings: Settings
    bundle: CaptureBundle
    own_files: OwnFiles
    lineage_conn_id: str = DEFAULT_CONN_ID
    spark_properties: Mapping[str, str] | None = None
    is_awaited: bool = True
    is_in_process: bool = False
    is_resumable: bool = False
    is_submitted: bool = False
    resumed_id: str = ""
    is_refused: bool = False
    is_found_by_name: bool = False
    is_taken_up: bool = False
    is_delivered: bool = False
    unsubmitted: str = ""

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier try submitted the job, and this try resumed it."""
        return self.is_resumable and not self.is_submitted

    def degraded(self, code: DegradationCode, message: str) -> Capture:
        """Give a capture with one more degradation; secrets in the message are hidden."""
        return self.noted((code, message))

    def noted(self, *problems: tuple[DegradationCode, str], **changes: Any) -> Capture:
        """Give a capture whose manifest is changed; save the manifest if there is a bundle.

        :param problems: degradations to add, each as code and message
        :param changes: fields of the manifest
        """
        added = (safe_degradation(*problem) for problem in problems)
        return replace(self, bundle=self.bundle.noted(*added, **changes))

    def abandon(self) -> None:
        """Remove the bundle and all files of a try whose job does not get the listener."""
        self.own_files.remove()
        self.bundle.remove()


def safe_degradation(code: DegradationCode, message: str) -> Degradation:
    """Make a degradation; secrets in the message are hidden."""
    # Names of files may not be valid Unicode.
    return Degradation(code, masked_message(message.encode(errors="replace").decode()))


def begun(
    context: Context,
    settings: Settings,
    conn_id: str,
    *,
    of_command: bool = False,
    is_found_by_name: bool = False,
) -> Capture:
    """Make the bundle of a try, and give the capture with it.

    If the bundle cannot be made, the capture has none, and a degradation has the reason.

    :param conn_id: the connection that the settings were read from
    :param of_command: whether spark-submit is in a command of the user's own
    :param is_found_by_name: whether another process has to find the bundle at the capture location
    :raise CaptureError: if the bundle cannot be made and ``settings.strict`` is true
    """
    manifest = manifest_of(context, settings, of_command=of_command)
    try:
        bundle = bundles.create(
            settings.capture_location.folder,
            manifest,
            is_found_by_name=of_command or is_found_by_name,
        )
    except (CaptureError, OSError) as error:
        if settings.strict:
            raise
        reason = safe_degradation(DegradationCode.CAPTURE_UNAVAILABLE, str(error))
        bundle = CaptureBundle(None, manifest).noted(reason)
    return Capture(
        settings,
        bundle,
        OwnFiles(bundle.path),
        conn_id,
        is_awaited=not of_command,
        is_found_by_name=is_found_by_name,
    )


_TAKE_UP_S = 20.0  # the task waits, but its job has ended


def taken_up(context: Context, settings: Settings, conn_id: str) -> Capture:
    """Take up the capture of a try that was deferred, by the manifest at the capture location.

    If the manifest cannot be found, the capture has none of the job's lineage, and a degradation
    has the reason.

    :param conn_id: the connection that the settings were read from
    """
    capture = begun(context, settings, conn_id, is_found_by_name=True)
    own, location = capture.bundle, settings.capture_location
    if own.path is None:
        return capture
    from airflow_provider_sparklineage.spark.capture import remote_bundles

    url = f"{location.url}/{own.path.name}"
    try:
        if not location.url:
            problem = "The task was deferred, and the capture location is on one worker alone."
            fix = "Set [sparklineage] capture_location to a URL that drivers and workers reach."
            raise CaptureError(problem, fix)  # noqa: TRY301  (handled like an unreadable manifest)
        theirs = remote_bundles.manifest_of(url, Deadline().part(_TAKE_UP_S))
    except CaptureError as error:
        return capture.degraded(DegradationCode.CAPTURE_UNAVAILABLE, str(error))
    manifest = replace(theirs, worker=own.manifest.worker, remote=url)
    bundle = replace(own, manifest=manifest)
    # Without a remote folder nothing was added to the job, and no driver delivers.
    return replace(capture, bundle=bundle, is_taken_up=True, is_refused=not theirs.remote)


def injected(
    capture: Capture, inject: Callable[[Capture], Capture], wrong: SettingsError | None
) -> Capture:
    """Put the listener into the job; if that fails, or a setting is wrong, give up collecting.

    The capture then has no bundle (:func:`without_bundle`).

    :param inject: puts the listener into the operator's submission; without a bundle it only moves
        secrets out of the arguments
    :param wrong: the error of the setting; None if the settings could be resolved
    :raise Exception: if ``inject`` fails and ``settings.strict`` is true
    """
    if wrong is not None:
        capture = without_bundle(capture, wrong)
    try:
        return inject(capture)
    except Exception as error:
        if capture.settings.strict:
            capture.abandon()
            raise
        return without_bundle(capture, error)


def without_bundle(capture: Capture, error: Exception) -> Capture:
    """Give up collecting: remove the bundle and the try's own files, and note a degradation.

    The event of the try will have the degradation.

    :param error: the reason, which the degradation's message contains
    """
    log.debug("Setting up lineage failed.", exc_info=error)
    capture.abandon()
    problem = str(error)
    if not isinstance(error, SparkLineageError):
        problem = f"Lineage could not be set up ({type(error).__name__}: {error})."
    capture = replace(capture, bundle=replace(capture.bundle, path=None))
    return capture.degraded(DegradationCode.INJECTION_FAILED, problem)


def refused(capture: Capture, error: Exception) -> Capture:
    """Note in the manifest, as a degradation, why nothing is added to the job.

    :raise Exception: ``error`` itself, if ``settings.strict`` is true
    """
    if capture.settings.strict:
        raise error
    if not capture.bundle.manifest.injected:  # else another driver of the task is listened to
        capture.own_files.stop_listening()
    log.debug("Injecting the listener failed.", exc_info=error)
    codes = (_REFUSALS[kind] for kind in type(error).__mro__ if kind in _REFUSALS)
    code = next(codes, DegradationCode.INJECTION_FAILED)
    known = isinstance(error, SparkLineageError)
    return capture.degraded(code, str(error) if known else f"{type(error).__name__}: {error}")


def named_unheard(capture: Capture, submissions: Sequence[Submission]) -> Capture:
    """Note, for a task with several submissions, that some of them have no listener.

    The reason that each of these has noted may be one that deliveries disprove; but here the
    deliveries are those of the other drivers.
    """
    key = "spark.extraListeners"
    unheard = [s for s in submissions if LISTENER_CLASS not in listed(s.value(key))]
    if not unheard or len(unheard) == len(submissions):
        return capture
    elsewhere = DegradationCode.DRIVER_ELSEWHERE
    reasons = [d.message for d in capture.bundle.manifest.degradations if d.code is elsewhere]
    return capture.degraded(
        DegradationCode.LISTENER_UNAVAILABLE,
        f"{len(unheard)} of the {len(submissions)} Spark applications of the task run without the "
        f"listener, so what they read and write is not in this event. {' '.join(reasons)}".strip(),
    )


def declared(capture: Capture, known: Declared) -> Capture:
    """Note in the manifest the datasets and partitions that the task declares.

    :param known: these datasets and partitions, and sentences about invalid declarations
    """
    unusable = ((DegradationCode.DECLARATION_UNUSABLE, problem) for problem in known.problems)
    return capture.noted(
        *unusable,
        declared_inputs=known.inputs,
        declared_outputs=known.outputs,
        expectations=known.expectations,
        naming=dict(known.naming),
    )


_ANNOUNCE_S = 10.0  # the job waits
_TOOLS_S = 60.0  # the job waits, the first time that a worker puts 43 MB there


def announced(capture: Capture) -> tuple[Capture, bool]:
    """Write the manifest to the remote folder to which a driver in a cluster is going to deliver.

    Without a remote folder nothing is written.

    :return: the capture; False if the store did not take the manifest, else True
    :raise CaptureError: if the store does not take the manifest and ``settings.strict`` is true
    """
    manifest = capture.bundle.manifest
    location = capture.settings.capture_location.url
    url = manifest.remote
    if not url and capture.is_found_by_name and location and capture.bundle.path:
        url = f"{location}/{capture.bundle.path.name}"
    if not url:
        return capture, True
    try:
        from airflow_provider_sparklineage.spark.capture import remote_bundles

        remote_bundles.announce(manifest, Deadline().part(_ANNOUNCE_S), url)
    except Exception as error:
        if capture.settings.strict:
            raise
        # Collecting removes this degradation once the delivered files are known.
        return capture.degraded(DegradationCode.DELIVERY_INCOMPLETE, str(error)), False
    return capture, True


def identity(capture: Capture, submission: Submission, context: Context) -> dict[str, str]:
    """Give the listener's properties that name the application's job, and the task as its parent.

    Parent properties that the submission already has are left out.

    :return: values of Spark properties by key
    """
    task = capture.bundle.manifest.task
    namespace = lineage_job_namespace()  # type: ignore[no-untyped-call]
    own = {"spark.openlineage.namespace": namespace}
    if task is not None:
        own["spark.openlineage.appName"] = f"{task.dag_id}.{task.task_id}"
    known = dict.fromkeys(submission.keys(), "")
    parents: dict[str, str] = inject_parent_job_information_into_spark_properties(known, context)
    return own | {key: value for key, value in parents.items() if key not in known}


class Submittable(NamedTuple):
    """A submission as it goes to spark-submit or to a service, with its capture.

    Its properties file is the one that this package wrote for it, if it wrote one.
    """

    capture: Capture
    submission: Submission


def submittable(
    capture: Capture, submission: Submission, target: Target, context: Context
) -> Submittable:
    """Put the listener into a submission; if that fails, note a degradation instead.

    In that case only secrets are moved out of the submission's arguments (:func:`protected`).

    :raise SparkLineageError: if the listener cannot be injected and ``settings.strict`` is true
    """
    if capture.bundle.path is not None:  # if there is no bundle, a degradation has the reason
        try:
            if target.is_in_process:  # the listener is added as soon as there is a JVM
                capture = replace(capture, spark_properties=submission.conf)
                deploy_mode.refuse_connect(submission, target.master, os.environ)
                return Submittable(replace(capture, is_in_process=True), submission)
            if not target.takes_properties_file:
                capture, submission = _with_public_transport(capture, submission, target)
                target = target._replace(transport={})
            before = additions.resolved(submission, target, capture.settings)
            mask(*injection.transport_secrets(before.submission))
            properties = before.submission
            capture = replace(
                capture,
                spark_properties={k: properties.value(k) or "" for k in sorted(properties.keys())},
            )
            return _with_listener(capture, before, target, context)
        except Exception as error:
            capture = refused(capture, error)
    return protected(capture, submission, target)


def _with_public_transport(
    capture: Capture, submission: Submission, target: Target
) -> tuple[Capture, Submission]:
    """Add Airflow's transport; leave out a transport with a secret, which others could see.

    The transport is the job's own, or Airflow's, which is the target's. The listener's events are
    collected all the same.
    """
    exposed = additions.with_transport(submission, target)
    mask(*injection.transport_secrets(exposed))
    if injection.without_secret_transport(exposed) is exposed:
        return capture, exposed
    place = target.service or ("that place" if target.is_elsewhere else target.spark_binary)
    reason = f"{place} is given no properties file, and others can see all else that it is given."
    return _transport_left_out(capture, reason), injection.without_transport(submission)


def _transport_left_out(capture: Capture, reason: str) -> Capture:
    return capture.degraded(
        DegradationCode.TRANSPORT_LEFT_OUT,
        "The job was submitted without its own OpenLineage transport, which has a secret "
        f"that nothing but its arguments could have passed on: {reason}",
    )


def _with_listener(
    capture: Capture, before: ResolvedSubmission, target: Target, context: Context
) -> Submittable:
    settings, own_files, bundle = capture.settings, capture.own_files, capture.bundle

    def take_events() -> Mapping[str, str]:
        return own_files.listen(settings.capture_endpoint, cast("Path", bundle.events_path))

    defaults = identity(capture, before.submission, context)
    budget = Deadline().part(_TOOLS_S)
    after = additions.injected(
        before, target, bundle, settings, defaults, own_files.links, take_events, budget
    )
    submission = _with_properties_file(capture, after.submission, target)
    manifest = bundle.manifest
    remote = manifest.remote
    if after.delivers and bundle.path is not None:
        remote = f"{settings.capture_location.url}/{bundle.path.name}"
    versions = {"spark": before.spark.version, "scala": before.spark.scala}
    capture = replace(capture, is_awaited=after.is_awaited).noted(
        *after.degradations,
        remote=remote,
        injected=_united(manifest.injected, after.names),
        reached_tools=_united(manifest.reached_tools, after.tools.reached),
        unreached_tools=_united(manifest.unreached_tools, after.tools.unreached),
        versions={**manifest.versions, **versions},
    )
    return Submittable(capture, submission)


def _united(*names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(names)))


def protected(capture: Capture, submission: Submission, target: Target) -> Submittable:
    """Move the secrets of the user's OpenLineage transport out of the arguments of spark-submit.

    All users of the machine can read these arguments. The secrets go to a properties file. If that
    is not possible, the transport is left out, and a degradation is noted.
    """
    try:
        safe = additions.without_secrets(submission, target)
        mask(*injection.transport_secrets(safe))
        return Submittable(capture, _with_properties_file(capture, safe, target))
    except Exception as error:
        log.debug("Secrets cannot be moved to a file.", exc_info=True)
        reason = str(error)
    exposed = additions.with_transport(submission, target)
    mask(*injection.transport_secrets(exposed))
    after = injection.without_secret_transport(exposed)
    if after is not exposed:
        capture = _transport_left_out(capture, reason)
    return Submittable(capture, after)


def _with_properties_file(capture: Capture, submission: Submission, target: Target) -> Submission:
    """Write the properties file that a submission needs, and name it in the submission.

    :raise CaptureError: if the file cannot be written to any folder, or if what submits the job
        cannot read files of this worker
    """
    properties = submission.new_file
    if properties is None:
        return submission
    if not target.takes_properties_file:
        problem = "What may be a secret has to be in a file, and there is none of ours."
        fix = "Leave spark.openlineage.transport.* to the files of that place."
        raise CaptureError(problem, fix)
    own, files = capture.bundle.path, capture.own_files
    folders = bundles.folders_of_properties(capture.settings.capture_location.folder)
    if own is None:  # there is no bundle, perhaps because its location cannot be written to
        folders = folders[1:]
    elif target.is_command:  # the command may run spark-submit after the other folders are swept
        folders = (files.links.plain(own), *folders)
    return replace(submission, properties_file=files.properties.write(properties, folders))
