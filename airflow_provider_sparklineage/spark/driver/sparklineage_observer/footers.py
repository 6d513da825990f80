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
_CALL_SECONDS = 0.5  # that a call should take at most
_COLUMN_CHUNKS = 20000  # in the memory of the driver at a time, which are some 10 MB
_GROWTH = 8  # the next call has at most so many times the files of the last one
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
        self._spent = 0.0  # seconds by the clock, for all writes

    def rows(self, files, budget):
        """Count the rows of files of one write, within limits of number and time.

        :param files: a list of :class:`ListedFile`
        :param budget: the query's limits of time and number, a :class:`.records.Budget`
        :return: a list of numbers, in the order of the files; None stands for an unknown number
        """
        readers = {".parquet": (self._of_parquet, _CHUNK), ".orc": (self._of_orc, 1)}
        found = next((r for end, r in readers.items() if files[0].path.endswith(end)), None)
        if found is None or len(files) > budget.limits.footers:
            return [None] * len(files)
        begun, limits = time.monotonic(), budget.limits
        seconds = min(limits.footer_seconds, limits.total_footer_seconds - self._spent)
        rows = _read(files, *found, begun + seconds, budget)
        self._spent += time.monotonic() - begun
        return rows + [None] * (len(files) - len(rows))

    def _of_parquet(self, files):
        """Count the rows and column chunks of files of one listing, with a fixed number of calls.

        The JVM makes the lists of counts, because a few calls for each file would take longer than
        the footers themselves.

        :return: a list with a tuple of both numbers for each file
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
        columns = classes.array_list(groups)
        columns.replaceAll(functions.column_count)
        groups.replaceAll(functions.row_count)
        counts = zip(json.loads(groups.toString()), json.loads(columns.toString()))
        sizes = json.loads(listed.toString())
        of_files = [[next(counts) for _ in range(size)] for size in sizes]
        return [(sum(r for r, _ in one), sum(c for _, c in one)) for one in of_files]

    def _of_orc(self, files):
        """Count the rows of one file, with some calls; its column chunks do not matter."""
        [file] = files
        options = self._classes.orc_options(self._conf)  # a reader keeps its footer in them
        reader = self._classes.orc_reader(self._classes.path(file.path), options)
        try:
            return [(reader.getNumberOfRows(), 0)]
        finally:
            reader.close()


def _read(files, read, most, until, budget):
    """Count the rows of files by calls, until they are counted or a limit is reached.

    :param files: a list of :class:`ListedFile`
    :param read: the function that reads some of them, and gives a list of their rows and column
        chunks
    :param most: the largest number of files that it may read in one call
    :param until: the monotonic time at which the last call may begin
    :param budget: the query's limits of time and number, a :class:`.records.Budget`
    :return: the rows of the first files, as many as were counted
    """
    rows, failed, size, widest = [], 0, 1, 1
    left = [list(group) for _, group in groupby(files, key=lambda file: id(file.statuses))][::-1]
    while left and failed < _MOST_FAILED and (begun := time.monotonic()) < until:
        group = left.pop()
        if len(group) > size:
            left.append(group[size:])
        chunk = group[:size]
        half = len(chunk) // 2
        try:
            budget.check()
            counted = read(chunk)
        except OverBudgetError:
            break
        except Exception:  # one of the footers cannot be read
            failed += 1
            if half:
                left += [chunk[half:], chunk[:half]]
            else:
                rows.append(None)
            continue
        rows += [count for count, _ in counted]
        widest = max(widest, *(columns for _, columns in counted))
        size = min(most, _next_size(len(chunk), time.monotonic() - begun, widest))
    return rows


def _next_size(files, seconds, widest):
    """Give the number of files for the next call, so that it is short and fits in memory.

    :param files: the number of files of the last call
    :param seconds: the time that it took
    :param widest: the largest number of column chunks of one file
    """
    in_time = files * min(_GROWTH, _CALL_SECONDS / max(seconds, 0.001))
    return max(1, min(int(in_time), _COLUMN_CHUNKS // widest))


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
        return self._operator(self._method(_ROW_GROUP, "getRowCount", self._classes.long.TYPE))

    @cached_property
    def column_count(self):
        """The function that gives the number of columns of a row group."""
        of_group = self._method(_ROW_GROUP, "getColumns", self._type(_LIST))
        return self._operator(self._classes.methods.filterReturnValue(of_group, self._list_size))

    @cached_property
    def size(self):
        """The function that gives the number of elements of a list."""
        return self._operator(self._list_size)

    @cached_property
    def _list_size(self):
        return self._method(_LIST, "size", self._classes.int.TYPE)

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
_ROW_GROUP = f"{_PARQUET}.metadata.BlockMetaData"
_LIST = "java.util.List"
