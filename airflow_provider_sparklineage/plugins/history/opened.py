"""The history as the page asks it: one state of a store, opened for one request.

DuckDB reads it. Answers are in JSON's own types, as the commands' ``--json`` has them, so that
permissions are applied to all of them in one way. A dataset is its namespace and name, a partition
its text (``dt=2024-10-15/region=eu``), or None for all of the dataset.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import compress, decompress

import msgspec

from airflow_provider_sparklineage.history.engines import duckdb
from airflow_provider_sparklineage.history.facts import cells
from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.history.queries.answers import Stale
from airflow_provider_sparklineage.history.queries.drift import drift
from airflow_provider_sparklineage.history.queries.gaps import gaps
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.stale import plan_of, stale
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    Dimensions = Mapping[str, str | None] | None


# Partitions as text: as the page asks with them, and as the tables are joined on them.


def partition_of(dimensions: Dimensions) -> str:
    """Write a partition in its own order of dimensions; empty for all of a dataset."""
    return str(Partition.of((dimensions or {}).items()))


def cell_of(dimensions: Dimensions) -> str | None:
    """Write it as tables are joined on it; None for all of a dataset."""
    return cells.cell_of(dimensions).cell if dimensions else None


# What is stale follows from all that was ever read and written, and what is due from all runs of
# a task: of a large history that takes seconds, and it is the same for every user until the history
# is built again. So it is worked out once for all requests. One thing is worked out at a time,
# because DuckDB uses all cores for it; a request that wants the same meanwhile waits, and finds it.

MAX_STATES = 2
"""States of stores that are kept; a request may still be answered from the one before."""
MAX_ANSWERS = 100
"""Answers that are kept of a state; most are on one dataset each."""


class _LatestValues:
    """Values by key, of which those that were asked for longest ago are forgotten."""

    def __init__(self, most: int) -> None:
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._most = most
        self._lock = Lock()

    def get(self, key: Hashable) -> Any:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: Hashable, value: Any) -> Any:
        """Keep a value, unless there is one; gives the one that is kept."""
        with self._lock:
            kept = self._values.setdefault(key, value)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return kept


class AnswerCache:
    """What is known of one state of a store.

    :param most: how many answers are kept
    """

    def __init__(self, most: int = MAX_ANSWERS) -> None:
        self._answers = _LatestValues(most)
        self._working = Lock()

    def of(self, question: Hashable, work_out: Callable[[], Any]) -> Any:
        """Give the answer to a question, which is not None; it is worked out once."""
        if (found := self._answers.get(question)) is None:
            with self._working:
                if (found := self._answers.get(question)) is None:
                    found = self._answers.keep(question, work_out())
        return found


_STATES = _LatestValues(MAX_STATES)


def cache_of(history: OpenedHistory) -> AnswerCache:
    """Give what is known of the state of the store that is open."""
    state = (history.url, history.generation)
    known: AnswerCache = _STATES.get(state) or _STATES.keep(state, AnswerCache())
    return known


Answer = TypeVar("Answer")


class OpenedHistory:
    """One state of a store, and its queries, until it is closed."""

    def __init__(self, url: str) -> None:
        """Open it.

        :raise HistoryError: if there is none, or it cannot be read
        """
        self._history = duckdb.History(Store.open(url))
        self.url = url
        self.built_at = str(msgspec.to_builtins(self._history.manifest.built_at))
        # A store that was removed and built anew begins to count again.
        self.generation = f"{self._history.manifest.generation} {self.built_at}"
        self._kept = cache_of(self)

    def close(self) -> None:
        """Let go of its files."""
        self._history.close()

    def rows(
        self, sql: str, parameters: Mapping[str, object] | None = None
    ) -> list[dict[str, Any]]:
        """Give rows of the tables."""
        return self._history.rows(sql, parameters)

    def trace(
        self, dataset: tuple[str, str], partition: str | None, column: str | None, depth: int
    ) -> list[dict[str, Any]]:
        """Give the hops upstream."""
        return _plain_list(
            trace(self._history, DatasetName(*dataset), partition, column, depth=depth)
        )

    def downstream(
        self, dataset: tuple[str, str], partition: str | None, column: str | None
    ) -> list[dict[str, Any]]:
        """Give the hops downstream."""
        name = DatasetName(*dataset)
        return _plain_list(impact(self._history, name, partition, column, is_planned=False).hops)

    def plan(
        self, dataset: tuple[str, str], partition: str | None, column: str | None
    ) -> dict[str, Any]:
        """Give the plan for what was made of a partition."""
        return _plain_dict(impact(self._history, DatasetName(*dataset), partition, column).plan)

    def stale(self, dataset: tuple[str, str]) -> list[dict[str, Any]]:
        """Give the partitions of a dataset that are stale, with causes."""
        return _plain_list(self._stale(dataset))

    def refresh(self, dataset: tuple[str, str], partition: str | None) -> dict[str, Any]:
        """Give the plan that makes a stale partition fresh."""
        found = self._stale(dataset)
        wanted = [one for one in found if partition is None or _is_of_partition(one, partition)]
        return _plain_dict(plan_of(self._history, wanted))

    def gaps(self, dataset: tuple[str, str]) -> list[dict[str, Any]]:
        """Give the partitions that are expected and were never written."""
        name = DatasetName(*dataset)
        found = self._kept.of(("gaps", dataset), lambda: _packed(gaps(self._history, name)))
        return _plain_list(_unpacked(found, list[dict[str, Any]]))

    def drift(self, task: str) -> list[dict[str, Any]]:
        """Give what a task did otherwise than in the run before, by the name of its job."""
        found = self._kept.of(("drift", task), lambda: _packed(drift(self._history, task)))
        return _plain_list(_unpacked(found, list[dict[str, Any]]))

    def _stale(self, dataset: tuple[str, str]) -> list[Stale]:
        # What is stale of one dataset follows from all others: it is found of all at once.
        found = self._kept.of("stale", self._stale_of_all).get(dataset)
        return _unpacked(found, list[Stale]) if found else []

    def _stale_of_all(self) -> dict[tuple[str, str], bytes]:
        found: dict[tuple[str, str], list[Stale]] = {}
        for one in stale(self._history):
            found.setdefault((one.dataset.namespace, one.dataset.name), []).append(one)
        return {dataset: _packed(of) for dataset, of in found.items()}


def _packed(answer: object) -> bytes:
    """Write an answer that is kept in few bytes: a hundred thousand stale partitions are 3 MB."""
    return compress(msgspec.json.encode(answer), 1)


def _unpacked(packed: bytes, kind: type[Answer]) -> Answer:
    return msgspec.json.decode(decompress(packed), type=kind)


def _is_of_partition(stale: Stale, partition: str) -> bool:
    asked = cell_of_text(partition)
    return asked is not None and cell_of(stale.partition) == asked.cell


def _plain_list(found: object) -> list[dict[str, Any]]:
    plain: list[dict[str, Any]] = msgspec.to_builtins(found)
    return plain


def _plain_dict(found: object) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain
