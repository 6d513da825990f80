"""Measure the speed goals and print one line each: the figure, its goal, and what is behind it.

Ratios wherever there is something to compare with, because seconds depend more on the machine than
on this package. Of what runs in this process each figure is the best of several runs: noise only
ever adds. :mod:`.observer` explains how real Spark jobs are compared.
"""

from __future__ import annotations

import subprocess
import sys
import time
from itertools import chain
from typing import TYPE_CHECKING

from benchmarks import observer
from benchmarks.columns import chaining, growing, looping, reading
from benchmarks.merging import MANY, merging, remembering
from benchmarks.page import drawing, publishing
from benchmarks.results import Result
from benchmarks.submitting import submitting
from benchmarks.subsets import ranging, reconciling
from benchmarks.tracing import tracing

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 5


def best(action: Callable[[], object], runs: int = RUNS) -> float:
    """Seconds of the fastest of several runs."""
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def importing() -> Result:
    """Import the operator's module, against importing the stock operator's."""

    def run(module: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    ours_s = best(run("airflow_provider_sparklineage.operators.spark_submit"))
    stock_s = best(run("airflow.providers.apache.spark.operators.spark_submit"))
    figures = f"ours {ours_s:.2f} s, stock {stock_s:.2f} s"
    return Result("import our operator / stock operator", ours_s / stock_s, 1.05, figures)


def main() -> None:
    """Measure everything; a missed goal is reported, and is no error: chance can miss one."""
    cheap = (
        lambda: tracing(best),
        ranging,
        reconciling,
        chaining,
        reading,
        growing,
        looping,
        remembering,
        lambda: publishing(1, best),
        lambda: publishing(20, best),
        importing,
        submitting,
    )
    merged = chain(merging(20), merging(MANY), merging(MANY, None))
    measured = chain(merged, (measure() for measure in cheap))
    for result in chain(measured, drawing(), observer.measured()):
        print(result, flush=True)


if __name__ == "__main__":
    main()
