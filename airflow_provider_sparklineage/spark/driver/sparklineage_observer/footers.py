"""Counts the rows of files that a query wrote, by the footers of Parquet and ORC.

A footer is at the end of a file and has the number of its rows; no data is read. The number is not
known for a file of another format, or if a footer cannot be read, because it is encrypted or its
file is gone meanwhile.
"""

import json
import time
from functools import cached_property
from itertools import groupby

from sparklineage_observer.records import OverBudgetError

_CHUNK = 200  # files in one call, which cannot be stopped
_MOST_FAILED = 24  # calls; some eight of them find a file whose footer cannot be read


class ListedFile:
    """A file, and its place in a listing.

    :param path: the path of the file
    :param statuses: the listing, a ``FileStatus[]``
    :param position: the place of the file in it
    """

    def __init__(self, path, statuses, position):
        self.path = path
        self.statuses = statuses
        self.position = position


class Footers:
    """Reads the footers of written files with the driver's own file system and credentials.

    :param classes: the driver's :class:`.jvm.Classes`
    :param hadoop_conf: the Hadoop configuration of the SparkContext, a Java object
    """

    def __init__(self, classes, hadoop_conf):
        self._classes = classes
        self._conf = hadoop_conf
        self._functions = _Functions(classes)

    def rows(self, files, budget):
        """Count the rows of files of one write, within limits of number and time.

        :param files: a list of :class:`ListedFile`
        :param budget: the query's limits of time and number, a :class:`.records.Budget`
        :return: a list of numbers, in the order of the files; None stands for an unknown number
        """
        readers = {".parquet": self._of_parquet, ".orc": self._of_orc}
        read = next((r for end, r in readers.items() if files[0].path.endswith(end)), None)
        if read is None or len(files) > budget.limits.footers:
            return [None] * len(files)
        rows, failed = [], 0
        until = time.monotonic() + budget.limits.footer_seconds
        left = _chunks(files)[::-1]
        while left and failed < _MOST_FAILED and time.monotonic() < until:
            chunk = left.pop()
            half = len(chunk) // 2
            try:
                budget.check()
                rows += read(chunk)
            except OverBudgetError:
                break
            except Exception:  # one of the footers cannot be read
                failed += 1
                if half:
                    left += [chunk[half:], chunk[:half]]
                else:
                    rows.append(None)
        return rows + [None] * (len(files) - len(rows))

    def _of_parquet(self, files):
        """Count the rows of files of one listing, with a fixed number of calls.

        The JVM makes the list of counts, because a few calls for each file would take longer than
        the footers themselves.
        """
        classes, functions = self._classes, self._functions
        positions = classes.split_list(",".join(str(file.position) for file in files), ",")
        statuses = classes.array_list(positions)
        statuses.replaceAll(functions.element_of(files[0].statuses))
        listed = classes.array_list(classes.parquet_footers(self._conf, statuses, False))
        listed.replaceAll(functions.row_groups)
        groups = classes.array_list()  # those of all files
        listed.forEach(functions.adder_to(groups))
        listed.replaceAll(functions.size)
        groups.replaceAll(functions.row_count)
        counts = iter(json.loads(groups.toString()))
        return [sum(next(counts) for _ in range(size)) for size in json.loads(listed.toString())]

    def _of_orc(self, files):
        """Count the rows of files, with some calls for each."""
        rows = []
        for file in files:
            options = self._classes.orc_options(self._conf)  # a reader keeps its footer in them
            reader = self._classes.orc_reader(self._classes.path(file.path), options)
            try:
                rows.append(reader.getNumberOfRows())
            finally:
                reader.close()
        return rows


def _chunks(files):
    """Split files into lists of files that are in one listing, and not too many for one call."""
    groups = (list(group) for _, group in groupby(files, key=lambda file: id(file.statuses)))
    return [one[at : at + _CHUNK] for one in groups for at in range(0, len(one), _CHUNK)]


class _Functions:
    """Functions of Java that the JVM applies to the elements of a list by itself."""

    def __init__(self, classes):
        self._classes = classes

    @cached_property
    def row_groups(self):
        """The function that gives the list of row groups of a footer."""
        metadata, listed = map(self._type, (f"{_PARQUET}.metadata.ParquetMetadata", _LIST))
        of_footer = self._method(f"{_PARQUET}.Footer", "getParquetMetadata", metadata)
        of_metadata = self._method(f"{_PARQUET}.metadata.ParquetMetadata", "getBlocks", listed)
        return self._operator(self._classes.methods.filterReturnValue(of_footer, of_metadata))

    @cached_property
    def row_count(self):
        """The function that gives the number of rows of a row group."""
        kind = f"{_PARQUET}.metadata.BlockMetaData"
        return self._operator(self._method(kind, "getRowCount", self._classes.long.TYPE))

    @cached_property
    def size(self):
        """The function that gives the number of elements of a list."""
        return self._operator(self._method(_LIST, "size", self._classes.int.TYPE))

    @cached_property
    def _lookup(self):
        return self._classes.methods.publicLookup()

    @cached_property
    def _parse(self):
        signature = self._classes.signature(self._classes.int.TYPE, self._type("java.lang.String"))
        return self._lookup.findStatic(self._type("java.lang.Integer"), "parseInt", signature)

    @cached_property
    def _add_all(self):
        collection = self._type("java.util.Collection")
        return self._classes.signature(self._classes.boolean.TYPE, collection)

    def element_of(self, array):
        """Give the function that finds an element of an array by its place, which is a text."""
        methods = self._classes.methods
        element = methods.arrayElementGetter(array.getClass()).bindTo(array)
        return self._operator(methods.filterReturnValue(self._parse, element))

    def adder_to(self, collection):
        """Give the function that adds all elements of a list to a collection."""
        add = self._lookup.bind(collection, "addAll", self._add_all)
        return self._classes.as_interface(self._consumers, add)

    @cached_property
    def _consumers(self):
        return self._type("java.util.function.Consumer")

    @cached_property
    def _operators(self):
        return self._type("java.util.function.UnaryOperator")

    def _operator(self, handle):
        return self._classes.as_interface(self._operators, handle)

    def _method(self, kind, name, result):
        return self._lookup.findVirtual(self._type(kind), name, self._classes.signature(result))

    def _type(self, name):
        return self._classes.type(name)


_PARQUET = "org.apache.parquet.hadoop"
_LIST = "java.util.List"
