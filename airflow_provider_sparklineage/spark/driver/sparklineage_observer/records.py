"""The output file and the limits; what exceeds a limit is reported once, and then left out."""

import errno
import json
import os
import threading
import time

VERSION = 1
"""Of the record format: ``schemas/observation.json``."""


class Limits:
    """How much may be looked at; overridden by ``name=value,...``.

    Each is far above what a job of ordinary size needs, and low enough that looking stays a matter
    of seconds on Spark's listener thread.
    """

    def __init__(self, text=""):
        self.partitions = 20000  # of one scan or write
        self.files = 60000  # named in one call: some 15 MB of text through py4j
        self.directories = 20000  # listed for one write
        self.seconds = 10.0  # for one query
        self.total_seconds = 600.0
        self.total_bytes = 64 * 1024 * 1024
        self.commits = 1000  # of one table, read at exit
        self.written = 1000  # folders that are looked for at exit
        self.plans = "needed"  # or of "all" writes
        self.plan_bytes = 1024 * 1024  # of one: some 100 ms
        self.plans_bytes = 16 * 1024 * 1024
        self.leaves = 100  # of a plan; some six calls each
        for item in text.split(","):
            name, _, value = item.partition("=")
            if name.strip() in self.__dict__:
                kind = type(getattr(self, name.strip()))
                setattr(self, name.strip(), kind(value))


MAX_MESSAGE = 500
"""Characters of what went wrong: an exception of the JVM can have a plan of megabytes in it."""


def message_of(where, error):
    """Describe an exception in a few words."""
    return shortened(f"{where}: {type(error).__name__}: {error}")


def shortened(text):
    """Truncate a message, between words where it can be: half a secret would not be recognised."""
    if len(text) <= MAX_MESSAGE:
        return text
    kept = text[: MAX_MESSAGE - 1]
    words = kept.rpartition(" ")[0]
    return (words if len(words) > MAX_MESSAGE // 2 else kept) + "…"


class Clock:
    """Compares the driver's clock with one that nobody sets.

    put_back: by how many ms the clock was put back, in all, as far as it was looked at.
    """

    def __init__(self):
        self.put_back = 0
        self._ahead = _ahead()

    def look(self):
        """Give by how many ms it was put back since the last look, if that is more than a second.

        What adjusts it slowly adjusts both.
        """
        ahead = _ahead()
        if ahead is None:
            return 0
        if self._ahead is None or ahead > self._ahead:
            self._ahead = ahead
        back = round((self._ahead - ahead) * 1000)
        if back <= _PUT_BACK_MS:
            return 0
        self._ahead = ahead
        self.put_back += back
        return back


_PUT_BACK_MS = 1000


def _ahead():
    """Give by how much one clock is ahead; None where another thread came between, each time."""
    for _ in range(3):
        before = time.monotonic()
        now = time.time()
        after = time.monotonic()
        if after - before < _PUT_BACK_MS / 10000:
            return now - after
    return None


class OverBudgetError(Exception):
    """Raised when a limit is reached; the message names it."""


class Budget:
    """The time that one query may take."""

    def __init__(self, limits):
        self.limits = limits
        self._until = time.monotonic() + limits.seconds

    def check(self):
        """Raise OverBudgetError when the time is up."""
        if time.monotonic() > self._until:
            message = f"looking took longer than {self.limits.seconds:g} s"
            raise OverBudgetError(message)

    def require(self, count, limit, what):
        """Raise OverBudgetError when there is more to look at than the named limit allows."""
        allowed = getattr(self.limits, limit)
        if count > allowed:
            message = f"{count} {what} are more than the limit of {allowed}"
            raise OverBudgetError(message)


def query_record(query, function, started, ended, duration=0):
    """Begin the record of a query; times in ms.

    started: when Spark began to optimise it, None if not known; ended: when it was over at the
    latest; duration: 0 if not known.
    """
    if started is None:
        started = ended - duration
    if duration:
        ended = min(ended, started + duration)
    record = {
        "kind": "query",
        "version": VERSION,
        "query": query,
        "function": function,
        "started": started,
        "ended": ended,
        "reads": [],
        "writes": [],
    }
    if duration:
        record["duration"] = duration
    return record


def guarded(record, what, act):
    """Let the trouble of one node not be that of the others."""
    try:
        act()
    except OverBudgetError as error:
        record.setdefault("cut", []).append(shortened(str(error)))
    except Exception as error:
        record.setdefault("errors", []).append(message_of(what, error))


class Records:
    """Appends records to the file, full lines only, for this user only.

    A record that cannot be written, on a disk that is full, is lost; the next one that can be says
    so.
    """

    def __init__(self, file, limits):
        self._file = file
        self._limits = limits
        self._lock = threading.Lock()
        self._bytes = 0
        self._lost = 0
        self._is_torn = False
        self.full = False
        """That nothing more is written: looking on would be in vain."""

    def write(self, record):
        """Append a record; beyond the size limit, one that says so, and nothing after it."""
        line = _line(record)
        with self._lock:
            if self.full:
                return
            if self._bytes + len(line) > self._limits.total_bytes:
                self.full = True
                message = f"observations exceed {self._limits.total_bytes} bytes"
                line = _line({"kind": "cut", "cut": [message]})
            try:
                self._append(line)
            except OSError as error:
                self._lost += 1
                self._why = error

    def _append(self, line):
        if self._lost:
            error = message_of(f"{self._lost} record(s) could not be written", self._why)
            line = _line({"error": error}) + line
        if self._is_torn:  # or the half of a line would spoil this one
            line = b"\n" + line
        handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            written = os.write(handle, line)
        finally:
            os.close(handle)
        self._bytes += written
        self._is_torn = written < len(line)
        if self._is_torn:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._lost = 0


def _line(record):
    return json.dumps(record, separators=(",", ":"), default=str).encode() + b"\n"
