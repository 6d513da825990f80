"""The page's answers: each asks an opened history, and leaves out data that a user may not see.

The answers are: the partitions of one dataset and their states
(:func:`partition_states`), the data upstream and downstream of a partition
(:func:`partition_graph`), the columns of which a column is made, and those made of it
(:func:`column_graph`), the runs to repeat (:func:`rerun_plans`), and the differences between a
run and the run before it (:func:`run_changes`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.history.queries.column_graph import Column, ColumnGraph
from airflow_provider_sparklineage.lineage.partitions.comparison import MISMATCHES
from airflow_provider_sparklineage.model.exceptions import LimitError
from airflow_provider_sparklineage.plugins.history import permissions
from airflow_provider_sparklineage.plugins.history.catalog import catalog_of, named
from airflow_provider_sparklineage.plugins.history.opened import cell_of, partition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.failed_writes import FailedWrite
    from airflow_provider_sparklineage.history.queries.gaps import Gap
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.plugins.history.opened import OpenedHistory
    from airflow_provider_sparklineage.plugins.history.permissions import Visibility

    _IsNamed = Callable[[Mapping[str, Any], Mapping[str, str] | None], bool]

# The partitions of a dataset and the state of each, in few bytes: there may be 50,000.


# The last write of each cell. A write of the whole dataset has the cell null.
_LAST_WRITES = """
SELECT cell, max(partition) AS partition, max_by(run_id, valid_from) AS run_id,
       max(valid_from) AS written, bool_or(valid_to IS NULL) AS is_there
FROM changes
WHERE namespace = $namespace AND name = $name
GROUP BY cell
"""
_READ_PARTITIONS = """
SELECT DISTINCT cell, partition FROM accesses
WHERE namespace = $namespace AND name = $name AND side = 'read' AND extent = 'partition'
"""


def partition_states(
    dataset: DatasetName, history: OpenedHistory, visibility: Visibility, *, is_quick: bool = False
) -> dict[str, Any]:
    """List the partitions of a dataset that a user may see, in the order of their names.

    :param is_quick: whether to leave out the search for stale and due partitions, which may take
        seconds
    :return: a dict with five keys. ``short``: the short name of the dataset. ``runs``: a list of
        the runs that wrote partitions last, as far as the user may see them. ``causes``: the causes
        of stale partitions, by name (see :func:`_stale_causes`). ``partitions``: a dict of four
        columns of equal length, with an item for each partition: ``names``; ``states``, a text of
        one letter for each (see :class:`_PartitionState`); ``written``, the times of the last
        writes in seconds since the epoch, None if no write is known; and ``runs``, the indexes of
        the runs of these writes in the list ``runs``, None for a run that is not in this list or
        not known. ``unjudged``: sentences on what is not known about partitions that may be
        missing, if the user may see all jobs that accessed the dataset; and on datasets that the
        user may see, whose changes do not make partitions stale, because they are not known
    """
    named = dataset._asdict()
    shown = permissions.named_partitions(dataset, history, visibility)
    written = {row["cell"]: row for row in history.rows(_LAST_WRITES, named)}
    failed = {one.cell: one for one in history.failed_parts() if one.dataset == dataset}
    ids = {row["run_id"] for row in written.values()} | {one.run_id for one in failed.values()}
    known = permissions.runs_by_id(ids, history)
    stale, gaps = ((), ()) if is_quick else (history.stale(dataset), history.gaps(dataset))
    # The sentences name partitions, so that a user has to see all jobs of the dataset.
    unjudged = [] if is_quick or shown.cells is not None else history.unjudged(dataset)
    causes = {cell: one for one in stale if shown.has(cell := cell_of(one["partition"]))}
    # A gap may be seen by the user who may see the job that should have written it.
    due = {
        cell: partition_of(one["partition"])
        for one in gaps
        if shown.has(cell := cell_of(one["partition"])) or (one.get("job") and visibility.sees(one))
    }
    read = {
        r["cell"]: r["partition"]
        for r in history.rows(_READ_PARTITIONS, named)
        if shown.has(r["cell"])
    }
    there = {row.cell: row for row in _written_states(written, known, causes, is_quick=is_quick)}
    there |= {
        cell: _PartitionState(one.partition or "", state_of_failed(one), cell, one.at, one.run_id)
        for cell, one in failed.items()
        if cell not in there or there[cell].state != "s"
    }
    seen = [row for row in there.values() if shown.has(row.cell)]
    rows = [*seen, *_unwritten_states(read, due, there)]
    visible = permissions.visible_runs(known, visibility)
    names = catalog_of(history).names(visibility)
    return {
        "short": names.get(dataset, dataset.name),
        "partitions": _in_lists(sorted(rows, key=lambda row: row.name), visible),
        "runs": list(visible.values()),
        "causes": _stale_causes(causes.values(), visibility, history, names),
        "unjudged": [
            *(one["text"] for one in unjudged if not one["job"] or visibility.sees(one)),
            *([] if is_quick else _not_seen_by_stale(dataset, history, visibility)),
        ],
    }


_NOT_LOOKED_FOR = (
    "Sources whose changes are not known were not looked for: that takes more time or memory than "
    "a page has. Ask on the command line: airflow sparklineage stale NAME --unjudged."
)


def _not_seen_by_stale(
    dataset: DatasetName, history: OpenedHistory, visibility: Visibility
) -> list[str]:
    """Give the sentences on sources whose changes are not known, if there is time to find them."""
    try:
        catalog = catalog_of(history)
        return history.unjudged_of_stale(dataset, lambda one: catalog.is_visible(*one, visibility))
    except LimitError:
        return [_NOT_LOOKED_FOR]


class _PartitionState(NamedTuple):
    """A partition and its state, which is one letter.

    =======  =====================================================================================
    ``s``    stale: made of data that has been written again since
    ``m``    mismatched: its run read or wrote other partitions than expected
    ``w``    a run failed that wrote it, and none has written it since
    ``f``    fresh: it exists, and is none of these
    ``x``    missing: it existed, and has been removed
    ``u``    unknown writer: it was read, and the history knows no run that wrote it
    ``n``    never written, though a run of its task was due
    ``c``    it exists, and is not mismatched; whether it is stale is not worked out yet
    =======  =====================================================================================

    :param cell: the canonical text of the partition; None for all of the dataset
    :param written: the time of the partition's last write; None if no write is known
    :param run_id: the run that wrote the partition last; empty if no write is known
    """

    name: str
    state: str
    cell: str | None
    written: datetime | None = None
    run_id: str = ""


def _written_states(
    written: dict[str | None, dict[str, Any]],
    known: dict[str, dict[str, Any]],
    stale: Collection[str | None],
    *,
    is_quick: bool,
) -> Iterator[_PartitionState]:
    fresh = "c" if is_quick else "f"
    whole = written.get(None)
    for cell, row in written.items():
        if cell is None and len(written) > 1 and not row["is_there"]:
            continue  # the whole dataset is gone; only partitions that were written later are left
        # A later write of the whole dataset replaced this partition, and has its data now.
        is_again = whole is not None and whole["is_there"] and whole["written"] >= row["written"]
        is_stale = cell in stale or (is_again and None in stale)
        is_there = row["is_there"] or is_again
        state = _state(is_there, known.get(row["run_id"], {}), is_stale) or fresh
        yield _PartitionState(row["partition"] or "", state, cell, row["written"], row["run_id"])


def _state(is_there: bool, run: dict[str, Any], is_stale: bool) -> str:
    if not is_there:
        return "x"
    if is_stale:
        return "s"
    return "m" if run.get("check_status") in MISMATCHES else ""


def state_of_failed(write: FailedWrite) -> str:
    """Give the state of a part whose last write failed: ``m`` or ``w``."""
    return "m" if write.check_status in MISMATCHES else "w"


def _unwritten_states(
    read: dict[str, str], due: dict[str | None, str], written: Collection[str | None]
) -> Iterator[_PartitionState]:
    for cell in (due.keys() | read.keys()).difference(written):
        name = due.get(cell) or read.get(cell or "") or ""
        yield _PartitionState(name, "n" if cell in due else "u", cell)


def _in_lists(rows: list[_PartitionState], visible: dict[str, dict[str, Any]]) -> dict[str, Any]:
    index = {run_id: n for n, run_id in enumerate(visible)}
    return {
        "names": [row.name for row in rows],
        "states": "".join(row.state for row in rows),
        "written": [permissions.epoch_seconds(row.written) for row in rows],
        "runs": [index.get(row.run_id) for row in rows],
    }


def _stale_causes(
    stale: Iterable[dict[str, Any]],
    visibility: Visibility,
    history: OpenedHistory,
    names: Mapping[DatasetName, str],
) -> dict[str, Any]:
    """Give the cause of each stale partition, by name, if the user may see the cause's run.

    :param stale: the stale partitions, as :meth:`.OpenedHistory.stale` gives them
    :return: for each name, the ``dataset``, the name of the ``partition`` and the ``run`` of the
        change that is the cause, ``at`` (its time) and ``how`` (the mode of the write)
    """
    caused = [(one, one.get("cause") or {}) for one in stale]
    known = permissions.runs_by_id({permissions.run_id_of(cause) for _, cause in caused}, history)
    seen = permissions.visible_runs(known, visibility)
    return {
        partition_of(one["partition"]): {
            "dataset": named(cause.get("dataset"), names),
            **{key: cause.get(key) for key in ("at", "how")},
            "partition": partition_of(cause.get("partition")),
            "run": run,
        }
        for one, cause in caused
        if (run := seen.get(permissions.run_id_of(cause)))
    }


# The graph ends at a run that the user may not see: the data that the run read and wrote is not
# shown. If a visible run names the partition, the graph shows that the partition's version has a
# writer, but not the writer's name.

MAX_HOPS = 5000
"""The most hops of one direction in an answer; the answer has only the number of the others."""
MAX_DEPTH = 50

_WRITTEN_COLUMNS = """
SELECT DISTINCT out_column AS column FROM columns
WHERE out_namespace = $namespace AND out_name = $name AND out_column IS NOT NULL
  AND list_contains($ids, run_id)
"""
_READ_COLUMNS = """
SELECT DISTINCT in_column AS column FROM columns
WHERE in_namespace = $namespace AND in_name = $name AND list_contains($ids, run_id)
"""


class Selection(NamedTuple):
    """The object of a question: a dataset, a partition or a column, and a depth.

    :param partition: name of the partition; None for all of the dataset
    :param column: name of the column; None for all columns
    :param depth: the most runs in a row that are followed in one direction
    """

    dataset: DatasetName
    partition: str | None = None
    column: str | None = None
    depth: int = 3


def partition_graph(
    wanted: Selection, history: OpenedHistory, visibility: Visibility
) -> dict[str, Any]:
    """Give the data from which a partition was made, and the data that was made from it.

    Each piece of this data is a *hop*: a version of a partition, with the run that wrote it
    (:class:`~airflow_provider_sparklineage.history.queries.answers.Hop`).

    :return: ``upstream`` and ``downstream``, each with ``hops``, the number of ``hidden`` hops, and
        ``more``, the number of hops beyond :data:`MAX_HOPS`; ``columns``, those that can be
        selected; and ``is_more``, whether there are hops downstream beyond the depth
    """
    shown = permissions.checked(*wanted[:3], history, visibility)
    up = history.trace(wanted.dataset, wanted.partition, wanted.column, wanted.depth)
    # One hop more tells whether there are more.
    further = history.downstream(wanted.dataset, wanted.partition, wanted.column, wanted.depth + 1)
    down = [hop for hop in further if hop["depth"] <= wanted.depth]
    ids = {run_id for h in (*up, *down) for run_id in (permissions.run_id_of(h), *h["via"])}
    known = permissions.runs_by_id(ids, history)
    seen = permissions.visible_runs(known, visibility)
    is_named = permissions.naming(known, seen, history)
    up = [hop for hop in up if hop["depth"] or shown.has(cell_of(hop["partition"]))]
    upstream, downstream = _upstream(up, known, seen, is_named), _downstream(down, seen)
    names = catalog_of(history).names(visibility)
    for hop in (*upstream["hops"], *downstream["hops"]):
        hop["dataset"] = named(hop["dataset"], names)
    return {
        "upstream": upstream,
        "downstream": downstream,
        "columns": _known_columns(wanted, history, upstream["hops"], downstream["hops"]),
        "is_more": len(further) > len(down),
    }


def _upstream(
    hops: list[dict[str, Any]],
    known: dict[str, Any],
    seen: dict[str, Any],
    is_named: _IsNamed,
) -> dict[str, Any]:
    """Select the upstream hops (see :func:`partition_graph`) that a user may see.

    The first hop is the partition itself. Another hop is selected if a visible run has read it to
    make a selected hop. A hop whose own writer is hidden is shown without this writer, if a visible
    run names its partition.

    :param known: all runs of the hops, by id
    :param seen: the runs that the user may see, by id
    :param is_named: tells whether the user may see the name of a partition
    :return: as that of :func:`_downstream`
    """
    kept: list[dict[str, Any]] = []
    readers: set[str] = set()
    for hop in sorted(hops, key=lambda hop: hop["depth"]):
        via = [run_id for run_id in hop["via"] if run_id in readers]
        if hop["depth"] and not via:
            continue
        run_id = permissions.run_id_of(hop)
        is_hidden = run_id in known and run_id not in seen
        if is_hidden and not is_named(hop["dataset"], hop["partition"]):
            continue
        kept.append(_shown_hop(hop, via, seen.get(run_id), is_hidden=is_hidden))
        readers |= {run_id} & seen.keys()
    return _bounded_hops(kept, len(hops))


def _downstream(hops: list[dict[str, Any]], seen: dict[str, Any]) -> dict[str, Any]:
    """Select the downstream hops (see :func:`partition_graph`) that a user may see.

    A hop is selected if the user may see the run that wrote it, and if this run read the partition
    of the question, or a hop that is selected already.

    :param seen: the runs that the user may see, by id
    :return: the selected ``hops``, the number of ``hidden`` ones, and ``more``: the number beyond
        :data:`MAX_HOPS`
    """
    kept: list[dict[str, Any]] = []
    writers: set[str] = set()
    for hop in sorted(hops, key=lambda hop: hop["depth"]):
        run_id = permissions.run_id_of(hop)
        via = [one for one in hop["via"] if one in writers]
        # At the first depth the run has read the partition itself, so the writer does not matter.
        if run_id not in seen or (hop["depth"] > 1 and not via):
            continue
        kept.append(_shown_hop(hop, via, seen[run_id], is_hidden=False))
        writers.add(run_id)
    return _bounded_hops(kept, len(hops))


def _bounded_hops(kept: list[dict[str, Any]], count: int) -> dict[str, Any]:
    return {
        "hops": kept[:MAX_HOPS],
        "hidden": count - len(kept),
        "more": max(0, len(kept) - MAX_HOPS),
    }


def _shown_hop(
    hop: dict[str, Any], via: list[str], run: dict[str, Any] | None, *, is_hidden: bool
) -> dict[str, Any]:
    return {
        **{key: hop.get(key) for key in _KEYS_OF_HOP},
        "partition": partition_of(hop["partition"]),
        "via": via,
        "run": run,
        "is_hidden": is_hidden,
    }


_KEYS_OF_HOP = ("depth", "dataset", "column", "transformations", "is_certain", "note")


def _known_columns(
    wanted: Selection, history: OpenedHistory, *sides: list[dict[str, Any]]
) -> list[str]:
    """List the columns that runs have written to the partition, or have read from it.

    :param sides: the hops upstream, then the hops downstream
    """
    named = wanted.dataset._asdict()
    found: set[str] = set()
    for sql, hops, depth in zip((_WRITTEN_COLUMNS, _READ_COLUMNS), sides, (0, 1), strict=True):
        ids = {permissions.run_id_of(hop) for hop in hops if hop["depth"] == depth} - {""}
        if ids:
            found |= {r["column"] for r in history.rows(sql, {**named, "ids": sorted(ids)})}
    return sorted(found)


def column_graph(
    wanted: Selection, history: OpenedHistory, visibility: Visibility
) -> dict[str, Any]:
    """Give the columns of which a column was made, and the columns that were made of it.

    :return: ``edges``, each with the id of its ``run``, the ``side`` of the question on which it
        is, its ``source`` and its ``target`` (a dataset and a ``column``, which is None for a
        condition on all columns), and ``type``, ``subtype``, ``masking`` and ``description``;
        ``runs`` by id; ``parts``: for each run and dataset that it wrote, the number of
        ``partitions``, and the name of the first ``partition``; the ``columns`` of the dataset;
        ``further``, the columns that can be followed further; ``hidden``, the number of runs that
        the user may not see; and ``is_cut``, whether there are more edges
    :raise HistoryError: if the user may not see the partition or the column
    """
    permissions.checked(*wanted[:3], history, visibility)
    graph = ColumnGraph(history, visibility.sees)
    writers, readers = graph.begin(wanted.dataset, wanted.partition)
    if wanted.column:
        column = Column(wanted.dataset, wanted.column)
        graph.follow_up({column: writers}, wanted.depth)
        graph.follow_down({column: readers}, wanted.depth)
    names = catalog_of(history).names(visibility)
    shown = {one["run"] for one in graph.edges}
    return {
        "short": names.get(wanted.dataset, wanted.dataset.name),
        "edges": [_shown_edge(edge, names) for edge in graph.edges],
        "runs": {
            run_id: permissions.plain(run) for run_id, run in graph.runs.items() if run_id in shown
        },
        "parts": graph.parts(shown),
        "columns": graph.columns_of(wanted.dataset, writers, readers),
        "further": [
            {"side": side, **named(column.dataset._asdict(), names), "column": column.name}
            for side, column in graph.further
        ],
        "hidden": len(graph.hidden),
        "is_cut": graph.is_cut,
    }


def _shown_edge(edge: dict[str, Any], names: Mapping[DatasetName, str]) -> dict[str, Any]:
    ends = {
        end: {**named(edge[end]._asdict(), names), "column": edge[f"{end}_column"]}
        for end in ("source", "target")
    }
    return {key: edge[key] for key in _KEYS_OF_EDGE} | ends


_KEYS_OF_EDGE = ("run", "side", "type", "subtype", "masking", "description")


_PLAN_PARTS = ("steps", "by_hand")


def rerun_plans(
    wanted: Selection, history: OpenedHistory, visibility: Visibility
) -> dict[str, Any]:
    """Give two plans: to repeat the runs that used a partition, and to make the partition fresh.

    :return: ``impact`` and ``refresh``, each with ``steps`` in the order in which data flows,
        steps to do ``by_hand``, the number of ``hidden`` steps, and ``left_out``, as
        :meth:`.OpenedHistory.plan` gives it
    """
    permissions.checked(*wanted[:3], history, visibility)
    plans = {
        "impact": history.plan(wanted.dataset, wanted.partition, wanted.column),
        "refresh": history.refresh(wanted.dataset, _is_partition(wanted.partition)),
    }
    shown = _shown_plans(plans.values(), history, visibility)
    return dict(zip(plans, shown, strict=True))


def _is_partition(partition: str | None) -> Callable[[Mapping[str, str] | None], bool]:
    if partition is None:
        return lambda dimensions: True  # noqa: ARG005
    wanted = cell_of_text(partition)
    cell = wanted.cell if wanted else ""  # no partition has this cell
    return lambda dimensions: cell_of(dimensions) == cell


def refresh_plan(
    dataset: DatasetName,
    spans: Collection[tuple[str, str]],
    history: OpenedHistory,
    visibility: Visibility,
) -> dict[str, Any]:
    """Give the plan to make some partitions of a dataset fresh, e.g. those of a range of time.

    Partitions that the user may not see are left out: else the number of hidden steps would tell
    whether there is a hidden partition between two names.

    :param spans: the first and the last name of each span of names, in the order of code points
    :return: ``refresh``, as :func:`rerun_plans` gives it
    """
    shown = permissions.named_partitions(dataset, history, visibility)

    def is_wanted(dimensions: Mapping[str, str] | None) -> bool:
        name = partition_of(dimensions)
        is_in = any(first <= name <= last for first, last in spans)
        return is_in and shown.has(cell_of(dimensions))

    plan = history.refresh(dataset, is_wanted)
    [found] = _shown_plans([plan], history, visibility)
    return {"refresh": found}


def plan_of_all(history: OpenedHistory, gaps: list[Gap], visibility: Visibility) -> dict[str, Any]:
    """Give the plan to repeat what is stale of all datasets, and to write what never was.

    :param gaps: the partitions that were never written
    :return: a plan as those of :func:`rerun_plans`; with ``more``, the number of steps beyond
        :data:`MAX_STEPS`
    """
    plan = history.plan_of_all(gaps)
    [shown] = _shown_plans([plan], history, visibility)
    more = max(0, len(shown["steps"]) - MAX_STEPS)
    return {**shown, "steps": shown["steps"][:MAX_STEPS], "more": more}


MAX_STEPS = 5000
"""The most steps in the plan of all datasets."""


def _shown_plans(
    plans: Collection[dict[str, Any]], history: OpenedHistory, visibility: Visibility
) -> list[dict[str, Any]]:
    """Select the steps of plans that a user may see."""
    entries = [one for plan in plans for part in _PLAN_PARTS for one in plan[part]]
    ids = {one["run_id"] for one in entries}
    causes = {
        permissions.run_id_of(reason.get("cause") or {}) for e in entries for reason in e["reasons"]
    }
    known = permissions.runs_by_id(ids | causes, history)
    seen = permissions.visible_runs(known, visibility)
    is_named = permissions.naming(known, seen, history)
    return [_shown_plan(plan, seen, is_named, visibility) for plan in plans]


def _shown_plan(
    plan: dict[str, Any],
    seen: dict[str, dict[str, Any]],
    is_named: _IsNamed,
    visibility: Visibility,
) -> dict[str, Any]:
    parts = {
        part: [
            {
                "run": run,
                "wave": one.get("wave", 0),
                "reasons": [*dict.fromkeys(_reason_text(why, is_named) for why in one["reasons"])],
                "may_clear": visibility.clears(run) and not is_elsewhere,
                "is_elsewhere": is_elsewhere,
                "is_certain": one.get("is_certain", True),
            }
            for one in plan[part]
            if (run := seen.get(one["run_id"]) or _due_run(one, visibility))
            for is_elsewhere in [visibility.is_of_another_airflow(one.get("namespace"))]
        ]
        for part in _PLAN_PARTS
    }
    count = sum(len(plan[part]) for part in _PLAN_PARTS)
    hidden = count - sum(map(len, parts.values()))
    return {**parts, "hidden": hidden, "left_out": plan.get("left_out", 0)}


_KEYS_OF_RUN = (
    "namespace",
    "dag_id",
    "task_id",
    "dag_run_id",
    "map_index",
    "logical_date",
    "ended",
    "state",
)


def _due_run(step: dict[str, Any], visibility: Visibility) -> dict[str, Any] | None:
    """Give a task instance that has not run, as a run of which only its names are known.

    :return: None if the step has a run, or the user may not see the DAG
    """
    if step["run_id"]:
        return None
    if not step.get("dag_id"):  # Airflow has no DAG run for it
        why = [reason["text"] for reason in step["reasons"][:1]]
        nameless = dict.fromkeys(("dag_id", "task_id", "dag_run_id", "map_index"))
        run = {"run_id": " ".join([str(step["job"]), *why]), "job": step["job"], "ended": None}
        return (
            {**nameless, **run, "logical_date": None, "state": None}
            if visibility.sees(run)
            else None
        )
    names = {key: step[key] for key in ("dag_id", "task_id", "dag_run_id", "map_index")}
    job = f"{step['dag_id']}.{step['task_id']}"
    run_id = f"{job}/{step['dag_run_id']}/{step['map_index']}"
    run = {"run_id": run_id, "job": job, "logical_date": None, "ended": None, "state": None}
    return {**run, **names} if visibility.sees(names) else None


def _reason_text(reason: dict[str, Any], is_named: _IsNamed) -> str:
    """Give the text of the reason to repeat a run.

    The text does not name the partition if only runs that the user may not see name it.

    :param is_named: tells whether the user may see the name of a partition
    """
    if is_named(reason["dataset"], reason["partition"]):
        return str(reason["text"])
    return f"read {reason['dataset']['name']}"


MAX_CHANGES = 1000
"""The most changes in an answer; the answer has only the number of the others."""

_WRITING_TASKS = """
SELECT DISTINCT dag_id, job FROM accesses
WHERE namespace = $namespace AND name = $name AND side = 'write'
    AND job IN (SELECT job FROM runs WHERE state = 'COMPLETE')
"""


def run_changes(
    wanted: Selection, history: OpenedHistory, visibility: Visibility
) -> dict[str, Any]:
    """List the differences between runs of the tasks that write a dataset, the last run first.

    A change names only data that its own run names, so it may be shown to a user who may see the
    run.

    :return: ``changes``, each with its ``run``; ``more``, the number of changes left out; ``tasks``
        that were compared; ``hidden``, the number of writing tasks that the user may not see
    """
    writers = history.rows(_WRITING_TASKS, wanted.dataset._asdict())
    tasks = sorted({task["job"] for task in writers if visibility.sees(task)})
    found = [change for task in tasks for change in history.drift(task)]
    known = permissions.runs_by_id({permissions.run_id_of(one) for one in found}, history)
    seen = permissions.visible_runs(known, visibility)
    names = catalog_of(history).names(visibility)
    changes = [
        {"run": run, "dataset": named(one["dataset"], names)}
        | {key: one[key] for key in ("kind", "column", "message")}
        for one in found
        if (run := seen.get(permissions.run_id_of(one)))
    ]
    changes.sort(key=lambda one: one["run"]["ended"] or "", reverse=True)
    return {
        "tasks": tasks,
        "hidden": len({task["job"] for task in writers}) - len(tasks),
        "changes": changes[:MAX_CHANGES],
        "more": max(0, len(changes) - MAX_CHANGES),
    }
