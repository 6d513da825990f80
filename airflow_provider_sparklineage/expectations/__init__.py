"""Expectations of a task's reads and writes, from declarations and from the task's arguments.

====================  ==========================================================================
*declared*            the DAG's author declared it: ``reads=``, ``writes=``, the partition key of
                      the run
*path*                it is a partition in a path among the task's arguments; it has no side,
                      because an argument does not show whether the job reads or writes there
*inferred*            it is a date among the arguments; if a partition has this value, the argument
                      explains from where the value comes
====================  ==========================================================================

:mod:`airflow_provider_sparklineage.lineage.partitions.expected` matches expectations with datasets,
and decides how each kind is used.
"""

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.expectations.statements import Expectation, Kind, Source
from airflow_provider_sparklineage.model.terms import Side

if TYPE_CHECKING:
    from airflow_provider_sparklineage.expectations.declarations import (
        DatasetSubset,
        PartitionRange,
    )

__all__ = ["DatasetSubset", "Expectation", "Kind", "PartitionRange", "Side", "Source"]


def __getattr__(name: str) -> Any:
    """Import a class of declarations when a DAG uses it, so that other tasks start sooner."""
    if name not in ("DatasetSubset", "PartitionRange"):
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from airflow_provider_sparklineage.expectations import declarations

    return getattr(declarations, name)
