"""What a declaration gives as partitions, in any of the forms that it may have, as values."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from airflow_provider_sparklineage.expectations.declarations import (
    MAX_PARTITIONS,
    DatasetSubset,
    PartitionRange,
)
from airflow_provider_sparklineage.model.exceptions import DeclarationError
from airflow_provider_sparklineage.model.partitioning import NULL, Partition


def declared_partitions(entry: DatasetSubset) -> tuple[Partition, ...] | None:
    """List the partitions of a declaration; None for the full dataset.

    :raise DeclarationError: if they cannot be understood, or are more than
        :data:`~.declarations.MAX_PARTITIONS`
    """
    given = entry.partitions
    if given is None:
        return None
    parts = given if isinstance(given, (list, tuple)) else [given]
    found: dict[Partition, None] = {}
    for part in parts:
        if isinstance(part, PartitionRange):
            label = _label(entry, part.dimension)
            found |= {Partition.of([(label, v)]): None for v in part.values()}
        elif isinstance(part, Mapping):
            found |= dict.fromkeys(_product(entry, part))
        else:
            problem = f"The partitions of {entry.dataset} hold {part!r}."
            fix = (
                "Each must be a mapping of "
                'dimensions to values, such as {"dt": "2024-05-06"}, or a PartitionRange.'
            )
            raise DeclarationError(problem, fix)
    # One of them without any value is the full dataset.
    return None if Partition() in found else tuple(sorted(found))


def _product(entry: DatasetSubset, part: Mapping[Any, Any]) -> Iterable[Partition]:
    labels = [_label(entry, label) for label in part]
    if len({label.casefold() for label in labels}) < len(labels):
        msg = f"The partitions of {entry.dataset} name a column twice: {', '.join(labels)}."
        raise DeclarationError(msg)
    choices = [_choices(entry, _label(entry, label), value) for label, value in part.items()]
    size = 1
    for choice in choices:
        size *= len(choice)
    if size > MAX_PARTITIONS:
        problem = (
            f"The partitions of {entry.dataset} are {size}, more than the {MAX_PARTITIONS} that a "
            "declaration may stand for."
        )
        raise DeclarationError(problem, "Use where= instead.")
    return (Partition.of(values) for values in itertools.product(*choices))


def _label(entry: DatasetSubset, label: object) -> str:
    if isinstance(label, str) and label:
        return label
    problem = f"A dimension in the partitions of {entry.dataset} is {label!r}."
    fix = "It must be a column."
    raise DeclarationError(problem, fix)


def _choices(entry: DatasetSubset, label: str, value: object) -> list[tuple[str, str | None]]:
    if isinstance(value, PartitionRange):
        return [(label, v) for v in replace(value, dimension=label).values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [(label, _text(entry, label, v)) for v in value]
    return [(label, _text(entry, label, value))]


def _text(entry: DatasetSubset, label: str, value: object) -> str | None:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    problem = f"The value of {label} in the partitions of {entry.dataset} is {value!r}."
    fix = "It must be a text, a number, a date, None for null, or a list of such."
    raise DeclarationError(problem, fix)
