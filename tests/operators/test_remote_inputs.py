"""Commands on a bundle as Airflow's configuration has its place."""

import pytest

from airflow_provider_sparklineage.cli import events

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize(
    ("location", "in_spark", "given", "asked"),
    [
        ("s3://aws@lake/lineage", "", "s3://lake/lineage/try", "s3://aws@lake/lineage/try"),
        ("s3://aws@lake/lineage", "", "s3a://lake/lineage/try", "s3://aws@lake/lineage/try"),
        ("s3://aws@lake/lineage", "", "s3://other@lake/lineage/try", "s3://other@lake/lineage/try"),
        ("s3://aws@lake/lineage", "", "s3://lake/lineages/try", "s3://lake/lineages/try"),
        ("s3://aws@a/lineage", "s3a://b", "s3a://b/try", "s3://aws@a/lineage/try"),
        ("hdfs://web@nn:8020/l", "", "hdfs://nn:8020/l/try", "hdfs://web@nn:8020/l/try"),
        ("abfs://wasb@lake/l", "", "abfss://lake/l/try", "abfss://lake/l/try"),
        ("", "", "s3://lake/lineage/try", "s3://lake/lineage/try"),
        ("/var/captures", "", "s3://lake/lineage/try", "s3://lake/lineage/try"),
    ],
    ids=[
        *("of-a-log", "of-a-driver-s-log", "other-connection", "other-folder", "given-for-spark"),
        *("hdfs", "no-name-for-spark", "nothing-configured", "folder"),
    ],
)
def test_a_url_of_a_log_is_asked_by_the_connection_of_the_capture_location(
    monkeypatch, location, in_spark, given, asked
):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", location)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION_IN_SPARK", in_spark)
    assert events._as_configured(given) == asked
