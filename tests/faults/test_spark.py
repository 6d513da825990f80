"""Each fault with a real Spark: what the stock operator makes of it, and what ours."""

from __future__ import annotations

import os

import pytest

from tests.faults import ALL
from tests.faults.driver import Driver
from tests.faults.registry import Lane, faults

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.long]


@pytest.fixture
def driver(tmp_path, monkeypatch, spark):
    made = Driver(tmp_path, monkeypatch, spark)
    with made.resources:
        yield made


@pytest.fixture(scope="session")
def healthy_driver(tmp_path_factory, spark):
    """Give the datasets of the job to which nothing happens."""
    with pytest.MonkeyPatch.context() as patched:
        run = Driver(tmp_path_factory.mktemp("healthy"), patched, spark).ours()
    assert run.outcome == "succeeds"
    assert run.declared == ()
    assert run.datasets
    return run.datasets


TRIED = [fault for fault in faults(Lane.SPARK) if not fault.slow or ALL in os.environ]


@pytest.mark.parametrize("fault", TRIED, ids=lambda fault: fault.name)
def test_the_outcome_stays_and_the_loss_is_declared(fault, driver, healthy_driver, tried):
    fault.happens(driver)
    stock = driver.stock()
    tried(fault, stock, driver.ours(), healthy_driver)
