"""Partitions as text: one for people, and one that is the same for everybody who means the same.

The text for people is the folder that Hive and Spark would write, ``dt=2024-10-15/region=eu``, in
the order of the dataset's dimensions. Its cell is what is joined on: dimensions are sorted by name,
and values are in canonical form (:mod:`.model.values`), because a writer may see the folder
``month=05`` where a reader sees the number 5, and ``20241015`` is ``2024-10-15``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.partitioning import (
    Partition,
    canonical_value,
    escape,
    hive_fit,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.history.facts.event import Value


class Cell(NamedTuple):
    """A partition of a dataset.

    :param partition: for people and on the command line
    :param cell: what joins compare
    :param dims: names of the dimensions, sorted, with commas between
    """

    partition: str
    cell: str
    dims: str


def cell_of(dimensions: Mapping[str, Value]) -> Cell:
    """Give a partition by the values of its dimensions, in the dataset's order; null is None."""
    return _cell(tuple((name, _text(value)) for name, value in dimensions.items()))


def cell_of_text(partition: str) -> Cell | None:
    """Read a partition as people write it, e.g. ``dt=2024-10-15/region=eu``; None if it is none."""
    fit = hive_fit(partition)
    if fit is None or not fit.spans or partition[fit.spans[-1][2] :].strip("/"):
        return None
    return _cell(fit.partition.values)


@lru_cache(maxsize=100_000)  # the same days come again in all events
def _cell(values: tuple[tuple[str, str | None], ...]) -> Cell:
    partition = Partition.of(values)
    known = sorted((label, canonical_value(value, "", None)) for label, value in partition.values)
    dims = ",".join(escape(label).replace(",", "%2C") for label, _ in known)
    return Cell(str(partition), str(Partition(tuple(known))), dims)


def _text(value: Value) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
