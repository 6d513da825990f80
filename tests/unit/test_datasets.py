"""Names must equal the listener's, or what Airflow knows and what Spark reports do not meet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.datasets import DatasetName, from_uri, trim


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        pytest.param("/lake/orders", ("file", "/lake/orders"), id="absolute path"),
        pytest.param("/lake//orders/", ("file", "/lake/orders"), id="slashes"),
        pytest.param("file:/lake/orders", ("file", "/lake/orders"), id="Hadoop's one slash"),
        pytest.param("file:///lake/orders", ("file", "/lake/orders"), id="three slashes"),
        pytest.param("file:///lake/a%20b", ("file", "/lake/a b"), id="escaped blank"),
        pytest.param("s3a://bucket/lake/orders", ("s3://bucket", "lake/orders"), id="s3a is s3"),
        pytest.param("s3n://bucket/x", ("s3://bucket", "x"), id="s3n is s3"),
        pytest.param("s3://bucket", ("s3://bucket", "/"), id="bucket root"),
        pytest.param("gs://bucket/x", ("gs://bucket", "x"), id="gs"),
        pytest.param(
            "abfs://c@acc.dfs.core.windows.net/x",
            ("abfss://c@acc.dfs.core.windows.net", "x"),
            id="abfs is abfss",
        ),
        pytest.param("hdfs://nn:8020/x/y", ("hdfs://nn:8020", "/x/y"), id="hdfs keeps its slash"),
        pytest.param("s3://b/t/dt=2024-05-06", ("s3://b", "t"), id="partition is trimmed"),
        pytest.param("s3://b/t/dt=2024-05-06/h=3", ("s3://b", "t"), id="nested partitions"),
        pytest.param("s3://b/t/dt=*", ("s3://b", "t"), id="glob partition"),
        pytest.param("s3://b/a?b#c", ("s3://b", "a?b#c"), id="odd characters"),
    ],
)
def test_a_uri_is_named_as_the_listener_names_it(uri, expected):
    assert from_uri(uri) == DatasetName(*expected)


@pytest.mark.parametrize(
    "text", ["orders", "./orders", "2024-05-06", "", "analytics.orders", "a:b"]
)
def test_what_is_no_location_has_no_name(text):
    assert from_uri(text) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/t/2024-05-06", "/t"),
        ("/t/20240506", "/t"),
        ("/t/06.05.2024", "/t"),
        ("/t/2024-05-06T10:00:00", "/t"),
        ("/t/2024-05", "/t"),
        ("/t/202405", "/t"),
        ("/lake/t/2024/05", "/lake/t"),
        ("/lake/t/2024/05/06", "/lake/t"),
        ("/lake/t/k=v/2024-05-06", "/lake/t"),
        ("/t/2024-13-45", "/t/2024-13-45"),
        ("/t/x_20240506", "/t/x_20240506"),
        ("/t/2024-05-06/10", "/t/2024-05-06/10"),
        ("/t/a=b=c", "/t/a=b=c"),
        ("/dt=2024-05-06", "/dt=2024-05-06"),
        ("t", "t"),
        ("", ""),
    ],
)
def test_partition_directories_are_trimmed(name, expected):
    assert trim(name) == expected


SEGMENTS = st.sampled_from(
    ["lake", "t", "dt=1", "2024-05-06", "2024", "05", "06", "202405", "a=b=c", "x"]
)


@given(st.lists(SEGMENTS, min_size=1, max_size=6).map("/".join))
def test_trimming_is_a_fixpoint_and_leaves_a_prefix(name):
    trimmed = trim(name)
    assert trim(trimmed) == trimmed
    assert trimmed
    assert name == trimmed or name.startswith(f"{trimmed}/")
