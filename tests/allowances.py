"""Allowances that end by themselves: tests wait for no clock."""

from __future__ import annotations

from functools import partial
from itertools import chain, repeat

from airflow_provider_sparklineage.model.allowance import Allowance, Stage, Work


def working(looks: int, stage: Stage) -> Work:
    """Make a function that counts work until so many looks at the clock are used up."""
    return partial(lasting(looks).work, stage)


def lasting(looks: int) -> Allowance:
    """Make an allowance of which nothing is left after so many looks at the clock."""
    left = chain([1.0], repeat(1.0, looks), repeat(0.0))  # the first look is for the whole
    return Allowance(lambda: next(left))
