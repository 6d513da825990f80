"""Expectations as data: one statement each, with where its values come from."""

from __future__ import annotations

from enum import StrEnum

# The manifest is read by these annotations.
from msgspec import Struct

from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.terms import Side


class Kind(StrEnum):
    """Where an expectation comes from; the order is that of precedence."""

    DECLARED = "declared"
    PATH = "path"
    INFERRED = "inferred"


class Source(Struct, frozen=True):
    """Where a value comes from.

    :param kind: of the statement that it belongs to
    :param field: of the operator, e.g. ``application_args[5]``
    :param template: the field's text before rendering
    :param value: the value, e.g. ``2024-05-06``
    :param dimension: which it is of; empty where that is not known
    :param expressions: of the template that gave it; none if it is literal
    :param variables: execution dates that it depends on, e.g. ``ds``; where no expressions are
        known, those that the template uses
    """

    kind: Kind
    field: str
    template: str
    value: str
    dimension: str = ""
    expressions: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


class Expectation(Struct, frozen=True):
    """One statement of what is read or written.

    :param side: None for what may be read or written
    :param dataset: None for a table, and for any dataset that has these dimensions
    :param table: identifier as the author wrote it, e.g. ``analytics.revenue``
    :param partitions: with some or all of the dimensions; None for the full dataset
    :param location: untrimmed name, where a path ends in folders that are no named partition
    :param where: SQL predicate
    :param is_glob: whether values of partitions, or the location, are glob patterns
    """

    kind: Kind
    side: Side | None = None
    dataset: DatasetName | None = None
    table: str = ""
    partitions: tuple[Partition, ...] | None = None
    location: str = ""
    where: str = ""
    is_glob: bool = False
    dimensions: tuple[Dimension, ...] = ()
    sources: tuple[Source, ...] = ()
