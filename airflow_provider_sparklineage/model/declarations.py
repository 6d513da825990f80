"""What tasks read and write, of tasks that are adopted and so have no arguments that say it.

A rule says which tasks it is for, and has what their operator would have been given::

    - dag_id: sales
      task_id: [revenue, "merge_*"]
      reads: s3://lake/orders
      writes:
        - dataset: s3://lake/revenue
          partitions: {dt: "{{ ds }}", country: [PL, null]}
        - dataset: analytics.rates
          partitions: {dt: {start: "{{ ds[:7] }}-01", end: "{{ ds }}", step: P1D}}
          where: "rate > 0"
      on_partition_mismatch: fail

The first rule that is for a task has all that is declared of it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from msgspec import field

from airflow_provider_sparklineage.model.frozen import Frozen
from airflow_provider_sparklineage.model.rule_files import RuleFile, Text, Texts
from airflow_provider_sparklineage.model.task_rules import TaskRule, globs_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from airflow_provider_sparklineage.model.rule_files.text import LineNumbers
    from airflow_provider_sparklineage.model.task_rules import TaskNames


class ValueRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values of a partition column from a start to an end, which is exclusive."""

    start: Text
    end: Text
    step: Text = "P1D"


_AtLeastOne = msgspec.Meta(min_length=1)
Value: TypeAlias = Text | Annotated[tuple[Text | None, ...], _AtLeastOne] | ValueRange | None
"""Of a partition column: a text, null, several of them, or a range."""
Values: TypeAlias = Annotated[dict[Text, Value], _AtLeastOne]


class Subset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dataset, and which part of it; all texts but the columns' names are templates.

    :param partitions: none of the full dataset
    """

    dataset: Text
    partitions: Values | Annotated[tuple[Values, ...], _AtLeastOne] = ()
    where: Text = ""


_Declared: TypeAlias = Text | Subset
Declared: TypeAlias = _Declared | Annotated[tuple[_Declared, ...], _AtLeastOne]
"""What ``reads`` or ``writes`` has: one dataset or several."""


ARGUMENTS = ("reads", "writes", "on_partition_mismatch")
"""Of the operator, that can be declared."""


class TaskDeclaration(TaskRule, frozen=True):
    """What is declared of some tasks.

    :param arguments: what their operator would have been given: reads, writes,
        on_partition_mismatch
    """

    arguments: Mapping[str, Declared] = field(default_factory=dict)


class TaskDeclarations(Frozen, frozen=True):
    """The declarations, in their order."""

    rules: tuple[TaskDeclaration, ...] = ()

    def of(self, task: TaskNames) -> TaskDeclaration | None:
        """Give what is declared of a task; None if nothing is."""
        return next((rule for rule in self.rules if rule.matches(task)), None)


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    dag_id: Texts = ()
    task_id: Texts = ()
    reads: Declared = ()
    writes: Declared = ()
    on_partition_mismatch: Literal["", "warn", "ignore", "fail"] = ""


_FILE = RuleFile(
    "Declarations",
    _Document,
    begin="- dag_id: ",
    nested={"reads": Subset, "writes": Subset, "partitions": ValueRange},
    must_be={
        "reads": "a dataset, or a list of one or more",
        "writes": "a dataset, or a list of one or more",
        "partitions": "values by column, or a list of one or more such",
        "on_partition_mismatch": "warn, ignore or fail",
    },
)


def load(text_or_path: str | Path) -> TaskDeclarations:
    """Load declarations from a YAML file, or from inline YAML.

    :param text_or_path: inline if it has more than one line or begins as YAML lists do
    :raise RulesError: if one is wrong; names file, line and key, and what to do
    """
    return _made_of(*_FILE.content(text_or_path))


@lru_cache(maxsize=4)  # a command asks for each task
def _made_of(text: str, name: str) -> TaskDeclarations:
    documents, lines = _FILE.read(text, name)
    given = enumerate(_FILE.converted(documents, lines))
    return TaskDeclarations(tuple(_rule(document, n, lines) for n, document in given))


def _rule(document: _Document, n: int, lines: LineNumbers) -> TaskDeclaration:
    globs = globs_of({"dag_id": document.dag_id, "task_id": document.task_id}, n, lines)
    given = {name: getattr(document, name) for name in ARGUMENTS}
    arguments = {name: value for name, value in given.items() if value}
    if not arguments:
        raise lines.error((n,), "it declares nothing", f"Give it one of {', '.join(ARGUMENTS)}")
    return TaskDeclaration(globs, lines.lines.get((n,), 0), arguments)
