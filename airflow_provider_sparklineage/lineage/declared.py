"""The lineage of a task before its job has run: what is declared, and what its last run accessed.

A task's START waits for these imports, so nothing here merges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.expectations import Kind, Side
from airflow_provider_sparklineage.lineage import carried_forward
from airflow_provider_sparklineage.lineage.dataset import TaskLineage
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.last_run import NO_LAST_RUN
from airflow_provider_sparklineage.model.locations import Locator
from airflow_provider_sparklineage.model.terms import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.expectations import Expectation
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.last_run import LastRun
    from airflow_provider_sparklineage.model.representation import Limits
    from airflow_provider_sparklineage.model.rules import PartitionRules


def declared_lineage(
    inputs: Iterable[DatasetName],
    outputs: Iterable[DatasetName],
    expectations: Iterable[Expectation],
    rules: PartitionRules,
    limits: Limits,
    last_known: LastRun = NO_LAST_RUN,
) -> TaskLineage:
    """Give the lineage of a task of which nothing was collected (yet): what is declared or known.

    A path among the arguments has no side, so paths count only once Spark has reported datasets.
    """
    declared = [e for e in expectations if e.kind is Kind.DECLARED]
    report = SubsetReport(declared, Locator(rules=rules), limits)
    reads = carried_forward.datasets(last_known.inputs, inputs)
    writes = carried_forward.datasets(last_known.outputs, outputs)
    return TaskLineage(
        Outcome.COMPLETE,
        tuple(report.of(dataset, Side.READ) for dataset in reads),
        tuple(report.of(dataset, Side.WRITE) for dataset in writes),
    )
