"""What the application had written when an action began: internal reads, and their sources.

A read is *internal* only with evidence that nothing but this application's own data was read.
Without observed partitions there are two kinds of it:

- *lifecycle*: an earlier action of the application overwrote or created the whole dataset, and
  nothing says that it wrote only a part of it (:func:`overwrites_whole`);
- *size*: the dataset held, byte for byte, as much as the application had written into it.

A dataset that held more than that held something older, whatever its lifecycle. Everything without
evidence stays an input, and its columns are composed through all the same, so that nothing true is
lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.lineage.columns import ColumnLineage, Origin, unite
from airflow_provider_sparklineage.lineage.repairs import makes_table_by_select, replaces_v2_table

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from airflow_provider_sparklineage.datasets import DatasetName
    from airflow_provider_sparklineage.lineage.application import Action, ActionDataset


@dataclass(frozen=True)
class Write:
    """One write of a complete action.

    :param lineage: its column lineage, with intermediates resolved
    :param whole: whether it proves that the dataset holds nothing older
    :param size: bytes written; None where nobody said
    """

    ended: datetime
    lineage: ColumnLineage
    whole: bool
    size: int | None = None


class WriteHistory:
    """The writes of an application so far, asked at the start of each action."""

    def __init__(self) -> None:
        self._writes: dict[DatasetName, list[Write]] = {}

    def add(self, dataset: DatasetName, write: Write) -> None:
        """Note a write."""
        self._writes.setdefault(dataset, []).append(write)

    def origin(
        self, dataset: DatasetName, before: datetime | None = None, size: int | None = None
    ) -> Origin | None:
        """Tell what the application had put into a dataset by then (None: by its end).

        Only writes that had ended count: actions that run at the same time are not chained. A whole
        overwrite replaces what was written before it, anything else adds to it.

        :param size: bytes that the dataset held when it was read: as many as were written here
            prove that nothing older was in it, more prove that something was; None proves nothing
        :return: None if the application had written nothing into it
        """
        lineage: ColumnLineage | None = None
        internal = False
        written: int | None = 0
        for write in sorted(self._writes.get(dataset, ()), key=lambda w: w.ended):
            if before is not None and write.ended > before:
                continue
            fresh = write.whole or lineage is None
            lineage = write.lineage if fresh or lineage is None else unite(lineage, write.lineage)
            written = _sum(0 if write.whole else written, write.size)
            internal = internal or write.whole
        if lineage is None:
            return None
        if size and written:
            internal = size == written or (internal and size < written)
        return Origin(lineage, internal)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


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
        and not any(v.lower() == "dynamic" for v in action.properties.get(_OVERWRITE_MODE, ()))
        and not any(t.subtype == "SORT" for ts in lineage.dataset.values() for t in ts)
        and bool(columns)
        and all(name in lineage.fields for name in columns)
    )
