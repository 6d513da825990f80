"""Put the listener into a task's submission, and begin the capture of its try.

The input is the operator's arguments as a ``Submission``, and the place to which they are
submitted. The output is the arguments with listener, extensions and observer in them, as far as
these can be added, and the :class:`Capture`, which has the bundle for the driver's reports. The
bundle's manifest has the reason for each part that cannot be added.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
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
    SparkLineageError,
)
from airflow_provider_sparklineage.model.producer import DISTRIBUTION, version
from airflow_provider_sparklineage.model.terms import EVENTS, Frozen, JobName
from airflow_provider_sparklineage.operators.attempt.driver_files import (
    DriverFiles,
    OwnFiles,
    driver_files,
)
from airflow_provider_sparklineage.operators.attempt.timing import Deadline
from airflow_provider_sparklineage.operators.masking import mask, masked, masked_message
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID
from airflow_provider_sparklineage.spark.capture import bundle as bundles
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest, TaskIdentity
from airflow_provider_sparklineage.spark.submit import (
    deploy_mode,
    distribution,
    fetching,
    injection,
    listener_selection,
    submitted_files,
)
from airflow_provider_sparklineage.spark.submit.deploy_mode import DriverHost
from airflow_provider_sparklineage.spark.submit.injection import (
    SUBMIT_OPTS,
    Injection,
    inject,
    injected_names,
    refuse_connect,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.expectations.declared import Declared
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
    from airflow_provider_sparklineage.spark.submit.submission import Submission
    from airflow_provider_sparklineage.spark.submit.submitted_files import Links

log = logger(__name__)


def manifest_of(context: Context, settings: Settings, *, of_command: bool = False) -> Manifest:
    """Make the manifest of a try that begins; the manifest has no secrets.

    :param of_command: whether spark-submit is in a command of the user's own
    """
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
        worker=bundles.this_worker(),
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
    :param is_delivered: whether a driver in a cluster has reported that it delivered all its files
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
    is_delivered: bool = False

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier try submitted the job, and this try resumed it."""
        return self.is_resumable and not self.is_submitted

    def degraded(self, code: DegradationCode, message: str) -> Capture:
        """Add a degradation to the manifest; secrets in the message are hidden."""
        return self.noted((code, message))

    def noted(self, *problems: tuple[DegradationCode, str], **changes: Any) -> Capture:
        """Give a capture whose manifest has changed fields; save it in the bundle, if there is one.

        :param problems: degradations to add, each as code and message
        :param changes: fields of the manifest
        """
        manifest = replace(self.bundle.manifest, **changes)
        added = tuple(Degradation(code, _safe(message)) for code, message in problems)
        manifest = replace(manifest, degradations=(*manifest.degradations, *added))
        bundle = replace(self.bundle, manifest=manifest)
        try:
            bundle.save()
        except CaptureError as error:
            log.debug("%s", error)
        return replace(self, bundle=bundle)

    def abandon(self) -> None:
        """Remove the bundle and all files of a try whose job does not get the listener."""
        self.own_files.remove()
        self.bundle.remove()


def _safe(message: str) -> str:
    # Names of files may not be valid Unicode.
    return masked_message(message.encode(errors="replace").decode())


def begun(
    context: Context, settings: Settings, conn_id: str, *, of_command: bool = False
) -> Capture:
    """Make the bundle of a try; if that fails, go on without a bundle (or raise, if strict).

    :param conn_id: the connection that the settings were read from
    :param of_command: whether spark-submit is in a command of the user's own
    :raise CaptureError: if the bundle cannot be made and ``settings.strict`` is true
    """
    manifest = manifest_of(context, settings, of_command=of_command)
    error: Exception | None = None
    try:
        made = bundles.create(settings.capture_location.folder, manifest)
    except (CaptureError, OSError) as reason:
        if settings.strict:
            raise
        made, error = CaptureBundle(None, manifest), reason
    capture = Capture(settings, made, OwnFiles(made.path), conn_id, is_awaited=not of_command)
    if error is None:
        return capture
    return capture.degraded(DegradationCode.CAPTURE_UNAVAILABLE, str(error))


def without_bundle(capture: Capture, error: Exception) -> Capture:
    """Give up collecting: remove the bundle, and note the reason for the event."""
    log.debug("Setting up lineage failed.", exc_info=error)
    capture.abandon()
    problem = str(error)
    if not isinstance(error, SparkLineageError):
        problem = f"Lineage could not be set up ({type(error).__name__}: {error})."
    capture = replace(capture, bundle=replace(capture.bundle, path=None))
    return capture.degraded(DegradationCode.INJECTION_FAILED, problem)


def refused(capture: Capture, error: Exception) -> Capture:
    """Note the reason why nothing is added to the job.

    :raise Exception: ``error`` itself, if ``settings.strict`` is true
    """
    if capture.settings.strict:
        raise error
    capture.own_files.stop_listening()
    log.debug("Injecting the listener failed.", exc_info=error)
    code = _REFUSALS.get(type(error), DegradationCode.INJECTION_FAILED)
    known = isinstance(error, SparkLineageError)
    return capture.degraded(code, str(error) if known else f"{type(error).__name__}: {error}")


def declared(capture: Capture, known: Declared) -> Capture:
    """Note in the manifest the datasets that the task declares."""
    unusable = ((DegradationCode.DECLARATION_UNUSABLE, problem) for problem in known.problems)
    return capture.noted(
        *unusable,
        declared_inputs=known.inputs,
        declared_outputs=known.outputs,
        expectations=known.expectations,
        naming=dict(known.naming),
    )


_ANNOUNCE_S = 10.0  # the job waits


def announced(capture: Capture) -> tuple[Capture, bool]:
    """Write the manifest to the remote folder to which a driver in a cluster is going to deliver.

    Without a remote folder nothing is written.

    :return: the capture; False if the store did not take the manifest, else True
    :raise CaptureError: if the store does not take the manifest and ``settings.strict`` is true
    """
    if not capture.bundle.manifest.remote:
        return capture, True
    try:
        from airflow_provider_sparklineage.spark.capture import remote_bundles

        remote_bundles.announce(capture.bundle.manifest, Deadline().part(_ANNOUNCE_S))
    except Exception as error:
        if capture.settings.strict:
            raise
        # Collecting removes this degradation once the delivered files are known.
        return capture.degraded(DegradationCode.DELIVERY_INCOMPLETE, str(error)), False
    return capture, True


def identity(capture: Capture, submission: Submission, context: Context) -> dict[str, str]:
    """Give the listener's properties that name the application: its job, and the task as parent.

    Parent properties that the submission already has are left out.
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
    """A submission as it goes to spark-submit, with its capture.

    :param properties_file: path of the properties file that this package wrote for the submission;
        None if it wrote no file
    """

    capture: Capture
    submission: Submission
    properties_file: str | None


def submittable(
    capture: Capture, submission: Submission, target: SubmitTarget, context: Context
) -> Submittable:
    """Put the listener into a submission; if that fails, note a degradation instead.

    :raise SparkLineageError: if the listener cannot be injected and ``settings.strict`` is true
    """
    if capture.bundle.path is not None:  # if there is no bundle, a degradation has the reason
        try:
            before = resolved(submission, target, capture.settings)
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


def _with_listener(
    capture: Capture, before: ResolvedSubmission, target: SubmitTarget, context: Context
) -> Submittable:
    settings, own_files, bundle = capture.settings, capture.own_files, capture.bundle

    def take_events() -> Mapping[str, str]:
        return own_files.listen(settings.capture_endpoint, cast("Path", bundle.events_path))

    names = identity(capture, before.submission, context)
    after = injected(before, target, bundle, settings, names, own_files.links, take_events)
    submission, properties_file = _with_file(capture, after.submission, target, is_injected=True)
    capture = replace(capture, is_awaited=after.is_awaited)
    for code, problem in after.degradations:
        capture = capture.degraded(code, problem)
    if after.delivers and bundle.path is not None:
        capture = capture.noted(remote=f"{settings.capture_location.url}/{bundle.path.name}")
    versions = {"spark": before.spark.version, "scala": before.spark.scala}
    capture = capture.noted(
        injected=injected_names(before.submission, after.submission),
        versions={**bundle.manifest.versions, **versions},
    )
    return Submittable(capture, submission, properties_file)


def protected(capture: Capture, submission: Submission, target: SubmitTarget) -> Submittable:
    """Move the secrets of the user's transport out of the arguments, which all users can read.

    The secrets go to a properties file. If that is not possible, the transport is left out, and a
    degradation is noted.
    """
    try:
        safe = without_secrets(submission, target)
        mask(*injection.transport_secrets(safe))
        return Submittable(capture, *_with_file(capture, safe, target))
    except Exception as error:
        log.debug("Secrets cannot be moved to a file.", exc_info=True)
        reason = str(error)
    given = with_transport(submission, target)
    mask(*injection.transport_secrets(given))
    after = injection.without_secret_transport(given)
    if after is not given:
        capture = capture.degraded(
            DegradationCode.TRANSPORT_LEFT_OUT,
            "The job was submitted without its own OpenLineage transport, which has a secret "
            f"that nothing but its arguments could have passed on: {reason}",
        )
    return Submittable(capture, after, None)


def _with_file(
    capture: Capture, submission: Submission, target: SubmitTarget, *, is_injected: bool = False
) -> tuple[Submission, str | None]:
    """Write the properties file that a submission needs, if it needs one.

    For a command of the user's own, all added properties go into the file: then the command's own
    arguments, which are not known here, win over these properties.

    :return: the submission, and the path of the file; None if no file is needed
    :raise CaptureError: if the file can be written to no folder, or if spark-submit runs on another
        machine
    """
    if target.is_command and is_injected and not target.is_elsewhere:
        submission = submission.all_in_file()
    if submission.new_file is None:
        return submission, None
    if target.is_elsewhere:
        problem = "What may be a secret has to be in a file, and there is none of ours."
        fix = "Leave spark.openlineage.transport.* to the files of that place."
        raise CaptureError(problem, fix)
    own, files = capture.bundle.path, capture.own_files
    folders = bundles.folders_of_properties(capture.settings.capture_location.folder)
    if own is None:  # there is no bundle, perhaps because its location cannot be written to
        folders = folders[1:]
    elif target.is_command:  # the command may run spark-submit after the other folders are swept
        folders = (files.links.plain(own), *folders)
    return submission, files.properties.write(submission.new_file, folders)


# The submission itself. Nothing below asks Airflow.


class SubmitTarget(NamedTuple):
    """The place to which a job is submitted, as the operator's hook reads it from the connection.

    :param transport: properties of Airflow's own transport; empty unless the task is asked to give
        that transport to Spark
    :param is_polled: whether Airflow asks the cluster until the application has ended
    :param is_command: whether spark-submit is in a command of the user's own: then its end is not
        awaited, and its environment is the user's
    :param is_elsewhere: whether the command runs on another machine, which does not have this
        worker's files
    """

    spark_binary: str
    master: str
    deploy_mode: str | None
    properties_file: str | None
    transport: Mapping[str, str] = MappingProxyType({})
    is_polled: bool = False
    is_command: bool = False
    is_elsewhere: bool = False

    @property
    def environment_is_private(self) -> bool:
        """Whether ``env_vars`` are passed to the driver as environment variables.

        On YARN and Kubernetes the hook turns them into properties, which all users can read.
        """
        return not self.is_command and "yarn" not in self.master and "k8s" not in self.master


class ResolvedSubmission(NamedTuple):
    """A submission before anything is added, with its Spark, properties and environment."""

    submission: Submission
    spark: SparkDistribution
    env: Mapping[str, str]


class Injected(NamedTuple):
    """A submission with the listener in it, and a degradation for each part that is missing.

    :param delivers: whether the driver delivers its captured files to the capture location's URL
    :param is_awaited: whether the task ends no earlier than its application
    """

    submission: Submission
    degradations: tuple[tuple[DegradationCode, str], ...]
    delivers: bool
    is_awaited: bool


def resolved(
    submission: Submission, target: SubmitTarget, settings: Settings
) -> ResolvedSubmission:
    """Find the Spark that will run, and the properties that a submission gets from a file.

    :raise ListenerError: if there is no Spark, or its properties file cannot be found
    """
    env = distribution.environment(submission.env_vars)
    spark = listener_selection.spark_of(
        target.spark_binary, env, settings.spark_version, in_task=True
    )
    with_file = _with_file_properties(submission, target, spark.home, env)
    return ResolvedSubmission(with_file, spark, env)


def without_secrets(submission: Submission, target: SubmitTarget) -> Submission:
    """Move secrets of the user's transport to a properties file; add nothing else.

    :raise ListenerError: if the properties file that the new file would replace is not known
    """
    env = distribution.environment(submission.env_vars)
    spark = distribution.find(target.spark_binary, env)
    found = _with_file_properties(submission, target, spark.home if spark else None, env)
    return injection.without_secrets(found)


def with_transport(submission: Submission, target: SubmitTarget) -> Submission:
    """Add Airflow's transport if the target has it and the job has no transport of its own."""
    if any(key.startswith(injection.TRANSPORT) for key in submission.keys()):  # noqa: SIM118  (method)
        return submission
    return submission.with_conf(target.transport)


def _with_file_properties(
    submission: Submission, target: SubmitTarget, home: Path | None, env: Mapping[str, str]
) -> Submission:
    """Add the properties that a submission gets from a file, and Airflow's transport."""
    if target.is_elsewhere:
        properties = {}
    elif target.properties_file:
        properties = distribution.read_properties(Path(target.properties_file))
    else:
        properties = distribution.defaults(home, env)
    return with_transport(replace(submission, file_properties=properties), target)


def injected(
    before: ResolvedSubmission,
    target: SubmitTarget,
    bundle: CaptureBundle,
    settings: Settings,
    defaults: Mapping[str, str],
    links: Links,
    listen: Callable[[], Mapping[str, str]],
) -> Injected:
    """Add the listener, its extensions and the observer, as far as they can be added.

    :param bundle: a bundle that has a folder
    :param defaults: defaults of the listener's properties
    :param links: makes links to paths that Spark would misread
    :param listen: makes this worker listen for events; gives the properties by which the listener
        sends its events to the worker
    :raise RemoteDriverError: if nothing can be collected where the driver will run
    :raise ListenerError: if the job cannot carry the listener; the error names the fix
    :raise CaptureError: if Spark could not find the bundle, or a jar on the shared mount
    """
    submission, spark, env = before
    host = _driver_host(submission, target, env)
    is_awaited = not target.is_command and deploy_mode.waits_for_end(
        submission, host, is_polled=target.is_polled
    )
    files = driver_files(host, submission, bundle, settings, links, is_awaited=is_awaited)
    refuse_connect(submission, target.master, env)
    cache = fetching.cache_folder(env)
    # If the driver has other jars, in a pod's image for instance, the jars of the worker's Spark
    # are not looked at.
    there = spark if deploy_mode.has_jars_of_worker(host, submission) else replace(spark, home=None)
    found = listener_selection.job_listeners(submission, there)
    own = listener_selection.only_listener(found, submission, there, cache)
    jars: list[str] = []
    if own is None:
        jars.append(_listener_jar(before, target, settings, links, is_remote=host.is_remote))
        files.require_carried(jars[0])
    given = settings.listener_extensions
    extensions, errors = listener_selection.checked_extensions(
        given, own, cache, is_remote=host.is_remote
    )
    extensions, more = _entries(extensions, files, links)
    errors += more
    jars += extensions
    missing = [(DegradationCode.EXTENSION_UNAVAILABLE, str(error)) for error in errors]
    if errors and settings.strict:
        raise ListenerError(" ".join(map(str, errors)))
    observation = None
    if settings.observe:
        observation, problem = files.observation(submission, bundle, links)
        if problem is not None:
            missing.append((DegradationCode.OBSERVER_UNAVAILABLE, problem))
    if files.are_on_mount:
        share = settings.capture_location.folder / "jars"
        jars = [deploy_mode.reachable(host, jar, share) for jar in jars]
    submit_opts = None
    if target.environment_is_private and not host.is_remote:
        submit_opts = env.get(SUBMIT_OPTS, "")
    injection = Injection(
        jars=tuple(jars),
        events_path=f"{files.folder}/{EVENTS}",
        application_run_id=bundle.manifest.application_run_id,
        defaults=defaults,
        existing_transport=settings.existing_transport,
        submit_opts=submit_opts,
        is_quiet=not target.is_elsewhere,
        observation=observation,
        sending=listen() if files.are_sent else {},
    )
    return Injected(
        inject(submission, injection),
        tuple(missing),
        delivers=bool(files.delivered_to),
        is_awaited=is_awaited,
    )


def _driver_host(
    submission: Submission, target: SubmitTarget, env: Mapping[str, str]
) -> DriverHost:
    if target.is_elsewhere:
        return DriverHost.ELSEWHERE
    # Without a connection of Airflow's, the master may be among the properties.
    master = target.master or submission.value("spark.master") or ""
    return deploy_mode.driver_host(submission, master, target.deploy_mode, env)


def _listener_jar(
    before: ResolvedSubmission,
    target: SubmitTarget,
    settings: Settings,
    links: Links,
    *,
    is_remote: bool,
) -> str:
    """Find the entry of ``--jars`` for the listener; fetch its jar first if the settings allow it.

    :raise ListenerError: if there is no jar, or its path has a character that Spark misreads
    """
    configured = settings.listener_jar
    if settings.fetch_listener and configured is None:
        listener_selection.fetch_for(
            before.spark, target.spark_binary, before.env, progress=log.info, in_task=True
        )
    jar = listener_selection.jar_for(before.spark, configured, before.env, is_remote=is_remote)
    if submitted_files.scheme(jar):
        return jar
    try:
        return links.entry(jar)
    except CaptureError as error:
        fix = "Put the jar where the path is letters of ASCII, digits and / _ . + = @ ~ - alone."
        raise ListenerError(error.problem, fix) from error


def _entries(
    extensions: tuple[str, ...], files: DriverFiles, links: Links
) -> tuple[tuple[str, ...], tuple[ListenerError, ...]]:
    """Give the entries of ``--jars`` for extensions, and an error for each that cannot be added."""
    entries, errors = [], []
    for name in extensions:
        try:
            files.require_carried(name)
            entries.append(links.entry(name))
        except CaptureError as error:
            errors.append(ListenerError(error.problem, "Give it another path."))
        except RemoteDriverError as error:
            errors.append(ListenerError(error.problem, error.fix))
    return tuple(entries), tuple(errors)
