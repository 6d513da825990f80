"""The lineage of a task instance as the API server finds it: in its XCom, and in the archive."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.state import State
from sqlalchemy import select

from airflow_provider_sparklineage import settings, show, xcom
from airflow_provider_sparklineage.archive import Archive
from airflow_provider_sparklineage.backends import backend_of
from airflow_provider_sparklineage.connection import DEFAULT_CONN_ID, source_of
from airflow_provider_sparklineage.datasets import DatasetName
from airflow_provider_sparklineage.degradations import DegradationCode
from airflow_provider_sparklineage.exceptions import ArchiveError, DocumentError, SparkLineageError
from airflow_provider_sparklineage.hooks import sources

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from airflow_provider_sparklineage.settings import Settings
    from airflow_provider_sparklineage.spark.capture import TaskIdentity

ARCHIVE_TIMEOUT_S = 5.0

NOTHING = (
    "This task has no Spark lineage: its operator is no SparkLineageSubmitOperator, or lineage is "
    "switched off for it."
)
RUNNING = "This try has not ended; its Spark lineage is shown when it has."
ELSEWHERE = (
    "The lineage is kept by a custom XCom backend, which Airflow's web server does not ask; set "
    "[sparklineage] archive_url to see it here."
)


class Answer(NamedTuple):
    """What the tab gets.

    :param event: the merged event, or None with a message that says why there is none
    :param tries: tries of which there is an event, and the one that is shown
    :param note: what else its reader should know
    :param links: pages of the lineage backend: ``job``, and ``datasets`` with a ``url`` each
    """

    event: dict[str, Any] | None
    message: str
    tries: list[int]
    try_number: int
    latest: int
    note: str
    links: dict[str, Any]


class _Found(NamedTuple):
    event: dict[str, Any] | None = None
    message: str = ""


def of(wanted: TaskIdentity, session: Session) -> Answer | None:
    """Find the lineage of a try; None if there is no such task instance.

    :param wanted: with the try number 0 for the latest
    """
    instance = session.scalar(
        select(TaskInstance).where(
            TaskInstance.dag_id == wanted.dag_id,
            TaskInstance.run_id == wanted.run_id,
            TaskInstance.task_id == wanted.task_id,
            TaskInstance.map_index == wanted.map_index,
        )
    )
    if instance is None:
        return None
    latest = instance.try_number
    number = wanted.try_number or latest
    wanted = msgspec.structs.replace(wanted, try_number=number)
    resolved, notes = _settings()
    archive = Archive(resolved.archive_url, ARCHIVE_TIMEOUT_S) if resolved.archive_url else None
    tries, complaint = _tries(archive, wanted)
    notes += complaint
    found = _pushed(wanted, session) if number == latest else _Found(message=NOTHING)
    if archive and number in tries and (found.event is None or _lacks_detail(found.event)):
        found = _archived(archive, wanted, found)
    message = found.message
    if message == NOTHING and number == latest and instance.state in State.unfinished:
        message = RUNNING
    return Answer(
        found.event,
        message,
        sorted({*tries, latest}),
        number,
        latest,
        " ".join(notes),
        _links(found.event, resolved) if found.event else {},
    )


def _settings() -> tuple[Settings, list[str]]:
    """Resolve the settings as a task without arguments would; a wrong one is a note."""
    try:
        source = source_of(sources.connection(DEFAULT_CONN_ID))
        return settings.resolve(source, sources.configuration()), []
    except SparkLineageError as error:
        return settings.resolve(), [str(error)]


def _tries(archive: Archive | None, wanted: TaskIdentity) -> tuple[list[int], list[str]]:
    if archive is None:
        return [], []
    try:
        return archive.tries(wanted), []
    except ArchiveError as error:
        return [], [str(error)]


def _pushed(wanted: TaskIdentity, session: Session) -> _Found:
    """Read the XCom, which is always that of the latest try: a try that begins clears it."""
    query = XComModel.get_many(
        run_id=wanted.run_id,
        key=xcom.KEY,
        task_ids=wanted.task_id,
        dag_ids=wanted.dag_id,
        map_indexes=wanted.map_index,
        limit=1,
    )
    row: Any = session.scalars(query).first()
    if row is None:
        return _Found(message=NOTHING)
    # Not by XComModel.deserialize_value(), which makes objects of classes that a task names: the
    # web server does that for nobody.
    value = row.value
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return _Found(message=ELSEWHERE)
    try:
        return _Found(xcom.decode(value))
    except DocumentError as error:
        return _Found(message=str(error))


def _lacks_detail(event: dict[str, Any]) -> bool:
    return any(d.get("code") == DegradationCode.DETAIL_DROPPED for d in show.degradations(event))


def _archived(archive: Archive, wanted: TaskIdentity, otherwise: _Found) -> _Found:
    try:
        return _Found(archive.read(wanted))
    except (ArchiveError, DocumentError) as error:
        return otherwise if otherwise.event else _Found(message=str(error))


def _links(event: dict[str, Any], resolved: Settings) -> dict[str, Any]:
    """Link to the pages of the lineage backend that open."""
    if not resolved.web_url:
        return {}
    backend = backend_of(str(resolved.backend))
    names = {
        DatasetName(d["namespace"], d["name"])
        for d in (*(event.get("inputs") or ()), *(event.get("outputs") or ()))
    }
    pages = ((name, backend.dataset_page(resolved.web_url, name)) for name in sorted(names))
    job = event["job"]
    return {
        "backend": backend.title,
        "job": backend.job_page(resolved.web_url, str(job.get("namespace")), job["name"]),
        "datasets": [{**name._asdict(), "url": url} for name, url in pages if url],
    }
