"""The shapes of records, the file of records, the observer's limits, and the driver's clock."""

import errno
import json
import os
import threading
import time

VERSION = 1
"""The version of the record format, which ``schemas/observation.json`` describes."""


class Limits:
    """The limits on the observer's work.

    Each limit is far above the need of an ordinary job, but so low that the observer uses Spark's
    listener thread only for seconds.

    :param text: ``name=value,...`` for each limit whose default is changed
    """

    def __init__(self, text=""):
        self.partitions = 20000  # of one scan or write
        self.files = 60000  # in one call, which are some 15 MB of text through py4j
        self.directories = 20000  # that are listed for one write
        self.seconds = 10.0  # of CPU time, for one query
        self.total_seconds = 600.0  # of CPU time, for all queries
        self.wait_seconds = 30.0  # by the clock, for one query, plus the share
        self.wait_share = 0.1  # of the application's age, in seconds by the clock
        self.total_bytes = 64 * 1024 * 1024  # of all records
        self.commits = 1000  # of one table, which are read at exit
        self.written = 1000  # folders whose existence is checked at exit
        self.footers = 5000  # files of one write, whose rows are counted
        self.footer_seconds = 5.0  # by the clock, for that
        self.total_footer_seconds = 60.0  # by the clock, for those of all writes
        self.plans = "needed"  # record plans where they are "needed", or of "all" writes
        self.plan_bytes = 1024 * 1024  # of the JSON of one plan, which takes some 100 ms
        self.plans_bytes = 16 * 1024 * 1024  # of the JSON of all plans
        self.leaves = 1000  # different ones of one plan; each costs some six calls
        for item in text.split(","):
            name, _, value = item.partition("=")
            if name.strip() in self.__dict__:
                kind = type(getattr(self, name.strip()))
                setattr(self, name.strip(), kind(value))


MAX_MESSAGE = 500
"""The largest number of characters of an error message: an exception of the JVM can contain a plan
of megabytes."""


def message_of(where, error):
    """Describe an exception in one short text, which begins with the place of the error.

    :param where: a word for the place, such as ``attach``
    """
    return shortened(f"{where}: {type(error).__name__}: {error}")


def shortened(text):
    """Truncate a message to :data:`MAX_MESSAGE` characters, if possible between words.

    Secrets in messages are masked later, and half a secret would not be recognised.
    """
    if len(text) <= MAX_MESSAGE:
        return text
    kept = text[: MAX_MESSAGE - 1]
    words = kept.rpartition(" ")[0]
    return (words if len(words) > MAX_MESSAGE // 2 else kept) + "…"


class Clock:
    """Compares the driver's clock, which can be set, with the monotonic clock, which cannot be set.

    put_back: the number of ms by which the driver's clock was put back in all, as far as calls of
    :meth:`look` have noticed it.
    """

    def __init__(self):
        self.put_back = 0
        self._ahead = _ahead()

    def look(self):
        """Give the number of ms by which the clock was put back since the last call of this method.

        A second or less counts as 0. A service that adjusts the clock slowly adjusts both clocks,
        and so is not noticed.
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
    """Give the seconds by which the driver's clock is ahead of the monotonic clock.

    :return: None if, in each of three tries, more than 0.1 s passed between two readings
    """
    for _ in range(3):
        before = time.monotonic()
        now = time.time()
        after = time.monotonic()
        if after - before < _PUT_BACK_MS / 10000:
            return now - after
    return None


class OverBudgetError(Exception):
    """Raised when a limit is reached; the message names the limit."""


class Budget:
    """The time that the observer may take for one query, and the limits on numbers.

    The time is CPU time: of the thread that makes the budget, and of the JVM's thread that answers
    its calls. On a busy machine both mostly wait, and a look that costs 20 ms takes seconds. By the
    clock the look may take :meth:`longest`. No CPU time is measured while the look is short by the
    clock, because the JVM has to be asked for its part.

    :param limits: the :class:`Limits`
    :param answers: a function that gives the CPU time of the JVM's answering thread, in seconds;
        None if it is not known: then the time by the clock counts
    :param began: the monotonic time at which the application began; by default it begins now
    :param is_measured: whether to measure from the beginning, because the last look was slow
    """

    def __init__(self, limits, answers=None, began=None, *, is_measured=False):
        self.limits = limits
        self._answers = answers
        self._begun = time.monotonic()
        self._own = time.thread_time()
        self._began = self._begun if began is None else began
        self._next = self._begun + min(_SLOW_S, limits.seconds)
        self._over = ""
        self._answers_at = self._answered() if is_measured else None

    def check(self):
        """Raise OverBudgetError if the time is up."""
        self.measure()
        if self._over:
            raise OverBudgetError(self._over)

    def measure(self):
        """Compare the time with its limits, but raise nothing; cheap if called often."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _SLOW_S
        taken, limits, longest = now - self._begun, self.limits, self.longest()
        if self._answers_at is None and (answered := self._answered()) is not None:
            # Until now it cannot have answered for longer than this look has taken.
            self._answers_at = max(0.0, answered - taken)
        if taken > limits.seconds and self.spent() > limits.seconds:
            self._over = f"looking took longer than {limits.seconds:g} s"
        elif taken > longest:
            self._over = (
                f"looking took longer than {longest:.0f} s on a busy machine or of a slow store"
            )

    def longest(self):
        """Give the seconds that a look may take by the clock."""
        limits = self.limits
        return limits.wait_seconds + limits.wait_share * (time.monotonic() - self._began)

    def spent(self):
        """Give the CPU seconds that were spent; the seconds by the clock if they are not known."""
        taken = time.monotonic() - self._begun
        answered = None if self._answers_at is None else self._answered()
        if answered is None:
            return taken
        return min(taken, time.thread_time() - self._own + answered - self._answers_at)

    @property
    def is_slow(self):
        """Whether the look has taken so long that its CPU time is worth measuring."""
        return time.monotonic() - self._begun > _SLOW_S

    def _answered(self):
        try:
            return None if self._answers is None else self._answers()
        except Exception:  # this JVM does not measure it
            return None

    def require(self, count, limit, what):
        """Raise OverBudgetError if a count is above a limit.

        :param count: the number of things
        :param limit: the name of an attribute of :class:`Limits`
        :param what: a noun for the counted things, for the message
        """
        allowed = getattr(self.limits, limit)
        if count > allowed:
            message = f"{count} {what} are more than the limit of {allowed}"
            raise OverBudgetError(message)


_SLOW_S = 1.0


def query_record(query, function, started, ended, duration=0, planned=None):
    """Make the record of a query, to which its reads and writes can be added; times are in ms.

    query: the id of the query's QueryExecution; function: Spark's name of the action, such as
    ``command`` or ``collect``; started: the time when Spark began to optimise the query, or None if
    it is not known; ended: a time at which the query had ended; duration: the query's duration, or
    0 if it is not known; planned: the time when Spark began to optimise the plan, which may have
    been for an earlier query or for ``explain``.

    The record's ``ended`` is the most likely one. The query ran between ``planned`` and ``seen``,
    where the record has these.
    """
    seen = ended
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
    if planned is not None and planned < started:
        record["planned"] = planned
    if seen > ended:
        record["seen"] = seen
    return record


def write_record(node, kind, path, mode, layouts=(), **more):
    """Make the record of a write whose partitions are known, an entry of a record's ``writes``.

    node: the class name of the command, or a name such as ``DeltaCommit``; kind: the format of the
    table; path: the path of the table; mode: the change to its data, such as ``append`` or
    ``create``; layouts: the partitions that were written, a list from :func:`layout_of`; more:
    further keys of the record.
    """
    write = {"node": node, "format": kind, "path": path, "mode": mode, "how": "exact"}
    return {**write, "layouts": list(layouts), **more}


def layout_of(base, dimensions, partitions):
    """Give a layout, ``{"base", "dimensions", "partitions"}``: the partitions below one folder.

    :param base: the path of the folder
    :param dimensions: a list of the partition columns, from :func:`dimension_of`
    :param partitions: tuples of values, in the order of the columns, with None for null
    """
    return {"base": base, "dimensions": dimensions, "partitions": sorted_partitions(partitions)}


class Figures:
    """The rows and bytes that a write added to each partition."""

    def __init__(self):
        self._of = {}

    def add(self, partition, rows, size):
        """Add the figures of a file.

        :param partition: a tuple of values
        :param rows: the number of rows; None if it is not known
        :param size: the number of bytes
        """
        known, total = self._of.get(partition, (0, 0))
        both = None if known is None or rows is None else known + rows
        self._of[partition] = both, total + size

    def describe(self, layout):
        """Add the figures to a layout: ``rows`` and ``bytes``, in the order of its partitions.

        :param layout: a dict from :func:`layout_of`; partitions without figures got no rows
        """
        figures = [self._of.get(tuple(values), (0, 0)) for values in layout["partitions"]]
        layout["bytes"] = [size for _, size in figures]
        if not figures or any(rows is not None for rows, _ in figures):
            layout["rows"] = [rows for rows, _ in figures]


def dimension_of(column, kind=""):
    """Describe a partition column as ``{"field": column, "transform": "identity", "type": kind}``.

    :param column: the column's name
    :param kind: the column's type, such as ``date``; "" if it is unknown
    """
    return {"field": column, "transform": "identity", "type": kind}


def sorted_partitions(partitions):
    """Give partitions (tuples of texts and None) as a sorted list of lists, None before texts."""
    return sorted(
        map(list, partitions), key=lambda values: [(v is not None, v or "") for v in values]
    )


def guarded(record, what, act, *args):
    """Call ``act(*args)`` and drop its result; an error is not raised, but noted in a record.

    The error is added to the record's ``errors``, or to its ``cut`` if a limit was reached.

    record: a dict; what: the word with which a note in ``errors`` begins, such as ``schema``.
    """
    try:
        act(*args)
    except OverBudgetError as error:
        record.setdefault("cut", []).append(shortened(str(error)))
    except Exception as error:
        record.setdefault("errors", []).append(message_of(what, error))


class Records:
    """The file of records, to which full lines are appended, and which only this user can read.

    A record that cannot be written because the disk is full is lost. Before the next record that
    can be written, an error is written that counts the lost records.
    """

    def __init__(self, file, limits):
        self._file = file
        self._limits = limits
        self._lock = threading.Lock()
        self._bytes = 0
        self._lost = 0
        self._is_torn = False
        self.full = False
        """Whether the size limit is reached: then no more records are written."""

    def write(self, record):
        """Append a record; at the size limit, append a note instead, and from then on nothing.

        :param record: a dict that can be written as JSON
        """
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
        if self._is_torn:  # ends the half line before, which would otherwise spoil this line, too
            line = b"\n" + line
        # O_NONBLOCK: if a pipe is in the place of the file, the job would wait for its reader.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        handle = os.open(self._file, flags, 0o600)
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
