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

    def __init__(self, jvm, hadoop_conf):
        self._jvm = jvm
        self._conf = hadoop_conf
        self._own = {}
        self._given_up = set()

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
        try:
            self._find(write, layout, started_ms, budget)
        except OverBudgetError as error:
            write.update(how="unknown", cut=str(error))
            self._given_up.add(path)
        return write

    def _find(self, write, layout, started_ms, budget):
        columns = [d["field"] for d in layout["dimensions"]]
        if not columns:
            # One whole relation; whether an append found it empty is not worth a listing.
            skipped = write["mode"] == "create" and not write.get("numFiles")  # mode "ignore"
            layout["partitions"] = [] if skipped else [[]]
            write["shared"] = [[]] if write["mode"] == "append" else []
            return
        if write.get("numFiles") == 0:
            write["shared"] = []
            return
        static = [str(write["static"][c]) for c in columns if c in write["static"]]
        if len(static) == len(columns) and None not in write["static"].values():
            layout["partitions"] = [static]
        if layout["base"] in self._given_up:
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
        folders = self._folders(base, columns, write["static"], budget)
        own = self._own.get(base, {})
        groups = {}
        others = {}
        for start in range(0, len(folders), _CHUNK):
            budget.check()
            chunk = [folder for _, folder in folders[start : start + _CHUNK]]
            pattern = "{}/{{{}}}/*".format(_escaped(base), ",".join(_escaped(f) for f in chunk))
            for path, directory, length, modified in self._glob(pattern):
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
        """Find the partition folders below a base, newest first: (-modified, relative path)."""
        fixed = 0
        prefix = []
        while fixed < len(columns) and static.get(columns[fixed]) is not None:
            prefix.append(None)
            fixed += 1
        pattern = _escaped(base)
        for position, column in enumerate(columns):
            wanted = static.get(column) if position < fixed else None
            known = self._glob(f"{pattern}/{_escaped(column)}=*")
            names = [(-m, p.rsplit("/", 1)[1], p) for p, d, _, m in known if d]
            budget.require(len(names), "directories", "folders")
            budget.check()
            if wanted is not None:
                names = [n for n in names if split_directory(n[2], [column])[1] == (wanted,)]
                if not names:
                    return []
                pattern = f"{pattern}/{_escaped(names[0][1])}"
            else:
                pattern = f"{pattern}/{_escaped(column)}=*"
        depth = len(columns)
        return sorted((m, "/".join(p.split("/")[-depth:])) for m, _, p in names)

    def _glob(self, pattern):
        path = self._jvm.org.apache.hadoop.fs.Path(pattern)
        return statuses(self._jvm, path.getFileSystem(self._conf).globStatus(path))


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


def _fits(group, write):
    return (
        group.files == write.get("numFiles")
        and group.bytes == write.get("numOutputBytes")
        and len(group.parts) == write.get("numParts")
    )


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
