"""Columns of a write that the listener could not follow and the observer could, by dataset."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.spark.capture.observations import (
        UdfRecord,
        UntracedColumnsRecord,
    )


class PythonCall(NamedTuple):
    """A call of a Python function in a plan, and the columns that it was given."""

    text: str
    columns: frozenset[str]


class UntracedColumn(NamedTuple):
    """A written column of which the listener does not know what it is made of, or not all.

    :param sources: datasets and their columns
    :param complete: whether nothing else is missing
    """

    sources: frozenset[tuple[DatasetName, str]]
    complete: bool


class UntracedColumns(NamedTuple):
    """What was observed of the written columns whose sources the listener does not report.

    :param without_sources: columns that are made of no column -> of what else
    :param calls: what a result is called in descriptions -> the call that it is of
    """

    columns: Mapping[str, UntracedColumn]
    without_sources: Mapping[str, tuple[str, ...]]
    calls: Mapping[str, PythonCall]


def call(udf: UdfRecord) -> PythonCall:
    """Give the text of a call."""
    text = f"{udf.function or 'a Python function'}({', '.join(udf.columns)})"
    return PythonCall(text, frozenset(udf.columns))


def bound_columns(
    untraced: UntracedColumnsRecord,
    udfs: Iterable[UdfRecord],
    dataset: Callable[[str, str | None], DatasetName | None],
) -> UntracedColumns:
    """Bind the columns of a write to the datasets that they are made of.

    :param udfs: what was called in Python in the same query
    :param dataset: finds the dataset of a path and table
    """
    read = [dataset(relation.path, relation.table) for relation in untraced.relations]
    columns = {}
    for record in untraced.columns:
        found = [
            (read[at] if 0 <= at < len(read) else None, column) for at, column in record.sources
        ]
        sources = frozenset((name, column) for name, column in found if name is not None)
        is_bound = all(name is not None for name, _ in found)
        columns[record.column] = UntracedColumn(sources, record.complete and is_bound)
    calls: dict[str, set[PythonCall]] = defaultdict(set)
    for udf in udfs:
        calls[udf.result].add(call(udf))
    # Several steps of one query give their results the same numbers: such a name is ambiguous.
    named = {result: next(iter(all_)) for result, all_ in calls.items() if len(all_) == 1}
    reasons = {column: tuple(why) for column, why in untraced.without_sources.items()}
    return UntracedColumns(columns, reasons, named)
