"""The paths and tables in the observer's records, as datasets and partitions.

The observer and the listener do not communicate, so evidence binds their reports: the path that was
read or written, turned into the name that the listener gives to that path; else the identifier of
the table, which is looked up among symlinks (:class:`DatasetIndex`). A folder that no action of the
listener has is a dataset of its own, under the name that the listener would give it.

A layout of the observer is a base folder with the partitions below it (:class:`FolderPartitions`).
The base may be the folder of a partition itself. Such a base is a dataset of its own if the
listener does not trim the partition's folder off the dataset's name.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from airflow_provider_sparklineage.lineage.application.accesses import Figures
from airflow_provider_sparklineage.model.datasets import DatasetName, looks_like_file
from airflow_provider_sparklineage.model.locations import Locator, RememberingLocator
from airflow_provider_sparklineage.model.partitioning import (
    NULL,
    Dimension,
    Partition,
    split_folder,
)
from airflow_provider_sparklineage.spark.capture.observations import Layout

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.model.allowance import Work
    from airflow_provider_sparklineage.spark.capture.observations import (
        ObservationRecord,
        ReadRecord,
        Values,
    )

    Locations = frozenset[str] | None
    """The folders of a dataset's partitions; None stands for the full dataset."""


# --- layouts to partitions ------------------------------------------------------------------------


class FolderPartitions:
    """Makes partitions from layouts: from a base folder and the partitions that lie below it.

    Equal partitions, and equal sets of partitions, are one object.
    """

    def __init__(self, locator: Locator, work: Work = lambda _: None) -> None:
        self._locator = locator
        self._work = work
        self._partitions: dict[_Labels, dict[Values, Partition]] = defaultdict(dict)
        self._sets: dict[tuple[_Labels, tuple[Values, ...]], frozenset[Partition]] = {}

    def of(
        self, layouts: Iterable[Layout], dataset: DatasetName
    ) -> tuple[tuple[Dimension, ...], frozenset[Partition] | None]:
        """Give the dimensions and the partitions of all layouts of one dataset.

        If a base folder is itself a partition's, such as ``dt=2024-05-06``, the partitions below it
        have its values too.

        :return: dimensions and partitions; () and None if the values of a base folder are not known
            without a rule
        :raise SpentError: if there is no time left
        """
        known = self._locator.rules.dimensions(dataset)
        dimensions: dict[Dimension, None] = {}
        found: list[frozenset[Partition]] = []
        for layout in layouts:
            base = _partition_of_base(layout.base, self._locator)
            if base is None:
                return (), None
            own = _dimensions(layout)
            for dimension in (*(Dimension.of_column(label) for label, _ in base.values), *own):
                ruled = known.get(dimension.label, dimension)
                dimensions[ruled if ruled.type else replace(ruled, type=dimension.type)] = None
            found.append(self._listed(_labels(base, layout), layout.partitions))
        partitions = found[0] if len(found) == 1 else frozenset().union(*found)
        return tuple(dimensions), partitions

    def figures(self, layouts: Iterable[Layout]) -> dict[Partition, Figures] | None:
        """Give what a write added to each partition of its layouts.

        :return: None if neither rows nor bytes of some layout are known
        """
        found: dict[Partition, Figures] = {}
        for layout in layouts:
            base = _partition_of_base(layout.base, self._locator)
            if base is None or (layout.rows is None and layout.sizes is None):
                return None
            partitions = self._made(_labels(base, layout), layout.partitions)
            rows, sizes = layout.rows or repeat(None), layout.sizes or repeat(None)
            for partition, *counted in zip(partitions, rows, sizes, strict=False):
                known = found.get(partition, Figures())
                found[partition] = known.plus(Figures(*counted))
        return found

    def are_bases(self, bases: Iterable[str]) -> bool:
        """Whether some base folder is that of a partition, and not the root of a dataset."""
        return any(_partition_of_base(base, self._locator) != Partition() for base in bases)

    def _listed(self, labels: _Labels, listed: tuple[Values, ...]) -> frozenset[Partition]:
        if (made := self._sets.get((labels, listed))) is None:
            made = self._sets[labels, listed] = frozenset(self._made(labels, listed))
        return made

    def _made(self, labels: _Labels, listed: tuple[Values, ...]) -> Iterator[Partition]:
        base, below = labels
        known = self._partitions[labels]  # lists of one dataset mostly differ in a few partitions
        for values in listed:
            self._work(1)
            if (made := known.get(values)) is None:
                # None becomes NULL, and "" stays a value.
                given = (NULL if value is None else value for value in values)
                made = known[values] = Partition((*base, *zip(below, given, strict=False)))
            yield made


_Labels = tuple[tuple[tuple[str, str], ...], tuple[str, ...]]
"""The (label, value) pairs of a base folder, and the labels of the partitions below the base."""


def _dimensions(layout: Layout) -> list[Dimension]:
    return [Dimension.of_column(d.field, d.transform, d.name, d.type) for d in layout.dimensions]


def _labels(base: Partition, layout: Layout) -> _Labels:
    return base.values, tuple(dimension.label for dimension in _dimensions(layout))


def _partition_of_base(base: str, locator: Locator) -> Partition | None:
    location = locator.locate(base)
    return location.partition if location else Partition()


def at_roots(record: ObservationRecord, locator: Locator) -> ObservationRecord:
    """Replace base folders of a record's reads by the folders that the query names (*roots*).

    With the option ``basePath`` the observer gives partitions below a folder above the roots, while
    the listener names the roots. If the listener does not trim the folders of partitions off the
    name, the folder above and the roots are different datasets. Only then a base is replaced.

    :param locator: finds the dataset that the listener would name for a folder
    """
    return structs.replace(record, reads=[_read_at_roots(read, locator) for read in record.reads])


def _read_at_roots(read: ReadRecord, locator: Locator) -> ReadRecord:
    found: list[Layout] = []
    for layout in read.layouts or ():
        found += _parts_at_roots(layout, read.roots, locator) or [layout]
    return read if found == (read.layouts or []) else structs.replace(read, layouts=found)


def _parts_at_roots(layout: Layout, roots: Iterable[str], locator: Locator) -> list[Layout]:
    """Give the parts of a layout that lie below roots.

    A root that belongs to the dataset of the layout's base is left out.

    :param locator: finds the dataset that the listener would name for a folder
    """
    above = locator.locate(layout.base) if layout.dimensions else None
    if above is None:  # a read without partitions may have thousands of roots, each with a layout
        return []
    located = ((root, locator.locate(root)) for root in roots)
    others = (root for root, at in located if at is None or at.dataset != above.dataset)
    return [part for root in others if (part := _layout_inside(layout, root))]


def _layout_inside(layout: Layout, root: str) -> Layout | None:
    """Give the part of a layout below a root; None if the root is not a partition of the layout."""
    values = Partition.from_values(values_between(plain_uri(layout.base), plain_uri(root))).values
    leading = [d.field for d in layout.dimensions[: len(values)]]
    if not values or leading != [label for label, _ in values]:
        return None
    inside = tuple(
        partition[len(values) :]
        for partition in layout.partitions
        if Partition.from_values(zip(leading, partition, strict=False)).values == values
    )
    return Layout(root, layout.dimensions[len(values) :], inside)


def values_between(base: str, folder: str) -> list[tuple[str, str]]:
    """Read the (column, value) pairs of the folders from a base down to a folder.

    :return: [] if the folder is not below the base, or if a folder on the way has another form
        than ``column=value``
    """
    if not folder.startswith(f"{base}/"):
        return []
    found = [split_folder(name) for name in folder[len(base) + 1 :].split("/")]
    values = [one for one in found if one is not None]
    return values if len(values) == len(found) else []


def plain_uri(uri: str) -> str:
    """Write a URI with one slash after its scheme, so that all URIs of one folder are equal."""
    scheme, colon, rest = uri.partition(":/")
    return f"{scheme}{colon}{rest.lstrip('/')}" if colon else uri


# --- paths and tables to datasets -----------------------------------------------------------------


_INTERNAL_FOLDERS = frozenset({"_delta_log", "_spark_metadata"})
"""Folders inside of tables that hold no data of the user."""


class Place(NamedTuple):
    """A path or table of a record, and its dataset.

    :param dataset: the dataset that was read or written there; None if there is none
    :param bound: the dataset whose partitions are read or written there; None also for a single
        file of a dataset (:meth:`DatasetIndex.folder`)
    :param label: the name that the path would have as a dataset, or else the table
    :param locations: the place's folder, if that is a partition of the dataset
    :param table: the table's identifier, if the record has one
    :param is_file: whether the place is a single file of a dataset, and no dataset
    """

    dataset: DatasetName | None
    bound: DatasetName | None
    label: str = ""
    table: str | None = None
    locations: Locations = None
    is_file: bool = False

    @property
    def key(self) -> DatasetName | str:
        """The dataset; where there is none, the label."""
        return self.bound or self.label


class DatasetIndex:
    """Finds the datasets of an application by path or table.

    :param identities: the application's datasets, each with its symlinks
    """

    def __init__(
        self, identities: Mapping[DatasetName, Collection[DatasetName]], locator: Locator
    ) -> None:
        self.locator = RememberingLocator(locator.naming, locator.rules, locator.models)
        self._names = set(identities)
        self._aliases: dict[DatasetName, DatasetName] = {}
        self._by_table: dict[str, set[DatasetName]] = defaultdict(set)
        for name, links in identities.items():
            for link in links:
                self._aliases.setdefault(link, name)
                self._by_table[link.name].add(name)
        self._named: dict[tuple[str, str | None], DatasetName | None] = {}
        self._places: dict[tuple[str, str | None], Place] = {}

    def name(self, path: str, table: str | None) -> None:
        """Name the dataset of a path or table, and add it to the application's datasets.

        Neither a path in a folder such as ``_delta_log`` nor a single file of a known dataset is
        added. Call this for all paths before the first call of :meth:`place`.
        """
        if (path, table) not in self._named:
            self._named[path, table] = self._name(path, table)

    def _name(self, path: str, table: str | None) -> DatasetName | None:
        location = self.locator.locate(path)
        if location is not None and looks_like_file(location.folder.name):
            if self.above(location.folder) is not None:
                return self._known(location.dataset, None)
            if location.folder.name.rpartition("/")[2].startswith("part-"):  # one of Spark's files
                location = self.locator.locate(path.rpartition("/")[0])
        known = self._known(location.dataset if location else None, table)
        if known is not None or location is None:
            return known
        if not _INTERNAL_FOLDERS.isdisjoint(location.folder.name.split("/")):
            return None
        self._names.add(location.dataset)
        return location.dataset

    def place(self, path: str, table: str | None) -> Place:
        """Find the dataset of a path or table.

        :param table: the table's identifier, if the record has one
        """
        if (place := self._places.get((path, table))) is None:
            place = self._places[path, table] = self._place(path, table)
        return place

    def _place(self, path: str, table: str | None) -> Place:
        location = self.locator.locate(path)
        located = location.dataset if location else None
        bound = self._known(located, table)
        return Place(
            self._named.get((path, table), bound),
            bound,
            str(located) if located else table or path,
            table,
            frozenset({location.folder.name}) if location and location.below else None,
            bound is None and location is not None and self.above(location.folder) is not None,
        )

    def named(self, path: str, table: str | None) -> DatasetName | None:
        """Give the dataset of a path or table, or the name that the path would have as a dataset.

        :param table: the table's identifier, if the record has one
        :return: None if neither is known
        """
        location = self.locator.locate(path)
        return self.place(path, table).bound or (location.dataset if location else None)

    def folder(self, path: str, table: str | None) -> str:
        """Give the folder of a single file of a dataset; give every other path as it is.

        :param table: the table's identifier, if the record of the path has one
        """
        above = path.rpartition("/")[0]
        is_part = looks_like_file(path) and self.place(path, table).is_file
        return above if is_part and self.place(above, None).bound is not None else path

    def located(self, paths: Iterable[str]) -> set[DatasetName]:
        """Give the names that paths would have as datasets, whether or not they are datasets."""
        found = map(self.locator.locate, paths)
        return {location.dataset for location in found if location is not None}

    def relation(self, path: str, table: str | None) -> Place:
        """Find the dataset of a relation, whose path the observer gives without partition folders.

        If the listener does not trim these folders off names, the folders of partitions below the
        path are datasets. If there is only one such dataset, the place has it; if there are
        several, the place has no dataset.

        :param table: the table's identifier, if the record has one
        """
        location = self.locator.locate(path)
        if location is None or location.dataset in self._names:
            return self.place(path, table)
        above = location.folder
        folders = [
            name
            for name in self._names
            if name.namespace == above.namespace and values_between(above.name, name.name)
        ]
        if not folders:
            return self.place(path, table)
        only = folders[0] if len(folders) == 1 else None
        return Place(only, only)

    def _known(self, named: DatasetName | None, table: str | None) -> DatasetName | None:
        if named in self._names:
            return named
        if named in self._aliases:
            return self._aliases[named]
        parts = (table or "").split(".")
        for end in (".".join(parts[-2:]), parts[-1]):
            candidates = self._by_table.get(end, set()) if end else set()
            if len(candidates) == 1:
                return next(iter(candidates))
        return None

    def holding(self, files: Iterable[str]) -> set[DatasetName]:
        """Find the datasets that are, or contain, some of the files."""
        found, others = set(), {}
        for file in files:
            location = self.locator.locate(file)
            if location is not None and location.dataset in self._names:
                found.add(location.dataset)
            elif location is not None:
                others[location.folder.name.rpartition("/")[0]] = location.folder
        return found | {above for one in others.values() if (above := self.above(one))}

    def above(self, folder: DatasetName) -> DatasetName | None:
        """Find the dataset that contains a folder or file; None if there is none."""
        while above := folder.name.rpartition("/")[0]:
            folder = DatasetName(folder.namespace, above)
            dataset = self.locator.locate_name(folder).dataset
            if dataset in self._names:
                return dataset
        return None
