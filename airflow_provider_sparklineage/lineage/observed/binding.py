"""Bind the observer's records to datasets, and to the listener's actions where that is certain.

:func:`bind` first names the datasets of all paths and tables in the records. Then it makes an
:class:`ObservedQuery` of each record, or of each commit if the record has the commits of a table.
An observed query has datasets, the partitions of each read and write (:mod:`.places`), and its
action if that is certain (:class:`QueriedActions`). The corrections (:mod:`.corrections`) take and
give such queries. :func:`observations` collects the accesses of the corrected queries, dataset by
dataset. It lists each path or table that is not a dataset of the application as unmatched, except
for single files of a dataset.

An access has the start and end of its query, or the exact time of the write if that is known. By
these times, a :class:`~..ledger.Ledger` later finds the accesses that were made during an action.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import cached_property, partial
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import UNKNOWN, Access, Grade, Scope
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.lineage.observed.accesses import (
    Observations,
    PythonFunction,
    WritePlan,
)
from airflow_provider_sparklineage.lineage.observed.places import (
    DatasetIndex,
    FolderPartitions,
    Place,
    at_roots,
    plain_uri,
)
from airflow_provider_sparklineage.model.allowance import UNLIMITED, Allowance, Stage
from airflow_provider_sparklineage.model.datasets import untrimmed
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR, Locator
from airflow_provider_sparklineage.model.terms import Frozen, Witness
from airflow_provider_sparklineage.model.texts import truncated
from airflow_provider_sparklineage.spark.capture.lines import MAX_TEXT
from airflow_provider_sparklineage.spark.capture.observations import Layout, milliseconds, timestamp

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accesses import Figures, Span
    from airflow_provider_sparklineage.lineage.application.accumulation import (
        Action,
        SparkApplication,
    )
    from airflow_provider_sparklineage.lineage.observed.places import Locations
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
    from airflow_provider_sparklineage.spark.capture.observations import (
        CommandRecord,
        ObservationRecord,
        ReadRecord,
        UdfRecord,
        WriteRecord,
    )


# --- queries --------------------------------------------------------------------------------------


class ObservedRead(NamedTuple):
    """A scan of a query.

    :param places: the base folders of the scan, below which its partitions lie
    :param accesses: the partitions that were read, dataset by dataset
    """

    record: ReadRecord
    places: tuple[Place, ...]
    accesses: tuple[Access, ...]

    def rebound(self, datasets: Mapping[DatasetName, DatasetName | None]) -> ObservedRead:
        """Give the read with accesses to some datasets replaced by accesses to others.

        :param datasets: dataset -> the dataset in its place; None drops the access
        """
        bound = ((access, datasets.get(access.dataset, access.dataset)) for access in self.accesses)
        return self._replace(
            places=tuple(place for place in self.places if place.dataset not in datasets),
            accesses=tuple(one._replace(dataset=name) for one, name in bound if name is not None),
        )


class ObservedWrite(NamedTuple):
    """One write: by a query, or by a commit in the log of a table.

    :param span: the exact time of the write, if it is known; else the time of its query
    :param target: the path or table to which it wrote
    :param places: the base folders of the write, below which its partitions lie
    :param accesses: the partitions that were written, dataset by dataset
    """

    record: WriteRecord
    span: Span
    target: Place
    places: tuple[Place, ...]
    accesses: tuple[Access, ...]

    @property
    def datasets(self) -> Iterator[DatasetName]:
        """The datasets that were written."""
        return (place.dataset for place in self.places if place.dataset is not None)


class ObservedCommand(NamedTuple):
    """The command of a query, if the query is one that writes.

    :param target: the path or table that the command writes
    :param relations: the paths and tables that the leaves of the command's plan read
    """

    record: CommandRecord
    target: Place
    relations: tuple[Place, ...]


_WRITES_OF_FILES = frozenset({"InsertIntoHadoopFsRelationCommand", "InsertIntoHiveTable"})


class ObservedQuery(Frozen, frozen=True, dict=True):
    """A query or a commit that was observed, with its datasets, partitions and action.

    :param ended: the end of the action, if that is known; else the end that the observer saw
    :param action: the listener's action of the query; or, if the listener did not report a write of
        the query, the action that was made of this write; None if the action is not certain
    :param gone: folders that did not exist any more when the driver ended
    :param maintenance: the datasets that a command of maintenance is about, each with the command
    """

    record: ObservationRecord
    started: datetime
    ended: datetime
    action: Action | None = None
    reads: tuple[ObservedRead, ...] = ()
    writes: tuple[ObservedWrite, ...] = ()
    command: ObservedCommand | None = None
    gone: tuple[Place, ...] = ()
    maintenance: tuple[tuple[DatasetName, str], ...] = ()

    @property
    def span(self) -> Span:
        """The start and the end of the query."""
        return self.started, self.ended

    @property
    def is_query(self) -> bool:
        """Whether the record is of a query."""
        return self.record.kind == "query"

    @property
    def is_commit(self) -> bool:
        """Whether the record is of a commit in the log of a table; a commit names no query."""
        return self.record.kind == "commits"

    @property
    def state(self) -> ActionState:
        """The state of an action of this query: FAILED or COMPLETE."""
        return ActionState.FAILED if self.record.failed else ActionState.COMPLETE

    @property
    def target(self) -> DatasetName | None:
        """The dataset that the command writes, itself or by the queries below it.

        None if the query has no command, or the target is not a dataset.
        """
        return self.command.target.dataset if self.command else None

    @cached_property
    def inputs(self) -> Mapping[DatasetName, Locations]:
        """The datasets that were read, each with the partition folders that the reads name."""
        found: dict[DatasetName, Locations] = {}
        for read in self.reads:
            for place in read.places:
                if place.dataset is not None:
                    known, here = found.get(place.dataset, frozenset()), place.locations
                    both = None if known is None or here is None else known | here
                    found[place.dataset] = both
        return found

    @cached_property
    def modes(self) -> Mapping[DatasetName, str]:
        """The datasets that were written, each with the mode of the write."""
        return {name: write.record.mode for write in self.writes for name in write.datasets}

    @cached_property
    def own_writes(self) -> frozenset[DatasetName]:
        """The datasets into which the query's own command wrote files.

        Other commands may leave the writing to queries below them.
        """
        own = (write for write in self.writes if write.record.node in _WRITES_OF_FILES)
        return frozenset(name for write in own for name in write.datasets)

    def plan(self, names: Collection[DatasetName]) -> WritePlan | None:
        """Give the plan of the write, bound to datasets of an application; None if there is none.

        :param names: the application's datasets
        """
        if self.command is None or self.record.failed:
            return None
        target, record = self.command.target.bound, self.command.record
        if target is None or target not in names or not record.plan:
            return None
        relations = tuple(
            (place.bound if place.bound in names else None, tuple(relation.ids))
            for place, relation in zip(self.command.relations, record.relations, strict=True)
        )
        is_hidden = self.action is not None and self.action.witness is Witness.OBSERVER
        run_id = self.action.run_id if self.action and is_hidden else None
        plan = zlib.compress(record.plan, 1)
        columns, describes = tuple(record.columns), record.describes and not is_hidden
        return WritePlan(target, columns, plan, relations, self.span, run_id, describes)

    def used(self, names: Collection[DatasetName]) -> Iterator[Place]:
        """Give the places that a query accessed, including those that are not datasets.

        :param names: the application's datasets
        """
        for read in self.reads:
            yield from read.places
        for write in self.writes:
            yield from write.places
        if self.command and not self.record.failed:
            yield self.command.target
            if self.command.target.bound in names and self.command.record.plan:
                yield from self.command.relations
        yield from self.gone


# --- actions of queries ---------------------------------------------------------------------------

_PRECISION_MS = 1  # the listener's two times are rounded, Spark's duration is not
_CORRECTION_MS = 5  # by so much one of the two clocks may be corrected at once
_MOST_DRIFT_MS = 20
_Starts = dict[int, list[tuple[int, "Action"]]]
"""Duration or end of actions, in ms -> (start in ms since 1970, action), in the order of starts."""


class QueriedActions:
    """Finds the listener's action of an observed query, by the times of both.

    :param actions: in the order of their start
    """

    def __init__(self, actions: Iterable[Action]) -> None:
        self._by_length: _Starts = defaultdict(list)
        self._by_end: _Starts = defaultdict(list)
        for action in actions:
            if action.ended is not None and action.job_type != "RDD_JOB":
                started, ended = milliseconds(action.started), milliseconds(action.ended)
                self._by_length[ended - started].append((started, action))
                self._by_end[ended].append((started, action))

    def of(self, record: ObservationRecord) -> Action | None:
        """Find the action of a query: the only one that overlaps the query and took as long.

        If there is none, it is the only one that ends when the query ends. This is so before Spark
        4, where an action begins when its query is planned, and if the listener reports only the
        end of the action.

        :return: None if no action or several actions fit, or if the query's duration is not known
        """
        found = self._during(record)
        return found[0][1] if len(found) == 1 else None

    def _during(self, record: ObservationRecord) -> list[tuple[int, Action]]:
        """Give the actions that :meth:`of` chooses from, each with its start in ms."""
        found: list[tuple[int, Action]] = []
        for precision in (_PRECISION_MS, _CORRECTION_MS) if record.duration else ():
            for length in _nearly(record.duration, record.duration, precision):
                latest = min(record.started, record.ended - length) + precision
                found += _between(self._by_length.get(length, []), record.started - length, latest)
            if found:
                break
            for ended in _nearly(record.ended, record.duration, precision):
                found += _between(self._by_end.get(ended, []), record.started, ended)
            if found:
                break
        return found

    def take(self, record: ObservationRecord, datasets: AbstractSet[DatasetName]) -> Action | None:
        """Find the action of a query that ran some time after its plan was made, and forget it.

        Spark makes the plan of a frame once: for ``explain``, for the first of several ``collect``,
        or for the levels of a recursion. The query ran between that time and the time when the
        observer saw its end. Its action is the first that read one of the datasets and took as
        long, or of which only the end was reported.

        :param datasets: the datasets that the query read
        :return: None if no action fits, or if :meth:`of` has found some
        """
        if not datasets or not record.duration or self._during(record):
            return None
        first, last = record.planned or record.started, record.seen or record.ended
        for length in (*_nearly(record.duration, record.duration), 0):
            actions = self._by_length.get(length, [])
            since = first - _PRECISION_MS + record.duration - length
            until = last - length + _PRECISION_MS
            begin = bisect_left(actions, since, key=itemgetter(0))
            for place in range(begin, bisect_right(actions, until, key=itemgetter(0))):
                _, action = actions[place]
                if any(dataset.name in datasets for dataset in action.inputs):
                    del actions[place]
                    return action
        return None


def _nearly(number: int, duration: int, precision: int = _PRECISION_MS) -> range:
    """Give the numbers of ms that may stand for this one, after a query of this duration.

    The two clocks differ while one of them is corrected, by 1 ms in a second.
    """
    difference = precision + min(duration // 1000, _MOST_DRIFT_MS)
    return range(number - difference, number + difference + 1)


def _between(
    actions: Sequence[tuple[int, Action]], first: int, last: int
) -> Sequence[tuple[int, Action]]:
    """Choose the actions that started between two times, both included.

    :param actions: (start, action) pairs, in the order of their starts
    :param first: the earlier time, in milliseconds since 1970 like the starts
    :param last: the later time
    """
    start = itemgetter(0)
    return actions[bisect_left(actions, first, key=start) : bisect_right(actions, last, key=start)]


# --- records to queries ---------------------------------------------------------------------------


class Observed(NamedTuple):
    """An application as the listener reports it, and the queries that were observed of it.

    :param datasets: finds the datasets of the application, and those that only the observer saw
    :param allowance: the time and memory for corrections
    """

    application: SparkApplication
    queries: tuple[ObservedQuery, ...]
    datasets: DatasetIndex
    allowance: Allowance = UNLIMITED

    @classmethod
    def of(
        cls,
        application: SparkApplication,
        records: Iterable[ObservationRecord],
        locator: Locator = DEFAULT_LOCATOR,
        allowance: Allowance = UNLIMITED,
    ) -> Observed:
        """Bind the records of an application to its datasets and actions.

        :param locator: finds the dataset and the partition of a path
        :param allowance: the time and memory for this and for corrections
        :raise SpentError: if there is no time left
        """
        index = DatasetIndex(identities(application.actions), locator)
        queries = bind(records, index, application.actions, allowance)
        return cls(application, queries, index, allowance)

    def with_actions(self, actions: Iterable[Action]) -> Observed:
        """Give a copy with other actions of the application, in the order of their start."""
        return self._replace(application=structs.replace(self.application, actions=tuple(actions)))

    def rebound(self, datasets: Mapping[DatasetName, DatasetName | None]) -> Observed:
        """Give a copy in which reads of some datasets are replaced by reads of others.

        :param datasets: dataset -> the dataset in its place; None drops the read
        """
        queries = (
            structs.replace(query, reads=tuple(read.rebound(datasets) for read in query.reads))
            for query in self.queries
        )
        return self._replace(queries=tuple(queries)) if datasets else self

    def observations(self) -> Observations:
        """Collect the accesses to the application's datasets."""
        return observations(self.queries, identities(self.application.actions).keys())


def identities(actions: Iterable[Action]) -> dict[DatasetName, set[DatasetName]]:
    """Give the datasets of actions, each with its symlinks."""
    found: dict[DatasetName, set[DatasetName]] = defaultdict(set)
    for action in actions:
        for dataset in (*action.inputs, *action.outputs):
            found[dataset.name] |= dataset.symlinks
    return found


def bind(
    records: Iterable[ObservationRecord],
    index: DatasetIndex,
    actions: Iterable[Action] = (),
    allowance: Allowance = UNLIMITED,
) -> tuple[ObservedQuery, ...]:
    """Bind records to datasets and actions: give a query for each record.

    For a record of commits, give a query for each commit.

    :param index: finds the datasets of the application; observed datasets are added to it
    :param actions: the listener's actions, in the order of their start
    :param allowance: the limit of time
    :raise SpentError: if there is no time left
    """
    each = (one for record in records for one in _commits(record))
    records = [at_roots(record, index.locator) for record in each]
    work = partial(allowance.work, Stage.OBSERVATIONS)
    for path, table in _places(records):
        work(1)
        index.name(path, table)
    binding = _Binding(index, FolderPartitions(index.locator, work))
    actions = list(actions)
    queried, queries = QueriedActions(actions), []
    for record in records:
        allowance.check(Stage.OBSERVATIONS)
        queries.append(binding.query(record, queried.of(record)))
    unbound = [n for n, query in enumerate(queries) if not query.action and query.record.duration]
    if not unbound:
        return tuple(queries)
    taken = {query.action.run_id for query in queries if query.action is not None}
    left = QueriedActions(action for action in actions if action.run_id not in taken)
    for number in unbound:
        allowance.check(Stage.OBSERVATIONS)
        query = queries[number]
        if action := left.take(query.record, query.inputs.keys()):
            queries[number] = binding.query(query.record, action, is_elsewhere=True)
    return tuple(queries)


def _commits(record: ObservationRecord) -> Iterator[ObservationRecord]:
    """Split a record of commits into one for each commit; give any other record as it is."""
    if record.kind != "commits":
        yield record
        return
    for write in record.writes:
        at = record.started if write.time is None else write.time
        yield structs.replace(record, writes=[write], started=at, ended=at)


def _places(records: Sequence[ObservationRecord]) -> Iterator[tuple[str, str | None]]:
    """Yield (path, table) for each place in records that is a dataset: reads first, then writes.

    Of the paths that are read, the shorter ones come first, so that the folder of a single file is
    known before the file.
    """
    read = {(path, r.table): None for one in records for r in one.reads for path in _paths(r)}
    yield from sorted(read, key=lambda place: (len(place[0]), place[0]))
    for record in records:
        if record.command is not None:
            yield record.command.target.path, record.command.target.table
        for write in record.writes:
            if not write.skipped:
                yield from ((layout.base, write.table) for layout in _layouts(write))


def _paths(read: ReadRecord) -> Iterable[str]:
    """Give the paths of a scan that are datasets, or parts of them.

    There are none if the scan infers a schema, or reads a metadata table.
    """
    if read.inference or read.not_data:
        return ()
    if read.layouts is None:
        return read.roots or ("",)
    return dict.fromkeys(layout.base for layout in read.layouts)


def _layouts(write: WriteRecord) -> Sequence[Layout]:
    return write.layouts or [Layout(write.path)]


_FULL_MODES = ("whole", "create")
_REPLACING_MODES = (*_FULL_MODES, "static", "dynamic")


class _Binding:
    """Turns records into queries, whose paths and tables are bound to datasets."""

    def __init__(self, index: DatasetIndex, folders: FolderPartitions) -> None:
        self._index = index
        self._folders = folders

    def query(
        self, record: ObservationRecord, action: Action | None, *, is_elsewhere: bool = False
    ) -> ObservedQuery:
        """Bind one record to its datasets.

        :param action: the listener's action of the query; None if it is not certain
        :param is_elsewhere: whether the query ran when its action did, and not at its own time
        :raise SpentError: if there is no time left
        """
        ended = milliseconds(action.ended) if action and action.ended else record.ended
        started = ended - record.duration if is_elsewhere else record.started
        span = timestamp(started), timestamp(ended)
        command = None
        if record.command is not None:
            target, relations = record.command.target, record.command.relations
            command = ObservedCommand(
                record.command,
                self._index.place(target.path, target.table),
                tuple(self._index.relation(r.path, r.table) for r in relations),
            )
        return ObservedQuery(
            record,
            *span,
            action,
            tuple(self._read(read, span) for read in record.reads),
            tuple(self._write(write, span) for write in record.writes),
            command,
            tuple(
                self._index.place(path, None) for path in record.gone if not self._is_stage(path)
            ),
            tuple(
                (name, one.operation)
                for one in record.maintenance
                if (name := self._index.named(one.path, one.table)) is not None
            ),
        )

    def _is_stage(self, path: str) -> bool:
        """Whether a folder is one inside of a model, which a model saved anew no longer has."""
        name = untrimmed(path)
        return name is not None and self._index.locator.model_around(name) not in (None, name)

    def _read(self, read: ReadRecord, span: Span) -> ObservedRead:
        read = self._in_folders(read)
        places = tuple(self._index.place(path, read.table) for path in _paths(read))
        if read.not_data:
            return ObservedRead(read, places, ())
        if read.inference:
            nothing = Scope(partitions=frozenset())
            holding = self._index.holding(read.roots)
            of = (Access(n, Side.READ, *span, nothing, grade=Grade.OBSERVED) for n in holding)
            return ObservedRead(read, places, tuple(of))
        is_known = read.layouts is not None
        is_restricted = read.partition_filters or read.pushed_filters or read.chosen
        roots = set(map(plain_uri, read.roots))
        layouts = read.layouts if read.layouts is not None else map(Layout, _paths(read))
        accesses = []
        for dataset, own in self._by_dataset(layouts, read.table).items():
            scope = UNKNOWN
            dimensions: tuple[Dimension, ...] = ()
            if is_known:
                bases = {plain_uri(layout.base) for layout in own}
                dimensions, partitions = self._folders.of(own, dataset)
                is_full = not is_restricted and bases <= roots
                scope = Scope(is_full and not self._folders.are_bases(bases), partitions)
            access = Access(
                dataset,
                Side.READ,
                *span,
                scope,
                grade=Grade.OBSERVED,
                dimensions=dimensions,
                filters=(*read.partition_filters, *read.data_filters, *read.pushed_filters),
                why_unknown="" if is_known else truncated(read.cut, MAX_TEXT),
                planned=is_known and read.planned,
                chosen=is_known and read.chosen,
            )
            accesses.append(access)
        return ObservedRead(read, places, tuple(accesses))

    def _in_folders(self, read: ReadRecord) -> ReadRecord:
        """Replace each single file of a dataset by its folder, among the paths of a scan.

        If there is any such file, ``chosen`` is set in the result: only chosen files were read.
        """
        folders = {o.base: self._index.folder(o.base, read.table) for o in read.layouts or ()}
        if all(base == folder for base, folder in folders.items()):
            return read
        layouts = [structs.replace(o, base=folders[o.base]) for o in read.layouts or ()]
        return structs.replace(read, layouts=layouts, chosen=True)

    def _write(self, write: WriteRecord, span: Span) -> ObservedWrite:
        if write.time is not None:
            span = timestamp(write.time), timestamp(write.time)
        accesses = []
        for dataset, layouts in self._by_dataset(_layouts(write), write.table).items():
            dimensions, partitions = self._folders.of(layouts, dataset)
            known = None if write.how == "unknown" else partitions
            of_removed, shrunk = self._folders.of(write.removed, dataset)
            removed: frozenset[Partition] = frozenset()
            if known is not None and write.emptied is not None:
                removed = (self._folders.of(write.emptied, dataset)[1] or frozenset()) - known
                known |= (shrunk or frozenset()) - removed
            owned: frozenset[Partition] = frozenset()
            replaced: frozenset[Partition] = frozenset()
            if known is not None and write.mode in _REPLACING_MODES:
                owned = replaced = known
            elif known is not None and write.shared is not None:
                others = [Layout(one.base, one.dimensions, write.shared) for one in layouts]
                owned = known - (self._folders.of(others, dataset)[1] or frozenset())
            # A whole folder may be that of a partition of the dataset.
            is_full = write.mode in _FULL_MODES
            full = is_full and not self._folders.are_bases(o.base for o in layouts)
            accesses.append(
                Access(
                    dataset,
                    Side.WRITE,
                    *span,
                    Scope(partitions=known),
                    Scope(full, owned),
                    Grade.OBSERVED,
                    dimensions=dimensions or of_removed,
                    why_unknown=truncated(write.cut, MAX_TEXT),
                    exact=write.how != "listing",
                    removed=removed,
                    replaced=replaced,
                    figures=self._figures(write, layouts) if known is not None else None,
                )
            )
        bases = dict.fromkeys(layout.base for layout in _layouts(write))
        places = tuple(self._index.place(base, write.table) for base in bases)
        target = self._index.place(write.path, write.table)
        return ObservedWrite(write, span, target, places, tuple(accesses))

    def _figures(
        self, write: WriteRecord, layouts: Sequence[Layout]
    ) -> Mapping[Partition, Figures] | None:
        """Give what a write added to its partitions; None if that is not certain.

        :param layouts: the layouts of the write below one dataset
        """
        if write.how != "exact":
            return None
        return self._folders.figures(layouts if write.layouts else ())

    def _by_dataset(
        self, layouts: Iterable[Layout], table: str | None
    ) -> dict[DatasetName, list[Layout]]:
        found: dict[DatasetName, list[Layout]] = defaultdict(list)
        for layout in layouts:
            dataset = self._index.place(layout.base, table).bound
            if dataset is not None:
                found[dataset].append(layout)
        return found


# --- queries to accesses --------------------------------------------------------------------------


def observations(
    queries: Collection[ObservedQuery], names: Collection[DatasetName]
) -> Observations:
    """Collect the accesses, functions and plans of queries, dataset by dataset.

    A path or table that is not a dataset of the application is listed as unmatched, unless it is a
    single file of a dataset.

    :param names: the application's datasets; only these have accesses
    """
    reads: dict[DatasetName, list[Access]] = defaultdict(list)
    writes: dict[DatasetName, list[Access]] = defaultdict(list)
    plans: dict[DatasetName, list[WritePlan]] = defaultdict(list)
    tables: dict[DatasetName, set[str]] = defaultdict(set)
    unmatched: set[str] = set()
    functions = []
    for query in queries:
        functions += [PythonFunction(*query.span, _call(u)) for u in query.record.python_udfs]
        for read in query.reads:
            for access in read.accesses:
                reads[access.dataset].append(access)
        for write in query.writes:
            for access in write.accesses:
                writes[access.dataset].append(access)
        if plan := query.plan(names):
            plans[plan.target].append(plan)
        for place in query.used(names):
            if place.bound is None or place.bound not in names:
                unmatched |= {place.label} if not place.is_file else set()
            elif place.table:
                tables[place.bound].add(place.table)
    gone = {place.bound for query in queries for place in query.gone if place.bound in names}
    maintained = {one for query in queries for one in query.maintenance if not query.record.failed}
    return Observations(
        {name: tuple(reads[name]) for name in sorted(reads.keys() & names)},
        {name: tuple(writes[name]) for name in sorted(writes.keys() & names)},
        tuple(sorted(unmatched - {""})),
        tuple(functions),
        {name: frozenset(tables[name]) for name in sorted(tables)},
        {name: tuple(plans[name]) for name in sorted(plans)},
        frozenset(name for name in gone if name is not None),
        tuple(sorted(maintained)),
    )


def _call(udf: UdfRecord) -> str:
    """Give the call of a Python function as text: ``name(column, …)``."""
    return f"{udf.function or 'a Python function'}({', '.join(udf.columns)})"
