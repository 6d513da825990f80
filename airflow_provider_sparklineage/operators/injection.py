"""From a task's submission to the one with the listener in it: what is read, checked and added."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import (
    CaptureError,
    ListenerError,
    RemoteDriverError,
)
from airflow_provider_sparklineage.operators import driver_files
from airflow_provider_sparklineage.spark.capture.bundle import EVENTS
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
    refuse_connect,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_sparklineage.operators.driver_files import DriverFiles
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
    from airflow_provider_sparklineage.spark.submit.submission import Submission
    from airflow_provider_sparklineage.spark.submit.submitted_files import Links

log = logger(__name__)


class SubmitTarget(NamedTuple):
    """Where the submission goes, as the operator's hook resolves it from the Spark connection.

    :param transport: properties of Airflow's own transport, where the task is to give it to Spark
    :param is_polled: whether Airflow asks the cluster until the application has ended
    :param is_command: whether spark-submit is in a command of the user's own, for which nobody here
        waits, and whose environment is the user's
    :param is_elsewhere: whether that runs on another machine, to which no file of this worker comes
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
        """Whether ``env_vars`` stay such; on YARN and Kubernetes the hook makes conf of them."""
        return not self.is_command and "yarn" not in self.master and "k8s" not in self.master


class ResolvedSubmission(NamedTuple):
    """A submission with the Spark and the properties that it meets, before anything is added."""

    submission: Submission
    spark: SparkDistribution
    env: Mapping[str, str]


class Injected(NamedTuple):
    """A submission with the listener in it, and what could not be added.

    :param delivers: whether the driver delivers what it captures to the capture location's URL
    :param is_awaited: whether the task ends no earlier than its application
    """

    submission: Submission
    degradations: tuple[tuple[DegradationCode, str], ...]
    delivers: bool
    is_awaited: bool


def resolved(
    submission: Submission, target: SubmitTarget, settings: Settings
) -> ResolvedSubmission:
    """Find the Spark that will run, and the properties that a submission has from a file.

    :raise ListenerError: if there is no Spark, or its properties file cannot be found
    """
    env = distribution.environment(submission.env_vars)
    spark = listener_selection.spark_of(
        target.spark_binary, env, settings.spark_version, in_task=True
    )
    return ResolvedSubmission(_with_file(submission, target, spark.home, env), spark, env)


def without_secrets(submission: Submission, target: SubmitTarget) -> Submission:
    """Move secrets of the user's transport to a file, where nothing else is to be added.

    :raise ListenerError: if it is not known which file that one would replace
    """
    env = distribution.environment(submission.env_vars)
    spark = distribution.find(target.spark_binary, env)
    found = _with_file(submission, target, spark.home if spark else None, env)
    return injection.without_secrets(found)


def with_transport(submission: Submission, target: SubmitTarget) -> Submission:
    """Add Airflow's transport, where the task is to give it to Spark and the job has none."""
    if any(key.startswith(injection.TRANSPORT) for key in submission.keys()):  # noqa: SIM118  (method)
        return submission
    return submission.with_conf(target.transport)


def _with_file(
    submission: Submission, target: SubmitTarget, home: Path | None, env: Mapping[str, str]
) -> Submission:
    """Find the properties that a submission has from a file, and its transport."""
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
    """Add the listener, what extends it, and the observer, as far as they can be.

    :param bundle: one that has a folder
    :param defaults: of the listener's properties
    :param links: where those to paths that Spark would misread are made
    :param listen: makes the worker listen for events; gives the transport that sends them there
    :raise RemoteDriverError: if nothing can be collected where the driver will run
    :raise ListenerError: if the job cannot carry the listener; names the fix
    :raise CaptureError: if Spark could not find the bundle, or a jar on the shared mount
    """
    submission, spark, env = before
    host = _driver_host(submission, target, env)
    is_awaited = not target.is_command and deploy_mode.waits_for_end(
        submission, host, is_polled=target.is_polled
    )
    files = driver_files.of(host, submission, bundle, settings, links, is_awaited=is_awaited)
    refuse_connect(submission, target.master, env)
    cache = fetching.cache_folder(env)
    # The jars in a pod's image, for one, are not those of the worker's Spark.
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
        jars = [deploy_mode.reachable(host, jar, share, cache) for jar in jars]
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
    """Find the listener jar, or fetch it if the task may."""
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
    """Give what Spark takes for these jars, and an error for each that can have no such name."""
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
