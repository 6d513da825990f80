"""How much of an application's events may be in memory; what there is no room for is counted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import msgspec

MAX_FACET_BYTES = 32 * 1024 * 1024
"""Of one facet. Column lineage of that size has 100,000 edges, and an event takes 4 MB in all."""
MAX_FACETS_BYTES = 192 * 1024 * 1024
"""Of all facets of an application, each distinct one once."""
MAX_DATASETS = 100_000
"""Of all actions together, a dataset once for each that accesses it; each takes some 7 KB."""

LEFT_OUT = b""
"""Stands for a facet that there was no room for."""


class Room:
    """Keeps facets, each of them once: a thousand actions report the schema of one table.

    :ivar left_out: how much of what was not kept
    """

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self._facets: dict[bytes, bytes] = {}
        self._bytes = 0
        self._datasets = 0

    def facet(self, raw: msgspec.Raw) -> bytes:
        """Keep a facet; :data:`LEFT_OUT` if there is no room for it."""
        view = memoryview(raw)
        copy = bytes(view) if len(view) <= MAX_FACET_BYTES else LEFT_OUT  # not the line it is from
        known = self._facets.get(copy)
        if known is not None:
            return known
        if not copy or self._bytes + len(copy) > MAX_FACETS_BYTES:
            self.left_out["facet(s)"] += 1
            return LEFT_OUT
        self._bytes += len(copy)
        self._facets[copy] = copy
        return copy

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
