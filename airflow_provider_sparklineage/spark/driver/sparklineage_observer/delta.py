"""Delta: the tagged commits of this application to written and removed partitions.

Every commit carries ``spark.databricks.delta.commitInfo.userMetadata``, which the injection sets to
the application's tag (unless the user has set the property). The logs are read at exit, newest
commit first, with the driver's own file system and credentials.
"""

import json
import re
from urllib.parse import unquote

from sparklineage_observer.jvm import (
    key_of,
    qualified,
    sorted_partitions,
    statuses,
    text_of_file,
)
from sparklineage_observer.records import OverBudgetError, message_of

_COMMIT = re.compile(r".*/(\d{20})\.json")
_PHYSICAL = re.compile("col-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")  # as Delta makes them
_SLACK_MS = 60000  # a commit's time is the writer's clock; another host may have made the table


class DeltaTables:
    """The Delta tables that the application read or wrote."""

    def __init__(self, tag, started_ms):
        self._tag = tag
        self._started_ms = started_ms
        self._paths = set()
        self._may_skip = []

    def scan(self, read):
        """Remember the table of a file scan, if it is one of Delta."""
        if "delta" in (read.get("format") or "").lower() or "Tahoe" in read.get("index", ""):
            self._paths.update(read.get("roots", ()))

    def command(self, command, session):
        """Remember the table of a write command or V1 write node, if it has one."""
        self.written(path_of(command, session))

    def written(self, path):
        """Remember the table of a write, if its path is known."""
        if path:
            self._paths.add(path.rstrip("/"))

    def may_skip(self, command, session, started, ended):
        """Remember a command that writes nothing if its table exists, or if no row matches it."""
        path = path_of(command, session)
        if path:
            self.written(path)
            self._may_skip.append((path.rstrip("/"), started, ended))

    def writes(self, classes, hadoop_conf, limits):
        """Yield one record per table with this application's commits, or with the table's error."""
        tables = {}
        for path in self._paths:
            tables.setdefault(qualified(classes, hadoop_conf, path), set()).add(path)
        for path in sorted(tables):
            try:
                commits, times = self._commits(path, classes, hadoop_conf, limits)
            except Exception as error:  # an error of one table must not stop the others
                yield {"error": message_of(f"Delta log of {path}", error)}
                continue
            spans = [span for known, *span in self._may_skip if known in tables[path]]
            commits += _skipped(path, spans, times)
            if commits:
                yield {"kind": "commits", "writes": commits}

    def _commits(self, path, classes, hadoop_conf, limits):
        """Give this application's commits, and the times of all commits since it began.

        The times include those of other writers: a job may have given some of its own commits
        another tag while it ran.
        """
        log = classes.path(path + "/_delta_log")
        file_system = log.getFileSystem(hadoop_conf)
        if not file_system.exists(log):
            return [], []
        listed = statuses(classes, file_system.listStatus(log))
        names = [path for path, *_ in listed if _COMMIT.match(path)]
        commits, times = [], []
        schema = _Schema()
        for count, name in enumerate(sorted(names, reverse=True)):
            if count >= limits.commits:
                message = f"more than {limits.commits} commits since the application began"
                raise OverBudgetError(message)
            text = text_of_file(classes, file_system, name)
            actions = [json.loads(line) for line in text.splitlines() if line.strip()]
            info = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
            older = info.get("timestamp", 0) < self._started_ms - _SLACK_MS
            if older and not any(map(schema.misses, commits)):
                break
            schema.learn(actions)
            if not older:
                times.append(info.get("timestamp"))
            if older or info.get("userMetadata") != self._tag:
                continue
            write = _write(path, int(_COMMIT.match(name).group(1)), info, actions)
            if write is not None:
                commits.append(write)
                schema.expect(write, actions)
        for write in commits:  # the schema may be in an older commit than the write
            schema.describe(write)
        return commits[::-1], times


def _skipped(path, spans, times):
    """Describe the commands that may have written nothing, and during which nothing was committed.

    :param spans: begin and end of each command, in ms
    :param times: when commits of any writer were made, in ms; if one time is missing, no command
        counts as skipped
    """
    if None in times:
        return []
    return [
        {
            "node": "DeltaCommit",
            "format": "delta",
            "path": path,
            "mode": "create",
            "skipped": True,
            "time": begin,
            "how": "exact",
            "layouts": [],
        }
        for begin, end in spans
        if not any(begin <= time <= end for time in times)
    ]


class _Schema:
    """The names and types of columns, learned from a table's log, newest commit first.

    With column mapping, files have the partition values by physical names. In tables that were made
    with column mapping, these differ from the names of the columns.
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
        """Note a write that removed files, if only an older commit has their partition columns.

        A removed file has no values for columns that are null. Its folders do not name the columns
        where they are random, as Delta 4.4 makes them for tables with column mapping.
        """
        added, removed = _changed(actions)
        if not added and any(_in_folders(*_place(file)) is None for file in removed):
            self._incomplete.append((write, removed))

    def misses(self, write):
        """Whether columns of a write are unknown, or only their physical names are known."""
        if any(write is incomplete for incomplete, _ in self._incomplete):
            return True
        fields = {d["field"] for d in _dimensions(write)}
        return any(_PHYSICAL.match(f) and f not in self._known for f in fields)

    def describe(self, write):
        """Give the columns of a write their names and types."""
        if self.misses(write):
            cut = "the commit that names its columns is gone from the log"
            write.update(how="unknown", cut=cut, layouts=[], removed=[])
        for dimension in _dimensions(write):
            name, kind = self._known.get(dimension["field"], (dimension["field"], ""))
            dimension.update(field=name, type=kind)


def _dimensions(write):
    return [d for layout in write["layouts"] + write["removed"] for d in layout["dimensions"]]


def _changed(actions):
    """Give the files that a commit added and removed, other than by moving the same data."""
    return [
        [a[key] for a in actions if a.get(key, {}).get("dataChange")] for key in ("add", "remove")
    ]


def _write(path, version, info, actions):
    added, removed = _changed(actions)
    if not added and not removed and any("add" in a or "remove" in a for a in actions):
        return None  # OPTIMIZE and the like: the same data in other files
    parameters = info.get("operationParameters") or {}
    # For a stream, the mode is its output mode: Append, Complete or Update.
    mode = str(parameters.get("mode") or parameters.get("outputMode", "")).lower()
    if version == 0:
        mode = "create"
    elif "REPLACE TABLE" in str(info.get("operation")):
        mode = "whole"
    elif mode == "overwrite":
        # With a predicate (replaceWhere) rows are replaced. The log is the same for full and for
        # dynamic overwrites, so the overwrite of a partitioned table counts as the weaker: dynamic.
        partly = parameters.get("predicate") not in (None, "[]", "")
        partitioned = any(a.get("partitionValues") for a in added)
        mode = "rows" if partly else "dynamic" if partitioned else "whole"
    elif mode != "append":
        mode = "rows"
    return {
        "node": "DeltaCommit",
        "format": "delta",
        "path": path,
        "mode": mode,
        "operation": info.get("operation"),
        "version": version,
        "time": info.get("timestamp"),
        "how": "exact",
        "layouts": _layouts(path, added),
        "removed": _layouts(path, removed, max((_keys(a) for a in added), key=len, default=())),
    }


def _keys(file):
    return tuple(file.get("partitionValues") or {})


def _layouts(path, files, complete=()):
    """Group files by their partition columns.

    :param complete: the partition columns of the same commit's added files, or of the table
    """
    found = {}
    for file in files:
        _, values = _place(file)
        columns = _columns(*_place(file), complete)
        found.setdefault(columns, set()).add(tuple(values.get(c) or None for c in columns))
    return [
        {
            "base": path,
            "dimensions": [{"field": c, "transform": "identity", "type": ""} for c in columns],
            "partitions": sorted_partitions(found[columns]),
        }
        for columns in sorted(found)
    ]


def _place(file):
    return file.get("path", ""), file.get("partitionValues") or {}


def _columns(path, values, complete):
    """Give the partition columns of a file; a removed file has no values for its null columns."""
    named = _in_folders(path, values)
    if named is None and set(complete) > set(values):
        return tuple(complete)
    return named or tuple(values)


def _in_folders(path, values):
    """Give the columns in the names of a file's folders; None if the folders do not name them.

    They do not if they are random, if they hold change data, or if they belong to another table.
    """
    if "/" not in path:
        return ()
    if ":/" in path or path.startswith("/"):
        return None
    folders = [unquote(folder) for folder in path.split("/")[:-1]]
    named = tuple(key_of(folder) for folder in folders if "=" in folder)
    return named if named and set(named) >= set(values) else None


# The ways to a table's path in commands and nodes of Delta: they are private, and differ by class.
_PATHS = (
    lambda c: c.deltaLog().dataPath().toString(),
    lambda c: c.targetFileIndex().path().toString(),
    lambda c: c.tahoeFileIndex().path().toString(),
    lambda c: c.deltaTable().path().toString(),
    lambda c: c.table().path().toString(),
    lambda c: c.table().deltaLog().dataPath().toString(),
    lambda c: c.options().get("path").get(),
    lambda c: c.table().location().toString(),
)


def path_of(command, session):
    """Give the path of the table that a command writes; None if it has no table."""
    for path in _PATHS:
        try:
            return path(command)
        except Exception:  # noqa: S112  (not this one)
            continue
    try:
        identifier = command.table().identifier()
        return session.sessionState().catalog().getTableMetadata(identifier).location().toString()
    except Exception:  # not a command on a table
        return None
