"""The location of a path: its dataset, and the partition within the dataset.

All paths are located by this module: the paths in the texts of a task, the URIs of assets, the
locations that the listener reports, and the folders that the observer saw. Only so do two paths of
one dataset get the same name. The steps are:

1. The first of the organisation's rules that matches the path decides where the dataset ends and
   which values the folders below it have. Rules are written for names as events have them. So if no
   rule matches, the path is tried again without the match of the user's ``removePath`` pattern.
2. Without a matching rule the dataset gets the listener's name: partition folders are trimmed
   off the path's end, unless their trimmers are disabled, and then the pattern's match is removed.
   Trimmed ``column=value`` folders are the partition. A trimmed date without a column's name gives
   no partition, because only a rule can know its column. The pattern's match is not part of a
   partition, unless it is a ``column=value`` folder.

A model of Spark's ML library is one dataset: the folder that the user named. Spark writes into it a
folder for each stage, with a new name in each run (``stages/0_StringIndexer_b659f843265e/data``). A
path below such a folder is located as if it were the model's folder.

The observer runs in the driver and cannot import this module: it sends paths as Spark has them,
with the partitions that Spark found below them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

from msgspec import field

from airflow_provider_sparklineage.model.datasets import (
    DEFAULT_NAMING,
    DatasetName,
    Naming,
    canonical,
    looks_like_file,
    untrimmed,
)
from airflow_provider_sparklineage.model.partitioning import Partition, hive_folders
from airflow_provider_sparklineage.model.rules import NO_RULES, PartitionRules
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from airflow_provider_sparklineage.model.rules import Split


class Location(Frozen, frozen=True):
    """The dataset and the partition of a path.

    :param folder: the name of the path with its partition folders; for a file right below a
        partition, the name of the partition's folder
    :param dataset: the dataset's name as the merged event has it
    :param partition: the values that the path gives: all values, the leading ones, or no value; a
        glob in the path is a value, too. None if the path has folders below the dataset that give
        no known value
    :param below: the path below the dataset's root, as it is written
    :param spans: label, start and end in ``below`` of each value of the partition; a label has
        several spans if its layout has several fields for it
    """

    folder: DatasetName
    dataset: DatasetName
    partition: Partition | None
    below: str
    spans: tuple[tuple[str, int, int], ...] = ()


# Spark's ``Identifiable.randomUID``: the name of the class, and twelve digits of a UUID.
_STAGE = re.compile(r"/stages/\d+_\w+_[0-9a-f]{12}(?=/|\Z)")


class Locator(Frozen, frozen=True):
    """Finds the locations of paths and names, by one configuration.

    :param naming: the user's configuration of the listener's names
    :param rules: the rules by which the organisation partitions its datasets
    :param models: the folders of models of Spark's ML library, by their names before trimming.
        Pipelines are known by the names of their stages, too
    """

    naming: Naming = DEFAULT_NAMING
    rules: PartitionRules = NO_RULES
    models: frozenset[DatasetName] = frozenset()

    def locate(self, path: str, *, may_be_file: bool = False) -> Location | None:
        """Locate a URI or absolute path.

        :param path: e.g. ``s3a://bucket/table/dt=2024-05-06``, ``file:///lake/orders``,
            ``/lake/orders``
        :param may_be_file: whether a name right below a partition is read as a file if it looks
            like a file, because Spark's datasets are folders. A caller that knows the path to be a
            folder passes False
        :return: None if the text is neither a URI with a path nor an absolute path
        """
        named = untrimmed(path)
        if named is None:
            return None
        place = self.model_around(named) or named
        folder = self._folder(place) if may_be_file else place
        # Only URIs of local files are escaped: in Hadoop's paths a % is an ordinary character.
        is_escaped = place.namespace == "file" and not path.lstrip().startswith("/")
        return self._located(place, folder, is_escaped=is_escaped)

    def locate_name(self, name: DatasetName) -> Location:
        """Locate the name of a path that was not trimmed, so that it has its partition folders."""
        name = self.model_around(name) or name
        return self._located(name, name, is_escaped=False)

    def model_around(self, name: DatasetName) -> DatasetName | None:
        """Give the folder of the model that a path is in; None if it is in none.

        :param name: the name of the path before trimming
        """
        stage = _STAGE.search(name.name)
        folder = name._replace(name=name.name[: stage.start()]) if stage else name
        # A model of models (CrossValidatorModel) has theirs below its own.
        around = [
            model
            for model in self.models
            if model.namespace == name.namespace and f"{folder.name}/".startswith(f"{model.name}/")
        ]
        return min(around, key=lambda model: len(model.name), default=folder if stage else None)

    def renamed(self, name: DatasetName) -> DatasetName:
        """Give the dataset's name for a name that the listener reports; mostly the same name.

        The listener has trimmed the name already, so only a rule can change it, or a model around
        it. A table that is read over JDBC gets its canonical name, without the settings of its URL.
        """
        if (model := self.model_around(name)) is not None:
            return self.locate_name(model).dataset
        split = self.rules.split(name)
        return split.root if split is not None else canonical(name)

    def _located(self, place: DatasetName, folder: DatasetName, *, is_escaped: bool) -> Location:
        # The name is trimmed before it is unescaped, as well as after: an escaped / (%2F) in a
        # folder's name is not a separator.
        root = self.naming.trim(folder.name)
        name = self.naming.trim(unquote(root)) if is_escaped else root
        dataset = DatasetName(place.namespace, self.naming.without_removed(name))
        if split := self.rules.split(place):
            ruled = unquote(split.root.name) if is_escaped else split.root.name
            ruled = self.naming.without_removed(ruled)
            return _by_rule(place, folder, split, DatasetName(place.namespace, ruled))
        if dataset.name != name:
            as_named = dataset._replace(name=f"{dataset.name}{place.name[len(root) :]}")
            split = self.rules.split(as_named)
            if split is not None and place.name.endswith(split.below):
                return _by_rule(place, folder, split, split.root)
        rest = self.naming.without_removed(root)
        end = len(rest) if root.startswith(f"{rest}/") else len(root)
        return _as_trimmed(place, folder, dataset, end, len(root))

    def _folder(self, place: DatasetName) -> DatasetName:
        above, _, last = place.name.rpartition("/")
        if not (looks_like_file(last) or "*" in last) or self.naming.trim(place.name) != place.name:
            return place
        is_partition = self.naming.trim(above) != above
        return DatasetName(place.namespace, above) if is_partition else place


class RememberingLocator(Locator, frozen=True):
    """A locator that remembers the location of each path, for paths that are located often.

    :param known: the remembered locations, by path
    """

    known: dict[str, Location | None] = field(default_factory=dict)

    def locate(self, path: str, *, may_be_file: bool = False) -> Location | None:
        """Locate a URI or absolute path, as :meth:`Locator.locate` does."""
        if may_be_file:
            return super().locate(path, may_be_file=True)
        if path not in self.known:
            self.known[path] = super().locate(path)
        return self.known[path]


DEFAULT_LOCATOR = Locator()


def _by_rule(
    place: DatasetName, folder: DatasetName, split: Split, dataset: DatasetName
) -> Location:
    values, spans = split.fit.partition, split.fit.spans
    file = len(place.name) - len(folder.name)
    rest = split.below[spans[-1][2] if spans else 0 : len(split.below) - file]
    labels = {label for label, _ in values.values}
    if rest.strip("/") and not split.spec.labels <= labels:
        return Location(folder, dataset, None, split.below)
    return Location(folder, dataset, values, split.below, spans)


def _as_trimmed(
    place: DatasetName, folder: DatasetName, dataset: DatasetName, end: int, trimmed: int
) -> Location:
    """Give the location of a path for which there is no rule.

    :param place: the name of the path
    :param folder: the name of the path's folder, as in :class:`Location`
    :param end: the position in the path's name where the dataset ends
    :param trimmed: the position where the folders begin that trimming cuts off. It is after ``end``
        if the user's ``removePath`` pattern removes the text between both positions
    """
    below = place.name[end:].lstrip("/")
    start = len(place.name) - len(below)
    values: list[tuple[str, str]] = []
    spans: list[tuple[str, int, int]] = []
    for segment, value, span in hive_folders(folder.name[start:]):
        if value is not None:
            values.append(value)
            spans.append(span)
        elif start + segment >= trimmed:
            return Location(folder, dataset, None, below)
    return Location(folder, dataset, Partition.from_values(values), below, tuple(spans))
