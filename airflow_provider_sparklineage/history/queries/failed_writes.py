"""Writes that failed or have not ended, and that no successful write has replaced.

Nobody knows what such a write has left: all of its data, a part of it, or nothing. A write of a run
that failed for another reason counts too, e.g. because it wrote another partition than expected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history.queries import sql
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime


class FailedWrite(NamedTuple):
    """The last failed write of a part of a dataset.

    :param extent: the part, as in table ``accesses``
    :param partition: name of the partition; None if the extent is not ``partition``
    :param cell: canonical text of the partition
    :param at: when the run ended, in UTC without a zone; None if that is not known
    :param check_status: the result of the run's check of its partitions; None if there was none
    :param is_ended: whether the run is known to have ended
    """

    dataset: DatasetName
    extent: str
    partition: str | None
    cell: str | None
    run_id: str
    dag_id: str | None
    job: str | None
    at: datetime | None
    check_status: str | None
    is_ended: bool


# Few writes fail. So these are found first, and are joined with the many changes by equality.
def _of(tables: str = "", of_named: str = "") -> str:
    """Give SQL for the rows of :func:`failed_writes`.

    :param tables: tables that the other text needs, each with a comma
    :param of_named: a join that leaves the accesses ``a`` of some datasets alone
    """
    return f"""
WITH {tables}unended AS (
    SELECT run_id FROM runs WHERE state <> 'COMPLETE'
), failed AS (
    SELECT a.namespace, a.name, a.extent, a.cell, max(a.partition) AS partition,
        max_by(a.run_id, (a.accessed_at, a.run_id)) AS run_id, max(a.accessed_at) AS at
    FROM accesses AS a {of_named}
    WHERE a.side = 'write' AND a.extent <> 'none' AND NOT COALESCE(a.is_expected, FALSE)
        AND (COALESCE(a.is_failed, FALSE) OR a.run_id IN (SELECT run_id FROM unended))
    GROUP BY a.namespace, a.name, a.extent, a.cell
), repeated AS (
    SELECT f.namespace, f.name, f.extent, f.cell FROM failed AS f
    JOIN changes AS c ON c.namespace = f.namespace AND c.name = f.name
        AND c.cell IS NOT DISTINCT FROM f.cell AND c.valid_from >= f.at
    UNION
    SELECT f.namespace, f.name, f.extent, f.cell FROM failed AS f
    JOIN changes AS c ON c.namespace = f.namespace AND c.name = f.name
        AND c.extent = 'all' AND c.mode IN {sql.REPLACING} AND c.valid_from >= f.at
)
SELECT f.*, r.dag_id, r.job, r.check_status, r.state <> 'RUNNING' AS is_ended
FROM failed AS f JOIN runs AS r ON r.run_id = f.run_id
ANTI JOIN repeated AS d ON d.namespace = f.namespace AND d.name = f.name AND d.extent = f.extent
    AND d.cell IS NOT DISTINCT FROM f.cell
"""


_OF_ALL = _of()
_OF_NAMED = _of(
    f"named AS ({sql.table_of(*sql.DATASET)}), ",
    "SEMI JOIN named AS n ON n.namespace = a.namespace AND n.name = a.name",
)


def failed_writes(
    history: sql.Rows, datasets: Collection[DatasetName] | None = None
) -> list[FailedWrite]:
    """List the failed writes of some datasets, for each part the last one.

    :param history: an opened store of the history
    :param datasets: None for all
    """
    if datasets is None:
        rows = history.rows(_OF_ALL)
    else:
        rows = history.rows(_OF_NAMED, sql.lists(sql.DATASET, sorted(datasets)))
    return [
        FailedWrite(
            DatasetName(row["namespace"], row["name"]),
            **{key: row[key] for key in FailedWrite._fields if key != "dataset"},
        )
        for row in rows
    ]


def failed_parts(history: sql.Rows, dataset: DatasetName | None = None) -> list[FailedWrite]:
    """List the failed writes of one partition, or of all of a dataset, by runs that have ended.

    :param history: an opened store of the history
    :param dataset: None for all
    """
    found = failed_writes(history, None if dataset is None else [dataset])
    return [one for one in found if one.is_ended and one.extent in {"partition", "all"}]
