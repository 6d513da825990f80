"""Actions that the observer saw and the listener did not report: reads, and hidden writes.

The listener reports few of the queries that end in the driver (a count, a collect), does not report
datasets that only a subquery reads, and hides some writes. The observer has a record of each query.
Reads and writes of a query that are *covered* by an action of the listener belong to that action;
the others become an action of their own, which is merged like any other. Policy, case by case:

- A read is covered if an action that overlaps the query in time has the dataset among its inputs; a
  write is covered if such an action has the dataset among its outputs, and is not known to be that
  of another query that wrote the dataset. RDD jobs cover no reads: they are not queries.
- A command may have no write in its own record: commands of Delta write in queries below them. Such
  a command has written its target if a commit of the target falls into the time of the command, or
  if no commits of the target are known.
- The inputs of a hidden write are the datasets that its query and the leaves of its plan read, or
  the inputs of the RDD jobs that began during the write, if it is one of RDD code.
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
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accesses import (
    SLACK,
    ActionDataset,
    Timeline,
    overlap,
    timelines,
)
from airflow_provider_sparklineage.lineage.application.accumulation import Action, ActionState
from airflow_provider_sparklineage.lineage.application.repairs import MOVES, only_defines
from airflow_provider_sparklineage.model.allowance import Limit, Stage
from airflow_provider_sparklineage.model.producer import facet
from airflow_provider_sparklineage.model.terms import Witness

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accesses import Span
    from airflow_provider_sparklineage.lineage.observed.binding import (
        Observed,
        ObservedQuery,
        ObservedRead,
    )
    from airflow_provider_sparklineage.lineage.observed.places import Locations
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.spark.capture.observations import (
        CommandRecord,
        SchemaRecord,
    )

    Facets = Mapping[str, msgspec.Raw]
    _Reads = tuple[tuple[DatasetName, ...], ActionState, str, tuple[int, ...]]
    """Queries with the same key become one action. The key has their datasets, state and function,
    and for each dataset, the number of its writes that had ended before the query."""


# --- actions --------------------------------------------------------------------------------------


def with_unreported_actions(seen: Observed) -> Observed:
    """Add the actions that only the observer saw.

    The module's docstring has the policy. If there are no such actions, ``seen`` is returned.

    :raise SpentError: if there is no time left
    """
    making = _Making(seen)
    making.add_writes()
    making.add_reads()
    if not making.actions and not making.left_out:
        return seen
    actions = (*seen.application.actions, *making.actions)
    left_out = dict(seen.application.left_out)
    if making.left_out:
        left_out["observed action(s)"] = making.left_out
    of_hidden = making.of_hidden_writes
    queries = (
        replace(query, action=of_hidden[id(query)]) if id(query) in of_hidden else query
        for query in seen.queries
    )
    done = seen._replace(queries=tuple(queries)).with_actions(sorted(actions, key=_start))
    return done._replace(application=replace(done.application, left_out=left_out))


def with_starts(seen: Observed) -> Observed:
    """Set the start of each action that is reported only by its end to the start of its query.

    A listener that lags behind the driver finds no query any more when it handles a start. The
    query is one that ends at the same time, and reads or writes the same dataset. If there is none,
    an action without outputs is a step of the command during which it ended. An action inside of a
    stream's batch is a step of the batch, which goes on after the action has ended.
    """
    ends = Timeline((query.ended, query.ended, query) for query in seen.queries if query.is_query)
    streamed = (query for query in seen.queries if query.record.function == "stream")
    batches = Timeline((*query.span, query) for query in streamed)
    commands = Timeline((*query.span, query) for query in seen.queries if query.command)

    def start(action: Action) -> datetime:
        if action.started != action.ended:
            return action.started
        inputs = {dataset.name for dataset in action.inputs}
        outputs = {dataset.name for dataset in action.outputs}
        around = batches.during(action.ended, action.ended) if action.is_stream else []
        starts = [
            query.started
            for query in (*ends.during(action.ended, action.ended), *around)
            if query.target in outputs
            or outputs & query.modes.keys()
            or (not outputs and inputs & query.inputs.keys())
        ]
        if not starts and not outputs:
            during = commands.during(action.ended, action.ended)
            starts = [max((query.started for query in during), default=action.started)]
        return min((action.started, *starts))

    actions = seen.application.actions
    started = [replace(a, started=at) if (at := start(a)) != a.started else a for a in actions]
    is_same = all(new is old for new, old in zip(started, actions, strict=True))
    return seen if is_same else seen.with_actions(sorted(started, key=_start))


def _start(action: Action) -> tuple[datetime, str]:
    return action.started, action.run_id


class _Making:
    """Makes actions from the reads and writes of queries that no action covers.

    Writes come first, because their actions cover reads too. The module's docstring defines
    *covered*.
    """

    def __init__(self, seen: Observed) -> None:
        actions = seen.application.actions
        self._application = seen.application
        self._allowance = seen.allowance
        self._queries = [query for query in seen.queries if query.is_query]
        self._commits = [query for query in seen.queries if query.is_commit]
        self._datasets = _Datasets(actions, self._queries)
        of_rdds = (a for a in actions if a.job_type == "RDD_JOB" and not a.outputs)
        self._jobs = Timeline((a.started, a.started, a) for a in of_rdds)
        self._room = Limit.DATASETS - sum(len(a.inputs) + len(a.outputs) for a in actions)
        self._numbers = count()
        self.actions: list[Action] = []
        self.of_hidden_writes: dict[int, Action] = {}
        """``id(query)`` -> the action that was made of the query's write."""
        self.left_out = 0

    def _add(
        self,
        query: ObservedQuery,
        span: Span,
        state: ActionState,
        inputs: tuple[ActionDataset, ...] = (),
        outputs: tuple[ActionDataset, ...] = (),
    ) -> Action | None:
        self._room -= len(inputs) + len(outputs)
        if self._room < 0:
            self.left_out += 1
            return None
        operations = (one.record.operation.lower() for one in query.writes)
        function = next((o for o in operations if o in MOVES), query.record.function)
        made = Action(
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
        self.actions.append(made)
        return made

    # --- hidden writes ---

    def add_writes(self) -> None:
        """Add actions for the writes that the listener did not report."""
        reported = _Spans(self._application.actions, self._queries)
        writes = [*_writes(self._queries, self._commits)]
        for write in writes:
            for name in write.modes:
                reported.claim(name, write.span)
        hidden = []
        for write in writes:
            self._allowance.work(Stage.OBSERVATIONS)
            modes = {
                name: mode
                for name, mode in write.modes.items()
                if not reported.have_write(name, write)
            }
            if modes:
                hidden.append(write._replace(modes=modes))
        for write in _outermost(hidden):
            self._add_write(write)

    def _add_write(self, write: _Write) -> None:
        query = write.query
        command = query.command.record if query.command else None
        inputs = dict(write.reads)
        if query.state is ActionState.COMPLETE:
            leaves = query.command.relations if query.command else ()
            names = {place.bound for place in leaves if place.bound is not None}
            if command is not None and command.node == _DELETE and not self._is_scanned(write):
                names.discard(query.target)  # Delta deletes whole partitions without a scan
            inputs |= dict.fromkeys(name for name in sorted(names) if name not in inputs)
        if any(one.record.node == "RDD" for one in query.writes):
            jobs = self._jobs.during(*query.span)
            inputs |= {d.name: d.locations for job in jobs for d in job.inputs}
        outputs = self._datasets.written(write.modes, command)
        outputs = self._datasets.copied(outputs, query.reads)
        made = self._add(query, write.span, query.state, self._datasets.read(inputs), outputs)
        if made is not None:
            self.of_hidden_writes[id(query)] = made

    def _is_scanned(self, write: _Write) -> bool:
        """Whether a query during a write has read the target of that write."""
        target = write.query.target
        return any(
            target in query.inputs and overlap(query.span, write.span) for query in self._queries
        )

    # --- reads ---

    def add_reads(self) -> None:
        """Add actions for the reads that no action has among its inputs.

        Equal reads between two writes are one action.
        """
        known = _Spans((*self._application.actions, *self.actions))
        groups: dict[_Reads, list[ObservedQuery]] = defaultdict(list)
        for query in self._queries:
            self._allowance.work(Stage.OBSERVATIONS)
            names = sorted(name for name in query.inputs if not known.have_read(name, query))
            if not names:
                continue
            # A failure that the listener reported is not reported again for the uncovered reads.
            is_reported = query.record.failed and known.any(query.span)
            state = ActionState.COMPLETE if is_reported else query.state
            writes_before = tuple(known.writes_before(name, query.started) for name in names)
            reads = tuple(names), state, query.record.function, writes_before
            groups[reads].append(query)
        for (read, state, _, _), queries in groups.items():
            locations = {name: _united(q.inputs[name] for q in queries) for name in read}
            span = min(q.started for q in queries), max(q.ended for q in queries)
            self._add(queries[0], span, state, self._datasets.read(locations))


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

    :param query: the query of the write, or the commit
    :param modes: dataset -> the mode in which it was written
    :param reads: dataset that was read for the write -> its locations
    """

    query: ObservedQuery
    modes: Mapping[DatasetName, str]
    reads: Mapping[DatasetName, Locations]

    @property
    def span(self) -> Span:
        """The start and the end of the query."""
        return self.query.span


_DELETE = "DeleteCommand"


def _writes(
    queries: Iterable[ObservedQuery], commits: Collection[ObservedQuery]
) -> Iterator[_Write]:
    of_name = timelines((name, commit.span, commit) for commit in commits for name in commit.modes)
    for query in queries:
        modes, target = query.modes, query.target
        if target is not None and target not in modes:
            during = of_name[target].during(*query.span) if target in of_name else ()
            if during or target not in of_name:
                modes = {**modes, target: during[-1].modes[target] if during else ""}
        if modes:
            yield _Write(query, modes, query.inputs)
    yield from (
        _Write(commit, commit.modes, commit.inputs) for commit in commits if _has_data(commit)
    )


def _has_data(commit: ObservedQuery) -> bool:
    """Whether a commit added or removed rows: one that creates an empty table does not."""
    records = [write.record for write in commit.writes]
    return any(r.layouts or r.removed or r.how == "unknown" for r in records)


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
    """Whether a write ended by the end of ``outer``, which began first.

    A commit may end up to :data:`SLACK` later: the times of a commit and of a query come from
    different clocks.
    """
    ended = outer.span[1] + SLACK if write.query.is_commit else outer.span[1]
    return write.span[1] <= ended


def _span(action: Action) -> Span:
    return action.started, action.ended or action.started


class _Spans:
    """The reads and writes of actions, indexed by dataset and time.

    :param queries: the observed queries; if the action of a query is known, the action reports the
        writes of this query only
    """

    def __init__(self, actions: Sequence[Action], queries: Iterable[ObservedQuery] = ()) -> None:
        self._writers = {
            (name, query.action.run_id): query
            for query in queries
            if query.action is not None
            for name in query.own_writes
        }
        self._claimed: set[tuple[DatasetName, str]] = set()
        self._ended: dict[DatasetName, list[datetime]] = defaultdict(list)
        for action in actions:
            for dataset in action.outputs:
                self._ended[dataset.name].append(_span(action)[1])
        for times in self._ended.values():
            times.sort()
        spans = [(_span(a), a) for a in actions if a.job_type != "RDD_JOB"]
        self._read = timelines((d.name, span, a) for span, a in spans for d in a.inputs)
        writing = ((_span(a), a) for a in actions if a.outputs)
        self._written = timelines((d.name, span, a) for span, a in writing for d in a.outputs)
        self._every = Timeline((*span, a) for span, a in spans)

    def have_read(self, name: DatasetName, query: ObservedQuery) -> bool:
        """Whether an action reports that a query read a dataset.

        An action right before or after the query counts only if both failed, or neither did.
        """
        is_failed = query.record.failed
        return name in self._read and any(
            overlap(_span(action), query.span) or (action.state is ActionState.FAILED) is is_failed
            for action in self._read[name].during(*query.span)
        )

    def have_write(self, name: DatasetName, write: _Write) -> bool:
        """Whether an action reports the write of a dataset.

        If the action's query is known and wrote the dataset itself, the action reports no write of
        another query. An action right before or after the write counts only if no other write has
        claimed it (:meth:`claim`), and if it wrote data.
        """
        return any(
            self._writers.get((name, action.run_id), write.query) is write.query
            and (overlap(_span(action), write.span) or self._is_free(name, action))
            for action in self._writes(name, write.span)
        )

    def _is_free(self, name: DatasetName, action: Action) -> bool:
        return (name, action.run_id) not in self._claimed and not only_defines(action)

    def claim(self, name: DatasetName, span: Span) -> None:
        """Note that the actions which overlap a write report that write, and none before or after.

        :param name: the dataset that was written
        :param span: the time of the write
        """
        for action in self._writes(name, span):
            if overlap(_span(action), span):
                self._claimed.add((name, action.run_id))

    def _writes(self, name: DatasetName, span: Span) -> list[Action]:
        return self._written[name].during(*span) if name in self._written else []

    def any(self, span: Span) -> bool:
        """Whether any action overlaps a time span."""
        return any(overlap(_span(action), span) for action in self._every.during(*span))

    def writes_before(self, name: DatasetName, at: datetime) -> int:
        """Count the writes of a dataset that had ended by a time, or :data:`SLACK` after it."""
        return bisect_right(self._ended.get(name, ()), at + SLACK)


# --- datasets of actions --------------------------------------------------------------------------

_OF_ONE_ACTION = frozenset({"columnLineage", "lifecycleStateChange", "version"})
_OVERWRITES = frozenset({"whole", "static", "dynamic"})
_CREATES = re.compile(r"(Atomic)?Create\w*Table")


class _Datasets:
    """Makes the datasets of observed actions; equal facets are one object.

    :param actions: the listener's actions, which have facets of the datasets
    :param queries: the observed queries, which have schemas of the datasets
    """

    def __init__(self, actions: Iterable[Action], queries: Iterable[ObservedQuery]) -> None:
        self._schemas: dict[DatasetName, SchemaRecord] = {}
        for read in (read for query in queries for read in query.reads):
            for place in read.places:
                if place.dataset is not None and read.record.schema is not None:
                    self._schemas.setdefault(place.dataset, read.record.schema)
        self._reported: dict[DatasetName, Facets] = {}
        for action in actions:
            for dataset in (*action.outputs, *action.inputs):
                self._reported[dataset.name] = dataset.facets
        self._read: dict[DatasetName, Facets] = {}
        self._values: dict[bytes, msgspec.Raw] = {}

    def read(self, reads: Mapping[DatasetName, Locations]) -> tuple[ActionDataset, ...]:
        """Make the inputs of an action, sorted by name.

        :param reads: dataset -> the partition locations that were read; None for the full dataset
        """
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
        :param command: the command that wrote, for its schema and lifecycle change; None if there
            was none
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

    def copied(
        self, outputs: tuple[ActionDataset, ...], reads: Iterable[ObservedRead]
    ) -> tuple[ActionDataset, ...]:
        """Add columns to the outputs of a command that took over the rows of a dataset.

        :param outputs: the outputs of the command
        :param reads: its reads
        """
        for read in reads:
            sources = [place.dataset for place in read.places if place.dataset is not None]
            columns = read.record.schema
            if read.record.copied and columns is not None and len(sources) == 1:
                outputs = tuple(
                    replace(o, facets={**o.facets, **_copied_columns(o.name, sources[0], columns)})
                    for o in outputs
                )
        return outputs

    def _known(self, name: DatasetName) -> dict[str, msgspec.Raw]:
        return {k: v for k, v in self._reported.get(name, {}).items() if k not in _OF_ONE_ACTION}

    def _made(
        self, name: DatasetName, schema: SchemaRecord | None, change: str
    ) -> dict[str, msgspec.Raw]:
        made = observed_facets(name, schema, change)
        return {key: self._values.setdefault(bytes(raw), raw) for key, raw in made.items()}


def _change(mode: str, node: str) -> str:
    """Give the lifecycle change of a write in the listener's words; "" for most writes.

    :param mode: the mode of the write, as the observer reports it
    :param node: the class name of the logical command; "" without a command
    """
    if mode in _OVERWRITES or "ReplaceTable" in node:
        return "OVERWRITE"
    return "CREATE" if _CREATES.match(node) else ""


# --- facets of datasets that only the observer saw ------------------------------------------------


_SPEC = "https://openlineage.io/spec/facets"
_SCHEMA = f"{_SPEC}/1-2-0/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet"
_COLUMNS = f"{_SPEC}/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet"
_DATA_SOURCE = f"{_SPEC}/1-0-1/DatasourceDatasetFacet.json#/$defs/DatasourceDatasetFacet"
_LIFECYCLE = (
    f"{_SPEC}/1-0-1/LifecycleStateChangeDatasetFacet.json#/$defs/LifecycleStateChangeDatasetFacet"
)


def observed_facets(
    name: DatasetName, schema: SchemaRecord | None, change: str
) -> dict[str, msgspec.Raw]:
    """Make the facets of a dataset that the observer saw.

    :param schema: the dataset's columns; None where they are not known
    :param change: ``OVERWRITE`` or ``CREATE``, for a dataset that was written; "" without a change
    :return: key of a facet, such as ``schema`` -> the facet as JSON
    """
    made = {"dataSource": facet(_DATA_SOURCE, name=name.namespace, uri=name.namespace)}
    if change:
        made["lifecycleStateChange"] = facet(_LIFECYCLE, lifecycleStateChange=change)
    facets = {key: msgspec.Raw(msgspec.json.encode(value)) for key, value in made.items()}
    if schema is not None and schema.fields:
        try:
            columns = [_field(column.name, column.type) for column in schema.fields]
            facets["schema"] = msgspec.Raw(msgspec.json.encode(facet(_SCHEMA, fields=columns)))
        except RecursionError:  # types in a damaged record may be nested to any depth
            return facets
    return facets


def _copied_columns(
    name: DatasetName, source: DatasetName, schema: SchemaRecord
) -> dict[str, msgspec.Raw]:
    """Make the facets ``schema`` and ``columnLineage`` of a copy of a dataset."""
    same = [{"type": "DIRECT", "subtype": "IDENTITY", "description": "", "masking": False}]
    fields = {
        column.name: {
            "inputFields": [{**source._asdict(), "field": column.name, "transformations": same}]
        }
        for column in schema.fields
    }
    columns = msgspec.Raw(msgspec.json.encode(facet(_COLUMNS, fields=fields)))
    return {**observed_facets(name, schema, ""), "columnLineage": columns}


def _field(name: str, kind: Any) -> dict[str, Any]:
    """Make the entry of a column in a ``schema`` facet, as the listener does.

    The parts of a nested type are fields of the column.

    :param kind: the type as Spark writes it as JSON
    """
    if not isinstance(kind, dict):
        return {"name": name, "type": str(kind)}
    below: list[dict[str, Any]] = []
    match kind.get("type"):
        case "struct":
            fields = kind.get("fields")
            below = [
                _field(str(f.get("name", "")), f.get("type"))
                for f in (fields if isinstance(fields, list) else ())
                if isinstance(f, dict)
            ]
        case "array":
            below = [_field("_element", kind.get("elementType"))]
        case "map":
            below = [_field("key", kind.get("keyType")), _field("value", kind.get("valueType"))]
    nested = {"fields": below} if below else {}
    return {"name": name, "type": str(kind.get("type", "")), **nested}
