"""Other instances of a task: its other runs around one, and its mapped siblings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import TaskInstanceState
from msgspec.structs import replace
from sqlalchemy import func, select

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

LATER = 15
"""Runs after the one that is looked at, where there are enough before it."""


class OtherInstance(NamedTuple):
    """An instance of the same task that has succeeded.

    :param identity: with its last try
    :param date: logical date of its run, if that has one
    """

    identity: TaskIdentity
    date: datetime | None


def around(wanted: TaskIdentity, session: Session, limit: int) -> list[OtherInstance]:
    """List the instances next to one that have succeeded: before it, the newest first, then after.

    Of a mapped task, those of the same index, and then siblings: other indexes of the same run, the
    nearest first. Runs are ordered by logical date, or by when they were due where they have none.

    :param limit: how many at most; of siblings half of it, where there are enough runs
    """
    when = func.coalesce(DagRun.logical_date, DagRun.run_after)
    own = session.scalar(
        select(when).where(DagRun.dag_id == wanted.dag_id, DagRun.run_id == wanted.run_id)
    )
    if own is None:
        return []
    succeeded = (
        select(
            TaskInstance.run_id,
            TaskInstance.map_index,
            TaskInstance.try_number,
            DagRun.logical_date,
        )
        .join(
            DagRun,
            (DagRun.dag_id == TaskInstance.dag_id) & (DagRun.run_id == TaskInstance.run_id),
        )
        .where(
            TaskInstance.dag_id == wanted.dag_id,
            TaskInstance.task_id == wanted.task_id,
            TaskInstance.state == TaskInstanceState.SUCCESS,
        )
        .limit(limit)
    )
    is_of_run = TaskInstance.run_id == wanted.run_id
    is_of_index = TaskInstance.map_index == wanted.map_index
    distance = func.abs(TaskInstance.map_index - wanted.map_index)
    siblings = session.execute(
        succeeded.where(is_of_run, ~is_of_index).order_by(distance, TaskInstance.map_index)
    ).all()
    runs = succeeded.where(is_of_index, ~is_of_run)
    before = session.execute(runs.where(when <= own).order_by(when.desc())).all()
    after = session.execute(runs.where(when > own).order_by(when)).all()
    most = limit - min(len(siblings), limit // 2)
    after = after[: max(min(LATER, most // 2), most - len(before))]
    found = (*before[: most - len(after)], *after, *siblings)
    return [
        OtherInstance(replace(wanted, run_id=run_id, map_index=map_index, try_number=number), date)
        for run_id, map_index, number, date in found[:limit]
    ]
