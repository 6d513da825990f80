"""The bound of time of a question: nobody can hold a thread or a machine by asking.

A caller opens a bound, and everything that is asked within it ends by then or raises
:exc:`.LimitError`. The bound is in a context variable, because the loops that have to look at it
are far below the question: engines end a query that runs too long, and loops in Python call
:func:`check`.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.exceptions import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Bound(NamedTuple):
    """The end of the time that a question may take.

    :param seconds: the time that the question had at its beginning
    :param ends: its end, on the clock of :func:`time.monotonic`
    :param fix: the advice if the time is over
    """

    seconds: float
    ends: float
    fix: str

    @classmethod
    def of(cls, seconds: float, fix: str) -> Bound:
        """Make the bound of a question that begins now."""
        return cls(seconds, time.monotonic() + seconds, fix)


_BOUND: ContextVar[Bound | None] = ContextVar("bound", default=None)


@contextmanager
def within(bound: Bound | None) -> Iterator[None]:
    """Let everything that is asked in the ``with`` block end by the end of a bound.

    :param bound: None for no end
    :raise LimitError: in :func:`check` and in queries, if the time is over
    """
    before = _BOUND.set(bound)
    try:
        check()
        yield
    finally:
        _BOUND.reset(before)


@contextmanager
def within_share(share: float) -> Iterator[None]:
    """Let what is asked in the ``with`` block end when a share of the time left now is over.

    :raise LimitError: as :func:`within` does
    """
    bound = _BOUND.get()
    if bound is not None:
        bound = Bound.of((left() or 0) * share, bound.fix)
    with within(bound):
        yield


def check() -> None:
    """Check that the time is not over; does nothing where there is no bound.

    :raise LimitError: if it is over
    """
    bound = _BOUND.get()
    if bound is not None and time.monotonic() >= bound.ends:
        problem = f"The answer took longer than {bound.seconds:g} s, and was given up."
        raise LimitError(problem, bound.fix)


def left() -> float | None:
    """Give the seconds that are left, at least 0; None where there is no bound."""
    bound = _BOUND.get()
    return None if bound is None else max(0.0, bound.ends - time.monotonic())


def late_at(share: float) -> Callable[[], bool]:
    """Give a function that tells whether less than a share of the time that is left now is left.

    Where there is no bound, it is never late.
    """
    needed_s = (left() or 0) * share

    def is_late() -> bool:
        seconds = left()
        return seconds is not None and seconds < needed_s

    return is_late


_AGAIN_S = 0.1


@contextmanager
def interrupting(interrupt: Callable[[], None]) -> Iterator[None]:
    """Call a function when the time is over, while the ``with`` block runs.

    It is called again and again until the block ends: a query that is about to begin would not
    notice that it was interrupted before.

    :param interrupt: a function that other threads may call; it makes the block raise an error
    """
    seconds = left()
    if seconds is None:
        yield
        return
    check()
    is_over = threading.Event()

    def watch() -> None:
        wait_s = seconds
        while not is_over.wait(wait_s):
            interrupt()
            wait_s = _AGAIN_S

    watching = threading.Thread(target=watch, daemon=True, name="sparklineage-bound")
    watching.start()
    try:
        yield
    finally:
        is_over.set()
        watching.join()  # else it could interrupt a later query
