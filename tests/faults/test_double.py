"""Each fault with a spark-submit of ours: what the stock operator makes of it, and what ours."""

from __future__ import annotations

import pytest

from tests.faults.registry import Lane, faults

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize("fault", faults(Lane.DOUBLE), ids=lambda fault: fault.name)
def test_the_outcome_stays_and_the_loss_is_declared(fault, bench, healthy, tried):
    fault.happens(bench)
    stock = bench.stock()
    tried(fault, stock, bench.ours(), healthy)
