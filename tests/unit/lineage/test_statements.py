"""The filter of a statement as the subset of the dataset that it reads, where nothing was seen."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
from airflow_provider_sparklineage.lineage.application.accumulation import (
    Action,
    ActionState,
    SparkApplication,
)
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.model.allowance import UNLIMITED
from airflow_provider_sparklineage.model.datasets import DatasetName
from tests.allowances import lasting

START, END = (datetime(2024, 5, 6, hour, tzinfo=UTC) for hour in (1, 2))
ORDERS = DatasetName("file", "/lake/orders")
SYMLINK = msgspec.Raw(b'{"identifiers": [{"namespace": "hive", "name": "shop.sales"}]}')


def summary(*statements, allowance=UNLIMITED):
    """Merge actions of these statements, each of which read the orders; give what is selected."""
    dataset = ActionDataset(ORDERS, {"symlinks": SYMLINK}, {})
    actions = tuple(
        Action(str(n), "job", "SQL_JOB", START, END, ActionState.COMPLETE, (dataset,), (), sql=sql)
        for n, sql in enumerate(statements)
    )
    application = SparkApplication("run", "tests", "job", actions, finished=True)
    [orders] = merge(application, Outcome.COMPLETE, allowance=allowance).inputs
    return orders.selected.summary


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        pytest.param("orders", "dt=1", id="folder"),
        pytest.param("shop.sales", "dt=1", id="symlink"),
        pytest.param("parquet.`/lake/orders`", "dt=1", id="path"),
        # Its dt may be any expression of any of the datasets below it.
        pytest.param("a_view", "", id="view"),
    ],
)
def test_a_statement_gives_the_subset_of_the_dataset_that_it_names(table, expected):
    assert summary(f"SELECT * FROM {table} WHERE dt = '1'") == expected


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("", id="no statement"),
        pytest.param("SELECT * FROM orders", id="no filter"),
        pytest.param("SELECT * FROM orders WHERE TRUE", id="a filter that selects all"),
        pytest.param("SELECT * FROM a_view WHERE dt = '1'", id="view"),
    ],
)
def test_one_read_that_may_be_of_all_makes_it_all(other):
    assert summary("SELECT * FROM orders WHERE dt = '1'", other) == ""


def test_two_filters_are_united():
    first, second = (f"SELECT * FROM orders WHERE dt = '{day}'" for day in (1, 2))
    assert summary(first, second) == "dt=1 OR dt=2"


def test_no_statement_is_read_when_time_is_up():
    sql = "SELECT * FROM orders WHERE dt = '1'"
    assert summary(sql, allowance=lasting(1)) == ""
