"""Where a text names data: the datasets and partitions of the URIs and paths in an argument.

:mod:`.texts` finds URIs and paths, and :mod:`.model.locations` knows what they stand for; here the
values of their partitions are found in the text again. Dates without a column's name
(``t/2024-05-06``) are no partition without a rule, but a location.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.expectations.references.texts import WrittenPath, paths_in
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.frozen import Frozen
from airflow_provider_sparklineage.model.globs import is_glob
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR, Locator
from airflow_provider_sparklineage.model.partitioning import Partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.locations import Location

_NEEDS_BUCKET = re.compile("(?:s3|gs|abfs|wasb)")


class ValueSpan(NamedTuple):
    """The characters ``[start, end)`` of a text that are the value of a partition's dimension."""

    label: str
    start: int
    end: int


class Reference(Frozen, frozen=True):
    """A URI or path in the characters ``[start, end)`` of a text, and the data that it names.

    :param uri: as Spark gets it, without the quotes and escapes of the text
    :param partition: the values that the path gives: all, the leading ones, or none; a glob is
        kept as a value
    :param location: the untrimmed name, where folders below the dataset have no value, as dates
        without a column's name; then there is no partition
    :param values: one for each dimension of the partition; several where a layout's fields are
    :param is_glob: whether the partition, or the location, has wildcards; those above are in the
        dataset's name, and those of files do not matter to the partition
    """

    start: int
    end: int
    uri: str
    dataset: DatasetName
    partition: Partition
    location: str | None
    values: tuple[ValueSpan, ...]
    is_glob: bool


def references(text: str, locator: Locator = DEFAULT_LOCATOR) -> tuple[Reference, ...]:
    """Find what data a text names, in the order of the text; linear in its length.

    :param text: an argument, or the value of a Spark property or environment variable, as rendered
    """
    found = (_reference(one, locator) for one in paths_in(text))
    return tuple(sorted((one for one in found if one), key=lambda one: (one.start, one.end)))


def _reference(one: WrittenPath, locator: Locator) -> Reference | None:
    if scrub_name(one.uri) != one.uri:  # names of datasets are sent, and kept
        return None
    found = locator.locate(one.uri, may_be_file=True)
    if found is None:
        return None
    if _NEEDS_BUCKET.match(one.uri) and found.folder.namespace.endswith("://"):
        return None
    partition = found.partition
    # Where values are all that is below the dataset, what is left is files: dt=2024-05-06/*
    selecting = found.below if partition is None else "/".join(v for _, v in partition.values)
    return Reference(
        one.at[0],
        one.at[-1],
        one.uri,
        found.dataset,
        partition or Partition(),
        found.folder.name if partition is None else None,
        tuple(_value_spans(one, found)),
        is_glob(selecting),
    )


def _value_spans(one: WrittenPath, found: Location) -> Iterator[ValueSpan]:
    below = list(re.finditer("[^/]+", found.below))
    segments = list(re.finditer("[^/]+", one.uri))[-len(below) or len(one.uri) :]
    # Slashes may be doubled in the URI, so each folder has a shift of its own; its end is in it,
    # for values may be empty.
    shift = {
        at: segment.start() - folder.start()
        for folder, segment in zip(below, segments, strict=True)
        for at in range(folder.start(), folder.end() + 1)
    }
    for label, begin, end in found.spans:
        yield ValueSpan(label, one.at[begin + shift[begin]], one.at[end + shift[end]])
