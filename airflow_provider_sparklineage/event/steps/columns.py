"""How many columns an event may have, for a backend that pays for each of them.

Marquez stores each column of a schema, and each edge between two columns, by statements of its own.
An event that is well within its bytes may take it longer than OpenLineage's client waits. What goes
first is the same as where bytes are bounded (:mod:`.size`), as far as it is columns or edges.

A column of a schema counts as one, in column lineage it does so once more, and four edges are as
much as a column. What is not counted are datasets: their names always stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY
from airflow_provider_sparklineage.event.document import COLUMNS_KEY, name_of, replaced

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.document import Event

_OPTION = "[sparklineage] max_columns"
_COLUMN = 4
"""Edges that are as much as a column."""


def with_few_columns(event: Event, max_columns: int, last: Event | None = None) -> Event:
    """Leave out columns of which there are more than an event may have, and declare it.

    An event of a job that has not run has no column lineage yet. It gets the columns that the event
    of the last run was sent with, as the one at the end of this run will: an output with others
    would be another version of it.

    :param last: of the task's last successful run, as it was kept
    :return: the same object if there is nothing to do
    """
    if CAPTURE_KEY in event["run"]["facets"]:
        return _bounded(event, max_columns)
    if last is None or (sent := _bounded(last, max_columns)) is last:
        return event
    inputs, outputs = (_as_in(sent[side], event[side]) for side in ("inputs", "outputs"))
    return replaced(event, inputs=inputs, outputs=outputs)


def _bounded(event: Event, max_columns: int) -> Event:
    facets = (facet for d in (*event["inputs"], *event["outputs"]) for facet in d["facets"].items())
    if sum(_edges(*facet) for facet in facets) <= max_columns * _COLUMN:
        return event
    from airflow_provider_sparklineage.event.steps.size import (  # few events have too many
        fitting,
        measured_event,
    )

    measure = measured_event.Measure(_edges, lambda _: 0, of_text=False)
    return fitting.Fitting(event, _OPTION, measure=measure).within(max_columns * _COLUMN)


def _edges(key: str, facet: Any) -> int:
    """Give what a facet costs, in edges."""
    if key == "schema":
        fields = facet.get("fields")
        return _COLUMN * len(fields) if isinstance(fields, list) else 0
    if key == COLUMNS_KEY:
        sources = sum(len(field["inputFields"]) for field in facet["fields"].values())
        return _COLUMN * len(facet["fields"]) + sources + len(facet["dataset"])
    return 0


def _as_in(sent: list[dict[str, Any]], datasets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from airflow_provider_sparklineage.event.steps.size.named import left_of

    def fewer(dataset: dict[str, Any]) -> dict[str, Any]:
        facets = dataset["facets"]
        columns = known.get(name_of(dataset))
        if columns is None or "schema" not in facets:
            return dataset
        schema, gone = left_of(facets["schema"], columns.__contains__)
        if not gone:
            return dataset
        others = {key: facet for key, facet in facets.items() if key != "schema"}
        return {**dataset, "facets": others | ({"schema": schema} if schema else {})}

    known = {name_of(d): {f["name"] for f in _fields(d)} for d in sent}
    return [fewer(dataset) for dataset in datasets]


def _fields(dataset: dict[str, Any]) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = dataset["facets"].get("schema", {}).get("fields", [])
    return fields
