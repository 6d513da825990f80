"""Opens the store that a command asks, and notes how old it is."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.output import logging_to_stderr, note
from airflow_provider_sparklineage.cli.progress import progress
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.history.engines.duckdb import History

FRESH = timedelta(hours=1)
"""How old a store can be without a note."""

_NO_AIRFLOW = "Without Airflow there is no configuration that has the store."


def store_url(args: argparse.Namespace) -> str:
    """Give the URL of the store that was asked for, else the one of Airflow's configuration.

    :raise UnusableInputError: if there is neither
    :raise SettingsError: if the configuration has none
    """
    if args.store:
        return str(args.store)
    with logging_to_stderr():
        try:
            from airflow_provider_sparklineage.hooks import sources
        except ImportError:
            raise UnusableInputError(_NO_AIRFLOW, "Name it: --store URL.") from None
        return sources.history_url()


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[History]:
    """Open the store for questions.

    :raise HistoryError: if there is none, or no engine to read it
    """
    from airflow_provider_sparklineage.history.engines.duckdb import History
    from airflow_provider_sparklineage.history.store import Store

    store = Store.open(store_url(args))
    built_at, now = store.manifest.built_at, datetime.now(UTC)
    if now - built_at > FRESH:
        note(f"note: {freshness(built_at, now)}")
    with History(store) as history:
        yield history


@contextmanager
def counted(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal that a question takes time; what is given takes what queries say.

    :param what: what they count
    """
    with progress(what, None) as reached:
        yield lambda _, found: reached(found)


def freshness(built_at: datetime, now: datetime) -> str:
    """Say how old a store is: what ran since is not in it."""
    when = built_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"The history was built {ago(built_at, now)}, on {when}; later runs are not in it."


def ago(time: datetime, now: datetime) -> str:
    """Say how long ago it was, in the largest unit of which there are two."""
    seconds = max(0, int((now - time).total_seconds()))
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit} ago"
    return "just now" if seconds < 60 else "a minute ago"
