"""Batches of streams, of which the listener reports more actions and datasets than there are.

- The files of a batch are datasets of their own for it, where they are in no partition: they become
  the folder that the stream reads.
- A batch that writes a Delta table has Delta's own step in it, reported with the same datasets: the
  step is no action.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.timeline import SLACK, Timeline
from airflow_provider_sparklineage.spark.capture.observations import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accumulation import (
        Action,
        SparkApplication,
    )
    from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
    from airflow_provider_sparklineage.lineage.application.timeline import Span
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.spark.capture.observations import ObservationRecord


class _Batch(NamedTuple):
    """A batch of a stream.

    :param folders: without partitions, that it read files of
    """

    span: Span
    folders: frozenset[DatasetName]


def with_real_batches(
    application: SparkApplication, records: Iterable[ObservationRecord], locator: Locator
) -> SparkApplication:
    """Give the application with the actions and datasets that its streams really had."""
    batches: list[tuple[datetime, datetime, _Batch]] = []
    for record in records:
        if record.function == "stream":
            span = timestamp(record.started), timestamp(record.ended)
            batches.append((*span, _Batch(span, frozenset(_folders(record, locator)))))
    if not batches:
        return application
    timeline = Timeline(batches)
    latest: dict[tuple[frozenset[DatasetName], ...], Action] = {}
    actions: list[Action] = []
    for action in application.actions:
        sides = (action.inputs, action.outputs)
        names = tuple(frozenset(dataset.name for dataset in side) for side in sides)
        during = timeline.during(action.started, action.ended)
        if any(_is_step(action, latest.get(names), batch.span) for batch in during):
            continue
        latest[names] = action
        folders = {folder for batch in during for folder in batch.folders}
        actions.append(replace(action, inputs=_in_folders(action.inputs, folders)))
    return replace(application, actions=tuple(actions))


def _folders(record: ObservationRecord, locator: Locator) -> Iterator[DatasetName]:
    """Name the folders without partitions that a batch read files of."""
    for read in record.reads:
        for layout in read.layouts or ():
            location = locator.locate(layout.base)
            if location is not None and not layout.dimensions:
                yield location.dataset


def _in_folders(
    inputs: Sequence[ActionDataset], folders: Iterable[DatasetName]
) -> tuple[ActionDataset, ...]:
    """Give the inputs of an action with the folders that files of theirs are in."""
    found: dict[DatasetName, ActionDataset] = {}
    for dataset in inputs:
        name = next((folder for folder in folders if _is_inside(dataset.name, folder)), None)
        found.setdefault(name or dataset.name, replace(dataset, name=name) if name else dataset)
    return tuple(found[name] for name in sorted(found))


def _is_inside(file: DatasetName, folder: DatasetName) -> bool:
    return file.namespace == folder.namespace and file.name.startswith(f"{folder.name}/")


def _is_step(action: Action, around: Action | None, batch: Span) -> bool:
    """Whether an action is a step of the one around it, in one batch."""
    if around is None or around.ended is None or action.ended is None or not action.outputs:
        return False
    started, ended = batch
    is_in_batch = started - SLACK <= around.started and around.ended <= ended + SLACK
    return is_in_batch and action.ended <= around.ended
