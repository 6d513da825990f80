"""Rows and bytes of written partitions: by Delta's log, by Iceberg's manifests, by footers."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    """Let tests import the observer's modules as the driver does."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))


# --- Delta ----------------------------------------------------------------------------------------


def add(file, day, rows=None, size=10, **more):
    stats = {} if rows is None else {"stats": json.dumps({"numRecords": rows})}
    values = {"partitionValues": {"dt": day}, "dataChange": True, "size": size}
    return {"add": {"path": file, **values, **stats, **more}}


def remove(file, day):
    return {"remove": {"path": file, "partitionValues": {"dt": day}, "dataChange": True}}


def layout_of(*actions):
    from sparklineage_observer import delta

    [layout] = delta._write("/t", 3, {"operation": "WRITE"}, list(actions))["layouts"]
    return layout


def test_files_of_a_commit_are_summed_by_partition():
    layout = layout_of(add("dt=2/a", "2", 5), add("dt=1/b", "1", 2), add("dt=2/c", "2", 1, 7))
    assert layout["partitions"] == [["1"], ["2"]]
    assert layout["rows"] == [2, 6]
    assert layout["bytes"] == [10, 17]


def test_a_partition_with_a_file_without_statistics_has_bytes_alone():
    layout = layout_of(add("dt=1/a", "1", 5), add("dt=1/b", "1"), add("dt=2/c", "2", 4))
    assert (layout["rows"], layout["bytes"]) == ([None, 4], [20, 10])


@pytest.mark.parametrize("stats", ["", "{", "{}", "[]", "null"])
def test_statistics_that_cannot_be_read_give_bytes_alone(stats):
    layout = layout_of(add("dt=1/a", "1", stats=stats))
    assert "rows" not in layout
    assert layout["bytes"] == [10]


@pytest.mark.parametrize(
    "unknown",
    [
        pytest.param({"stats": '{"numRecords": null}'}, id="rows"),
        pytest.param({"deletionVector": {"cardinality": None}}, id="deleted rows"),
    ],
)
def test_a_number_that_is_null_costs_no_other_file_its_rows(unknown):
    layout = layout_of(add("dt=1/a", "1", 5, **unknown), add("dt=2/b", "2", 4))
    assert (layout["rows"], layout["bytes"]) == ([None, 4], [10, 10])


def test_a_file_that_only_lost_rows_adds_none():
    """With deletion vectors, DELETE and UPDATE remove and add the same file."""
    marked = {"deletionVector": {"cardinality": 3}}
    layout = layout_of(remove("dt=1/a", "1"), add("dt=1/a", "1", 9, **marked), add("b", "2", 4))
    assert (layout["rows"], layout["bytes"]) == ([0, 4], [0, 10])


def test_rows_that_are_marked_as_deleted_do_not_count():
    """A table may be restored with a file's deletion vector."""
    assert layout_of(add("dt=1/a", "1", 9, deletionVector={"cardinality": 3}))["rows"] == [6]


# --- Iceberg --------------------------------------------------------------------------------------


class Listed(list):
    """A list of Java."""

    def add(self, file):
        self.append(file)

    def size(self):
        return len(self)

    def get(self, position):
        return self[position]

    def toString(self):  # noqa: N802
        return ", ".join(file.text for file in self)


def data_file(value, rows, size, text=None):
    partition = SimpleNamespace(
        toString=lambda: f"PartitionData{{n={value}}}", size=lambda: 1, get=lambda _: value
    )
    fields = f"record_count={rows}, file_size_in_bytes={size}, column_sizes=null"
    return SimpleNamespace(
        text=text or f"spec_id=0, partition=PartitionData{{n={value}}}, {fields}",
        specId=lambda: 0,
        partition=lambda: partition,
        recordCount=lambda: rows,
        fileSizeInBytes=lambda: size,
    )


@pytest.mark.parametrize("text", [None, "of another version"])
def test_data_files_are_summed_and_files_of_deletes_are_not(monkeypatch, text):
    from sparklineage_observer import iceberg, records

    monkeypatch.setattr(iceberg, "each", iter)
    monkeypatch.setattr(iceberg, "_dimensions", lambda _: [])
    path = SimpleNamespace(partitionToPath=lambda p: f"n={p.get(0)}")
    table = SimpleNamespace(specs=lambda: {0: path})
    classes = SimpleNamespace(array_list=Listed)
    budget = records.Budget(records.Limits())
    collected = iceberg._Collected(table)
    data = [data_file(2, 5, 50, text), data_file(1, 1, 10, text), data_file(2, 2, 20, text)]
    collected.add_all(data, classes, budget, counted=True)
    collected.add_all([data_file(3, 4, 40, text)], classes, budget)
    [layout] = collected.counted_layouts("/t")
    assert layout["partitions"] == [["1"], ["2"], ["3"]]
    assert (layout["rows"], layout["bytes"]) == ([1, 7, 0], [10, 70, 0])
    assert "rows" not in collected.layouts("/t")[0]


# --- footers --------------------------------------------------------------------------------------


class Store:
    """Files that have as many rows as their numbers say, read with a clock that only reads move on.

    calls: the number of files of each call.

    :param unreadable: the names of the files whose footers cannot be read
    :param columns: the number of column chunks of a file, or a function that gives it by its name
    :param seconds: the time that one file takes
    """

    def __init__(self, monkeypatch, unreadable=(), columns=1, seconds=0.0):
        from sparklineage_observer import footers, records

        self.calls, self.now = [], 0.0
        self._unreadable, self._seconds = set(unreadable), seconds
        self._columns = columns if callable(columns) else lambda _: columns
        clock = SimpleNamespace(monotonic=lambda: self.now, thread_time=lambda: 0.0)
        monkeypatch.setattr(footers, "time", clock)
        monkeypatch.setattr(records, "time", clock)
        self._footers = footers.Footers(self, None)
        monkeypatch.setattr(self._footers, "_of_parquet", self._read)

    def rows(self, names, limits=""):
        from sparklineage_observer import footers, records

        listing = object()
        files = [footers.ListedFile(name, listing, at) for at, name in enumerate(names)]
        return self._footers.rows(files, records.Budget(records.Limits(limits)))

    def _read(self, files):
        names = [file.path for file in files]
        self.calls.append(len(names))
        self.now += self._seconds * len(names)
        if self._unreadable & set(names):
            message = "its footer cannot be read"
            raise RuntimeError(message)
        return [(int(name.partition(".")[0]), self._columns(name)) for name in names]

    # What a reader of ORC is made with:

    def path(self, name):
        return name

    def orc_options(self, _conf):
        return None

    def orc_reader(self, name, _options):
        [(rows, _)] = self._read([SimpleNamespace(path=name)])
        return SimpleNamespace(getNumberOfRows=lambda: rows, close=lambda: None)


MANY = [f"{number}.parquet" for number in range(450)]


def test_many_footers_are_read_in_few_calls(monkeypatch):
    store = Store(monkeypatch)
    assert store.rows(MANY) == [*range(450)]
    assert store.calls == [1, 8, 64, 200, 177]


def test_few_footers_of_wide_files_are_in_memory_at_a_time(monkeypatch):
    store = Store(monkeypatch, columns=2000 * 4)
    assert store.rows(MANY[:9]) == [*range(9)]
    assert store.calls == [1, 2, 2, 2, 2]


def test_the_widest_file_so_far_is_the_measure(monkeypatch):
    columns = {"5.parquet": 10_000, "10.parquet": 30_000}
    store = Store(monkeypatch, columns=lambda name: columns.get(name, 1))
    assert store.rows(MANY[:14]) == [*range(14)]
    assert store.calls == [1, 8, 2, 1, 1, 1]


@pytest.mark.parametrize("end", ["parquet", "orc"])
def test_of_a_slow_store_the_rows_so_far_are_known(monkeypatch, end):
    store = Store(monkeypatch, seconds=0.125)
    known, most = {"parquet": (41, 4), "orc": (40, 1)}[end]
    assert store.rows([f"{n}.{end}" for n in range(450)]) == [
        *range(known),
        *[None] * (450 - known),
    ]
    assert max(store.calls) == most
    assert store.now <= 5.5


def test_all_writes_of_an_application_have_one_limit_of_time(monkeypatch):
    store = Store(monkeypatch, seconds=0.125)
    counted = [store.rows(MANY) for _ in range(100)]
    assert counted[0][:40] == counted[9][:40] == [*range(40)]
    assert counted[99] == [None] * 450
    assert 60 <= store.now <= 60.5


def test_the_time_of_the_query_is_checked_for_each_file_of_orc(monkeypatch):
    store = Store(monkeypatch, seconds=0.5)
    rows = store.rows([f"{n}.orc" for n in range(10)], "seconds=1")
    assert rows == [0, 1, 2, 3, *[None] * 6]


@pytest.mark.parametrize("bad", [{"0.parquet"}, {"449.parquet"}, {"201.parquet", "300.parquet"}])
def test_a_footer_that_cannot_be_read_costs_no_other_file_its_rows(monkeypatch, bad):
    found = Store(monkeypatch, bad).rows(MANY)
    assert found == [None if f"{number}.parquet" in bad else number for number in range(450)]


def test_where_no_footer_can_be_read_the_calls_end(monkeypatch):
    store = Store(monkeypatch, MANY)
    assert store.rows(MANY) == [None] * 450
    assert len(store.calls) < 30


@pytest.mark.parametrize(
    ("names", "limits"),
    [
        pytest.param(["1.csv", "2.csv"], "", id="of a format without footers"),
        pytest.param(MANY, "footers=449", id="too many"),
        pytest.param(MANY, "footer_seconds=0", id="no time"),
        pytest.param(MANY, "total_footer_seconds=0", id="no time for all writes"),
    ],
)
def test_rows_that_are_not_counted_are_not_known(monkeypatch, names, limits):
    store = Store(monkeypatch)
    assert store.rows(names, limits) == [None] * len(names)
    assert store.calls == []
