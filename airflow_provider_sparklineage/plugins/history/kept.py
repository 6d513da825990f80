"""What a state of the store is asked again and again, worked out once for all requests.

What is stale follows from all that was ever read and written, and what is due from all runs of a
task: of a large history that takes seconds, and it is the same for every user until the history is
built again. One thing is worked out at a time, because DuckDB uses all cores for it; who wants the
same meanwhile waits, and finds it.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from airflow_provider_sparklineage.plugins.history.opened import Asked

STATES = 2
"""States of stores that are kept; a request may still be answered from the one before."""
ANSWERS = 100
"""Answers that are kept of a state; most are on one dataset each."""


class _Latest:
    """Values by key, of which those that were asked for longest ago are forgotten."""

    def __init__(self, most: int) -> None:
        self._values: OrderedDict[Hashable, Any] = OrderedDict()
        self._most = most
        self._lock = Lock()

    def get(self, key: Hashable) -> Any:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def keep(self, key: Hashable, value: Any) -> Any:
        """Keep a value, unless there is one; gives the one that is kept."""
        with self._lock:
            kept = self._values.setdefault(key, value)
            while len(self._values) > self._most:
                self._values.popitem(last=False)
            return kept


class Kept:
    """What is known of one state of a store.

    :param most: how many answers are kept
    """

    def __init__(self, most: int = ANSWERS) -> None:
        self._answers = _Latest(most)
        self._working = Lock()

    def of(self, question: Hashable, work_out: Callable[[], Any]) -> Any:
        """Give the answer to a question, which is not None; it is worked out once."""
        if (found := self._answers.get(question)) is None:
            with self._working:
                if (found := self._answers.get(question)) is None:
                    found = self._answers.keep(question, work_out())
        return found


_STATES = _Latest(STATES)


def of(history: Asked) -> Kept:
    """Give what is known of the state of the store that is open."""
    state = (history.url, history.generation)
    known: Kept = _STATES.get(state) or _STATES.keep(state, Kept())
    return known
