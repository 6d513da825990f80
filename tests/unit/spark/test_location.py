"""What Spark calls a place that Airflow knows by another URL."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.spark.capture.bundle import in_spark

ACCOUNT = "abfss://lake@account.dfs.core.windows.net/lineage"


@pytest.mark.parametrize(
    ("url", "given", "expected"),
    [
        ("s3://aws_default@lake/lineage", "", "s3a://lake/lineage"),
        ("hdfs://webhdfs_default@namenode:8020/lineage", "", "hdfs://namenode:8020/lineage"),
        ("gs://lake/lineage", "", "gs://lake/lineage"),
        ("file:///mnt/lineage", "", "file:///mnt/lineage"),
        ("abfs://azure_default@lake/lineage", ACCOUNT, ACCOUNT),
    ],
    ids=["S3", "HDFS", "GCS", "a mount", "Azure"],
)
def test_of_a_place_and_of_a_folder_in_it(url, given, expected):
    assert in_spark(url, given) == expected
    assert in_spark(url, given, "shop.revenue-try1-abcdefgh") == (
        f"{expected}/shop.revenue-try1-abcdefgh"
    )


def test_what_cannot_be_derived_is_to_be_given():
    with pytest.raises(SettingsError, match="capture_location_in_spark"):
        in_spark("abfs://azure_default@lake/lineage", "", "shop.revenue-try1-abcdefgh")
