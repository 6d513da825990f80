"""Calls that are short in Scala and long in py4j.

A call through py4j costs a fraction of a millisecond, so a collection comes over as one text
wherever it has many elements.
"""

import json
import re
from functools import cached_property
from urllib.parse import unquote

NULL = "__HIVE_DEFAULT_PARTITION__"
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_STATUS = re.compile(
    r"path=(.+?); isDirectory=(true|false)(?:; length=(\d+))?.*?modification_time=(\d+)", re.DOTALL
)
_NUMBER = re.compile(r"#\d+L?(?:-T\S+)?\Z")  # the id of an attribute, behind its name
# A metric, as Spark prints a map: ``numFiles -> SQLMetric(id: 7, name: Some(…), value: 3)``.
_METRIC = re.compile(r"(?:\A|\x01)(\w+) -> [^\x01]*, value: (-?\d+)\)(?=\x01|\Z)")


class Classes:
    """The classes of the driver's JVM that the observer calls, each looked up once.

    They are looked up by their full names: for ``jvm.org.apache`` py4j asks for ``org`` and
    ``org.apache`` as classes first, and Spark asks all its class loaders for each of them, which
    costs some 2 ms per part.
    """

    def __init__(self, jvm):
        self._client = jvm._gateway_client

    def _named(self, name):
        from py4j.java_gateway import JavaClass

        return JavaClass(name, self._client)

    @cached_property
    def path(self):
        return self._named("org.apache.hadoop.fs.Path")

    @cached_property
    def file_system(self):
        return self._named("org.apache.hadoop.fs.FileSystem")

    @cached_property
    def configuration(self):
        """Copy a Hadoop configuration."""
        return self._named("org.apache.hadoop.conf.Configuration")

    @cached_property
    def thread(self):
        return self._named("java.lang.Thread")

    @cached_property
    def split(self):
        """Make a String[] of a text and the separator of its parts."""
        return self._named("org.apache.hadoop.util.StringUtils").getStrings

    @cached_property
    def paths(self):
        """Make a Path[] of a String[]."""
        return self._named("org.apache.hadoop.util.StringUtils").stringToPath

    @cached_property
    def paths_of(self):
        """Make a Path[] of a FileStatus[]."""
        return self._named("org.apache.hadoop.fs.FileUtil").stat2Paths

    @cached_property
    def pattern(self):
        """Make a filter of paths by their names."""
        return self._named("org.apache.hadoop.fs.GlobFilter")

    @cached_property
    def text_of(self):
        """Print any Java array, in one call; py4j cannot pass ``Foo[]`` as ``Object[]``."""
        return self._named("scala.runtime.ScalaRunTime").stringOf

    @cached_property
    def struct_of(self):
        """Make a StructType of a Seq of attributes."""
        return self._named("org.apache.spark.sql.catalyst.types.DataTypeUtils").fromAttributes

    @cached_property
    def identity(self):
        return self._named("java.lang.System").identityHashCode

    @cached_property
    def array_list(self):
        return self._named("java.util.ArrayList")

    @cached_property
    def content_of(self):
        """Read an input stream to its end, as text."""
        return self._named("org.apache.commons.io.IOUtils").toString

    @cached_property
    def streaming_listener(self):
        """Make a StreamingQueryListener of one in Python."""
        return self._named("org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper")

    @cached_property
    def partition_folder(self):
        """Give the name of a value's folder, ``column=value``, escaped as by Spark and Hive."""
        utils = self._named("org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils")
        return utils.getPartitionPathString


def class_name(thing):
    """Give the simple name of an object's Java class."""
    return thing.getClass().getSimpleName()


def kind_of(node):
    """Give the class name of a plan's node, or of another case class of Scala, in one call."""
    return node.productPrefix()


def is_array(thing):
    """Whether something is a Java array."""
    from py4j.java_collections import JavaArray

    return isinstance(thing, JavaArray)


def items(sequence):
    """Give the elements of a Scala Seq."""
    return [sequence.apply(i) for i in range(sequence.size())]


def each(iterable):
    """Yield the elements of a java.lang.Iterable."""
    iterator = iterable.iterator()
    while iterator.hasNext():
        yield iterator.next()


def option(value):
    """Give the value of a Scala Option; None if it is empty."""
    return value.get() if value.isDefined() else None


def texts(sequence):
    """Give the texts of a Scala collection's elements, in one call."""
    joined = sequence.mkString("\x01")
    return joined.split("\x01") if joined else []


def statuses(classes, array):
    """Read a FileStatus[]: (path, is directory, length, modified at in ms), one after the other.

    This is a generator, as a list of so many could start a full garbage collection in the job.
    """
    for match in _STATUS.finditer(classes.text_of(array)):
        path, directory, length, modified = match.groups()
        yield path, directory == "true", int(length or 0), int(modified)


def qualified(classes, hadoop_conf, path):
    """Give a path with its scheme, so that each folder has one form of its path."""
    hadoop_path = classes.path(path)
    return hadoop_path.getFileSystem(hadoop_conf).makeQualified(hadoop_path).toString()


def text_of_file(classes, file_system, path):
    """Read a text file, as UTF-8."""
    stream = file_system.open(classes.path(path))
    try:
        return classes.content_of(stream, "UTF-8")
    finally:
        stream.close()


def metrics(known, *names):
    """Read the named metrics of a plan or command, in one call; missing ones are left out."""
    values = dict(_METRIC.findall(known.mkString("\x01")))
    return {name: int(values[name]) for name in names if name in values}


def dimensions(struct):
    """Give the fields of a StructType as identity dimensions."""
    fields = json.loads(struct.json())["fields"]
    return [
        {
            "field": f["name"],
            "transform": "identity",
            "type": f["type"] if isinstance(f["type"], str) else json.dumps(f["type"]),
        }
        for f in fields
    ]


def names_of(sequence):
    """Give the names of attributes, in one call."""
    return [_NUMBER.sub("", text) for text in texts(sequence)]


def attributes(classes, sequence):
    """Give partition attributes as identity dimensions, with few calls for all of them."""
    names = names_of(sequence)
    if not names:
        return []
    # As ``struct<dt:date,region:string>``; the type of a partition column has no fields itself.
    struct = ",".join(f"{re.escape(name)}:(.+?)" for name in names)
    types = re.fullmatch(f"struct<{struct}>", classes.struct_of(sequence).catalogString())
    return [
        {"field": name, "transform": "identity", "type": kind}
        for name, kind in zip(names, types.groups())
    ]


def plain_path(path):
    """Undo the URI encoding of a path's text as ``SparkPath`` prints it."""
    return unquote(path)


def key_of(segment):
    """Give the column in ``column=value``."""
    return _ESCAPE.sub(lambda m: chr(int(m.group(1), 16)), segment.partition("=")[0])


def value_of(segment):
    """Give the value in ``column=value``, a directory name as Hive escapes it; None is null."""
    value = _ESCAPE.sub(lambda m: chr(int(m.group(1), 16)), segment.partition("=")[2])
    return None if value == NULL else value


def split_directory(directory, columns):
    """Split a directory of files into (base, values of the partition columns).

    :return: None if the directory does not end in ``column=value`` for all the columns, as with
        a partition that was added with a location of its own
    """
    if not columns:
        return directory, ()
    segments = directory.split("/")
    own = segments[-len(columns) :]
    names = [key_of(s) for s in own]
    if [n.lower() for n in names] != [c.lower() for c in columns]:
        return None
    return "/".join(segments[: -len(columns)]), tuple(value_of(s) for s in own)


def sorted_partitions(partitions):
    """Sort partitions (tuples of texts and None); null comes first."""
    return sorted(
        map(list, partitions), key=lambda values: [(v is not None, v or "") for v in values]
    )
