"""Correct the listener's application by the observer's queries, and the queries by each other.

:data:`CORRECTIONS` lists the corrections in their order. Each is a function from an
:class:`Observed` to an :class:`Observed`: an application, and the queries that were observed of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import (
    SLACK,
    Scope,
    Timeline,
    overlap,
    timelines,
)
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.lineage.observed.binding import Observed, identities
from airflow_provider_sparklineage.lineage.observed.unreported_actions import (
    with_starts,
    with_unreported_actions,
)
from airflow_provider_sparklineage.model.datasets import DatasetName, looks_like_file
from airflow_provider_sparklineage.model.partitioning import Partition

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accesses import (
        Access,
        ActionDataset,
        Span,
    )
    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.observed.binding import (
        ObservedQuery,
        ObservedRead,
        ObservedWrite,
    )
    from airflow_provider_sparklineage.lineage.observed.places import DatasetIndex
    from airflow_provider_sparklineage.spark.capture.observations import ReadRecord

    _Written = DatasetName | str
    _Timelines = Mapping[_Written, Timeline[Span]]


# --- batches of streams ---------------------------------------------------------------------------


def with_missed_batches(seen: Observed) -> Observed:
    """Take the listener's word for the reads of batches that were over before they were looked at.

    If the listener names single files that are in no partition, the batch read a part of a folder
    without partitions.
    """
    if not (reading := list(_streams(seen))):
        return seen
    streams = Timeline((a.started, a.ended or a.started, a) for a in reading)

    def found(query: ObservedQuery) -> ObservedQuery:
        if query.record.function != "stream":
            return query
        names = {n for action in streams.during(*query.span) for n in action.moved.values()}
        reads = (
            read._replace(accesses=tuple(_of_files(one, names) for one in read.accesses))
            if read.record.layouts is None
            else read
            for read in query.reads
        )
        return replace(query, reads=tuple(reads))

    return seen._replace(queries=tuple(map(found, seen.queries)))


def _streams(seen: Observed) -> Iterable[Action]:
    """Give the actions that are batches of streams, and read single files only."""
    for action in seen.application.actions:
        files = [file for file in action.moved if looks_like_file(file.name)]
        inputs = {dataset.name for dataset in action.inputs if dataset.locations is None}
        if action.is_stream and files and {action.moved[file] for file in files} == inputs:
            yield action


def _of_files(read: Access, folders: Container[DatasetName]) -> Access:
    if read.dataset not in folders:
        return read
    part = Scope(partitions=frozenset({Partition()}))
    return read._replace(scope=part, why_unknown="", chosen=True)


def with_real_batches(seen: Observed) -> Observed:
    """Replace files of stream batches by their folders, and leave out steps inside of batches.

    The listener reports each file of a batch that is in no partition as a dataset of its own, and a
    step of Delta inside of a batch as a second action with the same datasets.
    """
    batches = [query for query in seen.queries if query.record.function == "stream"]
    if not batches:
        return seen
    timeline = Timeline((*batch.span, batch) for batch in batches)
    latest: dict[tuple[frozenset[DatasetName], ...], Action] = {}
    actions: list[Action] = []
    moved: dict[DatasetName, DatasetName] = {}
    for action in seen.application.actions:
        sides = (action.inputs, action.outputs)
        names = tuple(frozenset(dataset.name for dataset in side) for side in sides)
        during = timeline.during(action.started, action.ended)
        if any(_is_step_of(action, latest.get(names), batch.span) for batch in during):
            continue
        latest[names] = action
        reads = [read for batch in during for read in batch.record.reads]
        bases = (o.base for read in reads for o in read.layouts or () if not o.dimensions)
        around = _folders_around(action.inputs, seen.datasets.located(bases))
        moved |= around
        # Columns can be those of a file in a folder that is no dataset any more.
        of_files = {file: around.get(folder, folder) for file, folder in action.moved.items()}
        inputs = _in_folders(action.inputs, around)
        actions.append(replace(action, inputs=inputs, moved={**of_files, **around}))
    done = seen.with_actions(actions)
    # A file that no action names any more is not a dataset, also where another query reads it
    # alone.
    gone = identities(seen.application.actions).keys() - identities(actions).keys()
    done = done.rebound(dict.fromkeys(gone))
    return done._replace(queries=tuple(_with_folders(query, moved) for query in done.queries))


def _folders_around(
    inputs: Iterable[ActionDataset], folders: Iterable[DatasetName]
) -> dict[DatasetName, DatasetName]:
    """Give for each input that is in one of the folders this folder."""
    return {
        dataset.name: folder
        for dataset in inputs
        for folder in folders
        if _is_in_folder(dataset.name, folder)
    }


def _in_folders(
    inputs: Sequence[ActionDataset], around: Mapping[DatasetName, DatasetName]
) -> tuple[ActionDataset, ...]:
    """Give the inputs of an action, with files replaced by the folders that contain them.

    :param around: file -> the folder
    """
    found: dict[DatasetName, ActionDataset] = {}
    for dataset in inputs:
        name = around.get(dataset.name, dataset.name)
        found.setdefault(name, replace(dataset, name=name))
    return tuple(found[name] for name in sorted(found))


def _with_folders(query: ObservedQuery, around: Mapping[DatasetName, DatasetName]) -> ObservedQuery:
    """Replace files by their folders among the relations of a query's command.

    :param around: file -> the folder
    """
    if query.command is None:
        return query
    relations = []
    for place in query.command.relations:
        folder = around.get(place.bound) if place.bound is not None else None
        relations.append(place._replace(dataset=folder, bound=folder) if folder else place)
    command = query.command._replace(relations=tuple(relations))
    return replace(query, command=command)


def _is_in_folder(file: DatasetName, folder: DatasetName) -> bool:
    return file.namespace == folder.namespace and file.name.startswith(f"{folder.name}/")


def _is_step_of(action: Action, around: Action | None, batch: Span) -> bool:
    """Whether an action is a step inside of another action, in the time of one batch.

    :param around: an earlier action with the same datasets; None if there is none
    :param batch: the start and the end of the batch
    """
    if around is None or around.ended is None or action.ended is None or not action.outputs:
        return False
    started, ended = batch
    is_in_batch = started - SLACK <= around.started and around.ended <= ended + SLACK
    return is_in_batch and action.ended <= around.ended


# --- failed and skipped writes --------------------------------------------------------------------


def with_failed_writes(seen: Observed) -> Observed:
    """Mark an action as failed if its query failed, though the listener reports it as complete.

    Such an action keeps only the inputs that were observed.
    """
    failed = timelines(
        (query.command.target.key, query.span, query.span)
        for query in seen.queries
        if query.record.failed and query.command is not None
    )
    if not failed:
        return seen
    done = _write_timelines(seen.queries, skipped=False)
    reads = timelines(
        (seen.datasets.place(root, read.record.table).key, query.span, query.span)
        for query in seen.queries
        for read in query.reads
        for root in read.record.roots or [""]
    )

    def marked(action: Action) -> Action:
        span = _action_span(action)
        if action.state is not ActionState.COMPLETE or not action.outputs:
            return action
        if not all(_has_overlap(failed, d.name, span) for d in action.outputs):
            return action
        if any(_has_overlap(done, d.name, span) for d in action.outputs):
            return action  # the write was tried again right after, and succeeded
        inputs = tuple(d for d in action.inputs if _has_overlap(reads, d.name, span))
        return replace(action, state=ActionState.FAILED, inputs=inputs)

    return seen.with_actions(map(marked, seen.application.actions))


def without_skipped_writes(seen: Observed) -> Observed:
    """Leave out writes that Spark skipped: those with mode ``ignore`` whose target existed already.

    The listener reports such a write with an output, and with inputs that were mostly not opened.
    """
    skipped = _write_timelines(seen.queries, skipped=True)
    if not skipped:
        return seen
    done = _write_timelines(seen.queries, skipped=False)

    def is_skipped(name: _Written, span: Span) -> bool:
        return _has_overlap(skipped, name, span) and not _has_overlap(done, name, span)

    def without(action: Action) -> Action | None:
        span = _action_span(action)
        outputs = tuple(d for d in action.outputs if not is_skipped(d.name, span))
        if len(outputs) == len(action.outputs):
            return action
        return replace(action, outputs=outputs) if outputs else None

    def with_done(query: ObservedQuery) -> ObservedQuery:
        written = tuple(write for write in query.writes if not write.record.skipped)
        if query.command is None or written:
            is_nothing = bool(query.writes) and not written
        else:
            is_nothing = is_skipped(query.command.target.key, query.span)
        if is_nothing and query.is_query:
            return replace(query, writes=(), command=None)
        return replace(query, writes=written)

    actions = (without(action) for action in seen.application.actions)
    done_seen = seen.with_actions(action for action in actions if action is not None)
    return done_seen._replace(queries=tuple(map(with_done, seen.queries)))


def _action_span(action: Action) -> Span:
    """Give the time span of an action; move its start back if only its end was reported."""
    ended = action.ended or action.started
    return (action.started if action.started < ended else ended - SLACK), ended


def _write_timelines(queries: Iterable[ObservedQuery], *, skipped: bool) -> _Timelines:
    return timelines(
        (write.target.key, write.span, write.span)
        for query in queries
        for write in query.writes
        if write.record.skipped is skipped
    )


def _has_overlap(writes: _Timelines, name: _Written, span: Span) -> bool:
    """Whether a write of a dataset overlaps a time span, and does not only touch the span."""
    found = writes[name].during(*span) if name in writes else ()
    return any(overlap(span, of_write) for of_write in found)


def with_replaced_writes(seen: Observed) -> Observed:
    """Give a write the partitions that later writes have replaced or emptied.

    The observer looks for the files of a write after it. By then later writes of the application
    may have replaced or deleted them. If partitions are missing, they are those that the next
    writes replaced or emptied, if the number of all is then the one that Spark counted.

    If no file was left, and the next write replaced only the partitions that it wrote, then it
    wrote all partitions of the earlier one. A write of a catalog table stays unknown: its
    partitions may have locations that were not listed. So does one that may have been read before
    it was replaced.
    """
    writes = [write for query in seen.queries for write in query.writes]
    if not any(_has_no_file_left(write) or _lacks_partitions(write) for write in writes):
        return seen
    replacing: dict[str, list[ObservedWrite]] = defaultdict(list)
    for write in sorted(writes, key=_start):
        replaces = any(
            (one.replaced or one.removed) and not one.owned.full for one in write.accesses
        )
        if write.record.how == "exact" and replaces:
            replacing[write.record.path].append(write)
    accesses = (one for query in seen.queries for read in query.reads for one in read.accesses)
    spans = ((one.dataset, (one.started, one.ended or one.started)) for one in accesses)
    reads: _Timelines = timelines((dataset, span, span) for dataset, span in spans)

    def found(write: ObservedWrite) -> ObservedWrite:
        later = replacing.get(write.record.path, [])
        place = bisect_left(later, write.span[1], key=_start)
        if place == len(later):
            return write
        if _lacks_partitions(write):
            return _completed(write, later[place:])
        return _replaced(write, later[place], reads) if _has_no_file_left(write) else write

    queries = (replace(q, writes=tuple(map(found, q.writes))) for q in seen.queries)
    return seen._replace(queries=tuple(queries))


def _has_no_file_left(write: ObservedWrite) -> bool:
    """Whether a write by path wrote partitions, and the observer looked and found none of them."""
    record = write.record
    return record.how == "unknown" and not record.cut and record.table is None and record.parts > 0


def _lacks_partitions(write: ObservedWrite) -> bool:
    """Whether the observer found some of the partitions of a write, but not all."""
    return write.record.how == "listing" and 0 < _count(write.accesses) < write.record.parts


def _count(accesses: Iterable[Access]) -> int:
    return sum(len(one.scope.partitions or ()) for one in accesses)


def _completed(write: ObservedWrite, later: Iterable[ObservedWrite]) -> ObservedWrite:
    """Add to a write the partitions that later ones replaced or emptied, until it has all."""
    accesses = write.accesses
    for next_ in later:
        lost = {one.dataset: one.replaced | one.removed for one in next_.accesses}
        scopes = [
            (one.scope.partitions or frozenset()) | lost.get(one.dataset, frozenset())
            for one in accesses
        ]
        accesses = tuple(
            one._replace(scope=one.scope._replace(partitions=scope), exact=True)
            for one, scope in zip(accesses, scopes, strict=True)
        )
        if _count(accesses) >= write.record.parts:
            break
    return write._replace(accesses=accesses) if _count(accesses) == write.record.parts else write


def _replaced(write: ObservedWrite, next_: ObservedWrite, reads: _Timelines) -> ObservedWrite:
    """Give a write of which nothing is left the partitions of the next one."""
    begun, ended = write.span
    until = begun, next_.span[1]
    is_read = any(_has_overlap(reads, access.dataset, until) for access in next_.accesses)
    if is_read or next_.record.parts < write.record.parts or not _count(next_.accesses):
        return write
    replaced = (
        access._replace(started=begun, ended=ended, figures=None) for access in next_.accesses
    )
    return write._replace(accesses=tuple(replaced))


def _start(write: ObservedWrite) -> datetime:
    return write.span[0]


# --- inferred files -------------------------------------------------------------------------------


def without_inferred_files(seen: Observed) -> Observed:
    """Leave out inputs that are files of other datasets, and were read only to infer columns.

    Spark reads one or all files of CSV and JSON as text for this, and the listener reports it.
    """
    roots: dict[bool, set[DatasetName]] = {True: set(), False: set()}
    for read in (read for query in seen.queries for read in query.reads):
        roots[read.record.inference] |= seen.datasets.located(read.record.roots)
    names = [name for name in roots[True] - roots[False] if looks_like_file(name.name)]
    files = {name: above for name in names if (above := seen.datasets.above(name)) is not None}
    if not files:
        return seen
    actions = (
        replace(action, inputs=tuple(d for d in action.inputs if d.name not in files))
        for action in seen.application.actions
    )
    return seen.with_actions(actions).rebound(files)


# --- metadata, branches and maintenance -----------------------------------------------------------


# Facets of a table that its branch, or the table of its changes, does not have.
_OF_TABLE = frozenset({"symlinks", "version", "schema"})
_CHANGELOG = "SparkChangelogScan"


def with_true_datasets(seen: Observed) -> Observed:
    """Rename datasets of actions that have another name, and leave out those not accessed.

    The listener names a table if a query reads a metadata table of it, accesses a branch of it, or
    rewrites its files. A branch is a dataset of its own, and the others access no data of the user.
    For a table's changes the listener has a name of its own.
    """
    seen = _without_steps(seen)
    named = {side: list(_named(seen, side)) for side in Side}
    if all(name == truth for of in named.values() for name, _, truth in of):
        return seen
    truths = {
        side: timelines((name, of_query, (of_query, truth)) for name, of_query, truth in of)
        for side, of in named.items()
    }

    def corrected(action: Action) -> Action | None:
        span = _action_span(action)
        inputs, moved = _renamed(action.inputs, truths[Side.READ], span)
        outputs, _ = _renamed(action.outputs, truths[Side.WRITE], span)
        if inputs == action.inputs and outputs == action.outputs:
            return action
        if not inputs and not outputs:
            return None
        return replace(action, inputs=inputs, outputs=outputs, moved={**action.moved, **moved})

    actions = map(corrected, seen.application.actions)
    return seen.with_actions(action for action in actions if action is not None)


_BATCH = "TahoeBatchFileIndex"
"""The index of the files that a command of Delta reads by itself."""


def _without_steps(seen: Observed) -> Observed:
    """Leave out the reads that a command of maintenance makes, as for the statistics of columns."""
    commands = timelines(
        (name, query.span, query.span) for query in seen.queries for name, _ in query.maintenance
    )
    if not commands:
        return seen

    def is_step(read: ObservedRead, query: ObservedQuery) -> bool:
        if read.record.index != _BATCH:
            return False
        names = [place.dataset for place in read.places]
        during = [commands[n].during(*query.span) if n in commands else [] for n in names]
        return any(begun <= query.started for spans in during for begun, _ in spans)

    queries = (
        replace(q, reads=tuple(read for read in q.reads if not is_step(read, q)))
        for q in seen.queries
    )
    return seen._replace(queries=tuple(queries))


_Named = tuple[DatasetName, "Span", DatasetName | None]
"""A dataset that the listener may name for a query, the time of the query, and the dataset that was
accessed; None if no data was."""


def _named(seen: Observed, side: Side) -> Iterator[_Named]:
    """Yield the datasets that the listener may name on a side of each query."""
    for query in seen.queries:
        for name, _ in query.maintenance:
            yield name, query.span, None
        for write in query.writes if side is Side.WRITE else ():
            table = seen.datasets.named(_table_of(write.record.path, write.record.branch), None)
            for name in write.datasets:
                yield (table or name) if write.record.branch else name, query.span, name
        for read in query.reads if side is Side.READ else ():
            if not read.record.inference:
                yield from _named_by(read.record, query.span, seen.datasets)


def _named_by(read: ReadRecord, span: Span, datasets: DatasetIndex) -> Iterator[_Named]:
    for root in read.roots:
        table = datasets.named(_table_of(root, read.branch), None)
        if table is None:
            continue
        truth = datasets.named(root, None)
        yield table, span, None if read.not_data else truth
        if read.scan == _CHANGELOG:
            yield table._replace(name=f"{table.name}/changes"), span, truth


def _table_of(path: str, branch: str) -> str:
    """Give the path of the table, from the path of a branch as the observer writes it."""
    return path.rpartition(".branch_")[0] if branch else path


def _renamed(
    datasets: tuple[ActionDataset, ...],
    truths: Mapping[DatasetName, Timeline[tuple[Span, DatasetName | None]]],
    span: Span,
) -> tuple[tuple[ActionDataset, ...], dict[DatasetName, DatasetName]]:
    """Give the datasets that an action accessed, and the new names by the old ones.

    :param datasets: the inputs or the outputs of the action, as the listener names them
    :param truths: the time of each query and the dataset that it accessed, by the names that the
        listener may have
    :param span: the time of the action
    """
    found: dict[DatasetName, ActionDataset] = {}
    moved: dict[DatasetName, DatasetName] = {}
    for dataset in datasets:
        name = dataset.name
        near = truths[name].during(*span) if name in truths else []
        # A query right before or after the action counts only if none is within its time.
        within = [truth for of_query, truth in near if overlap(span, of_query)]
        true = set(within or (truth for _, truth in near))
        if not true or name in true:
            found.setdefault(name, dataset)
            continue
        for truth in sorted(one for one in true if one is not None):
            facets = {k: v for k, v in dataset.facets.items() if k not in _OF_TABLE}
            found.setdefault(truth, replace(dataset, name=truth, facets=facets))
            moved[name] = truth
    return tuple(found[name] for name in sorted(found)), moved


CORRECTIONS: tuple[Callable[[Observed], Observed], ...] = (
    with_missed_batches,
    with_real_batches,
    with_true_datasets,
    with_failed_writes,
    without_skipped_writes,
    with_replaced_writes,
    with_starts,
    with_unreported_actions,
    without_inferred_files,
)
"""The corrections in their order; each sees the result of the corrections before it."""


def corrected(seen: Observed) -> Observed:
    """Apply all :data:`CORRECTIONS`, one after the other.

    :raise SpentError: if there is no time left
    """
    for correction in CORRECTIONS:
        seen = correction(seen)
    return seen
