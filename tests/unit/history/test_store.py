"""The store: what is built stays whole, whatever happens to those who build."""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from airflow_provider_sparklineage.history.engines import building
from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.engines.duckdb import History
from airflow_provider_sparklineage.history.facts.line import Columns, Line
from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.store import GRACE, LOCK, STALE, Lock, Owner, Store
from airflow_provider_sparklineage.history.tables import TABLES, VERSION
from airflow_provider_sparklineage.model.exceptions import HistoryError
from tests.unit.history.worlds import add_facts, at, event, kill_at, lines, read, write

WRITTEN = event("a", at(1), write("dt=1"))
READER = event("r", at(5), read("dt=1"), started=at(4))
LATE = event("b", at(2), write("dt=1"))


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "store"))


def source(*events):
    return lines(events)


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


def test_a_folder_with_other_files_becomes_no_store(tmp_path):
    (tmp_path / "events.ndjson").touch()
    with pytest.raises(HistoryError, match=r"other files at .*: events.ndjson.*folder of its own"):
        build(Store(str(tmp_path)), [source_of(str(tmp_path))])
    assert [one.name for one in tmp_path.iterdir()] == ["events.ndjson"]


def test_what_was_built_can_be_asked(store):
    built = add_facts(store, source(WRITTEN, READER))
    assert (built.events, built.new, built.rows["runs"]) == (2, 2, 2)
    assert rows(store) == [("a",)]


def test_events_count_once(store):
    first = add_facts(store, source(WRITTEN, READER, WRITTEN))
    again = add_facts(store, source(READER, WRITTEN))
    assert (first.new, again.new) == (2, 0)
    assert store.manifest.generation == 1


def test_a_part_of_what_comes_may_be_new(store):
    add_facts(store, source(WRITTEN))
    assert add_facts(store, source(WRITTEN, READER)).new == 1
    assert rows(store) == [("a",)]


def test_an_event_that_comes_late_changes_what_was_read(store):
    add_facts(store, source(WRITTEN, READER))
    add_facts(store, source(LATE))
    assert rows(store) == [("b",)]


def test_a_build_from_nothing_gives_the_same_as_many_builds(store, tmp_path):
    for one in (READER, LATE, WRITTEN):
        add_facts(store, source(one))
    whole = Store(str(tmp_path / "whole"))
    add_facts(whole, source(WRITTEN, READER, LATE))
    assert everything(whole) == everything(store)


def test_a_line_that_is_no_facts_is_counted(store):
    built = add_facts(store, [torn(b"{torn"), torn(b'{"event_id": "x"'), *source(WRITTEN)])
    assert built.skipped == store.manifest.skipped == {"unreadable": 2}
    assert built.new == 1


def torn(head):
    return Line(head, Columns.of([]))


def archived(folder, run_id, minute):
    known = {"eventType": "COMPLETE", "eventTime": f"2024-10-15T00:{minute:02}:00Z"}
    named = {"run": {"runId": run_id}, "job": {"namespace": "jobs", "name": run_id}}
    file = folder / f"{run_id}.ndjson"
    file.write_text(json.dumps(known | named | {"inputs": [], "outputs": []}) + "\n{torn\n")
    return source_of(str(folder))


def test_of_sources_only_what_is_new_is_read_again(store, tmp_path, monkeypatch):
    folder, seen = tmp_path / "events", []
    folder.mkdir()
    first = build(store, [archived(folder, "a", 1)], progress=seen.append)
    assert (first.new, sum(first.skipped.values()), seen[-1]) == (1, 1, 1)
    monkeypatch.setattr(building, "MAX_PARTS", 1)
    second = build(store, [archived(folder, "b", 2)])
    assert (second.events, second.new, second.rows["runs"]) == (2, 1, 2)
    assert len(store.manifest.facts) == 1
    assert build(store, [source_of(str(folder))]).events == 0


def test_what_had_nothing_new_is_not_read_again(store, tmp_path):
    folder = tmp_path / "events"
    folder.mkdir()
    build(store, [archived(folder, "a", 1)])
    before = store.manifest
    (folder / "copy.ndjson").write_bytes((folder / "a.ndjson").read_bytes())
    for events in (2, 0):
        built = build(store, [source_of(str(folder))])
        assert (built.events, built.new) == (events, 0)
    assert store.manifest.generation == before.generation
    assert store.manifest.tables == before.tables
    assert len(store.files.names("marks")) == 1


def test_a_store_of_nothing_answers_with_nothing(store):
    add_facts(store, [])
    assert everything(store) == {one.name: [] for one in TABLES}


@pytest.mark.parametrize("name", ["a'b", "[a]*?", "ü", "dt=2024-10-15", "a b%20"])
def test_the_folder_may_have_any_name(tmp_path, name):
    store = Store(str(tmp_path / name))
    add_facts(store, source(WRITTEN))
    add_facts(store, source(WRITTEN, READER))
    assert rows(store) == [("a",)]


def test_the_rows_lie_in_the_order_of_the_table(store):
    add_facts(store, source(*(event(f"r{n}", at(9 - n), write(f"dt={n}")) for n in range(9))))
    assert rows(store, "SELECT cell FROM changes") == [(f"dt={n}",) for n in range(9)]
    assert rows(store, "SELECT run_id FROM runs") == [(f"r{n}",) for n in reversed(range(9))]


# --- interrupted ----------------------------------------------------------------------------------

CALLS = ("write", "put", "create", "remove", "scratch", "names")


@pytest.mark.parametrize("number", range(1, 24))
def test_wherever_a_build_ends_readers_see_the_one_before_or_all_of_it(store, monkeypatch, number):
    add_facts(store, source(WRITTEN, READER))
    killed = Store(store.url)
    kill_at(killed, monkeypatch, number, CALLS)
    with suppress(KeyboardInterrupt):
        add_facts(killed, source(LATE))
    assert rows(store) in ([("a",)], [("b",)])
    (store.files.root / LOCK).unlink(missing_ok=True)  # as its process is gone
    add_facts(store, source(LATE))
    assert rows(store) == [("b",)]


def test_what_an_interrupted_build_left_is_removed_by_the_next(store):
    add_facts(store, source(WRITTEN))
    for name in ("facts/000009-x", "generations/000009-x", "tmp/y"):
        (store.files.root / name).mkdir()
    add_facts(store, source(READER))
    assert not [name for name in files_in(store) if name.endswith(("-x", "y"))]


# --- readers --------------------------------------------------------------------------------------


def test_a_reader_stays_with_the_generation_that_it_opened(store):
    add_facts(store, source(WRITTEN, READER))
    with History(store) as history:
        add_facts(store, source(LATE))
        assert history.rows("SELECT version_run_id FROM bindings") == [{"version_run_id": "a"}]
    assert rows(store) == [("b",)]


def test_a_reader_stays_while_the_store_is_compacted(store):
    add_facts(store, source(WRITTEN, READER))
    add_facts(store, source(LATE))
    with History(store) as history:
        add_facts(store, [], keep=timedelta(0))
        assert history.rows("SELECT version_run_id FROM bindings") == [{"version_run_id": "b"}]
    assert rows(store) == []


def test_old_generations_are_removed_when_nobody_can_be_reading_them(store):
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    store = Store(store.url, lambda: now[0])
    kept = []
    for minute, passed in ((1, timedelta(0)), (2, GRACE), (3, timedelta(seconds=1))):
        now[0] += passed
        add_facts(store, source(event("r", at(minute))))
        kept.append(len(list((store.files.root / "generations").iterdir())))
    assert kept == [1, 2, 3]
    now[0] += GRACE
    add_facts(store, source(event("r", at(9))))
    assert len(list((store.files.root / "generations").iterdir())) == 3


def test_values_are_given_by_name(store):
    add_facts(store, source(WRITTEN))
    with History(store) as history:
        sql = "SELECT run_id FROM runs WHERE run_id IN (SELECT unnest($ids)) AND state = $state"
        assert history.rows(sql, {"ids": ["a", "x"], "state": "COMPLETE"}) == [{"run_id": "a"}]


def test_a_query_that_is_none_is_refused(store):
    add_facts(store, source(WRITTEN))
    with History(store) as history, pytest.raises(HistoryError, match="nowhere"):
        history.rows("SELECT * FROM nowhere")


# --- two writers ----------------------------------------------------------------------------------


def test_who_builds_keeps_others_out(store):
    with (
        store.building(),
        pytest.raises(HistoryError, match=r"already, by process \d+ on .* since 2.* UTC. Wait"),
    ):
        add_facts(Store(store.url), source(WRITTEN))
    assert add_facts(store, source(WRITTEN)).new == 1


@pytest.mark.parametrize(
    "owner",
    [
        Owner("elsewhere", 1, "x", datetime.now(UTC) - STALE - timedelta(seconds=1)),
        Owner(socket.gethostname(), 2**22 + 1, "x", datetime.now(UTC)),
    ],
    ids=["was not seen for long", "its process is gone"],
)
def test_the_lock_of_who_does_not_write_any_more_is_taken_over(store, owner):
    store.files.write(LOCK, msgspec.json.encode(owner))
    assert add_facts(store, source(WRITTEN)).new == 1


def test_a_lock_elsewhere_that_is_renewed_is_respected(store):
    store.files.write(LOCK, msgspec.json.encode(Owner("elsewhere", 1, "x", datetime.now(UTC))))
    with pytest.raises(HistoryError, match="process 1 on elsewhere"):
        add_facts(store, source(WRITTEN))


def test_who_lost_the_lock_does_not_publish(store):
    add_facts(store, source(WRITTEN))
    before = store.manifest
    with store.building() as building:
        store.files.remove(LOCK)
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
    add_facts(store, source(WRITTEN))
    changed(store, version=VERSION + 1)
    for use in (lambda: Store.open(store.url), lambda: add_facts(store, [])):
        with pytest.raises(HistoryError, match="newer than"):
            use()


def test_an_older_version_is_made_anew_of_its_facts(store):
    add_facts(store, source(WRITTEN, READER))
    changed(store, version=VERSION - 1)
    with pytest.raises(HistoryError, match="older version"):
        Store.open(store.url)
    add_facts(store, [])
    assert rows(store) == [("a",)]


def test_a_torn_manifest_is_named(store):
    add_facts(store, source(WRITTEN))
    store.files.write("manifest.json", b'{"version": 1, ')
    with pytest.raises(HistoryError, match=r"cannot be read .* Remove its manifest.json"):
        Store.open(store.url)


@pytest.mark.parametrize("table", ["facts", "generations"])
def test_a_torn_file_is_an_error_and_changes_nothing(store, table):
    add_facts(store, source(WRITTEN))
    before = store.manifest
    for file in (store.files.root / table).glob("*/*.parquet"):
        file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(HistoryError, match=r"could not be (built|opened)"):
        add_facts(store, source(READER)) if table == "facts" else History(store)
    assert store.manifest == before


# --- housekeeping ---------------------------------------------------------------------------------


def test_two_stores_become_one(store, tmp_path):
    add_facts(store, source(WRITTEN, READER))
    other = Store(str(tmp_path / "other"))
    add_facts(other, source(LATE, READER))
    built = build(store, [source_of(other.url)])
    assert (built.events, built.new, built.skipped) == (2, 1, {})
    assert rows(store) == [("b",)]
    assert other.manifest.rows["events"] == 2
    assert build(store, [source_of(other.url), source_of(store.url)]).new == 0


def test_several_stores_and_events_become_one_at_once(store, tmp_path):
    folder = tmp_path / "events"
    folder.mkdir()
    others = [Store(str(tmp_path / name)) for name in ("one", "two")]
    add_facts(others[0], source(WRITTEN, READER))
    add_facts(others[1], source(READER, LATE))
    sources = [archived(folder, "c", 1), *(source_of(one.url) for one in others)]
    assert build(store, sources).new == 4
    assert store.manifest.rows["events"] == 4


def test_what_another_store_has_forgotten_does_not_come_from_it(store, tmp_path):
    other = Store(str(tmp_path / "other"), lambda: datetime(2024, 10, 17, 0, 3, tzinfo=UTC))
    add_facts(other, source(WRITTEN, READER), keep=timedelta(days=2))
    assert build(store, [source_of(other.url)]).new == 1


def test_a_torn_store_is_an_error_and_changes_nothing(store, tmp_path):
    add_facts(store, source(WRITTEN))
    before, other = store.manifest, Store(str(tmp_path / "other"))
    add_facts(other, source(LATE))
    [file] = (other.files.root / "facts").glob("*/*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(HistoryError, match=r"could not be built .*facts-00000.parquet"):
        build(store, [source_of(other.url)])
    other.files.write("manifest.json", b"{")
    with pytest.raises(HistoryError, match=r"other cannot be read"):
        build(store, [source_of(other.url)])
    assert store.manifest == before


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_many_parts_become_one(store, tmp_path, monkeypatch, limit):
    other = Store(str(tmp_path / "other"))
    for one in (WRITTEN, READER, LATE):
        add_facts(other, source(one))
    assert len(other.manifest.facts) == 3
    monkeypatch.setattr(building, "MAX_PARTS", limit)
    for one in (WRITTEN, READER, LATE):
        add_facts(store, source(one))
    assert len(store.manifest.facts) == {1: 1, 2: 1, 3: 3}[limit]
    assert everything(store) == everything(other)
    assert add_facts(store, source(WRITTEN, READER)).new == 0


def test_a_build_with_nothing_new_leaves_many_parts_as_they_are(store, monkeypatch):
    for one in (WRITTEN, READER):
        add_facts(store, source(one))
    before = store.manifest
    monkeypatch.setattr(building, "MAX_PARTS", 1)
    add_facts(store, source(WRITTEN))
    assert store.manifest == before


def kept_runs(store):
    """Give the runs in the files of a store's facts."""
    import duckdb

    files = [file for names in store.manifest.facts.values() for file in store.local(names)]
    return sorted(duckdb.sql(f"SELECT run_id FROM read_parquet({files})").fetchall())


def test_what_is_too_old_is_forgotten(store):
    store = Store(store.url, lambda: datetime(2024, 10, 17, 0, 3, tzinfo=UTC))
    add_facts(store, source(WRITTEN, READER))
    add_facts(store, [], keep=timedelta(days=2))
    assert rows(store) == [(None,)]
    assert store.manifest.rows["runs"] == 1
    assert kept_runs(store) == [("r",)]


def test_a_build_that_forgets_nothing_leaves_the_facts_where_they_are(store):
    store = Store(store.url, lambda: datetime(2024, 10, 17, 0, 3, tzinfo=UTC))
    add_facts(store, source(WRITTEN, READER))
    before = store.manifest.facts
    add_facts(store, [], keep=timedelta(days=3))
    assert store.manifest.facts == before


@pytest.mark.parametrize("parts", [1, 32], ids=["compacted", "built"])
def test_what_was_forgotten_does_not_come_back(store, monkeypatch, parts):
    store = Store(store.url, lambda: datetime(2024, 10, 17, 0, 3, tzinfo=UTC))
    monkeypatch.setattr(building, "MAX_PARTS", parts)
    add_facts(store, source(WRITTEN, READER))
    add_facts(store, [], keep=timedelta(days=2))
    assert add_facts(store, source(WRITTEN, LATE, READER)).new == 0
    assert add_facts(store, source(event("new", at(9)), WRITTEN)).new == 1
    add_facts(store, [], keep=timedelta(days=1000))
    assert store.manifest.rows["events"] == 2
