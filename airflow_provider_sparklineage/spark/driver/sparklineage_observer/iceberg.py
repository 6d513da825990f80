"""Finds the partitions of Iceberg tables in a scan's files, and in this application's snapshots."""

import datetime
import re
from contextlib import suppress
from itertools import dropwhile, takewhile
from urllib.parse import quote, unquote_plus

from sparklineage_observer.jvm import class_name, command_at, each, first_answer, items, metrics
from sparklineage_observer.records import (
    Figures,
    OverBudgetError,
    dimension_of,
    layout_of,
    write_record,
)

_STATIC = re.compile(r"filters=(.*?), (?:groupedBy|runtimeFilters)=", re.DOTALL)
_RUNTIME = re.compile(r"runtimeFilters=(.*?)(?:, \w+=|\)$)", re.DOTALL)
_OF_METADATA = re.compile(
    "(History|Snapshots|Files|Manifests|Partitions|Entries|Refs|Deletes)Table|Metadata"
)
_BRANCH = re.compile(r"\(branch=(.+?)\)")
# Options by which a read names a snapshot or commits of a table. It may leave out partitions.
_CHOOSING = re.compile(r"\b(snapshot-id|as-of-timestamp|tag|(start|end)-(snapshot-id|timestamp))\b")
CHANGELOG = "SparkChangelogScan"
"""The class of a scan of a table's changed rows, by its metadata table ``changes``."""
OF_CHANGELOG = ("_change_type", "_change_ordinal", "_commit_snapshot_id")
_REWRITE = "SparkStagedScan"  # of files that a procedure rewrites
WITHOUT_DATA = ("DeleteFromTableExec", "TruncateTableExec")
"""The nodes of a DELETE of whole files and a TRUNCATE: Iceberg opens none of the files."""
_FILE = re.compile(
    r"spec_id=(\d+), partition=(PartitionData\{.*?\}), record_count=(\d+), "
    r"file_size_in_bytes=(\d+),"
)


def table_of(spark_table):
    """Give the Iceberg table of a DataSource V2 table; None if the table has another format.

    :param spark_table: the Java object of Spark's table; None gives None
    """
    if spark_table is None:
        return None
    if class_name(spark_table) == "RowLevelOperationTable":
        spark_table = spark_table.table()
    return spark_table.table() if "iceberg" in spark_table.getClass().getName() else None


def at_branch(name, branch):
    """Give the name or path of a branch of a table; for no branch or the main one, the table's.

    A branch has data of its own, so it is a dataset of its own. Its name is that of Iceberg's SQL.

    :param name: the name or the path of the table; a missing one is "" or None, and stays so
    :param branch: the name of the branch; None or ``main`` for the table's own state
    """
    if not name or branch in (None, "main"):
        return name
    return f"{name}.branch_{quote(branch, safe='')}"


def scan(read, node, budget):
    """Add the table, snapshot, filters and partitions of an Iceberg scan to the scan's description.

    :param read: the description, an entry of a record's ``reads``, which is changed
    :param node: the ``BatchScanExec``
    :param budget: the query's time limit, a :class:`.records.Budget`
    :return: ``read``. It has ``not_data`` if the scan is of a metadata table, and ``maintenance``,
        the name of a procedure, if it is of files that the procedure rewrites
    """
    spark_scan = node.scan()
    read.update(table=node.table().name(), scan=class_name(spark_scan))
    if read["scan"] == CHANGELOG:
        return _changes(read, node, spark_scan, budget)
    description = spark_scan.description()
    read.update(metrics(node.metrics(), "resultDataFiles", "numSplits"))
    table = table_of(node.table())
    if table is None:
        return None
    base = table.location().rstrip("/")
    if read["scan"] == _REWRITE:
        return {**read, "roots": [base], "maintenance": _rewriting(table)}
    if _OF_METADATA.search(table.getClass().getName()):
        return {**read, "roots": [base], "not_data": True}
    static, runtime = _STATIC.search(description), _RUNTIME.search(spark_scan.toString())
    # Some versions of Iceberg describe scans in another way; then the full text is recorded.
    filters = [static.group(1) if static else description, runtime.group(1) if runtime else ""]
    texts = (text for text in filters if text and text != "[]")
    read["pushed_filters"] = [_with_times(text, table) for text in texts]
    found = _BRANCH.search(description)
    branch = found and found.group(1) != "null" and found.group(1)
    if branch and branch != "main":
        read.update(table=at_branch(read["table"], branch), branch=branch)
        base = at_branch(base, branch)
    read.update(format="iceberg", roots=[base])
    if _is_chosen(node):
        read["chosen"] = True
    elif not branch and (snapshot := table.currentSnapshot()) is not None:
        read["snapshot"] = str(snapshot.snapshotId())  # too long for a JSON number
    collected = _Collected(table)
    for split in _splits(node, spark_scan):
        for task in each(split.taskGroup().tasks()):
            budget.check()
            collected.add(task.file())
    read["layouts"] = collected.layouts(base)
    return read


def _with_times(text, table):
    """Give a text of Iceberg's filters with dates and times in it.

    Iceberg prints a date as days, and a time as microseconds since 1970, such as ``on = 19880``.

    :param text: the filters
    :param table: Iceberg's table, a Java object
    """

    def read(match):
        column, operator, numbers = match.groups()
        field = table.schema().findField(column)
        epoch = None if field is None else _EPOCHS.get(field.type().toString())
        if epoch is None:
            return match.group()
        units = map(int, numbers.split(", "))
        days = type(epoch) is datetime.date
        try:
            steps = (datetime.timedelta(**{"days" if days else "microseconds": n}) for n in units)
            times = ", ".join(f"'{epoch + step}'" for step in steps)
        except OverflowError:  # beyond the years of Python
            return match.group()
        return f"{column}{operator}{times}"

    return _COMPARED.sub(read, text)


_COMPARED = re.compile(
    r"([\w.]+)( (?:=|!=|<|<=|>|>=) | (?:NOT )?IN \()(-?\d+(?:, -?\d+)*)(?![\d.])"
)
_EPOCHS = {
    "date": datetime.date(1970, 1, 1),
    "timestamp": datetime.datetime(1970, 1, 1),  # noqa: DTZ001, it has no time zone
    "timestamptz": datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc),
}


def _rewriting(table):
    is_of_deletes = "Deletes" in class_name(table)
    return "rewrite_position_delete_files" if is_of_deletes else "rewrite_data_files"


def _is_chosen(node):
    """Whether a scan reads a snapshot or commits that the query names, or a tag.

    :param node: the ``BatchScanExec``
    """
    if first_answer(node, lambda n: n.table().snapshotId()) is not None:
        return True
    # Only the logical relation has the options of the read.
    relation = first_answer(node, lambda n: n.logicalLink().get().collectLeaves().apply(0))
    options = first_answer(relation, lambda r: r.relation().options().keySet().toString())
    return _CHOOSING.search(options or "") is not None


def _changes(read, node, spark_scan, budget):
    """Add table and partitions to the description of a scan of a table's changed rows.

    :param read: the description, which is changed and returned
    :param node: the ``BatchScanExec``
    :param spark_scan: the scan of the changes, a Java object
    :param budget: the query's time limit, a :class:`.records.Budget`
    """
    read.update(table=read["table"].removesuffix(".changes"), format="iceberg", chosen=True)
    collected = None
    for split in _splits(node, spark_scan):
        for task in each(split.taskGroup().tasks()):
            budget.check()
            if collected is None:
                table = split.table()  # the node's own table does not give the table of the data
                collected = _Collected(table)
            collected.add(task.file())
    if collected is None:
        return {**read, "layouts": []}
    base = table.location().rstrip("/")
    return {**read, "roots": [base], "layouts": collected.layouts(base)}


def unread(read, node):
    """Add the table of an Iceberg scan that was never run to the scan's description.

    :param read: the description, an entry of a record's ``reads``, which is changed
    :param node: the ``BatchScanExec``
    :return: ``read``; None for a scan of a metadata table, a branch or changed rows, or of a table
        of another format
    """
    table, branch = table_of(node.table()), _BRANCH.search(node.scan().description())
    is_of_table = branch is None or branch.group(1) in ("null", "main")
    if not is_of_table or class_name(node.scan()) in (CHANGELOG, _REWRITE):
        return None
    if table is None or _OF_METADATA.search(table.getClass().getName()):
        return None
    base = table.location().rstrip("/")
    read.update(table=node.table().name(), format="iceberg", roots=[base])
    read["layouts"] = _Collected(table).layouts(base)
    return read


def without_data(kind, table):
    """Describe the read of a command that reads only a table's metadata.

    :param kind: the class name of the command's node
    :param table: Iceberg's table, a Java object
    :return: a dict, an entry of a record's ``reads``
    """
    return {
        "node": kind,
        "table": table.name(),
        "roots": [table.location().rstrip("/")],
        "not_data": True,
    }


def _splits(node, spark_scan):
    """List the splits that were read after dynamic pruning; ``inputPartitions`` has all splits.

    :param node: the ``BatchScanExec``
    :param spark_scan: the Iceberg scan of the node, a Java object
    """
    if node.runtimeFilters().isEmpty():
        return items(node.inputPartitions())
    try:
        return [s for group in items(node.filteredPartitions()) for s in items(group.toList())]
    except Exception:  # private in Spark 3, where the scan itself has the splits that were read
        return list(spark_scan.toBatch().planInputPartitions())


class _Collected:
    """A collection of the distinct partitions of files, grouped by partition spec."""

    def __init__(self, table):
        self._specs = table.specs()
        self._found = {}
        self._known = {}
        self._structs = {}
        self._figures = {}

    def structs(self):
        """Yield (spec id, partition as Iceberg's object) for each partition."""
        for spec_id, found in self._found.items():
            yield from ((spec_id, self._structs[spec_id, values]) for values in found)

    def add(self, file):
        """Add the partition of a file, and give it: its spec's id, and its values."""
        spec_id = file.specId()
        partition = file.partition()
        written = partition.toString()
        nulls = ()
        if "null" in written:  # a null and the text "null" print alike
            nulls = tuple(partition.get(i) is None for i in range(partition.size()))
        key = (spec_id, written, nulls)
        if key not in self._known:
            values = self._known[key] = self._values(spec_id, partition)
            self._found.setdefault(spec_id, set()).add(values)
            self._structs[spec_id, values] = partition
        return spec_id, self._known[key]

    def _count(self, partition, rows, size):
        spec_id, values = partition
        self._figures.setdefault(spec_id, Figures()).add(values, int(rows), int(size))

    def add_all(self, files, classes, budget, *, counted=False):
        """Add the partitions of many files with few calls.

        One call gives the texts of all files; then only one file of each partition is read.

        :param files: a java.lang.Iterable of Iceberg's files
        :param classes: the driver's :class:`.jvm.Classes`
        :param budget: the query's limits of time and number, a :class:`.records.Budget`
        :param counted: whether to count the rows and bytes of each partition, too
        """
        listed = classes.array_list()
        for file in each(files):
            budget.check()
            listed.add(file)
        budget.require(listed.size(), "files", "files")
        files = _FILE.findall(listed.toString())
        if len(files) != listed.size():
            for file in each(listed):
                budget.check()
                partition = self.add(file)
                if counted:
                    self._count(partition, file.recordCount(), file.fileSizeInBytes())
            return
        found = {}
        for position, (*key, rows, size) in enumerate(files):
            # A null and the text "null" print alike, so files with "null" are read one by one.
            key = (*key, position) if "null" in key[1] else tuple(key)
            if key not in found:
                budget.check()
                found[key] = self.add(listed.get(position))
            if counted:
                self._count(found[key], rows, size)

    def _values(self, spec_id, partition):
        path = self._specs.get(spec_id).partitionToPath(partition)
        if not path:
            return ()
        values = [unquote_plus(s.partition("=")[2]) for s in path.split("/")]
        # The path has "null" both for a null and for the text "null".
        for position, value in enumerate(values):
            if value == "null" and partition.get(position) is None:
                values[position] = None
        if None in values:
            fields = each(self._specs.get(spec_id).fields())
            values = [value for value, field in zip(values, fields) if not _is_dropped(field)]
        return tuple(values)

    def is_empty(self):
        """Whether there is no partition."""
        return not self._found

    def without(self, other):
        """Give a collection of the partitions that are in this one and not in another."""
        made = _Collected.__new__(_Collected)
        made._specs, made._structs, made._known = self._specs, self._structs, {}
        left = {spec_id: v - other._found.get(spec_id, set()) for spec_id, v in self._found.items()}
        made._found = {spec_id: values for spec_id, values in left.items() if values}
        return made

    def counted_layouts(self, base):
        """Give the layouts with the rows and bytes of their partitions.

        :param base: the path of the table
        """
        layouts = self.layouts(base)
        for spec_id, layout in zip(sorted(self._found) or [None], layouts):
            self._figures.get(spec_id, Figures()).describe(layout)
        return layouts

    def layouts(self, base):
        """Give the partitions of the added files, as one layout for each partition spec.

        :param base: the path of the table
        :return: a list of layouts (:func:`.records.layout_of`); without files, one layout without
            partitions, of the table's newest spec
        """
        found = self._found or {max(self._specs.keySet()): set()}
        return [
            layout_of(base, _dimensions(self._specs.get(spec_id)), found[spec_id])
            for spec_id in sorted(found)
        ]


def _dimensions(spec):
    schema = spec.schema()
    found = []
    for field in each(spec.fields()):
        if _is_dropped(field):
            continue
        transform = field.transform()
        result = transform.getResultType(schema.findField(field.sourceId()).type())
        dimension = dimension_of(schema.findColumnName(field.sourceId()), result.toString())
        found.append({**dimension, "transform": transform.toString(), "name": field.name()})
    return found


def _is_dropped(field):
    """Whether a field of a partition spec was dropped from it; it is null in each partition.

    Tables of the first version of the format keep such fields.

    :param field: Iceberg's PartitionField
    """
    return field.transform().toString() == "void"


class Snapshots:
    """The snapshots that this application made in the tables it writes; each is reported once."""

    def __init__(self):
        self._tables = {}
        self._reported = {}
        self._newest = {}
        self._branches = {}

    def accessed(self, table, branch=lambda: None):
        """Remember an Iceberg table that the application writes.

        :param table: Iceberg's table, a Java object
        :param branch: a function that gives the branch that is written, if that is known
        """
        base = table.location().rstrip("/")
        self._tables[base] = table
        self._branches[base] = branch

    def fresh(self, application_id, classes, budget):
        """List the snapshots that the application made since the last call, except compactions.

        :param application_id: Spark's id of the application
        :param classes: the driver's :class:`.jvm.Classes`
        :param budget: the limits of time and number, a :class:`.records.Budget`
        :return: a list of dicts, which are entries of a record's ``writes``
        """
        writes = []
        for base in sorted(self._tables):
            table = self._tables[base]
            table.refresh()
            reported = self._reported.setdefault(base, set())
            states = States(table)
            for identity, snapshot in self._unseen(base, table):
                if identity in reported:
                    continue
                reported.add(identity)
                summary = snapshot.summary()
                # Spark's writes have the first key, all commits of Spark's catalogs the second.
                if application_id not in (summary.get("spark.app.id"), summary.get("app-id")):
                    continue
                if snapshot.operation() == "replace":  # a compaction: the same data in other files
                    continue
                branch = _branch_of(table, states, snapshot, self._branches[base])
                writes.append(_write(base, table, states, snapshot, branch, classes, budget))
        return writes

    def _unseen(self, base, table):
        """List (id, snapshot) of the snapshots that a table has got since the last call.

        Iceberg appends to its list, so only the end of it is read: a table may have thousands.

        :param base: the path of the table
        :param table: Iceberg's table, a Java object
        """
        listed = table.snapshots()
        unseen = []
        for position in reversed(range(listed.size())):
            snapshot = listed.get(position)
            identity = snapshot.snapshotId()
            if identity == self._newest.get(base):
                break
            unseen.append((identity, snapshot))
        if unseen:
            self._newest[base] = unseen[0][0]
        return unseen[::-1]

    def moved(self, table, old, new, branch, classes, budget):
        """Describe a move of a table, or of a branch, to another snapshot: a write of what changed.

        :param table: Iceberg's table, a Java object
        :param old: the id of the snapshot before; None if the table had none
        :param new: the id of the snapshot after
        :param branch: the name of the branch; ``main`` for the table itself
        :param classes: the driver's :class:`.jvm.Classes`
        :param budget: the limits of time and number, a :class:`.records.Budget`
        :return: a dict, an entry of a record's ``writes``; None if there was no move
        """
        base = table.location().rstrip("/")
        back, forth = _between(table, old, new, budget)
        self._reported.setdefault(base, set()).update(forth)
        if not back and not forth:
            return None
        write = _write_record(base, table, "rows", branch)
        base = write["path"]
        try:
            io = table.io()
            added, removed = _Collected(table), _Collected(table)
            moves = [(i, added, removed) for i in forth] + [(i, removed, added) for i in back]
            for identity, gone, come in moves:
                snapshot = table.snapshot(identity)
                if snapshot.operation() == "replace":
                    continue
                gone.add_all(snapshot.addedDataFiles(io), classes, budget)
                come.add_all(snapshot.removedDataFiles(io), classes, budget)
                added.add_all(snapshot.addedDeleteFiles(io), classes, budget)
            emptied = _emptied(table, table.snapshot(new), added, removed, classes, budget)
            write["layouts"], write["removed"] = added.layouts(base), removed.layouts(base)
            write["emptied"] = emptied.layouts(base)
        except OverBudgetError as error:
            write.update(how="unknown", cut=str(error))
        return write


_MAX_SNAPSHOTS = 1000  # between two states of a table


def _between(table, old, new, budget):
    """Give the ids of the snapshots that a move undid, and of those that it did, oldest last.

    :param table: Iceberg's table, a Java object
    :param old: the id of the snapshot before the move; None if there was none
    :param new: the id of the snapshot after it
    :param budget: the time limit, a :class:`.records.Budget`
    """
    chains = []
    for identity in (old, new):
        chain = []
        while identity is not None and len(chain) < _MAX_SNAPSHOTS:
            budget.check()
            snapshot = table.snapshot(identity)
            if snapshot is None:  # it has expired
                break
            chain.append(identity)
            identity = snapshot.parentId()
        chains.append(chain)
    before, after = chains
    both = {*before}.intersection(after)
    return [i for i in before if i not in both], [i for i in after if i not in both]


class States:
    """The states that a table has had, by its history, the newest first.

    A history has an entry for each commit, ever. A reader that stops early reads only the end.

    :param table: Iceberg's table, a Java object
    """

    def __init__(self, table):
        self._history = table.history()
        self._unread = self._history.size()
        self._read = []

    def __iter__(self):
        """Yield (time in ms, id of the snapshot)."""
        yield from self._read
        while self._unread:
            self._unread -= 1
            entry = self._history.get(self._unread)
            self._read.append((entry.timestampMillis(), entry.snapshotId()))
            yield self._read[-1]


def _branch_of(table, states, snapshot, hint):
    """Name the branch to which a snapshot was written; None stands for the table's own state.

    The table's history has each snapshot that became its state, and when. A snapshot of a branch
    that was published later is there with a later time.

    :param table: Iceberg's table, a Java object
    :param states: the :class:`States` of the table
    :param snapshot: the snapshot, a Java object
    :param hint: a function that gives the branch that the application wrote, if it is known
    """
    identity, time = snapshot.snapshotId(), snapshot.timestampMillis()
    since = takewhile(lambda state: state[0] >= time, states)
    times = [at for at, of_state in since if of_state == identity]
    if time in times:
        return None
    if not times and _is_in(table, table.currentSnapshot(), snapshot):
        return None  # a step of a transaction, which the history leaves out
    if (known := hint()) is not None:
        return known
    for entry in each(table.refs().entrySet()):
        head = table.snapshot(entry.getValue().snapshotId())
        is_other = entry.getKey() != "main" and entry.getValue().isBranch()
        if is_other and _is_in(table, head, snapshot):
            return entry.getKey()
    return _STAGED if snapshot.summary().get("wap.id") else None


_STAGED = "staged"
"""In place of a branch: snapshots that were written to be published later, and are in no branch."""


def _is_in(table, head, snapshot):
    identity, number = snapshot.snapshotId(), snapshot.sequenceNumber()
    for _ in range(_MAX_SNAPSHOTS):
        if head is None or head.snapshotId() == identity:
            return head is not None
        if head.sequenceNumber() < number:  # all are 0 in tables of the format's version 1
            return False
        parent = head.parentId()
        head = None if parent is None else table.snapshot(parent)
    return False


def _write_record(base, table, mode, branch):
    write = write_record("IcebergSnapshot", "iceberg", at_branch(base, branch), mode)
    write["table"] = at_branch(table.name(), branch)
    if write["path"] != base:
        write["branch"] = branch
    return write


def _write(base, table, states, snapshot, branch, classes, budget):
    mode = "append" if snapshot.operation() == "append" else "rows"
    if mode == "rows" and snapshot.summary().get("replace-partitions") == "true":
        mode = "dynamic"
    mode = "create" if snapshot.parentId() is None else mode
    write = _write_record(base, table, mode, branch)
    write.update(snapshot=str(snapshot.snapshotId()), time=snapshot.timestampMillis())
    try:
        io = table.io()
        added, removed = _Collected(table), _Collected(table)
        added.add_all(snapshot.addedDataFiles(io), classes, budget, counted=True)
        added.add_all(snapshot.addedDeleteFiles(io), classes, budget)
        removed.add_all(snapshot.removedDataFiles(io), classes, budget)
        with suppress(Exception):  # too many files, or another version of Iceberg
            _add_replaced(removed, table, states, snapshot, classes, budget)
        write["layouts"] = added.counted_layouts(write["path"])
        write["removed"] = removed.layouts(write["path"])
        write["emptied"] = []  # what is not decided below counts as written
        with suppress(Exception):  # as above
            if _files(snapshot, "total") > _files(snapshot, "added"):
                gone = _emptied(table, snapshot, added, removed, classes, budget)
            else:  # the snapshot has no other files than those that it added
                gone = removed.without(added)
            write["emptied"] = [] if gone.is_empty() else gone.layouts(write["path"])
    except OverBudgetError as error:
        write.update(how="unknown", cut=str(error))
    return write


def _add_replaced(removed, table, states, snapshot, classes, budget):
    """Add the partitions that a table had before it was created anew, by CREATE OR REPLACE.

    Such a snapshot has no parent, and does not name the files that it replaced.

    :param removed: a :class:`_Collected`, to which the partitions are added
    :param states: the :class:`States` of the table
    :param snapshot: the snapshot, a Java object; the other arguments are those of :func:`_emptied`
    """
    if snapshot.parentId() is not None:
        return
    own = (snapshot.timestampMillis(), snapshot.snapshotId())
    from_own = dropwhile(lambda state: state != own, states)
    next(from_own, None)
    _, before = next(from_own, (None, None))
    replaced = None if before is None else table.snapshot(before)
    if replaced is not None:
        budget.require(_files(replaced, "total"), "files", "files")
        for manifest in each(replaced.dataManifests(table.io())):
            files = classes.manifest(manifest, table.io(), table.specs())
            _add_files(removed, files, classes, budget)


def _add_files(collected, files, classes, budget):
    try:
        collected.add_all(files, classes, budget)
    finally:
        files.close()


def _emptied(table, snapshot, added, removed, classes, budget):
    """Give the partitions from which files were removed and that have none left in a snapshot.

    Iceberg itself looks into the manifests for files of these partitions.

    :param table: Iceberg's table, a Java object
    :param snapshot: the snapshot, a Java object
    :param added: partitions to which files were added, a :class:`_Collected`
    :param removed: partitions from which files were removed, a :class:`_Collected`
    :param classes: the driver's :class:`.jvm.Classes`
    :param budget: the limits of time and number, a :class:`.records.Budget`
    :return: a :class:`_Collected`
    """
    gone = removed.without(added)
    if gone.is_empty():
        return gone
    budget.require(_files(snapshot, "total"), "files", "files")
    wanted = classes.partition_set(table.specs())
    for spec_id, partition in gone.structs():
        # For py4j it is a Python set, whose ``add`` takes one value.
        wanted.add(classes.pair(spec_id, partition))
    left = _Collected(table)
    for manifest in each(snapshot.dataManifests(table.io())):
        budget.check()
        files = classes.manifest(manifest, table.io(), table.specs())
        _add_files(left, files.filterPartitions(wanted), classes, budget)
    return gone.without(left)


def _files(snapshot, which):
    """Give the number of data files of a snapshot: those in ``total``, or those ``added``."""
    return int(snapshot.summary().get(f"{which}-data-files") or 0)


def written_table(node, execution, position=None):
    """Give the Iceberg table that a V2 write node writes; None if the table has another format.

    :param node: the node of the physical plan
    :param execution: Spark's QueryExecution, whose logical plan names the table as well
    :param position: the place of the command among those of a multi-insert; else None
    """

    def of_plan(execution):
        return table_of(command_at(position, execution.optimizedPlan()).table().table())

    of_node = first_answer(
        node,
        lambda n: table_of(n.table()),
        lambda n: table_of(n.write().table()),
        lambda n: table_of(n.relation().table()),
    )
    return of_node or first_answer(execution, of_plan)


def written_branch(execution, position=None):
    """Give the name of the branch that a write command of Iceberg writes; None if none is named.

    :param execution: Spark's QueryExecution of the command
    :param position: the place of the command among those of a multi-insert; else None
    """

    def of_plan(execution):
        return command_at(position, execution.optimizedPlan()).table().table().branch()

    branch = first_answer(execution, of_plan)
    return branch or first_answer(execution, lambda e: e.sparkSession().conf().get(_WAP_BRANCH))


_WAP_BRANCH = "spark.wap.branch"
