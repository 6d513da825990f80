"""The history as DuckDB reads it, and its queries, with answers in JSON's own types."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.plugins.history.texts import cell_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_QUERIES = "airflow_provider_sparklineage.history.queries"


class History:
    """One state of a store, asked in the words of :class:`.opened.Asked`."""

    def __init__(self, url: str) -> None:
        """Open it.

        :raise HistoryError: if there is none, or it cannot be read
        """
        store = import_module("airflow_provider_sparklineage.history.store").Store.open(url)
        engine = import_module("airflow_provider_sparklineage.history.engines.duckdb")
        self._history = engine.History(store)
        self.url = url
        self.generation = str(store.manifest.generation)
        self.built_at = str(msgspec.to_builtins(store.manifest.built_at))

    def close(self) -> None:
        """Let go of its files."""
        self._history.close()

    def rows(
        self, sql: str, parameters: Mapping[str, object] | None = None
    ) -> list[dict[str, Any]]:
        """Give rows of the tables."""
        found: list[dict[str, Any]] = self._history.rows(sql, parameters or {})
        return found

    def trace(
        self, dataset: tuple[str, str], partition: str | None, column: str | None, depth: int
    ) -> list[dict[str, Any]]:
        """Give the hops upstream."""
        query = _query("trace")
        return _list(query(self._history, DatasetName(*dataset), partition, column, depth=depth))

    def impact(
        self, dataset: tuple[str, str], partition: str | None, column: str | None
    ) -> dict[str, Any]:
        """Give the ``hops`` downstream, and the ``plan``."""
        found = _query("impact")(self._history, DatasetName(*dataset), partition, column)
        return _dict(found)

    def stale(self, dataset: tuple[str, str]) -> list[dict[str, Any]]:
        """Give the partitions of a dataset that are stale, with causes."""
        return _list(_query("stale")(self._history, DatasetName(*dataset)))

    def refresh(self, dataset: tuple[str, str], partition: str | None) -> dict[str, Any]:
        """Give the plan that makes a stale partition fresh."""
        found = _query("stale")(self._history, DatasetName(*dataset))
        wanted = [one for one in found if partition is None or _names(one, partition)]
        return _dict(_query("stale", "plan_of")(self._history, wanted))

    def gaps(self, dataset: tuple[str, str]) -> list[dict[str, Any]]:
        """Give the partitions that are expected and were never written."""
        return _list(_query("gaps")(self._history, DatasetName(*dataset)))


def _query(module: str, name: str = "") -> Callable[..., Any]:
    """Give a query, imported when it is asked: opening the page need not wait for all."""
    found: Callable[..., Any] = getattr(import_module(f"{_QUERIES}.{module}"), name or module)
    return found


def _names(stale: Any, partition: str) -> bool:
    asked = cell_of_text(partition)
    return asked is not None and cell_of(stale.partition) == asked.cell


def _list(found: Any) -> list[dict[str, Any]]:
    plain: list[dict[str, Any]] = msgspec.to_builtins(found)
    return plain


def _dict(found: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain
