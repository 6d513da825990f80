"""What data an argument names: dataset, partition, and the characters of each value."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.expectations.references import Reference, ValueSpan, references
from airflow_provider_sparklineage.model.datasets import DatasetName, untrimmed
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR, Locator
from airflow_provider_sparklineage.model.partitioning import NULL, Partition
from airflow_provider_sparklineage.model.rules import load_partition_rules

BY_RULES = Locator(
    rules=load_partition_rules(
        """
- dataset: s3://bucket/*
  dimensions:
    - field: business_date
      format: "%Y%m%d"
- dataset: /raw/*
  dimensions: [event_date, hour]
  layout: "{event_date:%Y/%m/%d}/{hour:%H}"
- dataset: /weekly/*
  dimensions: [week]
  layout: "year={week:%G}/week={week:%V}"
"""
    )
)


def the_reference(text, *how):
    (found,) = references(text, *how)
    return found


def test_a_reference_is_all_that_a_text_has_of_a_path():
    text = '--in={"path": "s3a://b/t/dt=2024-05-06/r=\\u00e9"}'
    assert references(text) == (
        Reference(
            start=15,
            end=47,
            uri="s3a://b/t/dt=2024-05-06/r=é",
            dataset=DatasetName("s3://b", "t"),
            partition=Partition.from_values([("dt", "2024-05-06"), ("r", "é")]),
            location=None,
            values=(ValueSpan("dt", 28, 38), ValueSpan("r", 41, 47)),
            is_glob=False,
        ),
    )


@pytest.mark.parametrize(
    ("uri", "dataset", "values"),
    [
        pytest.param("/lake/t/dt=2024-05-06", "/lake/t", {"dt": "2024-05-06"}, id="day"),
        pytest.param(
            "/lake/t/dt=2024-05-06/hour=00/",
            "/lake/t",
            {"dt": "2024-05-06", "hour": "00"},
            id="hour",
        ),
        pytest.param("/t/w=2024-W19", "/t", {"w": "2024-W19"}, id="week"),
        pytest.param("/t/month=2024-05", "/t", {"month": "2024-05"}, id="month"),
        pytest.param("/t/dt=1970-01-01", "/t", {"dt": "1970-01-01"}, id="epoch"),
        pytest.param("/t/dt=0001-01-01", "/t", {"dt": "0001-01-01"}, id="year 1"),
        pytest.param(
            "/t/year=2024/month=05/day=06",
            "/t",
            {"year": "2024", "month": "05", "day": "06"},
            id="a family stays three dimensions",
        ),
        pytest.param(
            "/t/a=2024-05-06/b=2024-05-07",
            "/t",
            {"a": "2024-05-06", "b": "2024-05-07"},
            id="two dates",
        ),
        pytest.param(f"/t/dt={NULL}", "/t", {"dt": NULL}, id="null"),
        pytest.param("/t/r=a%2Fb%3Dc", "/t", {"r": "a/b=c"}, id="escaped slash and equals"),
        pytest.param("file:///t/r=a%2Fb", "/t", {"r": "a/b"}, id="escaped slash in a file URI"),
        pytest.param("/t/r=Zürich am See", "/t", {"r": "Zürich am See"}, id="unicode and blanks"),
        pytest.param("s3n://b/t", "s3://b/t", {}, id="the dataset itself"),
        pytest.param("s3://b", "s3://b/", {}, id="only a root"),
        pytest.param("/t/a=b=c", "/t/a=b=c", {}, id="two equals signs are the listener's name"),
        pytest.param("/dt=1", "/dt=1", {}, id="no dataset above"),
        pytest.param("/t/x/dt=1/p-0.parquet", "/t/x", {"dt": "1"}, id="a file of a partition"),
        pytest.param("/t/x/dt=1/sub", "/t/x/dt=1/sub", {}, id="a folder in a partition"),
        pytest.param("/t/p-0.parquet", "/t/p-0.parquet", {}, id="a file of no partition"),
    ],
)
def test_a_path_names_dataset_and_partition_as_the_listener_does(uri, dataset, values):
    found = the_reference(uri)
    assert str(found.dataset) == dataset
    assert found.partition == Partition.from_values(values.items())
    assert found.location is None


@pytest.mark.parametrize(
    ("uri", "dataset", "location", "values"),
    [
        pytest.param("/lake/t/2024-05-06", "/lake/t", "/lake/t/2024-05-06", {}, id="date"),
        pytest.param("/lake/t/20240506", "/lake/t", "/lake/t/20240506", {}, id="no dashes"),
        pytest.param("s3a://b/l/t/2024/05/06", "s3://b/l/t", "l/t/2024/05/06", {}, id="folders"),
        pytest.param("/lake/t/2024/05", "/lake/t", "/lake/t/2024/05", {}, id="month"),
        pytest.param(
            "/lake/t/2024-05-06/r=PL",
            "/lake/t",
            "/lake/t/2024-05-06/r=PL",
            {},
            id="a partition below a date",
        ),
    ],
)
def test_a_date_without_a_columns_name_is_a_location(uri, dataset, location, values):
    found = the_reference(uri)
    assert (str(found.dataset), found.location) == (dataset, location)
    assert found.partition == Partition.from_values(values.items())


@pytest.mark.parametrize(
    ("uri", "dataset", "values", "is_glob"),
    [
        pytest.param("/t/dt=*", "/t", {"dt": "*"}, True, id="all"),
        pytest.param("/t/dt=2024-05-0[1-7]", "/t", {"dt": "2024-05-0[1-7]"}, True, id="set"),
        pytest.param("/t/dt={1,2}/h=3", "/t", {"dt": "{1,2}", "h": "3"}, True, id="braces"),
        pytest.param("/t/dt=?", "/t", {"dt": "?"}, True, id="one character"),
        pytest.param("/t/x/dt=1/*.parquet", "/t/x", {"dt": "1"}, False, id="files"),
        pytest.param("/t/dt=1/*", "/t", {"dt": "1"}, False, id="whatever is in it"),
        pytest.param("/t/2024/05/*", "/t", {}, True, id="no partition"),
        pytest.param("/lake/*/dt=1", "/lake/*", {"dt": "1"}, False, id="above the partitions"),
        pytest.param("/t/dt=1", "/t", {"dt": "1"}, False, id="none"),
    ],
)
def test_globs_are_kept(uri, dataset, values, is_glob):
    found = the_reference(uri)
    assert (str(found.dataset), found.is_glob) == (dataset, is_glob)
    assert found.partition == Partition.from_values(values.items())


@pytest.mark.parametrize(
    ("uri", "dataset", "values", "location"),
    [
        pytest.param(
            "s3a://bucket/dataset/business_date=20241101",
            "s3://bucket/dataset",
            {"business_date": "20241101"},
            None,
            id="the proposal's example",
        ),
        pytest.param(
            "/raw/t/2024/05/06/10",
            "/raw/t",
            {"event_date": "2024-05-06", "hour": "10"},
            None,
            id="layout that the listener does not trim",
        ),
        pytest.param("/raw/t/2024/05/06", "/raw/t", {"event_date": "2024-05-06"}, None, id="day"),
        pytest.param("/raw/t/2024/05", "/raw/t", {}, "/raw/t/2024/05", id="part of a day"),
        pytest.param("/raw/t/2024/05/*", "/raw/t", {}, "/raw/t/2024/05", id="days of a month"),
        pytest.param("/raw/t", "/raw/t", {}, None, id="the dataset itself"),
        pytest.param("/raw/t/dt=1", "/raw/t", {"dt": "1"}, None, id="what no rule fits"),
        pytest.param(
            "/weekly/t/year=2024/week=19", "/weekly/t", {"week": "2024-W19"}, None, id="week"
        ),
    ],
)
def test_rules_supply_what_the_listener_cannot_know(uri, dataset, values, location):
    found = the_reference(uri, BY_RULES)
    assert (str(found.dataset), found.location) == (dataset, location)
    assert found.partition == Partition.from_values(values.items())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("--in=/raw//t/2024/05/06/10", ["2024/05/06", "10"], id="a date's folders"),
        pytest.param("/weekly/t/year=2024/week=19", ["2024", "19"], id="two spans of a week"),
        pytest.param('["x", "\\/t\\/r=a%2Fb\\/s=\\u00e9"]', ["a%2Fb", "\\u00e9"], id="escapes"),
        pytest.param("/t/a=1,/t/a=2/", ["1", "2"], id="list"),
        pytest.param("s3://b//t///a=1//b=2/", ["1", "2"], id="doubled slashes"),
        pytest.param("/t/x/a=1/f.csv", ["1"], id="file"),
        pytest.param("/t/a=//b=/", ["", ""], id="empty values"),
    ],
)
def test_the_spans_of_values_are_where_the_text_has_them(text, expected):
    spans = [span for one in references(text, BY_RULES) for span in one.values]
    assert [text[span.start : span.end] for span in spans] == expected


@pytest.mark.parametrize("text", ["", "s3://", "s3:/b/t", "/", "text/plain", "2024/05/06"])
def test_what_names_no_data_is_no_reference(text):
    assert references(text) == ()


LABELS = st.text("abc_", min_size=1, max_size=4)
VALUES = st.none() | st.text("a1é/=%' _:", min_size=1, max_size=6).map(lambda s: f"x{s}x")


@given(st.dictionaries(LABELS, VALUES, max_size=3), st.integers(1, 3))
def test_the_partition_of_a_path_is_read_back_and_its_spans_slice_it_out(values, times):
    partition = Partition.from_values(values.items())
    uri = f"s3://b/t/{partition}".rstrip("/")
    text = json.dumps({"paths": [uri] * times})
    found = references(text)
    assert [(one.uri, one.partition) for one in found] == [(uri, partition)] * times
    for one in found:
        assert one.dataset == DatasetName("s3://b", "t")
        written = [json.loads(f'"{text[span.start : span.end]}"') for span in one.values]
        assert written == [part.partition("=")[2] for part in uri.split("/")[4:]]


FOLDERS = st.sampled_from(
    [
        "lake",
        "t",
        "dt=1",
        "dt=",
        "=x",
        "a=b=c",
        "2024-05-06",
        "2024",
        "05",
        "06",
        "10",
        "*",
        "",
        "x.csv",
    ]
)
ROOTS = st.sampled_from(["/", "s3a://bucket/", "file:///", "hdfs://nn/", "/raw/", "/weekly/"])


@given(ROOTS, st.lists(FOLDERS, max_size=7).map("/".join), st.booleans())
def test_any_path_is_its_dataset_with_what_is_below_it(root, path, by_rules):
    text = f"--in={root}{path}"
    for one in references(text, BY_RULES if by_rules else DEFAULT_LOCATOR):
        assert text[one.start : one.end] == one.uri
        assert untrimmed(one.uri).name.startswith(one.dataset.name)
        assert [span.label for span in one.values if span.label != "week"] == [
            label for label, _ in one.partition.values if label != "week"
        ]
        for span in one.values:
            assert one.start < span.start <= span.end <= one.end
            assert "/" not in text[span.start : span.end] or span.label == "event_date"
