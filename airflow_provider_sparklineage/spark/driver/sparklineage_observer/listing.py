"""The files in the partition folders of a table, by few calls to its file system.

Level by level and some folders at a time: a call cannot be stopped. What it gives stays in the JVM
where only the next call needs it, and comes over as one text where it is looked at.
"""

import re

from sparklineage_observer.jvm import statuses

CHUNK = 400  # folders in one listing call
_SEPARATOR = "\x01"
_GLOB = re.compile(r"([\\{}\[\]*?,^])")


class Folders:
    """The folders of one table's partitions."""

    def __init__(self, classes, hadoop_conf, base, budget):
        self._classes = classes
        self._budget = budget
        self._base = base
        self._file_system = classes.path(base).getFileSystem(hadoop_conf)

    def files(self, patterns, first):
        """Give the files below, those in the folders that were changed last first.

        :param patterns: of the folders' names, level by level
        :param first: how many folders are listed at first, if there are more
        :return: statuses, for each call to the file system
        """
        for paths in self._folders(patterns, first):
            listed = self._listed(paths)
            self._budget.require(_count(listed), "files", "files")
            yield self._statuses(listed)

    def _folders(self, patterns, first):
        """Give the folders of the last level, as a Path[] for each call that lists them."""
        self._budget.check()
        if not patterns:
            yield self._paths([self._base])
            return
        matching = self._classes.pattern(patterns[-1])
        found, count = [], 0
        for paths in self._folders(patterns[:-1], CHUNK):
            listed = self._listed(paths, matching)
            # Before it becomes a text, which takes longer than the listing.
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
        """List what is in some folders, and fits a filter of paths: a list of FileStatus[]."""
        try:
            return [self._file_system.listStatus(paths, *matching)]
        except Exception as error:
            if not _is_gone(error):
                raise
        listed = []
        for path in paths:  # one of them was deleted meanwhile
            self._budget.check()
            try:
                listed.append(self._file_system.listStatus(path, *matching))
            except Exception as error:
                if not _is_gone(error):
                    raise
        return listed

    def _statuses(self, listed):
        return (status for array in listed for status in statuses(self._classes, array))

    def _paths(self, paths):
        return self._classes.paths(self._classes.split(_SEPARATOR.join(paths), _SEPARATOR))


def escaped(name):
    """Give the pattern that fits a name alone."""
    return _GLOB.sub(r"\\\1", name)


def _count(listed):
    return sum(map(len, listed))


def _is_gone(error):
    return "FileNotFoundException" in str(error)
