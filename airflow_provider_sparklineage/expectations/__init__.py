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

from airflow_provider_sparklineage.expectations.declarations import DatasetSubset, PartitionRange
from airflow_provider_sparklineage.expectations.statements import Expectation, Kind, Source
from airflow_provider_sparklineage.model.sides import Side

__all__ = ["DatasetSubset", "Expectation", "Kind", "PartitionRange", "Side", "Source"]
