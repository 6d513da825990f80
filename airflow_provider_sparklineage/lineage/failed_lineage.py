"""The lineage of a task that fails although its job succeeded, derived from what was merged.

A partition check can fail a task after its job. All that the job did is merged by then, and only
what the outcome decides is different. Policy, case by case:

- Outputs of complete actions stay as they are: the data was written.
- What only failed or unfinished actions wrote is an output now, as a bare name without facets. What
  is expected of it is compared with nothing.
- An input that such an action was to write is a dataset of both sides now. Which partitions of it
  were written is unknown, and so is which partitions of a path are missing.
- That nothing was written is not reported where something was to be written.

Merging a job that has failed (:mod:`.merge`) gives the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Kind, Side
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.lineage.dataset import LineageDataset, with_witness
from airflow_provider_sparklineage.lineage.statements import Statements
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.terms import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.expectations import Expectation
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.degradations import Degradation
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.model.representation import Limits

_OF_PARTITIONS = frozenset({DegradationCode.PARTITIONS_CUT, DegradationCode.PARTITIONS_INEXACT})
"""What is reported of a dataset when its partitions are selected and compared."""


def failed(
    lineage: TaskLineage, expectations: Iterable[Expectation], locator: Locator, limits: Limits
) -> TaskLineage:
    """Turn the lineage of a try that succeeded into that of one that failed.

    :param lineage: as it was merged, before anything is carried forward from an earlier run
    :param expectations: those that it was merged with; ``locator`` and ``limits`` too
    """
    failing = _Failing(lineage, SubsetReport(expectations, locator, limits))
    outputs = (*lineage.outputs, *failing.bare_outputs())
    return replace(
        lineage,
        outcome=Outcome.FAIL,
        inputs=tuple(map(failing.as_input, lineage.inputs)),
        outputs=tuple(sorted(outputs, key=lambda dataset: dataset.name)),
        degradations=tuple(failing.degradations()),
    )


class _Failing:
    def __init__(self, lineage: TaskLineage, report: SubsetReport) -> None:
        self._lineage = lineage
        self._report = report
        actions = lineage.application.actions if lineage.application else ()
        unfinished = [a for a in actions if a.state is not ActionState.COMPLETE]
        written = {dataset.name for dataset in lineage.outputs}
        self._only_failed: dict[DatasetName, LineageDataset] = {}
        for action in unfinished:
            for name in {dataset.name for dataset in action.outputs} - written:
                bare = self._only_failed.get(name, LineageDataset(name))
                self._only_failed[name] = with_witness(bare, action.witness)
        self._compared_again: set[DatasetName] = set()
        self._statements = Statements()
        for action in actions:
            self._statements.learn(action)

    def bare_outputs(self) -> list[LineageDataset]:
        return [
            self._report.of(bare, Side.WRITE, tables=self._tables(name), has_failed=True)
            for name, bare in self._only_failed.items()
        ]

    def as_input(self, dataset: LineageDataset) -> LineageDataset:
        """Compare a path's partitions again, of which the other side was to write some."""
        expected = dataset.expected
        if dataset.name not in self._only_failed or not expected or expected.kind is not Kind.PATH:
            return dataset
        self._compared_again.add(dataset.name)
        again = self._report.of(
            dataset,
            Side.READ,
            None if dataset.observed else self._statements.filter(dataset),
            other=LineageDataset(dataset.name),
            tables=self._tables(dataset.name),
        )
        # Which partitions were observed does not depend on the other side.
        return replace(again, selected=dataset.selected) if dataset.observed else again

    def _tables(self, name: DatasetName) -> frozenset[str]:
        return self._lineage.tables.get(name, frozenset())

    def degradations(self) -> Iterable[Degradation]:
        """Asked last: what is left of those of the merge, and what was found since."""
        found = self._report.degradations()
        for entry in self._lineage.degradations:
            if entry.code is DegradationCode.NOTHING_WRITTEN and self._only_failed:
                continue
            if entry.code is DegradationCode.DECLARATION_UNBOUND and entry not in found:
                continue  # the table is one that a failed action was to write
            if entry.code in _OF_PARTITIONS and entry.dataset in self._compared_again:
                continue
            yield entry
        yield from (entry for entry in found if entry.code in _OF_PARTITIONS)
