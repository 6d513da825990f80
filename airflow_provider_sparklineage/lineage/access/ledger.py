"""One ledger for each dataset: what an application read of it and put into it, by which evidence.

Two witnesses report accesses: the listener those of actions, the observer those of their queries.
A read is *internal* only with evidence that nothing but this application's own data was read. The
partitions that were observed decide; where they are not known, what the listener reports
(:mod:`.reported`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.access.observed import NOTHING_OBSERVED, ObservedAccesses
from airflow_provider_sparklineage.lineage.access.reported import (
    Contents,
    ReportedWrites,
    overwrites_everything,
)
from airflow_provider_sparklineage.lineage.application.accesses import (
    FULL,
    UNKNOWN,
    Access,
    Grade,
    Scope,
    Timeline,
)
from airflow_provider_sparklineage.lineage.application.observed_binding import Observations
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget

if TYPE_CHECKING:
    from airflow_provider_sparklineage.lineage.access.observed import Subset
    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.application.datasets import ActionDataset
    from airflow_provider_sparklineage.lineage.application.observed_binding import (
        WritePlan,
        WritePlanThen,
    )
    from airflow_provider_sparklineage.lineage.columns.composition import Provenance
    from airflow_provider_sparklineage.lineage.columns.edges import ColumnLineage
    from airflow_provider_sparklineage.model.datasets import DatasetName

_NO_PLANS: Timeline[WritePlanThen] = Timeline(())


class Ledger:
    """The accesses of an application to one dataset.

    Actions are entered in the order of their start; all observed accesses are known before.

    :ivar observed: the accesses that the observer saw
    :ivar tables: identifiers by which it saw the dataset read and written, with their catalogs
    :ivar is_read_back: whether some read for a write was internal; a count of what was written is a
        look at it
    :ivar is_assumed: whether some read was internal by what the listener reports alone
    """

    def __init__(
        self,
        dataset: DatasetName,
        observed: ObservedAccesses = NOTHING_OBSERVED,
        tables: frozenset[str] = frozenset(),
        plans: Timeline[WritePlanThen] = _NO_PLANS,
    ) -> None:
        self._dataset = dataset
        self.tables = tables
        self.observed = observed
        self._plans = plans
        self._reported: ReportedWrites | None = None  # of most datasets there are only reads
        self._grades: dict[Side, Grade] = {}
        self._locations: dict[Side, set[str] | None] = {}
        self.is_read_back = False
        self.is_assumed = False

    # --- grading: the access of one action ---

    def read_by(self, action: Action, dataset: ActionDataset | None = None) -> Access:
        """Give the read of an action.

        :param dataset: what the listener reports of it; None where it reports only its columns
        """
        queries = self.observed.during(Side.READ, action.started, action.ended)
        return Access(
            self._dataset,
            Side.READ,
            action.started,
            action.ended,
            Scope(locations=dataset.locations) if dataset else UNKNOWN,
            grade=Grade.OBSERVED if queries else Grade.LIFECYCLE,
            size=dataset.size_found if dataset else None,
            queries=queries,
        )

    def write_by(self, action: Action, dataset: ActionDataset, reported: ColumnLineage) -> Access:
        """Give the write of an action; what its commands did decides what it replaced.

        :param reported: its column lineage as the listener reported it
        """
        queries = self.observed.during(Side.WRITE, action.started, action.ended)
        owned = UNKNOWN
        if queries:
            owned = FULL if all(query.owned.full for query in queries) else UNKNOWN
        elif overwrites_everything(action, dataset, reported):
            owned = Scope(locations=dataset.locations) if dataset.locations else FULL
        return Access(
            self._dataset,
            Side.WRITE,
            action.started,
            action.ended,
            Scope(locations=dataset.locations),
            owned,
            Grade.OBSERVED if queries else Grade.LIFECYCLE,
            appends=not dataset.lifecycle,
            size=dataset.size_written,
            queries=queries,
        )

    def provenance(self, read: Access) -> Provenance | None:
        """Give what the application had put there before a read, and whether it read only that.

        What is given holds until the next call: it is a view.

        :return: None if the application had put nothing there that was read
        """
        reported = self._reported.provenance(read) if self._reported else None
        if reported is None:
            return None
        internal = self.observed.is_internal(read)
        if internal is None:
            return reported
        return reported._replace(internal=internal, grade=Grade.OBSERVED)

    def plans(self, action: Action) -> tuple[WritePlan, ...]:
        """Give the plans of what an action wrote: not those of the write before it, or after it.

        The events of an action can both come when its query has ended; then it is the nearest one.
        """
        found = self._plans.during(action.started, action.ended)
        within = [then for then in found if then.is_within(action.started, action.ended)]
        if not within and found:
            within = [min(found, key=lambda then: then.gap(action.started, action.ended))]
        return tuple(then.plan for then in within)

    # --- entering ---

    def enter_read(self, read: Access, provenance: Provenance | None, *, for_write: bool) -> None:
        """Note a read of an action.

        :param for_write: whether the action writes something
        """
        # RDD code, for example: what else was observed of the dataset is then not all of it.
        self._note_grade(read)
        if provenance is None or not provenance.internal:
            self._unite_locations(read)
            return
        self.is_read_back = self.is_read_back or for_write
        self.is_assumed = self.is_assumed or provenance.grade is not Grade.OBSERVED

    def enter_write(
        self, write: Access, columns: ColumnLineage | None, sources: frozenset[DatasetName]
    ) -> None:
        """Note a write of a complete action.

        :param columns: its column lineage, with intermediates resolved; None where it was cut
        :param sources: datasets from outside that it was made of
        """
        if write.size:  # others, as CREATE TABLE, write no data
            self._note_grade(write)
        self._unite_locations(write)
        if self._reported is None:
            self._reported = ReportedWrites()
        self._reported.add(write, columns, sources)

    def _note_grade(self, access: Access) -> None:
        """Keep the lowest grade of a side."""
        known = self._grades.get(access.side, Grade.OBSERVED)
        self._grades[access.side] = min(known, access.grade)

    def _unite_locations(self, access: Access) -> None:
        """Add locations, one at a time in a loop over partitions, so nothing is copied.

        One access without them makes the dataset full.
        """
        known = self._locations.setdefault(access.side, set())
        if access.scope.locations is None:
            self._locations[access.side] = None
        elif known is not None:
            known |= access.scope.locations

    # --- the sum of all accesses ---

    def is_observed(self, side: Side) -> bool:
        """Whether all accesses of a side were observed, and there are some."""
        lowest = self._grades.get(side, Grade.OBSERVED)
        return lowest is Grade.OBSERVED and self.observed.has(side)

    def locations(self, side: Side) -> frozenset[str] | None:
        """Give all locations that were read from outside, or written; None is the full dataset."""
        found = self._locations.get(side, set())
        return None if found is None else frozenset(found)

    def subset(self, side: Side, budget: Budget = UNLIMITED) -> Subset | None:
        """Give the partitions of one side; as :meth:`.ObservedAccesses.subset`."""
        return self.observed.subset(side, budget)

    def contents(self) -> Contents:
        """Give what the application had put into the dataset when it ended."""
        return self._reported.at_the_end() if self._reported else Contents()


class Ledgers:
    """The ledgers of all datasets of an application.

    :param observations: None where there was no observer
    """

    def __init__(self, observations: Observations | None = None) -> None:
        self.has_observer = observations is not None
        self._observations = observations or Observations()
        self._of: dict[DatasetName, Ledger] = {}

    def of(self, dataset: DatasetName) -> Ledger:
        """Give the ledger of a dataset."""
        ledger = self._of.get(dataset)
        if ledger is None:
            seen = self._observations
            plans = seen.plans.get(dataset)
            reads, writes = seen.reads.get(dataset, ()), seen.writes.get(dataset, ())
            ledger = self._of[dataset] = Ledger(
                dataset,
                ObservedAccesses(reads, writes) if reads or writes else NOTHING_OBSERVED,
                seen.tables.get(dataset, frozenset()),
                Timeline((p.started, p.ended, p) for p in plans) if plans else _NO_PLANS,
            )
        return ledger
