"""Builds the tables on Spark, with the same steps and the same files as DuckDB.

A job for spark-submit (:mod:`airflow_provider_sparklineage.history.spark_jobs.build_history`) calls
this module. The passes lead from events to tables; each reads the files that the pass before wrote.

1. texts → facts (:mod:`.reading`);
2. facts that are new to the target → one more part of the facts;
3. the new facts are merged into the tables (:mod:`.merging`); or, if that is not possible, all
   facts → the tables, step by step.

So no pass runs twice, and a lost executor costs only its current tasks. Readers of a store see
the new tables only when the target publishes them. A target is a store (:class:`.files.Parquet`) or
a namespace of an Iceberg catalog (:class:`.iceberg.Iceberg`). A new kind of target needs the
methods of :class:`.merging.Target`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.history.engines.spark.merging import merge
from airflow_provider_sparklineage.history.engines.spark.reading import SKIPPED
from airflow_provider_sparklineage.history.engines.spark.sql import spark_selection, spark_sql
from airflow_provider_sparklineage.history.facts import Reason
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.tables import FACTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.engines.spark.merging import Target

# Of several files with the same event, the first by name is used: else builds would differ.
_NEW = """
SELECT {columns}
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY event_id ORDER BY source) AS place
  FROM read_facts
  WHERE skipped IS NULL
) AS r
WHERE place = 1 AND NOT EXISTS (SELECT 1 FROM facts AS f WHERE f.event_id = r.event_id)
"""


class Counts(NamedTuple):
    """The result of a build.

    :param events: number of documents in all sources, including those that are not events
    :param new: number of events that the target did not have
    :param skipped: number of texts and files without facts, by reason
    :param rows: number of rows that each table has now; empty if the target has not changed
    """

    events: int
    new: int
    skipped: Mapping[str, int]
    rows: Mapping[str, int]


def build(session: SparkSession, read: DataFrame, target: Target) -> Counts:
    """Add the facts of new events to a target, and merge them into its tables.

    An event is new if :meth:`.merging.Target.facts` does not have it. An event that several files
    have is added once. The tables are made anew if they cannot be merged into.

    :param session: a session from :func:`.sql.session_of`
    :param read: the rows from :func:`.reading.facts`
    :return: the numbers of documents, new events, skipped texts, and rows of the tables
    """
    read = read.persist()
    skipped = {r[SKIPPED]: r["count"] for r in read.groupBy(SKIPPED).count().collect()}
    accepted = skipped.pop(None, 0)
    new = _new(session, read, target).persist()
    count = new.count()
    is_merging = target.is_mergeable(count)
    if count:
        target.add(new)
    for done in (new, read):
        done.unpersist()
    rows: Mapping[str, int] = {}
    if not is_merging:
        rows = _tables(session, target)
    elif count:
        rows = merge(session, target)
    refused = sum(skipped.get(reason, 0) for reason in Reason)
    return Counts(accepted + refused, count, skipped, rows)


def _new(session: SparkSession, read: DataFrame, target: Target) -> DataFrame:
    target.not_forgotten(read).createOrReplaceTempView("read_facts")
    target.facts().createOrReplaceTempView("facts")
    columns = ", ".join(f"`{column.name}`" for column in FACTS.columns)
    return session.sql(_NEW.format(columns=columns))


def _tables(session: SparkSession, target: Target) -> dict[str, int]:
    """Make all tables anew; give the number of rows of each."""
    target.facts().createOrReplaceTempView("facts")
    counts, between = {}, []
    for step in STEPS:
        rows = session.sql(spark_sql(step.sql))
        if step.table is None:
            rows = rows.persist()
            between.append(rows)
        else:
            rows = target.save(step.table, rows.selectExpr(*spark_selection(step.table)))
            counts[step.name] = rows.count()
        rows.createOrReplaceTempView(step.name)
    for rows in between:
        rows.unpersist()
    return counts
