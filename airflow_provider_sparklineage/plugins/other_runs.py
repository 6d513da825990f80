"""Other instances of a task: its other runs around one, and its mapped siblings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import TaskInstanceState
from msgspec.structs import replace
from sqlalchemy import func, or_, select

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

    Of a mapped task, those of the same index, and the others of the same run. Runs are ordered by
    logical date, or by when they were due where they have none.

    :param limit: how many at most
    """
    when = func.coalesce(DagRun.logical_date, DagRun.run_after)
    own = session.scalar(
        select(when).where(DagRun.dag_id == wanted.dag_id, DagRun.run_id == wanted.run_id)
    )
    if own is None:
        return []
    is_own = (TaskInstance.run_id == wanted.run_id) & (TaskInstance.map_index == wanted.map_index)
    others = (
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
            or_(TaskInstance.map_index == wanted.map_index, TaskInstance.run_id == wanted.run_id),
            ~is_own,
        )
        .limit(limit)
    )
    before = session.execute(
        others.where(when <= own).order_by(when.desc(), TaskInstance.map_index)
    ).all()
    after = session.execute(others.where(when > own).order_by(when, TaskInstance.map_index)).all()
    after = after[: max(min(LATER, limit // 2), limit - len(before))]

    return [
        OtherInstance(replace(wanted, run_id=run_id, map_index=map_index, try_number=number), date)
        for run_id, map_index, number, date in (*before[: limit - len(after)], *after)
    ]
