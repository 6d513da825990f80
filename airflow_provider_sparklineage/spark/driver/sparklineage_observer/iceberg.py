"""Finds the partitions of Iceberg tables in a scan's files, and in this application's snapshots."""

import re
from urllib.parse import unquote_plus

from sparklineage_observer.jvm import class_name, command_at, each, first_answer, items, metrics
from sparklineage_observer.records import OverBudgetError, dimension_of, layout_of, write_record

_STATIC = re.compile(r"filters=(.*?), (?:groupedBy|runtimeFilters)=", re.DOTALL)
_RUNTIME = re.compile(r"runtimeFilters=(.*?)(?:, \w+=|\)$)", re.DOTALL)
_OF_METADATA = re.compile(
    "(History|Snapshots|Files|Manifests|Partitions|Entries|Refs|Deletes)Table|Metadata"
)
_FILE = re.compile(r"spec_id=(\d+), partition=(PartitionData\{.*?\}), record_count=")


def table_of(spark_table):
    """Give the Iceberg table of a DataSource V2 table; None if the table has another format.

    :param spark_table: the Java object of Spark's table; None gives None
    """
    if spark_table is None:
        return None
    if class_name(spark_table) == "RowLevelOperationTable":
        spark_table = spark_table.table()
    return spark_table.table() if "iceberg" in spark_table.getClass().getName() else None


def scan(read, node, budget):
    """Add the table, snapshot, filters and partitions of an Iceberg scan to the scan's description.

    :param read: the description, an entry of a record's ``reads``, which is changed
    :param node: the ``BatchScanExec``
    :param budget: the query's time limit, a :class:`.records.Budget`
    :return: ``read``; None for a scan of a metadata table
    """
    spark_scan = node.scan()
    read.update(table=node.table().name(), scan=class_name(spark_scan))
    description = spark_scan.description()
    read.update(metrics(node.metrics(), "resultDataFiles", "numSplits"))
    table = table_of(node.table())
    if table is None or _OF_METADATA.search(table.getClass().getName()):
        return None
    static, runtime = _STATIC.search(description), _RUNTIME.search(spark_scan.toString())
    # Some versions of Iceberg describe scans in another way; then the full text is recorded.
    filters = [static.group(1) if static else description, runtime.group(1) if runtime else ""]
    read["pushed_filters"] = [text for text in filters if text and text != "[]"]
    base = table.location().rstrip("/")
    read.update(format="iceberg", roots=[base])
    snapshot = _snapshot_id(table, spark_scan)
    if snapshot:
        read["snapshot"] = snapshot
    collected = _Collected(table)
    for split in _splits(node, spark_scan):
        for task in each(split.taskGroup().tasks()):
            budget.check()
            collected.add(task.file())
    read["layouts"] = collected.layouts(base)
    return read


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


def _snapshot_id(table, spark_scan):
    """Give the id of the snapshot that is read, as text, because it is too long for a JSON number.

    :param table: Iceberg's table, a Java object
    :param spark_scan: the scan of the table, a Java object
    :return: None if the table has no snapshot
    """
    number = first_answer(spark_scan, lambda scan: scan.snapshotId())
    if number is None:
        current = table.currentSnapshot()
        number = current.snapshotId() if current is not None else None
    return None if number is None else str(number)


class _Collected:
    """A collection of the distinct partitions of files, grouped by partition spec."""

    def __init__(self, table):
        self._specs = table.specs()
        self._found = {}
        self._known = set()

    def add(self, file):
        spec_id = file.specId()
        partition = file.partition()
        written = partition.toString()
        nulls = ()
        if "null" in written:  # a null and the text "null" print alike
            nulls = tuple(partition.get(i) is None for i in range(partition.size()))
        key = (spec_id, written, nulls)
        if key not in self._known:
            self._known.add(key)
            self._found.setdefault(spec_id, set()).add(self._values(spec_id, partition))

    def add_all(self, files, classes, budget):
        """Add the partitions of many files with few calls.

        One call gives the texts of all files; then only one file of each partition is read.

        :param files: a java.lang.Iterable of Iceberg's files
        :param classes: the driver's :class:`.jvm.Classes`
        :param budget: the query's limits of time and number, a :class:`.records.Budget`
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
                self.add(file)
            return
        first = {}
        for position, key in enumerate(files):
            # A null and the text "null" print alike, so files with "null" are read one by one.
            first.setdefault((*key, position) if "null" in key[1] else key, position)
        for position in first.values():
            budget.check()
            self.add(listed.get(position))

    def _values(self, spec_id, partition):
        path = self._specs.get(spec_id).partitionToPath(partition)
        if not path:
            return ()
        values = [unquote_plus(s.partition("=")[2]) for s in path.split("/")]
        # The path has "null" both for a null and for the text "null".
        for position, value in enumerate(values):
            if value == "null" and partition.get(position) is None:
                values[position] = None
        return tuple(values)

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
        transform = field.transform()
        result = transform.getResultType(schema.findField(field.sourceId()).type())
        dimension = dimension_of(schema.findColumnName(field.sourceId()), result.toString())
        found.append({**dimension, "transform": transform.toString(), "name": field.name()})
    return found


class Snapshots:
    """The snapshots that this application made in the tables it writes; each is reported once."""

    def __init__(self):
        self._tables = {}
        self._reported = {}

    def accessed(self, table):
        """Remember an Iceberg table that the application writes.

        :param table: Iceberg's table, a Java object
        """
        self._tables[table.location().rstrip("/")] = table

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
            for snapshot in each(table.snapshots()):
                identity = snapshot.snapshotId()
                if identity in reported:
                    continue
                reported.add(identity)
                if snapshot.summary().get("spark.app.id") == application_id:
                    writes.append(_write(base, table, snapshot, classes, budget))
        return [write for write in writes if write is not None]


def _write(base, table, snapshot, classes, budget):
    operation = snapshot.operation()
    if operation == "replace":  # a compaction puts the same data into other files
        return None
    mode = "append" if operation == "append" else "rows"
    mode = "create" if snapshot.parentId() is None else mode
    write = write_record("IcebergSnapshot", "iceberg", base, mode, table=table.name())
    write.update(snapshot=str(snapshot.snapshotId()), time=snapshot.timestampMillis())
    try:
        io = table.io()
        added, removed = _Collected(table), _Collected(table)
        added.add_all(snapshot.addedDataFiles(io), classes, budget)
        added.add_all(snapshot.addedDeleteFiles(io), classes, budget)
        removed.add_all(snapshot.removedDataFiles(io), classes, budget)
        write["layouts"] = added.layouts(base)
        write["removed"] = removed.layouts(base)
    except OverBudgetError as error:
        write.update(how="unknown", cut=str(error))
    return write


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
