"""One answer to where a path is: the dataset as the listener names it, and the partition in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.model.datasets import DatasetName, Naming
from airflow_provider_sparklineage.model.locations import (
    DEFAULT_LOCATOR,
    Locator,
    RememberingLocator,
)
from airflow_provider_sparklineage.model.partitioning import NULL, Partition
from airflow_provider_sparklineage.model.rules import NO_RULES, load_partition_rules

CONF = "spark.openlineage.dataset"
TRIMMER = "io.openlineage.client.dataset.partition.trimmer"
NO_KEY_VALUE = Naming.from_properties({f"{CONF}.disabledTrimmers": f"{TRIMMER}.KeyValueTrimmer"})
NO_DATE = Naming.from_properties({f"{CONF}.disabledTrimmers": f"{TRIMMER}.DateTrimmer"})
RULES = load_partition_rules(
    """
- dataset: /lake/*
  layout: "{event_date:%Y/%m/%d}/{hour:%H}"
- dataset: /hive/*
  dimensions: [dt, hour]
"""
)


def removing(pattern):
    return Naming.from_properties({f"{CONF}.removePath.pattern": pattern})


def located(path, naming=Naming(), rules=NO_RULES, **more):  # noqa: B008  (frozen)
    found = Locator(naming, rules).locate(path, **more)
    values = None if found.partition is None else found.partition.as_dict()
    return str(found.dataset), values


@pytest.mark.parametrize(
    ("naming", "path", "dataset", "values"),
    [
        # What the listener of OpenLineage 1.53 names for reads of these folders.
        pytest.param(
            Naming(),
            "/lake/orders/2024-05-06/dt=1",
            "/lake/orders",
            None,
            id="a date without a column above a partition: only a rule could say which it is",
        ),
        pytest.param(
            removing("(?<remove>/v[0-9]+)"),
            "/lake/v7/orders/dt=2024-05-06",
            "/lake/orders",
            {"dt": "2024-05-06"},
            id="what is removed of the name leaves the partition",
        ),
        pytest.param(
            NO_KEY_VALUE,
            "/lake/orders/dt=2024-05-06",
            "/lake/orders/dt=2024-05-06",
            {},
            id="a folder that is not trimmed is a dataset of its own",
        ),
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda locator, path: locator.locate(path), id="a bare path"),
        pytest.param(lambda locator, path: locator.locate(f"file:{path}"), id="the observer"),
        pytest.param(lambda locator, path: locator.locate(path, may_be_file=True), id="a text"),
        pytest.param(
            lambda locator, path: locator.locate_name(DatasetName("file", path)), id="the listener"
        ),
    ],
)
def test_all_who_have_a_path_get_one_answer(ask, naming, path, dataset, values):
    found = ask(Locator(naming), path)
    assert found.dataset == DatasetName("file", dataset)
    assert found.partition == (None if values is None else Partition.from_values(values.items()))
    assert found.folder == DatasetName("file", path)


@pytest.mark.parametrize(
    ("naming", "path", "expected"),
    [
        pytest.param(NO_DATE, "/t/x/2024-05-06/dt=1", ("/t/x/2024-05-06", {"dt": "1"}),
                     id="a date that is not trimmed"),
        pytest.param(Naming(), "/t/x/dt=1/2024-05-06", ("/t/x", None),
                     id="a date below a partition"),
        pytest.param(Naming(), "/2024/05", ("/2024/05", {}), id="nothing is left above"),
        pytest.param(Naming(), "/t/x/a=b=c", ("/t/x/a=b=c", {}), id="two equals signs"),
        pytest.param(Naming(), "/t/x/=1", ("/t/x", None), id="no column"),
        pytest.param(Naming(), f"/t/x/dt={NULL}", ("/t/x", {"dt": NULL}), id="null"),
        pytest.param(Naming(), "/t/x/dt=", ("/t/x", {"dt": NULL}), id="empty"),
        pytest.param(Naming(), "/t/x/r=a%2Fb", ("/t/x", {"r": "a/b"}), id="escaped slash"),
        pytest.param(Naming(), "s3a://b//t///dt=1/", ("s3://b/t", {"dt": "1"}), id="slashes"),
        pytest.param(Naming(), "/dt=1", ("/dt=1", {}), id="no dataset above"),
        pytest.param(removing("(?<remove>/(v[0-9]|k=[^/]*))$"), "/t/x/v1/dt=1",
                     ("/t/x", {"dt": "1"}), id="what is removed is no part of the partition"),
        pytest.param(removing("(?<remove>/v[0-9]+)$"), "/t/x/v1", ("/t/x", {}),
                     id="a folder that is removed"),
        pytest.param(
            Naming(NO_KEY_VALUE.disabled_trimmers, (), "(?<remove>/k=[^/]*)$"), "/t/x/k=1",
            ("/t/x", {"k": "1"}), id="removed instead of trimmed"),
        pytest.param(removing("(?<remove>/v[0-9]+)"), "/t/v1/x/2024-05-06", ("/t/x", None),
                     id="a date below what is removed"),
    ],
)  # fmt: skip
def test_without_rules_it_is_what_the_listener_trims(naming, path, expected):
    assert located(path, naming) == expected


@pytest.mark.parametrize(
    ("naming", "path", "expected"),
    [
        pytest.param(Naming(), "/lake/t/2024/05/06/10",
                     ("/lake/t", {"event_date": "2024-05-06", "hour": "10"}),
                     id="folders that the listener does not trim"),
        pytest.param(Naming(), "/lake/t/2024/05/06", ("/lake/t", {"event_date": "2024-05-06"}),
                     id="the leading values"),
        pytest.param(Naming(), "/lake/t/2024/05", ("/lake/t", None), id="half of a value"),
        pytest.param(Naming(), "/lake/t", ("/lake/t", {}), id="the dataset"),
        pytest.param(NO_KEY_VALUE, "/hive/t/dt=1", ("/hive/t", {"dt": "1"}),
                     id="a rule knows better than a trimmer"),
        pytest.param(Naming(), "/hive/t/dt=1/hour=2/x", ("/hive/t", {"dt": "1", "hour": "2"}),
                     id="all values, whatever is below"),
        pytest.param(Naming(), "/hive/t/dt=1/x", ("/hive/t", None), id="another folder"),
        pytest.param(removing("(?<remove>/v[0-9]+)"), "/lake/v7/t/2024/05/06/10",
                     ("/lake/t", {"event_date": "2024-05-06", "hour": "10"}),
                     id="a rule for the name without what is removed"),
        pytest.param(removing("(?<remove>/v[0-9]+)$"), "/lake/t/v7/2024/05/06",
                     ("/lake/t", {"event_date": "2024-05-06"}), id="removed off the end"),
        pytest.param(removing("(?<remove>/v[0-9]+)"), "/other/v7/t/dt=1", ("/other/t", {"dt": "1"}),
                     id="no rule is for it"),
        pytest.param(removing("(?<remove>_v[0-9]+)"), "/hive/t_v1/dt=1", ("/hive/t", {"dt": "1"}),
                     id="removed of what a rule found"),
    ],
)  # fmt: skip
def test_rules_come_first(naming, path, expected):
    assert located(path, naming, RULES) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/t/x/dt=1/p-0.parquet", ("/t/x", {"dt": "1"}), id="a file of a partition"),
        pytest.param("/t/x/dt=1/*", ("/t/x", {"dt": "1"}), id="all files"),
        pytest.param("/t/x/dt=1/part-00000", ("/t/x", {"dt": "1"}), id="a file of text"),
        pytest.param("/hive/t/dt=1/p-0.parquet", ("/hive/t", {"dt": "1"}), id="by a rule"),
        pytest.param("/t/x/2024-05-06/p-0.csv", ("/t/x", None), id="a file of a date"),
        pytest.param("/t/x/dt=1/sub", ("/t/x/dt=1/sub", {}), id="a folder in a partition"),
        pytest.param("/t/p-0.parquet", ("/t/p-0.parquet", {}), id="a file of no partition"),
    ],
)
def test_a_text_may_name_a_file_of_a_partition(path, expected):
    assert located(path, rules=RULES, may_be_file=True) == expected


def test_who_saw_a_folder_knows_that_it_is_no_file():
    assert located("/t/x/dt=1/data.parquet") == ("/t/x/dt=1/data.parquet", {})


@pytest.mark.parametrize(
    ("path", "values"),
    [
        pytest.param("/t/x/dt=1/h=2", [("dt", "1"), ("h", "2")], id="columns"),
        pytest.param("/t/x/r=a%2Fb/f.csv", [("r", "a%2Fb")], id="as written"),
        pytest.param("/lake/t/2024/05/06/10", [("event_date", "2024/05/06"), ("hour", "10")],
                     id="a layout"),
        pytest.param("/t/x/2024-05-06/dt=1", [], id="no partition"),
    ],
)  # fmt: skip
def test_the_values_are_found_in_the_path_again(path, values):
    found = Locator(rules=RULES).locate(path, may_be_file=True)
    assert path.endswith(found.below)
    assert [(label, found.below[start:end]) for label, start, end in found.spans] == values


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
        pytest.param("file:/lake/t/r=a%2Fb", ("file", "/lake/t"), id="escaped slash in a folder"),
        pytest.param("file:/lake/t/dt%3D1", ("file", "/lake/t"), id="escaped folder"),
        pytest.param("s3://b/a?b#c", ("s3://b", "a?b#c"), id="odd characters"),
    ],
)
def test_a_uri_is_named_as_the_listener_names_it(uri, expected):
    assert DEFAULT_LOCATOR.locate(uri).dataset == DatasetName(*expected)


@pytest.mark.parametrize(
    "text", ["orders", "./orders", "2024-05-06", "", "analytics.orders", "a:b"]
)
def test_what_is_no_path_has_no_location(text):
    assert DEFAULT_LOCATOR.locate(text) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(("file", "/lake/t/2024/05/06/10"), ("file", "/lake/t"), id="by a rule"),
        pytest.param(("file", "/t/x/dt=1"), ("file", "/t/x/dt=1"), id="not trimmed again"),
        pytest.param(("h2:/x;MODE=y", "t"), ("h2:/x", "t"), id="a table behind JDBC"),
    ],
)
def test_a_name_of_the_listener_is_renamed_by_rules_only(name, expected):
    locator = Locator(removing("(?<remove>/x)"), RULES)
    assert locator.renamed(DatasetName(*name)) == DatasetName(*expected)


LABELS = st.text("abc_", min_size=1, max_size=4)
VALUES = st.none() | st.text("a1é/=%' _:", min_size=1, max_size=6).map(lambda s: f"x{s}x")


@given(st.dictionaries(LABELS, VALUES, max_size=3))
def test_a_partition_is_read_back_from_its_own_path(values):
    partition = Partition.from_values(values.items())
    found = DEFAULT_LOCATOR.locate(f"s3://b/t/{partition}")
    assert (found.dataset, found.partition) == (DatasetName("s3://b", "t"), partition)


def test_a_path_that_is_asked_for_again_is_located_once(monkeypatch):
    located = []

    def locate_once(self, *place, **how):
        located.append(place)
        return once(self, *place, **how)

    once = Locator._located
    monkeypatch.setattr(Locator, "_located", locate_once)
    remembering = RememberingLocator(DEFAULT_LOCATOR.naming, DEFAULT_LOCATOR.rules)
    paths = ["file:/lake/t/dt=1", "/lake/t/dt=1", "s3a://b/t/2024/05/06", "no path"]
    first = [remembering.locate(path) for path in paths]
    assert [remembering.locate(path) for path in paths] == first
    assert len(located) == 3
    assert first == [DEFAULT_LOCATOR.locate(path) for path in paths]
    file = "file:/lake/t/dt=1/part-0.csv"
    remembering.locate(file)
    as_file = remembering.locate(file, may_be_file=True)
    assert as_file == DEFAULT_LOCATOR.locate(file, may_be_file=True) != remembering.locate(file)
