"""Answers to listed questions as JSON, of whatever engine, to be compared."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.history.queries.drift import drift
from airflow_provider_sparklineage.history.queries.gaps import gaps
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.patterns.observed import patterns
from airflow_provider_sparklineage.history.queries.stale import plan_of, stale
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import HistoryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.history.queries.sql import Rows


def answers(history: Rows, questions: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Answer each of some questions: what is asked, and of what."""
    return [_answer(history, **each) for each in questions]


def _answer(history: Rows, what: str, **asked: Any) -> Any:
    try:
        return msgspec.to_builtins(_found(history, what, asked))
    except HistoryError as error:
        return str(error)


def _found(history: Rows, what: str, asked: dict[str, Any]) -> Any:
    name = DatasetName(*asked["dataset"]) if "dataset" in asked else None
    match what:
        case "stale":
            found = stale(history)
            return found, plan_of(history, found)
        case "drift":
            return drift(history, asked["task"])
    assert name is not None
    as_of = asked.get("as_of") and datetime.fromisoformat(asked["as_of"])
    match what:
        case "trace":
            return trace(history, name, asked["partition"], asked["column"], as_of)
        case "impact":
            return impact(history, name, asked["partition"], asked["column"], as_of)
        case "patterns":
            return patterns(history, name)
        case "gaps":
            return gaps(history, name)
    raise AssertionError(what)
