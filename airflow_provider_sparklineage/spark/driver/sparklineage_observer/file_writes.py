"""A V1 write command to the partitions that it wrote.

No object in the driver keeps them: the command's metrics count files, bytes and partitions. But
Spark gives all files of one write job one UUID (``part-00000-<uuid>…``). So the folders are
listed, newest first, until there is one new UUID with exactly the command's numbers: then its
folders are the partitions written (``exact``). Without such a match the new files are all that is
known (``listing``); without files, nothing is (``unknown``).
"""

import re

from sparklineage_observer.jvm import (
    items,
    metrics,
    option,
    sorted_partitions,
    split_directory,
    statuses,
    texts,
)
from sparklineage_observer.records import OverBudgetError

_FILE = re.compile(r"part-\d+-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")
_CHUNK = 400  # folders in one listing call
_SLACK_MS = 60000  # clocks of a file system may differ from the driver's
_GLOB = re.compile(r"([\\{}\[\]*?,^])")


class FileWrites:
    """Knows which files earlier writes of this application left where."""

    def __init__(self, classes, hadoop_conf):
        self._classes = classes
        self._conf = hadoop_conf
        self._own = {}
        self._given_up = set()
        self._paths = {}

    def observe(self, kind, command, started_ms, budget):
        """Describe a write command; None for commands that do not write files themselves."""
        if kind == "InsertIntoHadoopFsRelationCommand":
            write, path = _insert_into_files(kind, command)
        elif kind == "InsertIntoHiveTable":
            write, path = _insert_into_hive(kind, command)
        else:
            return None
        write["format"] = "files"
        counts = metrics(
            command.metrics(), "numParts", "numFiles", "numOutputBytes", "numOutputRows"
        )
        write.update(counts)
        dimensions = write.pop("dimensions")
        layout = {"base": path, "dimensions": dimensions, "partitions": []}
        write.update(path=path, layouts=[layout], how="exact")
        if write["mode"] == "create" and not write.get("numFiles") and _is_skipped(command):
            write["skipped"] = True
            return write
        if write["table"] is None:
            self._paths[path] = True
        try:
            self._find(write, layout, started_ms, budget)
        except OverBudgetError as error:
            self._given_up.add(self._place(write))
            if not layout["partitions"]:
                write.update(how="unknown", cut=str(error))
        return write

    def gone(self, budget):
        """Name the folders that were written, and that are not there any more."""
        gone = []
        for path in list(self._paths)[: budget.limits.written]:
            budget.check()
            folder = self._classes.path(path)
            if not folder.getFileSystem(self._conf).exists(folder):
                gone.append(path)
        return gone

    @staticmethod
    def _place(write):
        """Give the folder below which a write is looked for."""
        columns = [d["field"] for d in write["layouts"][0]["dimensions"]]
        return (write["path"], *_leading(write["static"], columns))

    def _find(self, write, layout, started_ms, budget):
        columns = [d["field"] for d in layout["dimensions"]]
        if not columns:
            # The full relation; whether an append found it empty is not worth a listing.
            layout["partitions"] = [[]]
            write["shared"] = [[]] if write["mode"] == "append" else []
            return
        if write.get("numFiles") == 0:
            write["shared"] = []
            return
        static = _leading(write["static"], columns)
        if len(static) == len(columns) and None not in static:
            # Known from the command alone; the files show only whose other files are there.
            layout["partitions"] = [[str(value) or None for value in static]]
        if self._place(write) in self._given_up:
            message = "its folders were too many to list before"
            raise OverBudgetError(message)
        groups, others = self._groups(write, layout["base"], columns, started_ms, budget)
        own = self._own.setdefault(layout["base"], {})
        matched = [u for u, g in groups.items() if u not in own and _fits(g, write)]
        if len(matched) == 1 or len({frozenset(groups[u].parts) for u in matched}) == 1:
            write["how"] = "exact"
        else:
            # Nothing fits, or writes of equal size at the same time: what is new is all of theirs.
            new = [u for u, g in groups.items() if u not in own and g.modified >= started_ms]
            matched = matched or new
            if layout["partitions"] and not matched:
                return  # written into a location of its own
            write["how"] = "listing" if matched else "unknown"
        parts = set()
        for identity in matched:
            parts |= groups[identity].parts
            if len(matched) == 1:
                own[identity] = True
        layout["partitions"] = sorted_partitions(parts)
        foreign = {p for u, ps in others.items() if u not in own and u not in matched for p in ps}
        write["shared"] = sorted_partitions(foreign & parts)

    def _groups(self, write, base, columns, started_ms, budget):
        """List the files below a base by the UUID of their write, until one group fits."""
        folders = self._folders(base, columns, _leading(write["static"], columns), budget)
        own = self._own.get(base, {})
        groups = {}
        others = {}
        # The folders of this write are among the newest, unless the file system keeps no times.
        start, size = 0, min(_CHUNK, max(16, 4 * write.get("numParts", 0)))
        while start < len(folders):
            budget.check()
            chunk = [folder for _, folder in folders[start : start + size]]
            start, size = start + size, _CHUNK
            for path, directory, length, modified in self._below(base, chunk, "*", budget):
                folder, _, name = path.rpartition("/")
                if directory or name.startswith(("_", ".")):
                    continue
                values = split_directory(folder, columns)
                if values is None:
                    continue
                match = _FILE.match(name)
                identity = match.group(1) if match else name
                others.setdefault(identity, set()).add(values[1])
                if modified >= started_ms - _SLACK_MS:
                    groups.setdefault(identity, _Group()).add(values[1], length, modified)
            if any(u not in own and _fits(g, write) for u, g in groups.items()):
                break
        return groups, others

    def _folders(self, base, columns, static, budget):
        """Find the partition folders below a base, newest first: (-modified, relative path).

        Level by level and some parents at a time: a call to the file system cannot be stopped.
        """
        found = [(0, "")]
        for position, column in enumerate(columns):
            children = f"{_escaped(column)}=*"
            if position < len(static) and static[position] is not None:
                children = _escaped(self._classes.partition_folder(column, static[position]))
            parents, found = found, []
            for start in range(0, len(parents), _CHUNK):
                budget.check()
                chunk = [p for _, p in parents[start : start + _CHUNK]]
                for path, directory, _, modified in self._below(base, chunk, children, budget):
                    if directory:
                        folder = "/".join(path.split("/")[-position - 1 :])
                        found.append((-modified, folder))
                budget.require(len(found), "directories", "folders")
        return sorted(found)

    def _below(self, base, folders, pattern, budget):
        """List what fits a pattern below some folders of a base."""
        # With a slash inside of the braces each is a path of its own, and nothing is searched for.
        each = ",".join(f"{_escaped(folder)}/{pattern}".lstrip("/") for folder in folders)
        wanted = f"{_escaped(base)}/{{{each}}}" if len(folders) > 1 else f"{_escaped(base)}/{each}"
        path = self._classes.path(wanted)
        listed = path.getFileSystem(self._conf).globStatus(path)
        if listed is None:
            return []
        # Before it becomes a text, which takes longer than the listing.
        limit, what = ("files", "files") if pattern == "*" else ("directories", "folders")
        budget.require(len(listed), limit, what)
        return statuses(self._classes, listed)


class _Group:
    """The files of one write job."""

    def __init__(self):
        self.files = 0
        self.bytes = 0
        self.modified = 0
        self.parts = set()

    def add(self, values, length, modified):
        self.files += 1
        self.bytes += length
        self.modified = max(self.modified, modified)
        self.parts.add(values)


def is_ignore(command):
    """Whether a command writes nothing where there is something already."""
    return command.mode().toString() == "Ignore"


def _is_skipped(command):
    """Whether a command found something in its place: then it has never committed."""
    took = option(command.metrics().get("jobCommitTime"))
    return is_ignore(command) and took is not None and took.isZero()


def _fits(group, write):
    return (
        group.files == write.get("numFiles")
        and group.bytes == write.get("numOutputBytes")
        # Hive does not count the one partition of a write whose values are all static.
        and len(group.parts) == (write.get("numParts") or 1)
    )


def _leading(static, columns):
    """Give the values of the leading columns that a write has fixed; None is null."""
    values = []
    for column in columns:
        if column not in static:
            break
        values.append(static[column])
    return tuple(values)


def _escaped(text):
    return _GLOB.sub(r"\\\1", text)


def _insert_into_files(kind, command):
    table = option(command.catalogTable())
    columns = items(command.partitionColumns())
    static = {}
    for pair in items(command.staticPartitions().toSeq()):
        static[pair._1()] = pair._2()
    mode = command.mode().toString().lower()
    if mode == "overwrite":
        mode = "whole"
        if static:
            mode = "static"
        if command.dynamicPartitionOverwrite():
            mode = "dynamic"
    elif mode != "append":
        mode = "create"
    write = {
        "node": kind,
        "table": table.identifier().unquotedString() if table is not None else None,
        "mode": mode,
        "static": static,
        "dimensions": [
            {"field": c.name(), "transform": "identity", "type": c.dataType().simpleString()}
            for c in columns
        ],
    }
    return write, command.outputPath().toString().rstrip("/")


def _insert_into_hive(kind, command):
    table = command.table()
    static, dynamic = {}, []
    for pair in items(command.partition().toSeq()):
        value = option(pair._2())
        if value is None:
            dynamic.append(pair._1())
        else:
            static[pair._1()] = value
    names = set(texts(table.partitionColumnNames()))
    mode = "append"
    if command.overwrite():
        mode = "dynamic" if dynamic else "static" if static else "whole"
    write = {
        "node": kind,
        "table": table.identifier().unquotedString(),
        "mode": mode,
        "static": static,
        "dimensions": [
            {"field": c.name(), "transform": "identity", "type": c.dataType().simpleString()}
            for c in items(table.partitionSchema())
            if c.name() in names
        ],
    }
    return write, table.location().toString().rstrip("/")
