"""Which of an application's datasets a path or table that the observer saw is.

The observer and the listener know nothing of each other. Evidence binds them: the path that was
read or written, located as the listener names it; else the table's identifier, through symlinks.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.application.observed_folders import values_between
from airflow_provider_sparklineage.model.datasets import DatasetName, looks_like_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from airflow_provider_sparklineage.model.locations import Locator


_INTERNAL = frozenset({"_delta_log", "_spark_metadata"})
"""Folders inside of tables that hold no data of the user."""


class DatasetIndex:
    """Finds datasets by path and table; keeps what was asked for and is none of them.

    :param identities: the application's datasets, each with its symlinks
    """

    def __init__(
        self, identities: Mapping[DatasetName, Collection[DatasetName]], locator: Locator
    ) -> None:
        self._locator = locator
        self._names = set(identities)
        self._aliases: dict[DatasetName, DatasetName] = {}
        self._by_table: dict[str, set[DatasetName]] = defaultdict(set)
        for name, links in identities.items():
            for link in links:
                self._aliases.setdefault(link, name)
                self._by_table[link.name].add(name)
        self.unmatched: set[str] = set()
        """Paths or tables that are no dataset of the application."""
        self.tables: dict[DatasetName, set[str]] = defaultdict(set)
        """Identifiers by which datasets were found."""

    def find(self, path: str, table: str | None) -> DatasetName | None:
        """Find the dataset of a path or table; what is none is noted."""
        found = self._find(path, table)
        if found is not None and table:
            self.tables[found].add(table)
        return found

    def name(self, path: str, table: str | None) -> DatasetName | None:
        """Name the dataset of a path or table; from now on it is one of the application's.

        :return: None for what cannot be named, is no data of the user, or is a file of a dataset
        """
        location = self._locator.locate(path)
        if location is not None and looks_like_file(location.folder.name):
            if self.above(location.folder) is not None:
                return self._known(location.dataset, None)
            if location.folder.name.rpartition("/")[2].startswith("part-"):  # one of Spark's files
                location = self._locator.locate(path.rpartition("/")[0])
        known = self._known(location.dataset if location else None, table)
        if known is not None or location is None:
            return known
        if not _INTERNAL.isdisjoint(location.folder.name.split("/")):
            return None
        self._names.add(location.dataset)
        return location.dataset

    def find_relation(self, path: str, table: str | None) -> DatasetName | None:
        """Find the dataset of a relation, whose path the observer gives without partition folders.

        Where those are not trimmed, it is the one dataset that is such a folder of it.
        """
        location = self._locator.locate(path)
        if location is None or location.dataset in self._names:
            return self.find(path, table)
        above = location.folder
        folders = [
            name
            for name in self._names
            if name.namespace == above.namespace and values_between(above.name, name.name)
        ]
        if not folders:
            return self.find(path, table)
        return folders[0] if len(folders) == 1 else None

    def _find(self, path: str, table: str | None) -> DatasetName | None:
        location = self._locator.locate(path)
        named = location.dataset if location else None
        found = self._known(named, table)
        # A single file of a dataset may be read by its own name.
        if found is None and (location is None or self.above(location.folder) is None):
            self.unmatched.add(str(named) if named else table or path)
        return found

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
        """Find the datasets that files are, or are in; of those in none nothing is noted."""
        found, others = set(), {}
        for file in files:
            location = self._locator.locate(file)
            if location is not None and location.dataset in self._names:
                found.add(location.dataset)
            elif location is not None:
                others[location.folder.name.rpartition("/")[0]] = location.folder
        return found | {above for one in others.values() if (above := self.above(one))}

    def above(self, folder: DatasetName) -> DatasetName | None:
        """Find the dataset that a folder or file is in."""
        while above := folder.name.rpartition("/")[0]:
            folder = DatasetName(folder.namespace, above)
            dataset = self._locator.locate_name(folder).dataset
            if dataset in self._names:
                return dataset
        return None
