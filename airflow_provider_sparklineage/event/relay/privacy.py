"""What of Spark's own events is not for others: secrets, and on request literals.

The merged event is made of what this package knows, fact by fact; these events are passed on as the
listener wrote them. So what the merged event never says is taken out of them: stack traces and
texts of exceptions, and properties that Spark itself would redact.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.literals import HIDDEN, hidden
from airflow_provider_sparklineage.event.steps.credentials import without_credentials
from airflow_provider_sparklineage.event.steps.secrets import masked
from airflow_provider_sparklineage.model.credentials import HIDDEN as HIDDEN_VALUE
from airflow_provider_sparklineage.model.credentials import is_secret
from airflow_provider_sparklineage.spark.submit.injection import REDACTED_BY_DEFAULT

if TYPE_CHECKING:
    from collections.abc import Callable

_REDACTED_BY_SPARK = re.compile(REDACTED_BY_DEFAULT)

_PROPERTIES = ("spark_properties", "environment-properties")
_PLANS = ("spark.logicalPlan", "spark_unknown")
"""Run facets that hold whole plans; no text of theirs is an expression by itself."""
_EXPRESSIONS = frozenset({"description", "transformationDescription", "query", "jobDescription"})
_VALUES = frozenset({"inputCondition", "outputCondition"})


def fit_to_pass_on(
    event: dict[str, Any], mask: Callable[[str], str], *, literals: bool
) -> dict[str, Any]:
    """Give a Spark event without secrets; identities (names, run ids, times) stay as they are.

    :param mask: hides the secrets in a text
    :param literals: whether literals of expressions are hidden as well
    """
    run, job = event["run"], event["job"]
    facets = _run_facets(run.get("facets") or {})
    if literals:
        facets = {name: facet for name, facet in facets.items() if name not in _PLANS}
    parts = {
        "run": facets,
        "job": job.get("facets") or {},
        "inputs": event.get("inputs") or [],
        "outputs": event.get("outputs") or [],
    }
    if literals:
        parts = {name: _without_literals(part) for name, part in parts.items()}
    parts = {name: masked(without_credentials(part), mask) for name, part in parts.items()}
    return {
        **event,
        "run": {**run, "facets": parts["run"]},
        "job": {**job, "facets": parts["job"]},
        "inputs": parts["inputs"],
        "outputs": parts["outputs"],
    }


def _run_facets(facets: dict[str, Any]) -> dict[str, Any]:
    kept = dict(facets)
    exception = kept.get("spark.exception")
    if isinstance(exception, dict):
        message = str(exception.get("message") or "")
        kept["spark.exception"] = {
            **{name: value for name, value in exception.items() if name.startswith("_")},
            "message": message.partition(":")[0].partition("\n")[0],  # the class, as Java prints it
        }
    # What has such a name in a plan may also be a node, with much below it.
    for names, kind in ((_PROPERTIES, object), (_PLANS, str)):
        for name in names:
            if name in kept:
                kept[name] = _without_secret_keys(kept[name], kind)
    return kept


def _without_secret_keys(value: Any, kind: type) -> Any:
    """Hide what stands under keys of secrets.

    :param kind: of the values that are hidden; in others further keys are looked for
    """
    if isinstance(value, list):
        return [_without_secret_keys(item, kind) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: HIDDEN_VALUE
        if isinstance(entry, kind) and (is_secret(key) or _REDACTED_BY_SPARK.search(key))
        else _without_secret_keys(entry, kind)
        for key, entry in value.items()
    }


def _without_literals(value: Any, *, condition: bool = False) -> Any:
    if isinstance(value, list):
        return [_without_literals(item, condition=condition) for item in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for key, entry in value.items():
        if isinstance(entry, str) and key in _EXPRESSIONS:
            made[key] = hidden(entry)
        elif condition and key == "value":
            made[key] = HIDDEN
        else:
            made[key] = _without_literals(entry, condition=condition or key in _VALUES)
    return made
