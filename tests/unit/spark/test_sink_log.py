"""The log of a stream's sink of files: which partitions one batch wrote."""

from __future__ import annotations

import json
import sys

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files

SINK = "file:/lake/out"


@pytest.fixture
def write(monkeypatch):
    """Give what a batch wrote, by a log of {entry: files}."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    for name in [m for m in sys.modules if m.startswith("sparklineage_observer")]:
        monkeypatch.delitem(sys.modules, name)
    from sparklineage_observer.records import Budget, Limits
    from sparklineage_observer.streams import SinkLog

    def written(entries, batch, *, types=(), began=None, limits=""):
        log = SinkLog(Folder(entries), None)
        return log.write(SINK, batch, dict(types), began, Budget(Limits(limits)))

    return written


class Folder:
    """The file system of a driver, with one folder; each entry was written at its 1000th ms."""

    def __init__(self, entries):
        self.entries = {
            name: "v1\n" + "\n".join(json.dumps({"path": f"file:///lake/out/{f}"}) for f in files)
            for name, files in entries.items()
        }

    def path(self, path):
        self.asked = path
        return self

    def getFileSystem(self, _conf):  # noqa: N802  (Java's name)
        return self

    def listStatus(self, _path):  # noqa: N802  (Java's name)
        return [self.asked]

    def text_of(self, folders):
        return ", ".join(
            f"FileStatus{{path={folders[0]}/{name}; isDirectory=false; length={len(text)}; "
            "modification_time=1000; z}"
            for name, text in self.entries.items()
        )

    def open(self, _path):
        return self

    def content_of(self, _stream, _encoding):
        return self.entries[self.asked.rpartition("/")[2]]

    def close(self):
        pass


def partitions(write):
    return [p for layout in write["layouts"] for p in layout["partitions"]]


def test_the_files_of_a_batch_are_its_partitions(write):
    files = ["dt=1/r=a%2520b/part-0", "dt=1/r=__HIVE_DEFAULT_PARTITION__/part-1"]
    found = write({"0": ["dt=0/r=x/part-9"], "1": files}, 1, types={"dt": "integer"})
    assert partitions(found) == [["1", None], ["1", "a b"]]
    assert (found["how"], found["mode"], found["numFiles"]) == ("exact", "append", 2)
    [layout] = found["layouts"]
    assert layout["base"] == SINK
    assert [(d["field"], d["type"]) for d in layout["dimensions"]] == [("dt", "integer"), ("r", "")]


def test_a_sink_without_partitions_has_one(write):
    assert partitions(write({"0": ["part-0", "part-1"]}, 0)) == [[]]


def test_a_batch_without_rows_wrote_nothing(write):
    assert partitions(write({"0": []}, 0)) == []


@pytest.mark.parametrize(
    ("entries", "batch"),
    [
        pytest.param({"0.compact": ["dt=2/f"]}, 0, id="no batch before"),
        pytest.param({"0": ["dt=0/a"], "1.compact": ["dt=0/a", "dt=2/f"]}, 1, id="one before"),
        pytest.param(
            {
                **{"9.compact": ["dt=0/a", "dt=1/b"], "10": ["dt=2/c"]},
                "11.compact": ["dt=0/a", "dt=1/b", "dt=2/c", "dt=2/f"],
            },
            11,
            id="compacted before",
        ),
    ],
)
def test_a_compacted_entry_has_the_files_of_batches_before_it(write, entries, batch):
    assert partitions(write(entries, batch)) == [["2"]]


@pytest.mark.parametrize(
    ("entries", "limits", "why"),
    [
        pytest.param({"0": ["f"]}, "", "batch 1 is not in the log", id="no entry"),
        pytest.param({"1.compact": ["f"]}, "", "batch 0 is gone from the log", id="one deleted"),
        pytest.param({"1": ["f" * 999]}, "files=3", "more than the limit of 3", id="too long"),
    ],
)
def test_what_the_log_does_not_show_is_unknown(write, entries, limits, why):
    found = write(entries, 1, limits=limits)
    assert (found["how"], found["layouts"]) == ("unknown", [])
    assert why in found["cut"]


def test_an_empty_batch_that_an_earlier_run_had_written_is_not_written_again(write):
    assert partitions(write({"0": ["dt=1/f"]}, 0, began=2000)) == []
    assert partitions(write({"0": ["dt=1/f"]}, 0, began=500)) == [["1"]]
