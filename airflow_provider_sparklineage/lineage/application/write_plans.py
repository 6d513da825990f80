"""Spark's plans of writes, bound to the datasets that they read and write.

They are kept compressed, as a job may write thousands of times, and are read when the columns of
the write are asked for.
"""

from __future__ import annotations

import zlib
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.spark.capture.observations import CommandRecord


class WritePlan(NamedTuple):
    """The plan of one write.

    :param columns: those of the target that the query's output becomes, in its order
    :param compressed: Spark's ``TreeNode.toJSON``
    :param relations: what leaves of the plan read -> the ids of their columns; None for what is no
        dataset of the application
    """

    target: DatasetName
    columns: tuple[str, ...]
    compressed: bytes
    relations: tuple[tuple[DatasetName | None, tuple[int, ...]], ...]

    @property
    def plan(self) -> bytes:
        """The plan as JSON."""
        return zlib.decompress(self.compressed)


class WritePlanThen(NamedTuple):
    """A plan, and the times between which its query ran."""

    started: datetime
    ended: datetime
    plan: WritePlan

    def is_within(self, started: datetime, ended: datetime | None) -> bool:
        """Whether most of it was between two times."""
        middle = self.started + (self.ended - self.started) / 2
        return started <= middle and (ended is None or middle <= ended)

    def gap(self, started: datetime, ended: datetime | None) -> timedelta:
        """Give the time between it and two times; negative if they overlap."""
        after = self.started - ended if ended is not None else timedelta.min
        return max(after, started - self.ended)


def bound_plan(
    command: CommandRecord,
    target: DatasetName,
    dataset: Callable[[str, str | None], DatasetName | None],
) -> WritePlan | None:
    """Bind a plan to datasets.

    :param dataset: finds the dataset of a path and table
    :return: None if there is no plan
    """
    if not command.plan:
        return None
    relations = tuple(
        (dataset(relation.path, relation.table), tuple(relation.ids))
        for relation in command.relations
    )
    return WritePlan(target, tuple(command.columns), zlib.compress(command.plan, 1), relations)
