"""Actions that the observer saw and the listener did not report: reads, and hidden writes.

The listener reports few of the queries that end in the driver (a count, a collect), does not report
datasets that only a subquery reads, and hides some writes. The observer has a record of each query.
Reads and writes of a query that are *covered* by an action of the listener belong to that action;
the others become an action of their own, which is merged like any other. Policy, case by case:

- A read is covered if an action that overlaps the query in time has the dataset among its inputs; a
  write is covered if such an action has the dataset among its outputs. RDD jobs cover nothing: they
  are no queries.
- A command may have no write in its own record: commands of Delta write in queries below them. Such
  a command has written its target if a commit of the target falls into the time of the command, or
  if no commits of the target are known.
- The inputs of a hidden write are the datasets that its query and the leaves of its plan read.
  Writes of the same dataset during a hidden write are parts of that write.
- Equal reads without a write between them are one action: 100,000 counts in a loop become one.
- An action that the listener reports only by its end gets the start of the query that ends at the
  same time.
- The reads of a failed query count, and its outputs are those of a failed action.

A dataset has the listener's facets if the listener names it anywhere in the application.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accesses import (
    SLACK,
    ActionDataset,
    Timeline,
    overlap,
)
from airflow_provider_sparklineage.lineage.application.accumulation import (
    MAX_DATASETS,
    Action,
    ActionState,
)
from airflow_provider_sparklineage.lineage.observed.binding import DatasetIndex, at_roots
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Frozen, Witness
from airflow_provider_sparklineage.spark.capture.observations import SchemaRecord, timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accesses import Span
    from airflow_provider_sparklineage.lineage.application.accumulation import SparkApplication
    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.spark.capture.observations import (
        CommandRecord,
        ObservationRecord,
        ReadRecord,
        WriteRecord,
    )

    _Spanned = tuple[datetime, datetime, Action]
    Locations = frozenset[str] | None
    """The folders of a dataset's partitions; None stands for the full dataset."""


# --- queries, by the names of datasets ------------------------------------------------------------
#
# A folder that no action of the listener has is a dataset of its own here, under the name that the
# listener would give it.


class Query(Frozen, frozen=True):
    """A query, and the datasets in it.

    :param reads: dataset -> the folders of the dataset's partitions at which the read starts
    :param writes: dataset -> the mode of the write
    :param target: the dataset that the query's command writes; if it is not among ``writes``,
        queries below this query write it
    :param relations: the datasets that the leaves of the command's plan read
    """

    record: ObservationRecord
    started: datetime
    ended: datetime
    reads: Mapping[DatasetName, Locations]
    writes: Mapping[DatasetName, str]
    target: DatasetName | None = None
    relations: tuple[DatasetName, ...] = ()

    @property
    def span(self) -> tuple[datetime, datetime]:
        """The start and the end of the query."""
        return self.started, self.ended

    @property
    def state(self) -> ActionState:
        """The state of an action of this query: FAILED or COMPLETE."""
        return ActionState.FAILED if self.record.failed else ActionState.COMPLETE


class Commit(NamedTuple):
    """A commit in the log of a table; the log does not name the query of the commit."""

    at: datetime
    mode: str
    has_data: bool
    """Whether rows were added or removed; creating an empty table is a commit without data."""


class ObservedQueries:
    """All observed queries of an application.

    :param index: finds the datasets that the listener names; observed datasets are added to it
    :ivar schemas: the observed schemas of the datasets that were read
    :ivar commits: dataset -> the commits that are not in the record of a query
    :raise SpentError: if there is no time left
    """

    def __init__(
        self,
        records: Sequence[ObservationRecord],
        index: DatasetIndex,
        locator: Locator,
        budget: Budget,
    ) -> None:
        self._index = index
        self._locator = locator
        self._places: dict[tuple[str, str | None], tuple[DatasetName | None, Locations]] = {}
        self.schemas: dict[DatasetName, SchemaRecord] = {}
        self.commits: dict[DatasetName, list[Commit]] = defaultdict(list)
        self._name_folders(records, budget)
        self.queries: list[Query] = []
        for record in records:
            budget.check()
            if record.kind == "query":
                self.queries.append(self._query(record))
            elif record.kind == "commits":
                self._add_commits(record.writes)

    def _name_folders(self, records: Iterable[ObservationRecord], budget: Budget) -> None:
        """Name all folders, short paths first, so that a single file finds the folder around it."""
        places = {
            (path, read.table)
            for record in records
            for read in record.reads
            for path in self._paths(read)
        }
        for path, table in sorted(places, key=lambda place: (len(place[0]), place[0])):
            budget.work()
            self._name(path, table)

    def _place(self, path: str, table: str | None) -> tuple[DatasetName | None, Locations]:
        """Give the dataset of a path or table, and the path's folder if that is a partition."""
        key = (path, table)
        if key not in self._places:
            name, location = self._index.name(path, table), self._locator.locate(path)
            here = frozenset({location.folder.name}) if location and location.below else None
            self._places[key] = name, here
        return self._places[key]

    def _name(self, path: str, table: str | None) -> DatasetName | None:
        return self._place(path, table)[0]

    def _query(self, record: ObservationRecord) -> Query:
        command, target = record.command, None
        relations: tuple[DatasetName, ...] = ()
        if command is not None:
            target = self._name(command.target.path, command.target.table)
            found = (self._index.find_relation(r.path, r.table) for r in command.relations)
            relations = tuple(dict.fromkeys(name for name in found if name is not None))
        return Query(
            record,
            timestamp(record.started),
            timestamp(record.ended),
            self._reads(record),
            {name: write.mode for write in record.writes for name in self._written(write)},
            target,
            relations,
        )

    def _reads(self, record: ObservationRecord) -> dict[DatasetName, Locations]:
        found: dict[DatasetName, set[str] | None] = {}
        for read in record.reads:
            for path in self._paths(read):
                name, here = self._place(path, read.table)
                if name is None:
                    continue
                if read.schema is not None:
                    self.schemas.setdefault(name, read.schema)
                known = found.setdefault(name, set())
                if here is None:
                    found[name] = None
                elif known is not None:
                    known |= here
        return {name: known if known is None else frozenset(known) for name, known in found.items()}

    def _paths(self, read: ReadRecord) -> Iterable[str]:
        if read.inference:
            return ()
        if read.layouts is None:
            return read.roots or ("",)
        return dict.fromkeys(layout.base for layout in at_roots(read, self._locator))

    def _written(self, write: WriteRecord) -> Iterator[DatasetName]:
        bases = dict.fromkeys(layout.base for layout in write.layouts) or (write.path,)
        for base in bases:
            name = self._name(base, write.table)
            if name is not None:
                yield name

    def _add_commits(self, writes: Iterable[WriteRecord]) -> None:
        for write in writes:
            has_data = bool(write.layouts or write.removed or write.how == "unknown")
            commit = Commit(timestamp(write.time or 0), write.mode, has_data)
            for name in self._written(write):
                self.commits[name].append(commit)


# --- actions --------------------------------------------------------------------------------------


Facets = Mapping[str, msgspec.Raw]
FacetsOf = Callable[[DatasetName, SchemaRecord | None, str], Facets]
"""Makes a dataset's facets from its name, its columns, and its lifecycle change ("" if none)."""


def with_observed_actions(
    application: SparkApplication,
    records: Sequence[ObservationRecord],
    locator: Locator,
    facets_of: FacetsOf,
    budget: Budget = UNLIMITED,
) -> SparkApplication:
    """Add the actions that only the observer saw; return the same application if there are none.

    :raise SpentError: if there is no time left
    """
    seen = ObservedQueries(records, DatasetIndex(identities(application), locator), locator, budget)
    application = _with_begins(application, seen.queries)
    making = _Making(application, seen, facets_of, budget)
    making.add_writes()
    making.add_reads()
    if not making.actions and not making.left_out:
        return application
    actions = sorted((*application.actions, *making.actions), key=lambda a: (a.started, a.run_id))
    left_out = dict(application.left_out)
    if making.left_out:
        left_out["observed action(s)"] = making.left_out
    return replace(application, actions=tuple(actions), left_out=left_out)


def identities(application: SparkApplication) -> dict[DatasetName, set[DatasetName]]:
    """Name the datasets of an application, each with its symlinks."""
    found: dict[DatasetName, set[DatasetName]] = defaultdict(set)
    for action in application.actions:
        for dataset in (*action.inputs, *action.outputs):
            found[dataset.name] |= dataset.symlinks
    return found


def _with_begins(application: SparkApplication, queries: Iterable[Query]) -> SparkApplication:
    """Set the start of each action that is reported only by its end to the start of its query."""
    ends = Timeline((query.ended, query.ended, query) for query in queries)

    def begin(action: Action) -> datetime:
        if action.started != action.ended:
            return action.started
        inputs = {dataset.name for dataset in action.inputs}
        outputs = {dataset.name for dataset in action.outputs}
        return min(
            (
                query.started
                for query in ends.during(action.ended, action.ended)
                if query.target in outputs
                or outputs & query.writes.keys()
                or (not outputs and inputs & query.reads.keys())
            ),
            default=action.started,
        )

    begins = [min(begin(action), action.started) for action in application.actions]
    if all(b == a.started for b, a in zip(begins, application.actions, strict=True)):
        return application
    found = [replace(a, started=b) for a, b in zip(application.actions, begins, strict=True)]
    found.sort(key=lambda action: (action.started, action.run_id))
    return replace(application, actions=tuple(found))


class _Reads(NamedTuple):
    """The properties that queries must have in common to become one action of reads.

    :param names: datasets that were read
    :param writes_before: for each dataset, the number of its writes that had ended before the query
    """

    names: tuple[DatasetName, ...]
    state: ActionState
    function: str
    writes_before: tuple[int, ...]


class _Making:
    """Makes actions from uncovered writes and reads; writes come first, as they cover reads too."""

    def __init__(
        self,
        application: SparkApplication,
        seen: ObservedQueries,
        facets_of: FacetsOf,
        budget: Budget,
    ) -> None:
        self._application = application
        self._budget = budget
        self._seen = seen
        self._datasets = _Datasets(application.actions, seen.schemas, facets_of)
        self._room = MAX_DATASETS - sum(len(a.inputs) + len(a.outputs) for a in application.actions)
        self._numbers = count()
        self.actions: list[Action] = []
        self.left_out = 0

    def _add(
        self,
        query: Query | None,
        span: Span,
        state: ActionState,
        inputs: tuple[ActionDataset, ...] = (),
        outputs: tuple[ActionDataset, ...] = (),
    ) -> None:
        self._room -= len(inputs) + len(outputs)
        if self._room < 0:
            self.left_out += 1
            return
        function = query.record.function if query else ""
        self.actions.append(
            Action(
                run_id=f"observed-{next(self._numbers):06}",
                job_name=f"{self._application.job_name}.{function or 'query'}",
                job_type="SQL_JOB",
                started=span[0],
                ended=span[1],
                state=state,
                inputs=inputs,
                outputs=outputs,
                witness=Witness.OBSERVER,
            )
        )

    # --- hidden writes ---

    def add_writes(self) -> None:
        """Add actions for the writes that no action of the listener covers."""
        reported = _Spans(self._application.actions)
        writes = [*_writes_of_queries(self._seen), *_commits(self._seen)]
        for write in writes:
            for name in write.modes:
                reported.claim(name, write.span)
        hidden = []
        for write in writes:
            self._budget.work()
            modes = {
                name: mode
                for name, mode in write.modes.items()
                if not reported.have_write(name, write.span)
            }
            if modes:
                hidden.append(write._replace(modes=modes))
        for write in _outermost(hidden):
            self._add_write(write)

    def _add_write(self, write: _Write) -> None:
        query = write.query
        if query is None:
            self._add(
                None, write.span, ActionState.COMPLETE, outputs=self._datasets.written(write.modes)
            )
            return
        inputs = dict(write.reads)
        if query.state is ActionState.COMPLETE:
            inputs |= dict.fromkeys(name for name in query.relations if name not in inputs)
        self._add(
            query,
            write.span,
            query.state,
            self._datasets.read(inputs),
            self._datasets.written(write.modes, query.record.command),
        )

    # --- reads ---

    def add_reads(self) -> None:
        """Add actions for the uncovered reads; equal reads between two writes are one action."""
        known = _Spans((*self._application.actions, *self.actions))
        groups: dict[_Reads, list[Query]] = {}
        for query in self._seen.queries:
            self._budget.work()
            names = [n for n in query.reads if not known.have_read(n, query.span)]
            if not names:
                continue
            names.sort()
            # A failure that the listener reported is not reported again for the uncovered reads.
            failed = query.record.failed and not known.any(query.span)
            reads = _Reads(
                tuple(names),
                ActionState.FAILED if failed else ActionState.COMPLETE,
                query.record.function,
                tuple(known.writes_before(name, query.started) for name in names),
            )
            groups.setdefault(reads, []).append(query)
        for reads, queries in groups.items():
            locations = {name: _united(q.reads[name] for q in queries) for name in reads.names}
            span = min(q.started for q in queries), max(q.ended for q in queries)
            self._add(queries[0], span, reads.state, self._datasets.read(locations))


def _united(each: Iterable[Locations]) -> Locations:
    """Unite the locations of many reads; None, the full dataset, if one of them is None."""
    found: set[str] = set()
    for locations in each:
        if locations is None:
            return None
        found |= locations
    return frozenset(found)


class _Write(NamedTuple):
    """A write that was observed.

    :param query: None for a commit whose query is not known
    :param modes: dataset -> the mode in which it was written
    :param reads: dataset that was read for the write -> its locations
    """

    query: Query | None
    span: Span
    modes: Mapping[DatasetName, str]
    reads: Mapping[DatasetName, Locations] = {}


def _writes_of_queries(seen: ObservedQueries) -> Iterator[_Write]:
    commits = {
        name: Timeline((c.at, c.at, c) for c in found) for name, found in seen.commits.items()
    }
    for query in seen.queries:
        modes, target = query.writes, query.target
        if target is not None and target not in modes:
            found = commits[target].during(*query.span) if target in commits else ()
            if found or target not in commits:
                modes = {**modes, target: found[-1].mode if found else ""}
        if modes:
            yield _Write(query, query.span, modes, query.reads)


def _commits(seen: ObservedQueries) -> Iterator[_Write]:
    for name, found in seen.commits.items():
        for at, mode, has_data in found:
            if has_data:
                yield _Write(None, (at, at), {name: mode})


def _outermost(writes: Iterable[_Write]) -> list[_Write]:
    """Join each write with the writes of the same dataset inside of its time.

    A commit is a part of its command, and CREATE TABLE AS SELECT is a command in a command.
    """
    kept: list[_Write] = []
    last: dict[DatasetName, int] = {}
    for write in sorted(writes, key=lambda w: (w.span[0], -w.span[1].timestamp())):
        modes = dict(write.modes)
        for name, mode in write.modes.items():
            outer = kept[last[name]] if name in last else None
            if outer is None or not _is_inside(write, outer):
                last[name] = len(kept)
                continue
            del modes[name]
            kept[last[name]] = outer._replace(
                modes={**outer.modes, name: outer.modes[name] or mode},
                reads={**write.reads, **outer.reads},
            )
        if modes:
            kept.append(write._replace(modes=modes))
    return kept


def _is_inside(write: _Write, outer: _Write) -> bool:
    """Whether a write ended within another one; a commit may end :data:`SLACK` later.

    The times of a commit and of a query come from different clocks.
    """
    ended = outer.span[1] + SLACK if write.query is None else outer.span[1]
    return write.span[1] <= ended


def _span(action: Action) -> Span:
    return action.started, action.ended or action.started


class _Spans:
    """The reads and writes of actions (of the listener, or hidden writes), found by time."""

    def __init__(self, actions: Iterable[Action]) -> None:
        read: dict[DatasetName, list[_Spanned]] = defaultdict(list)
        written: dict[DatasetName, list[_Spanned]] = defaultdict(list)
        every: list[_Spanned] = []
        self._ended: dict[DatasetName, list[datetime]] = defaultdict(list)
        self._claimed: set[tuple[DatasetName, str]] = set()
        for action in actions:
            span = *_span(action), action
            for dataset in action.outputs:
                self._ended[dataset.name].append(span[1])
            if action.job_type == "RDD_JOB":
                continue
            every.append(span)
            for dataset in action.inputs:
                read[dataset.name].append(span)
            for dataset in action.outputs:
                written[dataset.name].append(span)
        for times in self._ended.values():
            times.sort()
        self._read = {name: Timeline(spans) for name, spans in read.items()}
        self._written = {name: Timeline(spans) for name, spans in written.items()}
        self._every = Timeline(every)

    def have_read(self, name: DatasetName, span: Span) -> bool:
        """Whether an action that overlaps a time span read a dataset."""
        return name in self._read and bool(self._read[name].during(*span))

    def have_write(self, name: DatasetName, span: Span) -> bool:
        """Whether an action covers the write of a dataset in a time span.

        An action right before or after the span covers the write only if no other write has claimed
        the action.
        """
        return any(
            overlap(_span(action), span) or (name, action.run_id) not in self._claimed
            for action in self._writes(name, span)
        )

    def claim(self, name: DatasetName, span: Span) -> None:
        """Note that the actions that overlap a write belong to it, and cover no adjacent write."""
        for action in self._writes(name, span):
            if overlap(_span(action), span):
                self._claimed.add((name, action.run_id))

    def _writes(self, name: DatasetName, span: Span) -> list[Action]:
        return self._written[name].during(*span) if name in self._written else []

    def any(self, span: Span) -> bool:
        """Whether any action overlaps a time span."""
        return any(overlap(_span(action), span) for action in self._every.during(*span))

    def writes_before(self, name: DatasetName, at: datetime) -> int:
        """Count the writes of a dataset that had ended by a time."""
        return bisect_right(self._ended.get(name, ()), at + SLACK)


# --- datasets of actions --------------------------------------------------------------------------

_OF_ONE_ACTION = frozenset({"columnLineage", "lifecycleStateChange", "version"})
_OVERWRITES = frozenset({"whole", "static", "dynamic"})
_CREATES = re.compile(r"(Atomic)?Create\w*Table")


class _Datasets:
    """Makes the datasets of observed actions; equal facets are one object."""

    def __init__(
        self,
        actions: Iterable[Action],
        schemas: Mapping[DatasetName, SchemaRecord],
        facets_of: FacetsOf,
    ) -> None:
        self._schemas = schemas
        self._facets_of = facets_of
        self._reported: dict[DatasetName, Facets] = {}
        for action in actions:
            for dataset in (*action.outputs, *action.inputs):
                self._reported[dataset.name] = dataset.facets
        self._read: dict[DatasetName, Facets] = {}
        self._values: dict[bytes, msgspec.Raw] = {}

    def read(self, reads: Mapping[DatasetName, Locations]) -> tuple[ActionDataset, ...]:
        """Make the inputs of an action, sorted by name."""
        for name in reads:
            if name not in self._read:
                made = self._made(name, self._schemas.get(name), "")
                self._read[name] = made | self._known(name)
        return tuple(ActionDataset(n, self._read[n], {}, reads[n]) for n in sorted(reads))

    def written(
        self, modes: Mapping[DatasetName, str], command: CommandRecord | None = None
    ) -> tuple[ActionDataset, ...]:
        """Make the outputs of an action, sorted by name.

        :param modes: dataset -> the mode in which it was written
        """
        found = []
        for name in sorted(modes):
            change = _change(modes[name], command.node if command else "")
            facets = self._known(name)
            facets |= self._made(name, command.schema if command else None, change)
            if "schema" not in facets:
                facets |= self._made(name, self._schemas.get(name), change)
            found.append(ActionDataset(name, facets, {}))
        return tuple(found)

    def _known(self, name: DatasetName) -> dict[str, msgspec.Raw]:
        return {k: v for k, v in self._reported.get(name, {}).items() if k not in _OF_ONE_ACTION}

    def _made(
        self, name: DatasetName, schema: SchemaRecord | None, change: str
    ) -> dict[str, msgspec.Raw]:
        made = self._facets_of(name, schema, change)
        return {key: self._values.setdefault(bytes(raw), raw) for key, raw in made.items()}


def _change(mode: str, node: str) -> str:
    """Give the lifecycle change of a write in the listener's words; "" for most writes."""
    if mode in _OVERWRITES or "ReplaceTable" in node:
        return "OVERWRITE"
    return "CREATE" if _CREATES.match(node) else ""
