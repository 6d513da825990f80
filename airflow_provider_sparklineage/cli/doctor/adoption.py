"""The doctor's check of adoption: whether rules and declarations can be read, and are for tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow import settings as airflow_settings

from airflow_provider_sparklineage.cli.adoption import parsing
from airflow_provider_sparklineage.cli.adoption.survey import ADOPT, DECLARATIONS, Rules, survey
from airflow_provider_sparklineage.operators.adoption import policy
from airflow_provider_sparklineage.operators.deadline import Deadline
from airflow_provider_sparklineage.settings.checks import Check, Status

if TYPE_CHECKING:
    from airflow_provider_sparklineage.settings.resolution import Settings

_SHOWN = 10
PARSING_S = 20.0
"""Seconds for DAG files: the doctor may run whenever a worker starts."""


def check(resolved: Settings) -> list[Check]:
    """Check what is configured; DAGs are parsed only if there are rules for their tasks."""
    rules = Rules.of(resolved.adopt, resolved.declarations)
    if rules.problems:
        return rules.problems
    if rules.adoption.is_off:
        return [_off(has_declarations=bool(rules.declarations.rules))]
    return [_adopting(rules), *_of_dags(rules)]


def _off(*, has_declarations: bool) -> Check:
    if has_declarations:
        text = "There are declarations, and no task is adopted, which they are for."
        fix = "Set [sparklineage] adopt, or take declarations out."
        return Check(DECLARATIONS, Status.WARNING, text, fix)
    return Check(ADOPT, Status.OK, "Adoption is off: tasks have lineage whose DAG asks for it.")


def _adopting(rules: Rules) -> Check:
    if not airflow_settings.get_policy_plugin_manager().is_registered(policy):
        text = (
            "Airflow has not loaded this package's cluster policy (entry point airflow.policy): "
            "tasks are adopted only when they are about to run, and have no links."
        )
        fix = "Install the package again, with pip and not from a bare folder."
        return Check(ADOPT, Status.WARNING, text, fix)
    what = "Tasks are adopted by rules" if rules.adoption.rules else "All tasks are adopted"
    text = f"{what}: `airflow sparklineage adoption` lists them."
    return Check(ADOPT, Status.OK, text)


def _of_dags(rules: Rules) -> list[Check]:
    if not rules.adoption.rules and not rules.declarations.rules:
        return []
    deadline = Deadline()
    deadline.begin(PARSING_S)
    parsed = parsing.parse(None, budget=deadline.budget, fetches=False)
    if not parsed.is_all:
        text = (
            f"Not all DAG files were parsed: {PARSING_S:.0f} s are for that, and no bundle is "
            "fetched. Whether rules are for tasks, `airflow sparklineage adoption` finds out."
        )
        return [Check(ADOPT, Status.OK, text)]
    problems = survey(parsed.dags, rules).problems
    if len(problems) > _SHOWN:
        text = f"{len(problems) - _SHOWN} more rules or globs are for no task, or for one twice."
        more = Check(ADOPT, Status.WARNING, text, "`airflow sparklineage adoption` lists them.")
        return [*problems[:_SHOWN], more]
    return problems
