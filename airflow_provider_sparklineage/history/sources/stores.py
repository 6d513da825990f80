"""Another store, whose facts are taken as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.store import GENERATIONS, LOCK, MANIFEST, SCRATCH, Store

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Iterator, Mapping

    from airflow_provider_sparklineage.history.sources import Piece


class StoreSource:
    """A store; it has facts and no events, which :meth:`.Store.build` sees to."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def pieces(self, known: Mapping[str, str], skipped: Counter[str]) -> Iterator[Piece]:
        """Give nothing; see :class:`.Source`."""
        del known, skipped
        return iter(())


def store_at(url: str) -> StoreSource | None:
    """Give the store at a path or URL; None if there is none, or it cannot be listed."""
    store = Store(url)
    try:
        names = store.files.names("")
    except Exception:  # a store's library raises what it likes; who lists all of it says so
        return None
    return StoreSource(store) if is_store(names) else None


def is_store(*names: Collection[str]) -> bool:
    """Whether a folder is a store, or becomes one just now, by the names of what is in it."""
    found = {name for some in names for name in some}
    return {MANIFEST, GENERATIONS} <= found or {LOCK, SCRATCH} <= found
