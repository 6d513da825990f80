"""Measure the speed goals and print one line each: the figure, its goal, and what is behind it.

Ratios wherever there is something to compare with, because seconds tell more of a machine than of
this package. Of what runs in this process each figure is the best of several runs: noise only ever
adds. :mod:`.observer` says how real Spark jobs are compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.lineage.facets import parts
from airflow_provider_sparklineage.lineage.task import task_lineage
from airflow_provider_sparklineage.spark.capture import EVENTS, CaptureBundle, Manifest
from benchmarks import observer
from benchmarks.columns import chaining, reading
from benchmarks.results import Result
from benchmarks.subsets import folding, reconciling
from benchmarks.tracing import tracing

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "spark-4.0" / "staging_chain.ndjson"
RUNS = 5


def best(action: Callable[[], object], runs: int = RUNS) -> float:
    """Seconds of the fastest of several runs."""
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def amplified(copies: int) -> bytes:
    """Give the recorded application with its actions repeated on other datasets."""
    lines = GOLDEN.read_text().splitlines()
    application = json.loads(lines[0])["run"]["runId"]
    actions = [line for line in lines if json.loads(line)["run"]["runId"] != application]
    runs = {json.loads(line)["run"]["runId"] for line in actions}
    repeated = []
    for copy in range(copies):
        for line in actions:
            text = line.replace("/lake/", f"/lake{copy}/")
            for number, run in enumerate(sorted(runs)):
                text = text.replace(run, f"00000000-0000-0000-{number:04x}-{copy:012x}")
            repeated.append(text)
    return "\n".join([lines[0], *repeated, lines[-1], ""]).encode()


def merging(copies: int) -> Result:
    """Merge a bundle, against decoding the same bytes."""
    content = amplified(copies)
    lines = content.splitlines()
    run_id = json.loads(lines[0])["run"]["runId"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / EVENTS).write_bytes(content)

        def merge() -> None:
            bundle = CaptureBundle(Path(folder), Manifest(application_run_id=run_id))
            parts(task_lineage(bundle), bundle.report)

        merge_s = best(merge)
    decode_s = best(lambda: [msgspec.json.decode(line) for line in lines])
    figures = (
        f"{len(lines)} events, {len(content) / 1e6:.1f} MB: "
        f"merged in {merge_s:.3f} s, decoded in {decode_s:.3f} s"
    )
    return Result(f"merge {2 * copies} actions / decode", merge_s / decode_s, 3.0, figures)


def importing() -> Result:
    """Import the operator's module, against importing the stock operator's."""

    def run(module: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", f"import {module}"], check=True)

    ours_s = best(run("airflow_provider_sparklineage.operators.spark_submit"))
    stock_s = best(run("airflow.providers.apache.spark.operators.spark_submit"))
    figures = f"ours {ours_s:.2f} s, stock {stock_s:.2f} s"
    return Result("import our operator / stock operator", ours_s / stock_s, 1.05, figures)


def main() -> None:
    """Measure everything; a missed goal is said, and is no error: chance can miss one."""
    cheap = (
        lambda: merging(10),
        lambda: merging(100),
        lambda: tracing(best),
        folding,
        reconciling,
        chaining,
        reading,
        importing,
    )
    for result in chain((measure() for measure in cheap), observer.measured()):
        print(result, flush=True)


if __name__ == "__main__":
    main()
