"""What adoption costs a DAG file: to parse it as Airflow does, with its cluster policies.

Everything is compared with the same file where the policy is not there, in the same process.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airflow import settings
from airflow.dag_processing.dagbag import DagBag

from airflow_provider_sparklineage.operators.adoption import policy
from benchmarks.measuring import in_turns, usual
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow.sdk import DAG

TASKS = 1000
RUNS = 15
CALLS = 20
PROCESSES = 5
GOAL = 1.05
GOAL_US = 20
NAME = "sparklineage"
OPTION = "AIRFLOW__SPARKLINEAGE__ADOPT"
RULES = "".join(
    [f"- dag_id: team_{n}_*\n  tags: [spark, batch]\n" for n in range(20)]
    + ["- dag_id: sh?p\n  task_id: [first, 'task_*']\n  operator: '*.SparkSubmitOperator'\n"]
    + ["- task_id: '*_legacy'\n  exclude: true\n"]
)
SPARK = """
from datetime import datetime, timezone
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG

with DAG("shop", schedule="@daily", start_date=datetime(2024, 5, 6, tzinfo=timezone.utc)):
    before = None
    for number in range({tasks}):
        task = SparkSubmitOperator(
            task_id=f"task_{{number}}",
            application="/jobs/load.py",
            conf={{"spark.app.name": "load {{{{ ds }}}}"}},
            application_args=["--date", "{{{{ ds }}}}", "--table", f"orders_{{number}}"],
        )
        if before is not None:
            before >> task
        before = task
"""
EMPTY = """
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

with DAG("shop", schedule=None):
    for number in range({tasks}):
        EmptyOperator(task_id=f"task_{{number}}")
"""
FIRST = """
import time
import airflow.settings
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow_provider_sparklineage.operators.adoption import policy

with DAG("shop", schedule=None):
    task = SparkSubmitOperator(task_id="load", application="/jobs/load.py")
start = time.process_time()
policy.task_policy(task)
print(time.process_time() - start)
"""


def measured() -> Iterator[Result]:
    """Measure parsing, and the policy alone for tasks that run no Spark."""
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        yield from _parsing(Path(folder))
        yield _unconcerned(Path(folder))
    yield _first()


def _parsing(folder: Path) -> Iterator[Result]:
    (folder / "shop.py").write_text(SPARK.format(tasks=TASKS))
    values = {"without the policy": None, "off": "off", "all": "all", "by rules": RULES}
    for name, value in values.items():
        adopted = [getattr(task, "is_adopted", None) for task in parse(folder, value).tasks]
        assert adopted == [name in ("all", "by rules") or None] * TASKS, name
    without, *seconds = in_turns(*(parsing(folder, value) for value in values.values()), runs=RUNS)
    for (name, _), each in zip([*values.items()][1:], seconds, strict=True):
        what = f"parse {TASKS:,} Spark tasks, adoption {name} / without the policy"
        figures = f"{each * 1000:,.0f} ms, without {without * 1000:,.0f} ms"
        yield Result(what, each / without, GOAL, figures)


def _unconcerned(folder: Path) -> Result:
    (folder / "shop.py").write_text(EMPTY.format(tasks=TASKS))
    tasks = parse(folder, "all").tasks

    def ask(value: str | None) -> Callable[[], None]:
        def each() -> None:
            with policies(value):
                for task in tasks * CALLS:
                    settings.task_policy(task)  # type: ignore[no-untyped-call]

        return each

    without, asked = in_turns(ask(None), ask("all"), runs=RUNS)
    cost_us = (asked - without) / TASKS / CALLS * 1e6
    figures = f"with Airflow's own call of a policy; {without / TASKS / CALLS * 1e6:.2f} µs without"
    return Result("the policy, for a task without Spark", cost_us, GOAL_US, figures, " µs")


def _first() -> Result:
    """Adopt one task in a process that has imported what its DAG file does."""
    seconds = []
    for _ in range(PROCESSES):
        done = subprocess.run(
            [sys.executable, "-c", FIRST],
            env={**os.environ, OPTION: "all"},
            check=True,
            capture_output=True,
            text=True,
        )
        seconds.append(float(done.stdout.splitlines()[-1]))
    figures = "mostly what is imported, as for a DAG with the lineage operator; CPU"
    return Result("adopt the first task of a process", usual(seconds) * 1000, None, figures, " ms")


def parsing(folder: Path, value: str | None) -> Callable[[], object]:
    """Parse a DAG file."""
    return lambda: parse(folder, value)


def parse(folder: Path, value: str | None) -> DAG:
    """Let Airflow parse a DAG file, with what is to be adopted; without a value, no policy."""
    with policies(value):
        bag = DagBag(str(folder), bundle_path=folder, bundle_name="shop")
    assert not bag.import_errors
    [dag] = bag.dags.values()
    return dag


@contextmanager
def policies(value: str | None) -> Iterator[None]:
    """Let Airflow have our policy or not."""
    manager = settings.get_policy_plugin_manager()
    if manager.has_plugin(NAME):
        manager.unregister(name=NAME)
    if value is None:
        yield
        return
    os.environ[OPTION] = value
    manager.register(policy, name=NAME)
    yield
