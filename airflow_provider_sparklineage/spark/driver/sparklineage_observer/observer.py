"""The observer: it records each query within limits, and at exit waits for the last queries."""

import re
import threading
import time
from contextlib import suppress
from functools import partial

from sparklineage_observer import plans, records, scans
from sparklineage_observer.commands import DELTA_CHANGES, TABLE_AS_SELECT, Commands
from sparklineage_observer.delta import MAINTENANCE, DeltaTables, path_of
from sparklineage_observer.file_writes import (
    ON_PARTITIONS,
    FileWrites,
    is_ignore,
    of_partitions,
)
from sparklineage_observer.frames import CHECKPOINTS
from sparklineage_observer.iceberg import (
    WITHOUT_DATA,
    Snapshots,
    at_branch,
    without_data,
    written_branch,
    written_table,
)
from sparklineage_observer.jvm import BusTime, Classes, answering_seconds
from sparklineage_observer.procedures import Procedures
from sparklineage_observer.records import guarded
from sparklineage_observer.relations import names_tables, reads_without_scan
from sparklineage_observer.scans import Schemas
from sparklineage_observer.streams import Streams

_CONTENT = ("reads", "writes", "errors", "command", "maintenance", "cut")
# The duration that Spark reports begins where Spark optimises the plan; it leaves that step out if
# the plan was optimised before.
_PHASE = re.compile(r"optimization -> PhaseSummary\((\d+), (\d+)\)")


_SOON_MS = 2000
_WORKING_S = 0.02  # a thread that works has more CPU time than that in seconds, on any machine


def _is_empty_within(bus, wait_ms):
    try:
        bus.waitUntilEmpty(wait_ms)
    except Exception as error:
        if "TimeoutException" not in str(error):
            raise
        return False
    return True


class Observer:
    """The observer of all queries of one driver.

    :param file: the path of the file of records
    :param tag: the text that marks the Delta commits of this application; empty if they have no
        mark
    :param limits: a text ``name=value,...`` of the limits to change (:class:`.records.Limits`)
    """

    def __init__(self, file, tag, limits=""):
        self.limits = records.Limits(limits)
        self._records = records.Records(file, self.limits)
        self._tag = tag
        self._seen = {}
        self._lock = threading.Lock()  # listeners of several sessions share this
        self._spent = 0.0
        self._over = False
        self._queries = 0
        self._clock = records.Clock()
        self._started_ms = int(time.time() * 1000)
        self._began = time.monotonic()
        self._budget = None
        self._is_slow = False
        self.classes = self._java_context = self.conf = None
        self._file_writes = self.streams = None
        self._last_writes = {}
        self._feeds = set()
        self.snapshots = Snapshots()
        self._procedures = Procedures(self.snapshots)
        self.delta = DeltaTables(tag, self._started_ms)
        self.commands = Commands(self.limits)
        self._schemas = Schemas()
        self.after_write = lambda: None
        """A function that is called after each query that wrote, when the query is recorded."""

    def context_is(self, jvm, java_context):
        """Observe a SparkContext from now on; do nothing if it is observed already.

        This method is called for each session, and sessions share their SparkContext.

        :param jvm: the JVM view of py4j
        :param java_context: the JavaSparkContext
        """
        if self._java_context is java_context:
            return
        self._java_context = java_context
        self.classes = Classes(jvm)
        self.conf = java_context.hadoopConfiguration()
        self._has_delta = "delta" in java_context.getConf().get("spark.sql.extensions", "")
        self._application_id = java_context.sc().applicationId()
        self._file_writes = FileWrites(self.classes, self.conf)
        self.streams = Streams(self)
        self.commands.frames.plan_of_batch = self.streams.plan_of_batch
        self._records.write(
            {
                "kind": "start",
                "version": records.VERSION,
                "application_id": self._application_id,
                "spark_version": java_context.sc().version(),
                "time": self._started_ms,
                **_digest(),
            }
        )

    def failed(self, where, error):
        """Record an exception in the observer itself.

        :param where: a word for the place of the exception, such as ``attach``
        :param error: the exception
        """
        self.report(records.message_of(where, error))

    def report(self, text):
        """Write the text of an error as a record of its own."""
        with suppress(Exception):  # the job must never notice
            self._records.write({"error": records.shortened(text)})

    def finished(self, function, execution, duration_ns, exception=None):
        """Record a query that has ended; further calls for the same query do nothing.

        :param function: Spark's name of the query's action, such as ``collect``
        :param execution: Spark's QueryExecution of the query
        :param duration_ns: the query's duration in ns; 0 if it is not known
        :param exception: the Java exception with which the query failed; None if it succeeded
        """

        def look():
            # A cloned session inherits its listeners, so a query may come more than once. A frame
            # that is collected again has the same QueryExecution.
            query = execution.id()
            runs = self._seen.setdefault(query, set())
            run = (function, duration_ns)
            if run in runs:
                return []
            is_again = bool(runs)
            runs.add(run)
            self._queries += 1
            return self._records_of(query, *run, execution, exception, is_again)

        self.observe("query", look)

    def observe(self, what, look):
        """Write the records that a function gives; do nothing if the total time limit is reached.

        :param what: a word with which the record of an error begins, such as ``query``
        :param look: a function that gives a list of records, [] if there is nothing to record
        """
        begun = time.monotonic()
        try:
            with self._lock:
                self._look_at_clock()
                if self._over or self._records.full:
                    return
                self._budget = None
                found = look()
                if self._budget is not None:  # else nothing was looked at
                    self._spent += self._budget.spent()
                    self._is_slow = self._budget.is_slow
                if found:  # several records of one query took this time together
                    found[0]["observer_ms"] = round((time.monotonic() - begun) * 1000, 1)
                for record in found:
                    self._records.write(record)
                if any(record.get("writes") or record.get("command") for record in found):
                    self.after_write()
                if self._spent > self.limits.total_seconds:
                    self._over = True
                    message = f"looking took longer than {self.limits.total_seconds:g} s"
                    self._records.write({"kind": "cut", "cut": [message + " in all"]})
        except Exception as error:  # the job must never notice
            self.failed(what, error)

    def budget(self):
        """Give the limits of time and number of one look, a :class:`.records.Budget`.

        The time that the look takes is counted for all looks, too.
        """
        answers = partial(answering_seconds, self.classes)
        self._budget = records.Budget(self.limits, answers, self._began, is_measured=self._is_slow)
        return self._budget

    def _look_at_clock(self):
        put_back = self._clock.look()
        if put_back:
            self._records.write({"kind": "clock", "put_back": put_back})

    def _records_of(self, query, function, duration_ns, execution, exception, is_again):
        """Give the records of a query: one for each command of a multi-insert, otherwise one.

        is_again: whether an earlier query ran the same plan.
        """
        ended = int(time.time() * 1000)
        budget = self.budget()
        try:
            plan = execution.executedPlan()
        except Exception:
            if exception is None:
                raise
            return []  # the query failed before it had a plan, so it has read nothing
        each = plans.parts_of(plan, self.classes.identity, partial(names_tables, execution))
        each = [parts for parts in each if parts.has_data() or parts.may_call]
        if function in CHECKPOINTS and exception is None:
            try:
                self.commands.keep_frame(execution.analyzed(), budget)
            except Exception as error:  # the columns of the checkpoint are then not known
                self.failed("checkpoint", error)
        if not each:
            return []
        phase = _PHASE.search(execution.tracker().phases().toString())
        planned = int(phase.group(1)) if phase else None
        begun = None if is_again else planned
        times = (begun, ended, duration_ns // 1000000, planned)
        found = []
        for parts in each:
            for scan in parts.scans:
                scan.is_again = is_again
            record = records.query_record(query, function, *times)
            if exception is not None:
                record["failed"] = True
            self._look_at(record, parts, execution, budget)
            if any(record.get(key) for key in _CONTENT):
                found.append(record)
        return found

    def _look_at(self, record, parts, execution, budget):
        started, is_complete = record["started"], "failed" not in record
        for scan in parts.scans:
            guarded(record, scan.kind, self.read, record, scan, budget)
        if record.get("maintenance"):  # a step of a command that rewrites files
            record["reads"] = []
            return
        if parts.may_call and is_complete:
            guarded(record, "procedures", self._call, record, execution, budget)
        if parts.commands or parts.v2_writes:
            guarded(record, "command", self._command, record, parts, execution, budget)
        if is_complete:
            guarded(record, "statistics", self._without_scan, record, parts, execution)
            self._writes(record, parts, execution, started, budget)
        if parts.udfs:
            record["python_udfs"] = parts.udfs
        if parts.unseen:
            record.setdefault("cut", []).append(parts.unseen)

    def read(self, record, scan, budget):
        """Describe a scan as a read, and add the read to the ``reads`` of a query's record.

        A scan that reads no data of the user, such as the log of a Delta table, adds no read. A
        scan of files that are to be rewritten makes the query a step of maintenance.

        :param record: the query's record, which is changed
        :param scan: the :class:`.plans.Scan`
        :param budget: the query's limits of time and number, a :class:`.records.Budget`
        """
        budget.measure()
        if scan.is_unread:
            read = scans.unread(scan.kind, scan.node)
        else:
            read = scans.observe(scan.kind, scan.node, self.classes, budget, scan.is_again)
        if read is None:
            return
        if "maintenance" in read:
            self._maintained(record, read["roots"][0], read.get("table"), read["maintenance"])
        elif "not_data" not in read:
            self._read_data(record, scan, read)
        elif read not in record["reads"]:
            record["reads"].append(read)

    def _read_data(self, record, scan, read):
        if scan.kind == plans.FEED_SCAN:
            # Since Spark 4 the queries in which Delta reads a feed are reported, and have ended
            # before the query of the feed. They have the partitions.
            if self._feeds.issuperset(read["roots"]):
                return
        elif read.get("index") in scans.CHANGE_FEEDS:
            self._feeds.update(layout["base"] for layout in read.get("layouts", ()))
        if scan.filters:
            read["data_filters"] = [*read.get("data_filters", []), *scan.filters]
        # A limit may end the query before all files are opened. But the first file of the only scan
        # is opened in any case.
        files = read.get("numFiles", read.get("resultDataFiles"))
        if scan.is_limited and not (scan.is_alone and files == 1):
            read["planned"] = True
        self.delta.scan(read)
        self.streams.narrow(read, scan.node)
        if read not in record["reads"]:
            record["reads"].append(read)
            if "inference" not in read:
                guarded(record, "schema", self._schemas.describe, read, scan.kind, scan.node)

    @staticmethod
    def _maintained(record, path, table, operation):
        entry = {"path": path, "table": table, "operation": operation}
        if entry not in record.setdefault("maintenance", []):
            record["maintenance"].append(entry)

    def _call(self, record, execution, budget):
        if self._procedures.observe(record, execution, self.classes, budget):
            self.commit_snapshots(record, budget)

    @staticmethod
    def _without_scan(record, parts, execution):
        record["reads"].extend(reads_without_scan(parts, execution))

    def _command(self, record, parts, execution, budget):
        def is_hidden():
            # With Delta's extension the listener takes adaptive plans for Delta's own steps, and
            # drops them. It reports no write of a multi-insert, and not all columns of caches.
            is_delta = self._has_delta and parts.kind == plans.ADAPTIVE
            return is_delta or parts.position is not None or parts.has_cache

        kind = parts.commands[0][0] if parts.commands else None
        if record.get("failed"):
            # Only the target: the listener reports some failed writes as successes.
            command = self.commands.target_of(kind, execution, parts.position)
        else:
            command = self.commands.observe(kind, execution, is_hidden, budget, parts.position)
        if command is not None:
            record["command"] = command

    def _writes(self, record, parts, execution, started, budget):
        for kind, command in parts.commands:
            guarded(record, kind, self._write, record, kind, command, execution, started, budget)
        if parts.v2_writes:
            for kind, node in parts.v2_writes:
                table = written_table(node, execution, parts.position)
                if table is not None:
                    self.snapshots.accessed(
                        table, lambda: written_branch(execution, parts.position)
                    )
                    if kind in WITHOUT_DATA:
                        record["reads"].append(without_data(kind, table))
                else:
                    self._delta_write(record, node, execution)
            guarded(record, "snapshots", self.commit_snapshots, record, budget)

    def _write(self, record, kind, command, execution, started, budget):
        if kind.endswith("Catalog"):
            return
        if kind == TABLE_AS_SELECT:
            self._table_as_select(record, command, started)
            return
        if kind in ON_PARTITIONS:
            session = execution.sparkSession()
            record["writes"].append(of_partitions(kind, command, session, self.classes))
            return
        if kind in MAINTENANCE:
            path = path_of(command, execution.sparkSession())
            if path:
                self._maintained(record, path, None, MAINTENANCE[kind])
            return
        budget.measure()
        write = self._file_writes.observe(kind, command, started, budget)
        if write is None:
            if kind == "CreateDeltaTableCommand":
                self.delta.cloned(command)
            self._delta_write(record, command, execution)
            is_save = kind == "SaveIntoDataSourceCommand"
            if is_ignore(command) if is_save else kind in DELTA_CHANGES:
                session = execution.sparkSession()
                self.delta.may_skip(command, session, started, record["ended"])
            return
        record["writes"].append(write)
        if write.get("skipped"):
            # A read of files is recorded only if its files were opened. Other scans may have read
            # nothing, because the write was skipped.
            record["reads"] = [r for r in record["reads"] if r["node"] == "FileSourceScanExec"]
        else:
            self._last_writes[write["path"]] = started

    def _table_as_select(self, record, command, started):
        """Record a CREATE TABLE IF NOT EXISTS AS SELECT as skipped if no query wrote the table.

        :param record: the command's record, to which the skipped write is added
        :param command: the Java object of the command
        :param started: the time in ms when the command began; earlier queries do not count
        """
        target = record.get("command", {}).get("target")
        if target is None or not is_ignore(command):
            return
        path = target["path"]
        if self._last_writes.get(path, -1) < started:
            layout = {"base": path, "dimensions": [], "partitions": []}
            write = {"node": TABLE_AS_SELECT, **target, "mode": "create", "how": "exact"}
            record["writes"].append({**write, "layouts": [layout], "skipped": True})

    def _delta_write(self, record, node, execution):
        path = record.get("command", {"target": {}})["target"].get("path")
        self.delta.written(path or path_of(node, execution.sparkSession()))

    def commit_snapshots(self, record, budget):
        """Add to a record's ``writes`` the Iceberg snapshots that were made since the last call.

        :param record: the record, which is changed
        :param budget: the limits of time and number, a :class:`.records.Budget`
        """
        fresh = self.snapshots.fresh(self._application_id, self.classes, budget)
        record["writes"].extend(fresh)
        target = record.get("command", {}).get("target", {})
        for write in fresh:
            if "branch" in write and write["path"] == at_branch(
                target.get("path"), write["branch"]
            ):
                target.update(path=write["path"], table=write["table"])

    def _drain(self, bus, drain_ms):
        """Wait until Spark has reported all queries.

        On a busy machine that takes long, although it costs little. So this method goes on waiting
        as long as the thread of the listeners works, within limits of CPU time and by the clock.

        :param bus: Spark's LiveListenerBus, a Java object
        :param drain_ms: see :meth:`drain`
        """
        if _is_empty_within(bus, min(drain_ms, _SOON_MS)):
            return
        longest = records.Budget(self.limits, began=self._began).longest()
        ends = time.monotonic() + longest
        work = BusTime(self.classes)
        began = before = work.seconds()
        wait_ms = max(1, drain_ms - _SOON_MS)
        while not _is_empty_within(bus, wait_ms):
            now = work.seconds()
            if now - before < _WORKING_S or now - began > drain_ms / 1000:
                message = "Spark has not called all its listeners"
                raise TimeoutError(message)
            if time.monotonic() > ends:
                message = f"Spark has not called all its listeners within {longest:.0f} s"
                raise TimeoutError(message)
            before, wait_ms = now, drain_ms

    def drain(self, drain_ms):
        """Wait until Spark has reported all queries, if the SparkContext is not stopped.

        :param drain_ms: the CPU time, in ms, that Spark's listeners may take meanwhile; also the
            longest time to wait while they take none
        :raise Exception: at a timeout, or if the JVM is gone
        """
        context = self._java_context.sc()
        if not context.isStopped():
            self._drain(context.listenerBus(), drain_ms)

    def finish(self, drain_ms):
        """Wait until Spark has reported all queries, and write the last records.

        These are the commits that are not recorded yet, and a record of the driver's end, which
        also names the written folders that do not exist any more.

        :param drain_ms: as for :meth:`drain`
        """
        try:
            self.drain(drain_ms)
        except Exception as error:
            self.failed("drain", error)
        end = {"writes": []}
        budget = self.budget()
        guarded(end, "snapshots", self.commit_snapshots, end, budget)
        if end["writes"]:
            self._records.write({"kind": "commits", "writes": end["writes"]})
        for message in end.get("errors", []) + end.get("cut", []):
            self._records.write({"error": message})
        if self._tag:
            for record in self.delta.writes(self.classes, self.conf, self.limits):
                self._records.write(record)
        self._look_at_clock()
        end = {"kind": "end", "queries": self._queries, "put_back": self._clock.put_back}
        guarded(end, "written folders", lambda: end.update(gone=self._file_writes.gone(budget)))
        self._records.write({key: end[key] for key in end if end[key] != []})


def _digest():
    """Give the digest of the observer's files as a part of a record; empty if it is not packed.

    The worker compares it with that of its own observer.
    """
    try:
        from sparklineage_observer.digest import DIGEST  # only the zip has this module
    except ImportError:
        return {}
    return {"observer": DIGEST}
