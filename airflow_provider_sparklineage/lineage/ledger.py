"""The ledger of a dataset: the reads and writes of an application, and the evidence for them.

Two witnesses report accesses: the listener reports those of actions, the observer those of the
queries of these actions.
A read is *internal* only with evidence that only this application's own data was read. Observed
partitions decide. Where they are not known, the listener's reports of writes
(:class:`ReportedWrites`) give two kinds of evidence:

- *lifecycle*: an earlier action of the application overwrote or created the full dataset, or the
  partition locations that were read, and there is no sign that this action wrote only a part of
  them (:func:`overwrites_everything`);
- *size*: the dataset held exactly as many bytes as the application had written into it, or as the
  application's last overwrite and later appends had written. In the second case that overwrite
  counts as a full one for later reads too.

A dataset that held more bytes than the application had written held older data, even if the
lifecycle says otherwise. A dataset without any evidence stays an input; its columns are composed
all the same, so that no true source is lost.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import (
    FULL,
    UNKNOWN,
    Access,
    Grade,
    Scope,
    Timeline,
)
from airflow_provider_sparklineage.lineage.application.repairs import (
    replaces_v2_table,
    wraps_a_write,
)
from airflow_provider_sparklineage.lineage.columns.composition import Provenance
from airflow_provider_sparklineage.lineage.columns.edges import ColumnLineage, unite_into
from airflow_provider_sparklineage.lineage.observed.accesses import (
    NOTHING_OBSERVED,
    Observations,
    ObservedAccesses,
)
from airflow_provider_sparklineage.model.allowance import UNLIMITED, Allowance
from airflow_provider_sparklineage.model.datasets import DatasetName, is_database
from airflow_provider_sparklineage.model.globs import is_glob

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.columns.edges import Column, Edges, Transformations
    from airflow_provider_sparklineage.lineage.observed.accesses import WritePlan
    from airflow_provider_sparklineage.model.partitioning import Partition


# --- columns, sources and bytes that writes have put into a dataset -------------------------------


class ReportedWrite(NamedTuple):
    """The write of a complete action, and its sources.

    :param columns: the column lineage of the write, with columns of intermediate datasets replaced
        by their sources; None if the time or memory for columns was used up
    :param sources: datasets from outside the application from which the written data was made
    """

    ended: datetime
    access: Access
    columns: ColumnLineage | None
    sources: frozenset[DatasetName]

    @property
    def partitions(self) -> frozenset[Partition]:
        """The partitions that the action's queries wrote; empty where they are not all certain."""
        queries = self.access.queries
        if not all(query.exact and query.scope.partitions for query in queries):
            return frozenset()
        return frozenset().union(*(query.scope.partitions or () for query in queries))

    @property
    def locations(self) -> frozenset[str]:
        """The locations that were written; empty where they are not known."""
        return self.access.scope.locations or frozenset()

    @property
    def replaced(self) -> frozenset[str]:
        """The locations that hold no data older than this write."""
        return self.access.owned.locations or frozenset()


class Contents:
    """The data that writes have put into one dataset; writes come in the order of their ends."""

    def __init__(self, writes: Iterable[ReportedWrite] = ()) -> None:
        self._fields: dict[str, Edges] = {}
        self._united: dict[str, dict[Column, Transformations]] = {}
        """Edges united from several writes; other edges belong to one write and never change."""
        self._dataset: dict[Column, Transformations] = {}
        self._only: ColumnLineage | None = None
        """The columns of the write, if data of only one write is left."""
        self.sources: frozenset[DatasetName] = frozenset()
        self.is_cut = False
        """Whether the columns of some write are not known; then ``columns`` is empty."""
        self.is_full = False
        """Whether the dataset holds no data older than these writes."""
        self.size: int | None = None
        self.empty = True
        self.size_alone: int | None = None
        """The dataset's size in bytes, if the last write that is no append replaced older data."""
        # Locations that the writes replaced; None after a write that replaced no full locations.
        self._replaced: set[str] | None = set()
        for write in writes:
            self.add(write)

    @property
    def columns(self) -> ColumnLineage:
        """The sources of the columns; a write that is added later may change this object.

        If data of only one write is left, the result is the column lineage object of that write.
        """
        if self.is_cut:
            return ColumnLineage()
        return self._only or ColumnLineage(self._fields, self._dataset)

    def add(self, write: ReportedWrite) -> None:
        """Add one more write, in time that grows only with the length of the write's lineage."""
        access, replaced = write.access, write.replaced
        if access.owned.full or self.empty:
            self._fields, self._united = {}, {}
            self._dataset, self.sources = {}, frozenset()
            self._only = write.columns
            self.is_cut = False
            self.size = self.size_alone = access.size
            self._replaced = set(replaced) if replaced else None
        else:
            self._only = None
            # For other writes it is not known how much of the older data is left.
            adds = access.appends or self._is_remote(replaced)
            self.size = _sum_if_known(self.size, access.size) if adds else None
            self.size_alone = (
                _sum_if_known(self.size_alone, access.size) if access.appends else access.size
            )
            if not replaced:
                self._replaced = None
            elif self._replaced is not None:
                self._replaced |= replaced
        self.is_full = self.is_full or access.owned.full
        self.empty = False
        self.sources |= write.sources
        if write.columns is None:
            self.is_cut = True
            return
        for name, edges in write.columns.fields.items():
            known = self._fields.setdefault(name, edges)
            if known is not edges:
                own = self._united.get(name)
                if own is None:
                    own = self._fields[name] = self._united[name] = dict(known)
                unite_into(own, edges)
        unite_into(self._dataset, write.columns.dataset)

    def _is_remote(self, replaced: frozenset[str]) -> bool:
        """Whether a write replaced only locations that no earlier write wrote."""
        known = self._replaced
        return bool(replaced) and known is not None and known.isdisjoint(replaced)


def _sum_if_known(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


# --- the writes, and reads of them ----------------------------------------------------------------


class ReportedWrites:
    """The writes of one dataset, indexed by the locations that they wrote.

    A loop over partitions writes and reads another partition each time. So a read must not visit
    all writes before it, or the loop would take quadratic time.

    :param observed: the observed accesses to the dataset
    """

    def __init__(self, observed: ObservedAccesses = NOTHING_OBSERVED) -> None:
        self._observed = observed
        self._writes: list[ReportedWrite] = []
        """The writes in the order of their ends; their numbers are the order of :meth:`add`."""
        self._order: list[int] = []
        """For each number, the place of the write in ``_writes``."""
        self._left: list[ReportedWrite] = []
        """Writes whose data may still be in the dataset, at least in part."""
        self._now: Contents | None = None  # made when it is first used
        self._written: set[str | Partition] = set()
        """The locations and partitions that were written."""
        self._at: dict[str, list[int]] = {}
        """Location -> the numbers of the writes to the location."""
        self._below: dict[str, list[int]] = {}
        """Folder -> the numbers of the writes to the folder, or to a location below the folder."""
        self._anywhere: list[int] = []
        """Numbers of the writes to a glob, or to a location that is not known."""
        self._replaced: dict[str, datetime] = {}
        """Location -> the first time at which a write replaced all older data in the location."""

    def add(
        self,
        access: Access,
        columns: ColumnLineage | None = ColumnLineage(),  # noqa: B008  (frozen)
        sources: frozenset[DatasetName] = frozenset(),
    ) -> None:
        """Add a write, unless it never ended: the data of such a write was not read back.

        :param columns: the column lineage of the write, with columns of intermediate datasets
            replaced by their sources; None if the time or memory for columns was used up
        :param sources: datasets from outside the application from which the written data was made
        """
        if access.ended is None:
            return
        write = ReportedWrite(access.ended, access, columns, sources)
        locations, replaced = write.locations, write.replaced
        ours = frozenset().union(*(query.replaced | query.removed for query in access.queries))
        number = len(self._writes)
        at = bisect_right(self._writes, write.ended, key=lambda w: w.ended)
        self._writes.insert(at, write)
        if at < number:
            self._order = [place + (place >= at) for place in self._order]
            self._left = self._writes.copy()
            self._now = None
        else:
            self._left.append(write)
            if not self._written.isdisjoint(replaced | ours):
                self._now = None
            elif self._now is not None:
                self._now.add(write)
        self._order.append(at)
        self._written |= locations | write.partitions
        if access.scope.locations is None or any(map(is_glob, locations)):
            self._anywhere.append(number)
        else:
            for location in locations:
                self._at.setdefault(location, []).append(number)
                for folder in (location, *_folders_above(location)):
                    self._below.setdefault(folder, []).append(number)
        for location in replaced:
            since = self._replaced.get(location, write.ended)
            self._replaced[location] = min(since, write.ended)

    def provenance(self, read: Access) -> Provenance | None:
        """Give the origin of the data that the application had written by the start of a read.

        Only writes that had ended by then count. A full overwrite replaces the data of earlier
        writes, any other write adds to that data. Data in partition locations that were not read is
        left out.

        The next call for this dataset may change the result: use it before that.

        :return: None if the application had written no data that was read
        """
        if not self._writes:
            return None
        locations = read.scope.locations
        if self._writes[-1].ended <= read.started and (locations is None or not self._at):
            contents = self._settled(locations, read.size)
        else:
            before = [w for w in self._among(locations) if w.ended <= read.started]
            contents = Contents(self._without_replaced(before))
        if contents.empty:
            return None
        internal = contents.is_full or self._replaced_all(locations, read.started)
        grade = Grade.LIFECYCLE
        if read.size and contents.size and locations is None:
            # If as many bytes were read as had been written, there was no older data; if more were
            # read, there was.
            internal = read.size == contents.size or (internal and read.size < contents.size)
            grade = Grade.SIZE
        return Provenance(contents.columns, internal, grade, contents.sources)

    def at_the_end(self) -> Contents:
        """Give the contents after all writes of the application."""
        return self._settled(None, None)

    def _among(self, locations: frozenset[str] | None) -> list[ReportedWrite]:
        """Give the writes that may have written to the locations, in the order of their ends."""
        if locations is None or any(map(is_glob, locations)):
            return self._writes
        numbers = set(self._anywhere)
        for location in locations:
            numbers.update(self._below.get(location, ()))
            for folder in _folders_above(location):
                numbers.update(self._at.get(folder, ()))
        return [self._writes[place] for place in sorted(map(self._order.__getitem__, numbers))]

    def _replaced_all(self, locations: frozenset[str] | None, started: datetime) -> bool:
        """Whether each location that was read had been replaced before the read started."""
        if not locations:
            return False
        since = [self._replaced.get(location) for location in locations]
        return all(s is not None and s <= started for s in since)

    def _settled(self, locations: frozenset[str] | None, size: int | None) -> Contents:
        """Give the contents after all writes; the last overwrite counts as full if sizes prove it.

        If the dataset held exactly as many bytes as its last overwrite and the appends after that
        overwrite wrote, the overwrite counts as a full one from now on.

        :param locations: the locations that were read; None for the full dataset
        :param size: bytes that the dataset held when it was read; None if not known
        """
        if self._now is None:
            self._left = self._without_replaced(self._left)
            self._now = Contents(self._left)
        contents = self._now
        is_known = contents.is_full and contents.size == contents.size_alone
        if is_known or not size or locations or size != contents.size_alone:
            return contents
        writes = self._writes
        last = next((n for n in reversed(range(len(writes))) if not writes[n].access.appends), 0)
        access = writes[last].access
        full = access._replace(owned=access.owned._replace(full=True), grade=Grade.SIZE)
        writes[last] = writes[last]._replace(access=full)
        self._left = self._without_replaced(writes[last:])
        self._now = Contents(self._left)
        return self._now

    def _without_replaced(self, writes: Sequence[ReportedWrite]) -> list[ReportedWrite]:
        """Leave out each write whose locations or partitions later ones of these replaced."""
        left: list[ReportedWrite] = []
        replaced: set[str] = set()
        for write in reversed(writes):
            is_gone = bool(write.locations) and write.locations <= replaced
            if not is_gone and write is not writes[-1]:
                until = writes[-1].ended
                is_gone = self._observed.are_replaced(write.partitions, write.ended, until)
            if not is_gone:
                left.append(write)
            replaced |= write.replaced
        return left[::-1]


def _folders_above(location: str) -> Iterator[str]:
    """Name the folders that contain a location, the deepest first."""
    end = location.rfind("/")
    while end > 0:
        yield location[:end]
        end = location.rfind("/", 0, end)


# --- lifecycle: whether a write replaced everything -----------------------------------------------


_PARTITION_CLAUSE = re.compile(r"\bPARTITION\s*\(", re.IGNORECASE)
_OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
_SAVE = "execute_save_into_data_source_command"
# Writes of Spark's file sources, alone and under adaptive execution. For others (Delta, Iceberg,
# Hive) the listener reports OVERWRITE also for overwrites of a part, and CREATE for appends.
_FILE_WRITES = ("execute_insert_into_hadoop_fs_relation_command", "adaptive_spark_plan")


def overwrites_everything(action: Action, output: ActionDataset, reported: ColumnLineage) -> bool:
    """Whether a write replaced all data of the dataset, or of the locations if it wrote locations.

    The listener reports OVERWRITE for partition overwrites too, so an OVERWRITE counts only without
    any sign of a partition overwrite:

    - no PARTITION clause, and no dynamic overwrite mode when the write began;
    - no sort of all written rows: Spark adds such a sort to a write by ``partitionBy``;
    - no column without sources: Spark leaves the sort out where the partition columns are
      literals, and no event has the writer's own ``partitionOverwriteMode`` option.

    :param reported: the write's column lineage as the listener reported it
    """
    if replaces_v2_table(action) or output.is_model:
        return True
    if output.lifecycle != "OVERWRITE":
        return False
    if is_database(output.name) and _SAVE in action.job_name:
        return True  # Spark drops or truncates the table
    return (
        (any(node in action.job_name for node in _FILE_WRITES) or wraps_a_write(action))
        and not _PARTITION_CLAUSE.search(action.sql)
        and not any(v.lower() == "dynamic" for v in action.properties.get(_OVERWRITE_MODE, ()))
        and not _writes_unsorted(action)
        and "SORT" not in reported.subtypes
        and bool(output.column_names)
        and reported.fields.keys() >= set(output.column_names)
    )


def _writes_unsorted(action: Action) -> bool:
    """Whether the session is set up to write partitions without sorting (Spark's V1Writes)."""
    writers = action.properties.get("spark.sql.maxConcurrentOutputFileWriters", ())
    planned = action.properties.get("spark.sql.optimizer.plannedWrite.enabled", ())
    return any(v not in ("", "0") for v in writers) or any(v.lower() == "false" for v in planned)


# --- the ledger of a dataset ----------------------------------------------------------------------


class Ledger:
    """The accesses of an application to one dataset.

    Actions are entered in the order of their start; all observed accesses are known from the start.

    :param seen: the observations of the application
    :ivar observed: the accesses to the dataset that the observer saw
    :ivar tables: table identifiers, with their catalogs, under which the observer saw the dataset
    :ivar is_read_back: whether an action that also writes read the dataset internally; an action
        that only counts the written rows does not make this true
    :ivar is_assumed: whether some read counts as internal only because of the listener's reports
    """

    def __init__(self, dataset: DatasetName, seen: Observations) -> None:
        self._dataset = dataset
        self.tables = seen.tables.get(dataset, frozenset())
        reads, writes = seen.reads.get(dataset, ()), seen.writes.get(dataset, ())
        self.observed = ObservedAccesses(reads, writes) if reads or writes else NOTHING_OBSERVED
        self._plans = Timeline((*plan.span, plan) for plan in seen.plans.get(dataset, ()))
        self._taken: set[int] = set()
        """The ids of the plans whose queries ran during an action."""
        self._reported: ReportedWrites | None = None  # most datasets are only read
        self._grades: dict[Side, Grade] = {}
        self._locations: dict[Side, set[str] | None] = {}
        self.is_read_back = False
        self.is_assumed = False

    # --- grading: the access of one action ---

    def read_by(self, action: Action, dataset: ActionDataset | None = None) -> Access:
        """Give an action's read of this dataset.

        :param dataset: the listener's report of the dataset; None where the listener reports only
            columns of the dataset
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
        """Give an action's write of this dataset.

        If the observer saw the write, the observed accesses decide which data the write replaced;
        else the listener's reports do (:func:`overwrites_everything`).

        :param reported: the write's column lineage as the listener reported it
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
        """Give the origin of the data that the application had written before a read.

        The next call may change the result: use it before that.

        :return: None if the application had written no data that was read
        """
        reported = self._reported.provenance(read) if self._reported else None
        if reported is None:
            return None
        internal = self.observed.is_internal(read)
        if internal is None:
            return reported
        return reported._replace(internal=internal, grade=Grade.OBSERVED)

    def plans(self, action: Action) -> tuple[WritePlan, ...]:
        """Give the plans of an action's write, without those of the writes right before and after.

        The start and the end of an action can both be reported after its query has ended. In this
        case the action gets the plan that is nearest in time.
        """
        within, near = self._plans_around(action)
        left = [plan for plan in near if id(plan) not in self._taken]
        if not within and left:
            return (min(left, key=lambda plan: plan.gap(action.started, action.ended)),)
        return tuple(within)

    def take_plans(self, action: Action) -> None:
        """Note the plans whose queries ran during an action, so that no other action gets them.

        Without this, a write whose plan was not recorded would get the plan of the write before it.
        """
        self._taken.update(map(id, self._plans_around(action)[0]))

    def _plans_around(self, action: Action) -> tuple[list[WritePlan], list[WritePlan]]:
        """Give the plans whose queries ran during an action, and those that ran shortly around it.

        The plans that are known to be of another action are left out.
        """
        during = self._plans.during(action.started, action.ended)
        found = [plan for plan in during if plan.run_id in (None, action.run_id)]
        return [plan for plan in found if plan.is_within(action.started, action.ended)], found

    # --- entering ---

    def enter_read(self, read: Access, provenance: Provenance | None, *, for_write: bool) -> None:
        """Note an action's read of this dataset.

        :param provenance: the origin of the data that was read; None if the application had
            written none of it
        :param for_write: whether the action writes something
        """
        # A read by RDD code, for example, is not observed; then not all reads count as observed.
        self._note_grade(read)
        if provenance is None or not provenance.internal:
            self._unite_locations(read)
            return
        self.is_read_back = self.is_read_back or for_write
        self.is_assumed = self.is_assumed or provenance.grade is not Grade.OBSERVED

    def enter_write(
        self, write: Access, columns: ColumnLineage | None, sources: frozenset[DatasetName]
    ) -> None:
        """Note a complete action's write of this dataset.

        :param columns: the column lineage of the write, with columns of intermediate datasets
            replaced by their sources; None if the time or memory for columns was used up
        :param sources: datasets from outside the application from which the written data was made
        """
        if write.size:  # CREATE TABLE, for example, writes no data
            self._note_grade(write)
        self._unite_locations(write)
        if self._reported is None:
            self._reported = ReportedWrites(self.observed)
        self._reported.add(write, columns, sources)

    def _note_grade(self, access: Access) -> None:
        """Remember the lowest :class:`.Grade` of all reads, or of all writes, so far."""
        known = self._grades.get(access.side, Grade.OBSERVED)
        self._grades[access.side] = min(known, access.grade)

    def _unite_locations(self, access: Access) -> None:
        """Add the locations of a read to those of all reads, or of a write to those of all writes.

        After an access without locations, they stand for the full dataset. The set is changed in
        place, because a loop over partitions adds one location at a time.
        """
        known = self._locations.setdefault(access.side, set())
        if access.scope.locations is None:
            self._locations[access.side] = None
        elif known is not None:
            known |= access.scope.locations

    # --- the sum of all accesses ---

    def is_observed(self, side: Side) -> bool:
        """Whether there are reads (or writes), and all of them were observed."""
        lowest = self._grades.get(side, Grade.OBSERVED)
        return lowest is Grade.OBSERVED and self.observed.has(side)

    def locations(self, side: Side) -> frozenset[str] | None:
        """Give all locations that were read from outside, or written; None for the full dataset.

        A location was read from outside unless only data of the application itself was read there.
        """
        found = self._locations.get(side, set())
        return None if found is None else frozenset(found)

    def contents(self) -> Contents:
        """Give the data of the application that was in the dataset when the application ended."""
        return self._reported.at_the_end() if self._reported else Contents()


class Ledgers:
    """The ledgers of all datasets of an application.

    :param observations: the observed accesses and plans; None where there was no observer
    :param allowance: the time and memory for all work with the ledgers
    """

    def __init__(
        self, observations: Observations | None = None, allowance: Allowance = UNLIMITED
    ) -> None:
        self.allowance = allowance
        self.has_observer = observations is not None
        self._observations = observations or Observations()
        self._of: dict[DatasetName, Ledger] = {}

    def of(self, dataset: DatasetName) -> Ledger:
        """Give the ledger of a dataset."""
        if (ledger := self._of.get(dataset)) is None:
            ledger = self._of[dataset] = Ledger(dataset, self._observations)
        return ledger
