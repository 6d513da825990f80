"""Each fault with a spark-submit of ours: what the stock operator makes of it, and what ours."""

from __future__ import annotations

import pytest

from tests.faults.registry import Lane, faults

pytestmark = pytest.mark.airflow


def marked():
    """Give all faults, marked long where one before has to show the same in the same area."""
    seen = set()
    for fault in faults(Lane.DOUBLE):
        kind = fault.kind
        yield pytest.param(fault, marks=[pytest.mark.long] if kind in seen else [], id=fault.name)
        seen.add(kind)


@pytest.mark.parametrize("fault", [*marked()])
def test_the_outcome_stays_and_the_loss_is_declared(fault, bench, healthy, tried):
    fault.happens(bench)
    stock = bench.stock()
    tried(fault, stock, bench.ours(), healthy)
