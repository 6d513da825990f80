"""Snapshots of Iceberg tables, branches and moves; Iceberg's own objects are doubled."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files


class Snapshot:
    def __init__(self, identity, parent=None, at=None, **summary):
        self.summary = lambda: summary
        self.snapshotId = lambda: identity
        self.parentId = lambda: parent
        self.timestampMillis = lambda: identity * 10 if at is None else at
        self.sequenceNumber = lambda: identity
        self.operation = lambda: "append"


class Listed:
    """A list of Java, which counts how often an element of it is asked for."""

    def __init__(self, elements):
        self._elements = list(elements)
        self.size = lambda: len(self._elements)
        self.asked = 0

    def get(self, position):
        self.asked += 1
        return self._elements[position]


def history_of(entries):
    """Give a history of (time, id) pairs."""

    def entry(at, identity):
        return SimpleNamespace(timestampMillis=lambda: at, snapshotId=lambda: identity)

    return Listed(entry(*one) for one in entries)


class Table:
    """A table with the snapshots 1, 2, 3 one after the other, and 4 after 2 in a branch.

    :param history: (time, id) of what was its state
    """

    def __init__(self, history, current=3):
        self.known = {1: Snapshot(1), 2: Snapshot(2, 1), 3: Snapshot(3, 2), 4: Snapshot(4, 2)}
        self.log = history_of(history)
        self.history = lambda: self.log
        self.snapshot = self.known.get
        self.currentSnapshot = lambda: self.known[current]
        self._current = current

    def refs(self):
        def entry(name, identity):
            ref = SimpleNamespace(snapshotId=lambda: identity, isBranch=lambda: name != "tag")
            return SimpleNamespace(getKey=lambda: name, getValue=lambda: ref)

        refs = [entry("main", self._current), entry("tag", 4), entry("audit", 4)]
        return SimpleNamespace(entrySet=lambda: refs)


@pytest.fixture
def module(monkeypatch):
    """Give the observer's module as the driver has it."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    from sparklineage_observer import iceberg

    monkeypatch.setattr(iceberg, "each", iter)
    return iceberg


MAIN = [(10, 1), (20, 2), (30, 3)]


@pytest.mark.parametrize(
    ("history", "identity", "hint", "branch"),
    [
        pytest.param(MAIN, 3, None, None, id="the state of the table"),
        pytest.param([*MAIN, (40, 1)], 3, None, None, id="rolled back later"),
        pytest.param(MAIN, 4, None, "audit", id="a branch"),
        pytest.param(MAIN, 4, "named", "named", id="a branch that the write names"),
        pytest.param([*MAIN, (99, 4)], 4, "audit", "audit", id="a branch, published later"),
        pytest.param([(30, 3)], 2, None, None, id="a step of a transaction"),
    ],
)
def test_a_snapshot_belongs_to_the_table_or_to_a_branch(module, history, identity, hint, branch):
    table = Table(history)
    states = module.States(table)
    assert module._branch_of(table, states, table.snapshot(identity), lambda: hint) == branch


def test_a_staged_snapshot_is_in_no_branch(module):
    staged, table = Snapshot(5, 3, **{"wap.id": "first"}), Table(MAIN)
    assert module._branch_of(table, module.States(table), staged, lambda: None) == "staged"


class Thousands:
    """A table with a snapshot a commit, all of this application."""

    location = staticmethod(lambda: "file:/lake/t")
    name = staticmethod(lambda: "db.t")
    refresh = staticmethod(lambda: None)
    io = staticmethod(lambda: None)

    def __init__(self, count):
        of_app = {"spark.app.id": "app"}
        self.made = [Snapshot(i, i - 1 or None, **of_app) for i in range(1, count + 2)]
        self.asked_of_ancestors = 0
        self.have(count)

    def have(self, count, in_main=None):
        """Let it have so many snapshots, and these of them in its main branch; None for all."""
        main = self.made[: in_main or count]
        self.log = history_of((one.timestampMillis(), one.snapshotId()) for one in main)
        self.current = main[-1]
        self.listed = Listed(self.made[:count])

    def history(self):
        return self.log

    def snapshots(self):
        return self.listed

    def currentSnapshot(self):  # noqa: N802  # Iceberg's name
        return self.current

    def snapshot(self, identity):
        self.asked_of_ancestors += 1
        return self.made[identity - 1]


@pytest.mark.parametrize("to_branch", [False, True], ids=["the table", "a branch"])
def test_a_write_is_found_without_a_walk_through_all_that_a_table_was_before(
    module, monkeypatch, to_branch
):
    def described(_base, _table, _states, snapshot, branch, *_):
        return snapshot.snapshotId(), branch

    monkeypatch.setattr(module, "_write", described)
    table, snapshots = Thousands(1000), module.Snapshots()
    snapshots.accessed(table, lambda: "audit")
    assert len(snapshots.fresh("app", None, None)) == 1000
    table.have(1001, in_main=1000 if to_branch else None)
    table.asked_of_ancestors = 0
    written = snapshots.fresh("app", None, None)
    assert written == [(1001, "audit" if to_branch else None)]
    assert table.listed.asked + table.log.asked + table.asked_of_ancestors < 5


@pytest.mark.parametrize(
    ("old", "new", "moved"),
    [
        pytest.param(3, 1, ([3, 2], []), id="back"),
        pytest.param(1, 3, ([], [3, 2]), id="forth"),
        pytest.param(3, 4, ([3], [4]), id="to a branch"),
        pytest.param(3, 3, ([], []), id="nowhere"),
        pytest.param(None, 2, ([], [2, 1]), id="of an empty table"),
    ],
)
def test_a_move_undoes_snapshots_and_does_others(module, old, new, moved):
    budget = SimpleNamespace(check=lambda: None)
    assert module._between(Table(MAIN), old, new, budget) == moved


@pytest.mark.parametrize(
    ("branch", "name"),
    [
        pytest.param(None, "db.t", id="the table"),
        pytest.param("main", "db.t", id="its main branch"),
        pytest.param("audit", "db.t.branch_audit", id="a branch"),
        pytest.param("dt=1/x", "db.t.branch_dt%3D1%2Fx", id="no partition of the branch's name"),
    ],
)
def test_a_branch_has_a_name_of_its_own(module, branch, name):
    assert module.at_branch("db.t", branch) == name


class Spec:
    """A partition spec of fields, each with a transform."""

    def __init__(self, **transforms):
        self._transforms = transforms
        source = SimpleNamespace(type=lambda: None)
        self.schema = lambda: SimpleNamespace(
            findField=lambda _: source, findColumnName=lambda name: name
        )

    def fields(self):
        def field(name, text):
            kind = SimpleNamespace(toString=lambda: "string")
            made = SimpleNamespace(toString=lambda: text, getResultType=lambda _: kind)
            return SimpleNamespace(name=lambda: name, sourceId=lambda: name, transform=lambda: made)

        return [field(*pair) for pair in self._transforms.items()]

    def partitionToPath(self, partition):  # noqa: N802
        values = zip(self._transforms, partition.values, strict=True)
        return "/".join(f"{name}={'null' if v is None else v}" for name, v in values)


@pytest.mark.parametrize(
    ("transforms", "values", "dimensions", "partition"),
    [
        ({"dt": "void"}, (None,), [], []),
        ({"dt": "void", "n": "identity"}, (None, "1"), ["n"], ["1"]),
        ({"n": "identity", "dt": "void"}, (None, None), ["n"], [None]),
        ({"n": "identity"}, ("null",), ["n"], ["null"]),
    ],
)
def test_a_field_that_was_dropped_is_in_no_partition(
    module, transforms, values, dimensions, partition
):
    one = SimpleNamespace(
        values=values, get=values.__getitem__, size=lambda: len(values), toString=lambda: "null"
    )
    specs = {0: Spec(**transforms)}
    table = SimpleNamespace(specs=lambda: specs)
    collected = module._Collected(table)
    collected.add(SimpleNamespace(specId=lambda: 0, partition=lambda: one))
    [layout] = collected.layouts("/t")
    assert [d["field"] for d in layout["dimensions"]] == dimensions
    assert layout["partitions"] == [partition]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("day = 19880", "day = '2024-06-06'"),
        ("day IN (19880, 19881)", "day IN ('2024-06-06', '2024-06-07')"),
        ("at >= 1714957200000000, n = 3", "at >= '2024-05-06 01:00:00+00:00', n = 3"),
        ("local != 1714957200500000", "local != '2024-05-06 01:00:00.500000'"),
        ("day = -1", "day = '1969-12-31'"),
        ("day = 99999999999", "day = 99999999999"),
        ("n = 19880, other < 5, name = 'x'", "n = 19880, other < 5, name = 'x'"),
    ],
)
def test_dates_and_times_of_filters_are_no_numbers(module, text, expected):
    kinds = {"day": "date", "at": "timestamptz", "local": "timestamp", "n": "int"}

    def field(name):
        kind = SimpleNamespace(toString=lambda: kinds[name])
        return SimpleNamespace(type=lambda: kind) if name in kinds else None

    table = SimpleNamespace(schema=lambda: SimpleNamespace(findField=field))
    assert module._with_times(text, table) == expected
