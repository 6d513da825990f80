"""How folding a subset grows with its partitions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.partitioning import Partition
from airflow_provider_sparklineage.subset import Partitions, contains, date_range, disjunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.__main__ import Result

PARTITIONS = 100_000


def hours(count: int) -> list[Partition]:
    """Give a gap-free run of hours, as the partitions of one region."""
    start = datetime(2000, 1, 1, tzinfo=UTC)
    return [
        Partition((("hour", f"{start + timedelta(hours=n):%Y-%m-%d-%H}"), ("region", "eu")))
        for n in range(count)
    ]


def folding(best: Callable[[Callable[[], object]], float], result: type[Result]) -> Result:
    """Unite partitions one by one, compare and range them: 200,000 against 100,000."""

    def seconds(count: int) -> float:
        partitions = hours(count)
        parts = [Partitions(frozenset({p})) for p in partitions]
        every = frozenset(partitions)

        def fold() -> None:
            united = disjunction(parts)
            contains(united, Partitions(every))
            date_range(every, "%Y-%m-%d-%H")

        return best(fold)

    once_s, twice_s = seconds(PARTITIONS), seconds(2 * PARTITIONS)
    figures = f"{PARTITIONS:,} partitions in {once_s:.2f} s, twice as many in {twice_s:.2f} s"
    return result("fold twice the partitions / once", twice_s / once_s, 2.2, figures)
