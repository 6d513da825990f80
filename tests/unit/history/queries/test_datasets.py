"""Which dataset and partition a text names."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.history.queries.datasets import cell_of, dataset_of
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import HistoryError
from tests.unit.history.queries.asked import named
from tests.unit.history.worlds import at, event, write

ORDERS = DatasetName("s3://lake", "warehouse/sales.orders")
EVENT = event(
    "a", at(1),
    write("dt=1", name=ORDERS.name, namespace=ORDERS.namespace),
    write(name="db.items"), write(name="shop/items"), write(name="shop/users"),
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("s3://lake:warehouse/sales.orders", id="namespace:name"),
        pytest.param("s3a://lake/warehouse/sales.orders/", id="uri"),
        pytest.param("s3://lake/warehouse/sales.orders/dt=2024-10-15", id="uri of a partition"),
        pytest.param("orders", id="last part"),
        pytest.param("sales.orders", id="last parts"),
    ],
)
def test_a_dataset_is_named_in_many_ways(history, text):
    assert dataset_of(history(EVENT), text) == ORDERS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("items", "not one dataset: ns/db.items, ns/shop/items", id="several"),
        pytest.param("ordres", r"Did you mean sales\.orders\?", id="nearly"),
        pytest.param("xyz", "There are: ns/db.items, .*users", id="nothing like it"),
    ],
)
def test_what_is_no_dataset_is_refused_with_those_that_are(history, text, message):
    with pytest.raises(HistoryError, match=message):
        dataset_of(history(EVENT), text)


def test_an_empty_history_says_how_to_fill_it(history):
    with pytest.raises(HistoryError, match="sparklineage history build"):
        dataset_of(history(event("a", at(1))), "orders")


CELLS = event("a", at(1), *(write(f"dt=2024-10-{day:02}/region=a%2Fb") for day in (1, 2, 5)))


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("dt=2024-10-01/region=a%2Fb", "dt=2024-10-01/region=a%2Fb"),
        ("region=a%2Fb/dt=2024-10-01", "dt=2024-10-01/region=a%2Fb"),
        ("dt=2024-10-01", "dt=2024-10-01"),
    ],
)
def test_a_partition_has_its_dimensions_in_any_order(history, text, cell):
    assert cell_of(history(CELLS), named("orders"), text) == cell


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("2024", "'2024' is no partition. Write dt=", id="no partition"),
        pytest.param("day=1", "no dimension day. It has dt, region", id="other dimension"),
        pytest.param(
            "dt=2024-10-03",
            "it has 3, dt=2024-10-01.* to dt=2024-10-05.*Nearest: dt=2024-10-02.*, dt=2024-10-05",
            id="between",
        ),
    ],
)
def test_what_is_no_partition_is_refused_with_those_that_are(history, text, message):
    with pytest.raises(HistoryError, match=message):
        cell_of(history(CELLS), named("orders"), text)


def test_a_dataset_without_partitions_says_so(history):
    with pytest.raises(HistoryError, match="written and read whole"):
        cell_of(history(EVENT), named("db.items"), "dt=1")
