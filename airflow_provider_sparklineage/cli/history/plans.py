"""The rerun plan, for people and for programs."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.cli.history.tables import Column, print_table, time_text

if TYPE_CHECKING:
    from airflow_provider_sparklineage.cli.history.tables import Document
    from airflow_provider_sparklineage.history.queries.answers import Plan

_MAX_REASONS = 3


def documents(plan: Plan) -> list[Document]:
    """Give an object for each run, those that Airflow can clear first.

    ``order`` counts from 1. Runs of other producers have ``job`` in the place of a task instance.
    """
    rows = [msgspec.to_builtins(row) for row in (*plan.steps, *plan.by_hand)]
    return [{"order": number, **row} for number, row in enumerate(rows, 1)]


def print_plan(plan: Plan, file: IO[str]) -> None:
    """Print what to clear, in order, and what somebody has to run again otherwise."""
    out = show.console(file)
    rows = documents(plan)
    steps, by_hand = rows[: len(plan.steps)], rows[len(plan.steps) :]
    if not rows:
        out.print("There is nothing to run again.")
    if steps:
        out.print("[bold]To clear, in this order[/]")
        print_table(_STEP, steps, file)
    if by_hand:
        out.print("[bold]To run again by hand, as Airflow did not run it[/]")
        print_table(_BY_HAND, by_hand, file)


def _reasons(row: Document) -> str:
    texts = list(dict.fromkeys(reason["text"] for reason in row["reasons"] if reason["text"]))
    more = len(texts) - _MAX_REASONS
    return "; ".join(texts[:_MAX_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _task(row: Document) -> str:
    mapped = "" if row["map_index"] < 0 else f"[{row['map_index']}]"
    return f"{row['dag_id']}.{row['task_id']}{mapped}"


_ENDED = Column("last ran (UTC)", lambda row: time_text(row["ended"]))
_BECAUSE = Column("because", _reasons)
_STEP = (
    Column("#", lambda row: str(row["order"])),
    Column("wave", lambda row: str(row["wave"] + 1)),
    Column("task", _task, "cyan"),
    Column("DAG run", lambda row: row["dag_run_id"]),
    _ENDED,
    _BECAUSE,
)
_BY_HAND = (
    Column("job", lambda row: row["job"] or row["run_id"], "cyan"),
    _ENDED,
    _BECAUSE,
)
