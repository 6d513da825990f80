"""The health of all datasets: how many of their partitions need a person, and what to run again.

A partition is counted if the user may see the job that wrote it last, or that should have written
it. The history is asked once for each of its builds: what was removed or mismatched, or failed to
be written, at once; what is stale when the first request waits for it; and what was never written
in portions, because each dataset has to be looked at by itself (:class:`Due`).
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.queries.answers import of_tables
from airflow_provider_sparklineage.history.queries.sql import REMOVING
from airflow_provider_sparklineage.lineage.partitions.comparison import MISMATCHES
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import LimitError
from airflow_provider_sparklineage.plugins.history.answers import state_of_failed
from airflow_provider_sparklineage.plugins.history.opened import cache_of, cell_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.answers import Stale
    from airflow_provider_sparklineage.history.queries.gaps import Gap
    from airflow_provider_sparklineage.plugins.history.catalog import Catalog
    from airflow_provider_sparklineage.plugins.history.opened import OpenedHistory
    from airflow_provider_sparklineage.plugins.history.permissions import Visibility

MAX_TROUBLED = 1000
"""The most datasets in an answer; the answer has only the number of the others."""

# The state of a partition is that of its last write.
_MISMATCHED = f"""
WITH failed AS (
    SELECT run_id, ended, dag_id, job FROM runs WHERE list_contains($statuses, check_status)
), found AS (
    SELECT c.namespace, c.name, c.cell, c.valid_from, f.dag_id, f.job
    FROM changes_by_run AS c JOIN failed AS f ON f.ended = c.valid_from AND f.run_id = c.run_id
    WHERE c.valid_to IS NULL AND c.mode NOT IN {REMOVING}
), later AS (
    SELECT f.namespace, f.name, f.cell, f.valid_from FROM found AS f
    JOIN changes AS c ON c.namespace = f.namespace AND c.name = f.name
        AND c.cell IS NOT DISTINCT FROM f.cell AND c.valid_from > f.valid_from
)
SELECT DISTINCT f.namespace, f.name, f.cell, f.dag_id, f.job, f.valid_from AS at
FROM found AS f ANTI JOIN later AS l ON l.namespace = f.namespace AND l.name = f.name
    AND l.cell IS NOT DISTINCT FROM f.cell AND l.valid_from = f.valid_from
"""  # noqa: S608  (constants of ours)

# Partitions that are older than all that is there were cleaned up, and so were tables of which
# nothing is there: nobody misses these.
_REMOVED = f"""
WITH removing AS (
    SELECT DISTINCT namespace, name FROM changes WHERE mode IN {REMOVING} OR extent = 'range'
), last AS (
    SELECT c.namespace, c.name, c.cell, max_by(c.run_id, c.valid_from) AS run_id,
        max(c.valid_from) AS written, max(c.valid_to) AS removed,
        bool_or(c.valid_to IS NULL) AS is_there
    FROM changes AS c SEMI JOIN removing AS r ON r.namespace = c.namespace AND r.name = c.name
    GROUP BY c.namespace, c.name, c.cell
), there AS (
    SELECT namespace, name, min(cell) AS oldest, max(written) FILTER (cell IS NULL) AS whole
    FROM last WHERE is_there GROUP BY namespace, name
), missing AS (
    SELECT l.* FROM last AS l JOIN there AS t ON t.namespace = l.namespace AND t.name = l.name
    WHERE NOT l.is_there AND l.cell > t.oldest AND (t.whole IS NULL OR t.whole < l.written)
)
SELECT m.namespace, m.name, m.cell, r.dag_id, r.job, m.removed AS at
FROM missing AS m LEFT JOIN runs AS r ON r.ended = m.written AND r.run_id = m.run_id
"""  # noqa: S608  (constants of ours)


class _Trouble(NamedTuple):
    """A partition that needs a person.

    :param state: the letter of its state, as the list of a dataset's partitions has it
    :param job: the job that wrote it last, or should have written it; None if it is not known
    :param at: when it became so, in UTC without a zone; None if that is not known
    """

    dataset: DatasetName
    cell: str | None
    state: str
    dag_id: str | None
    job: str | None
    at: datetime | None


class _Count(NamedTuple):
    """How many partitions of a dataset that one job wrote are in a state, and since when."""

    dataset: DatasetName
    state: str
    dag_id: str | None
    job: str | None
    partitions: int
    newest: datetime | None


def health(
    catalog: Catalog, history: OpenedHistory, visibility: Visibility, *, is_quick: bool = False
) -> dict[str, Any]:
    """Count the partitions that need a person, of all datasets that the user may see.

    :param is_quick: whether to leave out stale and never written partitions, which may take seconds
    :return: ``totals``, the partitions by the letter of their state; ``datasets``, each with
        ``namespace``, ``name``, ``short``, ``counts`` and ``newest`` (a time in ISO 8601), the
        newest trouble first; ``more``, the number of datasets left out; ``fine``, the number of
        datasets without trouble; ``is_stale_known``, False if too much is stale to be counted; and
        ``looked``: in how many datasets never written partitions were looked for
    """
    due = _due_of(history, catalog)
    if not is_quick and cache_of(history).known(_STALE) is not None:
        due.advance(history)
    stale = None if is_quick else _stale_of(history, catalog)
    unwritten = due.counts(_failed_of(history))
    troubles = _by_dataset(_counts(history, stale), unwritten, visibility)
    names = catalog.names(visibility)
    listed = [
        {
            **dataset._asdict(),
            "short": names[dataset],
            "counts": dict(counts),
            "newest": f"{newest.isoformat()}Z" if newest else None,
        }
        for dataset, (counts, newest) in troubles.items()
        if dataset in names  # nobody knows a job of some troubles, so who may see these sees all
    ]
    listed.sort(key=lambda one: (one["newest"] or "", one["namespace"], one["name"]), reverse=True)
    totals: Counter[str] = Counter()
    for one in listed:
        totals.update(one["counts"])
    return {
        "totals": dict(totals),
        "datasets": listed[:MAX_TROUBLED],
        "more": max(0, len(listed) - MAX_TROUBLED),
        "fine": len(names) - len(listed),
        "is_stale_known": is_quick or stale is not None,
        "looked": due.looked(),
    }


def known_troubles(
    catalog: Catalog, history: OpenedHistory, visibility: Visibility
) -> dict[DatasetName, Counter[str]]:
    """Give the counts by state of each dataset with trouble, as far as they are worked out.

    Nothing is worked out for it, so that the list of datasets is there at once.
    """
    cache = cache_of(history)
    counts = cache.known((_COUNTS, True)) or cache.known((_COUNTS, False)) or []
    # Failed writes are known if troubles are, among which they are counted.
    unwritten = _due_of(history, catalog).counts(_failed_of(history) if counts else ())
    troubles = _by_dataset(counts, unwritten, visibility)
    return {dataset: counts for dataset, (counts, _) in troubles.items()}


def gaps_of_all(history: OpenedHistory, catalog: Catalog) -> list[Gap]:
    """List the never written partitions of all datasets in which they were looked for."""
    return _due_of(history, catalog).gaps()


def _by_dataset(
    first: Iterable[_Count], second: Iterable[_Count], visibility: Visibility
) -> dict[DatasetName, tuple[Counter[str], datetime | None]]:
    counted: dict[DatasetName, Counter[str]] = defaultdict(Counter)
    newest: dict[DatasetName, datetime] = {}
    for one in (*first, *second):
        if visibility.sees({"dag_id": one.dag_id, "job": one.job}):
            counted[one.dataset][one.state] += one.partitions
            if one.newest:
                newest[one.dataset] = max(newest.get(one.dataset, one.newest), one.newest)
    return {dataset: (counts, newest.get(dataset)) for dataset, counts in counted.items()}


def _counts(history: OpenedHistory, stale: list[_Trouble] | None) -> list[_Count]:
    """Count the partitions that are stale, or in trouble otherwise: a stale one is only that."""
    cache = cache_of(history)

    def count() -> list[_Count]:
        written = cache.answer("written troubles", lambda: _written_troubles(history))
        is_stale = {(one.dataset, one.cell) for one in stale or ()}
        others = (one for one in written if (one.dataset, one.cell) not in is_stale)
        return _counted([*(stale or ()), *others])

    counts: list[_Count] = cache.answer((_COUNTS, stale is not None), count)
    return counts


def _written_troubles(history: OpenedHistory) -> list[_Trouble]:
    queries = {
        "m": history.rows(_MISMATCHED, {"statuses": sorted(MISMATCHES)}),
        "x": history.rows(_REMOVED),
    }
    troubles = [
        _Trouble(
            DatasetName(row["namespace"], row["name"]),
            row["cell"],
            state,
            row["dag_id"],
            row["job"],
            row["at"],
        )
        for state, rows in queries.items()
        for row in rows
    ]
    failed = _failed_of(history)
    others = (one for one in troubles if (one.dataset, one.cell) not in failed)
    return [*failed.values(), *others]


def _failed_of(history: OpenedHistory) -> dict[tuple[DatasetName, str | None], _Trouble]:
    """Give the parts whose last write failed, by dataset and cell.

    Unless such a part is stale, it is in no other trouble.
    """
    return {
        (one.dataset, one.cell): _Trouble(
            one.dataset, one.cell, state_of_failed(one), one.dag_id, one.job, one.at
        )
        for one in history.failed_parts()
    }


def _stale_of(history: OpenedHistory, catalog: Catalog) -> list[_Trouble] | None:
    """List the stale partitions of all datasets; None if they are too many."""

    def list_stale() -> list[_Trouble]:
        found = history.stale_of_all()
        if found is None:
            return _TOO_MANY
        troubles = [_stale_trouble(one, catalog) for one in found]
        # Several versions of a partition to which data was appended are one partition.
        return [*{(one.dataset, one.cell): one for one in troubles}.values()]

    troubles: list[_Trouble] = cache_of(history).answer(_STALE, list_stale)
    return None if troubles is _TOO_MANY else troubles


_STALE, _COUNTS = "stale troubles", "counts of troubles"
_TOO_MANY: list[_Trouble] = []


def _stale_trouble(one: Stale, catalog: Catalog) -> _Trouble:
    dataset = DatasetName(one.dataset.namespace, one.dataset.name)
    dag_id = catalog.dag_of(dataset, one.run.job)
    return _Trouble(
        dataset, cell_of(one.partition), "s", dag_id, one.run.job, of_tables(one.cause.at)
    )


def _counted(troubles: Iterable[_Trouble]) -> list[_Count]:
    counts: Counter[tuple[Any, ...]] = Counter()
    newest: dict[tuple[Any, ...], datetime] = {}
    for one in troubles:
        key = (one.dataset, one.state, one.dag_id, one.job)
        counts[key] += 1
        if one.at:
            newest[key] = max(newest.get(key, one.at), one.at)
    return [
        _Count(dataset, state, dag_id, job, count, newest.get((dataset, state, dag_id, job)))
        for (dataset, state, dag_id, job), count in counts.items()
    ]


# --- partitions that were never written -----------------------------------------------------------

MOST_LOOKED = 1000
"""The most datasets in which the page looks for never written partitions: those written last."""
PORTION_S = 3
"""The time of one request to look further."""
_FILLED_AGAIN = "dropped"
"""The reason of a gap that was written once: its partition is missing, and not never written."""


class Due:
    """The search of all datasets for partitions that are due and were never written.

    It goes on with each request, a portion at a time, because it takes minutes where there are
    thousands of datasets.

    :param datasets: the datasets, the most important first
    :param left_out: the number of further datasets, which are not looked at
    """

    def __init__(self, datasets: list[DatasetName], left_out: int) -> None:
        self._waiting = datasets[::-1]
        self._done: set[DatasetName] = set()
        self._left_out = left_out
        self._gaps: list[Gap] = []
        self._size = 1
        self._working = Lock()

    def advance(self, history: OpenedHistory) -> None:
        """Look at further datasets for :data:`PORTION_S`; return at once if another thread does."""
        if not self._working.acquire(blocking=False):
            return
        try:
            ends = time.monotonic() + PORTION_S
            with bounds.within(history.bound):
                while self._waiting and time.monotonic() < ends:
                    self._look_at(history, self._waiting[-self._size :])
        finally:
            self._working.release()

    def _look_at(self, history: OpenedHistory, datasets: list[DatasetName]) -> None:
        try:
            found = history.gaps_of(datasets)
        except LimitError:
            bounds.check()
            if self._size == 1:  # it takes too long for the page
                self._left_out += 1
                del self._waiting[-1:]
            self._size = 1
            return
        self._gaps += [one for one in found if one.reason != _FILLED_AGAIN]
        self._done.update(datasets)
        del self._waiting[-len(datasets) :]
        self._size = min(2 * self._size, 32)

    def gaps(self) -> list[Gap]:
        """List the never written partitions that were found until now."""
        return [*self._gaps]

    def counts(self, failed: Container[tuple[DatasetName, str | None]]) -> list[_Count]:
        """Count the never written partitions that were found until now, by dataset and job.

        :param failed: dataset and cell of partitions that do not count, as a run failed to write
            them
        """
        troubles = (
            _Trouble(
                DatasetName(one.dataset.namespace, one.dataset.name),
                one.cell,
                "n",
                one.dag_id,
                one.job or None,
                of_tables((one.run and one.run.ended) or one.logical_date),
            )
            for one in self._gaps
        )
        return _counted(one for one in troubles if (one.dataset, one.cell) not in failed)

    def looked(self) -> dict[str, int]:
        """Give how many datasets were looked at (``done``), of how many, and how many are not."""
        done = len(self._done)
        return {"done": done, "of": done + len(self._waiting), "left_out": self._left_out}


def _due_of(history: OpenedHistory, catalog: Catalog) -> Due:
    def begin() -> Due:
        datasets = catalog.partitioned()
        return Due(datasets[:MOST_LOOKED], max(0, len(datasets) - MOST_LOOKED))

    due: Due = cache_of(history).answer("due", begin)
    return due
