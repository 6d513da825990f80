"""Counts the rows of files that a query wrote, by the footers of Parquet and ORC.

A footer is at the end of a file and has the number of its rows; no data is read. The number is not
known for a file of another format, or if a footer cannot be read, because it is encrypted or its
file is gone meanwhile.
"""

import json
import time
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
        classes, get = self._classes, _Functions(self._classes)
        positions = classes.split_list(",".join(str(file.position) for file in files), ",")
        statuses = classes.array_list(positions)
        statuses.replaceAll(get.element_of(files[0].statuses))
        listed = classes.array_list(classes.parquet_footers(self._conf, statuses, False))
        footer = listed.get(0)
        metadata = footer.getParquetMetadata()
        listed.replaceAll(get.answer(footer, "getParquetMetadata", metadata.getClass()))
        listed.replaceAll(get.answer(metadata, "getBlocks", get.type("java.util.List")))
        groups = classes.array_list()  # the row groups of all files
        listed.forEach(get.adder_to(groups))
        listed.replaceAll(get.size())
        if groups.size():
            groups.replaceAll(get.answer(groups.get(0), "getRowCount", classes.long.TYPE))
        counts = iter(json.loads(groups.toString()))
        sizes = json.loads(listed.toString())
        return [sum(next(counts) for _ in range(size)) for size in sizes]

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
    """Makes functions of Java that the JVM applies to the elements of a list by itself."""

    def __init__(self, classes):
        self._classes = classes
        self._lookup = classes.methods.publicLookup()

    def type(self, name):
        """Give a class of Java by its name."""
        return self._classes.type(name)

    def element_of(self, array):
        """Give the function that finds an element of an array by its place, which is a text."""
        classes = self._classes
        parse = self._lookup.findStatic(
            self.type("java.lang.Integer"),
            "parseInt",
            classes.signature(classes.int.TYPE, self.type("java.lang.String")),
        )
        element = classes.methods.arrayElementGetter(array.getClass()).bindTo(array)
        return self._operator(classes.methods.filterReturnValue(parse, element))

    def answer(self, example, method, result):
        """Give the function that calls a method without arguments.

        :param example: an object of the class that has the method
        :param method: the method's name
        :param result: the class of its result
        """
        signature = self._classes.signature(result)
        return self._operator(self._lookup.findVirtual(example.getClass(), method, signature))

    def size(self):
        """Give the function that counts the elements of a list."""
        signature = self._classes.signature(self._classes.int.TYPE)
        handle = self._lookup.findVirtual(self.type("java.util.List"), "size", signature)
        return self._operator(handle)

    def adder_to(self, collection):
        """Give the function that adds all elements of a list to a collection."""
        classes = self._classes
        signature = classes.signature(classes.boolean.TYPE, self.type("java.util.Collection"))
        add = self._lookup.bind(collection, "addAll", signature)
        return classes.as_interface(self.type("java.util.function.Consumer"), add)

    def _operator(self, handle):
        operator = self.type("java.util.function.UnaryOperator")
        return self._classes.as_interface(operator, handle)
