"""One writer of a store at a time: a file that says who, renewed for as long as it writes.

On a disk a file is created by a link, which fails where there is one; S3 has a condition for that.
On another object store two who start in the same instant may both have the lock: the one whose
file is there in the end goes on, as both look before they publish.
"""

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
_WAIT = "Wait for it; if it does not move for five minutes, the next build takes its place."


class Owner(Struct, frozen=True):
    """Who writes, since when, and when that was last known."""

    host: str
    pid: int
    token: str
    at: datetime
    since: datetime | None = None

    def is_gone(self, now: datetime) -> bool:
        """Whether this one does not write any more."""
        return now - self.at > STALE or (self.host == socket.gethostname() and not _runs(self.pid))

    def __str__(self) -> str:
        known = f"process {self.pid} on {self.host}"
        since = f" since {_text(self.since)}" if self.since else ""
        return f"{known}{since}, last seen {_text(self.at)} UTC"


class Lock:
    """The right to write to a store; a context.

    Who lost it, because it slept for longer than :data:`STALE`, must not publish what it made:
    :meth:`check` says so.
    """

    def __init__(self, files: Files, now: Callable[[], datetime]) -> None:
        self._files = files
        self._now = now
        self._token = uuid.uuid4().hex
        self._since = now()
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        self._take(NAME)
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

    def _take(self, name: str) -> None:
        """Create a lock, or take it over from who is gone.

        Of several who find it so, one takes it over: each needs a lock whose name has the token of
        who is gone, and only with that in hand looks again whether the lock is still that one's.
        """
        if self._files.create(name, self._text()):
            return
        owner = self._owner(name)
        if owner is None or not owner.is_gone(self._now()):
            raise _held(owner)
        above = f"{name}.{owner.token}"
        self._take(above)
        try:
            if self._owner(name) != owner:
                raise _held(self._owner(name))
            self._files.write(name, self._text())
        finally:
            self._files.remove(above)

    def _renew(self) -> None:
        while not self._ended.wait(_RENEWED_S):
            with suppress(OSError):
                if self._found(self._token) is None:
                    return
                self._files.write(NAME, self._text())

    def _found(self, token: str) -> Owner | None:
        owner = self._owner(NAME)
        return owner if owner is not None and owner.token == token else None

    def _owner(self, name: str) -> Owner | None:
        """Give who has a lock; None if it is free, or nobody can tell."""
        try:
            text = self._files.read(name)
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(text, type=Owner)
        except msgspec.MsgspecError:
            return _NOBODY

    def _text(self) -> bytes:
        return msgspec.json.encode(
            Owner(socket.gethostname(), os.getpid(), self._token, self._now(), self._since)
        )


_NOBODY = Owner("", 0, "unreadable", datetime.min.replace(tzinfo=UTC))
"""Who has a lock whose text is none."""


def _held(owner: Owner | None) -> HistoryError:
    who = f", by {owner}" if owner else ""
    return HistoryError(f"The history is being built already{who}.", _WAIT)


def _text(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S}"


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
