"""Builds the tables on Spark, with the same steps and the same files as DuckDB.

A job for spark-submit (:mod:`airflow_provider_sparklineage.history.spark_jobs.build_history`) calls
this module. The passes lead from events to tables; each reads the files that the pass before wrote.

1. texts → facts (:mod:`.reading`);
2. facts that are new to the target → one more part of the facts;
3. the new facts are merged into the tables (:func:`merge`); or, if that is not possible, all facts
   become the tables, step by step.

So no pass runs twice, and a lost executor costs only its current tasks. Readers of a store see
the new tables only when the target publishes them. A target is a store (:class:`.files.Parquet`) or
tables of Iceberg or Delta Lake (:mod:`.lakehouse`). A new kind of target needs the methods of
:class:`Target`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from airflow_provider_sparklineage.history.engines.affected import (
    ACCESSED,
    AFFECTED,
    BY_RUN,
    NAMED,
    OF_RUNS,
    RAN,
    RENAMED,
    View,
)
from airflow_provider_sparklineage.history.engines.spark.reading import SKIPPED
from airflow_provider_sparklineage.history.engines.spark.sql import (
    on_disk,
    spark_selection,
    spark_sql,
)
from airflow_provider_sparklineage.history.facts import Reason
from airflow_provider_sparklineage.history.steps import STEPS, Step
from airflow_provider_sparklineage.history.tables import ACCESSES, FACTS, RUNS, TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.tables import Table

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


class Target(Protocol):
    """A place to which a build writes facts and tables."""

    def facts(self) -> DataFrame:
        """Give all facts of the target, including those just added."""

    def not_forgotten(self, facts: DataFrame) -> DataFrame:
        """Give those of some facts that are not of events which the target has forgotten."""

    def add(self, facts: DataFrame) -> None:
        """Add facts to the target."""

    def save(self, table: Table, rows: DataFrame) -> DataFrame:
        """Write all rows of a table anew, and give the rows as they are read from the target."""

    def is_mergeable(self, new: int) -> bool:
        """Whether so many new events can be merged into the tables, or these must be made anew."""

    def added(self) -> DataFrame:
        """Give the facts that this build has added."""

    def older(self, affected: DataFrame) -> DataFrame:
        """Give the facts that were there before, at least those of the affected runs.

        :param affected: rows with the ``run_id`` of the affected runs
        """

    def stored(self, table: Table) -> DataFrame:
        """Give the rows of a table before, at least those of the datasets in ``datasets``."""

    def replace(self, table: Table) -> int:
        """Replace rows of a table by new rows; give the number of all rows that it has then.

        The views that :mod:`..affected` describes are there. Its functions tell which rows of the
        table are replaced, and by which rows.
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

    An event is new if :meth:`Target.facts` does not have it. An event that several files
    have is added once. The tables are made anew if they cannot be merged into.

    :param session: a session from :func:`.sql.session_of`
    :param read: the rows from :func:`.reading.facts`
    :return: the numbers of documents, new events, skipped texts, and rows of the tables
    """
    read = on_disk(read)
    skipped = {r[SKIPPED]: r["count"] for r in read.groupBy(SKIPPED).count().collect()}
    accepted = skipped.pop(None, 0)
    new = on_disk(_new(session, read, target))
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
            rows = on_disk(rows)
            between.append(rows)
        else:
            rows = target.save(step.table, rows.selectExpr(*spark_selection(step.table)))
            counts[step.name] = rows.count()
        rows.createOrReplaceTempView(step.name)
    for rows in between:
        rows.unpersist()
    return counts


# --- merging --------------------------------------------------------------------------------------
#
# :mod:`..affected` tells which rows are replaced, and the steps give the rows that replace them.
# What is written anew is up to the target.


# Spark derives conditions from those that rows of a checkpoint fulfil, and fails where their
# columns have been renamed ("key not found").
_CONSTRAINTS = "spark.sql.constraintPropagation.enabled", "false"


def merge(session: SparkSession, target: Target) -> dict[str, int]:
    """Merge the facts that :meth:`Target.add` has added; give the number of rows of each table."""
    session.conf.set(*_CONSTRAINTS)
    views = _Views(session)
    views.give("fresh_facts", target.added())
    affected = views.create(AFFECTED)
    older = target.older(affected).join(affected, "run_id", "left_semi")
    views.keep("facts", target.added().unionByName(older.select(*target.added().columns)))
    for step in STEPS:
        if step.name in OF_RUNS:
            views.run(step, RENAMED.get(step.name))
    views.create(*NAMED)
    views.give("stored_accesses", target.stored(ACCESSES))
    views.create(*ACCESSED)
    views.give("stored_runs", target.stored(RUNS))
    views.create(*RAN)
    for step in STEPS:
        if step.name not in OF_RUNS and step.table not in BY_RUN:
            views.run(step)
    return {table.name: target.replace(table) for table in TABLES}


class _Views:
    """The views of a merge.

    Rows that several queries read are computed once, and stay on the executors. A plan that
    contained those of all views before would take Spark minutes to optimize, so that
    ``persist`` is not enough. If an executor is lost, the build fails, and has published nothing.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def give(self, name: str, rows: DataFrame) -> None:
        rows.createOrReplaceTempView(name)

    def keep(self, name: str, rows: DataFrame) -> DataFrame:
        kept: DataFrame = rows.localCheckpoint()
        self.give(name, kept)
        return kept

    def create(self, *views: View) -> DataFrame:
        """Create views; give the rows of the last one."""
        for name, query, is_kept in views:
            rows = self._session.sql(spark_sql(query))
            if is_kept:
                rows = self.keep(name, rows)
            else:
                self.give(name, rows)
        return rows

    def run(self, step: Step, renamed: str | None = None) -> None:
        """Create a view of the rows of a step.

        :param renamed: a second name of the view, under which the rows are still there when other
            rows have the name of the step
        """
        rows = self._session.sql(spark_sql(step.sql))
        if step.table:
            rows = rows.selectExpr(*spark_selection(step.table))
        rows = self.keep(step.name, rows)
        if renamed:
            self.give(renamed, rows)
