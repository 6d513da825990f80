"""From a task's submission to the one with the listener in it: what is read, checked and added."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast

from msgspec.structs import replace

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import (
    CaptureError,
    ListenerError,
    RemoteDriverError,
)
from airflow_provider_sparklineage.spark.capture.bundle import EVENTS, OBSERVATIONS
from airflow_provider_sparklineage.spark.capture.location import in_spark
from airflow_provider_sparklineage.spark.submit import (
    class_path,
    deploy_mode,
    distribution,
    fetching,
    listener_selection,
    observer_zip,
    transport,
)
from airflow_provider_sparklineage.spark.submit.deploy_mode import DriverHost
from airflow_provider_sparklineage.spark.submit.injection import (
    Injection,
    Observation,
    can_observe,
    inject,
    refuse_connect,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
    from airflow_provider_sparklineage.spark.submit.plain_paths import Links
    from airflow_provider_sparklineage.spark.submit.submission import Submission

log = logger(__name__)


class SubmitTarget(NamedTuple):
    """Where the submission goes, as the operator's hook resolves it from the Spark connection.

    :param transport: properties of Airflow's own transport, where the task is to give it to Spark
    :param is_polled: whether Airflow asks the cluster until the application has ended
    """

    spark_binary: str
    master: str
    deploy_mode: str | None
    properties_file: str | None
    transport: Mapping[str, str] = MappingProxyType({})
    is_polled: bool = False

    @property
    def environment_is_private(self) -> bool:
        """Whether ``env_vars`` stay such; on YARN and Kubernetes the hook makes conf of them."""
        return "yarn" not in self.master and "k8s" not in self.master


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
    return transport.without_secrets(found)


def with_transport(submission: Submission, target: SubmitTarget) -> Submission:
    """Add Airflow's transport, where the task is to give it to Spark and the job has none."""
    if any(key.startswith(transport.TRANSPORT) for key in submission.keys()):  # noqa: SIM118  (method)
        return submission
    return submission.with_conf(target.transport)


def _with_file(
    submission: Submission, target: SubmitTarget, home: Path | None, env: Mapping[str, str]
) -> Submission:
    """Find the properties that a submission has from a file, and its transport."""
    if target.properties_file:
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
) -> Injected:
    """Add the listener, what extends it, and the observer, as far as they can be.

    :param bundle: one that has a folder
    :param defaults: of the listener's properties
    :param links: where those to paths that Spark would misread are made
    :raise RemoteDriverError: if nothing can be collected where the driver will run
    :raise ListenerError: if the job cannot carry the listener; names the fix
    :raise CaptureError: if Spark could not find the bundle, or a jar on the shared mount
    """
    submission, spark, env = before
    host = deploy_mode.driver_host(submission, target.master, target.deploy_mode, env)
    bundle_folder = cast("Path", bundle.path)
    run_id = bundle.manifest.application_run_id
    files = _files(host, bundle_folder, run_id, submission, settings, links)
    refuse_connect(submission, target.master, env)
    cache = fetching.cache_folder(env)
    found = class_path.listeners(submission, spark)
    own = class_path.only_listener(found, submission, spark, cache)
    jars: list[str] = []
    if own is None:
        jars.append(_listener_jar(before, target, settings, links))
    extensions, errors = class_path.extensions(settings.listener_extensions, own, cache)
    extensions, more = _entries(extensions, links)
    errors += more
    jars += extensions
    missing = [(DegradationCode.EXTENSION_UNAVAILABLE, str(error)) for error in errors]
    if errors and settings.strict:
        raise ListenerError(" ".join(map(str, errors)))
    observation = None
    if settings.observe:
        observation, problem = _observation(submission, bundle_folder, run_id, files, links)
        if problem is not None:
            missing.append((DegradationCode.OBSERVER_UNAVAILABLE, problem))
    if host.is_remote and not files.delivered_to:
        share = settings.capture_location.folder / "jars"
        jars = [deploy_mode.reachable(host, jar, share, cache) for jar in jars]
    submit_opts = None
    if target.environment_is_private and not host.is_remote:
        submit_opts = env.get("SPARK_SUBMIT_OPTS", "")
    injection = Injection(
        jars=tuple(jars),
        events_path=f"{files.folder}/{EVENTS}",
        application_run_id=run_id,
        defaults=defaults,
        existing_transport=settings.existing_transport,
        submit_opts=submit_opts,
        observation=observation,
    )
    return Injected(
        inject(submission, injection),
        tuple(missing),
        delivers=bool(files.delivered_to),
        is_awaited=deploy_mode.waits_for_end(submission, host, is_polled=target.is_polled),
    )


class _DriverFiles(NamedTuple):
    """Where the driver writes what it captures, as it knows it.

    :param delivered_to: URL of the folder to which it delivers that; empty if it writes into the
        bundle
    """

    folder: str
    delivered_to: str = ""


def _files(
    host: DriverHost,
    bundle_folder: Path,
    run_id: str,
    submission: Submission,
    settings: Settings,
    links: Links,
) -> _DriverFiles:
    """Decide where the driver writes, and have no links made that would lead nowhere there.

    :raise RemoteDriverError: if nothing comes back from where it runs
    :raise CaptureError: if Spark could not find the bundle
    """
    url = settings.capture_location.url
    shared = settings.capture_location_shared
    deploy_mode.require_reachable(host, shared=shared, delivers=bool(url))
    if host.is_remote and url:
        _require_delivery(host, submission, settings)
        url = in_spark(url, settings.capture_location_in_spark)
        folder = deploy_mode.container_folder(host, run_id)
        return _DriverFiles(folder, f"{url}/{bundle_folder.name}")
    if host.is_remote:
        links.forbid(f"The driver runs in {host}, where a link to it would lead nowhere.")
    return _DriverFiles(str(links.plain(bundle_folder)))


def _require_delivery(host: DriverHost, submission: Submission, settings: Settings) -> None:
    """Refuse a driver in which nothing delivers what is captured there.

    :raise RemoteDriverError: names the fix
    """
    if not can_observe(submission):
        problem = (
            f"The driver runs in {host} and the application is no Python file, so nothing in the "
            "driver could deliver what is captured."
        )
        raise RemoteDriverError(problem, "Use deploy_mode='client' where lineage is wanted.")
    if not settings.observe:
        problem = (
            f"The driver runs in {host}, and the observer, which delivers what is captured there, "
            "is switched off."
        )
        raise RemoteDriverError(problem, "Leave out observe=False.")
    if host is DriverHost.KUBERNETES and not submission.value(deploy_mode.UPLOAD_PATH):
        problem = (
            f"The driver runs in {host}, to which spark-submit can bring no file without "
            f"{deploy_mode.UPLOAD_PATH}."
        )
        fix = "Set it to a folder that workers and pods reach, such as s3a://bucket/uploads."
        raise RemoteDriverError(problem, fix)


def _listener_jar(
    before: ResolvedSubmission, target: SubmitTarget, settings: Settings, links: Links
) -> str:
    """Find the listener jar, or fetch it if the task may."""
    if settings.fetch_listener and settings.listener_jar is None:
        listener_selection.fetch_for(
            before.spark, target.spark_binary, before.env, progress=log.info, in_task=True
        )
    jar = listener_selection.jar_for(before.spark, settings.listener_jar, before.env)
    try:
        return links.entry(str(jar.absolute()))
    except CaptureError as error:
        fix = "Put the jar where the path is letters of ASCII, digits and / _ . + = @ ~ - alone."
        raise ListenerError(error.problem, fix) from error


def _entries(
    extensions: tuple[str, ...], links: Links
) -> tuple[tuple[str, ...], tuple[ListenerError, ...]]:
    """Give what Spark takes for these jars, and an error for each that can have no such name."""
    entries, errors = [], []
    for name in extensions:
        try:
            entries.append(links.entry(name))
        except CaptureError as error:
            errors.append(ListenerError(error.problem, "Give it another path."))
    return tuple(entries), tuple(errors)


def _observation(
    submission: Submission, bundle_folder: Path, run_id: str, files: _DriverFiles, links: Links
) -> tuple[Observation | None, str | None]:
    """Put the observer into the bundle; where that is not possible, lineage goes on without."""
    if not can_observe(submission):
        return None, (
            "The application is no Python file, so the partitions that it reads and writes "
            "could not be observed."
        )
    try:
        observer = links.entry(str(observer_zip.write(bundle_folder)))
    except CaptureError as error:
        if files.delivered_to:
            raise  # nothing else delivers
        return None, str(error)
    path = f"{files.folder}/{OBSERVATIONS}"
    return Observation(observer, path, run_id, files.delivered_to), None
