"""How long Airflow's page of the history is waited for: its first opening, and each click."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.plugins.history import answers
from airflow_provider_sparklineage.plugins.history.catalog import catalog_of, search_columns
from airflow_provider_sparklineage.plugins.history.health import health
from airflow_provider_sparklineage.plugins.history.opened import OpenedHistory
from airflow_provider_sparklineage.plugins.history.permissions import Visibility
from benchmarks import history_world
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ACCESSES = 10_000_000
REGIONS_OF_MANY = 137  # for each of 365 days: 50,005 partitions of a table
OPENING_S, HEALTH_S, COLUMNS_S, CLICK_S = 0.5, 1.0, 0.5, 1.0
_ALL = Visibility(lambda _: True, lambda _: True, frozenset, lambda: True)
_MART = DatasetName(history_world.NAMESPACE, "warehouse/mart_0")
_CELL = "dt=2024-06-01/region=r3"


def measured() -> Iterator[Result]:
    """Measure what the API server does for the page, by the clock, for a user who may see all."""
    yield from _of("10 million accesses", ACCESSES)
    yield from _of("50,005 partitions", 1, REGIONS_OF_MANY)


def _of(name: str, accesses: int, regions: int = history_world.REGIONS) -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as folder:
        history_world.store_of(Path(folder), accesses, regions)
        for step, goal, action in _steps(folder):
            begun = time.perf_counter()
            details = action()
            yield Result(f"{name}: {step}", time.perf_counter() - begun, goal, details, " s")


Step = tuple[str, float | None, "Callable[[], str]"]


def _steps(url: str) -> Iterator[Step]:
    """List what a user does, in this order; each request opens the store anew."""
    wanted = answers.Selection(_MART, _CELL)
    column = wanted._replace(column="c7", depth=3)
    yield "first opening of the page", OPENING_S, lambda: _asked(url, _datasets)
    yield "opening it again", OPENING_S, lambda: _asked(url, _datasets)
    yield "its health at once", HEALTH_S, lambda: _asked(url, lambda h: _health(h, is_quick=True))
    yield "its health with what is stale, once for each build", None, lambda: _asked(url, _health)
    at_once = "partitions of a dataset, until it is known which are stale"
    yield at_once, CLICK_S, lambda: _asked(url, lambda h: _partitions(h, is_quick=True))
    yield "which are stale and due, once for each build", None, lambda: _asked(url, _partitions)
    yield "its partitions, from then on", CLICK_S, lambda: _asked(url, _partitions)
    yield (
        "the graph of one",
        CLICK_S,
        lambda: _asked(url, lambda h: _hops(answers.partition_graph(wanted, h, _ALL))),
    )
    yield "what to run again of one", CLICK_S, lambda: _asked(url, lambda h: _plan(wanted, h))
    yield "columns of three steps", COLUMNS_S, lambda: _asked(url, lambda h: _edges(column, h))
    yield "the columns that have a letter of all", COLUMNS_S, lambda: _asked(url, _columns)


def _asked(url: str, question: Callable[[OpenedHistory], str]) -> str:
    history = OpenedHistory(url)
    try:
        return question(history)
    finally:
        history.close()


def _datasets(history: OpenedHistory) -> str:
    return f"{catalog_of(history).search('', _ALL)['count']:,} datasets"


def _health(history: OpenedHistory, *, is_quick: bool = False) -> str:
    found = health(catalog_of(history), history, _ALL, is_quick=is_quick)
    return f"{sum(found['totals'].values()):,} partitions, {found['looked']['done']:,} datasets"


def _edges(wanted: answers.Selection, history: OpenedHistory) -> str:
    return f"{len(answers.column_graph(wanted, history, _ALL)['edges']):,} lines"


def _columns(history: OpenedHistory) -> str:
    found = search_columns("c", history, _ALL)
    return f"{found['count']:,} columns{' and more' if found['is_cut'] else ''}"


def _partitions(history: OpenedHistory, *, is_quick: bool = False) -> str:
    found = answers.partition_states(_MART, history, _ALL, is_quick=is_quick)["partitions"]
    return f"{len(found['names']):,} partitions, {found['states'].count('s'):,} stale"


def _hops(found: dict[str, Any]) -> str:
    return f"{sum(len(found[side]['hops']) for side in ('upstream', 'downstream')):,} hops"


def _plan(wanted: answers.Selection, history: OpenedHistory) -> str:
    found = answers.rerun_plans(wanted, history, _ALL)
    return f"{sum(len(plan['steps']) for plan in found.values()):,} task instances"
