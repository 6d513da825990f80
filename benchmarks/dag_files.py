"""What the operator costs a DAG file: to parse and to serialise it, and in the serialised DAG.

Everything is compared with the same tasks of the stock operator, in the same process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from benchmarks.measuring import Growth, in_turns, peak_mb, usual
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

TASKS = 200
SIZES = (50, 100, 200, 400)
RUNS = 30
IMPORTS = 5
GOAL = 1.05
DECLARED = {"reads": ["s3a://lake/orders/dt={{ ds }}"], "writes": ["s3a://lake/daily/dt={{ ds }}"]}
_LINKS = "each task names its two links to the backend's pages, without which Airflow shows none"
WHO = {
    "stock": (SparkSubmitOperator, {}),
    "ours": (SparkLineageSubmitOperator, {}),
    "ours with reads and writes": (SparkLineageSubmitOperator, DECLARED),
}  # type: dict[str, tuple[type, dict[str, Any]]]


def dag(who: str, tasks: int) -> DAG:
    """Make the DAG of a file: a chain of tasks."""
    operator, declared = WHO[who]
    start = datetime(2024, 5, 6, tzinfo=UTC)
    with DAG("shop", schedule="@daily", start_date=start) as made:
        before = None
        for number in range(tasks):
            task = operator(
                task_id=f"load_{number}",
                application="/jobs/load.py",
                conf={"spark.app.name": "load {{ ds }}"},
                application_args=["--date", "{{ ds }}", "--table", f"orders_{number}"],
                **declared,
            )
            if before is not None:
                before >> task
            before = task
    return made


def measured() -> Iterator[Result]:
    """Measure parsing, serialising and size, then the import."""
    peaks = [peak_mb(parsing(who, TASKS)) for who in WHO]
    yield from _timed("parse", parsing, f"memory {_list(peaks)} MB")
    yield from _timed("serialise", serialising)
    documents = [DagSerialization.to_dict(dag(who, TASKS)) for who in WHO]
    for document in documents:
        _check(document)
    sizes = [len(json.dumps(document)) for document in documents]
    yield from _compared("size of", sizes, f"{_list(sizes)} bytes", _LINKS)
    yield importing(
        "our operator / stock operator",
        SparkLineageSubmitOperator.__module__,
        SparkSubmitOperator.__module__,
    )


def parsing(who: str, tasks: int) -> Callable[[], object]:
    """Make the DAG."""
    return lambda: dag(who, tasks)


def serialising(who: str, tasks: int) -> Callable[[], object]:
    """Serialise a DAG that is made already."""
    made = dag(who, tasks)
    return lambda: DagSerialization.to_dict(made)


def _timed(
    what: str, action: Callable[[str, int], Callable[[], object]], more: str = ""
) -> Iterator[Result]:
    seconds = in_turns(*(action(who, TASKS) for who in WHO), runs=RUNS)
    growth = Growth.of(SIZES, lambda tasks: action("ours", tasks))
    figures = f"{_list([s * 1000 for s in seconds])} ms; exponent {growth.exponent:.2f} ({growth})"
    yield from _compared(what, seconds, f"{figures}{more and '; '}{more}")


def _compared(
    what: str, of_each: Sequence[float], figures: str, missed: str = ""
) -> Iterator[Result]:
    """Compare with the stock operator's, which is the first."""
    stock, ours, declared = of_each
    name = f"{what} a DAG of {TASKS} tasks / the stock operator's"
    yield Result(name, ours / stock, GOAL, figures, missed=missed)
    yield Result(f"{name}, with reads and writes", declared / stock, None, "as above")


def _list(figures: Sequence[float]) -> str:
    named = zip(WHO, figures, strict=True)
    return ", ".join(f"{who} {figure:,.{0 if figure > 999 else 1}f}" for who, figure in named)


def _check(document: dict[str, Any]) -> None:
    """Check that the tasks are there, and what is declared of them."""
    tasks = [task["__var"] for task in document["dag"]["tasks"]]
    assert len(tasks) == TASKS
    declares = [{key: t[key] for key in DECLARED if key in t} for t in tasks]
    assert declares in ([{}] * TASKS, [DECLARED] * TASKS), declares[0]


def importing(what: str, ours: str, stock: str, missed: str = "") -> Result:
    """Import the module of an operator of ours, against importing the stock operator's.

    :param ours: the name of the module; ``stock`` is that of the other
    """
    runs = [[_import_s(module) for module in (ours, stock)] for _ in range(IMPORTS)]
    ours_s, stock_s = (usual(column) for column in zip(*runs, strict=True))
    figures = f"CPU ours {ours_s:.2f} s, stock {stock_s:.2f} s"
    return Result(f"import {what}", ours_s / stock_s, GOAL, figures, missed=missed)


def _import_s(module: str) -> float:
    """CPU seconds of a process that imports a module."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
