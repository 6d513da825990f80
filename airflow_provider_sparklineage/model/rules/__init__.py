"""The organisation's own rules of how its datasets are partitioned.

A rule has globs of dataset names, dimensions, and a layout where the folders are not Hive's::

    - dataset: "s3://bucket/*"
      dimensions:
        - field: business_date
          format: "%Y%m%d"
    - dataset: ["/lake/raw/*", "hdfs://nn/lake/**"]
      dimensions: [event_date, country]
      layout: "{event_date:%Y/%m/%d}/{country}"
      description: "PARTITIONED BY (event_date, country)"

A glob is matched with a dataset's name as it prints, ``<namespace>/<name>``, or the path of a local
one. ``*`` and ``?`` stay within one folder, as in Hadoop's globs, because the glob also says where
the dataset ends and its partitions begin; ``**`` is any number of folders, and then the partitions
begin with the first folder that looks like it. The first rule that matches wins.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.frozen import Frozen
from airflow_provider_sparklineage.model.globs import ANY_DEPTH, compiled_folders
from airflow_provider_sparklineage.model.rule_files.text import LineNumbers
from airflow_provider_sparklineage.model.rules.documents import FILE, checked, document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airflow_provider_sparklineage.model.layouts import PartitionSpec
    from airflow_provider_sparklineage.model.partitioning import Dimension, Fit


class Split(NamedTuple):
    """A dataset's name, split where its partitions begin."""

    root: DatasetName
    below: str
    spec: PartitionSpec
    fit: Fit


class Rule(Frozen, frozen=True):
    """How the datasets are partitioned whose names match one of some globs."""

    datasets: tuple[str, ...]
    spec: PartitionSpec

    def matches(self, root: DatasetName) -> bool:
        """Whether the rule is for a dataset."""
        return any(compiled_folders(glob).fullmatch(str(root)) for glob in self.datasets)

    def split(self, name: DatasetName) -> Split | None:
        """Split a name where a partition of this rule begins; None if the rule is not for it."""
        for end in self._root_ends(name):
            below = name.name[end:].lstrip("/")
            fit = self.spec.fit(below)
            if fit is not None:
                return Split(DatasetName(name.namespace, name.name[:end]), below, self.spec, fit)
        return None

    def _root_ends(self, name: DatasetName) -> Iterator[int]:
        """Give the places in a name where a dataset's root may end, the likeliest first."""
        printed = str(name)
        offset = len(printed) - len(name.name)
        for glob in self.datasets:
            regex = compiled_folders(glob)
            if ANY_DEPTH not in glob:
                found = regex.match(printed)
                if found is not None and found.end() > offset:
                    yield found.end() - offset
                continue
            for folder in re.finditer("(?<=[^/]/)[^/]+", name.name):
                end = folder.start() - 1
                if self.spec.begins(folder[0]) and regex.fullmatch(printed, 0, end + offset):
                    yield end
            if regex.fullmatch(printed):
                yield len(name.name)


class PartitionRules(Frozen, frozen=True):
    """The rules in their order."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def of(cls, documents: object, lines: LineNumbers | None = None) -> PartitionRules:
        """Make rules of what :meth:`documents` gives, or of a rules file's content.

        :param lines: where the documents are from
        :raise RulesError: if a rule is wrong; names its place and key
        """
        known = lines or LineNumbers(FILE.title)
        return cls(tuple(Rule(*rule) for rule in checked(documents, known)))

    def documents(self) -> list[dict[str, object]]:
        """Give the rules as JSON has them; :meth:`of` makes equal rules of them."""
        return [document(rule.datasets, rule.spec) for rule in self.rules]

    def spec(self, dataset: DatasetName) -> PartitionSpec | None:
        """Give how a dataset is partitioned; None if no rule is for it."""
        return next((rule.spec for rule in self.rules if rule.matches(dataset)), None)

    def dimensions(self, dataset: DatasetName) -> dict[str, Dimension]:
        """Give a dataset's dimensions by their labels; none if no rule is for it."""
        spec = self.spec(dataset)
        return {d.label: d for d in spec.dimensions} if spec else {}

    def split(self, name: DatasetName) -> Split | None:
        """Split a name, trimmed or not, into a dataset and what is below it.

        ``/lake/x/2024-01-01/10`` is ``/lake/x`` with ``event_date=2024-01-01, hour=10``, if a rule
        for ``/lake/*`` has that layout. The name of a dataset itself gives the empty partition.

        :return: None if no rule is for it
        """
        return next((found for rule in self.rules if (found := rule.split(name))), None)


NO_RULES = PartitionRules()


def load(text_or_path: str | Path) -> PartitionRules:
    """Load rules from a YAML file, or from inline YAML.

    :param text_or_path: inline if it has more than one line or begins as YAML lists do
    :raise RulesError: if a rule is wrong; names file, line and key, and what to do
    """
    return _made_of(*FILE.content(text_or_path))


@lru_cache(maxsize=16)  # a task's settings are resolved several times, and each time the same
def _made_of(text: str, name: str) -> PartitionRules:
    return PartitionRules.of(*FILE.read(text, name))
