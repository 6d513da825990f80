"""Finds the partitions that a scan selected, after static and dynamic pruning.

A *layout* is ``{"base", "dimensions", "partitions"}``. Each partition is a list of values, in the
order of the dimensions; None stands for null. An unpartitioned relation has a layout for each of
its roots, without dimensions and with one empty partition.
"""

import datetime
import json
import re

from sparklineage_observer import iceberg, jvm
from sparklineage_observer.plans import FEED_SCAN
from sparklineage_observer.records import OverBudgetError, dimension_of, layout_of
from sparklineage_observer.relations import name_of, path_of_feed

_FILE_4 = re.compile(r"path: (\S+), range: ")
_FILE_3 = re.compile(r"path=(.+?); isDirectory=", re.DOTALL)
_DELTA_LOG = "DeltaLogFileIndex"
# Indexes with all files of their roots, from which only a scan's filters and options leave out
# files. Other indexes may have only some files, such as the index that Delta makes before it
# rewrites files.
_ALL_FILES = ("InMemoryFileIndex", "CatalogFileIndex", "MetadataLogFileIndex")
# The relation and the file indexes of a Delta table's change data feed. Delta makes columns of the
# feed partition columns, behind those of the table, and has a folder of its own for changes.
_FEED = "DeltaCDFRelation"
CHANGE_FEEDS = (_FEED, "CdcAddFileIndex", "TahoeChangeFileIndex", "TahoeRemoveFileIndex")
_OF_CHANGE_FEED = ("_change_type", "_commit_version", "_commit_timestamp")
_BATCH = "TahoeBatchFileIndex"  # of the files that a command of Delta is about to rewrite
_CHOOSING = {"pathglobfilter", "modifiedbefore", "modifiedafter"}
# Spark sets this option when it reads files as text to find the columns of CSV, JSON or XML, and
# when a stream reads text files.
_INFERENCE = "__globpaths__"
_MAX_ODD = 1000  # partitions that are read value by value, with some ten calls each
_EPOCH = datetime.date(1970, 1, 1)


def observe(kind, scan, classes, budget, is_again):
    """Describe a scan and the partitions that it selected.

    If a limit was reached, the partitions are left out, and ``cut`` names the limit.

    :param kind: the class name of the scan's node
    :param scan: the node, a Java object
    :param classes: the driver's :class:`.jvm.Classes`
    :param budget: the query's limits of time and number, a :class:`.records.Budget`
    :param is_again: whether an earlier query ran the same plan. Spark has reset the metrics since,
        and does not count the files again
    :return: a dict, an entry of a record's ``reads``; None if the scan reads no data of the user.
        If it reads files in order to rewrite them, the dict has ``maintenance``, the command
    """
    read = {"node": kind}
    try:
        if kind == "FileSourceScanExec":
            return _file_scan(read, scan, classes, budget, is_again)
        if kind == "HiveTableScanExec":
            return _hive_scan(read, scan, budget)
        if kind == FEED_SCAN:
            return _feed_scan(read, scan)
        if "iceberg" in scan.scan().getClass().getName():
            return iceberg.scan(read, scan, budget)
        return _v2_scan(read, scan, classes, budget)
    except OverBudgetError as error:
        read["cut"] = str(error)
        return read


def unread(kind, scan):
    """Describe a scan that Spark left out of an adaptive plan: it read no partition.

    :param kind: the class name of the scan's node
    :param scan: the node, a Java object; it was never run, so it is not asked for its partitions
    :return: a dict, an entry of a record's ``reads``; None if the scan reads no data of the user,
        or no files
    """
    read = {"node": kind}
    if kind == "HiveTableScanExec":
        table = scan.relation().tableMeta()
        base = table.location().toString().rstrip("/")
        read.update(format="hive", table=name_of(table), roots=[base])
        return {**read, "layouts": [layout_of(base, _hive_dimensions(scan), [])]}
    if kind != "FileSourceScanExec":
        return iceberg.unread(read, scan)
    relation = scan.relation()
    index = relation.location()
    if jvm.class_name(index) == _DELTA_LOG:
        return None
    roots = [root.rstrip("/") or root for root in jvm.texts(index.rootPaths())]
    schema = jvm.dimensions(relation.partitionSchema())
    table = jvm.option(scan.tableIdentifier())
    read.update(format=relation.fileFormat().toString(), roots=roots)
    read["table"] = table.unquotedString() if table is not None else None
    bases = [_base(roots, schema)] if schema else roots
    return {**read, "layouts": [layout_of(base, schema, []) for base in bases]}


def _hive_dimensions(scan):
    attributes = jvm.items(scan.relation().partitionCols())
    return [dimension_of(a.name(), a.dataType().simpleString()) for a in attributes]


def _file_scan(read, scan, classes, budget, is_again):
    relation = scan.relation()
    index = relation.location()
    kind = jvm.class_name(index)
    if kind == _DELTA_LOG or (not is_again and _is_unopened(read, scan.metrics())):
        return None
    roots = [root.rstrip("/") or root for root in jvm.texts(index.rootPaths())]
    if kind == _BATCH and str(index.actionType()).lower() == "optimize":
        return {**read, "roots": roots[:1], "format": "delta", "maintenance": "OPTIMIZE"}
    file_format = relation.fileFormat().toString()
    options = {key.lower() for key in jvm.texts(relation.options().keys())}
    if file_format == "Text" and _INFERENCE in options and not is_of_stream(scan):
        read.update(format=file_format, inference=True, roots=roots[: budget.limits.partitions])
        return read
    if not _CHOOSING.isdisjoint(options) or not _has_all_files(kind, index):
        read["chosen"] = True
    schema = jvm.dimensions(relation.partitionSchema())
    is_feed = kind in CHANGE_FEEDS
    if is_feed:
        schema = [d for d in schema if d["field"] not in _OF_CHANGE_FEED]
    table = jvm.option(scan.tableIdentifier())
    read.update(
        format=file_format,
        index=kind,
        table=table.unquotedString() if table is not None else None,
        roots=roots[: budget.limits.partitions],
        partition_filters=[e.sql() for e in jvm.items(scan.partitionFilters())],
        data_filters=[e.sql() for e in jvm.items(scan.dataFilters())],
    )
    budget.require(len(roots), "partitions", "roots")
    selected = scan.dynamicallySelectedPartitions()
    count = len(selected) if jvm.is_array(selected) else selected.partitionCount()
    read["selected"] = count
    budget.check()
    if not schema:
        empty = count == 0 or read.get("numFiles") == 0
        partitions = [] if empty else [[]]
        read["layouts"] = [layout_of(root, schema, partitions) for root in roots]
        return read
    budget.require(count, "partitions", "partitions")
    by_base = _selected(selected, [d["field"] for d in schema], classes, budget)
    if by_base is None:
        base = _base(roots, schema)
        if table is not None:
            catalog = relation.sparkSession().sessionState().catalog()
            base = catalog.getTableMetadata(table).location().toString().rstrip("/")
        by_base = {base: _by_value(selected, schema, budget)}
    if not by_base or is_feed:
        by_base = {_base(roots, schema): set().union(*by_base.values())}
    read["layouts"] = [layout_of(base, schema, by_base[base]) for base in sorted(by_base)]
    return read


def _feed_scan(read, scan):
    """Add the table of a change data feed to the description of a scan of the feed.

    :param read: the description, an entry of a record's ``reads``
    :param scan: the node of the scan, a Java object
    :return: the description, with ``cut``, the reason why the partitions are unknown
    """
    read.update(index=_FEED, format="delta", roots=[path_of_feed(scan.relation())])
    return {**read, "cut": "Delta reads the change data feed of a table out of Spark's sight"}


def _is_unopened(read, known):
    """Whether a scan was planned but never run, so that Spark has not measured its files.

    A write that was skipped or failed has such scans. They must not be asked for their partitions,
    because Spark would then list the partitions for the first time.

    :param read: the description of the scan, to which the numbers of files and partitions are added
    :param known: the scan's metrics
    """
    read.update(jvm.metrics(known, "numPartitions", "numFiles"))
    if read.get("numFiles"):
        return False
    size = jvm.option(known.get("filesSize"))
    return size is not None and size.isZero()  # isZero() is false for a metric that was set to 0


def is_of_stream(scan):
    """Whether a scan, a node of a physical plan, reads a batch of a stream."""
    link = jvm.option(scan.logicalLink())
    return link is not None and link.isStreaming()


def _has_all_files(kind, index):
    """Whether a file index has all files of its roots; False if that is not known.

    An older version of a Delta table may lack files that the table has.

    :param kind: the class name of the index
    :param index: Spark's ``FileIndex``
    """
    try:
        if kind == "PreparedDeltaFileIndex":
            scan = index.preparedScan()
            return scan.scanned().equals(scan.total()) and not index.versionScanned().isDefined()
        if kind == "TahoeLogFileIndex":
            return index.partitionFilters().isEmpty() and not index.isTimeTravelQuery()
    except Exception:  # private to Delta, so another version may not have it
        return False
    return kind in _ALL_FILES


def _base(roots, schema):
    """Find the folder of a relation: the first root, without the partitions' folders at its end.

    :param roots: the paths of the relation's root folders
    :param schema: the partition columns, as :func:`.records.dimension_of` describes them
    :return: a path; "" if there are no roots
    """
    columns = {d["field"].lower() for d in schema}
    segments = roots[0].split("/") if roots else [""]
    while len(segments) > 1 and segments[-1].partition("=")[0].lower() in columns:
        segments.pop()
    return "/".join(segments)


def _selected(selected, columns, classes, budget):
    """Read the selected partitions from the paths of the selected files.

    The JVM gives all paths as one text, in one call of py4j.

    :param selected: the scan's selected partitions, a Java object
    :param columns: the names of the partition columns
    :param classes: the driver's :class:`.jvm.Classes`
    :param budget: the query's limits of time and number, a :class:`.records.Budget`
    :return: a dict: for each base folder, a set of partitions, which are tuples of values; None if
        a path does not name its partition
    """
    if jvm.is_array(selected):  # Spark 3: PartitionDirectory[]
        files = _FILE_3.findall(classes.text_of(selected))
    else:  # Spark 4: ScanFileListing
        budget.require(selected.totalNumberOfFiles(), "files", "files")
        directories = classes.text_of(selected.toPartitionArray())
        files = [jvm.plain_path(path) for path in _FILE_4.findall(directories)]
    found = {}
    for directory in {file.rsplit("/", 1)[0] for file in files}:
        split = jvm.split_directory(directory, columns)
        if split is None:
            return None
        found.setdefault(split[0], set()).add(split[1])
    return found


def _by_value(selected, schema, budget):
    """Read the values of the selected partitions from Spark's rows, one by one.

    This is for partitions with locations of their own, whose folders do not name their values.

    :param selected: the scan's selected partitions, a Java object
    :param schema: the partition columns, as :func:`.records.dimension_of` describes them
    :param budget: the query's limits of time and number, a :class:`.records.Budget`
    :return: a set with a tuple of values for each partition, in the order of the columns
    :raise OverBudgetError: if there are too many partitions, or a column has a type whose values
        are not read
    """
    if not jvm.is_array(selected):
        iterator = selected.filePartitionIterator()
        rows = []
        while iterator.hasNext():
            rows.append(iterator.next().values())
            budget.require(len(rows), "partitions", "partitions")
    else:
        rows = [directory.values() for directory in selected]
    if len(rows) > _MAX_ODD:
        message = f"{len(rows)} partitions have locations of their own"
        raise OverBudgetError(message)
    found = set()
    for row in rows:
        budget.check()
        found.add(tuple(_cell(row, i, d["type"]) for i, d in enumerate(schema)))
    return found


def _cell(row, position, kind):
    if row.isNullAt(position):
        return None
    if kind == "date":
        return (_EPOCH + datetime.timedelta(days=row.getInt(position))).isoformat()
    if kind == "string":
        return row.getUTF8String(position).toString()
    if kind in ("integer", "long", "short", "byte", "boolean"):
        getters = {"integer": row.getInt, "long": row.getLong, "short": row.getShort}
        getters.update(byte=row.getByte, boolean=row.getBoolean)
        value = getters[kind](position)
        return str(value).lower() if kind == "boolean" else str(value)
    message = f"a partition column of type {kind}, with a location of its own"
    raise OverBudgetError(message)


def _v2_scan(read, node, classes, budget):
    """Add the table of a DataSource V2 scan, and the partitions of a source of files, to a read.

    :param read: the description of the scan, an entry of a record's ``reads``, which is changed and
        returned
    :param node: the ``BatchScanExec``
    :param classes: the driver's :class:`.jvm.Classes`
    :param budget: the query's time limit, a :class:`.records.Budget`
    """
    scan = node.scan()
    read.update(table=node.table().name(), description=scan.description()[:2000])
    read["partitioning"] = [transform.describe() for transform in node.table().partitioning()]
    if ".datasources.v2." not in scan.getClass().getName() or "jdbc" in read["description"].lower():
        return read
    index = scan.fileIndex()
    schema = jvm.dimensions(index.partitionSchema())
    read["roots"] = [root.rstrip("/") for root in jvm.texts(index.rootPaths())]
    read["partition_filters"] = [e.sql() for e in jvm.items(scan.partitionFilters())]
    found = {}
    columns = [d["field"] for d in schema]
    for split in jvm.items(node.inputPartitions()):
        budget.check()
        for path in _FILE_4.findall(classes.text_of(split.files())):
            parts = jvm.split_directory(jvm.plain_path(path).rsplit("/", 1)[0], columns)
            if parts is None:
                message = "a partition of a file source has a location of its own"
                raise OverBudgetError(message)
            found.setdefault(parts[0], set()).add(parts[1])
    if not columns:
        found = {root: {()} if found else set() for root in read["roots"]}
    found = found or {_base(read["roots"], schema): set()}
    read["layouts"] = [layout_of(base, schema, found[base]) for base in sorted(found)]
    return read


def _hive_scan(read, scan, budget):
    table = scan.relation().tableMeta()
    base = table.location().toString().rstrip("/")
    schema = _hive_dimensions(scan)
    columns = [d["field"] for d in schema]
    read.update(
        format="hive",
        table=name_of(table),
        roots=[base],
        partition_filters=[e.sql() for e in jvm.items(scan.partitionPruningPred())],
    )
    if not columns:
        read["layouts"] = [layout_of(base, schema, [[]])]
        return read
    pruned = scan.prunedPartitions()
    read["selected"] = pruned.size()
    budget.require(pruned.size(), "partitions", "partitions")
    # Hive's Partition prints as ``table(dt=2024-05-06/region=us)``, with the folders' escapes.
    found = set()
    for text in jvm.texts(pruned):
        split = jvm.split_directory(text[text.index("(") + 1 : -1], columns)
        if split is None:
            message = f"partitions of a Hive table are named in an unknown way: {text[:200]}"
            raise OverBudgetError(message)
        found.add(split[1])
    read["layouts"] = [layout_of(base, schema, found)]
    return read


# Only the first read of each relation describes the columns, so later reads cost no call for them.


_MAX_SCHEMA_BYTES = 1024 * 1024


class Schemas:
    """Describes the columns of relations, each relation only once."""

    def __init__(self):
        self._described = set()

    def describe(self, read, kind, scan):
        """Add the columns of a scan's relation to the scan's description, once for each relation.

        :param read: the description, an entry of a record's ``reads``; its ``schema`` becomes the
            parsed JSON of Spark's StructType, unless that is too long
        :param kind: the class name of the scan's node
        :param scan: the node, a Java object
        """
        bases = [layout["base"] for layout in read.get("layouts", ())]
        key = (*(read.get("roots") or bases), read.get("table"))
        if key in self._described or not any(key):
            return
        self._described.add(key)
        text = _schema(kind, scan).json()
        if len(text) <= _MAX_SCHEMA_BYTES:
            read["schema"] = schema = json.loads(text)
            if read.get("index") in CHANGE_FEEDS:
                own = [f for f in schema["fields"] if f["name"] not in _OF_CHANGE_FEED]
                schema["fields"] = own
            elif read.get("scan") == iceberg.CHANGELOG:
                own = [f for f in schema["fields"] if f["name"] not in iceberg.OF_CHANGELOG]
                schema["fields"] = own


def _schema(kind, scan):
    if kind in ("FileSourceScanExec", FEED_SCAN):
        return scan.relation().schema()
    if kind == "HiveTableScanExec":
        return scan.relation().tableMeta().schema()
    return scan.table().schema()
