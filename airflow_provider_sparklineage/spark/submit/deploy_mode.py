"""Decide where the driver of a submission will run, and how its reports come back to the worker.

The reports are written into the bundle, delivered to a store, or sent to the worker. The decision
depends on the driver's host, on the files that spark-submit brings to that host, and on the
settings. If no report would come back, the job gets no listener, and the error names the fix.
"""

from __future__ import annotations

import filecmp
import shutil
import tempfile
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, cast

from airflow_provider_sparklineage.model.exceptions import (
    CaptureError,
    ListenerError,
    RemoteDriverError,
)
from airflow_provider_sparklineage.model.terms import OBSERVATIONS
from airflow_provider_sparklineage.spark.capture.bundle import in_spark
from airflow_provider_sparklineage.spark.submit import fetching, submitted_files
from airflow_provider_sparklineage.spark.submit.injection import PREFIX, Observation, can_observe
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.submit.injection import CaptureOptions
    from airflow_provider_sparklineage.spark.submit.submission import Submission
    from airflow_provider_sparklineage.spark.submit.submitted_files import Links

UPLOAD_PATH = "spark.kubernetes.file.upload.path"
"""The property for the folder through which spark-submit brings files into pods."""


class SubmitTarget(NamedTuple):
    """The place to which a job is submitted, as the operator's hook reads it from the connection.

    :param spark_binary: the command ``spark-submit``, a path or a name on PATH
    :param deploy_mode: the deploy mode of the connection; None if it has none
    :param properties_file: the path for ``--properties-file``; None if Spark reads
        ``spark-defaults.conf``
    :param transport: properties of Airflow's own transport; empty unless the task is asked to give
        that transport to Spark
    :param is_polled: whether Airflow asks the cluster for the application's state until the
        application has ended
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

        On YARN and Kubernetes, Airflow's hook turns them into properties, which all users can read.
        For a command of the user's own, this is False.
        """
        return not self.is_command and "yarn" not in self.master and "k8s" not in self.master


class DriverHost(StrEnum):
    """The place where a driver runs."""

    WORKER = "this worker"
    YARN = "a YARN cluster"
    KUBERNETES = "a pod of Kubernetes"
    STANDALONE = "a worker of the Spark cluster"
    ELSEWHERE = "another place"
    """Another machine or a container, in which a command of the user's own starts spark-submit."""

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
    if host is DriverHost.ELSEWHERE:
        return False
    key, default = _WAITS[host]
    return (submission.value(key) or default).strip().lower() == "true"


def require_reachable(host: DriverHost, *, shared: bool, delivers: bool = False) -> None:
    """Refuse a submission whose driver has no way to bring its captured files to the worker.

    :param shared: whether the capture location is on a mount that the driver also has
    :param delivers: whether the driver delivers to a capture location that is a URL
    :raise RemoteDriverError: if the driver has no way; the message names the missing lineage and
        the fix
    """
    if host.is_remote and not (shared or delivers):
        problem = (
            f"The driver runs in {host} and not on this worker, so neither the datasets, the "
            "columns nor the partitions that it accesses could be captured."
        )
        fix = (
            "Set [sparklineage] capture_location to a URL that drivers and workers reach, such as "
            "hdfs://namenode:8020/lineage or s3://bucket/lineage."
        )
        if host is not DriverHost.ELSEWHERE:
            fix += " Or use deploy_mode='client' where lineage is wanted."
        raise RemoteDriverError(problem, fix)


def takes_uploads(host: DriverHost, submission: Submission) -> bool:
    """Whether spark-submit brings files of this worker to the driver."""
    if host is DriverHost.ELSEWHERE:
        return False
    return host is not DriverHost.KUBERNETES or bool(submission.value(UPLOAD_PATH))


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

    :param application_run_id: the OpenLineage run id of the application, which makes the name
        unique
    :return: a path on the driver's machine
    """
    folder = f"sparklineage-{application_run_id}"
    return folder if host is DriverHost.YARN else f"/tmp/{folder}"  # noqa: S108  (the pod's own)


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
    :param image: URL of the folder on the driver's host in which listener and observer are; empty
        if no such folder is known
    """

    host: DriverHost
    folder: str
    delivered_to: str = ""
    are_sent: bool = False
    takes_uploads: bool = True
    image: str = ""
    is_awaited: bool = True
    has_jars_of_worker: bool = False

    @property
    def are_on_mount(self) -> bool:
        """Whether the driver is remote, and writes into the bundle itself, over a shared mount."""
        return self.host.is_remote and not (self.delivered_to or self.are_sent)

    def require_carried(self, jar: str) -> None:
        """Refuse a jar of this worker that spark-submit cannot bring to the driver.

        :param jar: entry of ``--jars``
        :raise RemoteDriverError: if the jar cannot be brought there; the error names the fix
        """
        if self.takes_uploads or submitted_files.scheme(jar) not in ("", "file"):
            return
        key = UPLOAD_PATH
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
        """Give the observer's settings; put its zip into the bundle, or find it in the image.

        :param links: makes a link if Spark would misread the zip's path
        :return: the settings and None, or None and a sentence with the reason why the driver is not
            observed
        :raise CaptureError: if the observer cannot be written, and the driver needs it to deliver
        """
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
    submission: Submission,
    target: SubmitTarget,
    env: Mapping[str, str],
    bundle: CaptureBundle,
    options: CaptureOptions,
    links: Links,
) -> DriverFiles:
    """Decide where the driver writes; forbid links if a remote driver could not follow them.

    :param target: the place to which the job is submitted
    :param env: the environment with which the job would be submitted
    :param bundle: a bundle that has a folder
    :param links: makes links to paths that Spark would misread
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
    )
    is_observable = can_observe(submission)
    if host is DriverHost.ELSEWHERE and not (is_observable or (shared and not url)):
        problem = (
            f"The driver runs in {host} and its application is not known to be a Python file, so "
            "nothing in the driver could deliver the capture."
        )
        raise RemoteDriverError(problem, "If it is one, give submit_args(application='job.py').")
    if host.is_remote and not is_observable and (url or not shared):
        _require_endpoint(files, options)
        uploads = files.takes_uploads and host is not DriverHost.STANDALONE
        return files._replace(are_sent=True, takes_uploads=uploads)
    require_reachable(host, shared=shared, delivers=bool(url))
    if host.is_remote and url:
        image = "" if files.takes_uploads else _image(options)
        _require_delivery(host, options, has_observer=files.takes_uploads or bool(image))
        delivered_to = in_spark(url, options.capture_location_in_spark, folder.name)
        return files._replace(delivered_to=delivered_to, image=image)
    if host.is_remote:
        links.forbid(f"The driver runs in {host}, where a link to it would lead nowhere.")
    # On a mount, the driver finds the files of this worker without an upload.
    return files._replace(folder=str(links.plain(folder)), takes_uploads=True)


def _host(submission: Submission, target: SubmitTarget, env: Mapping[str, str]) -> DriverHost:
    if target.is_elsewhere:
        return DriverHost.ELSEWHERE
    # Without a connection of Airflow's, the master may be among the properties.
    master = target.master or submission.value("spark.master") or ""
    return driver_host(submission, master, target.deploy_mode, env)


def _require_endpoint(files: DriverFiles, options: CaptureOptions) -> None:
    """Refuse a driver without Python if no worker could take its events.

    :param files: the driver's place, and whether its end is awaited
    :param options: the settings, of which ``capture_endpoint`` is looked at
    :raise RemoteDriverError: if there is no endpoint, or the task does not wait for its
        application; the error names the fix
    """
    if not options.capture_endpoint:
        problem = (
            f"The driver runs in {files.host} and the application is no Python file, so nothing in "
            "the driver could deliver the capture."
        )
        fix = (
            "Set [sparklineage] capture_endpoint to a name by which drivers reach this worker, "
            "such as {hostname}:20000-20100: the listener then sends its events there. Or use "
            "deploy_mode='client' where lineage is wanted."
        )
        raise RemoteDriverError(problem, fix)
    if not files.is_awaited:
        problem = (
            f"The driver runs in {files.host} and the task does not wait for its end, so nobody "
            "would take the events that it sends."
        )
        fix = "Leave out waitAppCompletion=false where lineage is wanted."
        raise RemoteDriverError(problem, fix)


def _image(options: CaptureOptions) -> str:
    """Give the ``local:`` URL of the folder that has the listener's jar on the driver's host.

    :param options: the settings, of which ``listener_jar`` is looked at
    :return: the URL; empty if ``listener_jar`` is not a ``local:`` URL
    """
    jar = options.listener_jar
    is_there = isinstance(jar, str) and submitted_files.scheme(jar) == "local"
    return str(jar).rpartition("/")[0] if is_there else ""


def _require_delivery(host: DriverHost, options: CaptureOptions, *, has_observer: bool) -> None:
    """Refuse a driver without an observer: nothing else in it delivers the captured files.

    :param options: the settings, of which ``observe`` is looked at
    :param has_observer: whether the observer's zip is uploaded, or is in the driver's image
    :raise RemoteDriverError: if there is no observer; the error names the fix
    """
    if not options.observe:
        problem = (
            f"The driver runs in {host}, and the observer, which delivers the capture, is switched "
            "off."
        )
        raise RemoteDriverError(problem, "Leave out observe=False.")
    if not has_observer:
        key = UPLOAD_PATH
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
