"""One application and what the task knows of itself to one :class:`TaskLineage`.

Policy, case by case:

- Inputs are the datasets that actions read, but for internal reads (:mod:`.history`). Reads of
  failed actions count: the data was read.
- Outputs are the datasets that complete actions wrote, intermediates among them. What only failed
  or unfinished actions wrote is no output of a task that succeeded; of a task that failed it stays
  as a bare name without facets. Either way it is named in a degradation.
- A dataset in several actions appears once. Its facets are those of the latest action, symlinks are
  united, an input's ``version`` is the earliest read. Output statistics are summed over the writes;
  input statistics are the latest, because they tell the size of the relation and not of the read.
  One read or write of the whole makes the subset whole.
- Observed partitions (:mod:`.observed`) decide before the events do: what was read back, what was
  overwritten as a whole, and which subset of a dataset is meant. Where nothing was observed, it is
  what was expected (:mod:`.expected`); :mod:`.subsets` has the order.
- An intermediate (an output that was only read back) is no output where ``intermediates`` say so,
  unless it is declared. Columns that nothing but it is known to be made of have no sources then.
- ``inlets``, ``outlets`` and declarations add what Spark did not report, by identity only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.expectations import Expectation, Side
from airflow_provider_sparklineage.lineage import columns
from airflow_provider_sparklineage.lineage.access.history import (
    Read,
    Write,
    WriteHistory,
    overwrites_whole,
)
from airflow_provider_sparklineage.lineage.access.observed import (
    ObservedSubsets,
    UnknownPartitionsError,
)
from airflow_provider_sparklineage.lineage.application.accumulation import (
    Action,
    ActionState,
    SparkApplication,
)
from airflow_provider_sparklineage.lineage.application.binding import Observations
from airflow_provider_sparklineage.lineage.application.repairs import repaired
from airflow_provider_sparklineage.lineage.columns import ColumnLineage, Origin
from airflow_provider_sparklineage.lineage.columns.reported import (
    ReportedColumns,
    UnreadableColumnsError,
)
from airflow_provider_sparklineage.lineage.dataset import (
    LineageDataset,
    Locations,
    TaskLineage,
    joined,
    with_declared,
)
from airflow_provider_sparklineage.lineage.failed_writes import describe_failed_writes
from airflow_provider_sparklineage.lineage.gaps import WriteOf, gaps
from airflow_provider_sparklineage.lineage.report import Telling
from airflow_provider_sparklineage.lineage.statements import Statements
from airflow_provider_sparklineage.model.datasets import is_files
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.intermediates import KEEP, Intermediates
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR, Locator
from airflow_provider_sparklineage.model.outcome import Outcome
from airflow_provider_sparklineage.model.representation import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from airflow_provider_sparklineage.lineage.access.observed import Subset
    from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
    from airflow_provider_sparklineage.model.datasets import DatasetName


def merge(
    application: SparkApplication,
    outcome: Outcome,
    *,
    declared_inputs: Iterable[DatasetName] = (),
    declared_outputs: Iterable[DatasetName] = (),
    observations: Observations | None = None,
    expectations: Iterable[Expectation] = (),
    locator: Locator = DEFAULT_LOCATOR,
    limits: Limits = DEFAULT_LIMITS,
    intermediates: Intermediates = KEEP,
    past_deadline: Callable[[], bool] = lambda: False,
) -> TaskLineage:
    """Merge all actions of an application into the lineage of its task.

    :param observations: what the observer saw; None where there was none
    :param expectations: what templates and declarations say
    :param locator: finds the partitions of locations; it has named the datasets already
    :param limits: how many partitions and locations the event may name
    :param intermediates: which datasets that were written and read back are no outputs
    :param past_deadline: asked before each action, and before SQL is read to find a subset; when it
        says True, the rest is left out, and a degradation says so
    """
    application = repaired(application)
    merging = _Merging(outcome, observations, Telling(expectations, locator, limits), past_deadline)
    for number, action in enumerate(application.actions):
        if past_deadline():
            merging.note(
                DegradationCode.COLLECTION_CUT,
                f"Merging took too long and ended after {number} of {len(application.actions)} "
                "actions; raise [sparklineage] collect_timeout, or see the whole with "
                "`sparklineage show` on the capture bundle.",
            )
            break
        merging.add(action)
    if any(_has_delta_extension(action) for action in application.actions):
        merging.note(
            DegradationCode.DELTA_HIDES_WRITES,
            "Delta's Spark extension is configured, and with it the listener reports no write "
            "whose plan has a shuffle; such writes, and what they read, are missing.",
        )
    declared_outputs = frozenset(declared_outputs)
    merging.drop_intermediates(intermediates, declared_outputs)
    inputs = with_declared(merging.finished_inputs(), declared_inputs)
    outputs = with_declared(merging.finished_outputs(), declared_outputs)
    read = [merging.told(d, Side.READ, outputs.get(name)) for name, d in inputs.items()]
    written = [merging.told(d, Side.WRITE, inputs.get(name)) for name, d in outputs.items()]
    merging.degradations += merging.telling.degradations()
    if not outputs and not merging.dropped:
        merging.note(
            DegradationCode.NOTHING_WRITTEN,
            "The application reported no output: it wrote nothing, or in a way that the listener "
            "cannot see.",
        )
    return TaskLineage(
        outcome,
        tuple(sorted(read, key=lambda d: d.name)),
        tuple(sorted(written, key=lambda d: d.name)),
        application,
        tuple(merging.degradations),
    )


class _Merging:
    """The merge in progress; actions are added in the order of their start."""

    def __init__(
        self,
        outcome: Outcome,
        observations: Observations | None,
        telling: Telling,
        past_deadline: Callable[[], bool],
    ) -> None:
        self.outcome = outcome
        self.telling = telling
        self._past_deadline = past_deadline
        self._was_observed = observations is not None
        self._observed = ObservedSubsets(observations or Observations())
        self.inputs: dict[DatasetName, LineageDataset] = {}
        self.outputs: dict[DatasetName, LineageDataset] = {}
        self._read_at, self._written_at = Locations(), Locations()
        self.degradations: list[Degradation] = []
        self._history = WriteHistory()
        self._failed_outputs: set[DatasetName] = set()
        self._unobserved: set[DatasetName] = set()
        self._unobserved_writes: set[DatasetName] = set()
        self._assumed: set[DatasetName] = set()
        self._read_back: set[DatasetName] = set()
        self.dropped: set[DatasetName] = set()
        self._statements = Statements()
        self._columns = ReportedColumns()
        self._writes: dict[DatasetName, list[WriteOf]] = {}
        self._functions = observations.functions if observations else None

    def note(
        self,
        code: DegradationCode,
        message: str,
        dataset: DatasetName | None = None,
        column: str | None = None,
    ) -> None:
        self.degradations.append(Degradation(code, message, dataset, column))

    def add(self, action: Action) -> None:
        self._columns.learn(action)
        self._statements.learn(action)
        origins = {
            d.name: self._origin(action, d.name, Read(action.started, d.size_found, d.locations))
            for d in action.inputs
        }
        for dataset in action.inputs:
            self._add_input(action, dataset, origins[dataset.name])
        if action.state is not ActionState.COMPLETE:
            self._failed_outputs |= {dataset.name for dataset in action.outputs}
            self.degradations += describe_failed_writes(action, self.telling)
            return
        lineages = {d.name: self._composed(action, d, origins) for d in action.outputs}
        for dataset in action.outputs:
            self._add_output(action, dataset)
            said, composed = lineages[dataset.name]
            untraced = self._observed.lost_columns(dataset.name, action.started, action.ended)
            self._writes.setdefault(dataset.name, []).append(WriteOf(action, said, untraced))
            whole = self._observed.is_whole_overwrite(dataset.name, action.started, action.ended)
            replaced: frozenset[str] = frozenset()
            if whole is None:
                whole = overwrites_whole(action, dataset, said, dataset.column_names)
                if dataset.locations and whole:
                    whole, replaced = False, dataset.locations
            if action.ended is not None:
                write = Write(
                    action.ended,
                    composed,
                    whole,
                    appends=not dataset.lifecycle,
                    size=dataset.size_written,
                    locations=dataset.locations,
                    replaced=replaced,
                    sources=columns.sources_of(composed, origins),
                )
                self._history.add(dataset.name, write)

    def _origin(self, action: Action, name: DatasetName, read: Read) -> Origin | None:
        """Tell what the application had written into a dataset that an action reads."""
        origin = self._history.origin(name, read)
        observed = self._observed.is_internal(name, action.started, action.ended)
        if origin is None or observed is None:
            return origin
        return origin._replace(internal=observed, exact=True)

    def _add_input(self, action: Action, dataset: ActionDataset, origin: Origin | None) -> None:
        if not self._observed.was_read(dataset.name, action.started, action.ended):
            # RDD code, for example: what else was read of the dataset is then not all of it.
            self._unobserved.add(dataset.name)
        if origin is None or not origin.internal:
            known = self.inputs.get(dataset.name)
            self.inputs[dataset.name] = joined(known, dataset, is_input=True)
            self._read_at.add(dataset)
            return
        self._read_back.add(dataset.name)
        if not origin.exact and dataset.name not in self._assumed:
            self._assumed.add(dataset.name)
            self.note(
                DegradationCode.INTERNAL_READ_ASSUMED,
                f"{dataset.name} was read back after this application had written it, and nothing "
                "says that it held older data; it is taken as an intermediate of the task and not "
                "as an input.",
                dataset.name,
            )

    def _composed(
        self, action: Action, output: ActionDataset, origins: Mapping[DatasetName, Origin | None]
    ) -> tuple[ColumnLineage, ColumnLineage]:
        """Column lineage of one write: as the listener said it, and with intermediates resolved."""
        untraced = self._observed.lost_columns(output.name, action.started, action.ended)
        try:
            said = self._columns.said(action, output, untraced)
        except UnreadableColumnsError as error:
            self.note(DegradationCode.COLUMN_LINEAGE_MISSING, str(error), output.name)
            return ColumnLineage(), ColumnLineage()

        def origin(name: DatasetName) -> Origin | None:
            if name in origins:
                return origins[name]
            # Column lineage can name datasets that the listener forgot among the inputs.
            return self._origin(action, name, Read(action.started))

        return said, columns.compose(said, origin)

    def _add_output(self, action: Action, dataset: ActionDataset) -> None:
        is_seen = self._observed.was_written(dataset.name, action.started, action.ended)
        if dataset.size_written and not is_seen:  # others, as CREATE TABLE, write no data
            self._unobserved_writes.add(dataset.name)
        known = self.outputs.get(dataset.name)
        self.outputs[dataset.name] = joined(known, dataset, is_input=False)
        self._written_at.add(dataset)

    def drop_intermediates(
        self, intermediates: Intermediates, declared: frozenset[DatasetName]
    ) -> None:
        """Leave out outputs that were read back, and by no action as an input of the task."""
        only_read_back = self._read_back - self.inputs.keys()
        self.dropped = {
            name
            for name in only_read_back & self.outputs.keys()
            if intermediates.drop(name)
            and declared.isdisjoint({name} | self.outputs[name].symlinks)
        }

    def finished_inputs(self) -> dict[DatasetName, LineageDataset]:
        """Give the inputs with the partitions that were read from outside."""
        finished = {}
        for name, last in self.inputs.items():
            dataset = replace(last, locations=self._read_at.of(name))
            finished[name] = dataset
            if name not in self._unobserved:
                finished[name] = self._observe(dataset, self._observed.of_input, "read from")
            elif self._was_observed and is_files(name):
                self._note_unknown(name, "read from", "not all reads of it were observed")
        return finished

    def _observe(
        self, dataset: LineageDataset, of: Callable[[DatasetName], Subset | None], how: str
    ) -> LineageDataset:
        """Add what was observed to a dataset of which something was."""
        try:
            return replace(dataset, observed=True, subset=of(dataset.name))
        except UnknownPartitionsError as reason:
            self._note_unknown(dataset.name, how, str(reason))
            return dataset

    def _note_unknown(self, name: DatasetName, how: str, reason: str) -> None:
        self.note(
            DegradationCode.PARTITIONS_UNKNOWN,
            f"Which partitions were {how} {name} is not known: {reason}.",
            name,
        )

    def finished_outputs(self) -> dict[DatasetName, LineageDataset]:
        """Give the outputs with composed columns; on failure unfinished ones too, as bare names."""
        finished = {}
        for name, dataset in self.outputs.items():
            if name in self.dropped:
                continue
            origin = self._history.origin(name, Read())
            lineage = origin.lineage if origin else ColumnLineage()
            # Its own columns are nobody's sources unless it is an input too.
            nobody = self.dropped if name in self.inputs else self.dropped | {name}
            lineage = columns.without_sources_in(lineage, nobody)
            sources = (origin.sources if origin else frozenset()) - nobody
            at = self._written_at.of(name)
            output = replace(dataset, locations=at, columns=lineage, sources=sources)
            is_seen = name not in self._unobserved_writes
            if is_seen and self._observed.was_ever_written(name):
                output = self._observe(output, self._observed.of_output, "written to")
            elif self._was_observed and is_files(name):
                self._note_unknown(name, "written to", "not all writes of it were observed")
            finished[name] = output
            writes = self._writes.get(name, ())
            self.degradations += gaps(output, writes, self._functions, self._past_deadline)
        if self.outcome is Outcome.FAIL:
            for name in self._failed_outputs - finished.keys():
                finished[name] = LineageDataset(name)
        return finished

    def told(
        self, dataset: LineageDataset, side: Side, other: LineageDataset | None
    ) -> LineageDataset:
        """Add what was expected of a dataset, and in which form its subset is to be said.

        :param other: the dataset on the other side, if it is there
        """
        name, filters, static = dataset.name, None, None
        tables = self._observed.tables(name)
        if side is Side.WRITE and name in self._failed_outputs and name not in self.outputs:
            return self.telling.told(dataset, side, tables=tables, has_failed=True)
        if not self._past_deadline():  # reading SQL takes a tenth of a second for each long text
            if side is Side.WRITE or other is not None:
                static = self._statements.partitions(name)
            if side is Side.READ and dataset.observed:
                filters = self._observed.filters(name, self._columns.of(name))
            elif side is Side.READ:
                filters = self._statements.filter(dataset)
        return self.telling.told(dataset, side, filters, static, other=other, tables=tables)


def _has_delta_extension(action: Action) -> bool:
    extensions = action.properties.get("spark.sql.extensions", ())
    return any("DeltaSparkSessionExtension" in value for value in extensions)
