"""From a task's submission to the one with the listener in it: files read, checked and added.

In go the operator's arguments as a ``Submission`` and the place where it goes; out come the
arguments with listener, extensions and observer in them, as far as they can be added, and the
reason where one cannot. A driver writes into the bundle, into a folder that it delivers to the
capture location, or sends its events to the worker: that depends on where it runs.
"""

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
from airflow_provider_sparklineage.spark.capture.bundle import EVENTS, OBSERVATIONS, in_spark
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
    Observation,
    can_observe,
    inject,
    refuse_connect,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
    from airflow_provider_sparklineage.spark.submit.submission import Submission
    from airflow_provider_sparklineage.spark.submit.submitted_files import Links

log = logger(__name__)


class DriverFiles(NamedTuple):
    """The driver's side of a try's files.

    :param folder: in which it writes, as it knows it
    :param delivered_to: URL of the folder to which it delivers that, as Spark knows it; empty if it
        delivers nothing
    :param are_sent: whether nothing is written, and the listener sends its events to the worker
    :param takes_uploads: whether spark-submit brings files of this worker to it
    :param image: URL of the folder, where the driver runs, that has listener and observer; empty if
        nothing is known of such a folder
    """

    host: DriverHost
    folder: str
    delivered_to: str = ""
    are_sent: bool = False
    takes_uploads: bool = True
    image: str = ""

    @property
    def are_on_mount(self) -> bool:
        """Whether a remote driver writes into the bundle."""
        return self.host.is_remote and not (self.delivered_to or self.are_sent)

    def require_carried(self, jar: str) -> None:
        """Refuse a jar of this worker that would not come to the driver, and so end spark-submit.

        :param jar: entry of ``--jars``
        :raise RemoteDriverError: names the fix
        """
        if self.takes_uploads or submitted_files.scheme(jar) not in ("", "file"):
            return
        key = deploy_mode.UPLOAD_PATH
        in_pod = self.host is DriverHost.KUBERNETES
        problem = (
            f"The driver runs in {self.host}, to which spark-submit brings no file of this worker"
            f"{f' without {key}' if in_pod else ''}, and so not {jar}."
        )
        fix = (
            "Put the jar where drivers run, in an image for instance, and give its URL there, such "
            "as listener_jar = local:///opt/spark/lineage/openlineage-spark_2.13-1.53.0.jar."
        )
        if in_pod:
            fix += f" Or set {key} to a folder that workers and pods reach."
        raise RemoteDriverError(problem, fix)

    def observation(
        self, submission: Submission, bundle: CaptureBundle, links: Links
    ) -> tuple[Observation | None, str | None]:
        """Put the observer into the bundle; where that is not possible, lineage goes on without."""
        if not can_observe(submission):
            reason = "The application is no Python file"
            if not submission.application:
                reason = "The command does not show its application, nor does submit_args()"
            return None, (
                f"{reason}, so the partitions that it reads and writes could not be observed."
            )
        if self.takes_uploads:
            try:
                observer = links.entry(
                    str(submitted_files.write_observer(cast("Path", bundle.path)))
                )
            except CaptureError as error:
                if self.delivered_to:
                    raise  # nothing else delivers
                return None, str(error)
        else:
            observer = f"{self.image}/{submitted_files.OBSERVER_ZIP}"
        path, tag = f"{self.folder}/{OBSERVATIONS}", bundle.manifest.application_run_id
        return Observation(observer, path, tag, self.delivered_to), None


def driver_files(
    host: DriverHost,
    submission: Submission,
    bundle: CaptureBundle,
    settings: Settings,
    links: Links,
    *,
    is_awaited: bool,
) -> DriverFiles:
    """Decide where the driver writes, and have no links made that would lead nowhere there.

    :param bundle: one that has a folder
    :param is_awaited: whether the task ends no earlier than its application
    :raise RemoteDriverError: if nothing comes back from where it runs
    :raise CaptureError: if Spark could not find the bundle
    """
    folder = cast("Path", bundle.path)
    url = settings.capture_location.url
    shared = settings.capture_location_shared
    kept = deploy_mode.container_folder(host, bundle.manifest.application_run_id)
    takes_uploads = deploy_mode.takes_uploads(host, submission)
    if host is DriverHost.ELSEWHERE and not (can_observe(submission) or (shared and not url)):
        problem = (
            f"The driver runs in {host} and its application is not known to be a Python file, so "
            "nothing in the driver could deliver what is captured."
        )
        raise RemoteDriverError(problem, "If it is one, give submit_args(application='job.py').")
    if host.is_remote and not can_observe(submission) and (url or not shared):
        _require_endpoint(host, settings, is_awaited=is_awaited)
        takes_uploads = takes_uploads and host is not DriverHost.STANDALONE
        return DriverFiles(host, kept, are_sent=True, takes_uploads=takes_uploads)
    deploy_mode.require_reachable(host, shared=shared, delivers=bool(url))
    if host.is_remote and url:
        image = "" if takes_uploads else _image(settings)
        _require_delivery(host, settings, has_observer=takes_uploads or bool(image))
        return DriverFiles(
            host,
            kept,
            in_spark(url, settings.capture_location_in_spark, folder.name),
            takes_uploads=takes_uploads,
            image=image,
        )
    if host.is_remote:
        links.forbid(f"The driver runs in {host}, where a link to it would lead nowhere.")
    return DriverFiles(host, str(links.plain(folder)))


def _require_endpoint(host: DriverHost, settings: Settings, *, is_awaited: bool) -> None:
    """Refuse a driver without Python whose events would come nowhere.

    :raise RemoteDriverError: names the fix
    """
    if not settings.capture_endpoint:
        problem = (
            f"The driver runs in {host} and the application is no Python file, so nothing in the "
            "driver could deliver what is captured."
        )
        fix = (
            "Set [sparklineage] capture_endpoint to a name by which drivers reach this worker, "
            "such as {hostname}:20000-20100: the listener then sends its events there. Or use "
            "deploy_mode='client' where lineage is wanted."
        )
        raise RemoteDriverError(problem, fix)
    if not is_awaited:
        problem = (
            f"The driver runs in {host} and the task does not wait for its end, so nobody would "
            "take the events that it sends."
        )
        fix = "Leave out waitAppCompletion=false where lineage is wanted."
        raise RemoteDriverError(problem, fix)


def _image(settings: Settings) -> str:
    """Give the URL of the folder, where the driver runs, from which it has the listener."""
    jar = settings.listener_jar
    is_there = isinstance(jar, str) and submitted_files.scheme(jar) == "local"
    return str(jar).rpartition("/")[0] if is_there else ""


def _require_delivery(host: DriverHost, settings: Settings, *, has_observer: bool) -> None:
    """Refuse a driver in which nothing delivers what is captured there.

    :raise RemoteDriverError: names the fix
    """
    if not settings.observe:
        problem = (
            f"The driver runs in {host}, and the observer, which delivers what is captured there, "
            "is switched off."
        )
        raise RemoteDriverError(problem, "Leave out observe=False.")
    if not has_observer:
        key = deploy_mode.UPLOAD_PATH
        problem = f"The driver runs in {host}, to which spark-submit brings no file of this worker"
        problem += "." if host is DriverHost.ELSEWHERE else f" without {key}."
        fix = (
            f"Put the listener's jar and {submitted_files.OBSERVER_ZIP}, which `sparklineage "
            "fetch-listener` leaves in the same folder, into one folder of the image, and set "
            "[sparklineage] listener_jar to "
            "local:///opt/spark/lineage/openlineage-spark_2.13-1.53.0.jar, if it is that one."
        )
        if host is not DriverHost.ELSEWHERE:
            fix += f" Or set {key} to a folder that workers and pods reach."
        raise RemoteDriverError(problem, fix)


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
    files = driver_files(host, submission, bundle, settings, links, is_awaited=is_awaited)
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
