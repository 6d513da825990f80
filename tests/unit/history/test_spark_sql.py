"""The steps in Spark's words: all of them can be put so, and what cannot is refused."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
import sqlglot

from airflow_provider_sparklineage.history import queries as package
from airflow_provider_sparklineage.history.engines.affected import (
    ACCESSED,
    AFFECTED,
    NAMED,
    RAN,
    new_rows,
)
from airflow_provider_sparklineage.history.engines.layouts import starts
from airflow_provider_sparklineage.history.engines.spark.sql import (
    spark_schema,
    spark_selection,
    spark_sql,
    spark_type,
)
from airflow_provider_sparklineage.history.queries.sql import table_of
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.tables import FACTS, RUNS, TABLES
from airflow_provider_sparklineage.model.exceptions import HistoryError

VIEWS = (AFFECTED, *NAMED, *ACCESSED, *RAN)
MERGING = (
    *(pytest.param(view.sql, id=view.name) for view in VIEWS),
    *(pytest.param(new_rows(table), id=f"new {table.name}") for table in TABLES),
    pytest.param(starts(8), id="buckets"),
)


@pytest.mark.parametrize("sql", MERGING)
def test_each_query_of_a_merge_can_be_put_in_words_of_spark(sql):
    assert sqlglot.parse_one(spark_sql(sql), read="spark")


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_every_step_can_be_put_in_words_of_spark(step):
    assert sqlglot.parse_one(spark_sql(step.sql), read="spark")


def test_elements_of_a_list_become_rows_and_nulls_come_last_as_in_duckdb():
    sql = spark_sql('SELECT a."partition" FROM facts AS f, UNNEST(f.accesses) AS t(a) ORDER BY 1')
    assert "LATERAL VIEW EXPLODE(`f`.`accesses`) t AS `a`" in sql
    assert sql.endswith("ORDER BY 1 NULLS LAST")


def test_a_time_has_no_zone_in_spark_either():
    assert spark_type("TIMESTAMP") == "TIMESTAMP_NTZ"
    assert "AS TIMESTAMP_NTZ" in spark_sql("SELECT CAST(NULL AS TIMESTAMP)")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ROW_NUMBER() OVER (w ORDER BY c) FROM a WINDOW w AS (PARTITION BY b)",
        "SELECT * FROM a QUALIFY ROW_NUMBER() OVER (PARTITION BY b) = 1",
        "SELECT STRING_AGG(a, ',') FROM b",
        "SELECT LIST(a) FROM b",
        "SELECT LIST(a ORDER BY c DESC) FROM b",
        "SELECT * EXCLUDE (a) FROM b",
        "SELECT * RENAME (a AS c) FROM b",
        "SELECT UNNEST($a) AS a, UNNEST($b) AS b, c FROM d",
        "SELECT LIST_POSITION(a, 'b') FROM c",
        "SELECT FROM WHERE",
    ],
)
def test_what_the_two_do_not_have_in_common_is_refused(sql):
    with pytest.raises(HistoryError, match="cannot be translated"):
        spark_sql(sql)


def test_lists_that_are_given_become_rows_side_by_side():
    sql = spark_sql(f"SELECT * FROM ({table_of('run_id', 'ended')})", {"run_id": "F({})"})
    assert "INLINE(ARRAYS_ZIP(CAST(F(:run_id) AS ARRAY<STRING>), " in sql
    assert "CAST(:ended AS ARRAY<TIMESTAMP_NTZ>))) AS (`run_id`, `ended`)" in sql


def test_a_list_is_sorted_as_in_duckdb():
    assert "ARRAY_SORT(COLLECT_LIST(`a`))" in spark_sql("SELECT LIST_SORT(LIST(a)) FROM b")


def queries():
    """Find all queries that modules have as text."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for name, text in vars(importlib.import_module(module.name)).items():
            if not name.startswith("__") and isinstance(text, str) and "SELECT" in text:
                yield pytest.param(text, id=f"{module.name.rpartition('queries.')[2]}.{name}")


@pytest.mark.parametrize("sql", [*queries()])
def test_every_query_can_be_put_in_words_of_spark(sql):
    assert sqlglot.parse_one(spark_sql(sql), read="spark")


def test_a_schema_has_every_column_of_its_table():
    for table in (FACTS, *TABLES):
        schema = spark_schema(table.columns)
        assert [part for part in table.columns if f"`{part.name}` " not in schema] == []
    assert spark_selection(RUNS)[0] == "CAST(`run_id` AS STRING) AS `run_id`"
