"""Datasets and columns that an output is made of, read from the lineage facets of any producer.

The input is the event. The result is an :class:`OutputLineage` for each dataset that the run wrote.
An :class:`OutputLineage` is made once, and used for all aspects.

The lists of inputs and outputs in an event do not show which input feeds which output. A dataset
feeds an output if the output's column lineage, or the job's ``lineage`` facet, names the dataset as
a source. If the ``lineage`` facet does not list the inputs of the output, all inputs of a completed
run feed its only output, and the only input of a completed run feeds all outputs. For any other
event no edges between datasets are added; DataHub then has only the edges through the job.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.datahub.proposals import stored
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.model import COLUMNS_KEY, LINEAGE_KEY, read_facet
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from airflow_provider_sparklineage.datahub.subject import Dataset, Subject


# DataHub's own OpenLineage converter writes ``TYPE:SUBTYPE``, sorted and joined by commas:
# ``DIRECT:IDENTITY,INDIRECT:FILTER``. The converter has no word for masking; here it is a third
# part: ``DIRECT:TRANSFORMATION:MASKING``. The text is a key in DataHub's patches, so columns with
# different transformations or masking must have different texts.

IDENTITY = "DIRECT:IDENTITY"
"""The output column is a copy of the input column."""

UNKNOWN_OPERATION = "NONE"
"""The operation in DataHub's patches if no transformation is known."""

_OLD_TYPES = {"IDENTITY": IDENTITY, "MASKED": "DIRECT:TRANSFORMATION:MASKING"}
"""The kind for each ``transformationType``, a field of the facet before version 1-1-0."""

_MOST_KINDS = 16
"""The most kinds of one pair of columns: OpenLineage has 12, a hostile event any number."""


def transformation_kinds(transformations: Sequence[model.Transformation]) -> tuple[str, ...]:
    """Give each transformation's kind once: ``DIRECT:IDENTITY``, ``INDIRECT:FILTER``, ``DIRECT``.

    Transformations without a type are skipped; at most 16 kinds are given.
    """
    if len(transformations) == 1:  # the fast path: nearly all lists have one entry
        only = _kind_of(transformations[0])
        return (only,) if only else ()
    kinds = dict.fromkeys(map(_kind_of, transformations))
    return tuple(kind for kind in kinds if kind)[:_MOST_KINDS]


def old_transformation_kinds(transformation_type: str | None) -> tuple[str, ...]:
    """Give the kind for the deprecated ``transformationType`` of an output column.

    :return: () if the value is unknown
    """
    known = _OLD_TYPES.get((transformation_type or "").upper())
    return (known,) if known else ()


def transform_operation(every: tuple[str, ...]) -> str:
    """Join kinds of transformations to a text for DataHub's ``transformOperation``.

    :param every: the kinds, such as ``DIRECT:IDENTITY``
    :return: :data:`UNKNOWN_OPERATION` if there are no kinds
    """
    return every[0] if len(every) == 1 else ",".join(sorted(every)) or UNKNOWN_OPERATION


def is_indirect(kind: str) -> bool:
    """Whether a source of this kind only influences a column, e.g. by a filter or a join.

    :param kind: a kind of :func:`transformation_kinds`, e.g. ``INDIRECT:FILTER``
    """
    return kind.startswith("INDIRECT")


def _kind_of(one: model.Transformation) -> str:
    return "" if one.type is None else _kind(one.type, one.subtype or "", bool(one.masking))


@lru_cache(maxsize=256)
def _kind(of: str, subtype: str, is_masking: bool) -> str:
    parts = (_notation_word(of), _notation_word(subtype), "MASKING" if is_masking else "")
    return ":".join(filter(None, parts))


_NOT_IN_WORDS = re.compile(r"[^A-Z0-9_]+")


def _notation_word(text: str) -> str:
    """Give a type or subtype of a transformation as a part of a kind: in upper case, and cleaned.

    Other characters than letters, digits and ``_`` are replaced by ``_``: the kind has separators
    of its own (``INDIRECT:FILTER``), and becomes a part of a patch's path.
    """
    return _NOT_IN_WORDS.sub("_", text[:40].upper()).strip("_")


# Two facets have column lineage: ``columnLineage`` of the dataset, and an entry of the job's
# ``lineage``. A column that influences all columns is a *condition*. A facet from before version
# 1-2-0 has no place for conditions, and repeats each condition with every column. So an indirect
# source that all columns have is read as a condition too; else DataHub would get the source once
# for each column.

Source = tuple[str, str, str]
"""A column of a dataset: the dataset's namespace and name, and the column's name."""
Sources = dict[Source, tuple[str, ...]]
"""The kinds of transformation of each source."""


class Columns(NamedTuple):
    """The sources of an output.

    :param fields: the sources of each column of the output
    :param conditions: the sources that influence all columns, such as those of a filter
    """

    fields: dict[str, Sources]
    conditions: Sources

    def datasets(self) -> list[DatasetName]:
        """Give the datasets of all sources, each once."""
        every = (*self.fields.values(), self.conditions)
        return list(dict.fromkeys(DatasetName(*source[:2]) for one in every for source in one))

    def is_copy(self) -> bool:
        """Whether each column is a copy of one source, and there are no conditions."""
        return (
            bool(self.fields)
            and not self.conditions
            and all(list(sources.values()) == [(IDENTITY,)] for sources in self.fields.values())
        )

    def direct(self) -> Columns:
        """Give only the sources whose values go into a column, without conditions."""
        fields = _filtered(self.fields, lambda _, kind: not is_indirect(kind))
        return Columns({name: sources for name, sources in fields.items() if sources}, {})


def grouped(sources: Sources) -> dict[str, list[Source]]:
    """Group sources by the text that :func:`transform_operation` gives for their kinds."""
    groups: dict[str, list[Source]] = {}
    for source, every in sources.items():
        groups.setdefault(transform_operation(every), []).append(source)
    return groups


def by_kind(conditions: Sources) -> dict[str, list[Source]]:
    """Group sources by kind; a source with several kinds is in several groups.

    The key of sources without a kind is :data:`UNKNOWN_OPERATION`.
    """
    groups: dict[str, list[Source]] = {}
    for source, every in conditions.items():
        for kind in every or (UNKNOWN_OPERATION,):
            groups.setdefault(kind, []).append(source)
    return groups


def read_columns(facet: model.ColumnLineage, entry: model.LineageEntry) -> Columns:
    """Read the sources of an output's columns from one of two facets.

    :param facet: the output's ``columnLineage``
    :param entry: the output's entry in the job's ``lineage``; read only if ``facet`` is empty
    """
    if facet == _NO_COLUMN_LINEAGE:
        fields = {name: _read_sources(one.inputs) for name, one in entry.fields.items() if name}
        columns = _lifted(fields, _read_sources(entry.inputs or ()))
    else:
        fields = {
            name: _read_sources(
                one.inputFields or (), old_transformation_kinds(one.transformationType)
            )
            for name, one in (facet.fields or {}).items()
            if name
        }
        columns = _lifted(fields, _read_sources(facet.dataset or ()))
    every = {name: sources for name, sources in columns.fields.items() if sources}
    return columns._replace(fields=every)


_NO_COLUMN_LINEAGE = model.ColumnLineage()


def _read_sources(
    inputs: Iterable[model.InputField | model.LineageInput], otherwise: tuple[str, ...] = ()
) -> Sources:
    """Read sources from the inputs in a facet; an input that is not a column is left out.

    :param otherwise: the kinds of a source that has no transformations
    :return: the kinds of transformation by source
    """
    sources: Sources = {}
    for one in inputs:
        if one.name and one.field:
            source = one.namespace, one.name, one.field
            kinds = transformation_kinds(one.transformations or ()) or otherwise
            before = sources.get(source)
            sources[source] = tuple(dict.fromkeys((*before, *kinds))) if before else kinds
    return sources


def _lifted(fields: dict[str, Sources], conditions: Sources) -> Columns:
    """Turn each indirect source that all columns have into a condition of the output.

    For an output with only one column, no source is turned into a condition.

    :param fields: the sources of each column
    :param conditions: the conditions that the facet itself has
    """
    everywhere = set(_of_every_field(fields)) if len(fields) > 1 else set()
    if not everywhere:
        return Columns(fields, conditions)
    lifted = dict(conditions)
    for source, kind in sorted(everywhere):
        lifted[source] = tuple(dict.fromkeys((*lifted.get(source, ()), kind)))
    return Columns(_filtered(fields, lambda *one: one not in everywhere), lifted)


def _of_every_field(fields: dict[str, Sources]) -> Iterable[tuple[Source, str]]:
    times = Counter(
        (source, kind)
        for sources in fields.values()
        for source, every in sources.items()
        for kind in every
        if is_indirect(kind)
    )
    return (one for one, count in times.items() if count == len(fields))


def _filtered(
    fields: dict[str, Sources], is_left: Callable[[Source, str], bool]
) -> dict[str, Sources]:
    """Remove kinds from the sources of columns; leave out a source that has lost all its kinds.

    :param fields: the sources of each column
    :param is_left: a function that tells whether a source keeps a kind of its transformations
    """
    filtered: dict[str, Sources] = {}
    for name, sources in fields.items():
        left = filtered[name] = {}
        for source, every in sources.items():
            kinds = tuple(kind for kind in every if is_left(source, kind))
            if kinds or not every:
                left[source] = kinds
    return filtered


class OutputLineage(NamedTuple):
    """An output with the columns and datasets that it is made of.

    :param dataset: the output
    :param columns: the sources of the output; without filters, joins and groupings if the
        configuration leaves these out
    :param conditions: the sources that influence all columns, even if the configuration leaves
        them out of ``columns``
    :param sources: URNs of the datasets that feed the output, without the output itself
    :param is_copy: whether the output is a copy of another dataset
    """

    dataset: Dataset
    columns: Columns
    conditions: Sources
    sources: tuple[str, ...]
    is_copy: bool


def output_lineages(subject: Subject) -> Iterator[OutputLineage]:
    """Read the sources of each output of the event, one output after another.

    The result is an iterator, because the sources of all outputs together can take much memory.
    """
    entries = {
        DatasetName(entry.namespace, entry.name): entry
        for entry in read_facet(subject.job_facets, LINEAGE_KEY, model.JobLineage).entries
        if entry.type == "DATASET" and entry.name
    }
    return (
        _output_lineage(subject, output, entries.get(output.name)) for output in subject.outputs
    )


def _output_lineage(
    subject: Subject, output: Dataset, entry: model.LineageEntry | None
) -> OutputLineage:
    entry = entry or read_facet(output.facets, LINEAGE_KEY, model.LineageEntry)
    known = read_columns(read_facet(output.facets, COLUMNS_KEY, model.ColumnLineage), entry)
    urns = dict.fromkeys(map(subject.dataset, _source_datasets(subject, known, entry)))
    sources = tuple(urn for urn in urns if urn != output.urn)
    return OutputLineage(
        dataset=output,
        columns=known if subject.how.indirect else known.direct(),
        conditions=known.conditions,
        sources=sources,
        is_copy=len(sources) == 1 and known.is_copy() and _has_all_columns(output, known),
    )


def _source_datasets(
    subject: Subject, known: Columns, entry: model.LineageEntry
) -> dict[DatasetName, None]:
    named = dict.fromkeys(known.datasets())
    if entry.inputs is not None:
        stated = (one.dataset_name for one in entry.inputs if one.type == "DATASET" and one.name)
        return dict.fromkeys((*stated, *named))
    is_plain = len(subject.outputs) == 1 or len(subject.inputs) == 1
    if is_plain and subject.state == "COMPLETE":
        return dict.fromkeys((*(one.name for one in subject.inputs), *named))
    return named


def _has_all_columns(output: Dataset, known: Columns) -> bool:
    """Whether each column of the output's schema has a source.

    :param known: the sources of the output, as the event has them
    """
    return {stored(field.name) for field in output.schema_fields} <= known.fields.keys()
