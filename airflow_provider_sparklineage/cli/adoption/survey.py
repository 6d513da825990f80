"""What becomes of the tasks of DAGs: adopted or left alone, why, and with what declared."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.cli.adoption.matching import Matches, called
from airflow_provider_sparklineage.model import task_rules
from airflow_provider_sparklineage.model.exceptions import RulesError
from airflow_provider_sparklineage.model.task_rules import TaskDeclarations
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.operators.adoption import decisions
from airflow_provider_sparklineage.settings.checks import Check, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.model.task_rules import AdoptionRules, TaskNames


ADOPT, DECLARATIONS = "adopt", "declarations"
_FIX_GLOB = "Correct it, or take it out."


class Row(Frozen, frozen=True):
    """A task of a Spark operator.

    :param operator: as Airflow's pages call it
    :param path: of its class
    :param rule: number of the rule that decides, from 1; None if none does
    :param declaration: number of the rule that declares, from 1; None if none does
    """

    dag_id: str
    task_id: str
    operator: str
    path: str
    adopted: bool
    reason: str
    rule: int | None = None
    declaration: int | None = None


class Rules(Frozen, frozen=True):
    """What is configured.

    :param declarations: of the tasks that are adopted
    :param off: the reason of tasks that no rule is asked about
    :param problems: why something of it cannot be read
    """

    adoption: AdoptionRules
    declarations: TaskDeclarations
    off: str
    problems: list[Check]

    @classmethod
    def of(cls, adopt: str, declared: str) -> Rules:
        """Read both settings; what cannot be read is none."""
        problems: list[Check] = []
        rules, declaring, off = task_rules.ADOPT_NONE, TaskDeclarations(), decisions.OFF
        try:
            rules = task_rules.load_adoption(adopt)
        except RulesError as error:
            problems.append(Check(ADOPT, Status.FAILED, error.problem, error.fix))
            off = "left alone: the rules cannot be read"
        try:
            declaring = task_rules.load_declarations(declared)
        except RulesError as error:
            problems.append(Check(DECLARATIONS, Status.FAILED, error.problem, error.fix))
        return cls(rules, declaring, off, problems)


class Survey(Frozen, frozen=True):
    """All tasks of Spark operators, and what of the rules is for none of them, or for one twice."""

    rows: list[Row]
    problems: list[Check]


def survey(dags: Iterable[Any], rules: Rules) -> Survey:
    """Ask about the tasks of DAGs."""
    tasks = [(task, decisions.names_of(task)) for dag in dags for task in dag.tasks]
    of_spark = [(task, names) for task, names in tasks if names is not None]
    names = [names for _, names in of_spark]
    declares = Matches.of(rules.declarations.rules, names)
    numbers = declares.numbers()
    rows = [_row(task, of_task, rules, numbers) for task, of_task in of_spark]
    adopted = {of_task for of_task, row in zip(names, rows, strict=True) if row.adopted}
    adopts = Matches.of(rules.adoption.rules, names)
    problems = [
        *_warnings(ADOPT, adopts.unmatched(names), _FIX_GLOB),
        *_warnings(DECLARATIONS, declares.unmatched(names), _FIX_GLOB),
        *_warnings(DECLARATIONS, declares.doubled(adopted), "Keep one."),
    ]
    if adopted:
        problems += _warnings(DECLARATIONS, _useless(declares, adopted), "Adopt one of them.")
    return Survey(rows, problems)


def _row(task: Any, names: TaskNames, rules: Rules, declared: Mapping[TaskNames, list[int]]) -> Row:
    decision = decisions.decide(task, rules.adoption)
    return Row(
        names.dag_id,
        names.task_id,
        task.operator_name,
        names.operators[0],
        decision.adopts,
        rules.off if decision.reason == decisions.OFF else decision.reason,
        None if decision.rule is None else decision.rule + 1,
        declared[names][0] + 1 if decision.adopts and names in declared else None,
    )


def _warnings(name: str, texts: Iterable[str], fix: str) -> list[Check]:
    return [Check(name, Status.WARNING, text, fix) for text in texts]


def _useless(declares: Matches, adopted: set[TaskNames]) -> Iterable[str]:
    for number, (rule, tasks) in enumerate(zip(declares.rules, declares.tasks, strict=True)):
        if tasks and adopted.isdisjoint(tasks):
            yield f"{called(rule, number)} declares nothing: none of its tasks is adopted."
