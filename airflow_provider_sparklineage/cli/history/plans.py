"""The rerun plan, for people and for programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.cli.history.causes import INDIRECTLY, change_text
from airflow_provider_sparklineage.cli.history.grouping import (
    ends_text,
    grouped,
    more_text,
    rows_of,
    times_text,
)
from airflow_provider_sparklineage.cli.history.tables import (
    Column,
    Document,
    labels,
    partition_text,
    print_table,
    time_text,
)
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.history.queries.answers import Plan

_MAX_REASONS = 3


def documents(plan: Plan) -> list[Document]:
    """Give an object for each run, those that Airflow can clear first.

    ``order`` counts from 1. Runs of other producers have ``job`` in the place of a task instance.
    """
    rows = [msgspec.to_builtins(row) for row in (*plan.steps, *plan.by_hand)]
    return [{"order": number, **row} for number, row in enumerate(rows, 1)]


def print_plan(plan: Plan, file: IO[str], *, is_all: bool = False) -> None:
    """Print what to clear, in order, and what somebody has to run again otherwise.

    :param is_all: whether there is a line for each run, however many there are
    """
    rows = documents(plan)
    steps, by_hand = rows[: len(plan.steps)], rows[len(plan.steps) :]
    because = _because(rows)
    if not rows:
        show.console(file).print("There is nothing to run again.")
    if steps:
        _print("To clear, in this order", (*_STEP, _ENDED, because), steps, file, is_all=is_all)
    if by_hand:
        title = "To run again by hand, as Airflow did not run it"
        _print(title, (_JOB, _ENDED, because), by_hand, file, is_all=is_all)


def _print(
    title: str, columns: Sequence[Column], rows: Sequence[Document], file: IO[str], *, is_all: bool
) -> None:
    def common(row: Document) -> tuple[Any, ...]:
        return row["wave"], _task(row) if "task_id" in row else row["job"]

    out = show.console(file)
    lines = grouped(rows, common, is_all=is_all)
    out.print(f"[bold]{title}[/]")
    print_table(columns, lines, file)
    if more := more_text(rows, lines):
        out.print(more)


def _because(rows: Sequence[Document]) -> Column:
    """Make the column of reasons, with the names of datasets as short as in other tables."""
    reasons = [reason for row in rows for reason in row["reasons"]]
    name = labels([*reasons, *(one["cause"] for one in reasons if one["cause"])], "dataset")

    def text(row: Document) -> str:
        each = {_reasons(one, name) for one in rows_of(row)}
        return each.pop() if len(each) == 1 else _datasets(row, name)

    return Column("because", text)


_Names = Callable[[Document | None], str]


def _reasons(row: Document, name: _Names) -> str:
    texts = list(dict.fromkeys(_reason(reason, name) for reason in row["reasons"]))
    more = len(texts) - _MAX_REASONS
    return "; ".join(texts[:_MAX_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _reason(reason: Document, name: _Names) -> str:
    what = name(reason["dataset"])
    if reason["partition"] is not None:
        what += f" {partition_text(reason['partition'])}"
    if cause := reason["cause"]:
        if not reason["is_direct"]:
            return f"{INDIRECTLY}: {what} {change_text(cause)}"
        return f"read {what}, which {change_text(cause)}"
    through = some(reason["columns"], _MAX_REASONS)
    return f"read {what}" + (f" ({through})" if through else "")


def _datasets(row: Document, name: _Names) -> str:
    """Name the datasets that the runs of a group read; which parts would be too many to name."""
    reasons = [reason for one in rows_of(row) for reason in one["reasons"]]
    texts = []
    for is_direct, what in ((True, "read "), (False, f"{INDIRECTLY}: ")):
        found = (name(one["dataset"]) for one in reasons if one["is_direct"] is is_direct)
        if names := list(dict.fromkeys(found)):
            texts.append(what + some(names, _MAX_REASONS))
    return "; ".join(texts)


def _task(row: Document) -> str:
    mapped = "" if row["map_index"] < 0 else f"[{row['map_index']}]"
    return f"{row['dag_id']}.{row['task_id']}{mapped}"


def _ended(row: Document) -> str:
    return time_text(row["ended"])


_ENDED = Column("last ran (UTC)", lambda row: times_text(row, _ended))
_STEP = (
    Column("#", lambda row: str(row["order"]) if len(rows_of(row)) == 1 else ""),
    Column("wave", lambda row: str(row["wave"] + 1)),
    Column("task", _task, "cyan"),
    Column("DAG run", lambda row: ends_text([one["dag_run_id"] for one in rows_of(row)])),
)
_JOB = Column("job", lambda row: row["job"] or row["run_id"], "cyan")
