"""What the listener and the observer of a driver in a cluster write, brought to the worker.

Both write into a folder of the driver's container, which is gone with the container. A thread puts
what is new there into a folder that the worker reads, too: whole lines, in segments that are never
changed. It does so shortly after each query that has written, at the latest every 30 s, and at
exit. ``spark/capture/remote.py`` has the layout.

The job waits for none of it but at exit, and then only so long. What fails is tried again, with
pauses that grow.
"""

import json
import os
import re
import sys
import threading
import time
import uuid

from sparklineage_observer.jvm import option
from sparklineage_observer.remote_folder import RemoteFolder

_KINDS = ("events", "observations")
_EVERY_S = 30
_SHORTLY_S = 0.5  # in which the listener's event of the query comes, and other queries end
_SHARE = 0.1  # of the time, at most, for delivering
_THINNING = 100  # an application that is some hours old need not deliver each second
_LONGEST_PAUSE_S = 120
_AGAIN_S = 1
_EXIT_S = 10
_SEGMENT_BYTES = 8 * 1024 * 1024
# ``scheme://user:password@`` and ``?signature=…`` in an URL; ``container@`` of Azure is no secret.
_USER = re.compile(r"(?<=://)(?:[^/\s@]*:[^/\s@]*|(?<!abfs://)(?<!abfss://)[^/\s@]*)@")
_QUERY = re.compile(r"(?<=\?)[^\s?=]+=\S+")
_JAVA = re.compile(r"\n: (?:[\w$]+\.)*([^\n]+)")  # an exception, below py4j's own first line


def absolute(client, file):
    """Give the path of a file as the JVM, and so the listener, sees it."""
    from py4j.java_gateway import JavaClass

    return JavaClass("java.io.File", client)(file).getAbsolutePath()


def make_folder(client):
    """Make the folder that is delivered from; before there is a context, and so the listener."""
    from py4j.java_gateway import JavaClass

    properties = JavaClass("java.lang.System", client)
    file = properties.getProperty("spark.sparklineage.observations")
    if not file or not properties.getProperty("spark.sparklineage.deliver"):
        return
    folder = os.path.dirname(absolute(client, file))
    os.makedirs(folder, 0o700, exist_ok=True)
    for kind in _KINDS:
        try:  # where a container is started again, what is there has been delivered before
            os.unlink(_file(folder, kind))
        except FileNotFoundError:
            continue


def begun(context, url, run, file, observer):
    """Begin to deliver what a driver's observer and its listener write.

    :param url: of the folder of this run
    :param run: its id
    :param file: the observer's; the listener's is next to it
    """
    java = context._jsc.sc()
    started_ms = int(time.time() * 1000)
    number = option(java.applicationAttemptId()) or ""
    # So that names sort in time.
    attempt = f"{int(number) if number.isdigit() else 1:05d}-{started_ms:013d}"
    folder = f"{url.rstrip('/')}/{attempt}-{uuid.uuid4().hex[:8]}"
    start = {
        "application_run_id": run,
        "application_id": java.applicationId(),
        "started_ms": started_ms,
    }
    # What is kept of the context here outlives it: the job may stop it.
    remote = RemoteFolder(context._jvm, context._jsc.hadoopConfiguration(), folder)
    delivery = Delivery(remote, os.path.dirname(file), start, observer.report)
    observer.after_write = delivery.wanted
    delivery.begin()
    return delivery


class Delivery:
    """Delivers what is in a folder.

    :param remote: the RemoteFolder of this driver
    :param start: what its ``start.json`` is to have
    :param record: what records an error
    """

    def __init__(self, remote, folder, start, record):
        self._remote = remote
        self._files = [_Segments(kind, _file(folder, kind)) for kind in _KINDS]
        self._start = start
        self._record = record
        self._has_begun = False
        self._wanted = threading.Event()
        self._ending = threading.Event()
        self._began = time.monotonic()
        self._took = self._spent = 0.0
        self._failures = 0
        self._failed_since = None
        self._reasons = set()
        self._thread = threading.Thread(target=self._run, name="sparklineage", daemon=True)

    def begin(self):
        """Begin to deliver, next to the job."""
        self._thread.start()

    def wanted(self):
        """Deliver soon: something was written."""
        self._wanted.set()

    def finish(self):
        """Deliver the rest, or give up."""
        self._ending.set()
        self._wanted.set()
        self._thread.join(_EXIT_S)
        if self._thread.is_alive():
            _say(f"gave up delivering lineage to {self._remote.url} after {_EXIT_S} s")

    def _run(self):
        while not self._ending.is_set():
            self._deliver()
            self._wait()
        if not self._deliver(is_last=True):
            time.sleep(_AGAIN_S)
            self._deliver(is_last=True)

    def _wait(self):
        if self._failures:
            self._ending.wait(min(2**self._failures, _LONGEST_PAUSE_S))
            return
        age = time.monotonic() - self._began
        pause = min(max(self._took / _SHARE, age / _THINNING), _EVERY_S)
        self._ending.wait(pause)
        if self._wanted.wait(_EVERY_S - pause):
            self._ending.wait(_SHORTLY_S)
        self._wanted.clear()

    def _deliver(self, is_last=False):
        begun = time.monotonic()
        try:
            self._deliver_new(is_last, begun)
        except Exception as error:  # the job must never notice
            self._failed(error)
            return False
        finally:
            self._took = time.monotonic() - begun
            self._spent += self._took
        return True

    def _deliver_new(self, is_last, begun):
        if not self._has_begun:
            self._remote.make()
            self._remote.put("start.json", _json(self._start))
            self._has_begun = True
        for segments in self._files:
            while segments.take():
                self._put(segments)
                self._recovered()
        if is_last:
            unfinished = [text for text in map(_Segments.left, self._files) if text]
            end = {
                "application_run_id": self._start["application_run_id"],
                "segments": {s.kind: s.delivered for s in self._files},
                "delivery_ms": round((self._spent + time.monotonic() - begun) * 1000),
                "errors": unfinished,
            }
            self._remote.put("end.json", _json(end))

    def _put(self, segments):
        # After a failure it may be there nevertheless: the answer was what did not arrive.
        if not (self._failures and self._remote.has(segments.name)):
            self._remote.put(segments.name, segments.pending)
        segments.put()

    def _recovered(self):
        """Record that deliveries had failed: the record is delivered by the next one."""
        if self._failures:
            since = time.monotonic() - self._failed_since
            self._failures = 0
            reasons = "; ".join(sorted(self._reasons))
            self._record(f"deliver: {reasons}; delivered {since:.0f} s later")

    def _failed(self, error):
        if not self._failures:
            self._failed_since = time.monotonic()
        self._failures += 1
        reason = reason_of(error)
        if reason.partition(":")[0] not in {known.partition(":")[0] for known in self._reasons}:
            self._reasons.add(reason)
            _say(f"cannot deliver lineage to {self._remote.url}: {reason}")
        try:
            self._remote.disconnect()
        except Exception:  # what has failed may well fail again
            return


class _Segments:
    """The whole lines of a file that grows, a segment at a time.

    pending: the segment that was taken and is not delivered yet; it stays the same until it is
    """

    def __init__(self, kind, file):
        self.kind = kind
        self._file = file
        self._at = 0
        self._identity = None
        self.pending = b""
        self.delivered = 0

    @property
    def name(self):
        return f"{self.kind}-{self.delivered + 1:05d}.ndjson"

    def take(self):
        """Take the lines that are new, unless some are taken; whether there are any."""
        if not self.pending:
            self.pending = self._lines()
            self._at += len(self.pending)
        return bool(self.pending)

    def put(self):
        """Note that the segment is delivered."""
        self.pending = b""
        self.delivered += 1

    def left(self):
        """Say what cannot be delivered; empty if that is nothing."""
        try:
            size = os.path.getsize(self._file) - self._at
        except FileNotFoundError:
            return ""
        return f"the last {size} bytes of {self.kind} are no whole line" if size > 0 else ""

    def _lines(self):
        if not os.path.exists(self._file):
            return b""
        with open(self._file, "rb") as file:
            status = os.fstat(file.fileno())
            identity = (status.st_dev, status.st_ino)
            if self._identity not in (None, identity) or status.st_size < self._at:
                self._at = 0  # it is another one
            self._identity = identity
            file.seek(self._at)
            lines = b""
            while True:
                more = file.read(_SEGMENT_BYTES)
                lines += more
                end = lines.rfind(b"\n") + 1
                if end or not more:
                    return lines[:end]


def reason_of(error):
    """Describe an exception in one line without secrets; of Java's what Java says."""
    text = str(error)
    java = _JAVA.search(text)
    line = java.group(1) if java else f"{type(error).__name__}: {text}".partition("\n")[0]
    return without_secrets(line)


def without_secrets(text):
    """Leave out what can be a secret in an URL."""
    return _QUERY.sub("…", _USER.sub("", text))


def _say(text):
    """Write a line into the driver's log."""
    try:
        sys.__stderr__.write(f"sparklineage: {without_secrets(text)}\n")
        sys.__stderr__.flush()
    except Exception:  # there is none, or nobody reads it
        return


def _file(folder, kind):
    return os.path.join(folder, f"{kind}.ndjson")


def _json(value):
    return json.dumps(value).encode()
