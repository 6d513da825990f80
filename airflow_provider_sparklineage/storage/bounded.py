"""Calls with a limit of time, also of libraries that have no such limit."""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.model.budget import Budget

T = TypeVar("T")

_LONGEST_REASON = 500
_LOOK_S = 0.2  # between two checks of a budget, which a signal may end between them


class OutOfTimeError(Exception):
    """Raised when a call has not returned in time; its thread goes on, but is not waited for."""


class StoreError(Exception):
    """Raised when a request to a store fails; the message is the reason, without credentials."""


def within(seconds: float, action: Callable[[], T], name: str) -> T:
    """Call a function in a thread of its own, and give its result or raise its error.

    A library's own timeout is not enough, because it holds for each read: if a server sends a byte
    now and then, the library waits without end.

    :param seconds: the longest time that the call may take
    :param name: the name of the thread
    :raise OutOfTimeError: if the call takes longer
    """
    return _Call(action, name).result(seconds)


def asked(budget: Budget, action: Callable[[], T], name: str) -> T:
    """Call a function in a thread of its own, within a budget, and give its result.

    The budget is checked again and again, because other code may use it up during the call.

    :param name: the name of the thread
    :raise StoreError: if the call raises an error, or if no time is left before the call returns
    """
    if budget.is_spent():
        msg = "there was no time left to ask"
        raise StoreError(msg)
    before = budget.left
    call = _Call(action, name)
    try:
        while True:
            try:
                return call.result(max(0.0, min(_LOOK_S, budget.left)))
            except OutOfTimeError:
                if budget.is_spent():
                    raise
    except Exception as error:
        raise StoreError(reason(error, before)) from error


def reason(error: BaseException, seconds: float = 0) -> str:
    """Give the reason, in a few words, for which a request to a store failed.

    :param error: the error of the store's library, whose text may have a server's full answer
    :param seconds: the time that the store had for its answer; only for :class:`OutOfTimeError`
    """
    if isinstance(error, OutOfTimeError):
        return f"no answer within {seconds:.3g} s"
    # The text is scrubbed before it is truncated, because half of a secret is not recognised.
    return truncated(scrub(f"{type(error).__name__}: {error}"), _LONGEST_REASON)


class _Call(Generic[T]):
    """A call in a thread of its own."""

    def __init__(self, action: Callable[[], T], name: str) -> None:
        self._action = action
        self._done: list[T] = []
        self._failed: list[Exception] = []
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._run,), daemon=True, name=name)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._done.append(self._action())
        except Exception as error:
            self._failed.append(error)
        except BaseException as error:  # the waiting thread must not raise e.g. SystemExit
            self._failed.append(RuntimeError(f"{type(error).__name__}: {error}"))

    def result(self, seconds: float) -> T:
        """Wait for the call's end, and give the call's result or raise its error.

        :raise OutOfTimeError: if the call has not ended after ``seconds``
        """
        self._thread.join(seconds)
        if self._done:
            return self._done[0]
        if self._failed:
            raise self._failed[0]
        raise OutOfTimeError
