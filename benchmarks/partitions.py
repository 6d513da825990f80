"""How comparing and describing a subset grows with its partitions."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.lineage.partitions.comparison import Seen, reconcile
from airflow_provider_sparklineage.lineage.partitions.expected import Expected
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.subset import date_range
from benchmarks.measuring import in_turns
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PARTITIONS = 100_000
RUNS = 4


def hours(count: int) -> list[Partition]:
    """Give a gap-free run of hours, as the partitions of one region."""
    start = datetime(2000, 1, 1, tzinfo=UTC)
    return [
        Partition((("hour", f"{start + timedelta(hours=n):%Y-%m-%d-%H}"), ("region", "eu")))
        for n in range(count)
    ]


def measured() -> Iterator[Result]:
    """Measure all of it."""
    yield ranging()
    yield reconciling()


def ranging() -> Result:
    """Describe a gap-free run of hours by its first and last: 200,000 against 100,000."""
    once, twice = frozenset(hours(PARTITIONS)), frozenset(hours(2 * PARTITIONS))
    once_s, twice_s = in_turns(
        lambda: date_range(once, "%Y-%m-%d-%H"), lambda: date_range(twice, "%Y-%m-%d-%H"), runs=RUNS
    )
    figures = f"{PARTITIONS:,} partitions in {once_s:.2f} s, twice as many in {twice_s:.2f} s"
    return Result("range of twice the partitions / once", twice_s / once_s, 2.2, figures)


def reconciling() -> Result:
    """Compare expected with observed partitions in two formats: 200,000 against 100,000."""
    once, twice = comparison(PARTITIONS), comparison(2 * PARTITIONS)
    once_s, twice_s = in_turns(once, twice, runs=RUNS)
    figures = f"{PARTITIONS:,} in {once_s:.2f} s (goal 2 s), twice as many in {twice_s:.2f} s"
    return Result("reconcile twice the partitions / once", twice_s / once_s, 2.2, figures)


def comparison(count: int) -> Callable[[], None]:
    """Give the comparison of so many days; making them is not measured."""
    days = [(date.min + timedelta(days=n)).isoformat() for n in range(count)]
    expected, seen = (
        frozenset(Partition((("dt", day),)) for day in written)
        for written in (days, [day.replace("-", "") for day in days])
    )
    dimensions = (Dimension.of("dt"),)

    def compare() -> None:
        reconcile(Expected(Kind.DECLARED, expected, dimensions), Seen(dimensions, seen))

    return compare
