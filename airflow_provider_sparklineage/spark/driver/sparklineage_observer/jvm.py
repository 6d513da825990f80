"""Calls of the JVM that are short in Scala and long in py4j.

A call through py4j costs a fraction of a millisecond. So a collection that may have many elements
is printed in the JVM, and its text is read in one call.
"""

import json
import re
from contextlib import suppress
from urllib.parse import unquote

from sparklineage_observer.records import dimension_of

NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_STATUS = re.compile(
    r"path=(.+?); isDirectory=(true|false)(?:; length=(\d+))?.*?modification_time=(\d+)", re.DOTALL
)
_NUMBER = re.compile(r"#\d+L?(?:-T\S+)?\Z")  # the id of an attribute, behind its name
# A metric in the printed map: ``numFiles -> SQLMetric(id: 7, name: Some(…), value: 3)``.
_METRIC = re.compile(r"(?:\A|\x01)(\w+) -> [^\x01]*, value: (-?\d+)\)(?=\x01|\Z)")


_CALLED = {
    "path": "org.apache.hadoop.fs.Path",
    "file_system": "org.apache.hadoop.fs.FileSystem",
    "thread": "java.lang.Thread",
    "identity": "java.lang.System:identityHashCode",
    "array_list": "java.util.ArrayList",
    # Measures the CPU time of threads.
    "thread_times": "java.lang.management.ManagementFactory:getThreadMXBean",
    # Copies a Hadoop configuration.
    "configuration": "org.apache.hadoop.conf.Configuration",
    # Splits a text at a separator into a String[].
    "split": "org.apache.hadoop.util.StringUtils:getStrings",
    # Splits a text at a separator into a list of texts.
    "split_list": "org.apache.hadoop.util.StringUtils:getStringCollection",
    # Converts a String[] to a Path[].
    "paths": "org.apache.hadoop.util.StringUtils:stringToPath",
    # Converts a FileStatus[] to a Path[].
    "paths_of": "org.apache.hadoop.fs.FileUtil:stat2Paths",
    # Makes a filter of paths from a glob pattern for their names.
    "pattern": "org.apache.hadoop.fs.GlobFilter",
    # Prints a Java array of any type in one call. Java's own methods need an ``Object[]``, and py4j
    # cannot pass a ``Foo[]`` as that.
    "text_of": "scala.runtime.ScalaRunTime:stringOf",
    # Converts a Seq of attributes to a StructType.
    "struct_of": "org.apache.spark.sql.catalyst.types.DataTypeUtils:fromAttributes",
    # Reads the rest of an input stream as text.
    "content_of": "org.apache.commons.io.IOUtils:toString",
    # Makes a Java StreamingQueryListener from a listener in Python.
    "streaming_listener": "org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper",
    # Opens a manifest of Iceberg: its files that are there.
    "manifest": "org.apache.iceberg.ManifestFiles:read",
    "partition_set": "org.apache.iceberg.util.PartitionSet:create",
    "pair": "org.apache.iceberg.util.Pair:of",
    # Gives the columns of a command's partition the names that the table has.
    "normalized_partition": "org.apache.spark.sql.util.PartitioningUtils:normalizePartitionSpec",
    # Gives the name of a partition's folder, ``column=value``, with the escapes of Hive.
    "partition_folder": (
        "org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils:getPartitionPathString"
    ),
    # Reads the footers of files in several threads.
    "parquet_footers": "org.apache.parquet.hadoop.ParquetFileReader:readAllFootersInParallel",
    "orc_options": "org.apache.orc.OrcFile:readerOptions",
    "orc_reader": "org.apache.orc.OrcFile:createReader",
    # Functions that the JVM calls by itself.
    "type": "java.lang.Class:forName",
    "methods": "java.lang.invoke.MethodHandles",
    "signature": "java.lang.invoke.MethodType:methodType",
    "as_interface": "java.lang.invoke.MethodHandleProxies:asInterfaceInstance",
    "int": "java.lang.Integer",
    "long": "java.lang.Long",
    "boolean": "java.lang.Boolean",
}
"""The attributes of :class:`Classes`: classes of Java, or ``class:method`` for static methods."""


class Classes:
    """The classes and static methods of the driver's JVM that the observer calls (:data:`_CALLED`).

    Each class is looked up once, by its full name. For the expression ``jvm.org.apache``, py4j
    would first ask for classes with the names ``org`` and ``org.apache``, and Spark would ask all
    its class loaders for each name, which costs some 2 ms per name.
    """

    def __init__(self, jvm):
        self._client = jvm._gateway_client

    def __getattr__(self, name):
        from py4j.java_gateway import JavaClass

        if name not in _CALLED:
            raise AttributeError(name)
        owner, _, method = _CALLED[name].partition(":")
        called = JavaClass(owner, self._client)
        if method:
            called = getattr(called, method)
        setattr(self, name, called)
        return called


def answering_seconds(classes):
    """Give the CPU time, in seconds, of the thread of the JVM that answers this Python thread."""
    return classes.thread_times().getCurrentThreadCpuTime() / 1e9


_BUS = "spark-listener-group-shared"


class BusTime:
    """Measures the CPU time of the thread in which Spark calls its listeners."""

    def __init__(self, classes):
        self._times = classes.thread_times()
        threads = each(classes.thread.getAllStackTraces().keySet())
        self._ids = [thread.getId() for thread in threads if thread.getName() == _BUS]

    def seconds(self):
        """Give the seconds; 0 if there is no such thread."""
        return sum(max(0, self._times.getThreadCpuTime(number)) for number in self._ids) / 1e9


def class_name(thing):
    """Give the simple name of an object's Java class."""
    return thing.getClass().getSimpleName()


def kind_of(node):
    """Give the class name of a node of a plan, or of another Scala case class, in one call."""
    return node.productPrefix()


def is_array(thing):
    """Whether something is a Java array."""
    from py4j.java_collections import JavaArray

    return isinstance(thing, JavaArray)


def items(sequence):
    """Give the elements of a Scala Seq as a list."""
    return [sequence.apply(i) for i in range(sequence.size())]


def each(iterable):
    """Yield the elements of a java.lang.Iterable."""
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


def first_answer(thing, *calls):
    """Try functions on an object in turn; give the first result, or None if all of them fail.

    :param thing: the object, usually of Java
    :param calls: functions that take the object and call methods of it; a function fails if the
        object's class does not have the method in this version of Spark
    """
    for call in calls:
        with suppress(Exception):  # the class has no such method
            return call(thing)
    return None


def command_at(position, plan):
    """Give one of the commands of a multi-insert; the plan itself if it is none.

    :param position: the place of the command among the children of the plan; None if the plan is
        not a multi-insert
    :param plan: the logical plan of a query, a Java object
    """
    return plan if position is None else plan.children().apply(position)


def option(value):
    """Give the value of a Scala Option; None if the Option is empty."""
    return value.get() if value.isDefined() else None


def texts(sequence):
    """Give the texts of the elements of a Scala collection as a list, in one call.

    :param sequence: the collection, whose elements are printed in the JVM
    """
    joined = sequence.mkString("\x01")
    return joined.split("\x01") if joined else []


def statuses(classes, array):
    """Yield a tuple for each file or folder in a ``FileStatus[]``, with one call.

    This is a generator, because a list of so many tuples could start a full garbage collection in
    the job.

    :param classes: the driver's :class:`Classes`
    :param array: the ``FileStatus[]``
    :return: yields (path, whether it is a directory, length in bytes, time of the last change in
        ms)
    """
    for match in _STATUS.finditer(classes.text_of(array)):
        path, directory, length, modified = match.groups()
        yield path, directory == "true", int(length or 0), int(modified)


def qualified(classes, hadoop_conf, path):
    """Add the scheme and host to a path, so that the path of a folder always has the same form.

    :param classes: the driver's :class:`Classes`
    :param hadoop_conf: the Hadoop configuration of the SparkContext, a Java object
    :param path: a text, such as ``/data/orders``
    :return: a text, such as ``hdfs://namenode:8020/data/orders``
    """
    hadoop_path = classes.path(path)
    return hadoop_path.getFileSystem(hadoop_conf).makeQualified(hadoop_path).toString()


def text_of_file(classes, file_system, path):
    """Read a text file in UTF-8.

    :param classes: the driver's :class:`Classes`
    :param file_system: Hadoop's ``FileSystem`` that has the file
    :param path: the path of the file, a text
    """
    stream = file_system.open(classes.path(path))
    try:
        return classes.content_of(stream, "UTF-8")
    finally:
        stream.close()


def metrics(known, *names):
    """Read metrics of a plan or command in one call; leave out names without a metric.

    :param known: all metrics of the plan or command, a Scala Map
    :param names: the names of the wanted metrics
    :return: a dict of the values, as ints, by name
    """
    values = dict(_METRIC.findall(known.mkString("\x01")))
    return {name: int(values[name]) for name in names if name in values}


def dimensions(struct):
    """Describe the fields of a StructType as partition columns.

    :param struct: the StructType, a Java object
    :return: a list of dicts from :func:`.records.dimension_of`
    """
    fields = json.loads(struct.json())["fields"]
    return [
        dimension_of(f["name"], f["type"] if isinstance(f["type"], str) else json.dumps(f["type"]))
        for f in fields
    ]


def names_of(sequence):
    """Give the names of the attributes in a Scala Seq as a list, in one call.

    :param sequence: the Seq, whose attributes print as ``dt#12``
    """
    return [_NUMBER.sub("", text) for text in texts(sequence)]


def attributes(classes, sequence):
    """Describe a Seq of attributes as partition columns, in a few calls.

    :param classes: the driver's :class:`Classes`
    :param sequence: the Seq, a Java object
    :return: a list of dicts from :func:`.records.dimension_of`
    """
    names = names_of(sequence)
    if not names:
        return []
    # The text is like ``struct<dt:date,region:string>``; a partition column has no nested type.
    struct = ",".join(f"{re.escape(name)}:(.+?)" for name in names)
    types = re.fullmatch(f"struct<{struct}>", classes.struct_of(sequence).catalogString())
    return list(map(dimension_of, names, types.groups()))


def plain_path(path):
    """Undo the URI encoding with which ``SparkPath`` prints a path."""
    return unquote(path)


def key_of(segment):
    """Give the column in a directory name ``column=value``, without Hive's escapes.

    :param segment: the directory name, such as ``dt=2024-05-06``
    """
    return _ESCAPE.sub(lambda m: chr(int(m.group(1), 16)), segment.partition("=")[0])


def value_of(segment):
    """Give the value in a directory name ``column=value`` without Hive's escapes; None for null.

    :param segment: the directory name, such as ``dt=2024-05-06``
    """
    value = _ESCAPE.sub(lambda m: chr(int(m.group(1), 16)), segment.partition("=")[2])
    return None if value == NULL else value


def split_directory(directory, columns):
    """Split the path of a directory into (base folder, values of the partition columns).

    :param directory: the path, a text
    :param columns: the names of the partition columns
    :return: such as ``("/table", ("2024-05-06",))`` for ``/table/dt=2024-05-06``; None if the path
        does not end in ``column=value`` for all the columns, because the partition was added with
        a location of its own
    """
    if not columns:
        return directory, ()
    segments = directory.split("/")
    own = segments[-len(columns) :]
    names = [key_of(s) for s in own]
    if [n.lower() for n in names] != [c.lower() for c in columns]:
        return None
    return "/".join(segments[: -len(columns)]), tuple(value_of(s) for s in own)
