"""The cluster policy (entry point ``airflow.policy``), which adopts tasks when a DAG is parsed.

The policy works in the DAG processor, in the worker and in commands, by the same rules. Every
process of Airflow imports this module, and calls the policy for every task. So the module imports
nothing that a DAG without Spark does not need, and the policy never raises, as an error would stop
the import of the DAG.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from airflow.policies import hookimpl

from airflow_provider_sparklineage.operators.adoption import kinds

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.model.task_rules import AdoptionRules

_OFF = "off"


class _Latest:
    """The rules for the latest DAG and the latest warning, as Airflow asks task by task."""

    dag: Callable[[], object] = staticmethod(lambda: None)
    rules: AdoptionRules | None = None
    problem: str = ""


@hookimpl
def task_policy(task: Any) -> None:
    """Adopt the task if it runs Spark and the rules choose it; never raises."""
    try:
        if kinds.kind_of(task)[1] is not None:
            _adopt(task)
    # Also SystemExit and KeyboardInterrupt, which the code of a user's class may raise when it is
    # asked: they would end the process that parses the DAG.
    except BaseException as error:
        warn(f"{_task_id(task)} is left without lineage ({kinds.described(error)}).")


def _task_id(task: Any) -> str:
    try:
        return repr(task.task_id)
    except BaseException:
        return "A task"


def _adopt(task: Any) -> None:
    rules = _rules(task.get_dag())
    if rules is None:
        return
    from airflow_provider_sparklineage.operators.adoption import adopting

    if adopting.decide(task, rules).adopts:
        adopting.adopt(task)


def _rules(dag: Any) -> AdoptionRules | None:
    """Give the rules for a DAG's tasks, read once for each DAG; None if no task is adopted."""
    if dag is None or _Latest.dag() is not dag:
        _Latest.rules = None
        if dag is not None:
            _Latest.dag = ref(dag)
        _Latest.rules = configured()
    return _Latest.rules


def is_off() -> bool:
    """Whether the option ``adopt`` is ``off`` or cannot be read; parses no rules, never raises."""
    try:
        return not _given()
    except Exception:  # most often an error of configparser
        return True


def configured() -> AdoptionRules | None:
    """Read the rules of ``[sparklineage] adopt``.

    :return: the rules; None if adoption is off (then no module for rules is imported), or if the
        rules cannot be read (then a warning is logged)
    """
    value = _given()
    if not value:
        return None
    from airflow_provider_sparklineage.model import task_rules
    from airflow_provider_sparklineage.model.exceptions import RulesError

    try:
        rules = task_rules.load_adoption(value)
    except RulesError as error:
        warn(f"No task is adopted. {error}")
        return None
    return None if rules.is_off else rules


def _given() -> str:
    """Give the text of the option ``adopt``; empty if it is ``off``."""
    from airflow.providers.common.compat.sdk import conf

    value: str = conf.get("sparklineage", "adopt", fallback=_OFF)
    return "" if value.strip().lower() in ("", _OFF) else value


def warn(problem: str) -> None:
    """Log ``problem`` as a warning, unless it was the last one: rules are read for each DAG."""
    from airflow_provider_sparklineage.model.credentials import logger

    if problem != _Latest.problem:
        _Latest.problem = problem
        logger(__name__).warning("%s", problem)
