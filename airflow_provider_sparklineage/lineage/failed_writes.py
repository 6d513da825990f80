"""What an action that failed or never ended may have written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.lineage.partitions.selection import extent
from airflow_provider_sparklineage.model import predicates
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.partitioning import Partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.subset_report import SubsetReport


def describe_failed_writes(action: Action, report: SubsetReport) -> Iterator[Degradation]:
    """Report the outputs of such an action, and what it may have half written of each."""
    failed = action.state is ActionState.FAILED
    code = DegradationCode.ACTION_FAILED if failed else DegradationCode.ACTION_UNFINISHED
    how = "failed" if failed else "never ended"
    why = f" ({action.error})" if action.error else ""
    static = predicates.static_partition(action.sql) if action.sql else ()
    for dataset in action.outputs:
        at_risk = report.at_risk(dataset.name, dataset.symlinks, dataset.locations or ())
        if static:
            at_risk = frozenset({Partition(static)})
        half = f" It may have half written {extent(at_risk).summary}." if at_risk else ""
        message = (
            f"The action {action.label} that was to write {dataset.name} {how}{why}; what it wrote "
            f"is not claimed.{half}"
        )
        yield Degradation(code, message, dataset.name, side=Side.WRITE)
    if not action.outputs:
        yield Degradation(code, f"The action {action.label} {how}{why}.")
