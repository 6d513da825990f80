"""One writer of a store at a time: a file that says who, renewed for as long as it writes."""

from __future__ import annotations

import os
import socket
import threading
import uuid
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

import msgspec
from msgspec import Struct

from airflow_provider_sparklineage.model.exceptions import HistoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.history.store.files import Files

NAME = "lock.json"
STALE = timedelta(minutes=5)
"""Whose lock was not renewed for so long does not write any more."""
_RENEWED_S = 30.0
_WAIT = "Wait for it."


class Owner(Struct, frozen=True):
    """Who writes, and when that was last known."""

    host: str
    pid: int
    token: str
    at: datetime

    def is_gone(self, now: datetime) -> bool:
        """Whether this one does not write any more."""
        return now - self.at > STALE or (self.host == socket.gethostname() and not _runs(self.pid))


class Lock:
    """The right to write to a store; a context.

    Who lost it, because it slept for longer than :data:`STALE`, must not publish what it made:
    :meth:`check` says so.
    """

    def __init__(self, files: Files, now: Callable[[], datetime]) -> None:
        self._files = files
        self._now = now
        self._token = uuid.uuid4().hex
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        if not self._files.create(NAME, self._text()):
            self._take_over()
        threading.Thread(target=self._renew, daemon=True, name="sparklineage-history").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with suppress(OSError, HistoryError):
            self.check()
            self._files.remove(NAME)

    def check(self) -> None:
        """Raise a :exc:`HistoryError` if somebody else has the lock now."""
        if self._found(self._token) is None:
            problem = "Another build has taken over this store, as this one did not move for long."
            raise HistoryError(problem, "What the other one builds is whole. Build again after it.")

    def _take_over(self) -> None:
        owner = self._owner()
        if owner is not None and not owner.is_gone(self._now()):
            who = f"process {owner.pid} on {owner.host}, last seen {owner.at:%Y-%m-%d %H:%M:%S} UTC"
            problem = f"The history is being built already, by {who}."
            raise HistoryError(problem, _WAIT)
        # Of two that find it stale, the second removes the first one's, which notices it: `check`.
        self._files.remove(NAME)
        if not self._files.create(NAME, self._text()):
            problem = "The history is being built already."
            raise HistoryError(problem, _WAIT)

    def _renew(self) -> None:
        while not self._ended.wait(_RENEWED_S):
            with suppress(OSError):
                if self._found(self._token) is None:
                    return
                self._files.write(NAME, self._text())

    def _found(self, token: str) -> Owner | None:
        owner = self._owner()
        return owner if owner is not None and owner.token == token else None

    def _owner(self) -> Owner | None:
        try:
            return msgspec.json.decode(self._files.read(NAME), type=Owner)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def _text(self) -> bytes:
        return msgspec.json.encode(
            Owner(socket.gethostname(), os.getpid(), self._token, self._now())
        )


def utc_now() -> datetime:
    """Give the time of this machine."""
    return datetime.now(UTC)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # another user's
        return True
    return True
