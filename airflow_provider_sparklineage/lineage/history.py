"""What the application had written when an action began: internal reads, and their sources.

A read is *internal* only with evidence that nothing but this application's own data was read.
Without observed partitions the evidence is the lifecycle grade: some earlier action of the
application overwrote or created the whole dataset, and nothing says that it wrote only a part of
it. Everything else stays an input, and its columns are composed through all the same, so that
nothing true is lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.lineage.application import (
    makes_table_by_select,
    replaces_v2_table,
)
from airflow_provider_sparklineage.lineage.columns import ColumnLineage, Origin, unite

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from airflow_provider_sparklineage.datasets import DatasetName
    from airflow_provider_sparklineage.lineage.application import Action, ActionDataset


@dataclass(frozen=True)
class _Write:
    ended: datetime
    lineage: ColumnLineage
    whole: bool
    """Whether this write proves that the dataset holds nothing older."""


class WriteHistory:
    """The writes of an application so far, asked at the start of each action."""

    def __init__(self) -> None:
        self._writes: dict[DatasetName, list[_Write]] = {}

    def add(
        self, action: Action, dataset: DatasetName, composed: ColumnLineage, *, whole: bool
    ) -> None:
        """Note the write of a complete action.

        :param composed: the write's column lineage with intermediates resolved
        :param whole: whether it proves that the dataset holds nothing older
            (:func:`overwrites_whole`)
        """
        if action.ended is not None:
            write = _Write(action.ended, composed, whole)
            self._writes.setdefault(dataset, []).append(write)

    def origin(self, dataset: DatasetName, before: datetime | None = None) -> Origin | None:
        """Tell what the application had put into a dataset by then (None: by its end), if anything.

        Only writes that had ended count: actions that run at the same time are not chained. A whole
        overwrite replaces what was written before it, anything else adds to it.
        """
        lineage: ColumnLineage | None = None
        internal = False
        for write in sorted(self._writes.get(dataset, ()), key=lambda w: w.ended):
            if before is not None and write.ended > before:
                continue
            fresh = write.whole or lineage is None
            lineage = write.lineage if fresh or lineage is None else unite(lineage, write.lineage)
            internal = internal or write.whole
        return None if lineage is None else Origin(lineage, internal)


class _Lifecycle(msgspec.Struct):
    change: str = msgspec.field(name="lifecycleStateChange", default="")


_PARTITION_CLAUSE = re.compile(r"\bPARTITION\s*\(", re.IGNORECASE)
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
# Writes of Spark's file sources, alone and under adaptive execution. Others (Delta, Iceberg, Hive)
# say OVERWRITE of overwrites by predicate or partition too, and CREATE of appends.
_FILE_WRITES = ("execute_insert_into_hadoop_fs_relation_command", "adaptive_spark_plan")


def overwrites_whole(
    action: Action, output: ActionDataset, lineage: ColumnLineage, columns: Collection[str]
) -> bool:
    """Whether a write replaced all that the dataset held, by the lifecycle grade of evidence.

    The listener says OVERWRITE of partition overwrites too, so it counts only if nothing points at
    a part:

    - no partition location, no PARTITION clause, no dynamic overwrite mode when the write began;
    - no sort over the whole write, which is what Spark adds to a write by ``partitionBy``;
    - no column without sources: Spark leaves that sort out where the partition columns are
      literals, and a writer's own ``partitionOverwriteMode`` option is in no event.

    :param lineage: the write's column lineage as the listener said it
    :param columns: names of the columns written
    """
    if replaces_v2_table(action):
        return True
    facet = output.facets.get("lifecycleStateChange")
    if facet is None or msgspec.json.decode(facet, type=_Lifecycle).change != "OVERWRITE":
        return False
    return (
        (action.label in _FILE_WRITES or makes_table_by_select(action))
        and output.locations is None
        and not _PARTITION_CLAUSE.search(action.sql)
        and action.properties.get(_OVERWRITE_MODE, "").lower() != "dynamic"
        and not any(t.subtype == "SORT" for ts in lineage.dataset.values() for t in ts)
        and bool(columns)
        and all(name in lineage.fields for name in columns)
    )
