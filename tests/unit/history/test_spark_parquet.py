"""Where Spark writes the files of a store, and which of them it reads."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.history.engines.spark.files import hadoop_url, table_of
from airflow_provider_sparklineage.history.engines.spark.pieces import Place
from airflow_provider_sparklineage.history.tables import TABLES

duckdb = pytest.importorskip("duckdb")


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


def test_files_are_read_by_their_names_as_others_in_their_folders_may_be_replaced():
    [runs, *_] = TABLES
    files = ["build/runs/place=0/part-1.parquet", "build/runs.00001.parquet"]
    read = table_of(SimpleNamespace(read=Reader()), "/mnt", runs, files)
    assert read == tuple(f"file:///mnt/{name}" for name in files)


@pytest.mark.parametrize(
    "text",
    [
        "-infinity",
        "infinity",
        "2024-10-15 00:30:00",
        "2024-10-15 00:30:00.5",
        "1969-12-31 23:59:59.999999",
        "0001-01-01 00:00:00",
    ],
)
def test_a_place_is_named_as_duckdb_writes_times(text):
    place = Place.of(3, text)
    assert place.text == text
    if "inf" not in text:
        [[written]] = duckdb.sql(f"SELECT CAST(TIMESTAMP '{text}' AS VARCHAR)").fetchall()
        assert place.text == written


def test_places_of_a_bucket_are_in_the_order_of_time():
    texts = ["-infinity", "0001-01-01 00:00:00", "2024-01-01 00:00:00.25", "infinity"]
    places = [Place.of(0, text) for text in texts]
    assert sorted(places) == places
    assert sorted([Place(1), *places]) == [*places, Place(1)]
