"""Merge an application and declarations: decide which datasets are inputs, and which outputs.

Merging has four steps:

1. *Accumulate* (:mod:`.actions`): the reads and writes of the actions, in the order of time, are
   entered in one ledger for each dataset.
2. *Grade*: the evidence in the ledgers (:mod:`.ledger`) decides which datasets are inputs, outputs
   or intermediates, and which of their partitions are known.
3. *Compose*: find the sources of each output's columns, and the reasons why columns have none.
4. *Report* (:mod:`.subset_report`): the subset of each dataset, compared with the expected one.

Policy, case by case:

- Inputs are the datasets that actions read, except by internal reads (:mod:`.ledger`). Reads
  of failed actions count: the data was read.
- Outputs are the datasets that complete actions wrote, intermediates among them. A dataset that
  only failed or unfinished actions wrote is not an output of a task that succeeded; in a task that
  failed, it is an output without facets. In both cases a degradation names the dataset.
- CREATE TABLE without a SELECT, ALTER TABLE and MSCK REPAIR write no data: the facets that they
  report are added to the table if it is written later, but do not make the table an output.
- A dataset in several actions appears once. Its facets are those of the latest action, symlinks are
  united, an input's ``version`` is that of the earliest read. Output statistics are summed over the
  writes; input statistics are those of the latest read, because they give the size of the relation
  and not of the read. One full read or write makes the subset full.
- Observed partitions (:mod:`.observed.accesses`) come before the events. They decide which data was
  read back, which data was overwritten in full, and which subset of a dataset is reported. Without
  observations, the expected subset is reported (:mod:`.partitions.expected`);
  :mod:`.partitions.selection` has the order.
- An intermediate (an output that was only read back) is not an output where ``intermediates`` drop
  it, unless it is declared. A column has no sources if all its known sources are columns of a
  dropped intermediate.
- If events are missing, a missing output is not reported, because one of these events may name it.
  If events or records were not delivered, missing partitions are not reported either.
- ``inlets``, ``outlets`` and declarations add datasets that Spark did not report, by name only.

A task fails if its job fails, or if a partition check fails after the job has succeeded. After such
a check the same application is merged again, now for a failed task. Policy, case by case:

- Outputs of complete actions are as in a task that succeeded: the data was written.
- The expectations of an output that only failed or unfinished actions wrote are not compared.
- An input that a failed or unfinished action was to write counts as read and written. Its written
  partitions are unknown, and so are the missing partitions of a path.
- A missing output is not reported if a failed or unfinished action was to write an output.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Expectation, Side
from airflow_provider_sparklineage.lineage.actions import Accumulated, accumulated
from airflow_provider_sparklineage.lineage.application.repairs import repaired
from airflow_provider_sparklineage.lineage.columns import edges
from airflow_provider_sparklineage.lineage.columns.composition import without_sources_in
from airflow_provider_sparklineage.lineage.dataset import (
    LineageDataset,
    TaskLineage,
    with_declared,
    with_statistics,
    with_witness,
)
from airflow_provider_sparklineage.lineage.gaps import gaps
from airflow_provider_sparklineage.lineage.ledger import Ledgers
from airflow_provider_sparklineage.lineage.observed.accesses import UnknownPartitionsError
from airflow_provider_sparklineage.lineage.subset_report import (
    NOT_OBSERVED,
    SubsetReport,
    inexact,
)
from airflow_provider_sparklineage.model import representation
from airflow_provider_sparklineage.model.allowance import UNLIMITED, Allowance, Stage, cut_short
from airflow_provider_sparklineage.model.datasets import DatasetName, is_files
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR, Locator
from airflow_provider_sparklineage.model.terms import Outcome, Witness
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_provider_sparklineage.lineage.application.accesses import Figures
    from airflow_provider_sparklineage.lineage.application.accumulation import (
        Action,
        SparkApplication,
    )
    from airflow_provider_sparklineage.lineage.observed.accesses import Observations
    from airflow_provider_sparklineage.model.partitioning import Partition

    Datasets = Mapping[DatasetName, LineageDataset]


def merge(
    application: SparkApplication,
    outcome: Outcome,
    *,
    declared_inputs: Iterable[DatasetName] = (),
    declared_outputs: Iterable[DatasetName] = (),
    observations: Observations | None = None,
    expectations: Iterable[Expectation] = (),
    locator: Locator = DEFAULT_LOCATOR,
    limits: representation.Limits = representation.DEFAULT_LIMITS,
    intermediates: representation.Intermediates = representation.KEEP,
    column_lineage: str = representation.ColumnLineageForm.COMPACT,
    is_read: bool = True,
    is_delivered: bool = True,
    allowance: Allowance = UNLIMITED,
) -> TaskLineage:
    """Merge all actions of an application into the lineage of its task.

    :param outcome: the outcome of the task's try
    :param declared_inputs: inputs that the task declares; they are inputs even if Spark does not
        report them
    :param declared_outputs: outputs that the task declares; they are outputs even if Spark does
        not report them
    :param observations: the observed accesses and plans; None where there was no observer
    :param expectations: the partitions that templates and declarations name
    :param locator: finds the partitions of locations; the datasets of ``application`` already have
        the names that the locator gives
    :param limits: how many partitions and locations the event may name
    :param intermediates: decides which datasets that were written and read back are not outputs
    :param column_lineage: the :class:`ColumnLineageForm` of the outputs
    :param is_read: whether there are events, and all that were delivered were read; if not, no
        missing output is reported
    :param is_delivered: whether all events and records were delivered; if not, neither missing
        outputs nor missing partitions are reported
    :param allowance: when no time is left, actions, columns and partitions are left out, and a
        degradation reports it
    """
    application = repaired(application)
    report = SubsetReport(expectations, locator, limits, allowance, is_whole=is_delivered)
    declared_outputs = frozenset(declared_outputs)
    done = accumulated(application.actions, Ledgers(observations, allowance), report)
    cut = {n: why for n, why in done.cut.items() if done.ledgers.of(n).contents().is_cut}
    degradations = [
        *done.degradations,
        *_without_columns(cut),
        *(() if observations else _hidden_by_delta(application.actions)),
    ]

    dropped = _dropped(done, intermediates, declared_outputs)
    inputs, unknown = _graded(done.inputs, Side.READ, done.ledgers)
    degradations += unknown.values()
    kept = {name: dataset for name, dataset in done.outputs.items() if name not in dropped}
    outputs, unknown = _graded(kept, Side.WRITE, done.ledgers)

    functions = observations.functions if observations else None
    for name, dataset in outputs.items():
        outputs[name] = output = _composed(dataset, done, dropped)
        degradations += [unknown[name]] if name in unknown else []
        if name not in cut and not output.is_only_emptied:
            degradations += gaps(output, done.writes[name], functions, allowance)

    gone = observations.gone if observations else frozenset()
    maintenance = observations.maintenance if observations else ()
    degradations += [_gone(name) for name in outputs if name in gone]
    if outcome is Outcome.FAIL:
        outputs = {**done.failed, **outputs}
    inputs = with_declared(inputs, declared_inputs)
    outputs = with_declared(outputs, declared_outputs)

    read = [_reported(d, Side.READ, outputs.get(n), report, done) for n, d in inputs.items()]
    written = [_reported(d, Side.WRITE, inputs.get(n), report, done) for n, d in outputs.items()]
    degradations += report.degradations()
    if allowance.is_over(Stage.MERGING):
        degradations.append(_CUT)
    is_nothing = not outputs and not dropped and not maintenance
    if is_nothing and is_read and is_delivered:
        degradations.append(_NOTHING_WRITTEN)
    written.sort(key=lambda d: d.name)
    if column_lineage == representation.ColumnLineageForm.LEGACY:
        written, refused = in_legacy_form(written)
        degradations += refused
    return TaskLineage(
        outcome,
        tuple(sorted(read, key=lambda d: d.name)),
        tuple(written),
        application,
        tuple(dict.fromkeys(degradations)),
        maintenance=maintenance,
    )


_CUT = cut_short(
    "Merging took too long: partitions that only SQL or locations name, what was expected of them, "
    "and why columns have no sources, may be missing"
)
_NOTHING_WRITTEN = Degradation(
    DegradationCode.NOTHING_WRITTEN,
    "The application reported no output: it wrote nothing, or in a way that the listener "
    "cannot see.",
)


def _without_columns(cut: Mapping[DatasetName, str]) -> Iterator[Degradation]:
    """Report the outputs of which at least one write has no columns.

    :param cut: output -> the reason why the columns are missing
    """
    for reason in sorted(set(cut.values())):
        names = sorted(str(name) for name, why in cut.items() if why == reason)
        which = f"{len(names)} dataset(s) was left out ({some(names, _NAMED)})"
        yield cut_short(f"The column lineage of {which}", reason)


_NAMED = 3


def _gone(name: DatasetName) -> Degradation:
    message = (
        f"{name} was written, and was not there any more when the application ended: it was "
        "renamed, moved or removed in a way that Spark does not report. If it is elsewhere now, "
        "declare that place in writes=."
    )
    return Degradation(DegradationCode.OUTPUT_GONE, message, name, side=Side.WRITE)


def _hidden_by_delta(actions: Iterable[Action]) -> Iterator[Degradation]:
    """Report that Delta's extension hides writes, if the session of some action had it.

    The report is only for applications without an observer: an observer sees the hidden writes.
    """
    extensions = (a.properties.get("spark.sql.extensions", ()) for a in actions)
    if any("DeltaSparkSessionExtension" in e for values in extensions for e in values):
        yield Degradation(
            DegradationCode.DELTA_HIDES_WRITES,
            "Delta's Spark extension is configured, and with it the listener reports no write of "
            "files whose plan has a shuffle or a scalar subquery, but for those of Delta itself; "
            "nothing was observed, so if the job has such writes, they are missing.",
        )


# --- grade ----------------------------------------------------------------------------------------


def _dropped(
    done: Accumulated, intermediates: representation.Intermediates, declared: frozenset[DatasetName]
) -> frozenset[DatasetName]:
    """List the outputs to leave out: those that the task's settings drop as intermediate datasets.

    A declared output is never left out.

    :param done: all reads and writes of the application
    :param intermediates: the task's settings for intermediate datasets
    :param declared: the declared outputs
    """
    return frozenset(
        name
        for name, output in done.outputs.items()
        if name not in done.inputs
        and done.ledgers.of(name).is_read_back
        and intermediates.drop(name)
        and declared.isdisjoint({name} | output.symlinks)
    )


def _graded(
    datasets: Datasets, side: Side, ledgers: Ledgers
) -> tuple[dict[DatasetName, LineageDataset], dict[DatasetName, Degradation]]:
    """Add locations to datasets, and partitions to each dataset whose accesses were all observed.

    :param side: READ if the datasets are inputs, WRITE if they are outputs
    :param ledgers: the ledgers, which have the accesses
    :return: the datasets by name; and a degradation for each dataset with partitions that are
        unknown, or known by the listener's locations only though there was an observer
    """
    found, unknown = {}, {}
    work = partial(ledgers.allowance.work, Stage.MERGING)
    for name, dataset in datasets.items():
        ledger = ledgers.of(name)
        observed, subset, why = False, None, ""
        figures: Mapping[Partition, Figures] = {}
        if ledger.is_observed(side):
            try:
                observed, subset = True, ledger.observed.subset(side, work)
                figures = ledger.observed.figures(work) if side is Side.WRITE else {}
            except UnknownPartitionsError as reason:
                why = str(reason)
        elif ledgers.has_observer and is_files(name):
            why = f"not all {_ACCESSES[side]} of it were observed"
            if ledger.locations(side) is not None:
                unknown[name], why = inexact(name, side, NOT_OBSERVED), ""
        found[name] = replace(
            with_witness(dataset, Witness.OBSERVER if ledger.observed.has(side) else None),
            locations=ledger.locations(side),
            observed=observed,
            subset=subset,
            is_empty=observed and ledger.observed.is_empty(side),
            is_emptied=side is Side.WRITE
            and (observed and subset is None and ledger.observed.is_emptied()),
            is_of_chosen_files=observed and ledger.observed.is_of_chosen_files(side),
            figures=figures,
        )
        if why:
            unknown[name] = Degradation(
                DegradationCode.PARTITIONS_UNKNOWN,
                f"Which partitions were {_ACCESSED[side]} {name} is not known: {why}.",
                name,
                side=side,
            )
    return found, unknown


_ACCESSES = {Side.READ: "reads", Side.WRITE: "writes"}
_ACCESSED = {Side.READ: "read from", Side.WRITE: "written to"}


# --- compose --------------------------------------------------------------------------------------


def _composed(
    output: LineageDataset, done: Accumulated, dropped: frozenset[DatasetName]
) -> LineageDataset:
    """Add to an output its final column lineage, its source datasets and the number of writes.

    :param done: all reads and writes of the application
    :param dropped: intermediate datasets that are no outputs; their columns are no sources
    """
    name = output.name
    contents = done.ledgers.of(name).contents()
    # The columns of the output itself are not sources, unless it is an input too.
    without = dropped if name in done.inputs else dropped | {name}
    lineage = without_sources_in(contents.columns, without)
    sources, writes = contents.sources - without, len(done.writes[name])
    return with_statistics(replace(output, columns=lineage, sources=sources, writes=writes))


def in_legacy_form(
    outputs: Iterable[LineageDataset],
) -> tuple[list[LineageDataset], list[Degradation]]:
    """Bring the column lineage of outputs into the legacy form, see :func:`.edges.legacy`.

    An output that would have too many edges keeps the compact form, and a degradation reports it.
    """
    changed, refused = [], []
    for output in outputs:
        expanded = edges.legacy(output.columns) if output.columns else None
        changed.append(replace(output, columns=expanded) if expanded else output)
        if output.columns and expanded is None:
            message = (
                f"The column lineage of {output.name} is in the compact form: in the legacy form "
                f"it would have more than {edges.MAX_LEGACY_EDGES} edges."
            )
            code = DegradationCode.LEGACY_REFUSED
            refused.append(Degradation(code, message, output.name, side=Side.WRITE))
    return changed, refused


# --- report ---------------------------------------------------------------------------------------


def _reported(
    dataset: LineageDataset,
    side: Side,
    other: LineageDataset | None,
    report: SubsetReport,
    done: Accumulated,
) -> LineageDataset:
    """Add to a dataset its expected partitions, the reported subset, and their comparison.

    :param other: of an input, the same dataset as an output, and vice versa; None if it is not both
    :param report: finds the expected partitions, and compares
    :param done: all reads and writes of the application
    """
    name, filters, static = dataset.name, None, None
    ledger = done.ledgers.of(name)
    if side is Side.WRITE and name in done.failed and name not in done.outputs:
        return report.of(dataset, side, tables=ledger.tables, has_failed=True)
    # Parsing SQL takes a tenth of a second for each long text.
    if not done.ledgers.allowance.is_over(Stage.MERGING):
        if side is Side.WRITE or other is not None:
            static = done.statements.partitions(name)
        if side is Side.READ and dataset.observed:
            filters = ledger.observed.filters(done.schemas.schema(name))
        elif side is Side.READ:
            filters = done.statements.filter(dataset)
    return report.of(dataset, side, filters, static, other=other, tables=ledger.tables)
