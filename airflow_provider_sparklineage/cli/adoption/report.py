"""What is adopted: a table for people, a document for programs."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from rich.table import Table

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.cli.doctor import report as doctor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.cli.adoption.survey import Row, Survey


def document(found: Survey) -> dict[str, Any]:
    """Give what ``--output json`` prints; its schema is shipped as ``schemas/adoption.json``."""
    return {
        "tasks": [
            {
                "dag_id": row.dag_id,
                "task_id": row.task_id,
                "operator": row.operator,
                "class": row.path,
                "adopted": row.adopted,
                "reason": row.reason,
                "rule": row.rule,
                "declaration": row.declaration,
            }
            for row in found.rows
        ],
        "problems": doctor.document(found.problems)["checks"],
    }


def print_survey(found: Survey, file: IO[str]) -> None:
    """Print a line for each task, then what is wrong."""
    out = show.console(file)
    if found.rows:
        out.print(_table(found.rows))
    out.print(show.escape(_summary(found.rows)), soft_wrap=True)
    if found.problems:
        out.print()
        doctor.print_checks(found.problems, file)


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("DAG", "task", "operator", "adoption", "declared"):
        table.add_column(title, overflow="fold")
    for row in rows:
        style = "green" if row.adopted else "yellow"
        table.add_row(
            *map(show.escape, (row.dag_id, row.task_id, row.operator)),
            f"[{style}]{show.escape(row.reason)}[/]",
            f"rule {row.declaration}" if row.declaration else "",
        )
    return table


def _summary(rows: Sequence[Row]) -> str:
    if not rows:
        return "There is no task of a Spark operator."
    adopted = sum(row.adopted for row in rows)
    return f"Of {len(rows)} tasks of Spark operators {adopted} are adopted."
