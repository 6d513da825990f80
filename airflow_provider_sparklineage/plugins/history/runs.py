"""Runs as the page has them, by id."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from airflow_provider_sparklineage.plugins.history.opened import Asked
    from airflow_provider_sparklineage.plugins.history.visibility import Visibility

_RUNS = """
SELECT run_id, job, dag_id, task_id, dag_run_id, map_index, logical_date, ended, state, check_status
FROM runs WHERE list_contains($ids, run_id)
"""


def of(ids: Collection[str], history: Asked) -> dict[str, dict[str, Any]]:
    """Give runs by their ids, as JSON has them."""
    if not ids:
        return {}
    rows = history.rows(_RUNS, {"ids": sorted(ids)})
    return {row["run_id"]: {key: _plain(value) for key, value in row.items()} for row in rows}


def seen(known: dict[str, dict[str, Any]], visibility: Visibility) -> dict[str, dict[str, Any]]:
    """Leave out runs that a user may not see."""
    return {run_id: run for run_id, run in known.items() if visibility.sees(run)}


def id_of(entry: Mapping[str, Any]) -> str:
    """Give the id of the run that an answer names; empty if it names none."""
    run = entry.get("run")
    return str((run.get("run_id") if isinstance(run, dict) else run) or "")


def seconds(at: datetime | None) -> int | None:
    """Give a time of the tables, which is UTC without a zone, in seconds since the epoch."""
    return None if at is None else int(at.replace(tzinfo=UTC).timestamp())


def _plain(value: Any) -> Any:
    return f"{value.isoformat()}Z" if isinstance(value, datetime) else value
