"""Plans: task instances to run again in the order of the data flow, and partitions to write first.

The latter were never written; :mod:`.unwritten` finds them.
"""

from __future__ import annotations

from collections import defaultdict
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.queries import answers, sql
from airflow_provider_sparklineage.history.queries.unwritten import Part, Unwritten
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.gaps import Gap


_MOST_COLUMNS = _MOST_REASONS = 20

# For each affected run, the latest completed run of its task instance.
_TASKS = f"""
WITH f AS ({sql.table_of(*sql.RUN)}),
concerned AS (
    SELECT r.* FROM runs AS r JOIN f ON r.ended = f.ended AND r.run_id = f.run_id
)
SELECT c.run_id, c.namespace, c.job, c.ended, c.dag_id, c.task_id, c.dag_run_id,
    COALESCE(c.map_index, -1) AS map_index, arg_max(r.run_id, (r.ended, r.run_id)) AS latest,
    max(r.ended) AS latest_ended
FROM concerned AS c LEFT JOIN runs AS r ON r.namespace = c.namespace AND r.dag_id = c.dag_id
    AND r.task_id = c.task_id AND r.dag_run_id = c.dag_run_id
    AND COALESCE(r.map_index, -1) = COALESCE(c.map_index, -1) AND r.state = 'COMPLETE'
GROUP BY ALL ORDER BY c.ended, c.run_id
"""
# Pairs of affected runs: in each pair the reader must run after the writer, because the reader read
# a version that the writer wrote, or read a partition or dataset that has such a version now. The
# writer will write this version again.
_ORDER = f"""
WITH f AS ({sql.table_of(*sql.RUN)}),
reads AS (
    SELECT b.* FROM bindings_by_run AS b
    JOIN runs AS r ON b.read_at = r.started AND b.reader_run_id = r.run_id
    JOIN f ON r.ended = f.ended AND r.run_id = f.run_id
), writes AS (
    SELECT c.* FROM changes_by_run AS c JOIN f ON c.valid_from = f.ended AND c.run_id = f.run_id
    WHERE c.valid_to IS NULL
)
SELECT DISTINCT b.version_run_id AS writer, b.reader_run_id AS reader
FROM reads AS b JOIN f ON f.run_id = b.version_run_id
UNION
SELECT DISTINCT c.run_id, b.reader_run_id
FROM reads AS b JOIN writes AS c ON c.namespace = b.namespace AND c.name = b.name
    AND c.cell = b.cell
UNION
SELECT DISTINCT c.run_id, b.reader_run_id
FROM (SELECT DISTINCT namespace, name, reader_run_id FROM reads WHERE extent <> 'partition') AS b
JOIN (SELECT DISTINCT namespace, name, run_id FROM writes) AS c
    ON c.namespace = b.namespace AND c.name = b.name
"""
_COLUMNS = f"""
WITH f AS ({sql.table_of(*sql.RUN)})
SELECT DISTINCT c.run_id, c.in_namespace, c.in_name, c.in_column, c.out_column
FROM columns AS c JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
WHERE c.in_column IS NOT NULL ORDER BY ALL
"""


def plan_for(
    history: sql.Rows,
    affected: Mapping[str, datetime],
    reasons: Mapping[str, Iterable[answers.Reason]],
    certain: AbstractSet[str],
) -> answers.Plan:
    """Make the plan that runs the affected runs again.

    All affected runs of one task instance are one step. The step names the instance's latest run
    that has the state COMPLETE, affected or not; without one, its latest affected run. A run that
    Airflow did not start (one of another producer) must be run by hand.

    :param history: an opened store of the history
    :param affected: the end time of each affected run, by run_id. The times are in UTC and have no
        ``tzinfo``, like the times of the tables
    :param reasons: the reasons to run each affected run again, by run_id
    :param certain: ids of the affected runs about which nothing is assumed
    """
    if not affected:
        return answers.Plan()
    tasks: dict[_Key, list[dict[str, Any]]] = defaultdict(list)
    for row in history.rows(_TASKS, sql.lists(sql.RUN, affected.items())):
        tasks[_key(row)].append(row)
    last = {key: max(rows, key=itemgetter("ended")) for key, rows in tasks.items()}
    keys = {row["run_id"]: key for key, rows in tasks.items() for row in rows}
    place = {key: (row["ended"], str(key)) for key, row in last.items()}
    waves = _waves(keys, place, history.rows(_ORDER, sql.lists(sql.RUN, affected.items())))
    columns = _columns(history, affected)
    steps, by_hand = [], []
    for key in sorted(waves, key=lambda one: (waves[one], place[one])):
        row = last[key]
        why = _reasons((one["run_id"] for one in tasks[key]), reasons, columns)
        wave = waves[key]
        runs = tuple(one["run_id"] for one in tasks[key])
        is_certain = not certain.isdisjoint(runs)
        if len(key) == 1:
            ended = answers.at_utc_if_known(row["ended"])
            by_hand.append(answers.ByHand(row["job"], row["run_id"], ended, wave, why, is_certain))
        else:
            latest = row["latest"] or row["run_id"]
            ended = answers.at_utc_if_known(row["latest_ended"] or row["ended"])
            namespace, dag_id, task_id, dag_run_id, map_index = key
            instance = (dag_id, task_id, dag_run_id, map_index)
            step = answers.Step(*instance, latest, ended, wave, why, namespace, is_certain, runs)
            steps.append(step)
    return answers.Plan(tuple(steps), tuple(by_hand))


_Key = tuple[Any, ...]
"""A task instance; a run that has no task instance has a key of its own."""


def _key(row: dict[str, Any]) -> _Key:
    instance = (row["namespace"], row["dag_id"], row["task_id"], row["dag_run_id"])
    return (row["run_id"],) if None in instance else (*instance, row["map_index"])


def _waves(
    keys: Mapping[str, _Key], place: Mapping[_Key, Any], order: Iterable[dict[str, Any]]
) -> dict[_Key, int]:
    """Give each task instance its wave: the number of the group in which it is cleared.

    A task instance has a later wave than the task instances from which it reads. In a circle of
    task instances that read from each other, the one that ended first comes first.

    :param keys: the task instance of each run
    :param place: the place of each task instance in the order of their ends
    :param order: rows with the run ids ``writer`` and ``reader``: the second run read from the
        first
    """
    before: dict[_Key, set[_Key]] = {key: set() for key in place}
    after: dict[_Key, set[_Key]] = defaultdict(set)
    for row in order:
        writer, reader = keys.get(row["writer"]), keys.get(row["reader"])
        if writer is not None and reader is not None and writer != reader:
            before[reader].add(writer)
            after[writer].add(reader)
    waves: dict[_Key, int] = {}
    wave = 0
    while before:
        bounds.check()
        ready = [key for key, others in before.items() if not others]
        if not ready:
            ready = [min(_circle(before, after), key=place.__getitem__)]
        for key in ready:
            waves[key] = wave
            del before[key]
        for key in ready:
            for other in after[key] & before.keys():
                before[other].discard(key)
        wave += 1
    return waves


def _circle(before: dict[_Key, set[_Key]], after: Mapping[_Key, set[_Key]]) -> set[_Key]:
    """Find task instances that read from each other, and from no others in ``before``.

    :param before: the task instances without a wave yet, each with those that it reads from; each
        reads from at least one
    :param after: for each task instance, those that read from it
    """
    one = next(iter(before))
    while True:
        above = _reached(one, before)
        circle = above & _reached(one, {key: after[key] & before.keys() for key in before})
        if above == circle and circle:
            return circle
        one = next(iter(above - circle))


def _reached(one: _Key, steps: Mapping[_Key, set[_Key]]) -> set[_Key]:
    reached: set[_Key] = set()
    waiting = [one]
    while waiting:
        new = steps[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def _columns(
    history: sql.Rows, affected: Mapping[str, datetime]
) -> dict[tuple[str, str, str], list[tuple[str, str]]]:
    edges = defaultdict(list)
    for row in history.rows(_COLUMNS, sql.lists(sql.RUN, affected.items())):
        edge = (row["in_column"], row["out_column"] or "all columns")
        edges[row["run_id"], row["in_namespace"], row["in_name"]].append(edge)
    return edges


def _reasons(
    runs: Iterable[str],
    reasons: Mapping[str, Iterable[answers.Reason]],
    columns: Mapping[tuple[str, str, str], list[tuple[str, str]]],
) -> tuple[answers.Reason, ...]:
    """Give the reasons of some runs, each with a sentence and with the columns of the data.

    :param runs: run ids
    :param reasons: reasons by run id
    :param columns: pairs of a source column and the column made from it; the key is the run id and
        the name of the source's dataset
    """
    by_text: dict[object, answers.Reason] = {}
    for run_id in runs:
        for reason in reasons.get(run_id, ()):
            edges = columns.get((run_id, reason.dataset.namespace, reason.dataset.name), [])
            through = tuple(
                f"{one} → {other}"
                for one, other in edges
                if not reason.columns or one in reason.columns
            )
            key = (reason.dataset, _text(reason))
            by_text.setdefault(key, _written(reason, through[:_MOST_COLUMNS]))
    return tuple(by_text.values())[:_MOST_REASONS]


def _text(reason: answers.Reason) -> str:
    name = reason.dataset.name
    values = reason.partition
    return f"{name} {Partition(tuple(values.items()))}" if values else name


def _written(reason: answers.Reason, columns: tuple[str, ...]) -> answers.Reason:
    text = _text(reason)
    if reason.cause:
        text += f", changed {reason.cause.at:%Y-%m-%d %H:%M} UTC ({reason.cause.how})"
    text = f"read {text}" if reason.is_direct else f"its source is stale: {text}"
    return replace(reason, columns=columns, text=text)


# Which jobs of a plan read a dataset that another of its jobs writes.
_FLOW = f"""
WITH j AS ({sql.table_of("job")}), a AS (
    SELECT DISTINCT a.namespace, a.name, a.side, a.job
    FROM accesses AS a SEMI JOIN j ON j.job = a.job
)
SELECT r.job AS reader, w.job AS writer FROM a AS r
JOIN a AS w ON w.namespace = r.namespace AND w.name = r.name AND w.job <> r.job
WHERE r.side = 'read' AND w.side = 'write'
GROUP BY ALL ORDER BY ALL
"""


def with_gaps(history: sql.Rows, plan: answers.Plan, gaps: Iterable[Gap]) -> answers.Plan:
    """Add to a plan the task instances that fill gaps, each after the jobs that it reads from.

    Gaps that no run can fill are left out (:attr:`.Gap.is_planned`), and so are gaps of no job.

    :param history: an opened store of the history
    """
    of_job: dict[str, list[Gap]] = defaultdict(list)
    for gap in gaps:
        if gap.is_planned and gap.job:
            of_job[gap.job].append(gap)
    if not of_job:
        return plan
    waves: dict[str, int] = {}
    for step in plan.steps:
        job = f"{step.dag_id}.{step.task_id}"
        waves[job] = max(waves.get(job, 0), step.wave)
    sources: dict[str, set[str]] = defaultdict(set)
    for row in history.rows(_FLOW, sql.lists(("job",), {(job,) for job in of_job.keys() | waves})):
        sources[row["reader"]].add(row["writer"])
    order = _waves_of_jobs({job: sources[job] & of_job.keys() for job in of_job})
    found: list[Unwritten] = []
    for job in sorted(of_job, key=lambda one: (order[one], one)):
        before = [waves[one] for one in sources[job] & waves.keys()]
        wave = max(before, default=-1) + 1
        waves[job] = max(waves.get(job, 0), wave)
        found += (_unwritten(gap, wave) for gap in of_job[job])
    return with_unwritten(plan, found)


def _waves_of_jobs(before: dict[str, set[str]]) -> dict[str, int]:
    """Give each job its place behind the jobs that it reads from; a circle begins anywhere."""
    order: dict[str, int] = {}
    waiting = {job: set(others) for job, others in before.items()}
    while waiting:
        ready = [job for job, others in waiting.items() if not others & waiting.keys()]
        for job in ready or [min(waiting)]:
            order[job] = len(order)
            del waiting[job]
    return order


def _unwritten(gap: Gap, wave: int) -> Unwritten:
    dataset = DatasetName(gap.dataset.namespace, gap.dataset.name)
    return Unwritten(Part(dataset, gap.cell), gap, None, wave)


def with_unwritten(plan: answers.Plan, missing: Iterable[Unwritten]) -> answers.Plan:
    """Add to a plan the task instances that write missing partitions.

    If no DAG run for a partition is known, or the job belongs to no DAG, a run by hand is added.
    """
    steps = {_instance(one): one for one in plan.steps}
    by_hand: dict[Part, answers.ByHand] = {}
    for one in missing:
        step = _step_of_gap(one)
        if step is None:
            run_id, ended = _last_run(one.gap)
            why = (_reason_of_gap(one),)
            hand = answers.ByHand(one.gap.job, run_id, ended, one.wave, why, is_certain=False)
            by_hand[one.output] = hand
            continue
        key = _instance(step)
        known = steps.get(key, step)
        steps[key] = replace(known, reasons=(*known.reasons, _reason_of_gap(one)))
    ordered = sorted(steps.values(), key=lambda step: step.wave)
    return answers.Plan(tuple(ordered), (*plan.by_hand, *by_hand.values()))


def _instance(step: answers.Step) -> _Key:
    return step.namespace, step.dag_id, step.task_id, step.dag_run_id, step.map_index


def _step_of_gap(one: Unwritten) -> answers.Step | None:
    gap = one.gap
    task_id = gap.job.removeprefix(f"{gap.dag_id}.")
    if gap.dag_id is None or gap.dag_run_id is None or task_id == gap.job:
        return None
    run_id, ended = _last_run(gap)
    return answers.Step(
        gap.dag_id,
        task_id,
        gap.dag_run_id,
        gap.map_index,
        run_id,
        ended,
        one.wave,
        namespace=gap.namespace,
        is_certain=False,  # it follows from learned rules
    )


def _last_run(gap: Gap) -> tuple[str, datetime | None]:
    return (gap.run.run_id, gap.run.ended) if gap.run else ("", None)


def _reason_of_gap(one: Unwritten) -> answers.Reason:
    """Give the reason to write a missing partition, with the data that leads to it, if any does."""
    why = f"{one.output.cell} is not there: {one.gap.reason.replace('_', ' ')}"
    if one.follows is None:
        text = f"{one.output.dataset.name} {why}"
        return answers.Reason(one.gap.dataset, None, text=text)
    dataset, cell = one.follows
    text = f"{why}; it is made of {dataset.name} {cell}"
    return answers.Reason(answers.Dataset(*dataset), answers.values_of(cell), text=text)
