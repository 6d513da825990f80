"""Which columns an output is made of, as the facets of any producer have it.

Two facets have it: ``columnLineage`` of the dataset, and an entry of the job's ``lineage``. What
influences all columns is a *condition*. A facet of before 1-2-0 has no place for conditions and
repeats each with every column: what all columns have is taken for one here as well, so that none is
multiplied by the columns on its way to DataHub.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.lineage.transformations import (
    IDENTITY,
    UNKNOWN,
    is_indirect,
    kinds,
    old_kinds,
    operation,
)
from airflow_provider_sparklineage.datahub.naming.identities import is_named
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.datahub.proposals import Json

Source = tuple[str, str, str]
"""Namespace and name of a dataset, and its column."""
Sources = dict[Source, tuple[str, ...]]
"""The kinds of transformation of each source."""


class Columns(NamedTuple):
    """What an output is made of.

    :param fields: by column of the output
    :param conditions: what influences all of it
    """

    fields: dict[str, Sources]
    conditions: Sources

    def datasets(self) -> list[DatasetName]:
        """Give the datasets that are named."""
        every = (*self.fields.values(), self.conditions)
        return list(dict.fromkeys(DatasetName(*source[:2]) for one in every for source in one))

    def is_copy(self) -> bool:
        """Whether each column is another one as it is, and nothing was left out or added."""
        return (
            bool(self.fields)
            and not self.conditions
            and all(list(sources.values()) == [(IDENTITY,)] for sources in self.fields.values())
        )

    def direct(self) -> Columns:
        """Leave out what influences a column without being part of its value."""
        fields = {name: _direct(sources) for name, sources in self.fields.items()}
        return Columns({name: sources for name, sources in fields.items() if sources}, {})


def grouped(sources: Sources) -> dict[str, list[Source]]:
    """Group sources by what is done with them, as :func:`.transformations.operation` has it."""
    groups: dict[str, list[Source]] = {}
    for source, every in sources.items():
        groups.setdefault(operation(every), []).append(source)
    return groups


def by_kind(conditions: Sources) -> dict[str, list[Source]]:
    """Group sources by each kind that they have: filters with filters, joins with joins."""
    groups: dict[str, list[Source]] = {}
    for source, every in conditions.items():
        for kind in every or (UNKNOWN,):
            groups.setdefault(kind, []).append(source)
    return groups


def columns(facet: Json, entry: Json) -> Columns:
    """Read what is known of an output's columns.

    :param facet: the output's ``columnLineage``
    :param entry: of the job's ``lineage``, for an output without that facet
    """
    if not facet:
        facet = {**entry, "dataset": entry.get("inputs")}
    fields = {
        name: _sources(field, old_kinds(lenient.mapping(field).get("transformationType")))
        for name, field in lenient.mapping(facet.get("fields")).items()
        if name
    }
    conditions = _read(facet.get("dataset"), ())
    every = _lifted(fields, conditions)
    return every._replace(fields={name: given for name, given in every.fields.items() if given})


def _sources(field: Any, otherwise: tuple[str, ...]) -> Sources:
    if not isinstance(field, dict):
        return {}
    return _read(field.get("inputFields") or field.get("inputs"), otherwise)


def _read(inputs: Any, otherwise: tuple[str, ...]) -> Sources:
    found: Sources = {}
    for one in lenient.items(inputs):
        column = one.get("field")
        if is_named(one) and isinstance(column, str) and column:
            source = one["namespace"], one["name"], column
            given = kinds(one.get("transformations")) or otherwise
            before = found.get(source)
            found[source] = tuple(dict.fromkeys((*before, *given))) if before else given
    return found


def _lifted(fields: dict[str, Sources], conditions: Sources) -> Columns:
    """Take what influences every one of several columns for a condition."""
    everywhere = set(_of_all(fields)) if len(fields) > 1 else set()
    if not everywhere:
        return Columns(fields, conditions)
    lifted = dict(conditions)
    for source, kind in sorted(everywhere):
        lifted[source] = tuple(dict.fromkeys((*lifted.get(source, ()), kind)))
    left = {name: _without(sources, everywhere) for name, sources in fields.items()}
    return Columns(left, lifted)


def _of_all(fields: dict[str, Sources]) -> Iterable[tuple[Source, str]]:
    times = Counter(
        (source, kind)
        for sources in fields.values()
        for source, every in sources.items()
        for kind in every
        if is_indirect(kind)
    )
    return (found for found, count in times.items() if count == len(fields))


def _without(sources: Sources, lifted: set[tuple[Source, str]]) -> Sources:
    left: Sources = {}
    for source, every in sources.items():
        kept = tuple(kind for kind in every if (source, kind) not in lifted)
        if kept or not every:
            left[source] = kept
    return left


def _direct(sources: Sources) -> Sources:
    left = {
        source: tuple(kind for kind in every if not is_indirect(kind))
        for source, every in sources.items()
    }
    return {source: kept for source, kept in left.items() if kept or not sources[source]}
