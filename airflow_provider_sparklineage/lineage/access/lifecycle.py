"""Whether a write replaced all that a dataset held, by what the listener reports of its action."""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.application.repairs import (
    replaces_v2_table,
    wraps_a_write,
)
from airflow_provider_sparklineage.lineage.columns import each_once
from airflow_provider_sparklineage.model.datasets import is_database

if TYPE_CHECKING:
    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
    from airflow_provider_sparklineage.lineage.columns import ColumnLineage

_PARTITION_CLAUSE = re.compile(r"\bPARTITION\s*\(", re.IGNORECASE)
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_SAVE = "execute_save_into_data_source_command"
# Writes of Spark's file sources, alone and under adaptive execution. Others (Delta, Iceberg, Hive)
# report OVERWRITE of overwrites by predicate or partition too, and CREATE of appends.
_FILE_WRITES = ("execute_insert_into_hadoop_fs_relation_command", "adaptive_spark_plan")


def overwrites_everything(action: Action, output: ActionDataset, reported: ColumnLineage) -> bool:
    """Whether a write replaced all that the dataset held; of one to locations, all that those held.

    The listener reports OVERWRITE of partition overwrites too, so it counts only if nothing points
    at a part:

    - no PARTITION clause, no dynamic overwrite mode when the write began;
    - no sort over all of the write, which is what Spark adds to a write by ``partitionBy``;
    - no column without sources: Spark leaves that sort out where the partition columns are
      literals, and a writer's own ``partitionOverwriteMode`` option is in no event.

    :param reported: the write's column lineage as the listener reported it
    """
    if replaces_v2_table(action):
        return True
    if output.lifecycle != "OVERWRITE":
        return False
    if is_database(output.name) and _SAVE in action.job_name:
        return True  # Spark drops or truncates the table
    return (
        (any(node in action.job_name for node in _FILE_WRITES) or wraps_a_write(action))
        and not _PARTITION_CLAUSE.search(action.sql)
        and not any(v.lower() == "dynamic" for v in action.properties.get(_OVERWRITE_MODE, ()))
        and not _writes_unsorted(action)
        and not _sorts(reported)
        and bool(output.column_names)
        and reported.fields.keys() >= set(output.column_names)
    )


def _sorts(reported: ColumnLineage) -> bool:
    every = {id(ts): ts for edges in each_once(reported) for ts in edges.values()}
    return any(t.subtype == "SORT" for t in chain.from_iterable(every.values()))


def _writes_unsorted(action: Action) -> bool:
    """Whether the session is set up to write partitions without sorting (Spark's V1Writes)."""
    writers = action.properties.get("spark.sql.maxConcurrentOutputFileWriters", ())
    planned = action.properties.get("spark.sql.optimizer.plannedWrite.enabled", ())
    return any(v not in ("", "0") for v in writers) or any(v.lower() == "false" for v in planned)
