"""Where the driver of a submission will run, and what it can reach there."""

from __future__ import annotations

import shutil
import tempfile
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.exceptions import CaptureError, RemoteDriverError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.spark.submit.submission import Submission


class Place(StrEnum):
    """Where a driver runs."""

    WORKER = "this worker"
    YARN = "a YARN cluster"
    KUBERNETES = "a pod of Kubernetes"
    STANDALONE = "a worker of the Spark cluster"

    @property
    def is_remote(self) -> bool:
        """Whether it is no child of this worker."""
        return self is not Place.WORKER


def place_of(
    submission: Submission, master: str, deploy_mode: str | None, env: Mapping[str, str]
) -> Place:
    """Tell where the driver will run, as spark-submit does.

    :param master: of the Spark connection; spark-submit gets it as a flag
    :param deploy_mode: likewise, if there is one
    :param env: environment that it would be submitted with
    """
    mode = (
        deploy_mode
        or submission.value("spark.submit.deployMode")
        or env.get("DEPLOY_MODE")
        or "client"
    )
    if mode != "cluster" and master != "yarn-cluster":
        return Place.WORKER
    if "yarn" in master:
        return Place.YARN
    return Place.KUBERNETES if "k8s" in master else Place.STANDALONE


def require_reachable(place: Place, *, shared: bool) -> None:
    """Refuse to collect from where nothing comes back.

    :param shared: whether the capture location is on a mount that the driver has as well
    :raise DriverElsewhereError: naming what was not captured, and the mend
    """
    if place.is_remote and not shared:
        problem = (
            f"The driver runs in {place} and not on this worker, so neither the datasets, the "
            "columns nor the partitions that it touches could be captured."
        )
        fix = (
            "Use deploy_mode='client' where lineage is wanted, or put [sparklineage] "
            "capture_location on a mount that the driver has at the same path, and set "
            "capture_location_shared."
        )
        raise RemoteDriverError(problem, fix)


def reachable(place: Place, jar: str, share: Path) -> str:
    """Give the name by which a remote driver finds a jar of this worker's.

    YARN is given the jar by spark-submit. Elsewhere it lies on the shared mount, and is named as a
    file that is there already; what has an address is not this worker's.

    :param share: folder on the shared mount, for jars that are not on it
    :raise CaptureError: if the jar cannot be put there
    """
    if place is Place.YARN or "://" in jar:
        return jar
    source = Path(jar)
    target = source if source.is_relative_to(share.parent) else share / source.name
    try:
        if target != source and not _is_copy(target, source):
            share.mkdir(mode=0o755, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=share, delete=False) as file:
                shutil.copy2(source, file.name)  # with its time, by which a copy is known
            Path(file.name).chmod(0o644)  # the driver may be another user
            Path(file.name).replace(target)
    except OSError as error:
        msg = f"{source.name} cannot be put on the shared mount, {share}: {error}."
        raise CaptureError(msg) from error
    return f"local://{target}"


def _is_copy(target: Path, source: Path) -> bool:
    try:
        there, here = target.stat(), source.stat()
    except FileNotFoundError:
        return False
    # Mounts keep whole seconds, or two.
    return there.st_size == here.st_size and abs(there.st_mtime - here.st_mtime) <= 2
