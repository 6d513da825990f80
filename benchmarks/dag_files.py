"""What the operator costs a DAG file."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 5


def measured() -> Iterator[Result]:
    """Import the operator's module, against importing the stock operator's."""
    modules = {
        "ours": "airflow_provider_sparklineage.operators.spark_submit",
        "stock": "airflow.providers.apache.spark.operators.spark_submit",
    }
    seconds = [{name: _imported(module) for name, module in modules.items()} for _ in range(RUNS)]
    ours_s, stock_s = (min(run[name] for run in seconds) for name in modules)
    figures = f"ours {ours_s:.2f} s, stock {stock_s:.2f} s"
    yield Result("import our operator / stock operator", ours_s / stock_s, 1.05, figures)


def _imported(module: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    return time.perf_counter() - start
