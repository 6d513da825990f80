"""Reads XComs, archived events and task instances, by which the tab's answers are made."""

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
from sqlalchemy import and_, func, select

from airflow_provider_sparklineage.event import stored, xcom
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


class StoredEvent(NamedTuple):
    """An event, or a message with the reason why there is none; neither if nothing was stored."""

    event: dict[str, Any] | None = None
    message: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether there is an event, and the archive cannot have a fuller one."""
        return self.event is not None and not stored.is_preliminary(self.event)


def is_of(task: Any, model: Any = TaskInstance) -> Any:
    """Give the SQL condition that selects the rows of a task instance in a table, of all its tries.

    :param task: has the ids and the map index of the task instance
    :param model: Airflow's class of the table
    """
    return and_(*(getattr(model, name) == getattr(task, name) for name in INSTANCE))


INSTANCE = ("dag_id", "run_id", "task_id", "map_index")
"""The columns that name a task instance, in each table of Airflow's database."""


def xcom_value(wanted: TaskIdentity, key: str, session: Session) -> Any:
    """Read an XCom of a task instance, in JSON's types; None if there is none.

    For a custom XCom backend the value is that backend's own text. The XCom is sure to be of the
    latest try only once that try has ended: the try's process deletes the older XCom some time
    after Airflow has set the try to running.

    :param wanted: the task instance; the number of its try is not used
    :param key: the XCom's key
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
    # Not by XComModel.deserialize_value(): it makes objects of classes that a task names, which is
    # not safe in a web server.
    value = None if row is None else row.value
    with suppress(ValueError, RecursionError):
        return json.loads(value) if isinstance(value, str) else value
    return value


def pushed(wanted: TaskIdentity, session: Session) -> StoredEvent:
    """Give the event that a task instance pushed last, from its XCom.

    :param wanted: the task instance; the number of its try is not used
    """
    value = xcom_value(wanted, xcom.KEY, session)
    if value is None:
        return StoredEvent()
    if isinstance(value, str):
        return StoredEvent(message=CUSTOM_XCOM_BACKEND)
    try:
        return StoredEvent(xcom.decode(value))
    except DocumentError as error:
        return StoredEvent(message=str(error))


class BoundedArchive:
    """The archive with a time limit; if it does not answer a question, it is asked no more.

    If there is no archive, all answers are empty.

    :param seconds: time limit for all questions together
    """

    def __init__(self, settings: Settings, seconds: float) -> None:
        self._archive = archive_of(settings, seconds)
        self._end = time.monotonic() + seconds
        self.complaint = ""
        """The reason why the archive is asked no more; empty while it answers."""

    @property
    def is_there(self) -> bool:
        """Whether there is an archive that answered each request so far."""
        return self._archive is not None and not self.complaint

    @property
    def is_over(self) -> bool:
        """Whether the time limit has passed."""
        return time.monotonic() >= self._end

    def tries(self, wanted: TaskIdentity) -> list[int]:
        """List the tries for which the archive has an event; [] if the archive does not answer.

        :param wanted: the task instance; the number of its try is not used
        """
        if (archive := self._in_time()) is None:
            return []
        try:
            return archive.tries(wanted)
        except ArchiveError as error:
            self.complaint = str(error)
            return []

    def read(self, wanted: TaskIdentity) -> StoredEvent:
        """Give the event of the try ``wanted``, or a message with the reason why it cannot be read.

        The answer has neither if there is no archive, or if the archive is asked no more.
        """
        if (archive := self._in_time()) is None:
            return StoredEvent()
        try:
            return StoredEvent(archive.read(wanted))
        except ArchiveError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                self.complaint = str(error)
            return StoredEvent(message=str(error))
        except DocumentError as error:
            return StoredEvent(message=str(error))

    def _in_time(self) -> Archive | None:
        if self._archive is None or self.complaint:
            return None
        return self._archive.within(max(0.0, self._end - time.monotonic()))


MAX_LATER = 15
"""The most later runs in an answer, if there are enough earlier ones."""


def instances_around(
    wanted: TaskIdentity, session: Session, limit: int
) -> list[tuple[TaskIdentity, datetime | None]]:
    """List a task's successful instances around one: the earlier, newest first, then the later.

    For a mapped task these instances are of the same map index, and siblings follow: other indexes
    of the same run, the nearest first. Runs are ordered by logical date, or by the time when they
    were due if they have no logical date.

    :param wanted: the task instance around which the list is; it is not in the list
    :param limit: the most instances in the list; at most half are siblings if there are enough runs
    :return: each instance with its last try, and the logical date of its run
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
            DagRun, (DagRun.dag_id == TaskInstance.dag_id) & (DagRun.run_id == TaskInstance.run_id)
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
    nearest = (*before[: most - len(after)], *after, *siblings)
    return [
        (replace(wanted, run_id=run_id, map_index=map_index, try_number=number), date)
        for run_id, map_index, number, date in nearest[:limit]
    ]
