"""Where a text names data: the datasets and partitions of the URIs and paths in an argument.

:mod:`.texts` finds URIs and paths; here they are cut into dataset and partition: by the
organisation's rules first, else as the listener trims names. Dates without a column's name
(``t/2024-05-06``) are no partition without a rule, but a location.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from airflow_provider_sparklineage.expectations.references.texts import Spelled, spelled
from airflow_provider_sparklineage.model.datasets import DatasetName, Naming, untrimmed
from airflow_provider_sparklineage.model.partitioning import Partition, split_folder
from airflow_provider_sparklineage.model.rules import NO_RULES, PartitionRules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GLOB = re.compile(r"[*?\[\]{}]")
_FILE = re.compile(r"[^/]*(?:\.[A-Za-z][A-Za-z0-9]{0,9}|\*[^/]*)")
_PASSWORD = re.compile("[A-Za-z0-9+.-]+://[^/@]*:[^/@]*@")
_NEEDS_BUCKET = re.compile("(?:s3|gs|abfs|wasb)")


class ValueSpan(NamedTuple):
    """The characters ``[start, end)`` of a text that spell the value of a partition's dimension."""

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class Reference:
    """A URI or path in the characters ``[start, end)`` of a text, and the data that it names.

    :param uri: as Spark gets it, without the quotes and escapes of the text
    :param partition: the values that the path gives: all, the leading ones, or none; a glob is
        kept as a value
    :param location: the untrimmed name, where the path tells more of the dataset than
        ``partition`` does, as date directories without a column's name do
    :param values: one for each dimension of the partition; several where a layout's fields are
    :param is_glob: whether the partition, or the location, has wildcards; those above are in the
        dataset's name, and those of files say nothing of the partition
    """

    start: int
    end: int
    uri: str
    dataset: DatasetName
    partition: Partition
    location: str | None
    values: tuple[ValueSpan, ...]
    is_glob: bool


class _Cut(NamedTuple):
    """A place cut into a dataset and what is below its root.

    :param below: as the place spells it, with the places of the values in it
    :param is_all: whether the values say all that the place says
    """

    dataset: DatasetName
    below: str
    values: tuple[tuple[str, str], ...]
    spans: Sequence[tuple[str, int, int]]
    is_all: bool


_DEFAULT_NAMING = Naming()


def references(
    text: str, naming: Naming = _DEFAULT_NAMING, rules: PartitionRules = NO_RULES
) -> tuple[Reference, ...]:
    """Find what data a text names, in the order of the text; linear in its length.

    :param text: an argument, or the value of a Spark property or environment variable, as rendered
    """
    found = (_reference(one, naming, rules) for one in spelled(text))
    return tuple(sorted((one for one in found if one), key=lambda one: (one.start, one.end)))


def _reference(one: Spelled, naming: Naming, rules: PartitionRules) -> Reference | None:
    place = untrimmed(one.uri)
    if _PASSWORD.match(one.uri):  # names of datasets are sent, and kept
        return None
    if place is None or (_NEEDS_BUCKET.match(one.uri) and place.namespace.endswith("://")):
        return None
    cut = _by_rule(one.uri, place, naming, rules) or _as_trimmed(one.uri, place, naming)
    if cut is None:
        return None
    # Where the values say all, what is left is files: dt=2024-05-06/*
    said = "/".join(value for _, value in cut.values) if cut.is_all else cut.below
    return Reference(
        one.at[0],
        one.at[-1],
        one.uri,
        cut.dataset,
        Partition(cut.values),
        None if cut.is_all else _folder(place, naming).name,
        tuple(_value_spans(one, cut)),
        _GLOB.search(said) is not None,
    )


def _by_rule(uri: str, place: DatasetName, naming: Naming, rules: PartitionRules) -> _Cut | None:
    split = rules.split(place)
    if split is None:
        return None
    root = unquote(split.root.name) if uri.startswith("file:") else split.root.name
    values, spans = split.fit.partition.values, split.fit.spans
    rest = split.below[spans[-1][2] :] if spans else split.below
    return _Cut(
        DatasetName(place.namespace, naming.without_removed(root)),
        split.below,
        values,
        spans,
        is_all=split.spec.labels <= {label for label, _ in values} or not rest.strip("/"),
    )


def _as_trimmed(uri: str, place: DatasetName, naming: Naming) -> _Cut | None:
    folder = _folder(place, naming)
    segments = list(re.finditer("[^/]+", uri))
    dataset = naming.name(uri if folder == place else uri[: segments[-2].end()])
    if dataset is None:
        return None
    root = naming.trim(folder.name)
    shorter = naming.without_removed(root)
    if root.startswith(f"{shorter}/"):  # what the user's pattern removes is below the dataset too
        root = shorter
    below = place.name[len(root) :].lstrip("/")
    values: list[tuple[str, str]] = []
    spans: list[tuple[str, int, int]] = []
    is_all = True
    for segment in re.finditer("[^/]+", folder.name[len(place.name) - len(below) :]):
        found = split_folder(segment[0])
        if found is None:
            is_all = False
            continue
        values.append(found)
        spans.append((found[0], segment.start() + segment[0].index("=") + 1, segment.end()))
    return _Cut(dataset, below, Partition.of(values).values, spans, is_all)


def _folder(place: DatasetName, naming: Naming) -> DatasetName:
    """Give the folder of a file that is right below a partition: Spark's datasets are folders."""
    above, _, last = place.name.rpartition("/")
    if _FILE.fullmatch(last) and naming.trim(place.name) == place.name:
        folder = DatasetName(place.namespace, above)
        return folder if naming.trim(above) != above else place
    return place


def _value_spans(one: Spelled, cut: _Cut) -> Iterator[ValueSpan]:
    below = list(re.finditer("[^/]+", cut.below))
    segments = list(re.finditer("[^/]+", one.uri))[-len(below) or len(one.uri) :]
    # Slashes may be doubled in the URI, so each folder has a shift of its own; its end is in it,
    # for values may be empty.
    shift = {
        at: segment.start() - folder.start()
        for folder, segment in zip(below, segments, strict=True)
        for at in range(folder.start(), folder.end() + 1)
    }
    for label, begin, end in cut.spans:
        yield ValueSpan(label, one.at[begin + shift[begin]], one.at[end + shift[end]])
