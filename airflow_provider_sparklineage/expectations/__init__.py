"""Expectations of a task's reads and writes, from declarations and from the task's arguments.

====================  ==========================================================================
*declared*            the DAG's author declared it: ``reads=``, ``writes=``, the partition key of
                      the run
*schedule*            the DAG is scheduled on partitioned assets, and its partition mappers name the
                      upstream partitions from which the run follows
*path*                it is a partition in a path among the task's arguments; it has no side,
                      because an argument does not show whether the job reads or writes there
*inferred*            it is a date among the arguments; if a partition has this value, the argument
                      explains from where the value comes
====================  ==========================================================================

:mod:`airflow_provider_sparklineage.lineage.partitions.expected` matches expectations with datasets,
and decides how each kind is used.
"""

from __future__ import annotations

from enum import StrEnum

# Not below TYPE_CHECKING: msgspec reads the manifest by these annotations.
from msgspec import Struct

from airflow_provider_sparklineage.expectations.declarations import DatasetSubset, PartitionRange
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.terms import Side

__all__ = ["DatasetSubset", "Expectation", "Kind", "PartitionRange", "Side", "Source"]


class Kind(StrEnum):
    """The kinds of an expectation's sources; a kind takes precedence over those after it."""

    DECLARED = "declared"
    SCHEDULE = "schedule"
    PATH = "path"
    INFERRED = "inferred"


class Source(Struct, frozen=True):
    """The source of a value: a field of the operator, and the template that gave the value.

    :param kind: the kind of the :class:`Expectation` that has the value
    :param field: the field of the operator, e.g. ``application_args[5]``
    :param template: the field's text before rendering
    :param value: the value, e.g. ``2024-05-06``
    :param dimension: the dimension of the value; empty if it is not known
    :param expressions: the expressions of the template that gave the value; empty if the value is
        the template's own text
    :param variables: the execution dates that the value depends on, e.g. ``ds``; if no expressions
        are known, all execution dates that the template uses
    """

    kind: Kind
    field: str
    template: str
    value: str
    dimension: str = ""
    expressions: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


class Expectation(Struct, frozen=True):
    """One statement that a job reads or writes a dataset, or a part of a dataset.

    :param side: whether the job reads or writes it; None if that is not known
    :param dataset: the dataset; None for a table, and if the statement is for any dataset that has
        these dimensions
    :param table: the identifier of a table as the author wrote it, e.g. ``analytics.revenue``
    :param partitions: partitions with some or all of the dimensions; None for the full dataset
    :param location: the name of a path, with all its folders, if some of these are below the
        dataset and form no known partition; else empty
    :param where: a SQL predicate; empty if there is none
    :param is_glob: whether values of partitions, or the location, are glob patterns
    :param dimensions: the dimensions of ``partitions``
    :param sources: the sources of the values in the statement
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
