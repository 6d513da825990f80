"""Where Spark writes the files of a store."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.history.engines.spark import hadoop_url


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
