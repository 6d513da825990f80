"""The partition key of a run to expectations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.expectations.statements import Expectation, Kind, Source
from airflow_provider_sparklineage.model.exceptions import DeclarationError
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.sides import Side

if TYPE_CHECKING:
    from collections.abc import Sequence


def from_partition_key(key: str, dimensions: str | Sequence[str]) -> list[Expectation]:
    """Make expectations of the partition key of a run.

    The key is the partition that the run has to write: it is declared of every output that has the
    dimensions, and inferred of inputs.

    :param key: ``2024-05-06|PL``
    :param dimensions: ``["dt"]``, several for a key with ``|`` between values, or a pattern such
        as ``"{dt}|{region}"``
    :raise DeclarationError: if the key does not fit
    """
    values = _key_values(key, dimensions)
    template = (
        dimensions if isinstance(dimensions, str) else "|".join(f"{{{d}}}" for d in dimensions)
    )

    def source(kind: Kind, label: str, value: str) -> Source:
        key = ("partition_key",)
        return Source(kind, "partition_key_dimensions", template, value, label, key, key)

    return [
        Expectation(
            Kind.DECLARED,
            Side.WRITE,
            partitions=(Partition.of(values),),
            dimensions=tuple(Dimension.of(label) for label, _ in values),
            sources=tuple(source(Kind.DECLARED, *value) for value in values),
        ),
        *(
            Expectation(Kind.INFERRED, Side.READ, sources=(source(Kind.INFERRED, label, value),))
            for label, value in values
        ),
    ]


def _key_values(key: str, dimensions: str | Sequence[str]) -> list[tuple[str, str]]:
    if isinstance(dimensions, str):
        parts = re.split(r"\{(\w+)\}", dimensions)
        labels = parts[1::2]
    else:
        labels = [str(d) for d in dimensions]
        between = [part for label in labels for part in (label, "|")]
        parts = ["", *between[:-1], ""]
    if not labels or len(set(labels)) != len(labels):
        problem = f"partition_key_dimensions is {dimensions!r}."
        fix = 'It must name each dimension once, as in ["dt"] or "{dt}|{region}".'
        raise DeclarationError(problem, fix)
    pattern = "".join(
        re.escape(part) if number % 2 == 0 else "(.+?)" for number, part in enumerate(parts)
    )
    match = re.fullmatch(pattern, key, re.DOTALL)
    if match is None:
        msg = f"The partition key {key!r} does not fit partition_key_dimensions={dimensions!r}."
        raise DeclarationError(msg)
    return list(zip(labels, match.groups(), strict=True))
