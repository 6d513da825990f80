"""What a task is expected to read and write: declarations and templated paths to expectations.

====================  ==========================================================================
*declared*            the DAG's author wrote it: ``reads=``, ``writes=``, the run's partition key
*path*                a partition in a path among the task's arguments; it has no side, because an
                      argument does not show whether the job reads or writes there
*inferred*            a date among the arguments; it explains where a value comes from, if it is one
====================  ==========================================================================

What each kind may become is decided where it meets a dataset:
:mod:`.lineage.partitions.expected`.
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
    """Import what DAGs declare where one does: tasks that declare nothing wait for imports too."""
    if name not in ("DatasetSubset", "PartitionRange"):
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from airflow_provider_sparklineage.expectations import declarations

    return getattr(declarations, name)
