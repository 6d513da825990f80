"""What is declared of an adopted task, given to it before its fields are rendered.

The same for plain and for mapped tasks, on the worker: no serialised DAG depends on declarations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model import task_rules
from airflow_provider_sparklineage.model.exceptions import RulesError
from airflow_provider_sparklineage.model.task_rules import (
    DECLARED_ARGUMENTS,
    TaskDeclarations,
    TaskNames,
    ValueRange,
)
from airflow_provider_sparklineage.settings import resolution

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.expectations.declarations import DatasetSubset
    from airflow_provider_sparklineage.model.task_rules import Declared, Subset

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
    for name, value in arguments(found, operator).items():
        setattr(operator, name, value)


def arguments(declared: TaskDeclarations, operator: Any) -> dict[str, object]:
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
