"""How much of an application's events may be in memory; what there is no room for is counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import msgspec

_Value = TypeVar("_Value", bytes, str)

MAX_FACET_BYTES = 32 * 1024 * 1024
"""Of one facet. Column lineage of that size has 100,000 edges, and an event takes 4 MB in all."""
MAX_FACETS_BYTES = 192 * 1024 * 1024
"""Of all facets of an application, each distinct one once."""
MAX_STATEMENTS_BYTES = 32 * 1024 * 1024
"""Of the SQL of all actions, each distinct statement once."""
MAX_DATASETS = 50_000
"""Of all actions together, a dataset once for each that accesses it; each takes 10 to 25 KB."""

LEFT_OUT = b""
"""Stands for a facet that there was no room for."""
_LEFT_OUT_STATEMENT = "PARTITION ("
"""Stands for a statement that there was no room for: it may have written a part of a table."""


class _Values(Generic[_Value]):
    """Values, each kept once, up to a number of bytes."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes
        self._kept: dict[_Value, _Value] = {}

    def kept(self, value: _Value) -> _Value | None:
        """Keep a value; None if there is no room for it."""
        known = self._kept.get(value)
        if known is None and len(value) <= self._left:
            self._left -= len(value)
            known = self._kept[value] = value
        return known


class Room:
    """Keeps facets and statements, each once: a thousand actions report the schema of one table.

    :ivar left_out: how much of what was not kept
    """

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._facets = _Values[bytes](MAX_FACETS_BYTES)
        self._statements = _Values[str](MAX_STATEMENTS_BYTES)
        self._datasets = 0

    def facet(self, raw: msgspec.Raw) -> bytes:
        """Keep a facet; :data:`LEFT_OUT` if there is no room for it."""
        view = memoryview(raw)
        kept = None
        if 0 < len(view) <= MAX_FACET_BYTES:
            kept = self._facets.kept(bytes(view))  # a copy: a view keeps all of its line
        if kept is None:
            self.left_out["facet(s)"] += 1
            return LEFT_OUT
        return kept

    def statement(self, sql: str) -> str:
        """Keep a statement; one that names no more than a part if there is no room for it."""
        kept = self._statements.kept(sql)
        if kept is None:
            self.left_out["SQL statement(s)"] += 1
            return _LEFT_OUT_STATEMENT
        return kept

    def dataset(self) -> bool:
        """Count one more dataset of an action; False if there is no room for it."""
        if self._datasets == MAX_DATASETS:
            self.left_out["dataset(s) of actions"] += 1
            return False
        self._datasets += 1
        return True

    def action(self, datasets: int) -> bool:
        """Whether there is room for one more action, which begins with so many datasets."""
        if self._datasets + datasets > MAX_DATASETS:
            self.left_out["event(s) of further actions"] += 1
            return False
        return True
