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
import sys
import threading
import time
import uuid

from sparklineage_observer.driver_log import reason_of, say
from sparklineage_observer.jvm import option
from sparklineage_observer.remote_folder import RemoteFolder
from sparklineage_observer.segments import Segments

_KINDS = ("events", "observations")
_EVERY_S = 30
_SHORTLY_S = 0.5  # in which the listener's event of the query comes, and other queries end
_BREATH = 10  # times as long as a delivery took, but
_LONGEST_BREATH_S = 5
_THINNING = 100  # an application that is hours old need not deliver each second
_LONGEST_PAUSE_S = 120
_AGAIN_S = 1
_EXIT_S = 10


def prepare(client):
    """Make the folder that is delivered from; before there is a context, and so the listener.

    :return: the observer's file in it, as the JVM and so the listener would find it; None where
        nothing is to be delivered, or another process of this JVM does
    """
    from py4j.java_gateway import JavaClass

    properties = JavaClass("java.lang.System", client)
    file = properties.getProperty("spark.sparklineage.observations")
    if not file or not properties.getProperty("spark.sparklineage.deliver"):
        return None
    if properties.setProperty("sparklineage.prepared", "true"):
        return None
    file = JavaClass("java.io.File", client)(file).getAbsolutePath()
    folder = os.path.dirname(file)
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        for kind in _KINDS:
            # Where a container is started again, it has delivered what it left.
            if os.path.exists(_file(folder, kind)):
                os.unlink(_file(folder, kind))
    except OSError as error:
        say(f"cannot keep lineage before it is delivered: {reason_of(error)}")
        return None
    return file


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
        self._is_over = True
        if not self._is_complete:
            is_late = self._thread.is_alive()
            why = f"it took longer than {_EXIT_S} s" if is_late else self._reason
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
            self._remote.put("start.json", _json(self._start))
            self._has_begun = True
        if self._end is None:
            self._put_new()
            if self._failures:
                self._recovered()
                self._put_new()
            if is_last:
                self._end = self._end_of(begun)
        if self._end is not None:  # after which nothing else is put, even if it has to be again
            self._remote.put("end.json", _json(self._end))

    def _end_of(self, begun):
        left = [segments.left() for segments in self._files]
        return {
            "application_run_id": self._start["application_run_id"],
            "segments": {segments.kind: segments.delivered for segments in self._files},
            "delivery_ms": round((self._spent + time.monotonic() - begun) * 1000),
            "errors": [text for text in left if text],
            # By what Python ended; of sys.exit() nothing is known.
            "failed": getattr(getattr(sys, "last_type", None), "__name__", ""),
        }

    def _put_new(self):
        for segments in self._files:
            while segments.take():
                self._remote.put(segments.name, segments.pending)
                segments.put()

    def _recovered(self):
        """Record what had failed. Before, the record could not have been delivered either."""
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
        kind = self._reason.partition(":")[0]  # the rest has names of files, which differ
        if kind not in self._known:
            self._known.add(kind)
            self._unrecorded.append(self._reason)
            say(f"cannot deliver lineage to {self._remote.url}: {self._reason}")
        try:
            self._remote.disconnect()
        except Exception:  # what has failed may well fail again
            return


def _file(folder, kind):
    return os.path.join(folder, f"{kind}.ndjson")


def _json(value):
    return json.dumps(value).encode()
