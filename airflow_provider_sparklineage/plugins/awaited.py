"""What the tab shows of a try that has no lineage (yet): what is expected, and the last run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.models.xcom import XComModel
from msgspec.structs import replace
from sqlalchemy import select

from airflow_provider_sparklineage.event import expected
from airflow_provider_sparklineage.plugins import stored
from airflow_provider_sparklineage.plugins.other_runs import around

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

MAX_RUNS = 10
MAX_ARCHIVED = 3
"""Runs of which the archive is asked."""


class Last(NamedTuple):
    """The lineage of a try that has succeeded.

    :param identity: of which try it is
    :param date: logical date of its run, if that has one
    """

    event: dict[str, Any]
    identity: TaskIdentity
    date: datetime | None


def expectations(wanted: TaskIdentity, session: Session) -> dict[str, Any] | None:
    """Give what is expected of a try, as it pushed it when it began; None if it has not (yet)."""
    value = stored.xcom_value(wanted, expected.KEY, session)
    is_of_try = isinstance(value, dict) and value.get("try_number") == wanted.try_number
    return value if is_of_try else None


def expected_at(wanted: TaskIdentity, session: Session) -> str | None:
    """Give when a task instance pushed what is expected of it; None if it has not."""
    pushed = session.scalar(
        select(XComModel.timestamp).where(
            XComModel.dag_id == wanted.dag_id,
            XComModel.run_id == wanted.run_id,
            XComModel.task_id == wanted.task_id,
            XComModel.map_index == wanted.map_index,
            XComModel.key == expected.KEY,
        )
    )
    return None if pushed is None else str(pushed.isoformat())


def last(
    wanted: TaskIdentity, tries: Sequence[int], archive: stored.BoundedArchive, session: Session
) -> Last | None:
    """Find the lineage that a try will probably have; None if there is none.

    That of an earlier try of the same run, which was cleared; else that of another run, the nearest
    before this one first, or of a mapped sibling.

    :param tries: of which the archive has an event
    """
    for event, identity, date in _candidates(wanted, tries, archive, session):
        if event is not None and event.get("eventType") == "COMPLETE":
            return Last(event, identity, date)
    return None


def _candidates(
    wanted: TaskIdentity, tries: Sequence[int], archive: stored.BoundedArchive, session: Session
) -> Iterator[tuple[dict[str, Any] | None, TaskIdentity, datetime | None]]:
    earlier = [number for number in tries if number < wanted.try_number]
    for number in sorted(earlier, reverse=True)[:MAX_ARCHIVED]:
        identity = replace(wanted, try_number=number)
        yield archive.read(identity).event, identity, None
    for number, (identity, date) in enumerate(around(wanted, session, MAX_RUNS)):
        yield stored.pushed(identity, session).event, identity, date
        if number < MAX_ARCHIVED:
            yield archive.read(identity).event, identity, date
