"""Finds the partitions of Delta tables that this application's commits wrote and removed.

Every commit has the value of ``spark.databricks.delta.commitInfo.userMetadata``, which the
injection sets to the application's tag (unless the user has set the property). The logs of the
tables are read at exit, the newest commit first, with the driver's own file system and credentials.
"""

import json
import re
import time
from urllib.parse import unquote

from sparklineage_observer import records
from sparklineage_observer.jvm import (
    first_answer,
    key_of,
    qualified,
    statuses,
    text_of_file,
    value_of,
)

_COMMIT = re.compile(r".*/(\d{20})\.json")
_PHYSICAL = re.compile("col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")  # names that Delta makes
MAINTENANCE = {
    "OptimizeTableCommand": "OPTIMIZE",
    "DeltaReorgTableCommand": "REORG",
    "VacuumTableCommand": "VACUUM",
    "ConvertToDeltaCommand": "CONVERT TO DELTA",
}
"""The commands of Delta that leave the data of a table as it is, and their names in SQL."""
_ATTRIBUTE = re.compile(r"([\w.`]+)#\d+")  # a column in the text of a condition
_UTC = re.compile(r"[-\d]+T[\d:.]+Z")  # a time in the log
_REPLAYED = 300  # commits that are read to find the files of a partition
_REPLAY_S = 2.0  # for that, because the driver waits
_SLACK_MS = 60000  # a commit has the time of its writer's clock, maybe on another host


class DeltaTables:
    """The Delta tables that the application read or wrote.

    :param tag: the text that marks the application's commits
    :param started_ms: the time when the application began, in ms since the epoch
    """

    def __init__(self, tag, started_ms):
        self._tag = tag
        self._started_ms = started_ms
        self._paths = set()
        self._may_skip = []
        self._clones = {}

    def scan(self, read):
        """Remember the table of a file scan, if it is a Delta table.

        :param read: the description of the scan, an entry of a record's ``reads``
        """
        if "delta" in (read.get("format") or "").lower() or "Tahoe" in read.get("index", ""):
            self._paths.update(read.get("roots", ()))

    def written(self, path):
        """Remember the table of a write, by its path; do nothing if the path is None or ""."""
        if path:
            self._paths.add(path.rstrip("/"))

    def may_skip(self, command, session, started, ended):
        """Remember a command that writes nothing if its table exists, or if no row matches.

        :param command: the Java object of the command
        :param session: the Java SparkSession
        :param started: the time in ms when the command began
        :param ended: the time in ms when it had ended
        """
        path = path_of(command, session)
        if path:
            self.written(path)
            self._may_skip.append((path.rstrip("/"), started, ended))

    def cloned(self, command):
        """Remember the source of a command that clones a table; do nothing for other commands.

        :param command: the Java object of the command
        """
        clone = first_answer(command, lambda c: c.query().get())
        source = first_answer(clone, lambda c: c.sourceTable())
        target = first_answer(clone, lambda c: c.targetPath().toString())
        path = first_answer(source, lambda s: s.dataPath().toString())
        if path and target:
            is_older = first_answer(source, lambda s: s.timeTravelOpt().isDefined())
            self.written(target)
            self._clones[target.rstrip("/")] = path.rstrip("/"), bool(is_older)

    def writes(self, classes, hadoop_conf, limits):
        """Yield a record for each table: this application's commits, or the error of reading them.

        Tables without such commits have no record.

        :param classes: the driver's :class:`.jvm.Classes`
        :param hadoop_conf: the Hadoop configuration of the SparkContext, a Java object
        :param limits: the :class:`.records.Limits`
        :return: yields ``{"kind": "commits", "writes": [...]}`` or ``{"error": text}``
        """
        tables = {}
        for path in self._paths:
            tables.setdefault(qualified(classes, hadoop_conf, path), set()).add(path)
        for path in sorted(tables):
            try:
                commits, times = self._commits(path, classes, hadoop_conf, limits)
            except Exception as error:  # the other tables are read nevertheless
                yield {"error": records.message_of(f"Delta log of {path}", error)}
                continue
            spans = [span for known, *span in self._may_skip if known in tables[path]]
            commits += _skipped(path, spans, times)
            source = next((self._clones[p] for p in tables[path] if p in self._clones), None)
            for write in [w for w in commits if w.get("operation") == "CLONE"]:
                schema = write.pop("schema", None)
                if source is not None:
                    commits.remove(write)
                    read = _read_of_clone(write, schema, *source)
                    yield {"kind": "commits", "writes": [write], "reads": [read]}
            if commits:
                yield {"kind": "commits", "writes": commits}

    def _commits(self, path, classes, hadoop_conf, limits):
        """Read this application's commits in a table, and the times of all writers' commits.

        Commits from before the start of the application are left out. The times of commits with
        another tag are included, because a job may have given some of its own commits another tag
        while it ran.

        :param path: the path of the table
        :param classes: the driver's :class:`.jvm.Classes`
        :param hadoop_conf: the Hadoop configuration of the SparkContext, a Java object
        :param limits: the :class:`.records.Limits`
        :return: (writes, times): a record of the write for each commit, the oldest first; and the
            times in ms, with None for a commit that has no time
        :raise OverBudgetError: if the table has too many commits since the application began
        """
        log = classes.path(path + "/_delta_log")
        file_system = log.getFileSystem(hadoop_conf)
        if not file_system.exists(log):
            return [], []
        listed = statuses(classes, file_system.listStatus(log))
        names = [path for path, *_ in listed if _COMMIT.match(path)]
        commits, times = [], []
        schema, emptied = _Schema(), _Emptied()
        older = False
        for count, name in enumerate(sorted(names, reverse=True)):
            if count >= limits.commits and not (older and emptied.is_looking):
                message = f"more than {limits.commits} commits since the application began"
                raise records.OverBudgetError(message)
            text = text_of_file(classes, file_system, name)
            actions = [json.loads(line) for line in text.splitlines() if line.strip()]
            info = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
            older = info.get("timestamp", 0) < self._started_ms - _SLACK_MS
            if older and not (emptied.is_looking or any(map(schema.misses, commits))):
                break
            schema.learn(actions)
            version = int(_COMMIT.match(name).group(1))
            emptied.learn(version, actions)
            if not older:
                times.append(info.get("timestamp"))
            if older or info.get("userMetadata") != self._tag:
                continue
            write = _write(path, version, info, actions)
            if write is not None:
                if write["operation"] == "CLONE":
                    write.update(_columns_of(actions))
                commits.append(write)
                schema.expect(write, actions)
                emptied.expect(write, info, actions)
        emptied.describe()
        for write in commits:  # the schema may be in an older commit than the write
            schema.describe(write)
        return commits[::-1], times


def _read_of_clone(write, schema, path, is_older):
    """Describe the read of the table of which another is a clone, an entry of ``reads``.

    :param write: the record of the clone's commit
    :param schema: the columns, as parsed JSON of Spark's StructType; None if they are not known
    :param path: the path of the source
    :param is_older: whether a version of the source is cloned that the command names
    """
    read = {"node": "CloneTableCommand", "format": "delta", "roots": [path]}
    if is_older:
        read["chosen"] = True
    if schema is not None:
        read.update(copied=True, schema=schema)
    if write["mode"] != "create":
        return {**read, "cut": "a clone of a table that was there before copies what differs"}
    return {**read, "layouts": [{**layout, "base": path} for layout in write["layouts"]]}


def _columns_of(actions):
    """Give the columns that a commit sets, as ``{"schema": …}``; {} if it sets none."""
    texts = [a["metaData"].get("schemaString") for a in actions if "metaData" in a]
    return {"schema": json.loads(texts[-1])} if texts and texts[-1] else {}


def _skipped(path, spans, times):
    """Give a record of a skipped write for each command during which the table had no commit.

    :param path: the path of the table
    :param spans: pairs (begin, end), in ms, one for each command that may have written nothing
    :param times: the times of the commits of all writers, in ms; if one time is None, no command
        counts as skipped
    :return: a list of records, each an entry of a record's ``writes``
    """
    if None in times:
        return []
    return [
        records.write_record("DeltaCommit", "delta", path, "create", skipped=True, time=begin)
        for begin, end in spans
        if not any(begin <= time <= end for time in times)
    ]


class _Schema:
    """The names and types of a table's columns, learned from its log, the newest commit first.

    With column mapping, a file's partition values have the physical names of the columns. If the
    table was made with column mapping, the physical names differ from the columns' names.
    """

    def __init__(self):
        self._known = {}
        self._incomplete = []

    def learn(self, actions):
        for meta in (a["metaData"] for a in actions if "metaData" in a):
            names = {}
            for field in json.loads(meta.get("schemaString") or "{}").get("fields", ()):
                physical = (field.get("metadata") or {}).get("delta.columnMapping.physicalName")
                kind = field["type"] if isinstance(field["type"], str) else "struct"
                names[field["name"]] = physical or field["name"]
                self._known.setdefault(physical or field["name"], (field["name"], kind))
            columns = [names.get(c, c) for c in meta.get("partitionColumns") or ()]
            for write, removed in self._incomplete:
                write["removed"] = _layouts(write["path"], removed, columns)
            self._incomplete = []

    def expect(self, write, actions):
        """Remember a write that only removed files, if these do not show their partition columns.

        The next older commit with the table's schema then names the columns (:meth:`learn`).

        A removed file has no values for partition columns that are null. The names of the file's
        folders do not show the columns either if the names are random, as Delta 4.4 makes them in
        tables with column mapping.

        :param write: the record of the write
        :param actions: the lines of the write's commit, parsed
        """
        added, removed = _changed(actions)
        if not added and any(_in_folders(*_place(file)) is None for file in removed):
            self._incomplete.append((write, removed))

    def misses(self, write):
        """Whether the names of some of a write's partition columns are still to be learned.

        These columns are unknown, or only their physical names are known.

        :param write: the record of the write
        """
        if any(write is incomplete for incomplete, _ in self._incomplete):
            return True
        fields = {d["field"] for d in _dimensions(write)}
        return any(_PHYSICAL.match(f) and f not in self._known for f in fields)

    def describe(self, write):
        """Set the names and types of a write's partition columns.

        If some of the names are not known, the record of the write gets no partitions, and ``cut``
        in it has the reason.

        :param write: the record of the write, which is changed
        """
        if self.misses(write):
            cut = "the commit that names its columns is gone from the log"
            write.update(how="unknown", cut=cut, layouts=[], removed=[], emptied=[])
        for dimension in _dimensions(write):
            name, kind = self._known.get(dimension["field"], (dimension["field"], ""))
            dimension.update(field=name, type=kind)


def _dimensions(write):
    layouts = write["layouts"] + write["removed"] + write.get("emptied", [])
    return [d for layout in layouts for d in layout["dimensions"]]


class _Emptied:
    """Finds the partitions that commits emptied: those of which a commit left no file.

    The commit itself shows it if it removed whole partitions by their values, or all files of the
    table. Otherwise older commits are read, until one added a file of the partition that was still
    there. A partition of which none did, back to the first commit, was emptied. Where commits are
    gone from the log, or too many, it is not known, and the partition counts as written.
    """

    def __init__(self):
        self._open = []  # [record of a write, candidates, files removed since]
        self._found = []  # pairs: record of a write, partitions that it emptied
        self._left = _REPLAYED
        self._until = None

    @property
    def is_looking(self):
        """Whether older commits are needed."""
        return bool(self._open)

    def expect(self, write, info, actions):
        """Look for the partitions that a commit emptied.

        :param write: the record of the write
        :param info: the ``commitInfo`` of the commit
        :param actions: the lines of the commit, parsed
        """
        write["emptied"] = []
        added, removed = (set(map(_key, files)) for files in _changed(actions))
        candidates = removed - added
        if not candidates or _removes_partitions(info, removed):
            self._found.append((write, candidates))
        else:
            gone = {a["remove"]["path"] for a in actions if "remove" in a}
            self._open.append((write, candidates, gone))

    def learn(self, version, actions):
        """Look at the next older commit, for the writes that were expected before.

        :param version: the number of the commit
        :param actions: the lines of the commit, parsed
        """
        added = [a["add"] for a in actions if "add" in a]
        removed = {a["remove"]["path"] for a in actions if "remove" in a}
        for _, candidates, gone in self._open:
            candidates -= {_key(file) for file in added if file["path"] not in gone}
            gone |= removed
        is_first = version == 0
        self._found += [(write, left) for write, left, _ in self._open if is_first or not left]
        if self._open and self._until is None:
            self._until = time.monotonic() + _REPLAY_S
        self._left -= bool(self._open)
        is_late = self._until is not None and time.monotonic() > self._until
        is_over = is_first or not self._left or is_late
        self._open = [] if is_over else [one for one in self._open if one[1]]

    def describe(self):
        """Set ``emptied`` in the records of the writes."""
        for write, partitions in self._found:
            write["emptied"] = [
                one
                for layout in write["removed"]
                if (one := _of_partitions(layout, partitions))["partitions"]
            ]


def _key(file):
    """Give the partition of a file as a set of (column, value), without nulls.

    :param file: the content of an action ``add`` or ``remove``
    """
    return frozenset((column, value) for column, value in _place(file)[1].items() if value)


def _of_partitions(layout, partitions):
    columns = [dimension["field"] for dimension in layout["dimensions"]]
    listed = [
        values
        for values in layout["partitions"]
        if frozenset((c, v) for c, v in zip(columns, values) if v) in partitions
    ]
    # The dimensions are copied, because the names in them are changed later.
    return {**layout, "dimensions": [dict(d) for d in layout["dimensions"]], "partitions": listed}


def _removes_partitions(info, removed):
    """Whether a commit removed all files of the partitions from which it removed files.

    :param info: the ``commitInfo`` of the commit
    :param removed: the partitions from which the commit removed files (:func:`_key`)
    """
    operation, parameters = info.get("operation"), info.get("operationParameters") or {}
    predicate = str(parameters.get("predicate") or "")
    if operation in ("DELETE", "TRUNCATE"):
        columns = {name.replace("`", "") for name in _ATTRIBUTE.findall(predicate)}
        is_all = predicate in ("", "[]", '["true"]')
        partitioned = {column for partition in removed for column, _ in partition}
        return is_all or (bool(columns) and columns <= partitioned)
    # A dynamic overwrite removes files of partitions alone to which it adds others.
    is_overwrite = str(parameters.get("mode") or "").lower() == "overwrite"
    return (is_overwrite and predicate in ("", "[]")) or "REPLACE TABLE" in str(operation)


def _changed(actions):
    """Give the files that a commit added, and those that it removed, except moved data.

    OPTIMIZE and similar commands put the same data into other files (``dataChange`` is false).

    :param actions: the lines of the commit, parsed
    :return: two lists of dicts: the content of the actions ``add``, and of the actions ``remove``
    """
    return [
        [a[key] for a in actions if a.get(key, {}).get("dataChange")] for key in ("add", "remove")
    ]


def _write(path, version, info, actions):
    added, removed = _changed(actions)
    if not added and not removed and any("add" in a or "remove" in a for a in actions):
        return None  # OPTIMIZE and similar commands put the same data into other files
    if info.get("operation") == "CONVERT":
        return None  # the data was there before, as a table of another format
    parameters = info.get("operationParameters") or {}
    # The commit of a stream has the stream's output mode: Append, Complete or Update.
    mode = str(parameters.get("mode") or parameters.get("outputMode", "")).lower()
    if version == 0:
        mode = "create"
    elif "REPLACE TABLE" in str(info.get("operation")):
        mode = "whole"
    elif mode == "overwrite":
        # With a predicate (replaceWhere), rows are replaced. The log does not distinguish full and
        # dynamic overwrites, so the overwrite of a partitioned table counts as dynamic, the weaker
        # of the two.
        partly = parameters.get("predicate") not in (None, "[]", "")
        partitioned = any(a.get("partitionValues") for a in added)
        mode = "rows" if partly else "dynamic" if partitioned else "whole"
    elif mode != "append":
        mode = "rows"
    columns = max((tuple(_place(file)[1]) for file in added), key=len, default=())
    again = {file.get("path") for file in removed}
    layouts = _layouts(path, added, again=again)
    write = records.write_record("DeltaCommit", "delta", path, mode, layouts)
    write.update(version=version, operation=info.get("operation"), time=info.get("timestamp"))
    return {**write, "removed": _layouts(path, removed, columns)}


def _layouts(path, files, complete=(), again=None):
    """Give the partitions of files, as one layout for each set of partition columns.

    Added files have their rows and bytes. A file whose path the same commit removes was there
    before: rows of it were marked as deleted, and none was added.

    :func:`.records.layout_of` describes a layout.

    :param path: the path of the table
    :param files: the content of a commit's actions ``add`` or ``remove``, one for each file
    :param complete: the partition columns of the same commit's added files, or of the table, for
        removed files that do not show all their columns
    :param again: the paths of the files that the commit removes, if ``files`` are added; else None
    """
    found, figures = {}, {}
    for file in files:
        _, values = _place(file)
        columns = _columns(*_place(file), complete)
        partition = tuple(values.get(c) or None for c in columns)
        found.setdefault(columns, set()).add(partition)
        if again is not None and file.get("path") not in again:
            counted = figures.setdefault(columns, records.Figures())
            counted.add(partition, _rows(file), file.get("size") or 0)
    layouts = []
    for columns in sorted(found):
        dimensions = list(map(records.dimension_of, columns))
        layouts.append(records.layout_of(path, dimensions, found[columns]))
        if again is not None:
            figures.get(columns, records.Figures()).describe(layouts[-1])
    return layouts


def _rows(file):
    """Give the number of rows of an added file, without those that are marked as deleted.

    :param file: the content of an action ``add``
    :return: None if the file has no statistics, or one of the two numbers is not known
    """
    try:
        deleted = (file.get("deletionVector") or {}).get("cardinality", 0)
        return json.loads(file["stats"])["numRecords"] - deleted
    except (KeyError, TypeError, ValueError):
        return None


def _place(file):
    """Give the path of a file, as Delta's log has it, and the values of its partition by column.

    Delta 4 writes times in UTC into its log, and in the time zone of the session into the names of
    folders. A scan shows the folders, so the folders are right: or a read of what a write made
    would be one of another partition.

    :param file: the content of an action ``add`` or ``remove``
    """
    path, values = file.get("path", ""), file.get("partitionValues") or {}
    if any(_UTC.fullmatch(value or "") for value in values.values()):
        folders = [unquote(folder) for folder in path.split("/")[:-1] if "=" in folder]
        named = {key_of(folder): value_of(folder) for folder in folders}
        values = {
            column: named.get(column, value) if _UTC.fullmatch(value or "") else value
            for column, value in values.items()
        }
    return path, values


def _columns(path, values, complete):
    """Give the names of a file's partition columns.

    A removed file has no values for the columns that are null, so their names come from its folders
    or else from ``complete``.

    :param path: the file's path, as Delta's log has it
    :param values: the file's partition values by column
    :param complete: the names of all partition columns, if they are known; else ()
    :return: a tuple of names
    """
    named = _in_folders(path, values)
    if named is None and set(complete) > set(values):
        return tuple(complete)
    return named or tuple(values)


def _in_folders(path, values):
    """Give the names of a file's partition columns, as its folders (``dt=1/…``) show them.

    :param path: the file's path, as Delta's log has it
    :param values: the file's partition values by column; the folders must name all these columns
    :return: a tuple of names; () for a file that is in no folder; None if the folders do not show
        the columns, because their names are random, because they hold change data, or because they
        belong to another table
    """
    if "/" not in path:
        return ()
    if ":/" in path or path.startswith("/"):
        return None
    folders = [unquote(folder) for folder in path.split("/")[:-1]]
    named = tuple(key_of(folder) for folder in folders if "=" in folder)
    return named if named and set(named) >= set(values) else None


# The calls that give a table's path in the commands and nodes of Delta. These methods are private,
# and each class has others.
_PATHS = (
    lambda c: c.deltaLog().dataPath().toString(),
    lambda c: c.targetFileIndex().path().toString(),
    lambda c: c.tahoeFileIndex().path().toString(),
    lambda c: c.deltaTable().path().toString(),
    lambda c: c.table().path().toString(),
    lambda c: c.table().deltaLog().dataPath().toString(),
    lambda c: c.options().get("path").get(),
    lambda c: c.sourceTable().path().toString(),
    lambda c: c.child().table().path().toString(),
    lambda c: c.target().table().path().toString(),
    lambda c: c.child().path().toString(),
    lambda c: c.table().location().toString(),
)


def path_of(command, session):
    """Give the path of the table that a command writes; None if the command names no table.

    :param command: the Java object of a command, or of a node of Delta in a physical plan
    :param session: the Java SparkSession
    """

    def of_catalog(command):
        catalog = session.sessionState().catalog()
        return catalog.getTableMetadata(command.table().identifier()).location().toString()

    def converted(command):
        identifier = command.tableIdentifier()
        if "/" in identifier.table():  # parquet.`/path`
            return identifier.table()
        catalog = session.sessionState().catalog()
        return catalog.getTableMetadata(identifier).location().toString()

    return first_answer(command, *_PATHS, of_catalog, converted)
