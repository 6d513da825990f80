"""Decides where the driver of a submission will run, and which files the driver can reach there."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import CaptureError, RemoteDriverError
from airflow_provider_sparklineage.spark.submit import fetching, listener

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.spark.submit.submission import Submission

UPLOAD_PATH = "spark.kubernetes.file.upload.path"
"""The property for the folder through which spark-submit brings files into pods."""


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
    :param deploy_mode: the deploy mode of the Spark connection, if it has one
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
    """Refuse a submission whose driver has no way to bring its capture to the worker.

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
    """Give the folder in which a remote driver stores its capture until the capture is delivered.

    YARN starts each driver in a new folder, which it deletes later, so the path is relative. A
    driver in a pod starts in a folder of its image that may be read-only, so the path is in /tmp.
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
    :raise CaptureError: if the jar cannot be copied to the mount
    """
    if host is DriverHost.YARN or "://" in jar:
        return jar
    source = Path(jar)
    target = source if source.is_relative_to(share.parent) else share / source.name
    try:
        if target != source and not _is_copy(target, source):
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


def _is_copy(target: Path, source: Path) -> bool:
    with suppress(FileNotFoundError):
        return listener.digest_of(target) == listener.digest_of(source)
    return False
