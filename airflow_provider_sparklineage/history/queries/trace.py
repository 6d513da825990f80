"""What fed a partition, or a column of it, hop by hop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.queries.columns import check_column, is_written
from airflow_provider_sparklineage.history.queries.content import content
from airflow_provider_sparklineage.history.queries.datasets import cell_of
from airflow_provider_sparklineage.history.queries.upstream import sources
from airflow_provider_sparklineage.history.queries.walk import Link, Node, breadth_first, hops

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.answers import Hop
    from airflow_provider_sparklineage.history.queries.rows import Rows
    from airflow_provider_sparklineage.model.datasets import DatasetName


def trace(
    history: Rows,
    dataset: DatasetName,
    partition: str | None = None,
    column: str | None = None,
    as_of: datetime | None = None,
    depth: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    is_direct: bool = False,
) -> list[Hop]:
    """Give what a partition was made of, from its own versions (depth 0) on.

    A run that wrote a version found what was there when it started: the hops of the next depth. Of
    a column these are the columns that it comes from, with conditions of all columns. All that a
    run read feeds all that it wrote, where no column says otherwise.

    :param partition: None: all of them; see :func:`.cell_of`
    :param as_of: what was there then; None: what is there
    :param depth: of the last hops; None: as deep as it goes
    :param progress: is called with each depth and the number of hops until then
    :param is_direct: of a column, follow only columns whose values became its values, and not those
        that decide which rows there are: filters, joins, groups, sorting
    :raises HistoryError: there is no such partition or column, or there are too many hops
    """
    cell = cell_of(history, dataset, partition)
    found = breadth_first(
        _versions(history, dataset, cell, column, as_of),
        lambda level: sources(history, level, is_of_column=column is not None, is_direct=is_direct),
        depth,
        progress=progress,
    )
    if column is not None:
        own = [(node.run_id, one.at) for node, one in found.items() if one.depth == 0]
        if not is_written(history, dataset, column, own):
            check_column(history, dataset, column)
    return hops(history, found)


def _versions(
    history: Rows,
    dataset: DatasetName,
    cell: str | None,
    column: str | None,
    as_of: datetime | None,
) -> list[Link]:
    return [
        Link(
            Node(*dataset, row["cell"], column, row["run_id"]), row["valid_from"], row["is_certain"]
        )
        for row in content(history, dataset, cell, as_of)
    ]
