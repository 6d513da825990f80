"""The log of a stream's sink of files to the partitions that one batch wrote.

Below the sink's folder, ``_spark_metadata/<batch>`` names the files that the batch wrote, and each
tenth or so, ``<batch>.compact``, those of all batches until then.
"""

import json
import re

from sparklineage_observer.jvm import (
    key_of,
    plain_path,
    sorted_partitions,
    statuses,
    text_of_file,
    value_of,
)
from sparklineage_observer.records import OverBudgetError

_ENTRY = re.compile(r".*/_spark_metadata/(\d+)(\.compact)?")
_BYTES_PER_FILE = 150  # at least
_BEFORE_THE_PATH = re.compile(r"^[A-Za-z][\w+.-]*:(//[^/]*)?")


class SinkLog:
    """Reads the logs with the driver's own file system and credentials."""

    def __init__(self, classes, hadoop_conf):
        self._classes = classes
        self._conf = hadoop_conf

    def write(self, path, batch, types, began, budget):
        """Describe what a batch wrote.

        :param types: of the columns
        :param began: when a batch without any row began, in ms; it may have been written before
        """
        write = {"node": "FileSink", "format": "files", "path": path, "mode": "append"}
        try:
            files, modified = self._files(path, batch, budget)
        except OverBudgetError as error:
            return {**write, "how": "unknown", "layouts": [], "cut": str(error)}
        found = {}
        for file in [] if began is not None and modified < began else files:
            folder = file.rpartition("/")[0][len(_bare(path)) + 1 :]
            segments = [s for s in folder.split("/") if s]
            columns = tuple(key_of(s) for s in segments)
            found.setdefault(columns, set()).add(tuple(value_of(s) for s in segments))
        layouts = [
            {
                "base": path,
                "dimensions": [
                    {"field": c, "transform": "identity", "type": types.get(c, "")} for c in columns
                ],
                "partitions": sorted_partitions(found[columns]),
            }
            for columns in sorted(found)
        ]
        return {**write, "how": "exact", "layouts": layouts, "numFiles": len(files)}

    def _files(self, path, batch, budget):
        """Give the paths of the files of a batch, and when they were logged."""
        log = self._classes.path(f"{path}/_spark_metadata")
        file_system = log.getFileSystem(self._conf)
        entries = {}
        for name, _, size, modified in statuses(self._classes, file_system.listStatus(log)):
            match = _ENTRY.fullmatch(name)
            if match:
                entries[int(match.group(1))] = (bool(match.group(2)), name, size, modified)
        if batch not in entries:
            message = f"batch {batch} is not in the log of the stream's sink"
            raise OverBudgetError(message)

        def logged(number):
            _, name, size, _ = entries[number]
            budget.check()
            budget.require(size // _BYTES_PER_FILE, "files", "files")
            text = text_of_file(self._classes, file_system, name)
            lines = text.splitlines()[1:]  # the first is the log's version
            return {_bare(plain_path(json.loads(line)["path"])) for line in lines if line}

        files = logged(batch)
        if entries[batch][0]:
            for before in range(batch - 1, -1, -1):
                if before not in entries:
                    message = f"batch {before} is gone from the log of the stream's sink"
                    raise OverBudgetError(message)
                files -= logged(before)
                if entries[before][0]:
                    break
        return files, entries[batch][3]


def _bare(uri):
    """Give the path of a URI."""
    return _BEFORE_THE_PATH.sub("", uri)
