"""Which tasks get lineage without their DAG asking for it: ``off``, ``all``, or rules.

A rule has globs, and all of its keys have to match::

    - dag_id: "sales_*"
      task_id: [load, "merge_*"]
      operator: "shop.operators.*"
      tags: spark
    - dag_id: legacy_*
      exclude: true

Excluding rules go first, wherever they stand. If all rules exclude, they leave everything else in.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.model.exceptions import RulesError
from airflow_provider_sparklineage.model.frozen import Frozen
from airflow_provider_sparklineage.model.rule_files import RuleFile, Texts
from airflow_provider_sparklineage.model.task_rules import TaskNames, TaskRule, globs_of, is_like

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_sparklineage.model.rule_files.text import LineNumbers

KEYS = ("dag_id", "task_id", "operator", "tags")
"""What a rule chooses tasks by."""


class AdoptionRule(TaskRule, frozen=True):
    """A choice of tasks."""

    excludes: bool = False


class Verdict(Frozen, frozen=True):
    """Whether a task is to be adopted.

    :param rule: the one that decides, counted from 0; None if none is for the task
    """

    adopts: bool
    rule: int | None = None


class AdoptionRules(Frozen, frozen=True, cache_hash=True):
    """The rules, in their order.

    :param adopts_others: whether tasks are adopted that no rule is for
    """

    rules: tuple[AdoptionRule, ...] = ()
    adopts_others: bool = False

    @property
    def is_off(self) -> bool:
        """Whether no task is ever adopted."""
        return not self.rules and not self.adopts_others

    def verdict(self, task: TaskNames) -> Verdict:
        """Decide by the first rule that excludes a task, else by the first that is for it."""
        for n, excludes, globs in _left(self, task.dag_id, task.operators, task.tags):
            if not globs or any(is_like(glob, task.task_id) for glob in globs):
                return Verdict(not excludes, n)
        return Verdict(self.adopts_others)


@lru_cache(maxsize=256)  # the same for all tasks of a class in a DAG
def _left(
    rules: AdoptionRules, dag_id: str, operators: tuple[str, ...], tags: tuple[str, ...]
) -> tuple[tuple[int, bool, tuple[str, ...]], ...]:
    """Give the rules for which nothing is left to look at but the task's id; no globs are for all.

    :return: number, whether it excludes, and globs; excluding ones first
    """
    names = TaskNames(dag_id, "", operators, tags)
    found = [
        (n, rule.excludes, dict(rule.globs).get("task_id", ()))
        for n, rule in enumerate(rules.rules)
        if TaskRule(tuple(of for of in rule.globs if of[0] != "task_id")).matches(names)
    ]
    return tuple(sorted(found, key=lambda one: not one[1]))


OFF = AdoptionRules()
ALL = AdoptionRules(adopts_others=True)
_WORDS = {"": OFF, "off": OFF, "all": ALL}


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    dag_id: Texts = ()
    task_id: Texts = ()
    operator: Texts = ()
    tags: Texts = ()
    exclude: bool = False


_FILE = RuleFile("Adoption rules", _Document, "- dag_id: ", must_be={"exclude": "true or false"})


def load(given: str | Path) -> AdoptionRules:
    """Load what is to be adopted: ``off``, ``all``, a YAML file of rules, or the rules.

    :raise RulesError: if a rule is wrong; names file, line and key, and what to do
    """
    word = str(given).strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    if word.isalnum():
        problem = f"Adoption rules: {str(given).strip()!r} is no choice."
        fix = "Write off, all, the path of a YAML file of rules, or the rules themselves."
        raise RulesError(problem, fix)
    return _made_of(*_FILE.content(given))


@lru_cache(maxsize=4)  # for each DAG of a file the same
def _made_of(text: str, name: str) -> AdoptionRules:
    documents, lines = _FILE.read(text, name)
    given = enumerate(_FILE.converted(documents, lines))
    rules = tuple(_rule(document, n, lines) for n, document in given)
    return AdoptionRules(rules, bool(rules) and all(rule.excludes for rule in rules))


def _rule(document: _Document, n: int, lines: LineNumbers) -> AdoptionRule:
    globs = globs_of({key: getattr(document, key) for key in KEYS}, n, lines)
    return AdoptionRule(globs, lines.lines.get((n,), 0), document.exclude)
