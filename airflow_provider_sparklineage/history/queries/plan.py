"""What to run again, in the order in which data flows."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from msgspec import structs

from airflow_provider_sparklineage.history.queries.answers import (
    ByHand,
    Plan,
    Reason,
    Step,
    at_utc_if_known,
)
from airflow_provider_sparklineage.history.queries.frontier import lists, table_of
from airflow_provider_sparklineage.model.partitioning import Partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.rows import Rows

_MOST_COLUMNS = _MOST_REASONS = 20

# The latest run that completed of each task instance that is concerned.
_TASKS = f"""
WITH f AS ({table_of(run_id="VARCHAR", ended="TIMESTAMP")}),
concerned AS (
    SELECT r.* FROM runs AS r JOIN f ON r.ended = f.ended AND r.run_id = f.run_id
)
SELECT c.run_id, c.job, c.ended, c.dag_id, c.task_id, c.dag_run_id,
    COALESCE(c.map_index, -1) AS map_index, arg_max(r.run_id, r.ended) AS latest,
    max(r.ended) AS latest_ended
FROM concerned AS c LEFT JOIN runs AS r ON r.dag_id = c.dag_id AND r.task_id = c.task_id
    AND r.dag_run_id = c.dag_run_id AND COALESCE(r.map_index, -1) = COALESCE(c.map_index, -1)
    AND r.state = 'COMPLETE'
GROUP BY ALL ORDER BY c.ended, c.run_id
"""
# Which of them read what others of them wrote: then, or in what is there now and will be again.
_ORDER = f"""
WITH f AS ({table_of(run_id="VARCHAR", ended="TIMESTAMP")}),
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
WITH f AS ({table_of(run_id="VARCHAR", ended="TIMESTAMP")})
SELECT DISTINCT c.run_id, c.in_namespace, c.in_name, c.in_column, c.out_column
FROM columns AS c JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
WHERE c.in_column IS NOT NULL ORDER BY ALL
"""


def plan_for(
    history: Rows, affected: Mapping[str, datetime], reasons: Mapping[str, Iterable[Reason]]
) -> Plan:
    """Make the plan that runs affected runs again.

    A task instance is in it once, though several of its runs are affected; what is cleared is its
    latest run. What nobody's run is (of another producer) is to be run by hand.

    :param affected: ends of runs, as tables have them, by run_id
    :param reasons: by run_id
    """
    if not affected:
        return Plan()
    rows = history.rows(_TASKS, lists(("run_id", "ended"), affected.items()))
    tasks = _Tasks(rows)
    waves = _waves(tasks, history.rows(_ORDER, lists(("run_id", "ended"), affected.items())))
    columns = _columns(history, affected)
    steps, by_hand = [], []
    for key in sorted(waves, key=lambda one: (waves[one], tasks.ended(one), str(one))):
        row = tasks.row(key)
        why = _reasons(tasks.runs[key], reasons, columns)
        wave = waves[key]
        if len(key) == 1:
            by_hand.append(
                ByHand(row["job"], row["run_id"], at_utc_if_known(row["ended"]), wave, why)
            )
        else:
            latest = row["latest"] or row["run_id"]
            ended = at_utc_if_known(row["latest_ended"] or row["ended"])
            dag_id, task_id, dag_run_id, map_index = key
            steps.append(Step(dag_id, task_id, dag_run_id, map_index, latest, ended, wave, why))
    return Plan(tuple(steps), tuple(by_hand))


_Key = tuple[Any, ...]


class _Tasks:
    """Affected runs by task instance; one that is of none is by itself."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self.rows = {row["run_id"]: row for row in rows}
        self.key = {run_id: _key(row) for run_id, row in self.rows.items()}
        self.runs: dict[_Key, list[str]] = defaultdict(list)
        for run_id, key in self.key.items():
            self.runs[key].append(run_id)

    def row(self, key: _Key) -> dict[str, Any]:
        return max((self.rows[run] for run in self.runs[key]), key=lambda row: row["ended"])

    def ended(self, key: _Key) -> datetime:
        ended: datetime = self.row(key)["ended"]
        return ended


def _key(row: dict[str, Any]) -> _Key:
    instance = (row["dag_id"], row["task_id"], row["dag_run_id"])
    return (row["run_id"],) if None in instance else (*instance, row["map_index"])


def _waves(tasks: _Tasks, order: Iterable[dict[str, Any]]) -> dict[_Key, int]:
    """Give each task instance a number that is greater than those of all that it reads from.

    Of such that read from each other in a circle the one that ended first is the first.
    """
    before: dict[_Key, set[_Key]] = {key: set() for key in tasks.runs}
    after: dict[_Key, set[_Key]] = defaultdict(set)
    for row in order:
        writer, reader = tasks.key.get(row["writer"]), tasks.key.get(row["reader"])
        if writer is not None and reader is not None and writer != reader:
            before[reader].add(writer)
            after[writer].add(reader)
    waves: dict[_Key, int] = {}
    wave = 0
    while before:
        ready = [key for key, others in before.items() if not others]
        if not ready:
            circle = _circle(before, after)
            ready = [min(circle, key=lambda key: (tasks.ended(key), str(key)))]
        for key in ready:
            waves[key] = wave
            del before[key]
        for key in ready:
            for other in after[key] & before.keys():
                before[other].discard(key)
        wave += 1
    return waves


def _circle(before: dict[_Key, set[_Key]], after: Mapping[_Key, set[_Key]]) -> set[_Key]:
    """Find some that read from each other, and from no others that are left."""
    one = next(iter(before))
    while True:
        above = _reached(one, before)
        circle = above & _reached(one, {key: after[key] & before.keys() for key in before})
        if above == circle and circle:
            return circle
        one = next(iter(above - circle))


def _reached(one: _Key, steps: Mapping[_Key, set[_Key]]) -> set[_Key]:
    found: set[_Key] = set()
    waiting = [one]
    while waiting:
        new = steps[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _columns(
    history: Rows, affected: Mapping[str, datetime]
) -> dict[tuple[str, str, str], list[tuple[str, str]]]:
    found = defaultdict(list)
    for row in history.rows(_COLUMNS, lists(("run_id", "ended"), affected.items())):
        columns = (row["in_column"], row["out_column"] or "all columns")
        found[row["run_id"], row["in_namespace"], row["in_name"]].append(columns)
    return found


def _reasons(
    runs: Iterable[str],
    reasons: Mapping[str, Iterable[Reason]],
    columns: Mapping[tuple[str, str, str], list[tuple[str, str]]],
) -> tuple[Reason, ...]:
    """Add to reasons the columns through which they go, and a sentence."""
    found: dict[object, Reason] = {}
    for run_id in runs:
        for reason in reasons.get(run_id, ()):
            edges = columns.get((run_id, reason.dataset.namespace, reason.dataset.name), [])
            through = tuple(
                f"{one} → {other}"
                for one, other in edges
                if not reason.columns or one in reason.columns
            )
            known = (reason.dataset, _text(reason))
            found.setdefault(known, _written(reason, through[:_MOST_COLUMNS]))
    return tuple(found.values())[:_MOST_REASONS]


def _text(reason: Reason) -> str:
    name = reason.dataset.name
    values = reason.partition
    return f"{name} {Partition(tuple(values.items()))}" if values else name


def _written(reason: Reason, columns: tuple[str, ...]) -> Reason:
    text = _text(reason)
    if reason.cause:
        text += f", changed {reason.cause.at:%Y-%m-%d %H:%M} UTC ({reason.cause.how})"
    text = f"read {text}" if reason.is_direct else f"what it read is stale: {text}"
    return structs.replace(reason, columns=columns, text=text)
