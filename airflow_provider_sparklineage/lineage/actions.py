"""Go through the actions of an application in order, and accumulate the facts of each dataset.

The writes before a read show whether it is *internal*: whether only data of the application itself
was read. Each write gets its composed columns: columns of intermediate datasets are replaced by
their sources. Both reads and writes are entered in the ledger of their dataset, in the order of
time. An action that failed or never ended counts as no write; it is reported, with the partitions
that it may have half written. Filters and static partitions are read from the SQL of the actions
(:class:`Statements`).

Columns take the most time and memory, and both are bounded. Once a bound is reached, datasets and
partitions are still accumulated, but a write then has no columns, and neither has a dataset that is
made from the data of that write.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accumulation import Action, ActionState
from airflow_provider_sparklineage.lineage.application.repairs import only_defines
from airflow_provider_sparklineage.lineage.columns import composition
from airflow_provider_sparklineage.lineage.columns.edges import ColumnLineage, count_all
from airflow_provider_sparklineage.lineage.columns.plans import commands
from airflow_provider_sparklineage.lineage.columns.reported import (
    ReportedColumns,
    UnreadableColumnsError,
)
from airflow_provider_sparklineage.lineage.dataset import LineageDataset, joined, with_witness
from airflow_provider_sparklineage.lineage.gaps import ColumnWrite
from airflow_provider_sparklineage.model import predicates
from airflow_provider_sparklineage.model.allowance import Bound, Limit, SpentError, Stage, cut_short
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.subset import EVERYTHING, Condition, disjunction, extent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
    from airflow_provider_sparklineage.lineage.ledger import Ledgers
    from airflow_provider_sparklineage.lineage.observed.accesses import WritePlan
    from airflow_provider_sparklineage.lineage.subset_report import SubsetReport
    from airflow_provider_sparklineage.model.datasets import DatasetName

    Provenances = Mapping[DatasetName, composition.Provenance | None]


# --- the subsets that SQL names -------------------------------------------------------------------


class Statements:
    """The SQL statements that read each dataset, and those that wrote it."""

    def __init__(self) -> None:
        self._reading: dict[DatasetName, set[str]] = {}
        self._writing: dict[DatasetName, set[str]] = {}

    def learn(self, action: Action) -> None:
        """Remember the statement of an action for each of its inputs and outputs.

        The outputs of an action that failed or never ended are left out. An action without SQL has
        the statement "".
        """
        for dataset in action.inputs:
            self._reading.setdefault(dataset.name, set()).add(action.sql)
        for dataset in action.outputs if action.state is ActionState.COMPLETE else ():
            self._writing.setdefault(dataset.name, set()).add(action.sql)

    def filter(self, dataset: LineageDataset) -> Condition | None:
        """Give the WHERE clauses of the statements that read a dataset, joined by OR.

        A statement counts only if its table has the name of the dataset or of a symlink: a
        statement that reads a view names columns of the view, and not columns of the dataset.

        :return: None if any of the statements does not count, has no WHERE or reads other tables
            too, if the filters together restrict nothing, or if no statement read the dataset
        """
        names = {n.name for n in (dataset.name, *dataset.symlinks)}
        tables = sorted(names | {re.split("[./]", n.rstrip("/"))[-1] for n in names})
        conditions: list[Condition] = []
        for statement in sorted(self._reading.get(dataset.name, ())):
            known = (predicates.where(statement, table) for table in tables if statement)
            found = next((c for c in known if c is not None), None)
            if found is None:
                return None
            conditions.append(found)
        united = disjunction(conditions) if conditions else EVERYTHING
        return None if united == EVERYTHING else united

    def partitions(self, name: DatasetName) -> frozenset[Partition] | None:
        """Read the static partitions out of the statements that wrote a dataset.

        :return: None if any of them names no static partition, or no statement wrote the dataset
        """
        statements = self._writing.get(name, ())
        parts = [predicates.static_partition(s) if s else () for s in statements]
        return frozenset(map(Partition, parts)) if parts and all(parts) else None


# --- writes that failed or never ended ------------------------------------------------------------


def describe_failed_writes(action: Action, report: SubsetReport) -> Iterator[Degradation]:
    """Report the outputs of a failed or unended action, with partitions it may have half written.

    An action without outputs gets one report, which names no dataset.

    :param report: finds the partitions that the action may have half written
    """
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


# --- accumulating ---------------------------------------------------------------------------------


def accumulated(actions: Sequence[Action], ledgers: Ledgers, report: SubsetReport) -> Accumulated:
    """Accumulate the reads and writes of an application's actions.

    When no time is left, the remaining actions are left out, and a degradation reports it.

    :param actions: the actions, in the order of their start
    :param ledgers: empty ledgers, which this function fills
    :param report: the report that finds the partitions that a failed write may have half written
    """
    done = Accumulated(ledgers, report)
    for action in actions:
        for output in action.outputs:
            ledgers.of(output.name).take_plans(action)
    for number, action in enumerate(actions):
        if ledgers.allowance.is_over(Stage.MERGING):
            text = f"Merging took too long and ended after {number} of {len(actions)} actions"
            done.degradations.append(cut_short(text))
            break
        done.add(action)
    return done


class _Composed(NamedTuple):
    """The column lineage of a dataset's last write, as reported and as composed.

    :param made_of: the provenance of each dataset that the reported columns name
    :param composed: ``reported``, with columns of intermediate datasets replaced by their sources
    """

    reported: ColumnLineage
    made_of: Provenances
    composed: ColumnLineage

    def is_of(
        self,
        reported: ColumnLineage,
        provenance_of: Callable[[DatasetName], composition.Provenance | None],
    ) -> bool:
        """Whether the columns of a further write would be composed to the same columns as these.

        A loop writes the same columns many times. Column lineage is compared by identity, which
        takes no time.

        :param reported: the reported columns of the further write
        :param provenance_of: a function that gives the provenance of a dataset at that write
        """
        return reported is self.reported and all(
            _is_same(provenance_of(name), known) for name, known in self.made_of.items()
        )


def _is_same(one: composition.Provenance | None, other: composition.Provenance | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.columns is other.columns and one.internal == other.internal


class Accumulated:
    """The reads and writes of the actions that were added so far, one after the other.

    :param report: finds the partitions that a failed write may have half written
    :ivar ledgers: the ledger of each dataset, with all accesses to the dataset
    :ivar inputs: datasets that some action read from outside the application, with joined facets
    :ivar outputs: datasets that some complete action wrote, with joined facets
    :ivar failed: datasets that a failed or unended action was to write, without facets
    :ivar writes: output -> the writes of the output by complete actions
    :ivar cut: output -> the reason why the columns of some write of the output are not known
    """

    def __init__(self, ledgers: Ledgers, report: SubsetReport) -> None:
        self.degradations: list[Degradation] = []
        self.ledgers = ledgers
        self.inputs: dict[DatasetName, LineageDataset] = {}
        self.outputs: dict[DatasetName, LineageDataset] = {}
        self.failed: dict[DatasetName, LineageDataset] = {}
        self.writes: dict[DatasetName, list[ColumnWrite]] = {}
        self.cut: dict[DatasetName, str] = {}
        self.statements = Statements()
        self._work = partial(ledgers.allowance.work, Stage.COLUMNS)
        self.schemas = ReportedColumns(self._work)
        self._report = report
        self._defined: dict[DatasetName, LineageDataset] = {}
        self._memory = Bound(Limit.TRANSFORMATIONS)
        self._last_columns: dict[DatasetName, _Composed] = {}

    def add(self, action: Action) -> None:
        """Add the reads and writes of one more action."""
        self.schemas.learn(action)
        self.statements.learn(action)
        if only_defines(action):
            # The facets of a defined table are kept until data is written to the table.
            for dataset in action.outputs:
                known = self._defined.get(dataset.name)
                self._defined[dataset.name] = joined(known, dataset, action.witness, is_input=False)
            return
        provenances = {d.name: self._read(action, d) for d in action.inputs}
        if action.state is not ActionState.COMPLETE:
            for dataset in action.outputs:
                bare = self.failed.get(dataset.name, LineageDataset(dataset.name))
                self.failed[dataset.name] = with_witness(bare, action.witness)
            self.degradations += describe_failed_writes(action, self._report)
            return
        # All writes are composed before any is entered: an action does not read its own writes.
        lineages = [self._composed(action, d, provenances) for d in action.outputs]
        for dataset, (write, composed) in zip(action.outputs, lineages, strict=True):
            name, ledger = dataset.name, self.ledgers.of(dataset.name)
            known = self.outputs.get(name, self._defined.get(name))
            self.outputs[name] = joined(known, dataset, action.witness, is_input=False)
            self.writes.setdefault(name, []).append(write)
            access = ledger.write_by(action, dataset, write.reported)
            sources = composition.sources_of(composed or ColumnLineage(), provenances)
            ledger.enter_write(access, composed, sources)

    def _read(self, action: Action, dataset: ActionDataset) -> composition.Provenance | None:
        """Enter an action's read in the ledger of its dataset; give the provenance of the data.

        The dataset becomes an input unless the read is internal. A read that is only assumed to be
        internal is reported, once for each dataset.

        :return: None if the application had written no data that was read
        """
        name, ledger = dataset.name, self.ledgers.of(dataset.name)
        read = ledger.read_by(action, dataset)
        provenance = ledger.provenance(read)
        was_assumed = ledger.is_assumed
        ledger.enter_read(read, provenance, for_write=bool(action.outputs))
        if provenance is None or not provenance.internal:
            known = self.inputs.get(name)
            self.inputs[name] = joined(known, dataset, action.witness, is_input=True)
        elif ledger.is_assumed and not was_assumed:
            message = (
                f"{name} was read back after this application had written it, and nothing says "
                "that it held older data; it is taken as an intermediate of the task and not as an "
                "input."
            )
            code = DegradationCode.INTERNAL_READ_ASSUMED
            self.degradations.append(Degradation(code, message, name, side=Side.READ))
        return provenance

    def _composed(
        self, action: Action, output: ActionDataset, provenances: Provenances
    ) -> tuple[ColumnWrite, ColumnLineage | None]:
        """Give the columns of an action's write twice: as the listener reported them, and composed.

        In the composed columns, columns of intermediate datasets are replaced by their sources.

        :param output: the dataset that the action wrote
        :param provenances: input of the action -> the provenance of the data that was read
        :return: the write with its reported columns, and the composed columns; the latter are None
            if the time or memory for columns was used up
        """
        ledger = self.ledgers.of(output.name)
        planned: tuple[commands.PlannedColumns, ...] = ()
        reported = ColumnLineage()

        def provenance_of(name: DatasetName) -> composition.Provenance | None:
            if name in provenances:
                return provenances[name]
            # Column lineage can name datasets that the listener forgot among the inputs.
            ledger = self.ledgers.of(name)
            return ledger.provenance(ledger.read_by(action))

        composed: ColumnLineage | None = ColumnLineage()
        try:
            self.ledgers.allowance.check(Stage.COLUMNS)
            last = self._last_columns.get(output.name)
            plans = ledger.plans(action)
            planned = self._planned(output.name, [plan for plan in plans if not plan.describes])
            describing = self._planned(output.name, [plan for plan in plans if plan.describes])
            reported = self.schemas.of_write(action, output, planned, describing)
            reported = self._kept(reported, last and last.reported)
            if last and last.is_of(reported, provenance_of):
                composed = last.composed
            else:
                made_of: dict[DatasetName, composition.Provenance | None] = {}

                def noted(name: DatasetName) -> composition.Provenance | None:
                    found = made_of[name] = provenance_of(name)
                    return found

                composed = composition.compose(reported, noted, self._work, self._memory.left)
                composed = self._kept(composed, reported, last and last.composed)
                self._last_columns[output.name] = _Composed(reported, made_of, composed)
        except UnreadableColumnsError as error:
            code = DegradationCode.COLUMN_LINEAGE_MISSING
            self.degradations.append(Degradation(code, str(error), output.name))
        except SpentError as reason:
            self.cut.setdefault(output.name, str(reason))
            composed = None
        return ColumnWrite(action, reported, planned), composed

    def _kept(self, lineage: ColumnLineage, *known: ColumnLineage | None) -> ColumnLineage:
        """Count the transformations of a write's column lineage, and return the column lineage.

        :param known: column lineage that has been counted already; if it equals ``lineage``, it is
            returned instead, because a loop writes a table with the same columns a thousand times
        :raise SpentError: if the lineage does not fit into memory, or there is no time left
        """
        for same in known:
            if lineage is same or lineage == same:
                return same
        transformations = count_all(lineage)
        if not self._memory.takes(transformations):
            raise composition.too_many()
        self._work(transformations)
        return lineage

    def _planned(
        self, name: DatasetName, plans: Sequence[WritePlan]
    ) -> tuple[commands.PlannedColumns, ...]:
        """Read the columns of a write from its plans; a nested command has several plans.

        A plan that cannot be read is left out and, unless it is for descriptions alone, reported.

        :param name: the dataset that was written
        """
        found = []
        for plan in plans:
            try:
                found.append(commands.planned_columns(plan, self._work))
            except commands.UnreadablePlanError as error:
                if plan.describes:
                    continue
                code = DegradationCode.COLUMN_INCOMPLETE
                self.degradations.append(Degradation(code, str(error), name))
        return tuple(found)
