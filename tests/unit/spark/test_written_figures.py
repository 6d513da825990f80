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


def rows_of(names, unreadable=(), limits=""):
    """Count files that have as many rows as their numbers say; and the calls that it took."""
    from sparklineage_observer import footers, records

    listing, calls = object(), []

    class Counted(footers.Footers):
        def _of_parquet(self, files):
            calls.append(len(files))
            if unreadable & {file.path for file in files}:
                message = "it is not a Parquet file"
                raise RuntimeError(message)
            return [int(file.path.partition(".")[0]) for file in files]

    files = [footers.ListedFile(name, listing, at) for at, name in enumerate(names)]
    found = Counted(None, None).rows(files, records.Budget(records.Limits(limits)))
    return found, calls


MANY = [f"{number}.parquet" for number in range(450)]


def test_many_footers_are_read_in_few_calls():
    assert rows_of(MANY, set()) == ([*range(450)], [200, 200, 50])


@pytest.mark.parametrize("bad", [{"0.parquet"}, {"449.parquet"}, {"201.parquet", "300.parquet"}])
def test_a_footer_that_cannot_be_read_costs_no_other_file_its_rows(bad):
    found, _ = rows_of(MANY, bad)
    assert found == [None if f"{number}.parquet" in bad else number for number in range(450)]


def test_where_no_footer_can_be_read_the_calls_end():
    found, calls = rows_of(MANY, set(MANY))
    assert found == [None] * 450
    assert len(calls) < 30


@pytest.mark.parametrize(
    ("names", "limits"),
    [
        pytest.param(["1.csv", "2.csv"], "", id="of a format without footers"),
        pytest.param(MANY, "footers=449", id="too many"),
        pytest.param(MANY, "footer_seconds=0", id="no time"),
    ],
)
def test_rows_that_are_not_counted_are_not_known(names, limits):
    assert rows_of(names, set(), limits) == ([None] * len(names), [])
