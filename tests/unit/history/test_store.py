"""The store: what is built stays whole, whatever happens to those who build."""

from __future__ import annotations

import socket
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from airflow_provider_sparklineage.history.engines.duckdb import History
from airflow_provider_sparklineage.history.facts import Line, Reason, Skipped
from airflow_provider_sparklineage.history.store import GRACE, Store
from airflow_provider_sparklineage.history.store.lock import NAME, STALE, Lock, Owner
from airflow_provider_sparklineage.history.tables import TABLES, VERSION
from airflow_provider_sparklineage.model.exceptions import HistoryError
from tests.unit.history.worlds import at, event, lines, read, write

WRITTEN = event("a", at(1), write("dt=1"))
READER = event("r", at(5), read("dt=1"), started=at(4))
LATE = event("b", at(2), write("dt=1"))


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "store"))


def source(*events):
    return [Line(text) for text in lines(events)]


def rows(store, sql="SELECT version_run_id AS run FROM bindings"):
    with History(Store.open(store.url)) as history:
        return [tuple(row.values()) for row in history.rows(sql)]


def everything(store):
    with History(Store.open(store.url)) as history:
        return {one.name: history.rows(f"FROM {one.name} ORDER BY ALL") for one in TABLES}


def files_in(store):
    return sorted(p.relative_to(store.files.root).as_posix() for p in folders(store))


def folders(store):
    return [
        p for top in ("facts", "generations", "tmp") for p in (store.files.root / top).glob("*")
    ]


# --- building -------------------------------------------------------------------------------------


def test_what_was_built_can_be_asked(store):
    built = store.build([source(WRITTEN), source(READER)])
    assert (built.events, built.new, built.rows["runs"]) == (2, 2, 2)
    assert rows(store) == [("a",)]


def test_events_count_once(store):
    first = store.build([source(WRITTEN, READER, WRITTEN)])
    again = store.build([source(READER, WRITTEN)])
    assert (first.new, again.new) == (2, 0)
    assert store.manifest.generation == 1


def test_a_part_of_what_comes_may_be_new(store):
    store.build([source(WRITTEN)])
    assert store.build([source(WRITTEN, READER)]).new == 1
    assert rows(store) == [("a",)]


def test_an_event_that_comes_late_changes_what_was_read(store):
    store.build([source(WRITTEN, READER)])
    store.build([source(LATE)])
    assert rows(store) == [("b",)]


def test_a_build_from_nothing_gives_the_same_as_many_builds(store, tmp_path):
    for one in (READER, LATE, WRITTEN):
        store.build([source(one)])
    whole = Store(str(tmp_path / "whole"))
    whole.build([source(WRITTEN, READER, LATE)])
    assert everything(whole) == everything(store)


def test_what_has_no_facts_is_counted_by_reason(store):
    broken = [Skipped(Reason.NO_JSON), Line(b"{torn\n"), Line(b'{"event_id": "x"}\n')]
    built = store.build([[*broken, *(Line(one.text, 2) for one in source(WRITTEN))]])
    assert built.skipped == {"no_json": 1, "unreadable": 2, "left_out": 2}
    assert store.manifest.skipped == built.skipped


def test_a_store_of_nothing_answers_with_nothing(store):
    store.build([])
    assert everything(store) == {one.name: [] for one in TABLES}


def test_progress_ends_with_all_events(store):
    seen = []
    store.build([source(WRITTEN), source(READER)], progress=seen.append)
    assert seen[-1] == 2


@pytest.mark.parametrize("name", ["a'b", "[a]*?", "ü", "dt=2024-10-15", "a b%20"])
def test_the_folder_may_have_any_name(tmp_path, name):
    store = Store(str(tmp_path / name))
    store.build([source(WRITTEN)])
    store.build([source(WRITTEN, READER)])
    assert rows(store) == [("a",)]


def test_the_rows_lie_in_the_order_of_the_table(store):
    store.build([source(*(event(f"r{n}", at(9 - n), write(f"dt={n}")) for n in range(9)))])
    assert rows(store, "SELECT cell FROM changes") == [(f"dt={n}",) for n in range(9)]
    assert rows(store, "SELECT run_id FROM runs") == [(f"r{n}",) for n in reversed(range(9))]


# --- interrupted ----------------------------------------------------------------------------------

KILLED = "killed"


def kill_at(store, monkeypatch, number):
    """Let a process end at so many of its calls of the file system."""
    calls = 0

    def counted(method):
        def call(*arguments):
            nonlocal calls
            calls += 1
            if calls == number:
                raise KeyboardInterrupt(KILLED)
            return method(*arguments)

        return call

    for name in ("write", "put", "create", "remove", "scratch", "names"):
        monkeypatch.setattr(store.files, name, counted(getattr(store.files, name)))


@pytest.mark.parametrize("number", range(1, 24))
def test_wherever_a_build_ends_readers_see_the_one_before_or_all_of_it(store, monkeypatch, number):
    store.build([source(WRITTEN, READER)])
    killed = Store(store.url)
    kill_at(killed, monkeypatch, number)
    with suppress(KeyboardInterrupt):
        killed.build([source(LATE)])
    assert rows(store) in ([("a",)], [("b",)])
    (store.files.root / NAME).unlink(missing_ok=True)  # as its process is gone
    store.build([source(LATE)])
    assert rows(store) == [("b",)]


def test_what_an_interrupted_build_left_is_removed_by_the_next(store):
    store.build([source(WRITTEN)])
    for name in ("facts/000009-x", "generations/000009-x", "tmp/y"):
        (store.files.root / name).mkdir()
    store.build([source(READER)])
    assert not [name for name in files_in(store) if name.endswith(("-x", "y"))]


# --- readers --------------------------------------------------------------------------------------


def test_a_reader_stays_with_the_generation_that_it_opened(store):
    store.build([source(WRITTEN, READER)])
    with History(store) as history:
        store.build([source(LATE)])
        assert history.rows("SELECT version_run_id FROM bindings") == [{"version_run_id": "a"}]
    assert rows(store) == [("b",)]


def test_old_generations_are_removed_when_nobody_can_be_reading_them(store):
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    store = Store(store.url, lambda: now[0])
    kept = []
    for minute, passed in ((1, timedelta(0)), (2, GRACE), (3, timedelta(seconds=1))):
        now[0] += passed
        store.build([source(event("r", at(minute)))])
        kept.append(len(list((store.files.root / "generations").iterdir())))
    assert kept == [1, 2, 3]
    now[0] += GRACE
    store.build([source(event("r", at(9)))])
    assert len(list((store.files.root / "generations").iterdir())) == 3


def test_values_are_given_by_name(store):
    store.build([source(WRITTEN)])
    with History(store) as history:
        sql = "SELECT run_id FROM runs WHERE run_id IN (SELECT unnest($ids)) AND state = $state"
        assert history.rows(sql, {"ids": ["a", "x"], "state": "COMPLETE"}) == [{"run_id": "a"}]


def test_a_query_that_is_none_is_refused(store):
    store.build([source(WRITTEN)])
    with History(store) as history, pytest.raises(HistoryError, match="nowhere"):
        history.rows("SELECT * FROM nowhere")


# --- two writers ----------------------------------------------------------------------------------


def test_who_builds_keeps_others_out(store):
    with store.building(), pytest.raises(HistoryError, match=r"built already, by process \d+ on"):
        Store(store.url).build([source(WRITTEN)])
    assert store.build([source(WRITTEN)]).new == 1


@pytest.mark.parametrize(
    "owner",
    [
        Owner("elsewhere", 1, "x", datetime.now(UTC) - STALE - timedelta(seconds=1)),
        Owner(socket.gethostname(), 2**22 + 1, "x", datetime.now(UTC)),
    ],
    ids=["was not seen for long", "its process is gone"],
)
def test_the_lock_of_who_does_not_write_any_more_is_taken_over(store, owner):
    store.files.write(NAME, msgspec.json.encode(owner))
    assert store.build([source(WRITTEN)]).new == 1


def test_a_lock_elsewhere_that_is_renewed_is_respected(store):
    store.files.write(NAME, msgspec.json.encode(Owner("elsewhere", 1, "x", datetime.now(UTC))))
    with pytest.raises(HistoryError, match="process 1 on elsewhere"):
        store.build([source(WRITTEN)])


def test_who_lost_the_lock_does_not_publish(store):
    store.build([source(WRITTEN)])
    before = store.manifest
    with store.building() as building:
        store.files.remove(NAME)
        with (
            Lock(store.files, lambda: datetime.now(UTC)),
            pytest.raises(HistoryError, match="taken over"),
        ):
            building.publish({}, {}, {}, {})
    assert store.manifest == before


# --- what is there --------------------------------------------------------------------------------


def test_where_nothing_was_built_there_is_nothing_to_open(tmp_path):
    with pytest.raises(HistoryError, match=r"There is no history at .*nowhere. Build it"):
        Store.open(str(tmp_path / "nowhere"))


def changed(store, **fields):
    found = msgspec.json.decode(store.files.read("manifest.json")) | fields
    store.files.write("manifest.json", msgspec.json.encode(found))


def test_a_newer_version_is_refused(store):
    store.build([source(WRITTEN)])
    changed(store, version=VERSION + 1)
    for use in (lambda: Store.open(store.url), lambda: store.build([])):
        with pytest.raises(HistoryError, match="newer than"):
            use()


def test_an_older_version_is_made_anew_of_its_facts(store):
    store.build([source(WRITTEN, READER)])
    changed(store, version=VERSION - 1)
    with pytest.raises(HistoryError, match="older version"):
        Store.open(store.url)
    store.build([])
    assert rows(store) == [("a",)]


def test_a_torn_manifest_is_named(store):
    store.build([source(WRITTEN)])
    store.files.write("manifest.json", b'{"version": 1, ')
    with pytest.raises(HistoryError, match=r"cannot be read .* Remove its manifest.json"):
        Store.open(store.url)


@pytest.mark.parametrize("table", ["facts", "generations"])
def test_a_torn_file_is_an_error_and_changes_nothing(store, table):
    store.build([source(WRITTEN)])
    before = store.manifest
    for file in (store.files.root / table).glob("*/*.parquet"):
        file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(HistoryError, match=r"could not be (built|opened)"):
        store.build([source(READER)]) if table == "facts" else History(store)
    assert store.manifest == before


# --- housekeeping ---------------------------------------------------------------------------------


def test_two_stores_become_one(store, tmp_path):
    store.build([source(WRITTEN, READER)])
    other = Store(str(tmp_path / "other"))
    other.build([source(LATE, READER)])
    assert store.merge(other).new == 1
    assert rows(store) == [("b",)]
    assert other.manifest.rows["events"] == 2


def test_many_parts_become_one(store):
    for one in (WRITTEN, READER, LATE):
        store.build([source(one)])
    before = everything(store)
    store.compact()
    assert len(store.manifest.facts) == 1
    assert everything(store) == before
    assert store.build([source(WRITTEN, READER)]).new == 0


def test_what_is_too_old_is_forgotten(store):
    store = Store(store.url, lambda: datetime(2024, 10, 17, 0, 3, tzinfo=UTC))
    store.build([source(WRITTEN, READER)])
    store.compact(keep=timedelta(days=2))
    assert rows(store) == [(None,)]
    assert store.manifest.rows["runs"] == 1
