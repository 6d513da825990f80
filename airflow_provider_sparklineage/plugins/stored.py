"""What Airflow's database and the archive have of a task: XComs, events, other instances of it.

The API server reads both for the tab.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.state import TaskInstanceState
from msgspec.structs import replace
from sqlalchemy import func, select

from airflow_provider_sparklineage.event import model, xcom
from airflow_provider_sparklineage.event.archive import archive_of
from airflow_provider_sparklineage.model.exceptions import ArchiveError, DocumentError

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.orm import Session

    from airflow_provider_sparklineage.event.archive import Archive
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity


CUSTOM_XCOM_BACKEND = (
    "The lineage is kept by a custom XCom backend, which Airflow's web server does not ask; set "
    "[sparklineage] archive_url to see it here."
)


class Found(NamedTuple):
    """An event, or why there is none; neither where nothing was stored."""

    event: dict[str, Any] | None = None
    message: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether there is an event, and the archive cannot have more."""
        return self.event is not None and not model.is_preliminary(self.event)


def xcom_value(wanted: TaskIdentity, key: str, session: Session) -> Any:
    """Read an XCom as what JSON has, None without one; of a custom backend, a text of its own.

    It is that of the latest try once that has ended: its process clears it some time after Airflow
    has set the try to running.
    """
    query = XComModel.get_many(
        run_id=wanted.run_id,
        key=key,
        task_ids=wanted.task_id,
        dag_ids=wanted.dag_id,
        map_indexes=wanted.map_index,
        limit=1,
    )
    row: Any = session.scalars(query).first()
    # Not by XComModel.deserialize_value(), which makes objects of classes that a task names: the
    # web server does that for nobody.
    value = None if row is None else row.value
    with suppress(ValueError, RecursionError):
        return json.loads(value) if isinstance(value, str) else value
    return value


def pushed(wanted: TaskIdentity, session: Session) -> Found:
    """Give the event that a task instance pushed last."""
    value = xcom_value(wanted, xcom.KEY, session)
    if value is None:
        return Found()
    if isinstance(value, str):
        return Found(message=CUSTOM_XCOM_BACKEND)
    try:
        return Found(xcom.decode(value))
    except DocumentError as error:
        return Found(message=str(error))


class BoundedArchive:
    """The archive, asked until its time is over, or until it has not answered once.

    Where there is none, nothing is found.

    :param seconds: for all that is asked of it
    """

    def __init__(self, settings: Settings, seconds: float) -> None:
        self._archive = archive_of(settings, seconds)
        self._end = time.monotonic() + seconds
        self.complaint = ""
        """Why it is asked no more; empty while it answers."""

    @property
    def is_there(self) -> bool:
        """Whether it can be asked."""
        return self._archive is not None and not self.complaint

    @property
    def is_over(self) -> bool:
        """Whether its time is over."""
        return time.monotonic() >= self._end

    def tries(self, wanted: TaskIdentity) -> list[int]:
        """List the tries of which it has an event; none if it does not answer."""
        if (archive := self._in_time()) is None:
            return []
        try:
            return archive.tries(wanted)
        except ArchiveError as error:
            self.complaint = str(error)
            return []

    def read(self, wanted: TaskIdentity) -> Found:
        """Give the event of a try, if it has one."""
        if (archive := self._in_time()) is None:
            return Found()
        try:
            return Found(archive.read(wanted))
        except ArchiveError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                self.complaint = str(error)
            return Found(message=str(error))
        except DocumentError as error:
            return Found(message=str(error))

    def _in_time(self) -> Archive | None:
        if self._archive is None or self.complaint:
            return None
        return self._archive.within(max(0.0, self._end - time.monotonic()))


MAX_LATER = 15
"""Runs after the one that is looked at, where there are enough before it."""


class OtherInstance(NamedTuple):
    """An instance of the same task that has succeeded.

    :param identity: with its last try
    :param date: logical date of its run, if that has one
    """

    identity: TaskIdentity
    date: datetime | None


def instances_around(wanted: TaskIdentity, session: Session, limit: int) -> list[OtherInstance]:
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
    after = after[: max(min(MAX_LATER, most // 2), most - len(before))]
    found = (*before[: most - len(after)], *after, *siblings)
    return [
        OtherInstance(replace(wanted, run_id=run_id, map_index=map_index, try_number=number), date)
        for run_id, map_index, number, date in found[:limit]
    ]
