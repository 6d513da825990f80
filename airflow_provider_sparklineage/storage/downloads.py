"""Many files of a store, several at once, in order and in time."""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.storage.bounded import StoreError, reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.storage.objects import Objects

_AT_ONCE = 8  # each waits for answers most of the time
_TRIES = 2
_LOOK_S = 0.2


def downloaded(
    store: Objects, sizes: Mapping[str, int], folder: Path, budget: Budget
) -> Iterator[tuple[str, Path | StoreError]]:
    """Yield files in the order of their names as given, each when it is here, or why it is not.

    Ends with the budget; what is not here by then is not yielded, and what hangs is left to itself.

    :param sizes: of the files, by name
    :param folder: an empty one of this user's; the files in it are the caller's to remove
    """
    begun = budget.left
    jobs = [(name, folder / str(n), Future[None]()) for n, name in enumerate(sizes)]
    waiting, ended = deque(jobs), threading.Event()

    def run() -> None:
        with suppress(IndexError):  # there are no more
            while not ended.is_set():
                name, target, future = waiting.popleft()
                try:
                    _download(store, name, sizes[name], target)
                except Exception as error:
                    future.set_exception(error)
                else:
                    future.set_result(None)

    for _ in range(min(_AT_ONCE, len(jobs))):
        context = contextvars.copy_context()
        # Not those of an executor, for which the process would wait when it ends.
        threading.Thread(
            target=context.run, args=(run,), daemon=True, name="sparklineage-download"
        ).start()
    try:
        for name, target, future in jobs:
            while not future.done():
                if budget.is_spent():
                    return
                with suppress(TimeoutError):
                    future.exception(max(0.0, min(_LOOK_S, budget.left)))
            failed = future.exception()
            if failed is None:
                yield name, target
            else:
                yield name, StoreError(reason(failed, begun))
    finally:
        ended.set()


def _download(store: Objects, name: str, size: int, target: Path) -> None:
    for tried in range(_TRIES):
        try:
            store.download(name, target)
            break
        except OSError:  # a connection that broke
            if tried + 1 == _TRIES:
                raise
    if (found := target.stat().st_size) != size:
        msg = f"{found} of its {size} bytes arrived"
        raise OSError(msg)
