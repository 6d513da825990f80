"""Rules and the tasks that they are for: rules and globs that match nothing, tasks with two."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.task_rules import is_like
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.model.task_rules import TaskNames, TaskRule

_NAMED = 3
_WHAT = {
    "dag_id": "no DAG with a Spark operator",
    "task_id": "no task of a Spark operator",
    "operator": "no Spark operator",
    "tags": "no tag of a DAG with a Spark operator",
}


class Matches(Frozen, frozen=True):
    """Which tasks each of some rules is for, in the order of the rules."""

    rules: Sequence[TaskRule]
    tasks: Sequence[list[TaskNames]]

    @classmethod
    def of(cls, rules: Sequence[TaskRule], tasks: Iterable[TaskNames]) -> Matches:
        """Match rules with tasks."""
        by_dag: dict[str, list[TaskNames]] = defaultdict(list)
        for task in tasks:
            by_dag[task.dag_id].append(task)
        # Each rule with all DAGs, so that a thousand globs are compiled once.
        return cls(rules, [[*_matching(rule, by_dag)] for rule in rules])

    def numbers(self) -> Mapping[TaskNames, list[int]]:
        """Give the numbers of the rules that are for each task."""
        found: dict[TaskNames, list[int]] = defaultdict(list)
        for number, tasks in enumerate(self.tasks):
            for task in tasks:
                found[task].append(number)
        return found

    def unmatched(self, tasks: Sequence[TaskNames]) -> Iterator[str]:
        """Say which rules, and which globs of others, are for no task.

        :param tasks: all that there are
        """
        for number, (rule, matching) in enumerate(zip(self.rules, self.tasks, strict=True)):
            if matching:
                # A glob that is the only one of its key has matched all of these.
                globs = [(key, globs) for key, globs in rule.globs if len(globs) > 1]
                for text in _dead(globs, matching):
                    yield f"{called(rule, number)}: {text}."
            else:
                reasons = "; ".join(_dead(rule.globs, tasks)) or "no task has all that it asks for"
                yield f"{called(rule, number)} is for no task: {reasons}."

    def doubled(self, chosen: set[TaskNames]) -> Iterator[str]:
        """Say of which tasks, among those chosen, several rules speak; the first acts."""
        by_rules: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for task, numbers in self.numbers().items():
            if len(numbers) > 1 and task in chosen:
                by_rules[tuple(numbers)].append(f"{task.dag_id}.{task.task_id}")
        for (first, *others), tasks in sorted(by_rules.items()):
            rest = " or ".join(called(self.rules[n], n).lower() for n in others)
            acting = called(self.rules[first], first)
            yield f"{acting} acts for {some(tasks, _NAMED)}, and never {rest}."


def called(rule: TaskRule, number: int) -> str:
    """Name a rule for people, at the begin of a sentence."""
    return f"Rule {number + 1}" + (f" (line {rule.line})" if rule.line else "")


def _matching(rule: TaskRule, by_dag: dict[str, list[TaskNames]]) -> Iterator[TaskNames]:
    dags = dict(rule.globs).get("dag_id")
    for dag_id, tasks in by_dag.items():
        if dags is None or any(is_like(glob, dag_id) for glob in dags):
            yield from filter(rule.matches, tasks)


def _dead(
    by_key: Iterable[tuple[str, tuple[str, ...]]], tasks: Sequence[TaskNames]
) -> Iterator[str]:
    for key, globs in by_key:
        values = {value for task in tasks for value in task.values(key)}
        for glob in globs:
            if not any(is_like(glob, value) for value in values):
                yield f"{_WHAT[key]} is like {glob!r}"
