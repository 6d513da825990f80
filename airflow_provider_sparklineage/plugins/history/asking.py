"""The history as DuckDB reads it, and its queries, with answers in JSON's own types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar
from zlib import compress, decompress

import msgspec

from airflow_provider_sparklineage.history.engines import duckdb
from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.history.queries.answers import Stale
from airflow_provider_sparklineage.history.queries.drift import drift
from airflow_provider_sparklineage.history.queries.gaps import gaps
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.stale import plan_of, stale
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.plugins.history import kept
from airflow_provider_sparklineage.plugins.history.texts import cell_of

if TYPE_CHECKING:
    from collections.abc import Mapping

Answer = TypeVar("Answer")


class History:
    """One state of a store, asked in the words of :class:`.opened.Asked`."""

    def __init__(self, url: str) -> None:
        """Open it.

        :raise HistoryError: if there is none, or it cannot be read
        """
        self._history = duckdb.History(Store.open(url))
        self.url = url
        self.built_at = str(msgspec.to_builtins(self._history.manifest.built_at))
        # A store that was removed and built anew begins to count again.
        self.generation = f"{self._history.manifest.generation} {self.built_at}"
        self._kept = kept.of(self)

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
        return _list(trace(self._history, DatasetName(*dataset), partition, column, depth=depth))

    def downstream(
        self, dataset: tuple[str, str], partition: str | None, column: str | None
    ) -> list[dict[str, Any]]:
        """Give the hops downstream."""
        name = DatasetName(*dataset)
        return _list(impact(self._history, name, partition, column, is_planned=False).hops)

    def plan(
        self, dataset: tuple[str, str], partition: str | None, column: str | None
    ) -> dict[str, Any]:
        """Give the plan for what was made of a partition."""
        return _dict(impact(self._history, DatasetName(*dataset), partition, column).plan)

    def stale(self, dataset: tuple[str, str]) -> list[dict[str, Any]]:
        """Give the partitions of a dataset that are stale, with causes."""
        return _list(self._stale(dataset))

    def refresh(self, dataset: tuple[str, str], partition: str | None) -> dict[str, Any]:
        """Give the plan that makes a stale partition fresh."""
        found = self._stale(dataset)
        wanted = [one for one in found if partition is None or _is_of(one, partition)]
        return _dict(plan_of(self._history, wanted))

    def gaps(self, dataset: tuple[str, str]) -> list[dict[str, Any]]:
        """Give the partitions that are expected and were never written."""
        name = DatasetName(*dataset)
        found = self._kept.of(("gaps", dataset), lambda: _packed(gaps(self._history, name)))
        return _list(_unpacked(found, list[dict[str, Any]]))

    def drift(self, task: str) -> list[dict[str, Any]]:
        """Give what a task did otherwise than in the run before."""
        found = self._kept.of(("drift", task), lambda: _packed(drift(self._history, task)))
        return _list(_unpacked(found, list[dict[str, Any]]))

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


def _is_of(stale: Stale, partition: str) -> bool:
    asked = cell_of_text(partition)
    return asked is not None and cell_of(stale.partition) == asked.cell


def _list(found: object) -> list[dict[str, Any]]:
    plain: list[dict[str, Any]] = msgspec.to_builtins(found)
    return plain


def _dict(found: object) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain
