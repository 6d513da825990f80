"""What is not there, and would have been made of something: planned by the pattern of its task.

No run has read anything for a partition that was never written, so that nothing leads to it from
what its task reads. Two things that were learned do together: the pattern of the task says which
partitions follow from one that it reads, and :mod:`.gaps` which partitions are due and not there,
and of which DAG run. What follows and is due is planned.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.history.queries.answers import (
    ByHand,
    Dataset,
    Plan,
    Reason,
    Step,
    values_of,
)
from airflow_provider_sparklineage.history.queries.gaps import gaps
from airflow_provider_sparklineage.history.queries.patterns.following import Following
from airflow_provider_sparklineage.history.queries.patterns.observed import known_of, learned_of
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from airflow_provider_sparklineage.history.queries.gaps import Gap
    from airflow_provider_sparklineage.history.queries.rows import Rows

_OUTPUTS = """
SELECT DISTINCT namespace, name FROM changes
WHERE run_id IN (
    SELECT reader_run_id FROM bindings WHERE namespace = $namespace AND name = $name
) AND NOT (namespace = $namespace AND name = $name)
ORDER BY namespace, name
"""
_PLANNED = frozenset({"failed", "not_written", "no_run"})
"""Reasons of gaps that running a task helps: not what is running, nor what somebody removed."""


class Part(NamedTuple):
    """A partition of a dataset."""

    dataset: DatasetName
    cell: str


class Unwritten(NamedTuple):
    """A partition that is due and not there, and follows from what was asked about.

    :param follows: from which part it follows; None: only that it is due was asked
    :param wave: in which it can be written, counted as :class:`~.answers.Step` does
    """

    output: Part
    gap: Gap
    follows: Part | None = None
    wave: int = 0


class _Output:
    """What is due of a dataset and not there, and how it follows from what its tasks read."""

    def __init__(self, history: Rows, name: DatasetName) -> None:
        self._due: dict[frozenset[tuple[str, str]], Gap] = {
            frozenset(gap.partition.items()): gap
            for gap in gaps(history, name)
            if gap.reason in _PLANNED
        }
        self._labels = {frozenset(label for label, _ in due) for due in self._due}
        known = list(known_of(history, name)) if self._due else []
        self._learned: dict[DatasetName, list[tuple[str, Following]]] = defaultdict(list)
        for pattern, learned in learned_of(history, name) if self._due else ():
            source = DatasetName(pattern.input.namespace, pattern.input.name)
            following = Following(learned.relation, known)
            self._learned[source].append((pattern.job, following))

    def following(self, part: Part) -> Iterator[Gap]:
        """Give what is due and follows from a part, by the pattern of the task that writes it."""
        for job, rule in self._learned[part.dataset]:
            for cell in rule.of(part.cell):
                values = values_of(cell) or {}
                for labels in self._labels:
                    key = frozenset((k, v) for k, v in values.items() if k in labels)
                    gap = self._due.get(key)
                    if gap and gap.job == job:
                        yield gap


class _Outputs:
    """What is made of datasets; each is looked at once."""

    def __init__(self, history: Rows) -> None:
        self._history = history
        self._names: dict[DatasetName, list[DatasetName]] = {}
        self._known: dict[DatasetName, _Output] = {}

    def of(self, dataset: DatasetName) -> Iterator[tuple[DatasetName, _Output]]:
        """Give the datasets that were made of one."""
        if dataset not in self._names:
            rows = self._history.rows(_OUTPUTS, dataset._asdict())
            self._names[dataset] = [DatasetName(row["namespace"], row["name"]) for row in rows]
        for name in self._names[dataset]:
            if name not in self._known:
                self._known[name] = _Output(self._history, name)
            yield name, self._known[name]


def unwritten(history: Rows, parts: Mapping[Part, int]) -> list[Unwritten]:
    """Find what is due, is not there and follows from parts, and what follows from that in turn.

    :param parts: the first wave in which each can be read
    """
    outputs = _Outputs(history)
    found: dict[Part, Unwritten] = {}
    waiting = dict(parts)
    last = max(parts.values(), default=0)
    while waiting:
        new: dict[Part, int] = {}
        for part, wave in waiting.items():
            for name, missing in outputs.of(part.dataset):
                for gap in missing.following(part):
                    output = Part(name, gap.cell)
                    before = found.get(output)
                    if before is None or before.wave < wave <= last + len(found):
                        found[output] = Unwritten(output, gap, part, wave)
                        new[output] = wave + 1
        waiting = new
    return list(found.values())


def with_unwritten(plan: Plan, found: Iterable[Unwritten]) -> Plan:
    """Add to a plan the task instances that write what is not there, each in its wave.

    Where no DAG run is known that it is of, it is to be run by hand; so is a job of no DAG.
    """
    steps = {(one.dag_id, one.task_id, one.dag_run_id): one for one in plan.steps}
    by_hand: dict[Part, ByHand] = {}
    for one in found:
        step = _step(one)
        if step is None:
            run_id, ended = _last(one.gap)
            why = (_reason(one),)
            by_hand[one.output] = ByHand(one.gap.job, run_id, ended, one.wave, why)
            continue
        key = (step.dag_id, step.task_id, step.dag_run_id)
        known = steps.get(key, step)
        steps[key] = replace(known, reasons=(*known.reasons, _reason(one)))
    ordered = sorted(steps.values(), key=lambda step: step.wave)
    return Plan(tuple(ordered), (*plan.by_hand, *by_hand.values()))


def plan_of_gaps(dataset: DatasetName, found: Iterable[Gap]) -> Plan:
    """Make the plan that writes what is due and not there, and that running a task again helps."""
    return with_unwritten(
        Plan(), (Unwritten(Part(dataset, gap.cell), gap) for gap in found if gap.reason in _PLANNED)
    )


def _step(one: Unwritten) -> Step | None:
    gap = one.gap
    task_id = gap.job.removeprefix(f"{gap.dag_id}.")
    if gap.dag_id is None or gap.dag_run_id is None or task_id == gap.job:
        return None
    return Step(gap.dag_id, task_id, gap.dag_run_id, -1, *_last(gap), one.wave)


def _last(gap: Gap) -> tuple[str, datetime | None]:
    return (gap.run.run_id, gap.run.ended) if gap.run else ("", None)


def _reason(one: Unwritten) -> Reason:
    """Say what is missing, and of what it would have been made."""
    why = f"{one.output.cell} is not there: {one.gap.reason.replace('_', ' ')}"
    if one.follows is None:
        return Reason(Dataset(*one.output.dataset), one.gap.partition, text=why)
    dataset, cell = one.follows
    text = f"{why}; it is made of {dataset.name} {cell}"
    return Reason(Dataset(*dataset), values_of(cell), text=text)
