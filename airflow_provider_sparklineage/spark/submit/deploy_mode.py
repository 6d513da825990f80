"""Where the driver of a submission will run, and which files it can reach there."""

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
"""Property with the folder through which spark-submit brings files into pods."""


class DriverHost(StrEnum):
    """The place where a driver runs."""

    WORKER = "this worker"
    YARN = "a YARN cluster"
    KUBERNETES = "a pod of Kubernetes"
    STANDALONE = "a worker of the Spark cluster"
    ELSEWHERE = "another place"
    """The place of a command that starts spark-submit: another machine, or a container."""

    @property
    def is_remote(self) -> bool:
        """Whether the driver is no child process of this worker."""
        return self is not DriverHost.WORKER


def driver_host(
    submission: Submission, master: str, deploy_mode: str | None, env: Mapping[str, str]
) -> DriverHost:
    """Decide where the driver will run, as spark-submit does.

    :param master: of the Spark connection; spark-submit gets it as a flag
    :param deploy_mode: of the Spark connection, if it has one
    :param env: environment with which the job would be submitted
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


# By host: the property that makes spark-submit wait until its application has ended in cluster
# mode, and Spark's default.
_WAITS = {
    DriverHost.YARN: ("spark.yarn.submit.waitAppCompletion", "true"),
    DriverHost.KUBERNETES: ("spark.kubernetes.submission.waitAppCompletion", "true"),
    DriverHost.STANDALONE: ("spark.standalone.submit.waitAppCompletion", "false"),
}


def waits_for_end(submission: Submission, host: DriverHost, *, is_polled: bool) -> bool:
    """Whether the task ends no earlier than its application.

    :param is_polled: whether Airflow asks the cluster until the application has ended
    """
    if is_polled or not host.is_remote:
        return True
    if host is DriverHost.ELSEWHERE:
        return False
    key, default = _WAITS[host]
    return (submission.value(key) or default).strip().lower() == "true"


def require_reachable(host: DriverHost, *, shared: bool, delivers: bool = False) -> None:
    """Refuse a submission whose driver cannot bring its capture back to the worker.

    :param shared: whether the capture location is on a mount that the driver has as well
    :param delivers: whether the driver delivers to a capture location that is a URL
    :raise RemoteDriverError: names the missing lineage, and the fix
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
    """Whether the driver uses the jars of this worker's Spark, or uploaded copies of them."""
    if host is DriverHost.YARN:  # spark-submit uploads them, unless properties name others
        archive = submission.value("spark.yarn.archive") or submission.value("spark.yarn.jars")
        return (archive or "local:").startswith("local:")
    return not host.is_remote


def container_folder(host: DriverHost, application_run_id: str) -> str:
    """Give the folder in which a remote driver keeps its capture until it has delivered it.

    YARN gives each driver a folder to start in, and deletes it. A driver in a pod starts in a
    folder of its image, which it may be unable to write to.
    """
    folder = f"sparklineage-{application_run_id}"
    return folder if host is DriverHost.YARN else f"/tmp/{folder}"  # noqa: S108  (the pod's own)


def reachable(host: DriverHost, jar: str, share: Path) -> str:
    """Give the name by which a remote driver finds a jar of this worker.

    YARN gets the jar from spark-submit. Other clusters find it on the shared mount, as a file that
    is there already; it is copied there if needed. A jar that is given as a URL is returned as it
    is.

    :param share: folder on the shared mount, for jars that are not on the mount
    :raise CaptureError: if the jar cannot be copied there
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
