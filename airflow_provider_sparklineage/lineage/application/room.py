"""How much of an application's events may be in memory; what there is no room for is counted."""

from __future__ import annotations

from collections import Counter

import msgspec

MAX_FACET_BYTES = 32 * 1024 * 1024
"""Of one facet. Column lineage of that size has 100,000 edges, and an event takes 4 MB in all."""
MAX_FACETS_BYTES = 192 * 1024 * 1024
"""Of all facets of an application, each distinct one once."""
MAX_STATEMENTS_BYTES = 32 * 1024 * 1024
"""Of the SQL of all actions, each distinct statement once."""
MAX_DATASETS = 50_000
"""Of all actions together, a dataset once for each that accesses it; each takes 10 to 25 KB."""

LEFT_OUT = msgspec.Raw(b"")
"""Stands for a facet that there was no room for."""
_LEFT_OUT_STATEMENT = "PARTITION ("
"""Stands for a statement that there was no room for: it may have written a part of a table."""


class Room:
    """Keeps facets and statements, each once: a thousand actions report the schema of one table.

    :ivar left_out: how much of what was not kept
    """

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._facets: dict[bytes, msgspec.Raw] = {}
        self._facets_left = MAX_FACETS_BYTES
        self._statements: dict[str, str] = {}
        self._statements_left = MAX_STATEMENTS_BYTES
        self._datasets = 0

    def facet(self, raw: msgspec.Raw) -> msgspec.Raw:
        """Keep a facet; :data:`LEFT_OUT` if there is no room for it."""
        size = len(memoryview(raw))
        if not 0 < size <= MAX_FACET_BYTES:
            return LEFT_OUT
        text = bytes(raw)  # a copy: a view keeps all of its line
        known = self._facets.get(text)
        if known is None:
            if size > self._facets_left:
                return LEFT_OUT
            self._facets_left -= size
            known = self._facets[text] = msgspec.Raw(text)
        return known

    def count_lost(self, facets: int) -> None:
        """Count facets of an event that there was no room for."""
        self.left_out["facet(s)"] += facets

    def statement(self, sql: str) -> str:
        """Keep a statement; one that names no more than a part if there is no room for it."""
        known = self._statements.get(sql)
        if known is not None:
            return known
        if len(sql) > self._statements_left:
            self.left_out["SQL statement(s)"] += 1
            return _LEFT_OUT_STATEMENT
        self._statements_left -= len(sql)
        self._statements[sql] = sql
        return sql

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
