"""Calls with a limit of time, even if the called library has no such limit."""

from __future__ import annotations

import contextvars
import errno
import os
import threading
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, TypeVar

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


class StoreError(OSError):
    """Raised when a request to a store fails; the message is the reason, without credentials."""


def within(seconds: float, action: Callable[[], T], name: str) -> T:
    """Call ``action`` in a thread of its own, and give its result or raise its error.

    A library's own timeout is not enough, because it holds for each read: if a server sends a byte
    now and then, the library waits without end.

    :param seconds: the longest time that the call may take
    :param name: the name of the thread
    :raise OutOfTimeError: if the call takes longer
    """
    call = started(action, name)
    if not wait([call], seconds).done:
        raise OutOfTimeError
    return call.result()


def within_budget(budget: Budget, action: Callable[[], T], name: str) -> T:
    """Call ``action`` in a thread of its own, within a budget, and give its result.

    :param name: the name of the thread
    :raise StoreError: if the call raises an error, or if no time is left before the call returns
    """
    if budget.is_spent():
        msg = "there was no time left to ask"
        raise StoreError(msg)
    before = budget.left
    call = started(action, name)
    is_ended = ends_within(budget, call)
    error = call.exception() if is_ended else OutOfTimeError()
    if error is not None:
        raise StoreError(reason(error, before)) from error
    return call.result()


def started(action: Callable[[], T], name: str) -> Future[T]:
    """Call ``action`` in a thread of its own, and return at once with the future of its result.

    The process does not wait for this thread before it ends.

    :param name: the name of the thread
    """
    call = Future[T]()
    context = contextvars.copy_context()
    arguments = (settle, call, action)
    threading.Thread(target=context.run, args=arguments, daemon=True, name=name).start()
    return call


def settle(call: Future[T], action: Callable[[], T]) -> None:
    """Call ``action``, and give its result or its error to the threads that wait for ``call``."""
    try:
        call.set_result(action())
    except Exception as error:
        call.set_exception(error)
    except BaseException as error:  # the waiting thread must not raise e.g. SystemExit
        call.set_exception(RuntimeError(f"{type(error).__name__}: {error}"))
    finally:
        del call, action  # else the error keeps them and they the error, until garbage is collected


def ends_within(budget: Budget, call: Future[T]) -> bool:
    """Wait until a call has ended or the budget is spent; return whether the call has ended.

    The budget is checked again and again, because other code may use it up during the call.
    """
    while not call.done():
        if budget.is_spent():
            return False
        wait([call], max(0.0, min(_LOOK_S, budget.left)))
    return True


def reason(error: BaseException, seconds: float = 0) -> str:
    """Give the reason, in a few words, for which a request to a store failed.

    :param error: the error of the store's library, whose text may have a server's full answer
    :param seconds: the time that the store had for its answer; only for :class:`OutOfTimeError`
    """
    if isinstance(error, OutOfTimeError):
        return f"no answer within {seconds:.3g} s"
    text = str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
    for query in ("\n\nLINE ", "\n[SQL: "):  # added by DuckDB, and by SQLAlchemy
        text = text.partition(query)[0]
    text = " ".join(text.split())
    # The text is scrubbed before it is truncated, because half of a secret is not recognised.
    return truncated(scrub(text), _LONGEST_REASON)


_FULL = "Make room there, or name another place."
_REFUSED = "Run it as a user who may do that, or name another place."
_NO_SUCH = "Correct the path."
_OUT_OF_REACH = "Try again when it can be reached, or correct its URL or connection."
_BY_CODE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), _FULL),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), _REFUSED),
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST), _NO_SUCH),
    **dict.fromkeys((errno.ELOOP, errno.ENAMETOOLONG, errno.EINVAL), _NO_SUCH),
}


def remedy(error: BaseException, otherwise: str = _OUT_OF_REACH) -> str:
    """Give the advice for an error of a file, a disk or a store, as a sentence.

    :param otherwise: the advice if the error does not tell its kind
    """
    if isinstance(error, StoreError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, ImportError):
        return "Install it."
    if isinstance(error, StoreError | ValueError):
        return "Correct the URL, or its connection."
    if (code := getattr(error, "errno", None)) in _BY_CODE:
        return _BY_CODE[code]
    # The errors of libraries have no code, but some have the system's words for it.
    text = str(error)
    words = (one for one, advice in _BY_CODE.items() if advice != _NO_SUCH)
    return next((_BY_CODE[one] for one in words if os.strerror(one) in text), otherwise)
