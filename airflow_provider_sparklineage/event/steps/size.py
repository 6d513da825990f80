"""How large an event may be, and what it goes without when it would be larger.

Consumers refuse large events (one at 5 MB), and then all of the event is lost. So detail goes, kind
by kind, until the rest fits: columns of schemas dataset by dataset, the widest first, and of each
other kind all at once.

1. columns of inputs that no edge of column lineage names,
2. descriptions of column lineage,
3. transformations of INDIRECT column lineage: the edges stay, and stay INDIRECT,
4. transformations of DIRECT column lineage that the output column's ``transformationType`` says,
5. statistics,
6. comments of schemas,
7. INDIRECT column lineage, and then columns of inputs that it alone named,
8. who saw which dataset (``datasets`` of ``sparkLineage_capture``),
9. columns of outputs that have no column lineage,
10. column lineage of full outputs, the largest first; before the next one's, the columns that it
    alone named,
11. other facets, the largest first.

So no column stands in the place of an edge, and none is missing that an edge names: backends draw
edges between columns of schemas only.

Each kind that went is a degradation that says how much of it there was; of the tenth, a few outputs
are named. What always stays: the names of the datasets, and of the facet that declares what is
missing (``sparkLineage_capture``) the rest, with what was dropped in front of all else. An event
that does not have that facet is not reduced: nothing goes silently.

The policy is the same for whoever has a bound: an event on its way to a backend, one that is kept
in a database, one for a server that takes less. What Airflow adds to a task's event, some KB of its
own facets, is not in it.

Few events are too large. So here is only the look whether one is, which START waits for;
:mod:`.fitting` drops, and is imported when there is something to drop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import Measure, is_surely_within, replaced
from airflow_provider_sparklineage.event.model import CAPTURE_KEY, COLUMNS_KEY, name_of
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.model.degradations import Degradation


# --- bytes ----------------------------------------------------------------------------------------


def fitted(event: Event, max_bytes: int, option: str, budget: Budget = UNLIMITED) -> Event:
    """Drop what makes an event larger than it may be, and declare it.

    :param max_bytes: of the event as OpenLineage's client writes it in JSON
    :param option: what a person would change to get more, as a sentence calls it:
        ``[sparklineage] max_event_bytes``
    :param budget: when nothing is left, column lineage and facets go at once
    """
    if is_surely_within(event, max_bytes):
        return event
    return ever_smaller(event, option, budget)(max_bytes)


def ever_smaller(event: Event, option: str, budget: Budget = UNLIMITED) -> Callable[[int], Event]:
    """Give what fits an event into so many bytes, and then into ever fewer.

    Each time it goes on from where it stopped: in which order what goes depends on no bound.
    """
    if CAPTURE_KEY not in event["run"]["facets"]:
        return lambda _: event
    from airflow_provider_sparklineage.event.steps.fitting import Fitting  # few are too large

    return Fitting(event, option, budget).within


def reduced(
    event: Event, max_bytes: int, option: str, budget: Budget = UNLIMITED
) -> tuple[Event, tuple[Degradation, ...]]:
    """Drop the same of an event with or without the facet that declares it.

    :return: the event, which is the same object if it fits, and what was dropped
    """
    if is_surely_within(event, max_bytes):
        return event, ()
    from airflow_provider_sparklineage.event.steps.fitting import Fitting  # few are too large

    fitting = Fitting(event, option, budget)
    return fitting.within(max_bytes), fitting.dropped


# --- columns --------------------------------------------------------------------------------------
#
# Marquez stores each column of a schema, and each edge between two columns, by statements of its
# own. An event that is well within its bytes may take it longer than OpenLineage's client waits. So
# a backend that pays for each of them gets an event of at most so many: what goes first is the same
# as where bytes are bounded, as far as it is columns or edges.
#
# A column of a schema counts as one, in column lineage it does so once more, and four edges are as
# much as a column. What is not counted are datasets: their names always stay.


_COLUMNS_OPTION = "[sparklineage] max_columns"
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
        return _within_columns(event, max_columns)
    if last is None or (sent := _within_columns(last, max_columns)) is last:
        return event
    inputs, outputs = (_as_in(sent[side], event[side]) for side in ("inputs", "outputs"))
    return replaced(event, inputs=inputs, outputs=outputs)


def _within_columns(event: Event, max_columns: int) -> Event:
    facets = (facet for d in (*event["inputs"], *event["outputs"]) for facet in d["facets"].items())
    if sum(_cost_in_edges(*facet) for facet in facets) <= max_columns * _COLUMN:
        return event
    from airflow_provider_sparklineage.event.steps.fitting import Fitting  # few have too many

    measure = Measure(_cost_in_edges, lambda _: 0, of_text=False)
    return Fitting(event, _COLUMNS_OPTION, measure=measure).within(max_columns * _COLUMN)


def _cost_in_edges(key: str, facet: Any) -> int:
    """Give what a facet costs, in edges."""
    if key == "schema":
        fields = facet.get("fields")
        return _COLUMN * len(fields) if isinstance(fields, list) else 0
    if key == COLUMNS_KEY:
        sources = sum(len(field["inputFields"]) for field in facet["fields"].values())
        return _COLUMN * len(facet["fields"]) + sources + len(facet["dataset"])
    return 0


def _as_in(sent: list[dict[str, Any]], datasets: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from airflow_provider_sparklineage.event.steps.fitting import left_of

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
