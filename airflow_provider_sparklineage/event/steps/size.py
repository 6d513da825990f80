"""The limits of an event's size, and the order in which a larger event loses detail.

Consumers refuse large events (one of them at 5 MB), and then the whole event is lost. So detail is
dropped, kind by kind, until the rest fits: columns of schemas dataset by dataset, the widest first,
and each other kind as a whole.

1. columns of inputs that no edge of column lineage names,
2. descriptions of column lineage,
3. transformations of INDIRECT column lineage: the edges stay, and stay INDIRECT,
4. transformations of DIRECT column lineage that the output column's ``transformationType`` repeats,
5. statistics,
6. comments of schemas,
7. INDIRECT column lineage, and then columns of inputs that it alone named,
8. the reporter of each access (``datasets`` of ``sparkLineage_capture``),
9. columns of outputs that have no column lineage,
10. column lineage of full outputs, the largest first; after each, the columns that it alone named,
11. other facets, the largest first.

So columns that no edge names are dropped before the column lineage of full outputs, and no column
is dropped that an edge names: backends draw edges between columns of schemas only.

For each dropped kind there is a degradation with the number of dropped parts; that for the tenth
kind also names a few outputs. The names of the datasets always stay. So does the facet
``sparkLineage_capture``, except for its ``datasets``: it lists the degradations, those for dropped
parts first. An event without that facet is not reduced, so that no loss is silent.

The order is the same for each limit: of a backend, of a database that keeps the event, of a server
that takes fewer bytes. The limits do not count the facets that Airflow adds to a task's event, some
KB.

Few events are too large. So this module, for whose import a START waits, only checks whether an
event is; :mod:`.fitting` does the reduction, and is imported only for an event that is too large.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import is_surely_within, replaced
from airflow_provider_sparklineage.event.model import CAPTURE_KEY, COLUMNS_KEY, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.model.degradations import Degradation


# --- bytes ----------------------------------------------------------------------------------------


def fitted(
    event: Event, max_bytes: int, option: str, is_late: Callable[[], bool] = lambda: False
) -> Event:
    """Drop detail of an event until it fits into ``max_bytes``; add degradations for the losses.

    :param max_bytes: limit of the event as OpenLineage's client writes it in JSON
    :param option: the setting that allows more, as a sentence names it:
        ``[sparklineage] max_event_bytes``
    :param is_late: tells whether time is short; then column lineage and facets are dropped as a
        whole, which is faster
    :return: the same object if it fits, or has no facet for degradations
    """
    if CAPTURE_KEY not in event["run"]["facets"]:
        return event
    return reduced(event, max_bytes, option, is_late)[0]


def ever_smaller(event: Event, option: str) -> Callable[[int], Event]:
    """Give a function that reduces the event to at most a given number of bytes.

    The number must fall with each call. Each call goes on where the one before stopped, because the
    order of dropping is always the same. An event without the facet for degradations stays as it
    is.

    :param option: the setting that allows more, as for :func:`fitted`
    """
    if CAPTURE_KEY not in event["run"]["facets"]:
        return lambda _: event
    from airflow_provider_sparklineage.event.steps.fitting import Fitting  # few are too large

    return Fitting(event, option).within


def reduced(
    event: Event, max_bytes: int, option: str, is_late: Callable[[], bool] = lambda: False
) -> tuple[Event, tuple[Degradation, ...]]:
    """Drop detail as :func:`fitted` does, also of an event without the facet for degradations.

    The parameters are those of :func:`fitted`.

    :return: the event, which is the same object if it fits, and the degradations for the losses
    """
    if is_surely_within(event, max_bytes):
        return event, ()
    from airflow_provider_sparklineage.event.steps.fitting import Fitting  # few are too large

    fitting = Fitting(event, option, is_late)
    return fitting.within(max_bytes), fitting.dropped


# --- columns --------------------------------------------------------------------------------------
#
# Marquez stores each column of a schema, and each edge between two columns, by SQL statements of
# its own. For an event of moderate size that may take it longer than OpenLineage's client waits. So
# a backend that needs time for each of them gets an event with a limited number. The order of
# dropping is the same as for bytes, without the kinds that are neither columns nor edges.
#
# A column of a schema counts as one, and once more if it is in column lineage; four edges count as
# a column. Datasets do not count, because their names always stay.


_COLUMNS_OPTION = "[sparklineage] max_columns"
_COLUMN = 4
"""The cost of a column, in edges."""


def with_few_columns(event: Event, max_columns: int, last: Event | None = None) -> Event:
    """Leave out columns and edges beyond the limit ``max_columns``; add degradations for these.

    The event of a job that has not run has no column lineage yet. It gets only the columns with
    which the event of the last run was sent: the event at the end of this run will have the same,
    and an output with other columns would be another version of the dataset.

    :param max_columns: the limit; four edges count as one column
    :param last: event of the task's last successful run, with all its columns; None without one
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
    if sum(starmap(_cost_in_edges, facets)) <= max_columns * _COLUMN:
        return event
    from airflow_provider_sparklineage.event.steps.fitting import Fitting  # few are too large

    fitting = Fitting(event, _COLUMNS_OPTION, cost=_cost_in_edges)
    return fitting.within(max_columns * _COLUMN)


def _cost_in_edges(key: str, facet: Any) -> int:
    """Give the cost of a facet's columns and edges; 0 for facets that have neither.

    An edge costs 1, and a column as much as four edges.

    :param key: key of the facet; only ``schema`` and ``columnLineage`` have a cost
    """
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
