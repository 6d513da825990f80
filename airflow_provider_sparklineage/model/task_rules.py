"""Rules that are for some tasks: by which globs they choose them, and by which names of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.frozen import Frozen
from airflow_provider_sparklineage.model.globs import compiled, is_glob

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.model.rule_files.text import LineNumbers

Globs = tuple[tuple[str, tuple[str, ...]], ...]
"""Of a rule, by the key that they stand at."""


class TaskNames(Frozen, frozen=True):
    """What rules know of a task.

    :param task_id: with the ids of the groups that it is in, as Airflow writes it
    :param operators: all names of its class, and of the classes that this inherits from
    :param tags: of the DAG
    """

    dag_id: str
    task_id: str
    operators: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def values(self, key: str) -> tuple[str, ...]:
        """Give what the globs of a key are matched with; one that fits is enough."""
        if key == "operator":
            return self.operators
        if key == "tags":
            return self.tags
        return (self.dag_id if key == "dag_id" else self.task_id,)


class TaskRule(Frozen, frozen=True):
    """A rule for some tasks.

    :param globs: a rule has those keys that it chooses by
    :param line: where it stands in its file
    """

    globs: Globs
    line: int = 0

    def matches(self, task: TaskNames) -> bool:
        """Whether the rule is for a task: it has one value at least for each key."""
        return all(
            any(is_like(glob, value) for glob in globs for value in task.values(key))
            for key, globs in self.globs
        )


def is_like(glob: str, value: str) -> bool:
    """Whether a glob is for a value."""
    if not is_glob(glob):  # most of them, and each process would translate hundreds
        return glob == value
    return compiled(glob).fullmatch(value) is not None


def globs_of(given: Mapping[str, str | tuple[str, ...]], n: int, lines: LineNumbers) -> Globs:
    """Give the globs of a rule.

    :param given: by key; empty where a rule does not have it
    :param n: the rule's number
    :raise RulesError: if there is none, so that nobody knows which tasks the rule is for
    """
    globs = tuple((key, _listed(value)) for key, value in given.items() if value)
    if not globs:
        problem = "it does not say which tasks it is for"
        raise lines.error((n,), problem, f"Give it one of {', '.join(given)}")
    return globs


def _listed(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text.strip() for text in ([given] if isinstance(given, str) else given))
