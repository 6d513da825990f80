"""Merges the facts of new events into the tables of a target, on Spark.

:mod:`..affected` tells which rows are replaced, and the steps give the rows that replace them. What
is written anew is up to the target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

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
from airflow_provider_sparklineage.history.engines.spark.sql import spark_selection, spark_sql
from airflow_provider_sparklineage.history.steps import STEPS, Step
from airflow_provider_sparklineage.history.tables import ACCESSES, RUNS, TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_provider_sparklineage.history.tables import Table


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
