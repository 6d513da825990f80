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


def history_of(entries):
    """Give a history that prints as in Java, of (time, id) pairs."""
    texts = [f"SnapshotLogEntry{{timestampMillis={at}, snapshotId={i}}}" for at, i in entries]
    return SimpleNamespace(toString=lambda: f"[{', '.join(texts)}]")


class Table:
    """A table with the snapshots 1, 2, 3 one after the other, and 4 after 2 in a branch.

    :param history: (time, id) of what was its state
    """

    def __init__(self, history, current=3):
        self.known = {1: Snapshot(1), 2: Snapshot(2, 1), 3: Snapshot(3, 2), 4: Snapshot(4, 2)}
        self.history = lambda: history_of(history)
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
    assert module._branch_of(table, table.snapshot(identity), lambda: hint) == branch


def test_a_staged_snapshot_is_in_no_branch(module):
    staged = Snapshot(5, 3, **{"wap.id": "first"})
    assert module._branch_of(Table(MAIN), staged, lambda: None) == "staged"


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
