"""The steps in Spark's words: all of them can be put so, and what cannot is refused."""

from __future__ import annotations

import pytest
import sqlglot

from airflow_provider_sparklineage.history.engines.spark.sql import (
    spark_schema,
    spark_selection,
    spark_sql,
    spark_type,
)
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.tables import FACTS, RUNS, TABLES
from airflow_provider_sparklineage.model.exceptions import HistoryError


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
        "SELECT * FROM a QUALIFY ROW_NUMBER() OVER (PARTITION BY b) = 1",
        "SELECT STRING_AGG(a, ',') FROM b",
        "SELECT LIST(a ORDER BY c) FROM b",
        "SELECT LIST_POSITION(a, 'b') FROM c",
        "SELECT FROM WHERE",
    ],
)
def test_what_the_two_do_not_have_in_common_is_refused(sql):
    with pytest.raises(HistoryError, match="cannot be translated"):
        spark_sql(sql)


def test_a_schema_has_every_column_of_its_table():
    for table in (FACTS, *TABLES):
        schema = spark_schema(table.columns)
        assert [part for part in table.columns if f"`{part.name}` " not in schema] == []
    assert spark_selection(RUNS)[0] == "CAST(`run_id` AS STRING) AS `run_id`"
