"""What is expected of a try while its job runs: one entry for each dataset and side."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.expectations import Expectation, Kind, Side, Source
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Partition

ORDERS = DatasetName("file", "/lake/orders")
REVENUE = DatasetName("file", "/lake/revenue")


def day(number):
    return Partition.from_values([("dt", f"2024-05-{number:02}")])


def source(kind, number=6, template="{{ ds }}"):
    value = f"2024-05-{number:02}"
    return Source(kind, "application_args[1]", template, value, "dt", ("ds",), ("ds",))


def described(*expectations, inputs=(), outputs=(), mask=str, others=()):
    return xcom.expected_document(2, inputs, outputs, expectations, mask, others)


def in_short(document):
    """Give side, dataset, status and summary of each entry."""
    return [
        (
            entry["side"],
            entry.get("dataset", {}).get("name"),
            entry["status"],
            entry.get("expected", {}).get("summary"),
        )
        for entry in document["entries"]
    ]


def of_orders(kind=Kind.DECLARED, side=Side.READ, *days, **more):
    partitions = tuple(map(day, days)) or (day(6),)
    given = {"dataset": ORDERS, "partitions": partitions, "sources": (source(kind),), **more}
    return Expectation(kind, side, **given)


@pytest.mark.parametrize(
    ("expectations", "entries"),
    [
        pytest.param(
            [of_orders()], [("read", "/lake/orders", "expected", "dt=2024-05-06")], id="declared"
        ),
        pytest.param(
            [of_orders(Kind.PATH, None)],
            [("either", "/lake/orders", "expected", "dt=2024-05-06")],
            id="a path has no side",
        ),
        pytest.param(
            [of_orders(Kind.PATH, None, 5), of_orders(Kind.PATH, None, 6)],
            [
                (
                    "either",
                    "/lake/orders",
                    "expected",
                    "dt=2024-05-05 … dt=2024-05-06 (2 partitions)",
                )
            ],
            id="two paths of one dataset",
        ),
        pytest.param(
            [of_orders(), of_orders(Kind.PATH, None)],
            [("read", "/lake/orders", "expected", "dt=2024-05-06")],
            id="a path that is declared",
        ),
        pytest.param(
            [Expectation(Kind.DECLARED, Side.READ, table="shop.orders", where="dt > '2024'")],
            [("read", "shop.orders", "expected", "dt > '2024'")],
            id="a table with a predicate",
        ),
        pytest.param(
            [of_orders(partitions=None, sources=())],
            [("read", "/lake/orders", "expected", None)],
            id="a dataset without a part",
        ),
        pytest.param(
            [Expectation(Kind.DECLARED, Side.WRITE, partitions=(day(6),))],
            [("write", None, "expected", "dt=2024-05-06")],
            id="the run's partition key",
        ),
        pytest.param(
            [Expectation(Kind.INFERRED, sources=(source(Kind.INFERRED, n),)) for n in (5, 6)],
            [("either", None, "inferred", None)],
            id="dates among the arguments",
        ),
        pytest.param([], [], id="nothing"),
    ],
)
def test_what_is_expected_has_an_entry(expectations, entries):
    assert in_short(described(*expectations)) == entries


def test_declared_datasets_are_there_without_expectations():
    document = described(of_orders(), inputs=[ORDERS], outputs=[REVENUE])
    assert in_short(document) == [
        ("read", "/lake/orders", "expected", "dt=2024-05-06"),
        ("write", "/lake/revenue", "expected", None),
    ]


def bare(name, namespace="file"):
    return Expectation(Kind.PATH, dataset=DatasetName(namespace, name))


@pytest.mark.parametrize(
    ("root", "more"),
    [
        pytest.param(
            bare("/lake"), {"expectations": [bare("/lake/planes")]}, id="of another argument"
        ),
        pytest.param(bare("/lake"), {"outputs": [REVENUE]}, id="of a declared dataset"),
        pytest.param(bare("/lake"), {"others": [ORDERS]}, id="of a table of the last run"),
        pytest.param(
            bare("/lake"), {"others": [DatasetName("file", "/lake/a/b/c")]}, id="far above it"
        ),
        pytest.param(
            bare("/", "s3://lake"), {"others": [DatasetName("s3://lake", "orders")]}, id="a bucket"
        ),
    ],
)
def test_the_folder_of_other_datasets_is_no_dataset(root, more):
    expectations = more.pop("expectations", [])
    names = [name for _, name, *_ in in_short(described(root, *expectations, **more))]
    assert root.dataset.name not in names


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(DatasetName("file", "/lakes/orders"), id="a longer name"),
        pytest.param(DatasetName("s3://lake", "/lake/orders"), id="another namespace"),
        pytest.param(DatasetName("file", "/lake"), id="itself"),
    ],
)
def test_a_path_without_a_partition_is_named_and_not_expected(other):
    document = described(bare("/lake"), others=[other])
    assert in_short(document) == [("either", "/lake", "named", None)]


def test_a_partition_in_a_folder_of_other_datasets_is_expected():
    document = described(of_orders(Kind.PATH, None), others=[DatasetName("file", "/lake/orders/x")])
    assert in_short(document) == [("either", "/lake/orders", "expected", "dt=2024-05-06")]


def test_it_is_of_a_try_and_says_where_values_come_from():
    document = described(of_orders())
    assert document["try_number"] == 2
    (origin,) = document["entries"][0]["from"]
    assert (origin["value"], origin["expressions"]) == ("2024-05-06", ["ds"])


def test_secrets_and_credentials_are_hidden_and_long_templates_cut():
    template = f"s3://key:hunter2@lake/{'x' * 2000}/hunter3/{{{{ ds }}}}"
    entry = of_orders(sources=(source(Kind.DECLARED, template=template),))
    document = described(entry, mask=lambda text: text.replace("hunter3", "***"))
    text = json.dumps(document)
    assert "hunter" not in text
    assert len(text) < 1500


def test_what_is_too_large_is_counted():
    many = [
        of_orders(dataset=DatasetName("file", f"/lake/{n}")) for n in range(xcom.MAX_ENTRIES + 5)
    ]
    document = described(*many)
    assert (len(document["entries"]), document["unlisted"]) == (xcom.MAX_ENTRIES, 5)
    smaller = xcom.fitted_document(document, 2000)
    assert len(json.dumps(smaller)) <= 2000
    assert 0 < len(smaller["entries"]) == xcom.MAX_ENTRIES + 5 - smaller["unlisted"]
    assert xcom.fitted_document(document, 100) is None
    assert xcom.fitted_document(document, 10**6) == document


def test_what_a_database_could_refuse_is_not_pushed():
    document = described(inputs=[DatasetName("file", "a\0b")])
    assert xcom.fitted_document(document, 10**6) is None


def test_nothing_is_nothing_to_push():
    assert xcom.fitted_document(described(), 10**6) is None
