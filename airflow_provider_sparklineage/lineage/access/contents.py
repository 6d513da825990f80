"""What the writes of an application have put into a dataset: columns, sources, bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.lineage.columns import ColumnLineage, unite_into

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accesses import Access
    from airflow_provider_sparklineage.lineage.columns import Column, Edges, Transformations
    from airflow_provider_sparklineage.model.datasets import DatasetName


class Write(NamedTuple):
    """The write of a complete action, and what it was made of.

    :param columns: its column lineage, with intermediates resolved; None where it was cut
    :param sources: datasets from outside that it was made of
    """

    ended: datetime
    access: Access
    columns: ColumnLineage | None
    sources: frozenset[DatasetName]

    @property
    def locations(self) -> frozenset[str]:
        """Where it wrote; empty where that is not known."""
        return self.access.scope.locations or frozenset()

    @property
    def replaced(self) -> frozenset[str]:
        """The locations that hold nothing older since."""
        return self.access.owned.locations or frozenset()


class Contents:
    """What writes have put into one dataset, added in the order in which they ended."""

    def __init__(self, writes: Iterable[Write] = ()) -> None:
        self._fields: dict[str, Edges] = {}
        self._united: dict[str, dict[Column, Transformations]] = {}
        """Those of several writes; others are a write's own, and stay as they are."""
        self._dataset: dict[Column, Transformations] = {}
        self._only: ColumnLineage | None = None
        """The columns of the only write of which something is left."""
        self.sources: frozenset[DatasetName] = frozenset()
        self.is_cut = False
        """Whether the columns of some write are not known; then none are."""
        self.is_full = False
        """Whether the dataset holds nothing older than these writes."""
        self.size: int | None = None
        self.empty = True
        self.size_alone: int | None = None
        """Bytes there would be, had the last write that does not append replaced everything."""
        self._replaced: set[str] | None = set()  # None: not by locations alone
        for write in writes:
            self.add(write)

    @property
    def columns(self) -> ColumnLineage:
        """What the columns are made of: a view, which a later write changes.

        What a single write has put there is the column lineage of that write, the same object.
        """
        if self.is_cut:
            return ColumnLineage()
        return self._only or ColumnLineage(self._fields, self._dataset)

    def add(self, write: Write) -> None:
        """Have the contents after one more write, in time of the length of its lineage."""
        access, replaced = write.access, write.replaced
        if access.owned.full or self.empty:
            self._fields, self._united = {}, {}
            self._dataset, self.sources = {}, frozenset()
            self._only = write.columns
            self.is_cut = False
            self.size = self.size_alone = access.size
            self._replaced = set(replaced) if replaced else None
        else:
            self._only = None
            # Else it is not known how much of what was there is left.
            adds = access.appends or self._is_remote(replaced)
            self.size = _sum(self.size, access.size) if adds else None
            self.size_alone = _sum(self.size_alone, access.size) if access.appends else access.size
            if not replaced:
                self._replaced = None
            elif self._replaced is not None:
                self._replaced |= replaced
        self.is_full = self.is_full or access.owned.full
        self.empty = False
        self.sources |= write.sources
        if write.columns is None:
            self.is_cut = True
            return
        for name, edges in write.columns.fields.items():
            known = self._fields.setdefault(name, edges)
            if known is not edges:
                own = self._united.get(name)
                if own is None:
                    own = self._fields[name] = self._united[name] = dict(known)
                unite_into(own, edges)
        unite_into(self._dataset, write.columns.dataset)

    def _is_remote(self, replaced: frozenset[str]) -> bool:
        """Whether a write replaced locations to which none of the writes before went."""
        known = self._replaced
        return bool(replaced) and known is not None and known.isdisjoint(replaced)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
