"""The page's search for columns, and its graph of them.

A user sees the columns that visible runs name; the graph ends at runs that the user may not see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history.queries import sql
from airflow_provider_sparklineage.history.queries.column_graph import (
    LATEST_RUNS,
    MATCHING,
    Column,
    ColumnGraph,
)
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.plugins.history import permissions
from airflow_provider_sparklineage.plugins.history.answers import catalog_of, named
from airflow_provider_sparklineage.plugins.history.opened import cache_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.plugins.history.answers import Selection
    from airflow_provider_sparklineage.plugins.history.opened import OpenedHistory
    from airflow_provider_sparklineage.plugins.history.permissions import Visibility

MAX_FOUND = 50
"""The most columns that a search finds."""


def search(text: str, history: OpenedHistory, visibility: Visibility) -> dict[str, Any]:
    """Find columns by words: the last has to be in the column's name, the others there or before.

    The columns are those that the latest run of each job named. Those of datasets that jobs
    accessed which the user may not see are left out: such a job may be the only one that names the
    column.

    :return: ``columns``, at most :data:`MAX_FOUND`, each with ``namespace``, ``name``, ``short``
        and ``column``; and ``more``, the number of the others
    """
    words = text.casefold().replace(".", " ").split()
    if not words:
        return {"columns": [], "more": 0}
    catalog = catalog_of(history)
    names = catalog.names(visibility)
    latest = cache_of(history).answer("latest runs", lambda: _latest_runs(history))
    rows = history.rows(MATCHING, {**latest, "first": words[0], "last": words[-1]})
    found = [
        {**named(dataset._asdict(), names), "column": row["col"]}
        for row in rows
        if (dataset := DatasetName(row["namespace"], row["name"])) in names
        and all(word in f"{'/'.join(dataset)}.{row['col']}".casefold() for word in words)
        and catalog.is_whole(dataset, visibility)
    ]
    return {"columns": found[:MAX_FOUND], "more": max(0, len(found) - MAX_FOUND)}


def _latest_runs(history: OpenedHistory) -> dict[str, list[Any]]:
    return sql.lists(sql.RUN, [tuple(row.values()) for row in history.rows(LATEST_RUNS)])


def column_graph(
    wanted: Selection, history: OpenedHistory, visibility: Visibility
) -> dict[str, Any]:
    """Give the columns of which a column was made, and the columns that were made of it.

    :return: ``edges``, each with the id of its ``run``, the ``side`` of the question on which it
        is, its ``source`` and its ``target`` (a dataset and a ``column``, which is None for a
        condition on all columns), and ``type``, ``subtype``, ``masking`` and ``description``;
        ``runs`` by id; ``parts``: for each run, side and dataset the number of ``partitions``, and
        the name of the first ``partition``; the ``columns`` of the dataset; ``hidden``, the number
        of runs that the user may not see; and ``is_cut``, whether there are more edges
    :raise HistoryError: if the user may not see the partition or the column
    """
    permissions.checked(*wanted[:3], history, visibility)
    graph = ColumnGraph(history, visibility.sees)
    writers, readers = graph.begin(wanted.dataset, wanted.partition)
    if wanted.column:
        column = Column(wanted.dataset, wanted.column)
        graph.follow_up({column: writers}, wanted.depth)
        graph.follow_down({column: readers}, wanted.depth)
    names = catalog_of(history).names(visibility)
    shown = {one["run"] for one in graph.edges}
    return {
        "short": names.get(wanted.dataset, wanted.dataset.name),
        "edges": [_shown_edge(edge, names) for edge in graph.edges],
        "runs": {
            run_id: permissions.plain(run) for run_id, run in graph.runs.items() if run_id in shown
        },
        "parts": graph.parts(shown),
        "columns": graph.columns_of(wanted.dataset, writers, readers),
        "hidden": len(graph.hidden),
        "is_cut": graph.is_cut,
    }


def _shown_edge(edge: dict[str, Any], names: Mapping[DatasetName, str]) -> dict[str, Any]:
    ends = {
        end: {**named(edge[end]._asdict(), names), "column": edge[f"{end}_column"]}
        for end in ("source", "target")
    }
    return {key: edge[key] for key in _KEYS_OF_EDGE} | ends


_KEYS_OF_EDGE = ("run", "side", "type", "subtype", "masking", "description")
