"""Folders that the observer saw, with what it found below them, as partitions of datasets.

A layout of the observer is a base with the partitions below it. The base may be a folder of a
partition itself, and a dataset of its own where its folder is not trimmed off the dataset's name.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.model.partitioning import (
    NULL,
    Dimension,
    Partition,
    split_folder,
)
from airflow_provider_sparklineage.spark.capture.observations import Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.spark.capture.observations import ReadRecord, Values


class FolderPartitions:
    """The partitions of layouts: an equal one is the same object, and an equal list the same set.

    :param budget: for all of them
    """

    def __init__(self, locator: Locator, budget: Budget = UNLIMITED) -> None:
        self._locator = locator
        self._budget = budget
        self._makers: dict[_Labels, _Maker] = {}
        self._sets: dict[tuple[_Labels, tuple[Values, ...]], frozenset[Partition]] = {}

    def of(
        self, layouts: Iterable[Layout], dataset: DatasetName
    ) -> tuple[tuple[Dimension, ...], frozenset[Partition] | None]:
        """Unite the layouts of one dataset, with the partitions that their bases are themselves.

        :return: dimensions and partitions; None where only a rule could name the partition of a
            base
        :raise SpentError: if there is no time left
        """
        known = self._locator.rules.dimensions(dataset)
        dimensions: dict[Dimension, None] = {}
        found: list[frozenset[Partition]] = []
        for layout in layouts:
            base = _partition(layout.base, self._locator)
            if base is None:
                return (), None
            own = [Dimension.of(d.field, d.transform, d.name, d.type) for d in layout.dimensions]
            for dimension in (*(Dimension.of(label) for label, _ in base.values), *own):
                ruled = known.get(dimension.label, dimension)
                dimensions[replace(ruled, type=ruled.type or dimension.type)] = None
            labels = base.values, tuple(d.label for d in own)
            found.append(self._listed(labels, layout.partitions))
        partitions = found[0] if len(found) == 1 else frozenset().union(*found)
        return tuple(dimensions), partitions

    def _listed(self, labels: _Labels, listed: tuple[Values, ...]) -> frozenset[Partition]:
        made = self._sets.get((labels, listed))
        if made is None:
            made = self._sets[labels, listed] = frozenset(self._made(labels, listed))
        return made

    def _made(self, labels: _Labels, listed: tuple[Values, ...]) -> Iterator[Partition]:
        maker = self._makers.setdefault(labels, _Maker(*labels))
        for start in range(0, len(listed), _AT_ONCE):
            some = listed[start : start + _AT_ONCE]
            self._budget.work(len(some))
            yield from map(maker.__getitem__, some)


_AT_ONCE = 500
_Labels = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]
"""The values of the base, and the labels below it."""


class _Maker(dict["Values", Partition]):
    """The partitions below one base by their values; makes those that are not there yet."""

    def __init__(self, base: tuple[tuple[str, str], ...], labels: tuple[str, ...]) -> None:
        self._base = base
        self._labels = labels

    def __missing__(self, values: Values) -> Partition:
        """Make a partition as it was observed: null is None, and the empty text is a value."""
        given = [NULL if value is None else value for value in values]
        made = Partition((*self._base, *zip(self._labels, given, strict=False)))
        return self.setdefault(values, made)


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
    inside = tuple(
        partition[len(values) :]
        for partition in layout.partitions
        if Partition.of(zip(leading, partition, strict=False)).values == values
    )
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
