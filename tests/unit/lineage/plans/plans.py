"""Recorded plans, and what is made of them as text."""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.lineage.columns.plans.commands import (
    PlannedColumns,
    planned_columns,
)
from airflow_provider_sparklineage.lineage.columns.plans.expressions import attributes
from airflow_provider_sparklineage.lineage.observed.accesses import WritePlan
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.lineage.columns.edges import Edges

TARGET = DatasetName("file", "target")
_RELATIONS = ("LogicalRelation", "DataSourceV2Relation", "HiveTableRelation")
# The recorded datasets, known by a column that only they have.
_DATASETS = {
    "order_id": "orders",
    "email": "customers",
    "rate": "rates",
    "tags": "profiles",
    "uname": "users",
    "user_id": "events",
    "dt": "target",
}


@cache
def recorded(file: str) -> dict[str, Any]:
    """Give the plans of a file by their names."""
    lines = Path(__file__).with_name(file).read_text().splitlines()
    return {entry["name"]: entry["plan"] for entry in map(json.loads, lines)}


def relations(plan: object) -> Iterator[tuple[DatasetName | None, tuple[int, ...]]]:
    """Give what the leaves of a plan read, as the observer's records have it."""
    if isinstance(plan, list):
        for item in plan:
            yield from relations(item)
    elif isinstance(plan, dict):
        if str(plan.get("class", "")).endswith(_RELATIONS):
            found = attributes(plan.get("output"))
            names = {name for _, name in found}
            dataset = next((name for column, name in _DATASETS.items() if column in names), "")
            yield DatasetName("file", dataset), tuple(number for number, _ in found)
        for item in plan.values():
            yield from relations(item)


def write_plan(plan: Any, *columns: str) -> WritePlan:
    """Make the plan of a write to the target."""
    compressed = zlib.compress(json.dumps(plan).encode())
    span = datetime(2024, 5, 6, tzinfo=UTC), datetime(2024, 5, 6, 1, tzinfo=UTC)
    return WritePlan(TARGET, columns, compressed, tuple(relations(plan)), span)


def columns_of(file: str, name: str, *columns: str) -> PlannedColumns:
    """Give what the columns of a recorded write are made of."""
    return planned_columns(write_plan(recorded(file)[name], *columns))


def edges_text(edges: Edges) -> str:
    """Write edges."""
    return ", ".join(
        f"{c.dataset.name}.{c.field} "
        + "+".join(f"{t.subtype}{'/masked' if t.masking else ''}" for t in ts)
        for c, ts in sorted(edges.items())
    )


def described(planned: PlannedColumns) -> str:
    """Write all that a plan says, a column in a line; ``*`` is what chooses rows."""
    lines = [f"{name} <- {edges_text(edges)}" for name, edges in planned.lineage.fields.items()]
    lines += [
        f"{name} is made of {' and '.join(sorted(of)) or 'what it was'}"
        for name, of in planned.made_of.items()
    ]
    lines += [f"{name} is not all known" for name in sorted(planned.incomplete)]
    lines += [f"{name} is a guess of {of}" for name, of in planned.guesses.items()]
    if planned.lineage.dataset:
        lines.append(f"* <- {edges_text(planned.lineage.dataset)}")
    return "\n".join([*lines, *([] if planned.is_whole else ["* is not all known"])])
