"""The lineage that a task has without its job: declared datasets, and those of its last run.

Before the job has run, this is the lineage of the START event (:func:`declared_lineage`). START
waits for the imports of this module, so the module imports no code that merges.

After the job, this lineage replaces the parts that a try lacks (:func:`with_last_run`), because an
event without datasets empties the graphs of backends. Policy, case by case:

- If Spark reported no dataset on a side (inputs or outputs) of a failed try, the event names the
  datasets of the last successful run next to the declared datasets; a degradation reports it.
- A declared output that a successful try did not access has no schema. Some backends make a version
  of a dataset for each schema that they meet in a run. For such a backend the output gets the
  facets that it had in START; otherwise the dataset would seem to have lost its columns.
- Spark's reports of this try are not changed: outputs of failed actions stay without facets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Expectation, Kind, Side
from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage, with_declared
from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.last_run import NO_LAST_RUN, LastRun, LastRunDataset
from airflow_provider_sparklineage.model.locations import Locator
from airflow_provider_sparklineage.model.terms import Outcome

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.last_run import BothForms
    from airflow_provider_sparklineage.model.representation import Limits
    from airflow_provider_sparklineage.model.rules import PartitionRules
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest


# --- after the job --------------------------------------------------------------------------------


def last_and_declared(
    last: Iterable[LastRunDataset], declared: Iterable[DatasetName]
) -> tuple[LineageDataset, ...]:
    """Give the datasets of the last successful run, and the declared datasets that it lacks."""
    of_run = {d.dataset: LineageDataset(d.dataset, dict(d.facets)) for d in last}
    every = with_declared(of_run, declared)
    return tuple(every[name] for name in sorted(every))


def with_last_run(
    lineage: TaskLineage,
    last: LastRun,
    declared_inputs: Collection[DatasetName],
    declared_outputs: Collection[DatasetName],
    *,
    versions_by_schema: bool,
) -> TaskLineage | None:
    """Replace the missing parts of a try's lineage by those of the last successful run.

    The parts are inputs, outputs, and facets of outputs; the module's docstring has the policy.

    :param declared_inputs: inputs that the task declares; a declared dataset without facets counts
        as not reported by Spark
    :param declared_outputs: outputs that the task declares
    :param versions_by_schema: whether the backend makes a version of a dataset for each schema that
        it meets in a run; only then facets of outputs are replaced
    :return: None if no part is missing
    """
    inputs, outputs = lineage.inputs, lineage.outputs
    has_failed = lineage.outcome is Outcome.FAIL
    misses_inputs = has_failed and _is_unreported(inputs, declared_inputs)
    misses_outputs = has_failed and _is_unreported(outputs, declared_outputs)
    is_versioned = versions_by_schema and not has_failed
    without_facets = {d.name for d in outputs if is_versioned and not d.facets}
    if not misses_inputs and not misses_outputs and not without_facets:
        return None
    filled = []
    if misses_inputs and last.inputs:
        inputs, filled = _with_last(last.inputs, inputs), ["inputs"]
    if misses_outputs and last.outputs:
        outputs = _with_last(last.outputs, outputs)
        filled.append("outputs")
    known = {d.dataset: dict(d.facets) for d in last.outputs if d.dataset in without_facets}
    outputs = tuple(replace(d, facets=known[d.name]) if d.name in known else d for d in outputs)
    note = Degradation(
        DegradationCode.LAST_KNOWN,
        f"Spark reported no {' and no '.join(filled)} of this try. Those of the "
        f"last successful run ({last.run_id}) are in the event, so that backends keep "
        "showing them.",
    )
    degradations = (*lineage.degradations, note) if filled else lineage.degradations
    return replace(lineage, inputs=inputs, outputs=outputs, degradations=degradations)


class Completed(NamedTuple):
    """The lineage of a try, with missing parts replaced by those of the last successful run.

    :param lineage: the lineage; missing parts come from the last run's event as Airflow keeps it
    :param as_sent: the same, but missing parts come from that event as it was sent to the backend;
        None if both are the same
    :param last_known: the last run; None if no part was missing
    """

    lineage: TaskLineage
    as_sent: TaskLineage | None = None
    last_known: LastRun | None = None


def completed(lineage: TaskLineage, manifest: Manifest, last_known: BothForms) -> Completed:
    """Replace the missing parts of a try's lineage, see :func:`with_last_run`.

    :param manifest: the manifest of the try, which has the declared datasets
    :param last_known: the last successful run
    """
    kept, sent, versions_by_schema = last_known

    def by(last: LastRun) -> TaskLineage | None:
        declared = manifest.declared_inputs, manifest.declared_outputs
        return with_last_run(lineage, last, *declared, versions_by_schema=versions_by_schema)

    filled = by(kept) if kept != NO_LAST_RUN else None
    if filled is None:
        return Completed(lineage)
    return Completed(filled, None if sent is kept else by(sent), kept)


def unmerged(manifest: Manifest, outcome: Outcome, last_known: BothForms) -> Completed:
    """Give the lineage of a try whose bundle was not merged.

    It has the declared datasets, those of the last successful run, and the worker's degradations.

    :param manifest: the manifest of the try, which has the declared datasets and the degradations
    :param outcome: the outcome of the job
    :param last_known: the last successful run
    """
    lineage = declared_lineage(
        manifest.declared_inputs,
        manifest.declared_outputs,
        manifest.expectations,
        manifest.locator.rules,
        manifest.limits,
    )
    degradations = (*manifest.degradations, *lineage.degradations)
    lineage = replace(lineage, outcome=outcome, degradations=degradations)
    return completed(lineage, manifest, last_known)


def without_datasets(manifest: Manifest, outcome: Outcome) -> Completed:
    """Give a lineage that has only the job's outcome and the manifest's degradations."""
    return Completed(TaskLineage(outcome, degradations=manifest.degradations))


def _is_unreported(side: Iterable[LineageDataset], declared: Collection[DatasetName]) -> bool:
    return all(not d.facets and d.name in declared for d in side)


def _with_last(
    last: Iterable[LastRunDataset], reported: Iterable[LineageDataset]
) -> tuple[LineageDataset, ...]:
    """Add the last run's datasets to a try's datasets, all of which are only declared.

    A declared dataset keeps its expected partitions, and gets the facets of the last run.

    :param last: the datasets of the last run
    :param reported: the datasets of the try
    """
    declared = {d.name: d for d in reported}
    every = {d.name: d for d in last_and_declared(last, declared)}
    for name, dataset in list(every.items()):
        names = {name, *dataset.symlinks} & declared.keys()
        if names:
            of = declared[min(names)]
            every[name] = replace(of, name=name, facets=dataset.facets)
    return tuple(every[name] for name in sorted(every))


# --- before the job -------------------------------------------------------------------------------


def declared_lineage(
    inputs: Iterable[DatasetName],
    outputs: Iterable[DatasetName],
    expectations: Iterable[Expectation],
    rules: PartitionRules,
    limits: Limits,
    last_known: LastRun = NO_LAST_RUN,
) -> TaskLineage:
    """Give the lineage of a task without collected events: declared and last known datasets.

    Of the expectations, only declarations count. A path among the arguments does not show whether
    it is read or written, so paths count only after Spark has reported datasets.

    :param inputs: the declared inputs
    :param outputs: the declared outputs
    :param expectations: the partitions that templates and declarations name
    :param rules: recognise the partitions in paths
    :param limits: how many partitions the event may name
    :param last_known: the last successful run; its datasets are added
    """
    declared = [e for e in expectations if e.kind is Kind.DECLARED]
    report = SubsetReport(declared, Locator(rules=rules), limits)
    reads = last_and_declared(last_known.inputs, inputs)
    writes = last_and_declared(last_known.outputs, outputs)
    return TaskLineage(
        Outcome.COMPLETE,
        tuple(report.of(dataset, Side.READ) for dataset in reads),
        tuple(report.of(dataset, Side.WRITE) for dataset in writes),
    )
