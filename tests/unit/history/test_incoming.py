"""What tasks deliver to a store when they end is in its tables after the next build."""

from __future__ import annotations

import gzip
import json
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from airflow_provider_sparklineage.history import incoming
from airflow_provider_sparklineage.history.engines import building
from airflow_provider_sparklineage.history.engines.duckdb import History
from airflow_provider_sparklineage.history.sources import LocalFiles, refused
from airflow_provider_sparklineage.history.store import LOCK, Folder, Store
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.model.producer import producer
from tests.unit.history.worlds import kill_at

pytest.importorskip("duckdb")


def sender(run, source=""):
    return incoming.Sender("shop", "orders", run, -1, 1, source)


def event(run):
    """Give an event that wrote a day of a table."""
    return {
        "eventType": "COMPLETE",
        "eventTime": f"2024-05-0{run}T01:00:00Z",
        "producer": producer(),
        "run": {"runId": f"01906b3c-0000-7000-8000-00000000000{run}"},
        "job": {"namespace": "jobs", "name": "shop.orders"},
        "inputs": [],
        "outputs": [{"namespace": "file", "name": "/lake/orders"}],
    }


def text(run):
    return json.dumps(event(run)).encode()


@pytest.fixture
def store(tmp_path):
    store = Store(str(tmp_path / "history"))
    building.build(store, ())
    return store


@pytest.fixture
def deliver(store):
    url = store.files.root.as_uri()
    return lambda run, source="": incoming.deliver(url, sender(str(run), source), text(run), 5)


def rows(store):
    with History(Store.open(store.url)) as history:
        return history.rows("SELECT run_id, dag_id, dag_run_id FROM runs ORDER BY run_id")


def test_a_delivered_event_is_in_the_tables_after_a_build_without_sources(store, deliver):
    assert deliver(1)
    assert deliver(2)
    built = building.build(store, ())
    assert (built.events, built.new, built.delivered) == (2, 2, 2)
    assert [row["dag_run_id"] for row in rows(store)] == ["1", "2"]
    assert store.files.names("incoming") == []


def test_a_compressed_event_is_in_the_tables_as_the_plain_one_is(store):
    for run, content in (("1", text(1)), ("2", gzip.compress(text(2)))):
        incoming.deliver(store.files.root.as_uri(), sender(run), content, 5)
    built = building.build(store, ())
    assert (built.events, built.new, built.delivered) == (2, 2, 2)
    assert [(row["dag_id"], row["dag_run_id"]) for row in rows(store)] == [
        ("shop", "1"),
        ("shop", "2"),
    ]
    assert store.files.names("incoming") == []


def test_a_damaged_compressed_event_is_counted_and_does_not_stay(store):
    content = gzip.compress(text(1))[:-20]
    incoming.deliver(store.files.root.as_uri(), sender("1"), content, 5)
    built = building.build(store, ())
    assert (built.new, built.skipped) == (0, {"torn_file": 1})
    assert store.files.names("incoming") == []


def test_there_is_nothing_to_deliver_to_before_the_first_build(tmp_path):
    folder = tmp_path / "history"
    assert not incoming.deliver(folder.as_uri(), sender("1"), text(1), 5)
    folder.mkdir()
    assert not incoming.deliver(folder.as_uri(), sender("1"), text(1), 5)
    assert list(folder.iterdir()) == []


def test_what_ends_during_the_first_build_is_delivered(tmp_path):
    store = Store(str(tmp_path / "history"))
    with store.building():
        assert incoming.deliver(store.files.root.as_uri(), sender("1"), text(1), 5)
    assert building.build(store, ()).new == 1


def test_an_event_of_the_archive_that_was_delivered_too_counts_once(store, deliver, tmp_path):
    archive = tmp_path / "archive"
    file = archive / "shop" / "1" / "orders" / "-1" / "1.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(text(1))
    deliver(1, file.as_uri())
    source = LocalFiles(archive, str(archive), refused)
    built = building.build(store, [source])
    assert (built.events, built.new, built.delivered) == (2, 1, 1)
    assert len(rows(store)) == 1


def test_the_place_in_the_archive_is_the_source(store, deliver):
    deliver(1, "s3://lineage/shop/1/orders/-1/1.json")
    building.build(store, ())
    [names] = Store(store.url).manifest.facts.values() or [[]]
    import duckdb

    found = duckdb.read_parquet(store.local(names)).project("source").fetchall()
    assert found == [("s3://lineage/shop/1/orders/-1/1.json",)]


def test_a_build_that_is_killed_before_it_removes_the_files_loses_nothing(
    store, deliver, monkeypatch
):
    deliver(1)
    with monkeypatch.context() as patch:
        patch.setattr(building.Delivered, "remove", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            building.build(store, ())
    assert len(rows(store)) == 1
    built = building.build(store, ())
    assert (built.new, built.delivered) == (0, 1)
    assert len(rows(store)) == 1


@pytest.mark.parametrize("number", range(1, 16))
def test_wherever_a_build_is_killed_each_event_is_merged_once(store, deliver, monkeypatch, number):
    deliver(1)
    deliver(2)
    killed = Store(store.url)
    calls = kill_at(killed, monkeypatch, number, ("read", "write", "put", "remove"))
    with suppress(KeyboardInterrupt):
        building.build(killed, ())
    assert len(calls) >= number
    (store.files.root / LOCK).unlink(missing_ok=True)  # as its process is gone
    deliver(3)
    building.build(store, ())
    assert [row["dag_run_id"] for row in rows(store)] == ["1", "2", "3"]
    assert store.manifest.rows["events"] == 3
    assert store.files.names("incoming") == []


def test_what_no_task_wrote_stays_and_is_counted(store, deliver):
    deliver(1)
    foreign = store.files.root / "incoming" / "notes.json"
    foreign.write_text("{}")
    (store.files.root / "incoming" / "half.json.0.part").write_text("")
    built = building.build(store, ())
    assert (built.new, built.skipped) == (1, {"unreadable": 1})
    assert foreign.exists()


def test_an_event_that_is_none_is_counted_and_not_read_again(store):
    incoming.deliver(store.files.root.as_uri(), sender("1"), b"no json", 5)
    built = building.build(store, ())
    assert (built.delivered, built.skipped) == (1, {"no_json": 1})
    assert building.build(store, ()).delivered == 0


def test_a_build_takes_the_oldest_ones_if_there_are_many(store, deliver, monkeypatch):
    monkeypatch.setattr(building, "MAX_DELIVERED", 2)
    for run in (1, 2, 3):
        deliver(run)
    assert building.build(store, ()).delivered == 2
    assert [row["dag_run_id"] for row in rows(store)] == ["1", "2"]
    assert building.build(store, ()).delivered == 1
    assert len(rows(store)) == 3


def test_how_many_wait_and_since_when(store, deliver):
    assert incoming.waiting(store) == ([], None)
    before = datetime.now(UTC)
    deliver(1)
    deliver(2)
    names, since = incoming.waiting(store)
    assert len(names) == 2
    assert before <= since <= datetime.now(UTC)


def test_a_store_that_takes_no_files_is_an_error_with_its_url(store, deliver):
    (store.files.root / "incoming").write_text("a file")
    with pytest.raises(HistoryError, match="did not take the event") as found:
        deliver(1)
    assert str(store.files.root) in str(found.value)


def test_a_folder_that_cannot_be_listed_is_an_error(store, monkeypatch):
    def fail(*_):
        raise PermissionError

    monkeypatch.setattr(Folder, "names", fail)
    with pytest.raises(HistoryError, match="cannot be listed"):
        incoming.waiting(store)
