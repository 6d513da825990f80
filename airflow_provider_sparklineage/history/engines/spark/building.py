"""Three passes from events to tables, each of which goes on from files that the one before wrote.

1. texts → facts (:mod:`.reading`);
2. facts that are not there yet → one more part of the facts;
3. all facts → the tables, step by step.

So nothing is worked out twice, and an executor that is lost costs what it was at. Nobody sees any
of it before the target publishes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from airflow_provider_sparklineage.history.engines.spark.reading import SKIPPED
from airflow_provider_sparklineage.history.engines.spark.sql import (
    spark_schema,
    spark_selection,
    spark_sql,
)
from airflow_provider_sparklineage.history.facts import Reason
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.tables import FACTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.tables import Table

SESSION = {
    # Times have no zone; whatever of Spark's knows one shall not move them.
    "spark.sql.session.timeZone": "UTC",
    # The default of Spark 4, and DuckDB's way; 3.5 would give null where these two raise.
    "spark.sql.ansi.enabled": "true",
}

# Of one event in several files the first by name, or the tables would differ from build to build.
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
    """What a build did.

    :param events: documents of all sources, those among them that were no event
    :param new: events that were not there before
    :param skipped: what has no facts, by reason
    :param rows: how many rows each table has now
    """

    events: int
    new: int
    skipped: Mapping[str, int]
    rows: Mapping[str, int]


class Target(Protocol):
    """Where facts and tables are kept."""

    def facts(self) -> DataFrame | None:
        """Give all facts that are kept, those just added too; None while there are none."""

    def add(self, facts: DataFrame) -> None:
        """Keep more facts."""

    def save(self, table: Table, rows: DataFrame) -> DataFrame:
        """Keep the rows of a table, in its order; give them as they are kept."""


def session_of(session: SparkSession) -> SparkSession:
    """Give a session of the same application whose settings and views are the build's own."""
    own = session.newSession()
    for key, value in SESSION.items():
        own.conf.set(key, value)
    return own


def build(session: SparkSession, read: DataFrame, target: Target) -> Counts:
    """Add what was read to the facts of a target, and make its tables anew.

    :param session: of :func:`session_of`
    :param read: what :func:`.reading.facts` gives
    """
    read = read.persist()
    skipped = {r[SKIPPED]: r["count"] for r in read.groupBy(SKIPPED).count().collect()}
    accepted = skipped.pop(None, 0)
    new = _new(session, read, target.facts()).persist()
    count = new.count()
    if count:
        target.add(new)
    for done in (new, read):
        done.unpersist()
    rows = _tables(session, target)
    refused = sum(skipped.get(reason, 0) for reason in Reason)
    return Counts(accepted + refused, count, skipped, rows)


def _new(session: SparkSession, read: DataFrame, known: DataFrame | None) -> DataFrame:
    if known is None:
        known = _no_facts(session)
    read.createOrReplaceTempView("read_facts")
    known.createOrReplaceTempView("facts")
    columns = ", ".join(f"`{column.name}`" for column in FACTS.columns)
    return session.sql(_NEW.format(columns=columns))


def _tables(session: SparkSession, target: Target) -> dict[str, int]:
    facts = target.facts()
    (_no_facts(session) if facts is None else facts).createOrReplaceTempView("facts")
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


def _no_facts(session: SparkSession) -> DataFrame:
    return session.createDataFrame([], spark_schema(FACTS.columns))
