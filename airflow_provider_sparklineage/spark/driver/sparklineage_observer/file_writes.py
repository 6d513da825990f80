"""Finds the partitions that a V1 write command wrote.

No object in the driver has the names of these partitions: the command's metrics only count files,
bytes and partitions. But the names of all files of one write job have the same UUID
(``part-00000-<uuid>…``). So the table's folders are listed, the newest first, until the files with
one new UUID have exactly the numbers of the command. Then the folders of these files are the
partitions that the command wrote (``exact``). If no UUID has these numbers, the folders of all new
files are given, without those of a UUID with more files than the command wrote (``listing``); if
there are no new files, no partition is known (``unknown``).
"""

import re
from itertools import takewhile, zip_longest

from sparklineage_observer import jvm, records
from sparklineage_observer.footers import Footers, ListedFile
from sparklineage_observer.relations import name_of

# The folders of a table are listed level by level, and a limited number of folders in each call,
# because a call cannot be stopped. If only the next call needs the answer of a call, Python passes
# the Java object on. If Python needs the answer itself, Java prints it as one text.


CHUNK = 400  # folders in one listing call
_SEPARATOR = "\x01"
_GLOB = re.compile(r"([\\{}\[\]*?,^])")


class Folders:
    """The folders of a table's partitions, below the folder ``base``.

    :param classes: the driver's :class:`.jvm.Classes`
    :param hadoop_conf: the Hadoop configuration of the SparkContext, a Java object
    :param base: the path of the folder above the partitions
    :param budget: the query's limits of time and number, a :class:`.records.Budget`
    """

    def __init__(self, classes, hadoop_conf, base, budget):
        self._classes = classes
        self._budget = budget
        self._base = base
        self._file_system = classes.path(base).getFileSystem(hadoop_conf)

    def files(self, patterns, first):
        """List the files below the base, beginning with the folders that were changed last.

        :param patterns: for each level of folders, the glob pattern of their names
        :param first: the largest number of folders in the first call to the file system
        :return: yields a ``FileStatus[]`` for each call, or one for each folder if folders are gone
        """
        for paths in self._folders(patterns, first):
            listed = self._listed(paths)
            self._budget.require(_count(listed), "files", "files")
            yield from listed

    def _folders(self, patterns, first):
        """Yield the folders of the last level, as one Path[] for each call that will list them.

        The arguments are those of :meth:`files`.
        """
        self._budget.check()
        if not patterns:
            yield self._paths([self._base])
            return
        matching = self._classes.pattern(patterns[-1])
        found, count = [], 0
        for paths in self._folders(patterns[:-1], CHUNK):
            listed = self._listed(paths, matching)
            # The JVM counts the entries, because printing them takes longer than the listing.
            count += _count(listed)
            self._budget.require(count, "directories", "folders")
            found += listed
        if len(found) == 1 and count <= first:
            yield self._classes.paths_of(found[0])
            return
        modified = {path: time for path, directory, _, time in self._statuses(found) if directory}
        newest = sorted(modified, key=lambda path: (-modified[path], path))
        start, size = 0, first
        while start < len(newest):
            self._budget.check()
            yield self._paths(newest[start : start + size])
            start, size = start + size, CHUNK

    def _listed(self, paths, *matching):
        """List the entries of some folders; leave out folders that are gone.

        :param paths: a Path[]
        :param matching: a filter of paths, if not all entries are wanted
        :return: a list of FileStatus[]: one for all folders or, if some are gone, one for each
        """
        try:
            return [self._file_system.listStatus(paths, *matching)]
        except Exception as error:
            if not _is_gone(error):
                raise
        listed = []
        for path in paths:  # one of the folders was deleted meanwhile
            self._budget.check()
            try:
                listed.append(self._file_system.listStatus(path, *matching))
            except Exception as error:
                if not _is_gone(error):
                    raise
        return listed

    def _statuses(self, listed):
        return (status for array in listed for status in jvm.statuses(self._classes, array))

    def _paths(self, paths):
        return self._classes.paths(self._classes.split(_SEPARATOR.join(paths), _SEPARATOR))


def escaped(name):
    """Give the glob pattern that matches exactly this name."""
    return _GLOB.sub(r"\\\1", name)


def _count(listed):
    return sum(map(len, listed))


def _is_gone(error):
    return "FileNotFoundException" in str(error)


_FILE = re.compile(r"part-\d+-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})")
_SLACK_MS = 60000  # the clock of a file system may differ from the driver's clock


class FileWrites:
    """Finds the files that write commands wrote, and remembers the UUIDs of these writes."""

    def __init__(self, classes, hadoop_conf):
        self._classes = classes
        self._conf = hadoop_conf
        self._own = {}
        self._given_up = set()
        self._paths = {}
        self._footers = Footers(classes, hadoop_conf)

    def observe(self, kind, command, started_ms, budget):
        """Describe a write command and the partitions that it wrote.

        :param kind: the class name of the command
        :param command: the Java object of the command
        :param started_ms: the time when the query began, in ms since the epoch
        :param budget: the query's limits of time and number, a :class:`.records.Budget`
        :return: a dict, an entry of the record's ``writes``; None for a command that does not write
            files itself
        """
        if kind == "InsertIntoHadoopFsRelationCommand":
            mode, static, dimensions = _insert_into_files(command, self._classes)
            table = name_of(jvm.option(command.catalogTable()))
            path = command.outputPath().toString().rstrip("/")
        elif kind == "InsertIntoHiveTable":
            hive = command.table()
            mode, static, dimensions = _insert_into_hive(command, hive)
            table, path = name_of(hive), hive.location().toString().rstrip("/")
        else:
            return None
        counts = ("numParts", "numFiles", "numOutputBytes", "numOutputRows")
        counted = jvm.metrics(command.metrics(), *counts)
        written = records.layout_of(path, dimensions, [])
        write = records.write_record(kind, "files", path, mode, [written], table=table, **counted)
        write["static"] = static
        if write["mode"] == "create" and not write.get("numFiles") and _is_skipped(command):
            write["skipped"] = True
            return write
        if write["table"] is None:
            self._paths[path] = True
        try:
            self._find(write, written, started_ms, budget)
        except records.OverBudgetError as error:
            self._given_up.add(self._place(write))
            if not written["partitions"]:
                write.update(how="unknown", cut=str(error))
        return write

    def gone(self, budget):
        """List the paths of the folders that the job wrote and that do not exist any more.

        Only folders that were written by a path are checked, and not those of catalog tables.

        :param budget: the limits of time and number, a :class:`.records.Budget`
        :raise OverBudgetError: if the time is up
        """
        gone = []
        for path in list(self._paths)[: budget.limits.written]:
            budget.check()
            folder = self._classes.path(path)
            if not folder.getFileSystem(self._conf).exists(folder):
                gone.append(path)
        return gone

    @staticmethod
    def _place(write):
        """Identify the folder of a write's files by a tuple: the write's path and static values.

        The static values are those of the leading partition columns.

        :param write: the description of the write, as :meth:`observe` gives it
        """
        columns = [d["field"] for d in write["layouts"][0]["dimensions"]]
        return (write["path"], *_leading(write["static"], columns))

    def _find(self, write, layout, started_ms, budget):
        columns = [d["field"] for d in layout["dimensions"]]
        if not columns:
            # The write has the full relation. To list it would only show whether an append found
            # the relation empty.
            layout["partitions"] = [[]]
            write["shared"] = [[]] if write["mode"] == "append" else []
            _count_only_partition(write, layout)
            return
        static = _leading(write["static"], columns)
        if write["mode"] == "static" and static and write.get("numOutputRows") == 0:
            self._empty(write, layout, static)
            return
        if write.get("numFiles") == 0:
            write["shared"] = []
            return
        if len(static) == len(columns) and None not in static:
            # The command alone names the partition; the listing shows only whether other writers
            # have files in it.
            layout["partitions"] = [[str(value) or None for value in static]]
            _count_only_partition(write, layout)
        if self._place(write) in self._given_up:
            message = "its folders were too many to list before"
            raise records.OverBudgetError(message)
        groups, others = self._groups(write, layout["base"], columns, started_ms, budget)
        own = self._own.setdefault(layout["base"], {})
        # A later write may have been found for an earlier one of equal size, if the files of the
        # earlier one were gone when they were looked for.
        fitting = [u for u, g in groups.items() if _fits(g, write)]
        new = [u for u, g in groups.items() if g.modified >= started_ms]
        matched = [u for u in fitting if u not in own] or [u for u in fitting if u in new]
        if len(matched) == 1 or len({frozenset(groups[u].parts) for u in matched}) == 1:
            write["how"] = "exact"
        else:
            # Either no group fits, and all new files count that can be of this write; or several
            # groups fit, because several writes of equal size ran at the same time, and the files
            # of all these groups count.
            matched = matched or [
                u for u in new if u not in own and _may_be_left_of(groups[u], write)
            ]
            if layout["partitions"] and not matched:
                return  # the partition has a location of its own, outside the base
            write["how"] = "listing" if matched else "unknown"
        parts = set()
        for identity in matched:
            parts |= groups[identity].parts
            if len(matched) == 1:
                own[identity] = True
        layout["partitions"] = records.sorted_partitions(parts)
        self._count(write, [groups[identity] for identity in matched], layout, budget)
        foreign = {p for u, ps in others.items() if u not in own and u not in matched for p in ps}
        write["shared"] = records.sorted_partitions(foreign & parts)

    def _count(self, write, groups, layout, budget):
        """Add the rows and bytes of each partition to the layout of a write, if they are certain.

        :param write: the description of the write, as :meth:`observe` gives it
        :param groups: the :class:`_Group` of the write's files, or several that may be of the write
        :param budget: the query's limits of time and number, a :class:`.records.Budget`
        """
        if write["how"] != "exact":
            return
        if len(layout["partitions"]) == 1:
            _count_only_partition(write, layout)
            return
        if len(groups) > 1:
            return
        [group] = groups
        figures = records.Figures()
        rows = self._footers.rows([file for file, _, _ in group.listed], budget)
        for (_, values, length), count in zip(group.listed, rows):
            figures.add(values, count, length)
        figures.describe(layout)

    @staticmethod
    def _empty(write, layout, static):
        """Describe the overwrite of a partition by no rows: what was in it is gone.

        :param write: the description of the write, which is changed
        :param layout: the layout of the write
        :param static: the values of the leading partition columns, which name the partition
        """
        values = [None if value is None else str(value) or None for value in static]
        dimensions = [dict(d) for d in layout["dimensions"][: len(values)]]
        write["removed"] = [records.layout_of(layout["base"], dimensions, [tuple(values)])]
        write.update(emptied=write["removed"], shared=[], how="exact")

    def _groups(self, write, base, columns, started_ms, budget):
        """List the files below a base, grouped by UUID, until the write's own group is found.

        That is a group of new files with the numbers of files, bytes and partitions that the
        write's metrics have.

        :param write: the description of the write, as :meth:`observe` gives it
        :param base: the path of the table's folder
        :param columns: the names of the partition columns
        :param started_ms: the time when the query began, in ms since the epoch; files are new if
            they were changed after it, or up to a minute before, because clocks differ
        :param budget: the query's limits of time and number, a :class:`.records.Budget`
        :return: two dicts with the UUIDs as keys: the :class:`_Group` of the new files; and the set
            of partitions, as tuples of values, of all listed files
        """
        own = self._own.get(base, {})
        groups = {}
        others = {}
        below, patterns = self._below(base, columns, _leading(write["static"], columns))
        # The folders of this write are among the newest, unless the file system has no times.
        first = min(CHUNK, max(16, 4 * write.get("numParts", 0)))
        for array in Folders(self._classes, self._conf, below, budget).files(patterns, first):
            listed = enumerate(jvm.statuses(self._classes, array))
            for position, (path, directory, length, modified) in listed:
                folder, _, name = path.rpartition("/")
                if directory or name.startswith(("_", ".")):
                    continue
                values = jvm.split_directory(folder, columns)
                if values is None:
                    continue
                match = _FILE.match(name)
                identity = match.group(1) if match else name
                others.setdefault(identity, set()).add(values[1])
                if modified >= started_ms - _SLACK_MS:
                    file = ListedFile(path, array, position)
                    groups.setdefault(identity, _Group()).add(file, values[1], length, modified)
            if any(u not in own and _fits(g, write) for u, g in groups.items()):
                break
        return groups, others

    def _below(self, base, columns, static):
        """Give the folder above all partitions of a write, and the patterns of the levels below.

        :param base: the path of the table's folder
        :param columns: the names of the partition columns
        :param static: the static values of the write for its leading partition columns
        :return: the folder's path, and a list with the glob pattern of each level's names, such as
            ``("/table/dt=2024-05-06", ["region=*"])``
        """
        names = [
            None if value is None else self._classes.partition_folder(column, value)
            for column, value in zip_longest(columns, static)
        ]
        known = list(takewhile(bool, names))
        patterns = [
            escaped(name) if name else f"{escaped(column)}=*"
            for column, name in zip(columns[len(known) :], names[len(known) :])
        ]
        return "/".join([base, *known]), patterns


class _Group:
    """The files of one write job, which have the same UUID in their names.

    files: their number; bytes: their total length; modified: the time in ms of the last change;
    parts: their partitions, a set of tuples of values; listed: (:class:`.footers.ListedFile`,
    partition, length) for each file.
    """

    def __init__(self):
        self.files = 0
        self.bytes = 0
        self.modified = 0
        self.parts = set()
        self.listed = []

    def add(self, file, values, length, modified):
        self.files += 1
        self.bytes += length
        self.modified = max(self.modified, modified)
        self.parts.add(values)
        self.listed.append((file, values, length))


def _count_only_partition(write, layout):
    """Add the rows and bytes of the only partition of a write, which Spark has counted."""
    rows, size = write.get("numOutputRows"), write.get("numOutputBytes")
    if size is not None:
        layout["bytes"] = [size]
        if rows is not None:
            layout["rows"] = [rows]


def is_ignore(command):
    """Whether a command writes nothing if its target exists already.

    :param command: the Java object of the command, which has Spark's ``SaveMode``
    """
    return command.mode().toString() == "Ignore"


def _is_skipped(command):
    """Whether a command wrote nothing because its target existed already.

    Then its metric ``jobCommitTime`` is 0.

    :param command: the Java object of the command
    """
    took = jvm.option(command.metrics().get("jobCommitTime"))
    return is_ignore(command) and took is not None and took.isZero()


def _fits(group, write):
    return (
        group.files == write.get("numFiles")
        and group.bytes == write.get("numOutputBytes")
        # Hive does not count the one partition of a write whose values are all static.
        and len(group.parts) == (write.get("numParts") or 1)
    )


def _may_be_left_of(group, write):
    """Whether the files can be those of a write, of which others were deleted or replaced since.

    Then they are not more than Spark counted for the write.
    """
    parts = len(group.parts)
    return (
        group.files <= write.get("numFiles", group.files)
        and group.bytes <= write.get("numOutputBytes", group.bytes)
        and parts <= max(write.get("numParts", parts), 1)
    )


def _leading(static, columns):
    """Give the static values of a write for its leading partition columns; None stands for null.

    :param static: the values of the static partition columns, by column
    :param columns: the names of all partition columns, in their order
    :return: a tuple, which ends before the first column without a static value
    """
    values = []
    for column in columns:
        if column not in static:
            break
        values.append(static[column])
    return tuple(values)


def _insert_into_files(command, classes):
    """Read an InsertIntoHadoopFsRelationCommand.

    :param command: the Java object of the command
    :param classes: the :class:`~.jvm.Classes` of the driver
    :return: a tuple: the mode of the write, such as ``append``; a dict of the values of its static
        partition columns; and the table's partition columns, as :func:`.records.dimension_of`
        describes them
    """
    static = {pair._1(): pair._2() for pair in jvm.items(command.staticPartitions().toSeq())}
    mode = command.mode().toString().lower()
    if mode == "overwrite":
        mode = "static" if static else "whole"
        if command.dynamicPartitionOverwrite():
            mode = "dynamic"
    elif mode != "append":
        mode = "create"
    return mode, static, jvm.attributes(classes, command.partitionColumns())


def _insert_into_hive(command, table):
    """Read an InsertIntoHiveTable.

    :param command: the Java object of the command
    :param table: Spark's CatalogTable of the target
    :return: a tuple like that of :func:`_insert_into_files`
    """
    fixed = {pair._1(): jvm.option(pair._2()) for pair in jvm.items(command.partition().toSeq())}
    static = {column: value for column, value in fixed.items() if value is not None}
    mode = "append"
    if command.overwrite():
        mode = "dynamic" if len(static) < len(fixed) else "static" if static else "whole"
    names = set(jvm.texts(table.partitionColumnNames()))
    columns = [c for c in jvm.items(table.partitionSchema()) if c.name() in names]
    dimensions = [records.dimension_of(c.name(), c.dataType().simpleString()) for c in columns]
    return mode, static, dimensions


_DROP, _RENAME, _LOAD = (
    "AlterTableDropPartitionCommand",
    "AlterTableRenamePartitionCommand",
    "LoadDataCommand",
)
ON_PARTITIONS = (_DROP, _RENAME, _LOAD, "TruncateTableCommand")
"""The commands that remove, move or fill partitions of a table of Spark's own catalog, or empty the
table, without a plan that writes files."""


def of_partitions(kind, command, session, classes):
    """Describe a command that changes the data of partitions that it names.

    :param kind: the class name of the command, one of :data:`ON_PARTITIONS`
    :param command: the Java object of the command
    :param session: the Java SparkSession
    :param classes: the driver's :class:`.jvm.Classes`
    :return: a dict, an entry of the record's ``writes``. TRUNCATE of a partitioned table as a whole
        names no partition, so the partitions in it are unknown
    """
    identifier = command.table() if kind == _LOAD else command.tableName()
    table = session.sessionState().catalog().getTableMetadata(identifier)
    path = table.location().toString().rstrip("/")
    columns = jvm.texts(table.partitionColumnNames())
    write = records.write_record(kind, "files", path, "rows", table=name_of(table))

    def layouts(specs):
        """Give a layout for each set of columns, since a spec may name the leading columns only."""
        found = {}
        for spec in specs:
            values = _as_the_table_has_it(spec, table, session, classes)
            named = tuple(column for column in columns if column in values)
            found.setdefault(named, set()).add(tuple(values[c] or None for c in named))
        return [
            records.layout_of(path, list(map(records.dimension_of, named)), values)
            for named, values in sorted(found.items())
        ]

    if kind == _RENAME:
        # The data was there before, under another value.
        write.update(layouts=layouts([command.newPartition()]), operation="rename_partition")
        gone = layouts([command.oldPartition()])
    elif kind == _LOAD:
        spec = jvm.option(command.partition())
        write["layouts"] = [records.layout_of(path, [], [()])] if spec is None else layouts([spec])
        replaced = "whole" if spec is None else "static"
        return {**write, "mode": replaced if command.isOverwrite() else "append"}
    else:
        spec = None if kind == _DROP else jvm.option(command.partitionSpec())
        specs = jvm.items(command.specs()) if kind == _DROP else [] if spec is None else [spec]
        write["layouts"] = [records.layout_of(path, [], [])]
        if columns and not specs:
            return {**write, "how": "unknown", "cut": "TRUNCATE TABLE names no partition"}
        gone = layouts(specs) if specs else [records.layout_of(path, [], [()])]
    return {**write, "removed": gone, "emptied": gone}


def _as_the_table_has_it(spec, table, session, classes):
    """Give the values of a command's partition as a dict by column, as the table has them.

    The command has the column as its text has it, such as ``DT``, where the table has ``dt``.

    :param spec: the columns and values of the command, a Scala Map
    :param table: Spark's CatalogTable
    :raise Exception: if the command names a column that partitions nothing
    """
    resolver = session.sessionState().conf().resolver()
    spec = classes.normalized_partition(spec, table.partitionSchema(), "table", resolver)
    return {pair._1(): pair._2() for pair in jvm.items(spec.toSeq())}
