"""The tab's answers: a try's lineage, its state, and the partitions of the task's other runs.

They are made from Airflow's database and the archive. :func:`lineage` gives the lineage of a try;
if there is none (yet), it gives the expectations of the try, and the lineage of the last run.
:func:`progress` gives the state of the task instance. :func:`history` gives the dates in the
partitions that the task's other runs read and wrote.
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
from airflow_provider_sparklineage.event.backends import BACKENDS
from airflow_provider_sparklineage.event.stored import has_datasets_of_others
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.links import datahub_pages
from airflow_provider_sparklineage.links.lineage import LineageJobLink, pages_of
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import SparkLineageError
from airflow_provider_sparklineage.model.terms import Witness
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
DID_NOTHING = "Below is what was expected of this try, and the last run that succeeded."
ANOTHER_FOLLOWS = "This is the lineage of try {number}, which has ended; another try will follow."
WAITS = "Try {number} is {state} and has not begun; below is the lineage of try {before}."


class Progress(NamedTuple):
    """The state of a task instance.

    :param latest: number of its latest try
    :param state: Airflow's name of the state; None before it is scheduled
    :param has_ended: whether the state is final, unless the task is cleared
    :param expected_at: ISO 8601 time at which it pushed its expectations; None if it has not
    """

    latest: int
    state: str | None
    has_ended: bool
    expected_at: str | None


class Answer(NamedTuple):
    """The tab's answer on the lineage of a try.

    :param event: the merged event; None if there is none
    :param message: reason why there is no event; if there is one, a sentence on the state of the
        try that the event does not tell, or nothing
    :param tries: numbers of the tries with an event, and of the latest try
    :param try_number: number of the try that is shown
    :param latest: number of the latest try
    :param note: further sentences for the reader; empty if there are none
    :param links: pages of the lineage backend: ``job``, and ``datasets`` with a ``url`` each
    :param state: see :class:`Progress`, also for ``has_ended`` and ``expected_at``
    :param expected: the expectations of the try, if it has no event, or failed before it did
        anything
    :param last: in the same cases, the lineage that the try will probably have, or would have had:
        ``event`` and ``links`` of another try, with its ``run_id``, ``try_number`` and
        ``map_index``, and ``date``: the logical date of its run in ISO 8601, or None
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
    """Give the state of a task instance; None if there is no such instance."""
    instance = _instance(wanted, session)
    if instance is None:
        return None
    latest, state = instance
    at = expected_at(wanted, session)
    return Progress(latest, state and str(state), state in State.finished, at)


def _instance(wanted: TaskIdentity, session: Session) -> tuple[int, str | None] | None:
    """Give the number of a task instance's latest try, and the instance's state.

    :return: None if there is no such instance
    """
    row = session.execute(
        select(TaskInstance.try_number, TaskInstance.state).where(stored.is_of(wanted))
    ).one_or_none()
    return None if row is None else (row.try_number, row.state)


def lineage(wanted: TaskIdentity, session: Session) -> Answer | None:
    """Find the lineage of a try; None if there is no such task instance.

    :param wanted: the try; its number is 0 for the latest try
    """
    now = progress(wanted, session)
    if now is None:
        return None
    latest = now.latest
    number = wanted.try_number or latest
    wanted = replace(wanted, try_number=number)
    resolved, notes = _settings()
    archive = stored.BoundedArchive(resolved, ARCHIVE_TIMEOUT_S)
    is_pushed = number == latest and (now.has_ended or now.state in _BEFORE_ANOTHER_TRY)
    stored_event = stored.pushed(wanted, session) if is_pushed else stored.StoredEvent()
    tries: list[int] = []
    # The archive is asked only if its answer is needed, because its store may be slow or away.
    if latest > 1 or not stored_event.is_whole:
        tries = archive.tries(wanted)
        if number in tries and not stored_event.is_whole:
            full = archive.read(wanted)
            stored_event = full if full.event or not stored_event.event else stored_event
    answer = Answer(
        stored_event.event,
        _message(stored_event, now, number),
        sorted({*tries, latest}),
        number,
        latest,
        "",
        _links(wanted, stored_event.event, resolved, session) if stored_event.event else {},
        now.state,
        now.has_ended,
        now.expected_at,
    )
    is_without = not stored_event.event or _did_nothing(stored_event.event)
    if is_without and number == latest and now.state not in _WITHOUT_A_TRY:
        answer = _awaiting(answer, wanted, archive, resolved, session)
    return answer._replace(note=" ".join([*notes, *filter(None, [archive.complaint])]))


_BEFORE_ANOTHER_TRY = frozenset({TaskInstanceState.UP_FOR_RETRY, None})
"""States in which the latest try has ended, and another one follows: None after a clear."""
_WAITING = frozenset({TaskInstanceState.SCHEDULED, TaskInstanceState.QUEUED})
"""States in which the latest try has a number and has not begun, so XComs are of the try before."""
_WITHOUT_A_TRY = frozenset({TaskInstanceState.SUCCESS, TaskInstanceState.REMOVED})
"""States in which no other try's lineage is shown, because this try will not get one."""


def _awaiting(
    answer: Answer,
    wanted: TaskIdentity,
    archive: stored.BoundedArchive,
    resolved: Settings,
    session: Session,
) -> Answer:
    """Add a try's expectations and the last run's lineage to the answer on the try.

    A try that is scheduled or queued has the lineage of the try before it, even if that failed.

    :param answer: the answer on a try that has no event, or failed before it did anything
    :param wanted: that try
    :param resolved: settings that give the URLs of the backend's pages
    """
    expected = pushed_expectations(wanted, session)
    earlier = answer.tries[:-1]
    message = answer.message
    # After a deferral a try that has begun is scheduled again.
    waits = answer.state in _WAITING and expected is None
    if waits and (before := _try_before(wanted, earlier, archive, session)):
        event, identity = before
        number, state = wanted.try_number, answer.state
        return answer._replace(
            message=WAITS.format(number=number, state=state, before=identity.try_number),
            last=_last(event, identity, None, resolved, session),
        )
    last = last_lineage(wanted, earlier, archive, resolved, session)
    if answer.event and (expected or last):
        message = " ".join(filter(None, [DID_NOTHING, message]))
    elif message == NOTHING and answer.state == TaskInstanceState.UP_FOR_RETRY:
        message = NOT_SUBMITTED
    elif message == NOTHING and not answer.has_ended:
        message = RUNNING
    elif message == NOTHING and (expected or last):
        message = NOT_SUBMITTED
    return answer._replace(message=message, expected=expected, last=last)


def _message(found: stored.StoredEvent, now: Progress, number: int) -> str:
    if found.event is None:
        return found.message or NOTHING
    follows = number == now.latest and now.state in _BEFORE_ANOTHER_TRY
    return ANOTHER_FOLLOWS.format(number=number) if follows else ""


def _did_nothing(event: dict[str, Any]) -> bool:
    """Whether a try failed, and neither listener nor observer saw it read or write anything.

    The datasets of its event, if any, are then declared, or those of the last successful run.
    """
    if event.get("eventType") != "FAIL":
        return False
    entries = model.read_document(event).capture.datasets or ()
    if any(one.witness not in (None, Witness.DECLARED) for one in entries):
        return False
    # Of a large event the entries may be left out; then only these degradations tell.
    return bool(entries) or not _datasets(event) or has_datasets_of_others(event)


def _try_before(
    wanted: TaskIdentity,
    tries: Sequence[int],
    archive: stored.BoundedArchive,
    session: Session,
) -> tuple[dict[str, Any], TaskIdentity] | None:
    """Find the lineage of the nearest try before one that has not begun; None if there is none.

    :param wanted: the try that has not begun
    :param tries: tries of this task instance that have an event in the archive
    """
    value = stored.xcom_value(wanted, xcom.EXPECTED_KEY, session)
    number = value.get("try_number") if isinstance(value, dict) else None
    if not isinstance(number, int) or not 0 < number < wanted.try_number:
        number = wanted.try_number - 1
    found = stored.pushed(wanted, session).event if number else None
    if found is not None and not _did_nothing(found):
        return found, replace(wanted, try_number=number)
    for earlier in sorted(tries, reverse=True)[:MAX_ARCHIVED]:
        identity = replace(wanted, try_number=earlier)
        found = archive.read(identity).event
        if found is not None and not _did_nothing(found):
            return found, identity
    return None


def _settings() -> tuple[Settings, list[str]]:
    """Resolve the settings as a task without arguments does.

    :return: the settings, and notes; if a setting is wrong, the defaults and a note on it
    """
    try:
        connection = sources.connection(DEFAULT_CONN_ID)
        return resolution.resolve(*sources.for_settings(connection)), []
    except SparkLineageError as error:
        return resolution.resolve(), [str(error)]


def _pages(
    wanted: TaskIdentity, event: dict[str, Any], resolved: Settings, session: Session
) -> tuple[str, Backend]:
    """Find the task's lineage backend, and the URL with which its pages begin.

    The task may have a connection of its own, which only the worker knows. But the worker has left
    the link to the task's job in Airflow, and this link begins with the URL.

    :param wanted: the try
    :param event: the event of the try as JSON
    :param resolved: used if there is no such link
    :return: the URL, empty if it is not known, and the backend
    """
    value = stored.xcom_value(wanted, LineageJobLink().xcom_key, session)
    link = value if isinstance(value, str) else ""
    if web_url := datahub_pages.web_url_of(link):
        return web_url, pages_of(BackendName.DATAHUB, wanted.dag_id, _datasets(event))
    job = event["job"]
    for backend in BACKENDS.values():
        page = backend.job_page("", str(job.get("namespace")), job["name"])
        if page and link.endswith(page):
            return link.removesuffix(page), backend
    backend = pages_of(resolved.backend, wanted.dag_id, _datasets(event))
    return resolved.web_url or "", backend


def _datasets(event: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return (*(event.get("inputs") or ()), *(event.get("outputs") or ()))


def _links(
    wanted: TaskIdentity, event: dict[str, Any], resolved: Settings, session: Session
) -> dict[str, Any]:
    """Give the URLs of the lineage backend's pages on the job and the datasets of an event.

    :param wanted: the try of the event
    :param event: the event as JSON
    :param resolved: used if the try's own link to the backend is not known
    :return: as ``links`` of :class:`Answer`, the name of the ``backend``, and what its pages
        ``show``, empty if that is all runs. Only pages that can be opened have a URL.
        {} if the URL with which the backend's pages begin is not known
    """
    web_url, backend = _pages(wanted, event, resolved, session)
    if not web_url:
        return {}
    names = sorted({DatasetName(d["namespace"], d["name"]) for d in _datasets(event)})
    in_backend = ((name, backend.identity(name)) for name in names)
    urls = ((name, backend.dataset_page(web_url, called)) for name, called in in_backend if called)
    job = event["job"]
    return {
        "backend": backend.title,
        "show": backend.pages_show,
        "job": backend.job_page(web_url, str(job.get("namespace")), job["name"]),
        "datasets": [{**name._asdict(), "url": url} for name, url in urls if url],
    }


# For a try without lineage (yet): its expectations, and the last run.

MAX_LAST_RUNS = 10
MAX_ARCHIVED = 3
"""The most runs for which the archive is asked."""


def pushed_expectations(wanted: TaskIdentity, session: Session) -> dict[str, Any] | None:
    """Give the expectations that a try pushed when it began; None if it has not pushed any.

    :return: the content of the XCom, as :func:`xcom.expected_document` made it
    """
    value = stored.xcom_value(wanted, xcom.EXPECTED_KEY, session)
    is_of_try = isinstance(value, dict) and value.get("try_number") == wanted.try_number
    return value if is_of_try else None


def expected_at(wanted: TaskIdentity, session: Session) -> str | None:
    """Give the ISO 8601 time at which a task instance pushed its expectations; None if never."""
    pushed = session.scalar(
        select(XComModel.timestamp).where(
            stored.is_of(wanted, XComModel), XComModel.key == xcom.EXPECTED_KEY
        )
    )
    return None if pushed is None else str(pushed.isoformat())


def last_lineage(
    wanted: TaskIdentity,
    tries: Sequence[int],
    archive: stored.BoundedArchive,
    resolved: Settings,
    session: Session,
) -> dict[str, Any] | None:
    """Find the lineage that a try will probably have; None if no other try has lineage.

    It is the lineage of an earlier try of this task instance, if that try succeeded and was cleared
    later. Else it is the lineage of another run: of the latest run before this one, or if no run
    before it has lineage, of the next run after it. Else it is the lineage of another map index in
    the same run.

    :param wanted: the try that has no lineage
    :param tries: tries of this task instance that have an event in the archive
    :param resolved: settings that give the URLs of the backend's pages
    :return: as ``last`` of :class:`Answer`; ``date`` is None for a try of this task instance
    """
    for event, identity, date in _last_candidates(wanted, tries, archive, session):
        if event is not None and event.get("eventType") == "COMPLETE":
            return _last(event, identity, date, resolved, session)
    return None


def _last(
    event: dict[str, Any],
    identity: TaskIdentity,
    date: datetime | None,
    resolved: Settings,
    session: Session,
) -> dict[str, Any]:
    return {
        "event": event,
        "links": _links(identity, event, resolved, session),
        "run_id": identity.run_id,
        "try_number": identity.try_number,
        "map_index": identity.map_index,
        "date": date and date.isoformat(),
    }


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


# Partitions of other runs. The tab asks for them after it has drawn a task's own lineage, and draws
# them next to it. So the search may take HISTORY_TIMEOUT_S, and leaves out the runs that it has not
# read by then.

HISTORY_TIMEOUT_S = 2.0
MAX_OTHER_RUNS = 60
MAX_VALUES = 800
"""The most partitions of one input or output; the hours of a month are fewer."""

# A text that may be a part of a date, judged without other dimensions: 2024-05-06, 20240506T03, 7.
_OF_A_DATE = re.compile(r"\d[\d:./TZ _+-]{0,30}", re.ASCII)


class PartitionHistory(NamedTuple):
    """The tab's answer on the partitions of other runs.

    :param runs: number of the task's other instances that were read and have succeeded
    :param datasets: for each dataset ``side`` (``read`` or ``written``), ``namespace`` and
        ``name``, and ``partitions``: for each partition its values by dimension, of which only
        those are listed that may be parts of dates
    :param note: reason why some runs were not read, or the number of runs of which some partitions
        are not known; empty if the partitions of all runs are known
    """

    runs: int
    datasets: list[dict[str, Any]]
    note: str


class _DateValues:
    """Partition values that may be parts of dates, for each input and each output."""

    def __init__(self) -> None:
        self.runs = 0
        self.unknown = 0  # runs that accessed partitions of which nobody knows which
        self._found: dict[tuple[str, str, str], set[Values]] = {}

    def add(self, event: dict[str, Any] | None) -> None:
        """Add the partitions that a run accessed; nothing if it has no event, or has failed."""
        if event is None or event.get("eventType") != "COMPLETE":
            return
        self.runs += 1
        read = model.read_document(event)
        self.unknown += any(one.accessed == "unknown" for one in read.capture.datasets or ())
        for side, dataset, condition in _conditions(read):
            named = (one.dimensions or {} for one in condition.partitions or ())
            if values := set(map(_date_values, named)) - {()}:
                name = (side, dataset.namespace, dataset.name)
                self._found.setdefault(name, set()).update(values)

    def datasets(self) -> list[dict[str, Any]]:
        """Give the values as JSON, at most ``MAX_VALUES`` for each input and for each output."""
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
    """Yield the datasets of an event that have a facet ``subset``, which is a condition.

    :return: ``read`` or ``written``, the dataset, and the condition
    """
    for side, datasets in (("read", event.inputs), ("written", event.outputs)):
        for dataset in datasets or ():
            subset = dataset.of_side.subset or model.Subset()
            if condition := subset.input or subset.output:
                yield side, dataset, condition


def _date_values(dimensions: dict[str, model.Value]) -> Values:
    return tuple(
        (label, value)
        for label, value in dimensions.items()
        if isinstance(value, str) and _OF_A_DATE.fullmatch(value)
    )


def history(wanted: TaskIdentity, session: Session) -> PartitionHistory | None:
    """Find the partitions that other runs accessed; None if there is no such task instance.

    :param wanted: the task instance; its own partitions are not in the answer
    """
    if _instance(wanted, session) is None:
        return None
    archive = stored.BoundedArchive(_settings()[0], HISTORY_TIMEOUT_S)
    values = _DateValues()
    instances = stored.instances_around(wanted, session, MAX_OTHER_RUNS)
    unread = len(instances)
    # Instances for which the archive may have a more complete event. Only their names are kept,
    # because their events would fill the memory.
    in_part = []
    for identity, _ in instances:
        if archive.is_over:
            break
        pushed = stored.pushed(identity, session)
        if pushed.is_whole or not archive.is_there:
            values.add(pushed.event)
            unread -= 1
        else:
            in_part.append(identity)
    for identity in in_part:
        if archive.is_over:
            break
        values.add(archive.read(identity).event or stored.pushed(identity, session).event)
        unread -= 1
    note = archive.complaint
    if unread and not note:
        within = f"within {HISTORY_TIMEOUT_S:g} s"
        note = f"{unread} of {len(instances)} other runs could not be read {within}."
    if values.unknown and not note:
        note = f"Of {values.unknown} of {values.runs} other runs some partitions are not known."
    return PartitionHistory(values.runs, values.datasets(), note)
