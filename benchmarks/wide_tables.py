"""Applications that make wide tables of wide tables: each column of many."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

TABLES = 3
RUN = "00000000-0000-0000-0000-000000000000"
"""Of the application."""

_FACET = {"_producer": "https://bench", "_schemaURL": "https://bench/facet.json"}
_NAMED = 20


def names(columns: int) -> list[str]:
    """Name the columns of each table."""
    return [f"column_{number}" for number in range(columns)]


def text(columns: Sequence[str], column: str) -> str:
    """Describe what a column is made of, as far as a listener would."""
    return f"{' + '.join(columns[:_NAMED])} AS {column}"


def lineages(columns: int, *, described: bool) -> list[ColumnLineage]:
    """Give the column lineage of each table; no two columns have an object in common."""
    every = names(columns)
    found = []
    for table in range(TABLES):
        source = DatasetName("file", f"/lake/t{table}")
        found.append(
            ColumnLineage(
                {
                    column: {
                        Column(source, of): (
                            Transformation(
                                "DIRECT", "TRANSFORMATION", text(every, column) * described
                            ),
                        )
                        for of in every
                    }
                    for column in every
                }
            )
        )
    return found


def write(folder: Path, columns: int, *, described: bool = False, fan: int | None = None) -> None:
    """Write the events of an application that makes three tables one of the other.

    :param fan: of how many columns each is made, taken at random; None: of all
    """
    folder.mkdir()
    with (folder / EVENTS).open("wb") as file:
        for event in _events(columns, described, fan):
            file.write(msgspec.json.encode(event) + b"\n")


def _events(columns: int, described: bool, fan: int | None) -> Iterator[dict[str, Any]]:
    yield _event("START", 0)
    for table in range(TABLES):
        run = f"00000000-0000-0000-0000-{table + 1:012x}"
        schema = _FACET | {"fields": [{"name": name, "type": "long"} for name in names(columns)]}
        name = f"/lake/t{table}"
        source = {"namespace": "file", "name": name, "facets": {"schema": schema}}
        facets = {
            "schema": schema,
            "lifecycleStateChange": _FACET | {"lifecycleStateChange": "OVERWRITE"},
            "columnLineage": _FACET | {"fields": _fields(name, columns, described, fan)},
        }
        target = {"namespace": "file", "name": f"/lake/t{table + 1}", "facets": facets}
        yield _event("START", 2 * table + 1, run)
        yield _event("COMPLETE", 2 * table + 2, run, inputs=[source], outputs=[target])
    yield _event("COMPLETE", 2 * TABLES + 1)


def _fields(source: str, columns: int, described: bool, fan: int | None) -> dict[str, Any]:
    every = names(columns)
    chance = random.Random(source)
    return {
        column: {
            "inputFields": [
                {
                    "namespace": "file",
                    "name": source,
                    "field": of,
                    "transformations": [
                        {
                            "type": "DIRECT",
                            "subtype": "TRANSFORMATION",
                            "description": text(every, column) if described else "",
                            "masking": False,
                        }
                    ],
                }
                for of in (every if fan is None else chance.sample(every, fan))
            ]
        }
        for column in every
    }


def _event(kind: str, second: int, run: str = RUN, **datasets: list[Any]) -> dict[str, Any]:
    parent = _FACET | {"run": {"runId": RUN}, "job": {"namespace": "bench", "name": "wide"}}
    is_application = run == RUN
    job_type = _FACET | {"jobType": "APPLICATION" if is_application else "SQL_JOB"}
    name = "wide" if is_application else "wide.execute_insert_into_hadoop_fs_relation_command"
    return {
        "eventTime": f"2026-01-01T00:00:{second:02}.000Z",
        "eventType": kind,
        "run": {"runId": run, "facets": {} if is_application else {"parent": parent}},
        "job": {"namespace": "bench", "name": name, "facets": {"jobType": job_type}},
        "inputs": [],
        "outputs": [],
        **datasets,
    }
