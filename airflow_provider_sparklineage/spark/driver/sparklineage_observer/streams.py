"""Records of the batches of streams, which Spark does not report to a QueryExecutionListener.

Spark reports the number of each batch that has ended to a StreamingQueryListener. The stream's
latest execution then usually belongs to this batch, and its scans have just the batch's files. In
rare cases the latest execution belongs to the next batch already, and the partitions that the ended
batch read are unknown. The files that a batch wrote are in the log of a sink of files, or in the
commits of a table.
"""

import datetime
import json
import re
import time

from sparklineage_observer import iceberg, jvm, plans, records
from sparklineage_observer.jvm import first_answer, texts
from sparklineage_observer.records import guarded
from sparklineage_observer.relations import ids_of, name_of, place_of
from sparklineage_observer.scans import is_of_stream

# In the folder of a stream's sink of files, ``_spark_metadata/<batch>`` names the files that the
# batch wrote. About each tenth log file, ``<batch>.compact``, names those of all batches so far.


_ENTRY = re.compile(r".*/_spark_metadata/(\d+)(\.compact)?")
_BYTES_PER_FILE = 150  # of a log file, at least
_BEFORE_THE_PATH = re.compile(r"^[A-Za-z][\w+.-]*:(//[^/]*)?")


class SinkLog:
    """A reader of the logs of file sinks, with the driver's own file system and credentials."""

    def __init__(self, classes, hadoop_conf):
        self._classes = classes
        self._conf = hadoop_conf

    def write(self, path, batch, types, began, budget):
        """Describe the files that a batch wrote, as an entry of a record's ``writes``.

        :param path: the folder of the sink
        :param batch: the batch's number
        :param types: the types of the columns, by the columns' names
        :param began: the time in ms when the batch began, if the batch has no rows; else None. If
            the batch's log file is older than that, an earlier attempt wrote the files, and the
            described write has no partitions.
        :param budget: a ``records.Budget``, which limits the time and the number of logged files.
            Above these limits the files are unknown, and ``cut`` of the write has the reason
        """
        write = records.write_record("FileSink", "files", path, "append")
        try:
            files, modified = self._files(path, batch, budget)
        except records.OverBudgetError as error:
            return {**write, "how": "unknown", "cut": str(error)}
        found = {}
        for file in [] if began is not None and modified < began else files:
            folder = file.rpartition("/")[0][len(_bare(path)) + 1 :]
            segments = [s for s in folder.split("/") if s]
            columns = tuple(jvm.key_of(s) for s in segments)
            found.setdefault(columns, set()).add(tuple(jvm.value_of(s) for s in segments))
        layouts = [
            records.layout_of(
                path, [records.dimension_of(c, types.get(c, "")) for c in columns], found[columns]
            )
            for columns in sorted(found)
        ]
        return {**write, "layouts": layouts, "numFiles": len(files)}

    def _files(self, path, batch, budget):
        """Give the set of paths of a batch's files, and the time of the batch's log file, in ms.

        :param path: the folder of the sink
        :param batch: the batch's number
        :raise OverBudgetError: if a batch is missing from the log, a log file is too long, or the
            time of ``budget`` is up
        """
        log = self._classes.path(f"{path}/_spark_metadata")
        file_system = log.getFileSystem(self._conf)
        entries = {}
        for name, _, size, modified in jvm.statuses(self._classes, file_system.listStatus(log)):
            match = _ENTRY.fullmatch(name)
            if match:
                entries[int(match.group(1))] = (bool(match.group(2)), name, size, modified)
        if batch not in entries:
            message = f"batch {batch} is not in the log of the stream's sink"
            raise records.OverBudgetError(message)

        def logged(number):
            _, name, size, _ = entries[number]
            budget.check()
            budget.require(size // _BYTES_PER_FILE, "files", "files")
            text = jvm.text_of_file(self._classes, file_system, name)
            lines = text.splitlines()[1:]  # the first is the log's version
            return {_bare(jvm.plain_path(json.loads(line)["path"])) for line in lines if line}

        files = logged(batch)
        if entries[batch][0]:
            for before in range(batch - 1, -1, -1):
                if before not in entries:
                    message = f"batch {before} is gone from the log of the stream's sink"
                    raise records.OverBudgetError(message)
                files -= logged(before)
                if entries[before][0]:
                    break
        return files, entries[batch][3]


def _bare(uri):
    """Give the path in a URI, without the scheme and the host."""
    return _BEFORE_THE_PATH.sub("", uri)


_INTERFACE = "org.apache.spark.sql.streaming.PythonStreamingQueryListener"
_SOURCE = re.compile(r"(?:FileStreamSource|DeltaSource)\[(.*)\]", re.DOTALL)
_SINK = re.compile(r"(FileSink|DeltaSink)\[(.*)\]", re.DOTALL)
_BATCH_SINK = "ForeachBatchSink"
_MADE_UP = ("Rate", "MemoryStream")  # sources with generated rows, which are not a data set


class Streams:
    """The streams of one SparkContext; the observer records each batch of each stream."""

    def __init__(self, observer):
        self._observer = observer
        self._classes, self._conf = observer.classes, observer.conf
        self._sink_log = SinkLog(observer.classes, observer.conf)
        self._sessions = set()
        self._has_begun = False
        self._running = {}
        self._folders = set()

    def listen_to(self, session, registered):
        """Register a listener for streams with a session, unless the session has one already.

        :param session: the SparkSession of PySpark
        :param registered: a function; its arguments are the function that removes the listener,
            and the listener
        """
        java_session = session._jsparkSession
        key = java_session.hashCode()  # Java's default hash, so no other session has it
        if key in self._sessions:
            return
        self._sessions.add(key)
        manager = java_session.streams()
        listener = self._classes.streaming_listener(_Listener(self, manager, self._observer.failed))
        manager.addListener(listener)
        registered(manager.removeListener, listener)

    def started(self, run, query):
        """Remember a stream that starts; the stream's own thread waits for this call.

        :param run: the id of the stream's run, a text
        :param query: Java's StreamingQuery; nothing is done if it is None
        """
        if query is not None:
            self._has_begun = True  # never reset: Spark reports queries later than streams
            self._running[run] = _Stream(query.streamingQuery())

    def progressed(self, progress):
        """Record a batch that has ended; do nothing if Spark reports no batch.

        :param progress: Spark's progress report, as a dict of its JSON
        """
        stream = self._running.get(progress["runId"])
        if stream is not None and "addBatch" in progress["durationMs"]:
            self._observer.observe("stream", lambda: [self._batch(stream, progress)])

    def terminated(self, run):
        """Record the reads of the batch that a stream had begun, but not ended, when it stopped.

        :param run: the id of the stream's run, a text
        """
        stream = self._running.pop(run, None)
        if stream is not None:
            self._observer.observe("stream", lambda: self._interrupted(stream))

    def _batch(self, stream, progress):
        started = _milliseconds(progress["timestamp"])
        # Spark 3.5 reports the duration only among those of the steps.
        steps = progress["durationMs"]
        ended = started + (progress.get("batchDuration") or steps.get("triggerExecution") or 0)
        batch = stream.batch = progress["batchId"]
        stream.ended = ended
        execution = stream.query.lastExecution()
        record = records.query_record(execution.id(), "stream", started, ended)
        budget = self._observer.budget()
        folders = _folders(progress["sources"])
        self._folders.update(folders)
        stream.is_asked = True
        if execution.currentBatchId() == batch:
            self._reads(record, execution, budget)
        else:
            record["query"] = -1
            record["reads"] = [_missed(folder) for folder in folders]
        self._note_others(record, stream, progress["sources"])
        guarded(record, "sink", self._sink, record, stream, execution, progress, budget)
        return record

    def plan_of_batch(self, ids):
        """Give the plan of the rows of a running stream, by the ids of its columns.

        :param ids: the ids, a tuple of ints
        :return: the analysed plan, a Java object; None if no stream has these columns
        """
        for stream in list(self._running.values()):
            execution = stream.query.lastExecution()
            plan = None if execution is None else execution.analyzed().query()
            if plan is not None and ids_of(plan) == ids:
                return plan
        return None

    def _interrupted(self, stream):
        execution = stream.query.lastExecution()
        if execution is None or execution.currentBatchId() == stream.batch:
            return []
        record = records.query_record(
            execution.id(), "stream", stream.ended, int(time.time() * 1000)
        )
        record["failed"] = True
        self._reads(record, execution, self._observer.budget())
        record["reads"] = [read for read in record["reads"] if read.get("numFiles")]
        return [record] if record["reads"] else []

    def _reads(self, record, execution, budget):
        [parts] = plans.parts_of(execution.executedPlan(), self._classes.identity)
        for scan in parts.scans:
            guarded(record, scan.kind, self._observer.read, record, scan, budget)
        if parts.udfs:
            record["python_udfs"] = parts.udfs

    def narrow(self, read, scan):
        """Limit a read to the batch's files if its scan belongs to a stream; change no other read.

        The key ``chosen`` then says that the scan has not all files of the folder. The ``roots``
        become [], and the base of a layout that is a file becomes the source's folder. A table with
        which the stream is joined is read in full, so its read is not changed.

        :param read: the description of the scan, an entry of a record's ``reads``, which is changed
        :param scan: the scan's node, a Java object
        """
        if not (self._has_begun and is_of_stream(scan)):
            return
        read.update(roots=[], chosen=True)
        layouts = {}
        for layout in read.get("layouts", ()):
            # The roots of an index of files are the batch's files; a table's root is the table.
            if read.get("index") == "InMemoryFileIndex" and not layout["dimensions"]:
                self._ask_for_folders()
                layout["base"] = _folder_of(layout["base"], self._folders)
            if read.get("numFiles") == 0:  # the batch was not executed, or all of it was pruned
                layout["partitions"] = []
            layouts[layout["base"]] = layout
        if "layouts" in read:
            read["layouts"] = list(layouts.values())

    def _ask_for_folders(self):
        """Learn the folders of the sources of running streams, asking each stream only once.

        A query inside of a stream's first batch ends before Spark reports on that batch.
        """
        for stream in list(self._running.values()):
            if not stream.is_asked:
                stream.is_asked = True
                # The method is private to Spark, so another version may not have it.
                sources = first_answer(stream.query, lambda query: texts(query.sources()))
                self._folders.update(_folders({"description": text} for text in sources or ()))

    @staticmethod
    def _note_others(record, stream, sources):
        """Name in ``cut`` of a record the sources of a stream whose reads are not recorded.

        This is done once for each stream.

        :param record: the batch's record, which is changed
        :param stream: the :class:`_Stream`
        :param sources: the list ``sources`` of Spark's progress report
        """
        names = [source["description"] for source in sources]
        others = [n for n in names if not _SOURCE.match(n) and not n.startswith(_MADE_UP)]
        if others and not stream.is_noted:
            stream.is_noted = True
            record["cut"] = [
                records.shortened(f"what a stream reads from {name}") for name in others
            ]

    def _sink(self, record, stream, execution, progress, budget):
        """Note the write of a batch, in a way that depends on the stream's sink.

        - files: the batch's write, as the sink's log has it, is added to the record
        - Iceberg: the table is remembered; the snapshots that the application made in all
          remembered tables since they were last listed are added
        - Delta: no write is added. The table is remembered, and its commits are read when the
          driver ends
        - other sinks: nothing is added

        For the first three, the record also gets the batch's ``command``.

        :param record: the batch's record, which is changed
        :param stream: the :class:`_Stream`
        :param execution: Spark's QueryExecution of the batch
        :param progress: Spark's progress report as a dict
        :param budget: a ``records.Budget``: the limits on looking at one batch
        """
        if progress["sink"]["description"] == _BATCH_SINK:
            self._observer.commands.keep_frame(execution.analyzed().query(), budget)
        sink = _SINK.match(progress["sink"]["description"])
        if sink is None:
            table = iceberg.table_of(stream.query.sink())
            if table is not None:
                self._observer.snapshots.accessed(table)
                self._observer.commit_snapshots(record, budget)
                path, name = place_of(stream.query.sink())
                self._note_command(record, "IcebergSink", path, name, execution.analyzed(), budget)
            return
        kind, path = sink.group(1), jvm.qualified(self._classes, self._conf, sink.group(2))
        written = execution.analyzed()
        name = name_of(jvm.option(written.catalogTable()))
        self._note_command(record, kind, path, name, written, budget)
        if kind == "DeltaSink":
            self._observer.delta.written(path)
            return
        began = None if progress["numInputRows"] else record["started"]
        types = {f["name"]: f["type"] for f in record["command"]["schema"]["fields"]}
        write = self._sink_log.write(path, progress["batchId"], types, began, budget)
        record["writes"].append({**write, "table": name})

    def _note_command(self, record, kind, path, name, written, budget):
        command = {"node": kind, "target": {"path": path, "table": name}}
        record["command"] = self._observer.commands.of_batch(command, written.query(), budget)


class _Stream:
    """A running stream.

    query: Spark's StreamExecution, a Java object; batch: the number of the latest batch that has
    ended, None if no batch has ended; ended: the time in ms when that batch ended or, if there is
    none, when the stream began; is_noted: whether its sources whose reads are not recorded have
    been named in a record; is_asked: whether it was asked for its sources.
    """

    def __init__(self, query):
        self.query = query
        self.batch = None
        self.ended = int(time.time() * 1000)
        self.is_noted = False
        self.is_asked = False


class _Listener:
    """The Python side of Spark's StreamingQueryListener.

    Spark calls ``onQueryStarted`` on the stream's thread, and the other methods on the thread for
    the stream's events.
    """

    class Java:
        """Names the Java interface that the listener implements, for py4j."""

        implements = [_INTERFACE]  # noqa: RUF012  (py4j)

    def __init__(self, streams, manager, failed):
        self._streams = streams
        self._manager = manager
        self._failed = failed

    def onQueryStarted(self, event):  # noqa: N802  (Java's name)
        self._guarded(
            lambda: self._streams.started(event.runId().toString(), self._manager.get(event.id()))
        )

    def onQueryProgress(self, event):  # noqa: N802  (Java's name)
        self._guarded(lambda: self._streams.progressed(json.loads(event.progress().json())))

    def onQueryIdle(self, event):  # noqa: N802  (Java's name)
        pass

    def onQueryTerminated(self, event):  # noqa: N802  (Java's name)
        self._guarded(lambda: self._streams.terminated(event.runId().toString()))

    def _guarded(self, act):
        try:
            act()
        except Exception as error:  # the job must never notice
            self._failed("stream", error)

    def toString(self):  # noqa: N802  (Java's name)
        return "sparklineage_observer"


def _milliseconds(text):
    """Convert a time in Spark's form, ``2024-05-06T10:00:00.123Z``, to ms since the epoch."""
    at = datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z")
    return int(at.timestamp() * 1000)


def _folders(sources):
    """Give the folders of a stream's sources; only files and Delta tables have one.

    :param sources: the list ``sources`` of Spark's progress report
    """
    found = (_SOURCE.match(source["description"]) for source in sources)
    return [match.group(1) for match in found if match]


def _missed(folder):
    """Describe the read of a folder by a batch whose plan is no longer available.

    :param folder: the path of the folder
    :return: a dict, an entry of a record's ``reads``
    """
    cut = "the stream had gone on to its next batch before this one was looked at"
    return {"node": "FileSourceScanExec", "roots": [folder], "cut": cut}


def _folder_of(file, folders):
    """Give the source's folder in which a file is; the file's own folder if there is none.

    There is none if the source is a pattern of folders.

    :param file: the path of the file
    :param folders: the folders of all sources of streams, as :func:`_folders` gives them
    """
    inside = [folder for folder in folders if file.startswith(f"{folder.rstrip('/')}/")]
    return max(inside, key=len, default=file.rpartition("/")[0])
