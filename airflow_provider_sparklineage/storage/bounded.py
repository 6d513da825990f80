"""Calls that may take so long and no longer, in whatever library they wait."""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class OutOfTimeError(Exception):
    """Raised when a call has not returned in time; what is under way is left to itself."""


def within(seconds: float, action: Callable[[], T], name: str) -> T:
    """Give what a call returns, or raise what it raises.

    A library's own timeout is for each read: who sends a byte now and then is waited for for ever.

    :param name: of the thread that it runs in
    :raise OutOfTimeError: if it takes longer
    """
    done: list[T] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            done.append(action())
        except Exception as error:
            failed.append(error)
        except BaseException as error:  # raised where it is waited for, it would end that as well
            failed.append(RuntimeError(f"{type(error).__name__}: {error}"))

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), daemon=True, name=name)
    thread.start()
    thread.join(seconds)
    if done:
        return done[0]
    if failed:
        raise failed[0]
    raise OutOfTimeError
