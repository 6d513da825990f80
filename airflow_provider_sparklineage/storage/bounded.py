"""Calls that may take so long and no longer, in whatever library they wait."""

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
_LOOK_S = 0.2  # at a budget, of which a signal may take all


class OutOfTimeError(Exception):
    """Raised when a call has not returned in time; what is under way is left to itself."""


class StoreError(Exception):
    """Raised when a store did not do what it was asked; the message is the reason, scrubbed."""


def within(seconds: float, action: Callable[[], T], name: str) -> T:
    """Give what a call returns, or raise what it raises.

    A library's own timeout is for each read: who sends a byte now and then is waited for for ever.

    :param name: of the thread that it runs in
    :raise OutOfTimeError: if it takes longer
    """
    return _Call(action, name).result(seconds)


def asked(budget: Budget, action: Callable[[], T], name: str) -> T:
    """Give what a call returns for which there is a budget; that may become less meanwhile.

    :raise StoreError: whatever else it does
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
    """Say in a few words why a store did not do what it was asked.

    :param error: whatever its library raises; it may have all that a server answered
    :param seconds: that it was waited for
    """
    if isinstance(error, OutOfTimeError):
        return f"no answer within {seconds:.3g} s"
    # Half a secret would not be recognised.
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
        except BaseException as error:  # raised where it is waited for, it would end that as well
            self._failed.append(RuntimeError(f"{type(error).__name__}: {error}"))

    def result(self, seconds: float) -> T:
        """Wait so long for what it returns or raises."""
        self._thread.join(seconds)
        if self._done:
            return self._done[0]
        if self._failed:
            raise self._failed[0]
        raise OutOfTimeError
