"""Airflow's cluster policy (entry point ``airflow.policy``): adopts tasks of DAGs that are parsed.

In the DAG processor, in the worker and in commands, by the same rules. Every process of Airflow
imports this, and it is asked about every task: it imports nothing that a DAG without Spark does not
need, and never raises, as that would keep a DAG from being imported.
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
    """What was read for the DAG whose tasks are asked about, one after the other."""

    dag: Callable[[], object] = staticmethod(lambda: None)
    rules: AdoptionRules | None = None
    problem: str = ""


@hookimpl
def task_policy(task: Any) -> None:
    """Give a task lineage, if it is one of Spark and the rules are for it."""
    try:
        if kinds.of(task)[1] is not None:
            _adopt(task)
    except Exception as error:
        warn(f"{task!r} is left without lineage ({type(error).__name__}: {error}).")


def _adopt(task: Any) -> None:
    rules = _rules(task.get_dag())
    if rules is None:
        return
    from airflow_provider_sparklineage.operators.adoption import adopting

    if adopting.decide(task, rules).adopts:
        adopting.adopt(task)


def _rules(dag: Any) -> AdoptionRules | None:
    """Give the rules for the tasks of a DAG, read once for it; None if nothing is adopted."""
    if dag is None or _Latest.dag() is not dag:
        _Latest.rules = None
        if dag is not None:
            _Latest.dag = ref(dag)
        _Latest.rules = configured()
    return _Latest.rules


def is_off() -> bool:
    """Whether nothing is adopted, as far as that is known without reading rules; never raises."""
    try:
        return not _given()
    except Exception:  # of configparser, most of all
        return True


def configured() -> AdoptionRules | None:
    """Read ``[sparklineage] adopt``; None if nothing is adopted, which needs no import."""
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
    """Give the text of the option; empty if that is ``off``."""
    from airflow.providers.common.compat.sdk import conf

    value: str = conf.get("sparklineage", "adopt", fallback=_OFF)
    return "" if value.strip().lower() in ("", _OFF) else value


def warn(problem: str) -> None:
    """Say once what is wrong: the next DAG of the file has the same rules."""
    from airflow_provider_sparklineage.model.credentials import logger

    if problem != _Latest.problem:
        _Latest.problem = problem
        logger(__name__).warning("%s", problem)
