"""The fields of an operator around their rendering: declared before it, hidden and traced after it.

The declarations (``[sparklineage] declarations``) of an adopted task are set as its arguments
before its fields are rendered, for plain and for mapped tasks, on the worker: no serialised DAG
depends on them. After it, secrets are registered with Airflow, and each text is traced to the dates
in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model import task_rules
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import RulesError
from airflow_provider_sparklineage.model.task_rules import (
    DECLARED_ARGUMENTS,
    TaskDeclarations,
    TaskNames,
    ValueRange,
)
from airflow_provider_sparklineage.operators.masking import mask
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.spark.submit import injection
from airflow_provider_sparklineage.spark.submit.submission import Submission
from airflow_provider_sparklineage.templates import TracedText, Tracer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context
    from jinja2 import Environment

    from airflow_provider_sparklineage.expectations.declarations import DatasetSubset
    from airflow_provider_sparklineage.model.task_rules import Declared, Subset


log = logger(__name__)


def traces(
    operator: Any, templates: Mapping[str, object], environment: Environment, context: Context
) -> tuple[TracedText, ...]:
    """
    Trace what was just rendered; never raises.

    :param templates: the fields that can name data, by name, as they were before
    :param environment: that which Airflow rendered with
    :param context: that which Airflow rendered with
    """
    traced: list[TracedText] = []
    tracer = Tracer(environment, context)  # one, for what the fields have in common
    for name, template in templates.items():
        try:
            content = _with_files(template, tuple(operator.template_ext), environment)
            rendered = getattr(operator, name, None)
            traced += tracer.trace_all(name, content, rendered)
        except Exception:
            log.debug("The templates in %s could not be traced", name, exc_info=True)
    return tuple(traced)


def hide_secrets(operator: Any) -> None:
    """Register secrets of a transport among the rendered properties before Airflow shows them."""
    texts = {str(key): str(value) for key, value in operator.spark_properties.items()}
    mask(*injection.transport_secrets(Submission(conf=texts)))


def _with_files(template: object, extensions: tuple[str, ...], environment: Environment) -> object:
    """Put the content of template files in place of their names, as rendering does."""
    if not extensions:
        return template
    if isinstance(template, str) and template.endswith(extensions) and environment.loader:
        return environment.loader.get_source(environment, template)[0]
    if isinstance(template, (list, tuple)):
        return type(template)(_with_files(item, extensions, environment) for item in template)
    if isinstance(template, dict):
        return {key: _with_files(item, extensions, environment) for key, item in template.items()}
    return template


_OPTION = "declarations"


def declare(operator: Any) -> None:
    """Set the arguments of an operator that are declared.

    Declarations that cannot be used are a problem of the try, which its event reports.
    """
    given = resolution.value(_OPTION, sources.configuration(_OPTION))
    if not given:
        return
    try:
        found = task_rules.load_declarations(given)
    except RulesError as error:
        found = TaskDeclarations()
        current = operator.lineage_try
        current.unrendered = (*current.unrendered, str(error))
    for name, value in declared_arguments(found, operator).items():
        setattr(operator, name, value)


def declared_arguments(declared: TaskDeclarations, operator: Any) -> dict[str, object]:
    """Give the arguments that an operator has by declarations; defaults where there are none."""
    rule = declared.of(TaskNames(operator.dag_id, operator.task_id))
    given = rule.arguments if rule else {}
    return {
        name: _argument(name, given[name]) if name in given else getattr(type(operator), name)
        for name in DECLARED_ARGUMENTS
    }


def _argument(name: str, given: Declared) -> object:
    if name == "on_partition_mismatch":
        return given
    entries = given if isinstance(given, tuple) else (given,)
    return [entry if isinstance(entry, str) else _subset(entry) for entry in entries]


def _subset(given: Subset) -> DatasetSubset:
    from airflow_provider_sparklineage.expectations.declarations import (
        DatasetSubset,
        PartitionRange,
    )

    def value(column: str, of: object) -> object:
        if isinstance(of, ValueRange):
            return PartitionRange(column, of.start, of.end, of.step)
        return list(of) if isinstance(of, tuple) else of

    def part(values: Mapping[str, object]) -> dict[str, object]:
        return {column: value(column, of) for column, of in values.items()}

    partitions = given.partitions
    return DatasetSubset(
        given.dataset,
        list(map(part, partitions)) or None if isinstance(partitions, tuple) else part(partitions),
        given.where or None,
    )
