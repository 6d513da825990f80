"""Where Spark writes the files of a store, and which of them it reads."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.history.engines.spark.files import hadoop_url, table_of
from airflow_provider_sparklineage.history.tables import TABLES


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("/mnt/history", "file:///mnt/history"),
        ("file:///mnt/a%20b/", "file:///mnt/a b"),
        ("s3://aws_default@lake/history", "s3a://lake/history"),
        ("hdfs://name:8020/history/", "hdfs://name:8020/history"),
        ("abfss://container@account.dfs.core.windows.net/h",
         "abfss://container@account.dfs.core.windows.net/h"),
    ],
)  # fmt: skip
def test_spark_finds_the_store_that_airflow_names(url, expected):
    assert hadoop_url(url) == expected


class Reader:
    """Gives the paths that Spark would read, in place of their rows."""

    def schema(self, _):
        return self

    def parquet(self, *paths):
        return paths


@pytest.mark.parametrize(
    ("files", "paths"),
    [
        (["build/runs/part-1.parquet", "build/runs/part-2.parquet"], ("file:///mnt/build/runs",)),
        (["build/runs.parquet"], ("file:///mnt/build/runs.parquet",)),
    ],
    ids=["built by Spark", "built by DuckDB, whose tables are in one folder"],
)
def test_only_files_of_the_table_are_read(files, paths):
    runs = next(table for table in TABLES if table.name == "runs")
    assert table_of(SimpleNamespace(read=Reader()), "/mnt", runs, files) == paths
