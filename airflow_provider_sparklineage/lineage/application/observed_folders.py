"""Folders that the observer saw, with what it found below them, as partitions of datasets.

A layout of the observer is a base with the partitions below it. The base may be a folder of a
partition itself, and a dataset of its own where its folder is not trimmed off the dataset's name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition, split_folder
from airflow_provider_sparklineage.spark.capture.observations import Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.spark.capture.observations import ReadRecord


def partitions_of(
    layouts: Iterable[Layout],
    dataset: DatasetName,
    locator: Locator,
    budget: Budget = UNLIMITED,
) -> tuple[tuple[Dimension, ...], frozenset[Partition] | None]:
    """Unite the layouts of one dataset, with the partitions that their bases are themselves.

    :return: dimensions and partitions; None where only a rule could name the partition of a base
    :raise SpentError: if there is no time left
    """
    known = locator.rules.dimensions(dataset)
    dimensions: dict[Dimension, None] = {}
    partitions: set[Partition] = set()
    for layout in layouts:
        prefix = _partition(layout.base, locator)
        if prefix is None:
            return (), None
        own = [Dimension.of(d.field, d.transform, d.name, d.type) for d in layout.dimensions]
        for dimension in (*(Dimension.of(label) for label, _ in prefix.values), *own):
            ruled = known.get(dimension.label, dimension)
            dimensions[replace(ruled, type=ruled.type or dimension.type)] = None
        labels = [d.label for d in own]
        for values in layout.partitions:
            budget.work()
            rest = Partition.observed(zip(labels, values, strict=False))
            partitions.add(Partition(prefix.values + rest.values))
    return tuple(dimensions), frozenset(partitions)


def are_partitions(bases: Iterable[str], locator: Locator) -> bool:
    """Whether some base is no dataset's root, but the folder of one of its partitions."""
    return any(_partition(base, locator) != Partition() for base in bases)


def _partition(base: str, locator: Locator) -> Partition | None:
    location = locator.locate(base)
    return location.partition if location else Partition()


def at_roots(read: ReadRecord, locator: Locator) -> Iterator[Layout]:
    """Give the layouts of a read, below its roots where those are datasets of their own.

    With the option ``basePath`` the observer finds partitions below a folder above the roots, and
    the listener names the roots: two datasets if a partition's folder is not trimmed.
    """

    def dataset(path: str) -> DatasetName | None:
        location = locator.locate(path)
        return location.dataset if location else None

    datasets: dict[str, DatasetName | None] = {}
    for layout in read.layouts or ():
        if layout.dimensions and not datasets:
            datasets = {root: dataset(root) for root in read.roots}
        above = dataset(layout.base) if layout.dimensions else None
        own = [root for root in datasets if above and datasets[root] != above]
        inside = [part for root in own if (part := _inside(layout, root))]
        yield from inside or [layout]


def _inside(layout: Layout, root: str) -> Layout | None:
    """Give the part of a layout that is in a partition's folder; None if it is no such folder."""
    values = Partition.of(values_between(plain(layout.base), plain(root))).values
    leading = [d.field for d in layout.dimensions[: len(values)]]
    if not values or leading != [label for label, _ in values]:
        return None
    inside = [
        partition[len(values) :]
        for partition in layout.partitions
        if Partition.of(zip(leading, partition, strict=False)).values == values
    ]
    return Layout(root, layout.dimensions[len(values) :], inside)


def values_between(base: str, folder: str) -> list[tuple[str, str]]:
    """Read the columns and values between two folders; none if other folders are between them."""
    if not folder.startswith(f"{base}/"):
        return []
    found = [split_folder(name) for name in folder[len(base) + 1 :].split("/")]
    values = [one for one in found if one is not None]
    return values if len(values) == len(found) else []


def plain(uri: str) -> str:
    """Write a URI with one slash after its scheme, so that those of one folder are equal."""
    scheme, colon, rest = uri.partition(":/")
    return f"{scheme}{colon}{rest.lstrip('/')}" if colon else uri
