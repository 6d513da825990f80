"""Partitions as text: what the page asks with, and what the tables are joined on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.facts import cells
from airflow_provider_sparklineage.model.partitioning import Partition

if TYPE_CHECKING:
    from collections.abc import Mapping

    Dimensions = Mapping[str, str | None] | None


def partition_of(dimensions: Dimensions) -> str:
    """Write a partition in its own order of dimensions; empty for all of a dataset."""
    return str(Partition.of((dimensions or {}).items()))


def cell_of(dimensions: Dimensions) -> str | None:
    """Write it as tables are joined on it; None for all of a dataset."""
    return cells.cell_of(dimensions).cell if dimensions else None
