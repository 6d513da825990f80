"""Answers of many rows in few lines for people: what differs in the partition alone is one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.history.tables import (
    Document,
    partition_text,
    span_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

MOST_LINES = 20
"""An answer of more is grouped: beyond that people look for what is common, not for a line."""
_ROWS = "rows"


def grouped(
    rows: Sequence[Document],
    key: Callable[[Document], Hashable],
    *,
    is_all: bool,
    most: int = MOST_LINES,
) -> Sequence[Document]:
    """Give one row for all of a key, the first of them; few rows, or all, as they are.

    :param key: what rows of one line have in common
    :param is_all: whether a line for each row is wanted
    :param most: how many rows are few
    """
    if is_all or len(rows) <= most:
        return rows
    groups: dict[Hashable, list[Document]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return [{**group[0], _ROWS: group} for group in groups.values()]


def rows_of(row: Document) -> Sequence[Document]:
    """Give the rows of a group; of another row itself."""
    return row.get(_ROWS) or [row]


def ends_text(texts: Iterable[str]) -> str:
    """Give a text; of several ones how many there are, the first and the last."""
    found = sorted(set(texts))
    return found[0] if len(found) == 1 else f"{len(found):,}: {found[0]} … {found[-1]}"


def times_text(row: Document, text: Callable[[Document], str]) -> str:
    """Give a time of a row; of a group the earliest and the latest."""
    times = sorted(text(one) for one in rows_of(row))
    return span_text(times[0], times[-1])


def partitions_text(row: Document) -> str:
    """Give the partition of a row; of a group how many there are, the first and the last."""
    return ends_text(partition_text(one["partition"]) for one in rows_of(row))


def more_text(rows: Sequence[Document], lines: Sequence[Document]) -> str:
    """Say that rows were grouped; empty if none were."""
    if len(lines) == len(rows):
        return ""
    return f"{len(rows):,} in {len(lines):,} lines; --all has a line for each."
