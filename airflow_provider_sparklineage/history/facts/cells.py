"""Partitions as text: one readable form, and one canonical form, the cell, for joins.

The readable form is the folder that Hive and Spark would write, ``dt=2024-10-15/region=eu``, in
the order of the dataset's dimensions. Joins compare the cell: its dimensions are sorted by name,
and its values are in canonical form (:func:`.model.partitioning.canonical_value`), because a writer
may see the folder ``month=05`` where a reader sees the number 5, and ``20241015`` is
``2024-10-15``.
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

    from airflow_provider_sparklineage.event.model import Value


class Cell(NamedTuple):
    """A partition of a dataset, as text.

    :param partition: the readable form, also used on the command line
    :param cell: the canonical form, which joins compare
    :param dims: names of the dimensions, sorted, with commas between
    """

    partition: str
    cell: str
    dims: str


def cell_of(dimensions: Mapping[str, Value]) -> Cell:
    """Give the partition that has these values of dimensions.

    :param dimensions: values by the dimensions' names, in the dataset's order; None is null
    """
    return _cell(tuple((name, _text(value)) for name, value in dimensions.items()))


def cell_of_text(partition: str) -> Cell | None:
    """Parse a partition such as ``dt=2024-10-15/region=eu``; None if it cannot be parsed."""
    fit = hive_fit(partition)
    if fit is None or not fit.spans or partition[fit.spans[-1][2] :].strip("/"):
        return None
    return _cell(fit.partition.values)


@lru_cache(maxsize=100_000)  # the same days come again in all events
def _cell(values: tuple[tuple[str, str | None], ...]) -> Cell:
    partition = Partition.from_values(values)
    known = sorted((label, canonical_value(value, "", None)) for label, value in partition.values)
    dims = ",".join(escape(label).replace(",", "%2C") for label, _ in known)
    return Cell(str(partition), str(Partition(tuple(known))), dims)


def _text(value: Value) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
