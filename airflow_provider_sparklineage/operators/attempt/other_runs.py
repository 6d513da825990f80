"""Find the lineage of other runs: of earlier runs of the task, and of the tasks upstream of it.

START repeats the datasets of the task's last successful run, so that the backend goes on to show
them. The datasets are read from that run's XCom or from the archive; no backend is asked. If there
is no such run, other lineage stands in for it, so that the job's graph in the backend does not
become empty: the lineage of another map index, as all map indexes are one job in a backend, or the
lineage of a failed run.

The job waits for this search. Most look-ups are calls to Airflow's API server, so the look-ups that
usually find an event come first, and the first usable event ends the search. An event that cannot
be read counts as not found.

Airflow logs an error when one XCom is requested that does not exist. So an XCom is requested only
of runs that should have one, or in the form of a list, which may be empty.
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.event import stored, xcom
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import DocumentError
from airflow_provider_sparklineage.model.last_run import NO_LAST_RUN, LastRun
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.event.archive import Archive
    from airflow_provider_sparklineage.event.document import Event


log = logger(__name__)

PREVIOUS_RUN_TIMEOUT_S = 3.0
"""Time limit for all questions about earlier runs; the job waits for them."""
ARCHIVE_S = 1.0
"""The part of :data:`PREVIOUS_RUN_TIMEOUT_S` that the archive may take."""

_LATEST = datetime(9999, 1, 1, tzinfo=UTC)
_RUNS = 3
"""Most earlier runs, or tries, that are read; the search ends at the first that has datasets."""


class EarlierLineage(NamedTuple):
    """The lineage of an earlier run, as it is known when a try begins.

    :param last: the datasets that the last successful run read and wrote
    :param stand_in: the datasets that are shown in place of ``last`` if there is no such run
    :param event: the event, from XCom or archive, from which ``last`` or ``stand_in`` was made;
        None if the run of the event failed, or if no event was found
    """

    last: LastRun = NO_LAST_RUN
    stand_in: LastRun = NO_LAST_RUN
    event: Event | None = None

    def in_form_of(self, event: Event) -> EarlierLineage:
        """Give the same lineage, made from another form of its event.

        :param event: the event in that form, e.g. adapted to a backend
        """
        if event is self.event:
            return self
        run = stored.last_run(event)
        last, stand_in = (run if of.has_datasets else of for of in (self.last, self.stand_in))
        return EarlierLineage(last, stand_in, event)


NO_EARLIER_LINEAGE = EarlierLineage()


def last_known(ti: Any, archive: Archive | None = None, *, is_dated: bool) -> EarlierLineage:
    """Find the datasets that the last successful run of a task read and wrote; never raises.

    The nearest run before this run is read first, by logical date, or by time if runs have no
    logical date. A backfill of dates before all other runs has no earlier run, so it gets the
    latest run. A run that read and wrote nothing is passed over.

    :param ti: the task instance that runs
    :param archive: the archive of merged events; None to read only XComs
    :param is_dated: whether its run has a logical date
    """
    failed = NO_LAST_RUN
    questions = _Questions(ti, archive, is_dated=is_dated)
    try:
        for is_of_this, events in ((True, questions.of_this()), (False, questions.of_others())):
            for event in events:
                found = stored.last_run(event)
                if not found.has_datasets:
                    continue
                if event.get("eventType") == "COMPLETE":
                    if is_of_this:
                        return EarlierLineage(last=found, event=event)
                    return EarlierLineage(stand_in=found, event=event)
                if not failed.has_datasets:
                    failed = found
    except Exception:
        log.debug("The lineage of the last successful run was not found.", exc_info=True)
    return EarlierLineage(stand_in=failed)


def identity_of(ti: Any) -> TaskIdentity:
    """Give the try of a task instance of Airflow."""
    map_index = -1 if ti.map_index is None else ti.map_index
    return TaskIdentity(ti.dag_id, ti.task_id, ti.run_id, ti.try_number, map_index)


class _Questions:
    """Yields the events of earlier runs and tries of a task, from XComs and from the archive.

    Each event is read only when the caller's loop comes to it.
    """

    def __init__(self, ti: Any, archive: Archive | None, *, is_dated: bool) -> None:
        self._ti, self._archive, self._is_dated = ti, archive, is_dated
        self._map_index = -1 if ti.map_index is None else ti.map_index
        self._until = time.monotonic() + PREVIOUS_RUN_TIMEOUT_S
        self._archive_s = ARCHIVE_S

    def of_this(self) -> Iterator[Event]:
        """Yield the earlier events of this map index, or of the task if it is not mapped."""
        if not self._is_dated:  # Airflow orders the XComs of runs without a date, not the runs
            yield from self._latest_of_runs()
        for run in self._runs():
            yield from self._of(run)
        if getattr(self._ti, "try_number", 1) > 1:
            # The try before failed or was cleared, and Airflow has deleted its XCom.
            yield from self._earlier_tries()

    def of_others(self) -> Iterator[Event]:
        """Yield events of other map indexes, then those of this map index's last failed run."""
        if self._map_index >= 0:
            yield from self._answered(self._of_highest_index)
        for map_index in (0, -1):  # the task may have become mapped, or have stopped being mapped
            if map_index != self._map_index:
                run = self._previous(_LATEST if self._is_dated else None, map_index)
                yield from self._of(run) if run else ()
        if self._is_dated:
            run = self._previous(None, self._map_index, "failed")
            yield from self._of(run) if run else ()

    # --- Airflow ----------------------------------------------------------------------------------

    def _runs(self) -> Iterator[Any]:
        """Yield successful runs: those before this run, the nearest first, then the latest of all.

        The latest of all may be after this run, for example in a backfill.

        :return: the task instance of each run, as Airflow's ``get_previous_ti()`` gives it
        """
        asked = {self._ti.run_id}
        before = None  # this run
        for _ in range(_RUNS):
            run = self._previous(before, self._map_index)
            if run is None or run.run_id in asked:
                break
            asked.add(run.run_id)
            yield run
            before = run.logical_date
            if before is None:
                break
        run = self._previous(_LATEST, self._map_index)
        if run is not None and run.run_id not in asked:
            yield run

    def _previous(self, before: datetime | None, map_index: int, state: str = "success") -> Any:
        if self._left <= 0:
            return None
        return self._ti.get_previous_ti(state=state, logical_date=before, map_index=map_index)

    def _of(self, run: Any) -> Iterator[Event]:
        """Yield the events of a run, the fullest first.

        If the run has no event in XCom, or one that may lack detail (:func:`.is_preliminary`), the
        event in the archive comes first, and then that in XCom. Otherwise the archive is not read.
        An event in XCom may lack schemas, to stay small. START repeats the datasets of the event
        that is found; without their schemas, the backend would make another version of an output.

        :param run: a result of :meth:`_runs`
        """
        pulled = list(self._pulled(run.map_index, run_id=run.run_id))
        if not pulled or stored.is_preliminary(pulled[0]):
            yield from self._archived(run.run_id, run.map_index, run.try_number)
        yield from pulled

    def _pulled(self, map_index: int, run_id: str) -> Iterator[Event]:
        """Yield the XCom of a map index in another run, or of the task if it was not mapped."""
        of_run = {"task_ids": self._ti.task_id, "key": xcom.KEY, "run_id": run_id}
        if map_index >= 0:  # without it, Airflow lists the XComs of all map indexes
            of_run["map_indexes"] = map_index
        return self._answered(lambda: xcom.decode(self._ti.xcom_pull(**of_run)))

    def _latest_of_runs(self) -> Iterator[Event]:
        """Yield the XCom of this map index that was pushed last; nothing in the DAG's first run."""
        ti = self._ti
        of_task = {"task_ids": ti.task_id, "key": xcom.KEY, "map_indexes": self._map_index}

        def pull() -> Event:
            is_first = ti.get_dr_count(ti.dag_id) < 2
            return xcom.decode(
                None if is_first else ti.xcom_pull(**of_task, include_prior_dates=True)
            )

        return self._answered(pull)

    def _of_highest_index(self) -> Event:
        """Pull, in one call, this run's XCom with the highest map index.

        Airflow does not report which index ended last, and there may be too many XComs to pull all.

        :raise DocumentError: if there is no such XCom
        """
        from airflow.sdk.definitions.xcom_arg import PlainXComArg
        from airflow.sdk.execution_time.lazy_sequence import LazyXComSequence

        of_task = PlainXComArg(self._ti.task, xcom.KEY)
        every: LazyXComSequence[object] = LazyXComSequence(xcom_arg=of_task, ti=self._ti)
        return xcom.decode(next(iter(every[-1:]), None))

    # --- the archive ------------------------------------------------------------------------------

    def _earlier_tries(self) -> Iterator[Event]:
        """Yield the archived events of earlier tries of this run, the latest try first."""
        ti = self._ti
        for number in range(ti.try_number - 1, max(0, ti.try_number - 1 - _RUNS), -1):
            yield from self._archived(ti.run_id, self._map_index, number)

    def _archived(self, run_id: str, map_index: int, number: int) -> Iterator[Event]:
        timeout_s = min(self._archive_s, self._left)
        if self._archive is None or timeout_s <= 0:
            return
        task = TaskIdentity(self._ti.dag_id, self._ti.task_id, run_id, number, map_index)
        archive = self._archive.within(timeout_s)
        begun = time.monotonic()
        found = list(self._answered(lambda: archive.read(task)))
        self._archive_s -= time.monotonic() - begun
        yield from found

    # --- time -------------------------------------------------------------------------------------

    @property
    def _left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def _answered(self, ask: Callable[[], Event]) -> Iterator[Event]:
        """Yield the event that ``ask`` gives; nothing if no time is left, or if ``ask`` raises."""
        if self._left <= 0:
            return
        try:
            answer = ask()
        except Exception as error:
            log.debug("No lineage of an earlier run: %s", error)
        else:
            yield answer


# A backend that keeps one description of a table removes the description that the writer sent when
# the event of a reader has no description. So a task repeats the descriptions of the datasets that
# the tasks before it wrote.


MAX_UPSTREAM_TASKS = 5
"""Most tasks whose events are read; each takes a call to Airflow, for which the job waits."""
UPSTREAM_TIMEOUT_S = 1.0
"""Seconds after which no further task's event is read."""


def upstream_events(ti: Any, task: Any) -> tuple[Event, ...]:
    """Give the events of a task's upstream tasks, the direct ones first; never raises.

    :param ti: the task instance that runs
    :param task: the operator of the task; events of upstream tasks that are mapped, or in a mapped
        group, are not read
    """
    deadline = time.monotonic() + UPSTREAM_TIMEOUT_S
    found = []
    try:
        for task_id in _tasks_before(task)[:MAX_UPSTREAM_TASKS]:
            if time.monotonic() > deadline:
                break
            value = ti.xcom_pull(task_ids=task_id, key=xcom.KEY)
            with suppress(DocumentError):  # there is no event, or one of another version
                found.append(xcom.decode(value))
    except Exception:
        log.debug("The lineage of the tasks before this one was not found.", exc_info=True)
    return tuple(found)


def _tasks_before(task: Any) -> list[str]:
    direct = task.upstream_task_ids
    relatives = task.get_flat_relatives(upstream=True)
    # By an attribute and not by isinstance(): the module of that class imports this one.
    every: set[str] = {
        each.task_id
        for each in relatives
        if hasattr(type(each), "lineage_try") and each.get_closest_mapped_task_group() is None
    }
    return sorted(every, key=lambda task_id: (task_id not in direct, task_id))
