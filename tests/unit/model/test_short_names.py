"""Datasets by the shortest ends of their names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.history.queries.datasets import dataset_of
from airflow_provider_sparklineage.model.datasets import FOLDERS, PARTS, DatasetName, short_names

HIVE, OTHER_HIVE = "hive://ms.example.com:9083", "hive://other.example.com:9083"


@pytest.mark.parametrize(
    ("names", "short"),
    [
        ([("file", "/lake/orders")], ["orders"]),
        ([("file", "/a/orders"), ("file", "/b/orders")], ["a/orders", "b/orders"]),
        ([("s3://a", "orders"), ("s3://b", "orders")], ["a/orders", "b/orders"]),
        ([("file", "/orders"), ("file", "/a/orders")], ["/orders", "a/orders"]),
        ([("file", "/")], ["/"]),
        ([("s3://a", "b/c"), ("s3://a/b", "c")], ["s3://a:b/c", "s3://a/b:c"]),
        ([("file", "/raw/planes.csv")], ["planes.csv"]),
        ([], []),
    ],
    ids=[
        *("one", "two folders", "two buckets", "one is the end of another", "the root"),
        *("two that are written alike", "a file", "none"),
    ],
)
@pytest.mark.parametrize("separators", [FOLDERS, PARTS], ids=["folders", "parts"])
def test_the_shortest_end_that_is_its_own(names, short, separators):
    every = [DatasetName(*name) for name in names]
    assert [short_names(every, separators)[name] for name in every] == short


@pytest.mark.parametrize(
    ("names", "folders", "parts"),
    [
        ([(HIVE, "sales.orders")], ["sales.orders"], ["orders"]),
        (
            [(HIVE, "sales.orders"), (HIVE, "web.orders")],
            ["sales.orders", "web.orders"],
            ["sales.orders", "web.orders"],
        ),
        (
            [(HIVE, "sales.orders"), (OTHER_HIVE, "sales.orders")],
            ["ms.example.com:9083/sales.orders", "other.example.com:9083/sales.orders"],
            ["ms.example.com:9083/sales.orders", "other.example.com:9083/sales.orders"],
        ),
        (
            [(HIVE, "sales.orders"), ("file", "/lake/orders")],
            ["sales.orders", "orders"],
            ["sales.orders", "lake/orders"],
        ),
        (
            [(HIVE, "csv"), ("file", "/raw/planes.csv")],
            ["csv", "planes.csv"],
            [f"{HIVE.partition('//')[2]}/csv", "planes.csv"],
        ),
    ],
    ids=["one table", "two tables", "two namespaces", "table and folder", "table and ending"],
)
def test_the_names_of_tables_have_parts(names, folders, parts):
    every = [DatasetName(*name) for name in names]
    assert [short_names(every)[name] for name in every] == folders
    assert [short_names(every, PARTS)[name] for name in every] == parts


PATHS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=6)


@given(PATHS)
def test_no_two_datasets_have_the_same(paths):
    names = {DatasetName("file", f"/{'/'.join(path)}") for path in paths}
    assert len(set(short_names(names).values())) == len(names)


class Store:
    """A store whose datasets are known."""

    def __init__(self, names):
        self.names = sorted(names)

    def rows(self, _sql, _parameters=None):
        return [name._asdict() for name in self.names]


PARTS_OF_NAMES = st.lists(st.sampled_from(["a", "b", "a.b", "b.csv"]), min_size=1, max_size=3)
DATASETS = st.one_of(
    PARTS_OF_NAMES.map(lambda parts: DatasetName("file", f"/{'/'.join(parts)}")),
    PARTS_OF_NAMES.map(lambda parts: DatasetName("s3://a", "/".join(parts))),
    PARTS_OF_NAMES.map(lambda parts: DatasetName("s3://a/b", "/".join(parts))),
    PARTS_OF_NAMES.map(lambda parts: DatasetName("hive://a.b:1", ".".join(parts))),
    PARTS_OF_NAMES.map(lambda parts: DatasetName("hive://b", ".".join(parts))),
)


@given(st.sets(DATASETS, max_size=8))
def test_each_means_its_dataset_where_one_is_asked_for(names):
    for name, short in short_names(names, PARTS).items():
        assert dataset_of(Store(names), short) == name


def test_a_table_among_thousands_is_its_last_part():
    names = [DatasetName("s3://lake", f"w/db{n % 50}.db/table_{n}") for n in range(5_000)]
    assert set(short_names(names, PARTS).values()) == {f"table_{n}" for n in range(5_000)}
