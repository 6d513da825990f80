"""Opening the history that is configured, for one request."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.hooks.history import store_url
from airflow_provider_sparklineage.model.exceptions import SparkLineageError
from airflow_provider_sparklineage.plugins.history import kept
from airflow_provider_sparklineage.plugins.history.datasets import Catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.plugins.history.opened import Asked

INSTALL = "pip install 'airflow-provider-sparklineage[history]'"
BUILD = "airflow sparklineage history build"


class UnavailableError(SparkLineageError):
    """Raised when there is no history to ask: a library, the store or its address is missing.

    :param commands: what to run, in this order
    """

    def __init__(self, problem: str, fix: str, commands: tuple[str, ...] = ()) -> None:
        super().__init__(problem, fix)
        self.commands = commands


@contextmanager
def opened() -> Iterator[Asked]:
    """Open the history.

    :raise UnavailableError: if there is none
    """
    if find_spec("duckdb") is None:
        problem = (
            "The history is read by DuckDB, which is not installed where Airflow's API server is."
        )
        raise UnavailableError(problem, "Install it, and restart the API server.", (INSTALL,))
    from airflow_provider_sparklineage.plugins.history.asking import History

    try:
        history = History(store_url())
    except SparkLineageError as error:
        raise UnavailableError(error.problem, error.fix, (BUILD,)) from None
    try:
        yield history
    finally:
        history.close()


def catalog_of(history: Asked) -> Catalog:
    """Give the datasets of a state of the store, which are counted once for all requests."""
    catalog: Catalog = kept.of(history).of("catalog", lambda: Catalog(history))
    return catalog
