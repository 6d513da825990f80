"""Rules for tasks: each rule is for the tasks whose names match the rule's globs.

There are two kinds of rules: *adoption* rules choose the tasks that get lineage without a change of
their DAG, and *declarations* name the datasets that adopted tasks read and write.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from msgspec import field

from airflow_provider_sparklineage.model.exceptions import RulesError
from airflow_provider_sparklineage.model.globs import compiled, is_glob
from airflow_provider_sparklineage.model.rule_files import RuleFile, Text, Texts, listed
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from airflow_provider_sparklineage.model.rule_files import LineNumbers


Globs = tuple[tuple[str, tuple[str, ...]], ...]
"""The globs of a rule, as pairs of a key and the globs at this key."""


class TaskNames(Frozen, frozen=True):
    """The names of a task, with which the globs of rules are matched.

    :param task_id: the task's id with the ids of its task groups, as Airflow writes it
    :param operators: all names of the operator's class, and of the classes that it inherits from
    :param tags: the tags of the DAG
    """

    dag_id: str
    task_id: str
    operators: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    def values(self, key: str) -> tuple[str, ...]:
        """Give the task's names for a key of a rule, with which the globs of the key are matched.

        :param key: ``dag_id``, ``task_id``, ``operator`` or ``tags``
        """
        names: str | tuple[str, ...] = getattr(self, "operators" if key == "operator" else key)
        return (names,) if isinstance(names, str) else names


class TaskRule(Frozen, frozen=True):
    """A rule for the tasks whose names match its globs.

    :param globs: pairs of a key and its globs, only for the keys that the rule has
    :param line: the line of the file on which the rule begins; 0 if the line is not known
    """

    globs: Globs
    line: int = 0

    def matches(self, task: TaskNames) -> bool:
        """Whether the rule is for a task: at each key of the rule, a glob matches a name."""
        return all(
            any(is_like(glob, value) for glob in globs for value in task.values(key))
            for key, globs in self.globs
        )


def is_like(glob: str, value: str) -> bool:
    """Whether a glob matches a value."""
    if not is_glob(glob):  # most globs are plain names, which need no regex
        return glob == value
    return compiled(glob).fullmatch(value) is not None


def _globs_of(document: object, keys: tuple[str, ...], n: int, lines: LineNumbers) -> Globs:
    """Give the globs of a rule.

    :param document: the rule; its attribute for a key is empty if the rule does not have the key
    :param keys: the keys that have globs, which are names of attributes
    :param n: the rule's number, counted from 0
    :param lines: the rules' lines in their file, for the error
    :return: pairs of a key and its globs, only for the keys that the rule has
    :raise RulesError: if the rule has no glob at all, so that it does not say for which tasks it is
    """
    texts = {key: getattr(document, key) for key in keys}
    globs = tuple((key, listed(value)) for key, value in texts.items() if value)
    if not globs:
        problem = "it does not say which tasks it is for"
        raise lines.error((n,), problem, f"Give it one of {', '.join(keys)}")
    return globs


# --- adoption: ``off``, ``all``, or rules ---------------------------------------------------------
#
# A rule is for a task if a glob of each of its keys matches::
#
#     - dag_id: "sales_*"
#       task_id: [load, "merge_*"]
#       operator: "shop.operators.*"
#       tags: spark
#     - dag_id: legacy_*
#       exclude: true
#
# A rule that excludes a task is stronger than all rules that include it, before it or after it. If
# all rules exclude tasks, all other tasks are adopted.


ADOPTION_KEYS = ("dag_id", "task_id", "operator", "tags")
"""The keys by which a rule chooses tasks."""


class AdoptionRule(TaskRule, frozen=True):
    """A rule that includes tasks in adoption, or excludes them."""

    excludes: bool = False


class Verdict(Frozen, frozen=True):
    """The decision whether a task is adopted.

    :param rule: number of the rule that decides, counted from 0; None if no rule is for the task
    """

    adopts: bool
    rule: int | None = None


class AdoptionRules(Frozen, frozen=True):
    """The adoption rules, in their order.

    :param adopts_others: whether tasks for which there is no rule are adopted
    """

    rules: tuple[AdoptionRule, ...] = ()
    adopts_others: bool = False

    @property
    def is_off(self) -> bool:
        """Whether no task is ever adopted."""
        return not self.rules and not self.adopts_others

    def verdict(self, task: TaskNames) -> Verdict:
        """Decide by the first rule that excludes the task, else by the first rule for the task.

        If no rule is for the task, ``adopts_others`` decides.
        """
        excluding_first = sorted(enumerate(self.rules), key=lambda one: not one[1].excludes)
        for n, rule in excluding_first:
            if rule.matches(task):
                return Verdict(not rule.excludes, n)
        return Verdict(self.adopts_others)


ADOPT_NONE = AdoptionRules()
ADOPT_ALL = AdoptionRules(adopts_others=True)
_ADOPTION_WORDS = {"": ADOPT_NONE, "off": ADOPT_NONE, "all": ADOPT_ALL}


class _AdoptionDocument(msgspec.Struct, forbid_unknown_fields=True):
    dag_id: Texts = ()
    task_id: Texts = ()
    operator: Texts = ()
    tags: Texts = ()
    exclude: bool = False


_ADOPTION_FILE = RuleFile(
    "Adoption rules", _AdoptionDocument, "- dag_id: ", must_be={"exclude": "true or false"}
)


def load_adoption(text_or_path: str | Path) -> AdoptionRules:
    """Load the adoption rules from ``off``, ``all``, a YAML file of rules, or inline YAML.

    :param text_or_path: ``off``, ``all``, or as for :func:`load_declarations`
    :raise RulesError: if a rule is invalid; the error names file, line, key and the fix
    """
    word = str(text_or_path).strip().lower()
    if word in _ADOPTION_WORDS:
        return _ADOPTION_WORDS[word]
    if word.isalnum():
        problem = f"Adoption rules: {str(text_or_path).strip()!r} is no choice."
        fix = "Write off, all, the path of a YAML file of rules, or the rules themselves."
        raise RulesError(problem, fix)
    return _adoption_rules(*_ADOPTION_FILE.content(text_or_path))


@lru_cache(maxsize=4)  # the rules are the same for each DAG of a file
def _adoption_rules(text: str, name: str) -> AdoptionRules:
    documents, lines = _ADOPTION_FILE.read(text, name)
    rules = tuple(
        AdoptionRule(_globs_of(document, ADOPTION_KEYS, n, lines), lines.line(n), document.exclude)
        for n, document in enumerate(_ADOPTION_FILE.converted(documents, lines))
    )
    return AdoptionRules(rules, bool(rules) and all(rule.excludes for rule in rules))


# --- declarations: datasets of adopted tasks, whose operators have no arguments for them ----------
#
# A rule has the names of tasks, and the arguments that a lineage operator would get for them::
#
#     - dag_id: sales
#       task_id: [revenue, "merge_*"]
#       reads: s3://lake/orders
#       writes:
#         - dataset: s3://lake/revenue
#           partitions: {dt: "{{ ds }}", country: [PL, null]}
#         - dataset: analytics.rates
#           partitions: {dt: {start: "{{ ds[:7] }}-01", end: "{{ ds }}", step: P1D}}
#           where: "rate > 0"
#       on_partition_mismatch: fail
#
# Only the first rule for a task is used: its declarations are not joined with those of later rules.


class ValueRange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The values of a partition column from a start, inclusive, to an end, exclusive."""

    start: Text
    end: Text
    step: Text = "P1D"


_AtLeastOne = msgspec.Meta(min_length=1)
Value: TypeAlias = Text | Annotated[tuple[Text | None, ...], _AtLeastOne] | ValueRange | None
"""The value of a partition column: a text, null, a list of texts and nulls, or a range."""
Values: TypeAlias = Annotated[dict[Text, Value], _AtLeastOne]


class Subset(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A dataset, and the part of it that a task reads or writes.

    All texts except the columns' names are templates.

    :param partitions: empty for the full dataset
    :param where: a SQL predicate; empty if partitions alone describe the part
    """

    dataset: Text
    partitions: Values | Annotated[tuple[Values, ...], _AtLeastOne] = ()
    where: Text = ""


_Declared: TypeAlias = Text | Subset
Declared: TypeAlias = _Declared | Annotated[tuple[_Declared, ...], _AtLeastOne]
"""The value of ``reads`` or ``writes``: one dataset or several datasets."""


DECLARED_ARGUMENTS = ("reads", "writes", "on_partition_mismatch")
"""The operator's arguments that a rule can declare."""


class TaskDeclaration(TaskRule, frozen=True):
    """A rule that declares the datasets of tasks.

    :param arguments: the arguments that a lineage operator would get, by name: reads, writes,
        on_partition_mismatch
    """

    arguments: Mapping[str, Declared] = field(default_factory=dict)


class TaskDeclarations(Frozen, frozen=True):
    """The declarations, in their order."""

    rules: tuple[TaskDeclaration, ...] = ()

    def for_task(self, task: TaskNames) -> TaskDeclaration | None:
        """Give the first declaration for a task; None if no declaration is for it."""
        return next((rule for rule in self.rules if rule.matches(task)), None)


class _DeclarationDocument(msgspec.Struct, forbid_unknown_fields=True):
    dag_id: Texts = ()
    task_id: Texts = ()
    reads: Declared = ()
    writes: Declared = ()
    on_partition_mismatch: Literal["", "warn", "ignore", "fail"] = ""


_DECLARATIONS_FILE = RuleFile(
    "Declarations",
    _DeclarationDocument,
    begin="- dag_id: ",
    nested={"reads": Subset, "writes": Subset, "partitions": ValueRange},
    must_be={
        "reads": "a dataset, or a list of one or more",
        "writes": "a dataset, or a list of one or more",
        "partitions": "values by column, or a list of one or more such",
        "on_partition_mismatch": "warn, ignore or fail",
    },
)


def load_declarations(text_or_path: str | Path) -> TaskDeclarations:
    """Load declarations from a YAML file, or from inline YAML.

    :param text_or_path: inline YAML if it has more than one line or begins as YAML lists do;
        otherwise the path of a file
    :raise RulesError: if a declaration is invalid; the error names file, line, key and the fix
    """
    return _task_declarations(*_DECLARATIONS_FILE.content(text_or_path))


@lru_cache(maxsize=4)  # a command loads the same text for each task
def _task_declarations(text: str, name: str) -> TaskDeclarations:
    documents, lines = _DECLARATIONS_FILE.read(text, name)
    numbered = enumerate(_DECLARATIONS_FILE.converted(documents, lines))
    return TaskDeclarations(tuple(_task_declaration(one, n, lines) for n, one in numbered))


def _task_declaration(
    document: _DeclarationDocument, n: int, lines: LineNumbers
) -> TaskDeclaration:
    globs = _globs_of(document, ("dag_id", "task_id"), n, lines)
    values = {name: getattr(document, name) for name in DECLARED_ARGUMENTS}
    arguments = {name: value for name, value in values.items() if value}
    if not arguments:
        raise lines.error(
            (n,), "it declares nothing", f"Give it one of {', '.join(DECLARED_ARGUMENTS)}"
        )
    return TaskDeclaration(globs, lines.line(n), arguments)
