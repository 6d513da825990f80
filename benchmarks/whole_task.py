"""How long a whole task takes, compared with a stock task whose user set the listener up by hand.

A task is rendered, asked for its event at START, executed with a real Spark that makes fifty small
writes, and asked for its event at the end, as Airflow's OpenLineage provider asks. The stock task
has the listener in its conf, with a file as transport. Import of the operators is not in it: that
has a figure of its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS
from benchmarks import submitting
from benchmarks.applications import small_writes
from benchmarks.results import Result
from tests.record_events import Spark, spark_conf

if TYPE_CHECKING:
    from collections.abc import Iterator

PAIRS = 7
GOAL = 1.02
_MISSED = (
    "the observer takes some 17 ms of CPU a write, and the JVM compiles more code; no part of it "
    "is large (docs/decisions/submission.md)"
)

TASK = (
    submitting.SETUP
    + """
import time

application, lake, tables, conf, listener_conf = json.loads(sys.argv[2])
operator = made(
    application=application, application_args=[lake],
    conf=conf | (listener_conf if sys.argv[1] == "stock" else {}),
)

begun, cpu_before = time.perf_counter(), cpu()
operator.render_template_fields(context)
hook("start", "/lake/revenue")
operator.execute(context)
hook("complete", *(f"{lake}/table{number}" for number in range(tables)))
seconds = time.perf_counter() - begun
print(json.dumps({"seconds": seconds, "cpu": cpu() - cpu_before}))
"""
)


def measured() -> Iterator[Result]:
    """Run our task and the stock one in pairs, which take turns in being the first."""
    submitting.make_ready()
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in submitting.NAMES}
    for pair in range(PAIRS):
        for name in submitting.NAMES if pair % 2 else reversed(submitting.NAMES):
            with tempfile.TemporaryDirectory() as folder:
                runs[name].append(_run(name, Path(folder)))
    pairs = zip(runs["ours"], runs["stock"], strict=True)
    ratios = [ours["seconds"] / stock["seconds"] for ours, stock in pairs]
    medians = [
        statistics.median(run[what] for run in runs[name])
        for what in ("seconds", "cpu")
        for name in submitting.NAMES
    ]
    yield Result(
        f"a task of {small_writes.WRITES} small writes / with a listener set up by hand",
        statistics.median(ratios),
        GOAL,
        f"medians of {PAIRS} pairs ({' '.join(f'{ratio:.2f}' for ratio in ratios)}); ours "
        "{:.1f} s, by hand {:.1f} s; of CPU {:.1f} and {:.1f} s".format(*medians),
        missed=_MISSED,
    )


def _run(name: str, folder: Path) -> dict[str, float]:
    """Run a task in a process of its own; give its seconds, and the seconds of CPU, Spark's too."""
    lake, scratch = folder / "lake", folder / "scratch"
    lake.mkdir()
    scratch.mkdir()
    events = folder / "events.ndjson"
    listener = Spark.of(Path(sys.executable).with_name("spark-submit")).listener
    by_hand = {
        "spark.jars": str(listener),
        "spark.extraListeners": LISTENER_CLASS,
        "spark.openlineage.transport.type": "file",
        "spark.openlineage.transport.location": str(events),
        "spark.openlineage.namespace": "default",
    }
    conf = spark_conf(lake, scratch)
    application = Path(__file__).parent / "applications" / "small_writes.py"
    done = subprocess.run(
        [
            *(sys.executable, "-c", TASK, name),
            json.dumps([str(application), str(lake), small_writes.TABLES, conf, by_hand]),
            json.dumps(submitting.LAST_RUN),
        ],
        env=submitting.environment(folder),
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (name == "ours") is not events.exists(), (
        "the listener wrote nothing, or where it should not"
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found
