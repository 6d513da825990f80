"""How many rows a partition has, and what a task measured of a dataset, as ``datasetProfile``.

What a run wrote is a number of rows *written*. It is the number of rows *there are* where one
partition was replaced or made by one write; where rows were added, files rewritten by a command of
Delta or Iceberg, or several partitions written, nobody knows it of any.

A profile of all of a dataset is made of measured metrics only (the facet ``dataQualityMetrics``):
DataHub's page shows the latest one and nothing of those before, so that one with a number of rows
alone would hide the columns' statistics of a profiler. Unpartitioned outputs have their rows in
the operation.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.partitions.accesses import Access, Part, accesses
from airflow_provider_sparklineage.datahub.partitions.operations import (
    can_be_stamped,
    is_below_a_task,
    stamped,
)
from airflow_provider_sparklineage.datahub.proposals import Json, Proposal
from airflow_provider_sparklineage.datahub.values import number_text
from airflow_provider_sparklineage.model.terms import Side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.subject import Subject

MAX_COLUMNS = 1000
"""Columns of one profile that have statistics."""
_REPLACED = ("CREATE", "OVERWRITE")
_METRICS = "dataQualityMetrics"
_TABLE_FORMATS = ("delta", "hudi", "iceberg")


def profiles(subject: Subject) -> Iterator[Proposal]:
    """Give the profiles of a run that has ended, one of each partition or dataset."""
    if not can_be_stamped(subject) or is_below_a_task(subject):
        return
    read = list(accesses(subject, Side.READ))
    of_reads = {access.dataset.urn for access in read}
    found: dict[tuple[str, Part], Json] = {}
    for access in accesses(subject, Side.WRITE):
        if access.dataset.urn not in of_reads and (counts := _replaced(subject, access)):
            found[access.dataset.urn, access.parts()[0]] = counts
    for access in (*read, *accesses(subject, Side.WRITE)):
        if (parts := access.parts()) and (measured := _measured(subject, access)):
            found[access.dataset.urn, parts[0]] = measured
    for (urn, part), profile in found.items():
        yield Proposal(urn, "datasetProfile", {**stamped(subject, part), **profile})


def _replaced(subject: Subject, access: Access) -> Json:
    """Give the rows of the only partition that a run replaced; nothing if that is not known."""
    rows = lenient.number(access.statistics.get("rowCount"))
    is_claimed = subject.state == "COMPLETE" and access.is_of_this_run
    parts = access.parts() if is_claimed and rows is not None and _is_replaced(access) else []
    if len(parts) != 1 or parts[0].type != "PARTITION":
        return {}
    return {"rowCount": rows, **_size(access.statistics.get("size"))}


def _is_replaced(access: Access) -> bool:
    layer = lenient.text(lenient.at(access.dataset.facets, "storage", "storageLayer")).lower()
    is_rewritten = access.lifecycle != "CREATE" and layer in _TABLE_FORMATS
    return access.lifecycle in _REPLACED and "writes" not in access.seen and not is_rewritten


def _measured(subject: Subject, access: Access) -> Json:
    """Give what a task measured of a dataset: rows, and statistics of its columns."""
    facet = access.facets.get(_METRICS) or access.dataset.facets.get(_METRICS)
    rows = lenient.number(lenient.at(facet, "rowCount"))
    of_columns = lenient.mapping(lenient.at(facet, "columnMetrics"))
    columns = [
        {"fieldPath": subject.path(access.dataset.name, name), **_statistics(metrics, rows)}
        for name, metrics in islice(of_columns.items(), MAX_COLUMNS)
        if isinstance(metrics, dict)
    ]
    return {
        **({"rowCount": rows} if rows is not None else {}),
        **_size(lenient.at(facet, "bytes")),
        **({"fieldProfiles": columns} if columns else {}),
    }


def _size(size: Any) -> Json:
    found = lenient.number(size)
    return {"sizeInBytes": found} if found else {}


def _statistics(metrics: dict[str, Any], rows: int | None) -> Json:
    """Give a column's statistics; DataHub has values as texts, whatever type the column has."""
    quantiles = {
        lenient.text(quantile, 20): _value(value)
        for quantile, value in islice(lenient.mapping(metrics.get("quantiles")).items(), 100)
    }
    found = {
        **_share("nullCount", "nullProportion", metrics.get("nullCount"), rows),
        **_share("uniqueCount", "uniqueProportion", metrics.get("distinctCount"), rows),
        "min": _value(metrics.get("min")),
        "max": _value(metrics.get("max")),
        "median": quantiles.get("0.5"),
        "quantiles": [{"quantile": q, "value": value} for q, value in quantiles.items() if value],
    }
    return {key: value for key, value in found.items() if value not in (None, "", [])}


def _share(count_key: str, share_key: str, count: Any, rows: int | None) -> Json:
    found = lenient.number(count)
    if found is None:
        return {}
    return {count_key: found, **({share_key: found / rows} if rows and found <= rows else {})}


def _value(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return lenient.text(number_text(value) if is_number else value, 200)
