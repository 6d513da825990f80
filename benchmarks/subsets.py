"""How folding a subset grows with its partitions."""

from __future__ import annotations

import gc
import time
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.lineage.partitions.comparison import Seen, reconcile
from airflow_provider_sparklineage.lineage.partitions.expected import Expected
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.subset import (
    Compare,
    Comparison,
    Partitions,
    contains,
    date_range,
    disjunction,
)
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.model.subset import Condition


PARTITIONS = 100_000
LISTED = 4_000
RUNS = 4


def hours(count: int) -> list[Partition]:
    """Give a gap-free run of hours, as the partitions of one region."""
    start = datetime(2000, 1, 1, tzinfo=UTC)
    return [
        Partition((("hour", f"{start + timedelta(hours=n):%Y-%m-%d-%H}"), ("region", "eu")))
        for n in range(count)
    ]


def folding() -> Result:
    """Unite partitions one by one, compare and range them: 200,000 against 100,000.

    In turns, and in seconds of this process: both are as busy as the machine is otherwise.
    """
    once, twice = work(PARTITIONS), work(2 * PARTITIONS)
    seconds = [(cpu_seconds(once), cpu_seconds(twice)) for _ in range(RUNS)]
    once_s, twice_s = (min(column) for column in zip(*seconds, strict=True))
    figures = f"{PARTITIONS:,} partitions in {once_s:.2f} s, twice as many in {twice_s:.2f} s"
    return Result("fold twice the partitions / once", twice_s / once_s, 2.2, figures)


def reconciling() -> Result:
    """Compare expected with observed partitions, spelled otherwise: 200,000 against 100,000."""
    once, twice = comparison(PARTITIONS), comparison(2 * PARTITIONS)
    seconds = [(cpu_seconds(once), cpu_seconds(twice)) for _ in range(RUNS)]
    once_s, twice_s = (min(column) for column in zip(*seconds, strict=True))
    figures = f"{PARTITIONS:,} in {once_s:.2f} s (goal 2 s), twice as many in {twice_s:.2f} s"
    return Result("reconcile twice the partitions / once", twice_s / once_s, 2.2, figures)


def listing() -> Result:
    """Compare an IN list with one of the same values: 8,000 against 4,000."""
    pairs = [(_in_list(LISTED), _in_list(LISTED)), (_in_list(2 * LISTED), _in_list(2 * LISTED))]
    once_s, twice_s = (
        min(cpu_seconds(lambda pair=pair: contains(*pair)) for _ in range(RUNS))  # type: ignore[misc]
        for pair in pairs
    )
    figures = f"{LISTED:,} values in {once_s:.3f} s, twice as many in {twice_s:.3f} s"
    return Result("contain twice the IN list / once", twice_s / once_s, 2.2, figures)


def _in_list(count: int) -> Condition:
    return disjunction(Compare("id", Comparison.EQUAL, str(n)) for n in range(count))


def comparison(count: int) -> Callable[[], None]:
    """Give the comparison of so many days; making them is not measured."""
    days = [(date.min + timedelta(days=n)).isoformat() for n in range(count)]
    expected, seen = (
        frozenset(Partition((("dt", day),)) for day in spelled)
        for spelled in (days, [day.replace("-", "") for day in days])
    )
    dimensions = (Dimension.of("dt"),)

    def compare() -> None:
        reconcile(Expected(Kind.DECLARED, expected, dimensions), Seen(dimensions, seen))

    return compare


def work(count: int) -> Callable[[], None]:
    """Give what is done with so many partitions; making them is not measured."""
    partitions = hours(count)
    parts = [Partitions(frozenset({p})) for p in partitions]
    every = frozenset(partitions)

    def fold() -> None:
        contains(disjunction(parts), Partitions(every))
        date_range(every, "%Y-%m-%d-%H")

    return fold


def cpu_seconds(action: Callable[[], object]) -> float:
    """Seconds that one run keeps a core busy, without the collector, as :mod:`timeit` measures."""
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()
        action()
        return time.process_time() - start
    finally:
        gc.enable()
