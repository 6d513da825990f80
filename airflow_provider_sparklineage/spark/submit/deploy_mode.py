"""Decide where the driver of a submission will run, and how its reports come back to the worker.

The reports are written into the bundle, delivered to a store, or sent to the worker. The decision
depends on the driver's host, on the files that spark-submit brings to that host, and on the
settings. If no report would come back, the job gets no listener, and the error names the fix.
"""

from __future__ import annotations

import filecmp
import shutil
import tempfile
import uuid
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import (
    CaptureError,
    ListenerError,
    RemoteDriverError,
)
from airflow_provider_sparklineage.model.terms import OBSERVATIONS
from airflow_provider_sparklineage.spark.capture.bundle import in_spark
from airflow_provider_sparklineage.spark.capture.tools import Tools
from airflow_provider_sparklineage.spark.submit import fetching, submitted_files
from airflow_provider_sparklineage.spark.submit.injection import PREFIX, Observation, can_observe
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.submit.injection import CaptureOptions
    from airflow_provider_sparklineage.spark.submit.submission import Submission
    from airflow_provider_sparklineage.spark.submit.submitted_files import Links

log = logger(__name__)

UPLOAD_PATH = "spark.kubernetes.file.upload.path"
"""The property for the folder through which spark-submit brings files into pods."""


PIPELINES = "spark-pipelines"
"""The command of declarative pipelines, which is also their application."""


class Target(NamedTuple):
    """The place to which a job is submitted: who starts its driver, and how its end is found.

    :param spark_binary: the command ``spark-submit``, a path or a name on PATH
    :param master: the master of the Spark connection; empty if it is not known
    :param deploy_mode: the deploy mode of the connection; None if it has none
    :param transport: properties of Airflow's own transport; empty unless the task is asked to give
        that transport to Spark
    :param is_polled: whether Airflow asks the cluster or the service for the application's state
        until the application has ended
    :param is_command: whether spark-submit is in a command of the user's own: then its end is not
        awaited, and its environment is the user's
    :param is_elsewhere: whether the command runs on another machine, which does not have this
        worker's files
    :param is_in_process: whether nothing is submitted, because the task's process is the driver
    :param service: the name of the service that starts the driver, such as ``Livy``; empty if
        spark-submit or the task's process starts it
    :param spark: the versions of Spark and of Scala that the service runs; None if they are not
        known from the submission
    :param listener: the name of the OpenLineage listener that the service's Spark brings; empty if
        it brings none, or the job replaces it
    :param has_properties_file: whether the operator can pass a properties file
    :param passes_environment: whether the operator can pass environment variables
    :param is_deferred: whether the task may leave the worker while its job runs
    :param starts_connect_server: whether the driver is a server of Spark Connect that the job's
        Python starts on this worker
    :param account: who starts the driver, as far as it decides what the driver may read: a user, or
        the connection to a service
    """

    spark_binary: str = "spark-submit"
    master: str = ""
    deploy_mode: str | None = None
    transport: Mapping[str, str] = MappingProxyType({})
    is_polled: bool = False
    is_command: bool = False
    is_elsewhere: bool = False
    is_in_process: bool = False
    service: str = ""
    spark: tuple[str, str] | None = None
    listener: str = ""
    has_properties_file: bool = True
    passes_environment: bool = True
    is_deferred: bool = False
    starts_connect_server: bool = False
    account: str = ""

    @property
    def takes_properties_file(self) -> bool:
        """Whether a properties file of this worker can hold what must not be an argument."""
        return self.has_properties_file and self.reads_files_of_worker

    @property
    def reads_files_of_worker(self) -> bool:
        """Whether the process that starts the driver can read files of this worker."""
        return not (self.is_elsewhere or self.service)

    @property
    def environment_is_private(self) -> bool:
        """Whether ``env_vars`` are passed to the driver as environment variables.

        On YARN and Kubernetes, Airflow's hook turns them into properties, which all users can read.
        For a command of the user's own, this is False.
        """
        is_hidden = "yarn" not in self.master and "k8s" not in self.master
        return self.passes_environment and not self.is_command and is_hidden


class DriverHost(StrEnum):
    """The place where a driver runs."""

    WORKER = "this worker"
    YARN = "a YARN cluster"
    KUBERNETES = "a pod of Kubernetes"
    STANDALONE = "a worker of the Spark cluster"
    ELSEWHERE = "another place"
    """Another machine or a container, in which a command of the user's own starts spark-submit."""
    SERVICE = "a service"
    """A service such as Livy, to which the operator sends the submission."""

    @property
    def is_remote(self) -> bool:
        """Whether the driver does not run on this worker."""
        return self is not DriverHost.WORKER


def driver_host(
    submission: Submission, master: str, deploy_mode: str | None, env: Mapping[str, str]
) -> DriverHost:
    """Decide where the driver will run, by the rules of spark-submit.

    :param master: the master of the Spark connection, which spark-submit gets as a flag
    :param deploy_mode: the deploy mode of the Spark connection; None if it has none
    :param env: the environment with which the job would be submitted
    """
    mode = (
        deploy_mode
        or submission.value("spark.submit.deployMode")
        or env.get("DEPLOY_MODE")
        or "client"
    )
    if mode != "cluster" and master != "yarn-cluster":
        return DriverHost.WORKER
    if "yarn" in master:
        return DriverHost.YARN
    return DriverHost.KUBERNETES if "k8s" in master else DriverHost.STANDALONE


# For each host: the property that makes spark-submit wait, in cluster mode, until its application
# has ended, and the default value of this property in Spark.
_WAITS = {
    DriverHost.YARN: ("spark.yarn.submit.waitAppCompletion", "true"),
    DriverHost.KUBERNETES: ("spark.kubernetes.submission.waitAppCompletion", "true"),
    DriverHost.STANDALONE: ("spark.standalone.submit.waitAppCompletion", "false"),
}


def waits_for_end(submission: Submission, host: DriverHost, *, is_polled: bool) -> bool:
    """Whether the task waits until its application has ended.

    :param is_polled: whether Airflow asks the cluster for the state of the application until the
        application has ended
    """
    if is_polled or not host.is_remote:
        return True
    if host not in _WAITS:
        return False
    key, default = _WAITS[host]
    return (submission.value(key) or default).strip().lower() == "true"


def require_reachable(
    host: DriverHost, *, shared: bool, delivers: bool = False, place: str = ""
) -> None:
    """Refuse a submission whose driver has no way to bring its captured files to the worker.

    :param shared: whether the capture location is on a mount that the driver also has
    :param delivers: whether the driver delivers to a capture location that is a URL
    :param place: the name of the service that starts the driver; empty for the host's own
    :raise RemoteDriverError: if the driver has no way; the message names the missing lineage and
        the fix
    """
    if host.is_remote and not (shared or delivers):
        problem = (
            f"The driver runs in {place or host} and not on this worker, so neither the datasets, "
            "the columns nor the partitions that it accesses could be captured."
        )
        fix = (
            "Set [sparklineage] capture_location to a URL that drivers and workers reach, such as "
            "hdfs://namenode:8020/lineage or s3://bucket/lineage."
        )
        if host in _WAITS:
            fix += " Or use deploy_mode='client' where lineage is wanted."
        raise RemoteDriverError(problem, fix)


def takes_uploads(host: DriverHost, submission: Submission) -> bool:
    """Whether spark-submit brings files of this worker to the driver."""
    if host.is_remote and host not in _WAITS:
        return False
    return host is not DriverHost.KUBERNETES or bool(submission.value(UPLOAD_PATH))


def reads_location(host: DriverHost, submission: Submission, in_spark: str) -> bool:
    """Whether Spark gets listener and observer by their URLs in the tools folder.

    A driver to which spark-submit brings no files can get them in no other way. Where it brings
    files, as on YARN, the tools folder saves the upload of 43 MB for each task. But then what
    submits, the worker's Spark and the cluster have to know the file system, too, and that is
    certain only for the cluster's own: HDFS, or that of the upload path. A driver on this worker
    reads this worker's files.

    :param in_spark: the URL of the capture location for Spark
    """
    if not host.is_remote or not takes_uploads(host, submission):
        return host.is_remote
    scheme = submitted_files.scheme(in_spark)
    if host is DriverHost.KUBERNETES:
        return scheme == submitted_files.scheme(submission.value(UPLOAD_PATH) or "")
    return host is DriverHost.YARN and scheme == "hdfs"


def has_jars_of_worker(host: DriverHost, submission: Submission) -> bool:
    """Whether the driver uses the jars of this worker's Spark, or uploaded copies of these jars."""
    if host is DriverHost.YARN:  # spark-submit uploads its jars, unless a property names others
        archive = submission.value("spark.yarn.archive") or submission.value("spark.yarn.jars")
        return (archive or "local:").startswith("local:")
    return not host.is_remote


def container_folder(host: DriverHost, application_run_id: str) -> str:
    """Give the folder in which a remote driver stores its captured files until they are delivered.

    YARN starts each driver in a new folder, which it deletes later, so the path is relative. A
    driver in a pod starts in a folder of its image that may be read-only, so the path is in /tmp.
    Drivers that a service starts may have one /tmp in common, with others who write to it, so the
    name cannot be guessed.

    :param application_run_id: the OpenLineage run id of the application
    :return: a path on the driver's machine
    """
    folder = f"sparklineage-{application_run_id}"
    return folder if host is DriverHost.YARN else f"/tmp/{folder}-{uuid.uuid4().hex}"  # noqa: S108


def reachable(host: DriverHost, jar: str, share: Path) -> str:
    """Give the name by which a remote driver finds a jar of this worker.

    For YARN, the path is returned unchanged, because spark-submit uploads the jar. Drivers in other
    clusters find the jar on the shared mount; a jar that is not on the mount is copied there. A URL
    is returned unchanged.

    :param jar: the path or URL of the jar
    :param share: the folder on the shared mount for copies of jars
    :return: the path, or a URL such as ``local:///mnt/lineage/jars/…``
    :raise CaptureError: if the jar cannot be copied to the mount
    """
    if host is DriverHost.YARN or "://" in jar:
        return jar
    source = Path(jar)
    if source.is_relative_to(share.parent):
        return f"local://{source}"
    target = share / source.name
    try:
        if not (target.exists() and filecmp.cmp(target, source, shallow=False)):
            share.mkdir(mode=0o755, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".copy-", dir=share) as work:
                copy = Path(work) / source.name
                shutil.copyfile(source, copy)
                copy.chmod(0o644)  # the driver may be another user
                fetching.put_in_place(copy, target)
    except OSError as error:
        msg = f"{source.name} cannot be put on the shared mount, {share}: {error}."
        raise CaptureError(msg) from error
    return f"local://{target}"


# The files of the driver: where it writes and delivers its reports, and where it finds its jars.


class DriverFiles(NamedTuple):
    """The places where the driver writes and delivers its reports, and finds its jars.

    :param folder: path, on the driver's host, of the folder in which the driver writes
    :param delivered_to: URL, for Spark, to which the driver delivers that folder; empty if it
        delivers nothing
    :param are_sent: whether the driver writes no files, and the listener sends its events to the
        worker
    :param takes_uploads: whether spark-submit brings files of this worker to the driver
    :param is_awaited: whether the task ends no earlier than its application
    :param has_jars_of_worker: whether the driver uses the jars of this worker's Spark
    :param tools: the tools folder from which Spark gets listener and observer; None if they come as
        files of this worker
    :param is_retry: whether there was an earlier try of the task
    :param service: the name of the service that starts the driver; else empty
    """

    host: DriverHost
    folder: str
    delivered_to: str = ""
    are_sent: bool = False
    takes_uploads: bool = True
    is_awaited: bool = True
    has_jars_of_worker: bool = False
    tools: Tools | None = None
    is_retry: bool = False
    service: str = ""

    @property
    def place(self) -> str:
        """The place where the driver runs, for sentences."""
        return self.service or str(self.host)

    @property
    def are_on_mount(self) -> bool:
        """Whether the driver is remote, and writes into the bundle itself, over a shared mount."""
        return self.host.is_remote and not (self.delivered_to or self.are_sent)

    def jar(self, name: str, links: Links) -> str:
        """Give the entry of ``--jars`` by which the driver gets a jar.

        :param name: the path of the jar on this worker, or a URL, which is given back
        :param links: makes a link if Spark would misread the path
        :raise CaptureError: if Spark would misread the path, or the jar cannot be put into the
            tools folder
        :raise RemoteDriverError: if the driver has no way to get the jar; the error names the fix
        """
        is_file = submitted_files.scheme(name) in ("", "file")
        path = submitted_files.local_path(name) if is_file else None
        if path is None:
            return name
        return self._entry(path.name, path, lambda: links.entry(name))

    def _entry(self, name: str, source: Path | bytes, upload: Callable[[], str]) -> str:
        """Give the entry of ``--jars`` or ``--py-files`` by which the driver gets a file.

        Spark would end the job if it could not read a URL. So a URL in the tools folder is given
        only if such a driver is known to reach the capture location, or as a trial: in the first
        try of a task to whose driver nothing can be uploaded.

        :param source: the file on this worker, or its content
        :param upload: gives the entry for a file of this worker
        """
        if self.tools is not None:
            try:
                tool = self.tools.put(name, source)
            except CaptureError as error:
                if not self.takes_uploads:
                    raise
                log.info("%s is uploaded with the job. %s", name, error)
                return upload()
            if tool.is_reached:
                return tool.url
            if not self.takes_uploads:
                if self.is_retry:
                    raise _unreached(self)
                return tool.url
        if not self.takes_uploads:
            raise _uncarried(self, name)
        return upload()

    def observation(
        self, submission: Submission, bundle: CaptureBundle, links: Links
    ) -> tuple[Observation | None, str | None]:
        """Give the observer's settings; put its zip into the bundle, or into the tools folder.

        :param links: makes a link if Spark would misread the zip's path
        :return: the settings and None, or None and a sentence with the reason why the driver is not
            observed
        :raise CaptureError: if the observer cannot be written, and the driver needs it to deliver
        :raise RemoteDriverError: if the driver has no way to get the observer
        """
        if not can_observe(submission):
            reason = "The application is no Python file"
            if not submission.application:
                reason = "The command does not show its application, nor does submit_args()"
            if submission.application == PIPELINES:
                reason = "The queries of a pipeline run where the observer does not see them"
            return None, (
                f"{reason}, so the partitions that it reads and writes could not be observed."
            )

        def upload() -> str:
            return links.entry(str(submitted_files.write_observer(cast("Path", bundle.path))))

        content = submitted_files.observer_zip() if self.tools else b""
        try:
            observer = self._entry(submitted_files.OBSERVER_ZIP, content, upload)
        except CaptureError as error:
            if self.delivered_to:
                raise  # nothing else delivers
            return None, str(error)
        path, tag = f"{self.folder}/{OBSERVATIONS}", bundle.manifest.application_run_id
        return Observation(observer, path, tag, self.delivered_to), None


def _unreached(files: DriverFiles) -> RemoteDriverError:
    """Make the error for a retry whose driver may not reach the tools folder."""
    url = files.tools.in_spark if files.tools else ""
    problem = (
        f"No driver in {files.place} has ever reported, and an earlier try of this task has ended, "
        f"perhaps because Spark could not read {url}. So this try runs without lineage."
    )
    fix = (
        "If the log of the earlier try's driver names that folder, give the driver the permission "
        "and the file system, or set [sparklineage] capture_location_in_spark."
    )
    return RemoteDriverError(problem, fix)


def _uncarried(files: DriverFiles, name: str) -> RemoteDriverError:
    """Make the error for a file of this worker that the driver cannot get."""
    in_pod = files.host is DriverHost.KUBERNETES
    problem = (
        f"The driver runs in {files.place}, to which no file of this worker is brought"
        f"{f' without {UPLOAD_PATH}' if in_pod else ''}, and so not {name}."
    )
    fix = (
        "Set [sparklineage] capture_location to a URL that drivers and workers reach. Or put the "
        "jar where drivers run, in an image for instance, and give its URL there, such as "
        "listener_jar = local:///opt/spark/lineage/openlineage-spark_2.13-1.53.0.jar."
    )
    if in_pod:
        fix += f" Or set {UPLOAD_PATH} to a folder that workers and pods reach."
    return RemoteDriverError(problem, fix)


def driver_files(
    submission: Submission,
    target: Target,
    env: Mapping[str, str],
    bundle: CaptureBundle,
    options: CaptureOptions,
    links: Links,
    budget: Budget,
) -> DriverFiles:
    """Decide where the driver writes; forbid links if a remote driver could not follow them.

    :param target: the place to which the job is submitted
    :param env: the environment with which the job would be submitted
    :param bundle: a bundle that has a folder
    :param links: makes links to paths that Spark would misread
    :param budget: the time for putting files into the tools folder
    :raise RemoteDriverError: if nothing would come back from the driver's host
    :raise CaptureError: if Spark could not find the bundle
    """
    folder, url = cast("Path", bundle.path), options.capture_location.url
    shared = options.capture_location_shared
    host = _host(submission, target, env)
    files = DriverFiles(
        host,
        container_folder(host, bundle.manifest.application_run_id),
        is_awaited=not target.is_command
        and waits_for_end(submission, host, is_polled=target.is_polled),
        has_jars_of_worker=has_jars_of_worker(host, submission),
        takes_uploads=takes_uploads(host, submission),
        is_retry=bundle.manifest.try_number > 1,
        service=target.service,
    )
    if url and reads_location(host, submission, in_spark(url, options.capture_location_in_spark)):
        files = files._replace(tools=_tools(host, submission, target, options, budget))
    is_observable = can_observe(submission)
    if target.is_deferred and not (url and is_observable):
        problem = (
            "The task is deferred while its job runs, so no worker would take what its driver in "
            f"{files.place} reports."
        )
        fix = (
            "Set [sparklineage] capture_location to a URL that drivers and workers reach. An "
            "application that is no Python file needs deferrable=False, too."
        )
        raise RemoteDriverError(problem, fix)
    if target.is_elsewhere and not (is_observable or (shared and not url)):
        problem = (
            f"The driver runs in {host} and its application is not known to be a Python file, so "
            "nothing in the driver could deliver the capture."
        )
        raise RemoteDriverError(problem, "If it is one, give submit_args(application='job.py').")
    if host.is_remote and not is_observable and (url or not shared):
        _require_endpoint(files, options)
        uploads = files.takes_uploads and host is not DriverHost.STANDALONE
        return files._replace(are_sent=True, takes_uploads=uploads)
    require_reachable(host, shared=shared, delivers=bool(url), place=target.service)
    if host.is_remote and url:
        if not options.observe:
            problem = (
                f"The driver runs in {files.place}, and the observer, which delivers the capture, "
                "is switched off."
            )
            raise RemoteDriverError(problem, "Leave out observe=False.")
        delivered_to = in_spark(url, options.capture_location_in_spark, folder.name)
        return files._replace(delivered_to=delivered_to)
    if host.is_remote:
        links.forbid(f"The driver runs in {host}, where a link to it would lead nowhere.")
    # On a mount, the driver finds the files of this worker without an upload.
    return files._replace(folder=str(links.plain(folder)), takes_uploads=True)


def _host(submission: Submission, target: Target, env: Mapping[str, str]) -> DriverHost:
    if target.service:
        return DriverHost.SERVICE
    if target.is_elsewhere:
        return DriverHost.ELSEWHERE
    # Without a connection of Airflow's, the master may be among the properties.
    master = target.master or submission.value("spark.master") or ""
    return driver_host(submission, master, target.deploy_mode, env)


_ACCOUNTS = (
    "spark.kubernetes.authenticate.driver.serviceAccountName",
    *("spark.kerberos.principal", "spark.yarn.principal"),  # the second is Spark 2's name
)
"""Properties that decide what a driver may read."""


def _tools(
    host: DriverHost,
    submission: Submission,
    target: Target,
    options: CaptureOptions,
    budget: Budget,
) -> Tools:
    """Give the tools folder, for drivers with the rights of this submission's driver."""
    account = [target.account, *(submission.value(name) or "" for name in _ACCOUNTS)]
    return Tools(
        options.capture_location,
        options.capture_location_in_spark,
        "\n".join([target.service or host, target.master, *account]),
        budget,
    )


def _require_endpoint(files: DriverFiles, options: CaptureOptions) -> None:
    """Refuse a driver without Python if no worker could take its events.

    :param files: the driver's place, and whether its end is awaited
    :param options: the settings, of which ``capture_endpoint`` is looked at
    :raise RemoteDriverError: if there is no endpoint, or the task does not wait for its
        application; the error names the fix
    """
    if not options.capture_endpoint:
        problem = (
            f"The driver runs in {files.place} and the application is no Python file, so nothing "
            "in the driver could deliver the capture."
        )
        fix = (
            "Set [sparklineage] capture_endpoint to a name by which drivers reach this worker, "
            "such as {hostname}:20000-20100: the listener then sends its events there."
        )
        if files.host in _WAITS:
            fix += " Or use deploy_mode='client' where lineage is wanted."
        raise RemoteDriverError(problem, fix)
    if not files.is_awaited:
        problem = (
            f"The driver runs in {files.place} and the task does not wait for its end, so nobody "
            "would take the events that it sends."
        )
        fix = "Leave out waitAppCompletion=false where lineage is wanted."
        raise RemoteDriverError(problem, fix)


def refuse_connect(submission: Submission, master: str, env: Mapping[str, str]) -> None:
    """Refuse a job of Spark Connect, because its driver, with the listeners, runs in the server.

    :param master: the master of the Spark connection
    :param env: the environment with which the job would be submitted
    :raise ListenerError: if the job uses Spark Connect; the message names the fix
    """
    remote = submission.value("spark.remote") or env.get("SPARK_REMOTE")
    mode = submission.value("spark.api.mode") or env.get("SPARK_API_MODE") or ""
    if remote or mode.lower() == "connect" or master.startswith("sc://"):
        problem = (
            "The job uses Spark Connect: its driver is the server's, to which nothing can be "
            "added from here. So it runs without lineage."
        )
        fix = (
            "Set spark.api.mode=classic. Or start the server with the OpenLineage listener: its "
            f"jar in --jars, spark.extraListeners={LISTENER_CLASS}, and {PREFIX}transport.* with "
            "the URL of your backend, which then sees the reads and writes of all clients of the "
            "server, as the server's application and not as this task."
        )
        raise ListenerError(problem, fix)
