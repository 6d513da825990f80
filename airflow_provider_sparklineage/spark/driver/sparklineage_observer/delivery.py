"""Delivers the files of the listener and the observer from a driver in a cluster to the worker.

The listener and the observer write into a folder of the driver's container, which is deleted with
the container. A thread copies new whole lines to a folder that the worker can read. The lines are
in segments, files that are never changed. The thread delivers shortly after each query that has
written, at least every 30 s, and at exit. ``spark/capture/remote.py`` describes the layout of the
worker's folder.

The job never waits for the thread, except at exit, and then for a limited time. A failed delivery
is repeated after a pause; each pause is longer than the one before.
"""

import json
import os
import re
import sys
import threading
import time
import uuid
from contextlib import suppress

from sparklineage_observer.jvm import Classes, option
from sparklineage_observer.records import shortened

# The driver's log must not show a secret. In a URL, ``scheme://user:password@`` and
# ``?signature=…`` are secrets; ``container@`` in a URL of Azure is not.
_USER_IN_URL = re.compile(r"(?<=://)(?:[^/\s@]*:[^/\s@]*|(?<!abfs://)(?<!abfss://)[^/\s@]*)@")
_QUERY_IN_URL = re.compile(r"(?<=\?)[^\s?=]+=\S+")
# The first line of an exception of Java, which follows the line that py4j adds.
_JAVA_EXCEPTION = re.compile(r"\n: (?:[\w$]+\.)*([^\n]+)")


def reason_of(error):
    """Describe an exception in one line without secrets.

    For an exception of Java, which py4j wraps, this is the first line of Java's text, without the
    line that py4j adds before it. For others, it is the class and the first line of the message.
    """
    text = str(error)
    java = _JAVA_EXCEPTION.search(text)
    line = java.group(1) if java else f"{type(error).__name__}: {text}".partition("\n")[0]
    return shortened(without_secrets(line))


def without_secrets(text):
    """Remove from a text the parts of URLs that can be secrets."""
    return _QUERY_IN_URL.sub("…", _USER_IN_URL.sub("", text))


def say(text):
    """Write a line into the driver's log."""
    with suppress(Exception):  # there is no error stream, or its reader is gone
        sys.__stderr__.write(f"sparklineage: {without_secrets(text)}\n")
        sys.__stderr__.flush()


_SEGMENT_BYTES = 8 * 1024 * 1024  # a segment is longer only if its first line is longer
_JOINED_AT = 64  # a worker asks for each segment by itself, so an old job's are joined


class Segments:
    """A reader that cuts a growing file into segments, and counts those that are delivered.

    A segment has one or more whole lines of the file.

    pending: the bytes of the segment that was cut off but is not delivered yet; empty if there is
    no such segment. They do not change until the segment is delivered.

    :param kind: ``events`` or ``observations``, with which the segments' file names begin
    :param file: the path of the growing file
    """

    def __init__(self, kind, file):
        self.kind = kind
        self.pending = b""
        self.delivered = 0
        self._file = file
        self._at = 0
        self._identity = None
        self._unjoined = []  # (number, first byte, byte after the last) of delivered segments

    @property
    def name(self):
        """The file name of the pending segment, such as ``events-00001.ndjson``."""
        return self._name(self.delivered + 1)

    def _name(self, *numbers):
        return f"{self.kind}-{'-'.join(f'{number:05d}' for number in numbers)}.ndjson"

    def take(self):
        """Read new lines of the file as the pending segment, unless a segment is pending already.

        :return: whether there is a pending segment now
        """
        if not self.pending:
            self.pending = self._lines()
            self._at += len(self.pending)
        return bool(self.pending)

    def put(self):
        """Note that the pending segment is delivered."""
        self.delivered += 1
        self._unjoined.append((self.delivered, self._at - len(self.pending), self._at))
        self.pending = b""

    def joined(self):
        """Join the oldest delivered segments that are not joined yet, if these are many.

        Each segment is joined once at most: this method forgets the segments that it gives.

        :return: the name of the joined segment, its content, and the names of the segments that it
            takes the place of; None if there is nothing to join
        """
        if len(self._unjoined) < _JOINED_AT:
            return None
        begin = self._unjoined[0][1]
        found = [s for s in self._unjoined if s[2] - begin <= _SEGMENT_BYTES]
        del self._unjoined[: max(1, len(found))]
        if len(found) < 2:  # the first is a large one
            return None
        end = found[-1][2]
        with open(self._file, "rb") as file:
            if self._identity != _identity(file):
                return None
            file.seek(begin)
            content = file.read(end - begin)
        if len(content) < end - begin:
            return None
        numbers = [number for number, _, _ in found]
        return self._name(numbers[0], numbers[-1]), content, list(map(self._name, numbers))

    def left(self):
        """Describe the bytes after the file's last line end, which are in no segment.

        :return: an error message with their number; "" if there are no such bytes
        """
        if not os.path.exists(self._file):
            return ""
        size = os.path.getsize(self._file) - self._at
        return f"the last {size} bytes of the {self.kind} are no whole line" if size > 0 else ""

    def _lines(self):
        if not os.path.exists(self._file):  # nothing was written yet
            return b""
        with open(self._file, "rb") as file:
            identity = _identity(file)
            if identity != self._identity or os.fstat(file.fileno()).st_size < self._at:
                self._at = 0  # the file was replaced by another file, whose lines are all new
                self._unjoined = []
            self._identity = identity
            file.seek(self._at)
            found = b""
            while True:
                more = file.read(_SEGMENT_BYTES)
                found += more
                end = found.rfind(b"\n") + 1
                if end or not more:
                    return found[:end]


def _identity(file):
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


_MASK = "007"  # the worker reads and removes the files, maybe as another user of the same group
_BLOCK = 1024 * 1024  # bytes in one call: py4j makes a text of them, on both sides
_PUTS_WHOLE_FILES = ("s3a", "s3", "s3n", "gs")
"""The schemes of stores in which a file appears only when it is closed, and in which a rename
copies the file."""


class RemoteFolder:
    """The remote folder of a driver; each file put into it appears as a whole or not at all.

    It uses its own instance of the file system, because a job may close the instance that Spark
    shares.

    :param jvm: the JVM view of py4j
    :param hadoop_conf: the Hadoop configuration of the SparkContext, a Java object
    :param url: the folder's URL, as Hadoop's file systems read it, such as ``s3a://bucket/folder``
    """

    def __init__(self, jvm, hadoop_conf, url):
        self._classes = Classes(jvm)
        self._conf = hadoop_conf
        self._is_whole = url.partition(":")[0].lower() in _PUTS_WHOLE_FILES
        self._file_system = None
        self._tried = None
        self._thread = None
        self.url = url
        self.has_worked = False
        """Whether a file was written with the present instance of the file system."""
        self.steps = 0
        """The number of calls of the file system that have ended."""

    def make(self):
        """Make the folder, except in stores (such as S3) that need no folder before its files."""
        if not self._is_whole:
            self._done(self._connected().mkdirs(self._classes.path(self.url)))

    def put(self, name, content):
        """Write a file; after an error, the caller has to repeat the call with the same content.

        :param name: the file's name in the folder
        :param content: bytes
        """
        file_system = self._connected()
        final = aside = self._path(name)
        # After an error the file may exist nevertheless, if only the answer to the write was lost.
        if self._tried != name or not self._done(file_system.exists(final)):
            self._tried = name
            if not self._is_whole:
                aside = self._path(f"{name}.part")
            self._write(file_system, aside, content)
            if aside is not final and not self._done(file_system.rename(aside, final)):
                message = f"{name}.part cannot be renamed"
                raise OSError(message)
        self.has_worked = True

    def remove(self, name):
        """Delete a file of the folder."""
        self._connected().delete(self._path(name), False)

    def _write(self, file_system, path, content):
        stream = self._done(file_system.create(path, True))
        for begin in range(0, len(content), _BLOCK):
            self._done(stream.write(content[begin : begin + _BLOCK]))
        # After an error the stream is not closed: a store would then publish the part that it has.
        self._done(stream.close())

    def _done(self, answer):
        self.steps += 1
        return answer

    def disconnect(self):
        """Close this instance of the file system, which may be broken; later calls open another."""
        file_system, self._file_system = self._file_system, None
        self.has_worked = False
        if file_system is not None:
            file_system.close()

    def interrupt(self):
        """Interrupt a call of the file system that hangs.

        Otherwise the thread of the call could keep the JVM from ending.
        """
        if self._thread is not None:
            self._thread.interrupt()

    def _connected(self):
        if self._file_system is None:
            self._thread = self._classes.thread.currentThread()  # the JVM's, for this Python thread
            uri = self._classes.path(self.url).toUri()
            conf = self._classes.configuration(self._conf)  # copied now: a job may have changed it
            conf.set("fs.permissions.umask-mode", _MASK)
            file_system = self._classes.file_system.newInstance(uri, conf)
            file_system.setWriteChecksum(False)  # else a local one would write a .crc for each file
            self._file_system = file_system
        return self._file_system

    def _path(self, name):
        return self._classes.path(f"{self.url}/{name}")


_KINDS = ("events", "observations")
_EVERY_S = 30
_SHORTLY_S = 0.5  # in this time the listener writes the query's event, and other queries may end
_BREATH = 10  # a pause is so many times as long as the last delivery, up to the next limit
_LONGEST_BREATH_S = 5
_THINNING = 100  # a pause lasts at least 1/100 of the application's age, up to _EVERY_S
_LONGEST_PAUSE_S = 120
_AGAIN_S = 1
_EXIT_S = 10
_EXIT_SHARE = 1 / 20  # of the application's age, which is higher on a busy machine


def prepare(client):
    """Make the driver's folder of the files to deliver, and delete old files in it.

    This has to be done before Spark makes a SparkContext and OpenLineage's listener. When the JVM
    exits, it deletes a folder that is not in the driver's own working directory.

    :param client: the gateway client of py4j
    :return: the absolute path of the observer's file in the folder; None if nothing has to be
        delivered, if another Python process of this JVM delivers, or if the folder cannot be made
    """
    from py4j.java_gateway import JavaClass

    properties = JavaClass("java.lang.System", client)
    file = properties.getProperty("spark.sparklineage.observations")
    if not file or not properties.getProperty("spark.sparklineage.deliver"):
        return None
    if properties.setProperty("sparklineage.prepared", "true"):
        return None
    java_file, is_elsewhere = JavaClass("java.io.File", client), os.path.isabs(file)
    file = java_file(file).getAbsolutePath()
    folder = os.path.dirname(file)
    files = [_file(folder, kind) for kind in _KINDS]
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        for left in files:
            # If the container is started again, these files are from its former driver, which has
            # delivered them.
            with suppress(FileNotFoundError):
                os.unlink(left)
        if is_elsewhere:
            # Then the driver may have no container of its own, such as one that a service starts,
            # and nobody deletes these. The JVM does so last of all, the folder after the files: it
            # begins with the latest that is registered.
            for path in (folder, *files):
                java_file(path).deleteOnExit()
    except OSError as error:
        say(f"cannot keep lineage before it is delivered: {reason_of(error)}")
        return None
    return file


def begun(context, url, run, file, observer):
    """Begin to deliver the files of the observer and the listener of a driver.

    :param context: the SparkContext
    :param url: the URL of the remote folder of the Airflow task's try
    :param run: the OpenLineage run id of the application
    :param file: the path of the observer's file; the listener's file is in the same folder
    :param observer: the :class:`.observer.Observer`, which records failed deliveries, and from now
        on asks for a delivery after each query that has written
    :return: the :class:`Delivery`, which has begun
    """
    java = context._jsc.sc()
    started_ms = int(time.time() * 1000)
    number = option(java.applicationAttemptId()) or ""
    # The numbers have leading zeros, so that the names sort by time.
    attempt = f"{int(number) if number.isdigit() else 1:05d}-{started_ms:013d}"
    folder = f"{url.rstrip('/')}/{attempt}-{uuid.uuid4().hex[:8]}"
    start = {
        "application_run_id": run,
        "application_id": java.applicationId(),
        "started_ms": started_ms,
    }
    # The remote folder gets only objects that work after the job has stopped the context.
    remote = RemoteFolder(context._jvm, context._jsc.hadoopConfiguration(), folder)
    delivery = Delivery(remote, os.path.dirname(file), start, observer.report)
    observer.after_write = delivery.wanted
    delivery.begin()
    return delivery


class Delivery:
    """The delivery of the files in a folder of the driver, by a thread.

    :param remote: the RemoteFolder of this driver
    :param folder: the folder with the files of the listener and the observer
    :param start: a dict, the content of ``start.json``, the first file that is delivered
    :param record: a function that records the text of an error
    """

    def __init__(self, remote, folder, start, record):
        self._remote = remote
        self._files = [Segments(kind, _file(folder, kind)) for kind in _KINDS]
        self._start = start
        self._record = record
        self._has_begun = False
        self._end = None
        self._wanted = threading.Event()
        self._ending = threading.Event()
        self._began = time.monotonic()
        self._took = self._spent = 0.0
        self._failures = 0
        self._failed_since = None
        self._reason = ""
        self._known = set()
        self._unrecorded = []
        self._is_complete = self._is_over = False
        self._thread = threading.Thread(target=self._run, name="sparklineage", daemon=True)

    def begin(self):
        """Start the thread that delivers while the job runs."""
        self._thread.start()

    def wanted(self):
        """Ask the thread to deliver soon, because a query has written."""
        self._wanted.set()

    def finish(self):
        """Deliver all lines that are not delivered yet, and wait for that for a limited time.

        On a busy machine it takes longer, and is waited for as long as it goes on, within a limit
        that grows with the application. If not all is delivered, write the reason into the driver's
        log.
        """
        self._ending.set()
        self._wanted.set()
        begun = time.monotonic()
        longest = _EXIT_S + (begun - self._began) * _EXIT_SHARE
        steps, left = -1, _EXIT_S
        while left > 0 and steps != self._remote.steps:
            steps = self._remote.steps
            self._thread.join(min(left, _EXIT_S))
            if not self._thread.is_alive():
                break
            left = longest - (time.monotonic() - begun)
        self._is_over = True
        if not self._is_complete:
            is_late = self._thread.is_alive()
            took = f"{round(time.monotonic() - begun, 1):g} s"
            why = f"it took longer than {took}" if is_late else self._reason
            say(f"not all lineage is delivered to {self._remote.url}: {why}")
            self._remote.interrupt()

    def _run(self):
        while not self._ending.is_set():
            self._deliver()
            self._wait()
        self._is_complete = self._deliver(is_last=True)
        if not self._is_complete:
            time.sleep(_AGAIN_S)
            self._is_complete = self._deliver(is_last=True)

    def _wait(self):
        if self._failures:
            self._ending.wait(min(2**self._failures, _LONGEST_PAUSE_S))
            return
        age = time.monotonic() - self._began
        breath = min(self._took * _BREATH, _LONGEST_BREATH_S)
        pause = max(breath, min(age / _THINNING, _EVERY_S))
        self._ending.wait(pause)
        if self._wanted.wait(_EVERY_S - pause):
            self._ending.wait(_SHORTLY_S)
        self._wanted.clear()

    def _deliver(self, is_last=False):
        if self._is_over:
            return False
        begun = time.monotonic()
        try:
            try:
                self._deliver_new(is_last, begun)
            except Exception:
                if self._is_over or not self._remote.has_worked:
                    raise
                self._remote.disconnect()  # the job may have closed it
                self._deliver_new(is_last, begun)
        except Exception as error:  # the job must never notice
            if not self._is_over:
                self._failed(error)
            return False
        finally:
            self._took = time.monotonic() - begun
            self._spent += self._took
        return True

    def _deliver_new(self, is_last, begun):
        if not self._has_begun:
            self._remote.make()
            self._remote.put("start.json", json.dumps(self._start).encode())
            self._has_begun = True
        if self._end is None:
            self._put_new()
            if self._failures:
                self._recovered()
                self._put_new()
            if is_last:
                self._end = self._end_of(begun)
            else:
                self._join()
        if self._end is not None:  # the last file: a repeated call puts only this file again
            self._remote.put("end.json", json.dumps(self._end).encode())

    def _end_of(self, begun):
        left = [segments.left() for segments in self._files]
        return {
            "application_run_id": self._start["application_run_id"],
            "segments": {segments.kind: segments.delivered for segments in self._files},
            "delivery_ms": round((self._spent + time.monotonic() - begun) * 1000),
            "errors": [text for text in left if text],
            # The exception that ended Python; sys.exit() leaves no trace here.
            "failed": getattr(getattr(sys, "last_type", None), "__name__", ""),
        }

    def _put_new(self):
        for segments in self._files:
            while segments.take():
                self._remote.put(segments.name, segments.pending)
                segments.put()

    def _join(self):
        """Replace many small segments by one, which has the same lines.

        If that fails, they are left as they are: a worker reads lines that it finds twice once.
        """
        for segments in self._files:
            with suppress(Exception):
                found = segments.joined()
                if found is not None:
                    name, content, parts = found
                    self._remote.put(name, content)
                    for part in parts:
                        if self._ending.is_set():  # the job waits for the last delivery
                            break
                        self._remote.remove(part)

    def _recovered(self):
        """Record the failed deliveries after a later one has succeeded.

        Until then, no record of the failures could have been delivered.
        """
        late = time.monotonic() - self._failed_since
        self._failures = 0
        for reason in self._unrecorded:
            self._record(f"deliver: {reason}; delivered {late:.0f} s later")
        self._unrecorded = []

    def _failed(self, error):
        if not self._failures:
            self._failed_since = time.monotonic()
        self._failures += 1
        self._reason = reason_of(error)
        kind = self._reason.partition(":")[0]  # without names of files, which differ each time
        if kind not in self._known:
            self._known.add(kind)
            self._unrecorded.append(self._reason)
            say(f"cannot deliver lineage to {self._remote.url}: {self._reason}")
        with suppress(Exception):  # the cause of the failure may make this fail, too
            self._remote.disconnect()


def _file(folder, kind):
    return os.path.join(folder, f"{kind}.ndjson")
