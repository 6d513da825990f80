"""Budgets that end by themselves: tests wait for no clock."""

from __future__ import annotations

import math
from itertools import chain, repeat

from airflow_provider_sparklineage.model.allowance import Allowance, Stage
from airflow_provider_sparklineage.model.budget import Budget


def lasting(looks: int) -> Budget:
    """Make a budget of which nothing is left after so many looks at the clock."""
    left = iter([math.inf] * looks)
    return Budget(lambda: next(left, 0.0))


def allowance_of(looks: int, after: Stage | None = None) -> Allowance:
    """Make an allowance of which nothing is left after so many looks at the clock."""
    left = chain([1.0], repeat(1.0, looks), repeat(0.0))  # the first look is for the whole
    return Allowance(lambda: next(left), after)
