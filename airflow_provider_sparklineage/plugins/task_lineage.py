"""The lineage of a task instance as the API server finds it: in its XCom, and in the archive."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.state import State, TaskInstanceState
from sqlalchemy import select

from airflow_provider_sparklineage.event import reading, xcom
from airflow_provider_sparklineage.event.archive import archive_of
from airflow_provider_sparklineage.event.backends import BACKENDS, backend_of
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.links.lineage import LineageJobLink
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import (
    ArchiveError,
    DocumentError,
    SparkLineageError,
)
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from airflow_provider_sparklineage.event.archive import Archive
    from airflow_provider_sparklineage.event.backends.base import Backend
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

ARCHIVE_TIMEOUT_S = 5.0

NOTHING = (
    "This task has no Spark lineage: its operator is no SparkLineageSubmitOperator, or lineage is "
    "switched off for it."
)
RUNNING = "This try has not ended; its Spark lineage appears here when it has."
CUSTOM_XCOM_BACKEND = (
    "The lineage is kept by a custom XCom backend, which Airflow's web server does not ask; set "
    "[sparklineage] archive_url to see it here."
)


class Progress(NamedTuple):
    """How far a task instance is.

    :param latest: its latest try
    :param state: Airflow's word; None before it is scheduled
    :param has_ended: that it stays so, unless somebody clears it
    """

    latest: int
    state: str | None
    has_ended: bool


class Answer(NamedTuple):
    """What the tab gets.

    :param event: the merged event, or None with a message that gives the reason
    :param tries: tries of which there is an event, and the one that is shown
    :param note: what else its reader should know
    :param links: pages of the lineage backend: ``job``, and ``datasets`` with a ``url`` each
    :param state: and ``has_ended``: see :class:`Progress`
    """

    event: dict[str, Any] | None
    message: str
    tries: list[int]
    try_number: int
    latest: int
    note: str
    links: dict[str, Any]
    state: str | None
    has_ended: bool


class _Found(NamedTuple):
    event: dict[str, Any] | None = None
    message: str = ""


def progress(wanted: TaskIdentity, session: Session) -> Progress | None:
    """Give how far a task instance is, with its latest try; None if there is none."""
    found = session.execute(
        select(TaskInstance.try_number, TaskInstance.state).where(
            TaskInstance.dag_id == wanted.dag_id,
            TaskInstance.run_id == wanted.run_id,
            TaskInstance.task_id == wanted.task_id,
            TaskInstance.map_index == wanted.map_index,
        )
    ).one_or_none()
    if found is None:
        return None
    latest, state = found
    return Progress(latest, state and str(state), state in State.finished)


def of(wanted: TaskIdentity, session: Session) -> Answer | None:
    """Find the lineage of a try; None if there is no such task instance.

    :param wanted: with the try number 0 for the latest
    """
    now = progress(wanted, session)
    if now is None:
        return None
    latest = now.latest
    number = wanted.try_number or latest
    wanted = msgspec.structs.replace(wanted, try_number=number)
    resolved, notes = _settings()
    is_pushed = number == latest and (now.has_ended or now.state == TaskInstanceState.UP_FOR_RETRY)
    found = _pushed(wanted, session) if is_pushed else _Found(message=NOTHING)
    is_whole = found.event is not None and not _misses_detail(found.event)
    tries: list[int] = []
    # A store that is slow or away keeps nobody waiting who does not need it.
    archive = archive_of(resolved, ARCHIVE_TIMEOUT_S)
    if archive is not None and (latest > 1 or not is_whole):
        tries, complaint = _tries(archive, wanted)
        notes += complaint
        if number in tries and not is_whole:
            found = _archived(archive, wanted, found)
    message = found.message
    if message == NOTHING and number == latest and not now.has_ended:
        message = RUNNING
    return Answer(
        found.event,
        message,
        sorted({*tries, latest}),
        number,
        latest,
        " ".join(notes),
        _links(found.event, *_pages(wanted, found.event, resolved, session)) if found.event else {},
        now.state,
        now.has_ended,
    )


def _settings() -> tuple[Settings, list[str]]:
    """Resolve the settings as a task without arguments would; a wrong one is a note."""
    try:
        connection = sources.connection(DEFAULT_CONN_ID)
        return resolution.resolve(*sources.of(connection)), []
    except SparkLineageError as error:
        return resolution.resolve(), [str(error)]


def _tries(archive: Archive, wanted: TaskIdentity) -> tuple[list[int], list[str]]:
    try:
        return archive.tries(wanted), []
    except ArchiveError as error:
        return [], [str(error)]


def _xcom(wanted: TaskIdentity, key: str, session: Session) -> Any:
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


def _pushed(wanted: TaskIdentity, session: Session) -> _Found:
    value = _xcom(wanted, xcom.KEY, session)
    if value is None or isinstance(value, str):
        return _Found(message=NOTHING if value is None else CUSTOM_XCOM_BACKEND)
    try:
        return _Found(xcom.decode(value))
    except DocumentError as error:
        return _Found(message=str(error))


def _misses_detail(event: dict[str, Any]) -> bool:
    return any(d.get("code") == DegradationCode.DETAIL_DROPPED for d in reading.degradations(event))


def _archived(archive: Archive, wanted: TaskIdentity, otherwise: _Found) -> _Found:
    try:
        return _Found(archive.read(wanted))
    except (ArchiveError, DocumentError) as error:
        return otherwise if otherwise.event else _Found(message=str(error))


def _pages(
    wanted: TaskIdentity, event: dict[str, Any], resolved: Settings, session: Session
) -> tuple[str, Backend]:
    """Find the URL of the pages of the task's lineage backend, and which backend it is.

    The task may have a connection of its own, which only the worker knows. The link to its job that
    it left in Airflow begins with the URL.
    """
    link = _xcom(wanted, LineageJobLink().xcom_key, session)
    job = event["job"]
    for backend in BACKENDS.values():
        page = backend.job_page("", str(job.get("namespace")), job["name"])
        if page and isinstance(link, str) and link.endswith(page):
            return link.removesuffix(page), backend
    return resolved.web_url or "", backend_of(str(resolved.backend))


def _links(event: dict[str, Any], web_url: str, backend: Backend) -> dict[str, Any]:
    """Link to the pages of the lineage backend that open."""
    if not web_url:
        return {}
    names = {
        DatasetName(d["namespace"], d["name"])
        for d in (*(event.get("inputs") or ()), *(event.get("outputs") or ()))
    }
    pages = ((name, backend.dataset_page(web_url, name)) for name in sorted(names))
    job = event["job"]
    return {
        "backend": backend.title,
        "job": backend.job_page(web_url, str(job.get("namespace")), job["name"]),
        "datasets": [{**name._asdict(), "url": url} for name, url in pages if url],
    }
