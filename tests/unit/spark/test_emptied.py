"""Which partitions a commit of Delta emptied: those of which it left no file."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files
from tests.unit.spark.test_driver import delta_schema

DAY, OTHER = "1", "2"
ROWS = '["(id#7L < 5)"]'


@pytest.fixture
def delta(monkeypatch):
    """Give the observer's module as the driver has it."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    from sparklineage_observer import delta

    return delta


def action(key, file, day, **more):
    return {key: {"path": file, "partitionValues": {"dt": day}, "dataChange": True, **more}}


def add(file, day=DAY, **more):
    return action("add", file, day, **more)


def remove(file, day=DAY, **more):
    return action("remove", file, day, **more)


def emptied(delta, *commits, operation="DELETE", older=(), **parameters):
    """Give the days that the last commit emptied, as the commits before it show.

    :param older: the versions that are gone from the log
    """
    found, schema = delta._Emptied(), delta._Schema()
    *before, last = commits
    info = {"operation": operation, "operationParameters": parameters}
    write = delta._write("/t", len(before), info, last)
    found.expect(write, info, last)
    for version in reversed(range(len(before))):
        if found.is_looking and version not in older:
            found.learn(version, before[version])
    found.describe()
    schema.learn(delta_schema("dt"))
    schema.describe(write)
    assert all(d["type"] == "string" for o in write["emptied"] for d in o["dimensions"])
    return [values[0] for layout in write["emptied"] for values in layout["partitions"]]


PLANTED = [add("dt=1/a"), add("dt=1/b"), add("dt=2/c", OTHER)]


@pytest.mark.parametrize(
    ("commits", "parameters", "days"),
    [
        ([PLANTED, [remove("dt=1/a"), remove("dt=1/b")]], {}, [DAY]),
        ([PLANTED, [remove("dt=1/a")]], {"predicate": ROWS}, []),
        (
            [PLANTED, [remove("dt=1/a")], [remove("dt=1/b")]],
            {"predicate": ROWS},
            [DAY],
        ),
        ([PLANTED, [remove("dt=1/a"), add("dt=1/d")]], {}, []),
        ([[], [remove("dt=1/a")]], {"predicate": '["(dt#7 = 1)"]'}, [DAY]),
        ([[], [remove("dt=1/a")]], {"predicate": '["((dt#7 = 1) AND (id#8L = 5))"]'}, [DAY]),
        ([PLANTED, [remove("dt=1/a"), add("dt=2/e", OTHER)]], {"mode": "Overwrite"}, [DAY]),
        (
            [PLANTED, [remove("dt=1/b"), add("dt=1/d", dataChange=False)], [remove("dt=1/a")]],
            {"predicate": ROWS},
            [],
        ),
    ],
    ids=[
        "all its files, as the log shows",
        "a part of its files",
        "its last file",
        "a file rewritten",
        "whole partitions by value",
        "by value and by rows, all its files",
        "an overwrite of the table",
        "a file that was moved is left",
    ],
)
def test_a_partition_is_emptied_if_no_file_of_it_is_left(delta, commits, parameters, days):
    assert emptied(delta, *commits, **parameters) == days


@pytest.mark.parametrize(
    ("predicate", "days"),
    [(ROWS, []), ('["(dt#7 = 1)"]', [DAY]), ("[]", [DAY])],
    ids=["rows", "a partition", "everything"],
)
def test_what_older_commits_would_show_is_not_guessed(delta, predicate, days):
    commits = [PLANTED, [remove("dt=1/a"), remove("dt=1/b")]]
    assert emptied(delta, *commits, older=[0], predicate=predicate) == days


@pytest.mark.parametrize(
    ("folder", "value"),
    [
        ("at=2024-05-06%2001%253A30%253A00", "2024-05-06 01:30:00"),
        ("Ab", "2024-05-05T23:30:00.000000Z"),  # a folder with a random name
    ],
)
def test_a_time_is_that_of_the_folder_which_a_scan_shows(delta, folder, value):
    values = {"at": "2024-05-05T23:30:00.000000Z"}
    file = {"path": f"{folder}/f.parquet", "partitionValues": values, "dataChange": True}
    write = delta._write("/t", 1, {"operation": "WRITE"}, [{"add": file}, {"remove": file}])
    for key in ("layouts", "removed"):
        [layout] = write[key]
        assert layout["partitions"] == [[value]]
