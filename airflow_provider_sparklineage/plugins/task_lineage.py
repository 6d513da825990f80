"""The tab's three answers about a task instance, from Airflow's database and the archive.

:func:`lineage` gives the lineage of a try; while there is none (yet), its expectations, and the
lineage of the last run. :func:`progress` gives how far the task is. :func:`history` gives which
partitions its other runs read and wrote: the values of dates, no more.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.utils.state import State, TaskInstanceState
from msgspec.structs import replace
from sqlalchemy import select

from airflow_provider_sparklineage.event import model, xcom
from airflow_provider_sparklineage.event.backends import BACKENDS, backend_of
from airflow_provider_sparklineage.hooks import datahub, sources
from airflow_provider_sparklineage.links import datahub_pages
from airflow_provider_sparklineage.links.lineage import LineageJobLink
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import SparkLineageError
from airflow_provider_sparklineage.plugins import stored
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID
from airflow_provider_sparklineage.settings.option_kinds import BackendName

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

    from airflow_provider_sparklineage.event.backends.base import Backend
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

    Values = tuple[tuple[str, str], ...]


ARCHIVE_TIMEOUT_S = 5.0

NOTHING = (
    "This task has no Spark lineage: its operator is no SparkLineageSubmitOperator, or lineage is "
    "switched off for it."
)
RUNNING = "This try has not ended; its Spark lineage appears here when it has."
NOT_SUBMITTED = "This try has no Spark lineage: it ended before its job was submitted."


class Progress(NamedTuple):
    """How far a task instance is.

    :param latest: its latest try
    :param state: Airflow's word; None before it is scheduled
    :param has_ended: that it stays so, unless somebody clears it
    :param expected_at: when it pushed what is expected of it, if it has
    """

    latest: int
    state: str | None
    has_ended: bool
    expected_at: str | None


class Answer(NamedTuple):
    """What the tab gets.

    :param event: the merged event, or None with a message that gives the reason
    :param tries: tries of which there is an event, and the one that is shown
    :param note: what else its reader should know
    :param links: pages of the lineage backend: ``job``, and ``datasets`` with a ``url`` each
    :param state: and ``has_ended``, ``expected_at``: see :class:`Progress`
    :param expected: without an event, what is expected of the try
    :param last: without an event, the lineage that the try will probably have: ``event`` and
        ``links`` of another one, with its ``run_id``, ``try_number``, ``map_index`` and ``date``
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
    expected_at: str | None
    expected: dict[str, Any] | None = None
    last: dict[str, Any] | None = None


def progress(wanted: TaskIdentity, session: Session) -> Progress | None:
    """Give how far a task instance is, with its latest try; None if there is none."""
    found = _instance(wanted, session)
    if found is None:
        return None
    latest, state = found
    at = expected_at(wanted, session)
    return Progress(latest, state and str(state), state in State.finished, at)


def _instance(wanted: TaskIdentity, session: Session) -> tuple[int, str | None] | None:
    """Give the latest try of a task instance, and its state; None if there is none."""
    found = session.execute(
        select(TaskInstance.try_number, TaskInstance.state).where(
            TaskInstance.dag_id == wanted.dag_id,
            TaskInstance.run_id == wanted.run_id,
            TaskInstance.task_id == wanted.task_id,
            TaskInstance.map_index == wanted.map_index,
        )
    ).one_or_none()
    return None if found is None else (found.try_number, found.state)


def lineage(wanted: TaskIdentity, session: Session) -> Answer | None:
    """Find the lineage of a try; None if there is no such task instance.

    :param wanted: with the try number 0 for the latest
    """
    now = progress(wanted, session)
    if now is None:
        return None
    latest = now.latest
    number = wanted.try_number or latest
    wanted = replace(wanted, try_number=number)
    resolved, notes = _settings()
    archive = stored.BoundedArchive(resolved, ARCHIVE_TIMEOUT_S)
    is_pushed = number == latest and (now.has_ended or now.state == TaskInstanceState.UP_FOR_RETRY)
    found = stored.pushed(wanted, session) if is_pushed else stored.Found()
    tries: list[int] = []
    # A store that is slow or away keeps nobody waiting who does not need it.
    if latest > 1 or not found.is_whole:
        tries = archive.tries(wanted)
        if number in tries and not found.is_whole:
            full = archive.read(wanted)
            found = full if full.event or not found.event else found
    answer = Answer(
        found.event,
        found.message or NOTHING,
        sorted({*tries, latest}),
        number,
        latest,
        "",
        _links(found.event, *_pages(wanted, found.event, resolved, session)) if found.event else {},
        now.state,
        now.has_ended,
        now.expected_at,
    )
    if not found.event and number == latest and now.state not in _WITHOUT_A_TRY:
        answer = _awaiting(answer, wanted, archive, resolved, session)
    return answer._replace(note=" ".join([*notes, *filter(None, [archive.complaint])]))


_WITHOUT_A_TRY = frozenset({TaskInstanceState.SUCCESS, TaskInstanceState.REMOVED})
"""States of which no other try's lineage is shown, because there is none to wait for."""


def _awaiting(
    answer: Answer,
    wanted: TaskIdentity,
    archive: stored.BoundedArchive,
    resolved: Settings,
    session: Session,
) -> Answer:
    """Add what is known of a latest try without an event: what is expected, and the last run."""
    expected = pushed_expectations(wanted, session)
    last = last_lineage(wanted, answer.tries[:-1], archive, session)
    message = answer.message
    if message == NOTHING and not answer.has_ended:
        message = RUNNING
    elif message == NOTHING and (expected or last):
        message = NOT_SUBMITTED
    shown = None
    if last is not None:
        pages = _pages(last.identity, last.event, resolved, session)
        shown = {
            "event": last.event,
            "links": _links(last.event, *pages),
            "run_id": last.identity.run_id,
            "try_number": last.identity.try_number,
            "map_index": last.identity.map_index,
            "date": last.date and last.date.isoformat(),
        }
    return answer._replace(message=message, expected=expected, last=shown)


def _settings() -> tuple[Settings, list[str]]:
    """Resolve the settings as a task without arguments would; a wrong one is a note."""
    try:
        connection = sources.connection(DEFAULT_CONN_ID)
        return resolution.resolve(*sources.for_settings(connection)), []
    except SparkLineageError as error:
        return resolution.resolve(), [str(error)]


def _pages(
    wanted: TaskIdentity, event: dict[str, Any], resolved: Settings, session: Session
) -> tuple[str, Backend]:
    """Find the URL of the pages of the task's lineage backend, and which backend it is.

    The task may have a connection of its own, which only the worker knows. The link to its job that
    it left in Airflow begins with the URL.
    """
    found = stored.xcom_value(wanted, LineageJobLink().xcom_key, session)
    link = found if isinstance(found, str) else ""
    if web_url := datahub_pages.web_url_of(link):
        return web_url, _datahub(wanted, event)
    job = event["job"]
    for backend in BACKENDS.values():
        page = backend.job_page("", str(job.get("namespace")), job["name"])
        if page and link.endswith(page):
            return link.removesuffix(page), backend
    if resolved.backend is BackendName.DATAHUB:
        return resolved.web_url or "", _datahub(wanted, event)
    return resolved.web_url or "", backend_of(str(resolved.backend))


def _datahub(wanted: TaskIdentity, event: dict[str, Any]) -> Backend:
    datasets = (*(event.get("inputs") or ()), *(event.get("outputs") or ()))
    return datahub_pages.Pages(datahub.conversion(), wanted.dag_id, datasets)


def _links(event: dict[str, Any], web_url: str, backend: Backend) -> dict[str, Any]:
    """Link to the pages of the lineage backend that open."""
    if not web_url:
        return {}
    names = {
        DatasetName(d["namespace"], d["name"])
        for d in (*(event.get("inputs") or ()), *(event.get("outputs") or ()))
    }
    held = ((name, backend.identity(name)) for name in sorted(names))
    pages = ((name, backend.dataset_page(web_url, called)) for name, called in held if called)
    job = event["job"]
    return {
        "backend": backend.title,
        "job": backend.job_page(web_url, str(job.get("namespace")), job["name"]),
        "datasets": [{**name._asdict(), "url": url} for name, url in pages if url],
    }


# A try without lineage (yet): its expectations, and the last run.

MAX_LAST_RUNS = 10
MAX_ARCHIVED = 3
"""Runs of which the archive is asked."""


class LastLineage(NamedTuple):
    """The lineage of a try that has succeeded.

    :param identity: of which try it is
    :param date: logical date of its run, if that has one
    """

    event: dict[str, Any]
    identity: TaskIdentity
    date: datetime | None


def pushed_expectations(wanted: TaskIdentity, session: Session) -> dict[str, Any] | None:
    """Give what is expected of a try, as it pushed it when it began; None if it has not (yet)."""
    value = stored.xcom_value(wanted, xcom.EXPECTED_KEY, session)
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
            XComModel.key == xcom.EXPECTED_KEY,
        )
    )
    return None if pushed is None else str(pushed.isoformat())


def last_lineage(
    wanted: TaskIdentity, tries: Sequence[int], archive: stored.BoundedArchive, session: Session
) -> LastLineage | None:
    """Find the lineage that a try will probably have; None if there is none.

    That of an earlier try of the same run, which was cleared; else that of another run, the nearest
    before this one first, or of a mapped sibling.

    :param tries: of which the archive has an event
    """
    for event, identity, date in _last_candidates(wanted, tries, archive, session):
        if event is not None and event.get("eventType") == "COMPLETE":
            return LastLineage(event, identity, date)
    return None


def _last_candidates(
    wanted: TaskIdentity, tries: Sequence[int], archive: stored.BoundedArchive, session: Session
) -> Iterator[tuple[dict[str, Any] | None, TaskIdentity, datetime | None]]:
    earlier = [number for number in tries if number < wanted.try_number]
    for number in sorted(earlier, reverse=True)[:MAX_ARCHIVED]:
        identity = replace(wanted, try_number=number)
        yield archive.read(identity).event, identity, None
    for number, (identity, date) in enumerate(
        stored.instances_around(wanted, session, MAX_LAST_RUNS)
    ):
        yield stored.pushed(identity, session).event, identity, date
        if number < MAX_ARCHIVED:
            yield archive.read(identity).event, identity, date


# Partitions of other runs. The tab asks for them after it has drawn a task's own lineage, and
# draws them next to that. So it may take HISTORY_TIMEOUT_S, and what is not found until then is
# left out.

HISTORY_TIMEOUT_S = 2.0
MAX_OTHER_RUNS = 60
MAX_VALUES = 800
"""Of one dataset on one side; hours of a month are fewer."""

# A part of a date, as far as one sees it without its neighbours: 2024-05-06, 20240506T03, 7.
_OF_A_DATE = re.compile(r"\d[\d:./TZ _+-]{0,30}", re.ASCII)


class PartitionHistory(NamedTuple):
    """What the tab gets.

    :param runs: how many instances of the task it is of
    :param datasets: of each ``side``, ``namespace`` and ``name``, and ``partitions``: values that
        may be parts of dates, by dimension
    :param note: why there may be more than that
    """

    runs: int
    datasets: list[dict[str, Any]]
    note: str


def partition_history(
    wanted: TaskIdentity, settings: Settings, session: Session
) -> PartitionHistory:
    """Find what other runs of a task accessed, next to one of its instances."""
    archive = stored.BoundedArchive(settings, HISTORY_TIMEOUT_S)
    values = _DateValues()
    instances = stored.instances_around(wanted, session, MAX_OTHER_RUNS)
    unread = len(instances)
    in_part = []  # of which the archive may have more; their events would fill the memory
    for instance in instances:
        if archive.is_over:
            break
        found = stored.pushed(instance.identity, session)
        if found.is_whole or not archive.is_there:
            values.add(found.event)
            unread -= 1
        else:
            in_part.append(instance.identity)
    for identity in in_part:
        if archive.is_over:
            break
        values.add(archive.read(identity).event or stored.pushed(identity, session).event)
        unread -= 1
    note = archive.complaint
    if unread and not note:
        within = f"within {HISTORY_TIMEOUT_S:g} s"
        note = f"{unread} of {len(instances)} other runs could not be read {within}."
    return PartitionHistory(values.runs, values.datasets(), note)


class _DateValues:
    """Values of dates, by side and dataset."""

    def __init__(self) -> None:
        self.runs = 0
        self._found: dict[tuple[str, str, str], set[Values]] = {}

    def add(self, event: dict[str, Any] | None) -> None:
        """Add what a run accessed; nothing of one that failed, or of which there is no event."""
        if event is None or event.get("eventType") != "COMPLETE":
            return
        self.runs += 1
        for side, dataset, condition in _conditions(model.read_document(event).event):
            named = (one.dimensions or {} for one in condition.partitions or ())
            if values := set(map(_date_values, named)) - {()}:
                name = (side, dataset.namespace, dataset.name)
                self._found.setdefault(name, set()).update(values)

    def datasets(self) -> list[dict[str, Any]]:
        """Give them as JSON has them."""
        return [
            {
                "side": side,
                "namespace": namespace,
                "name": name,
                "partitions": [dict(v) for v in sorted(values, reverse=True)[:MAX_VALUES]],
            }
            for (side, namespace, name), values in sorted(self._found.items())
        ]


def _conditions(event: model.Event) -> Iterator[tuple[str, model.Dataset, model.Condition]]:
    """Yield which part of a dataset was accessed, of those of which an event has it."""
    for dataset in event.inputs or ():
        subset = dataset.inputFacets and dataset.inputFacets.subset
        if subset and subset.input:
            yield "read", dataset, subset.input
    for dataset in event.outputs or ():
        subset = dataset.outputFacets and dataset.outputFacets.subset
        if subset and subset.output:
            yield "written", dataset, subset.output


def _date_values(dimensions: dict[str, model.Value]) -> Values:
    return tuple(
        (label, value)
        for label, value in dimensions.items()
        if isinstance(value, str) and _OF_A_DATE.fullmatch(value)
    )


def history(wanted: TaskIdentity, session: Session) -> PartitionHistory | None:
    """Find what other runs of a task accessed; None if there is no such task instance."""
    if _instance(wanted, session) is None:
        return None
    return partition_history(wanted, _settings()[0], session)
