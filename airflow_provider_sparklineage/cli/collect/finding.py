"""Which capture bundles of a DAG run are there, where drivers deliver to and on this machine."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.exceptions import CaptureError
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import remote_bundles, retention

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest
    from airflow_provider_sparklineage.spark.capture.location import CaptureLocation


class Asked(NamedTuple):
    """What a person asks for.

    :param run: id of a DAG run, or the place of one bundle: a URL or a folder; empty for all
        commands of the users' own that nobody has collected yet
    """

    run: str
    dag_id: str = ""
    task_id: str = ""

    def may_be(self, name: str) -> bool:
        """Whether a bundle of that name can be of it."""
        return capture.may_be_of(name, self.dag_id, self.task_id)

    def is_wanted(self, manifest: Manifest) -> bool:
        """Whether a bundle is of it."""
        task = manifest.task
        if task is None:
            return False
        if not self.run and (manifest.ended or not manifest.of_command):
            return False
        wanted = (self.run or task.run_id, self.dag_id or task.dag_id, self.task_id or task.task_id)
        return (task.run_id, task.dag_id, task.task_id) == wanted


class Found(NamedTuple):
    """A bundle.

    :param place: URL of the folder that a driver delivers to, or a folder of this machine
    """

    place: str
    manifest: Manifest

    @property
    def is_remote(self) -> bool:
        """Whether it is where a driver delivers to."""
        return "://" in self.place

    @property
    def url(self) -> str:
        """The place as a URL."""
        return self.place if self.is_remote else f"file://{Path(self.place).absolute()}"

    def __str__(self) -> str:
        task = self.manifest.task
        if task is None:
            return self.place
        index = f"[{task.map_index}]" if task.map_index >= 0 else ""
        return f"{task.dag_id}.{task.task_id}{index} (try {task.try_number})"


def bundles(location: CaptureLocation, asked: Asked, budget: Budget) -> list[Found]:
    """Find bundles, in the order in which their tries began.

    :raise CaptureError: if a location cannot be read, or there is none
    """
    found = [*_found(location, asked, budget)]
    if asked.run and not found:
        problem = f"There is no capture bundle of {asked.run} in {location}."
        fix = (
            "The run, DAG or task has another id, or its lineage was collected and the bundle "
            "removed. Where capture_location is set as on the workers, what drivers have delivered "
            "is found."
        )
        raise CaptureError(problem, fix)
    return sorted(found, key=lambda one: (str(one.manifest.started), one.place))


def _found(location: CaptureLocation, asked: Asked, budget: Budget) -> Iterator[Found]:
    if "://" in asked.run:
        root, _, name = asked.run.rstrip("/").rpartition("/")
        found = remote_bundles.manifests(root, budget, lambda one: one == name)
        return (Found(url, manifest) for url, manifest in found)
    if "/" in asked.run and Path(asked.run).is_dir():
        return iter([Found(asked.run, capture.load(Path(asked.run)).manifest)])
    everywhere = chain(_delivered(location, asked, budget), _local(location, asked))
    return (one for one in everywhere if asked.is_wanted(one.manifest))


def _delivered(location: CaptureLocation, asked: Asked, budget: Budget) -> Iterator[Found]:
    if location.url:
        for url, manifest in remote_bundles.manifests(location.url, budget, asked.may_be):
            yield Found(url, manifest)


def _local(location: CaptureLocation, asked: Asked) -> Iterator[Found]:
    """Yield those that drivers write to in place, or whose collecting failed."""
    for folder in retention.own_bundles(location.folder):
        if asked.may_be(folder.name):
            manifest = capture.load(folder).manifest
            if not manifest.remote:
                yield Found(str(folder), manifest)
