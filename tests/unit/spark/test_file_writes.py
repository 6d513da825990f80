"""Which partitions a write of files wrote, found in a table's folders by few calls."""

from __future__ import annotations

import fnmatch
import sys
from types import SimpleNamespace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.spark.submit import submitted_files

TABLE = "file:/t"
NOW = 100_001  # ms; a write is looked for that began just before
OURS, THEIRS, OLDER = (str(UUID(int=number)) for number in range(3))


@pytest.fixture(autouse=True)
def observer(monkeypatch):
    """Let tests import the observer's modules as the driver does, and forget them afterwards."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    yield
    for name in [m for m in sys.modules if m.startswith("sparklineage_observer")]:
        monkeypatch.delitem(sys.modules, name)


class Lake:
    """A file system, and what the observer calls of the JVM around it; it counts the calls.

    :param files: modified at in ms by path; all have a length of 3 bytes
    """

    def __init__(self, files, folders=(), gone=()):
        self.gone = set(gone)
        self.calls = []
        """How many folders each listing call was for."""
        self.texts = 0
        """How often an answer became a text."""
        self.after_call = lambda: None
        self.entries = {}
        for path, modified in {**dict.fromkeys(folders), **files}.items():
            parent, _, _ = path.rpartition("/")
            kind = "true; " if modified is None else "false; length=3; replication=1; "
            self._add(path, f"{kind}modification_time={modified or 1}; z")
            while parent != TABLE.rpartition("/")[0]:
                newest = max(modified or 1, self._modified(parent))
                self._add(parent, f"true; modification_time={newest}; z")
                parent, _, _ = parent.rpartition("/")

    def _add(self, path, text):
        parent, _, name = path.rpartition("/")
        self.entries.setdefault(parent, {})[name] = text

    def _modified(self, path):
        parent, _, name = path.rpartition("/")
        text = self.entries.get(parent, {}).get(name, "=0;")
        return int(text.rpartition("=")[2].partition(";")[0])

    def path(self, path):
        return SimpleNamespace(name=path, getFileSystem=lambda _conf: self)

    @staticmethod
    def split(text, separator):
        return text.split(separator)

    @staticmethod
    def paths(texts):
        return list(texts)

    @staticmethod
    def paths_of(statuses):
        return [path for path, _ in statuses]

    @staticmethod
    def pattern(pattern):
        assert pattern.count("*") <= 1
        return lambda name: fnmatch.fnmatchcase(name, pattern)

    @staticmethod
    def partition_folder(column, value):
        return f"{column}={value}"

    def text_of(self, statuses):
        self.texts += 1
        printed = ", ".join(f"FileStatus{{path={p}; isDirectory={t}}}" for p, t in statuses)
        return f"Array({printed})"

    def listStatus(self, paths, matching=lambda _name: True):  # noqa: N802  (Java's name)
        paths = [paths] if isinstance(paths, str) else paths
        self.calls.append(len(paths))
        self.after_call()
        found = []
        for path in paths:
            if path in self.gone or path not in self.entries:
                message = f"java.io.FileNotFoundException: File {path} does not exist"
                raise RuntimeError(message)
            found += [(f"{path}/{n}", t) for n, t in self.entries[path].items() if matching(n)]
        return found


def file_in(folder, identity=OURS, task=0):
    return f"{TABLE}/{folder}/part-{task:05}-{identity}.c000.parquet"


def write_of(*, parts, files=None, static=(), mode="append", columns=("p",)):
    layout = {"base": TABLE, "dimensions": [{"field": c} for c in columns], "partitions": []}
    return {
        "path": TABLE,
        "mode": mode,
        "static": dict(static),
        "numFiles": parts if files is None else files,
        "numOutputBytes": 3 * (parts if files is None else files),
        "numParts": parts,
        "layouts": [layout],
    }


def found_by(lake, write, limits=""):
    """Look for a write; its partitions."""
    from sparklineage_observer.file_writes import FileWrites
    from sparklineage_observer.records import Budget, Limits

    budget = Budget(Limits(limits))
    [layout] = write["layouts"]
    FileWrites(lake, None)._find(write, layout, NOW - 1, budget)
    return layout["partitions"]


@given(
    ours=st.sets(st.integers(0, 12), min_size=1),
    theirs=st.sets(st.integers(0, 12)),
    older=st.sets(st.integers(0, 12)),
    size=st.integers(1, 5),
)
def test_a_write_is_found_exactly_however_many_folders_a_call_lists(ours, theirs, older, size):
    """Of another write at the same time, here of two files in each folder, and of older ones."""
    from sparklineage_observer import file_writes

    files = {file_in(f"p={value}", OLDER): 1 for value in older}
    files |= {file_in(f"p={value}"): NOW for value in ours}
    files |= {file_in(f"p={v}", THEIRS, task): NOW for v in theirs for task in (0, 1)}
    write = write_of(parts=len(ours))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(file_writes, "CHUNK", size)
        patched.setattr(file_writes, "CHUNK", size)
        lake = Lake(files)
        found = found_by(lake, write)
    assert write["how"] == "exact"
    assert found == [[value] for value in sorted(map(str, ours))]
    assert write["shared"] == [[v] for v in sorted(map(str, ours & (theirs | older)))]
    assert max(lake.calls) <= size


def test_two_thousand_partitions_are_listed_by_six_calls_with_a_text_each():
    files = {file_in(f"p={n}"): NOW for n in range(2000)}
    lake = Lake(files)
    assert len(found_by(lake, write_of(parts=2000, mode="create"))) == 2000
    assert lake.calls == [1, *[400] * 5]
    assert lake.texts == len(lake.calls)


def test_an_append_to_a_large_table_lists_its_newest_folders_alone():
    older = {file_in(f"p={n}", OLDER): n + 1 for n in range(5000)}
    lake = Lake({**older, file_in("p=new"): NOW})
    write = write_of(parts=1)
    assert found_by(lake, write) == [["new"]]
    assert (write["how"], lake.calls) == ("exact", [1, 16])


def test_folders_become_a_text_only_where_some_of_them_are_chosen():
    files = {file_in(f"p={p}/q={q}"): NOW for p in range(3) for q in range(3)}
    lake = Lake(files)
    found = found_by(lake, write_of(parts=9, columns=("p", "q")))
    assert found == [[str(p), str(q)] for p in range(3) for q in range(3)]
    assert (lake.calls, lake.texts) == ([1, 3, 9], 1)


def test_a_file_that_is_named_like_a_folder_is_none():
    lake = Lake({file_in("p=1"): NOW, f"{TABLE}/p=2": NOW, f"{TABLE}/_SUCCESS": NOW})
    assert found_by(lake, write_of(parts=1)) == [["1"]]


@pytest.mark.parametrize("number", [3, 500])
def test_a_folder_that_is_deleted_meanwhile_has_nothing_in_it(number):
    files = {file_in(f"p={n:03}"): NOW for n in range(number)}
    lake = Lake(files, gone=[f"{TABLE}/p=001"])
    write = write_of(parts=number)
    found = found_by(lake, write)
    assert (write["how"], len(found), ["001"] in found) == ("listing", number - 1, False)


def found_late(lake, *writes):
    """Look for writes one after the other, once all of them are done; their partitions."""
    from sparklineage_observer.file_writes import FileWrites
    from sparklineage_observer.records import Budget, Limits

    known = FileWrites(lake, None)
    for began, write in writes:
        known._find(write, write["layouts"][0], began, Budget(Limits()))
    return [(write["how"], write["layouts"][0]["partitions"]) for _, write in writes]


@pytest.mark.parametrize(
    ("parts", "found"), [(1, ("unknown", [])), (2, ("exact", [["1"], ["2"]]))], ids=["less", "same"]
)
def test_a_write_that_was_overwritten_before_anybody_looked_is_not_a_larger_one(parts, found):
    """Or the files of the later write would be taken for those of the earlier one."""
    lake = Lake({file_in("p=1"): NOW, file_in("p=2"): NOW})
    first, second = (write_of(parts=n, mode="dynamic") for n in (parts, 2))
    late = found_late(lake, (NOW - 500, first), (NOW - 1, second))
    assert late == [found, ("exact", [["1"], ["2"]])]


def test_of_a_write_that_was_overwritten_in_part_the_rest_is_found():
    lake = Lake({file_in("p=1", OLDER): NOW - 400, file_in("p=2"): NOW, file_in("p=3"): NOW})
    first, second = write_of(parts=2, mode="dynamic"), write_of(parts=2, mode="dynamic")
    first["numOutputBytes"] = 5
    late = found_late(lake, (NOW - 500, first), (NOW - 1, second))
    assert late == [("listing", [["1"]]), ("exact", [["2"], ["3"]])]


def test_what_must_not_be_listed_is_an_error():
    lake = Lake({file_in("p=1"): NOW})

    def refused():
        message = "org.apache.hadoop.security.AccessControlException: Permission denied"
        raise RuntimeError(message)

    lake.after_call = refused
    with pytest.raises(RuntimeError, match="Permission denied"):
        found_by(lake, write_of(parts=1))


@pytest.mark.parametrize(
    ("static", "calls", "expected"),
    [
        ({"p": "1", "q": "2"}, [1], [["1", "2"]]),
        ({"p": "1"}, [1, 1], [["1", "2"]]),
        ({"p": None, "q": "2"}, [1, 2, 2], [["1", "2"], ["2", "2"]]),
        ({"q": "2"}, [1, 2, 3], [["1", "2"], ["2", "2"], ["2", "3"]]),
    ],
    ids=["all", "the first", "null and another", "not the first"],
)
def test_folders_of_values_that_the_command_names_are_not_searched_for(static, calls, expected):
    files = {file_in(f): NOW for f in ("p=1/q=2", "p=2/q=2", "p=2/q=3")}
    lake = Lake(files)
    write = write_of(parts=3, static=static, columns=("p", "q"))
    assert found_by(lake, write) == expected
    assert lake.calls == calls


def test_a_hive_write_of_static_values_is_exact_though_it_counts_no_partitions():
    lake = Lake({file_in("p=1"): NOW})
    write = write_of(parts=0, files=1, static={"p": "1"})
    assert found_by(lake, write) == [["1"]]
    assert write["how"] == "exact"


def test_a_write_of_static_values_is_known_from_the_command_alone():
    """Its partition may have a location of its own, which is not below the table's."""
    write = write_of(parts=1, static={"p": "1"})
    assert found_by(Lake({}, folders=[TABLE]), write) == [["1"]]
    assert "shared" not in write


@pytest.mark.parametrize(
    ("static", "files", "removed"),
    [
        ({"p": "1", "q": "2"}, 0, [["1", "2"]]),
        ({"p": "1"}, 0, [["1"]]),
        ({"p": None}, 0, [[None]]),
        ({"p": "1", "q": "2"}, 1, [["1", "2"]]),  # Hive's writer makes a file without rows
    ],
)
def test_a_partition_that_is_overwritten_by_no_rows_is_emptied(static, files, removed):
    lake = Lake({}, folders=[TABLE])
    write = write_of(parts=0, files=files, static=static, mode="static", columns=("p", "q"))
    write["numOutputRows"] = 0
    assert found_by(lake, write) == []
    [layout] = write["emptied"]
    assert [d["field"] for d in layout["dimensions"]] == ["p", "q"][: len(static)]
    assert layout["partitions"] == removed
    assert lake.calls == []


def test_an_append_of_no_rows_to_a_partition_empties_nothing():
    write = write_of(parts=0, static={"p": "1"})
    write["numOutputRows"] = 0
    assert found_by(Lake({}, folders=[TABLE]), write) == []
    assert "emptied" not in write


class Some:
    """An Option, a Seq or a Map of Scala."""

    def __init__(self, *values):
        self._values = values

    def isDefined(self):  # noqa: N802
        return bool(self._values)

    def get(self):
        return self._values[0]

    def size(self):
        return len(self._values)

    def apply(self, position):
        return self._values[position]

    def mkString(self, separator):  # noqa: N802
        return separator.join(self._values)

    def toSeq(self):  # noqa: N802
        return Some(
            *(SimpleNamespace(_1=lambda p=p: p[0], _2=lambda p=p: p[1]) for p in self._values)
        )


def described(kind, **command):
    """Describe a command about a table of the columns ``dt`` and ``hour``, as a write."""
    from sparklineage_observer.file_writes import of_partitions

    def normalized(spec, *_):
        return Some(*((column.lower(), value) for column, value in spec._values))

    table = SimpleNamespace(
        location=lambda: SimpleNamespace(toString=lambda: f"{TABLE}/"),
        partitionColumnNames=lambda: Some("dt", "hour"),
        partitionSchema=lambda: None,
        identifier=lambda: SimpleNamespace(unquotedString=lambda: "db.t"),
    )
    catalog = SimpleNamespace(getTableMetadata=lambda _: table)
    conf = SimpleNamespace(resolver=lambda: None)
    state = SimpleNamespace(catalog=lambda: catalog, conf=lambda: conf)
    session = SimpleNamespace(sessionState=lambda: state)
    named = {"tableName": "t", "table": "t"} | command
    calls = SimpleNamespace(**{key: lambda value=value: value for key, value in named.items()})
    write = of_partitions(kind, calls, session, SimpleNamespace(normalized_partition=normalized))
    return {
        key: [
            dict(zip((d["field"] for d in layout["dimensions"]), values, strict=True))
            for layout in write.get(key, ())
            for values in layout["partitions"]
        ]
        for key in ("layouts", "emptied")
    } | {"mode": write["mode"]}


@pytest.mark.parametrize(
    ("kind", "command", "written", "emptied", "mode"),
    [
        pytest.param(
            "AlterTableDropPartitionCommand",
            {"specs": Some(Some(("DT", "1"), ("Hour", "")), Some(("dt", "2")))},
            [],
            [{"dt": "2"}, {"dt": "1", "hour": None}],
            "rows",
            id="drop",
        ),
        pytest.param(
            "TruncateTableCommand",
            {"partitionSpec": Some(Some(("DT", "1")))},
            [],
            [{"dt": "1"}],
            "rows",
            id="truncate",
        ),
        pytest.param(
            "AlterTableRenamePartitionCommand",
            {
                "oldPartition": Some(("dt", "1"), ("hour", "0")),
                "newPartition": Some(("dt", "2"), ("hour", "0")),
            },
            [{"dt": "2", "hour": "0"}],
            [{"dt": "1", "hour": "0"}],
            "rows",
            id="rename",
        ),
        pytest.param(
            "LoadDataCommand",
            {"partition": Some(Some(("DT", "1"), ("hour", "0"))), "isOverwrite": True},
            [{"dt": "1", "hour": "0"}],
            [],
            "static",
            id="load",
        ),
    ],
)
def test_a_command_on_partitions_says_what_it_changes(kind, command, written, emptied, mode):
    expected = {"layouts": written, "emptied": emptied, "mode": mode}
    assert described(kind, **command) == expected


@pytest.mark.parametrize("limit", ["directories=2", "files=2"])
def test_more_than_the_limit_is_counted_and_not_read(limit):
    from sparklineage_observer.records import OverBudgetError

    lake = Lake({file_in(f"p={n}"): NOW for n in range(3)})
    what = "folders" if "dir" in limit else "files"
    with pytest.raises(OverBudgetError, match=f"3 {what} are more than the limit of 2"):
        found_by(lake, write_of(parts=1), limit)
    assert lake.texts == 0


def test_no_call_is_made_once_the_time_is_up(monkeypatch):
    from sparklineage_observer import records

    clock = [0.0]
    times = SimpleNamespace(monotonic=lambda: clock[0], thread_time=lambda: 0.0)
    monkeypatch.setattr(records, "time", times)
    lake = Lake({file_in(f"p={n}"): NOW for n in range(2000)})
    lake.after_call = lambda: clock.append(clock.pop() + 4.0)  # a slow file system
    with pytest.raises(records.OverBudgetError, match="looking took longer than 10 s"):
        found_by(lake, write_of(parts=2000))
    assert lake.calls == [1, 400, 400]


def test_a_place_with_too_many_folders_is_not_listed_again():
    from sparklineage_observer.file_writes import FileWrites
    from sparklineage_observer.records import Budget, Limits

    lake = Lake({file_in(f"p={n}"): NOW for n in range(3)})
    writes = FileWrites(lake, None)
    writes._given_up.add(writes._place(write_of(parts=1)))
    write = write_of(parts=1)
    with pytest.raises(Exception, match="too many to list before"):
        writes._find(write, write["layouts"][0], 0, Budget(Limits()))
    assert lake.calls == []


def test_written_folders_that_are_not_there_any_more_are_gone():
    from sparklineage_observer.file_writes import FileWrites
    from sparklineage_observer.records import Budget, Limits

    there = SimpleNamespace(exists=lambda folder: folder.name != "file:/moved")
    classes = SimpleNamespace(
        path=lambda name: SimpleNamespace(name=name, getFileSystem=lambda _conf: there)
    )
    writes = FileWrites(classes, None)
    writes._paths = dict.fromkeys(["file:/kept", "file:/moved", "file:/beyond/the/limit"], True)
    assert writes.gone(Budget(Limits("written=2"))) == ["file:/moved"]


def figures_of(files, /, **of_write):
    """Look for a write whose footers cannot be read; the rows and bytes of its partitions."""
    write = write_of(**of_write) | {"numOutputRows": 70}
    found_by(Lake(files), write)
    [layout] = write["layouts"]
    return layout.get("rows"), layout.get("bytes")


def test_of_footers_that_cannot_be_read_only_bytes_are_known():
    files = {file_in("p=1"): NOW, file_in("p=1", task=1): NOW, file_in("p=2"): NOW}
    assert figures_of(files, parts=2, files=3) == (None, [6, 3])


@pytest.mark.parametrize(
    "of_write",
    [
        pytest.param({"parts": 1}, id="found in its folder"),
        pytest.param({"parts": 1, "static": {"p": "1"}}, id="named by the command"),
        pytest.param({"parts": 0, "files": 1, "columns": ()}, id="not partitioned"),
    ],
)
def test_of_one_partition_spark_has_counted_all(of_write):
    assert figures_of({file_in("p=1"): NOW}, **of_write) == ([70], [3])


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({file_in("p=1"): NOW, file_in("p=3", THEIRS): NOW}, id="a file is gone"),
        pytest.param(
            {file_in(f"p={p}", who): NOW for p in (1, 2) for who in (OURS, THEIRS)},
            id="of one of two equal writes",
        ),
    ],
)
def test_what_is_not_certain_is_not_counted(files):
    assert figures_of(files, parts=2) == (None, None)
