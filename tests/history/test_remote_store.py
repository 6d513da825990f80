"""A store in S3, by Airflow's connection: built, asked, compacted, and one writer at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from threading import Event

import msgspec
import pytest

from airflow_provider_sparklineage.history import incoming
from airflow_provider_sparklineage.history.engines import building
from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.engines.layouts import Sizes
from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.store import LOCK, STALE, Owner, Store
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.storage.objects import Objects
from tests import s3_double
from tests.history.test_merging import of_store
from tests.unit.history.worlds import add_facts, at, event, lines, read, write

pytest.importorskip("moto", reason="an environment that is older than the pins has no S3")
pytest.importorskip("duckdb", reason="DuckDB is not in this environment: it is what builds")

pytestmark = pytest.mark.airflow

WRITTEN = event("a", at(1), write("dt=1"))
READER = event("r", at(5), read("dt=1"), started=at(4))
LATE = event("b", at(2), write("dt=1"))
OTHER = event("c", at(3), write("dt=2"))
EVENT = (
    b'{"eventType": "COMPLETE", "eventTime": "2024-05-06T01:00:00Z", "producer": "https://x", '
    b'"run": {"runId": "r"}, "job": {"namespace": "jobs", "name": "shop.revenue"}}'
)
GONE = Owner("elsewhere", 1, "gone", datetime.now(UTC) - 2 * STALE)


@pytest.fixture(scope="module")
def s3():
    """Serve S3; give its URL."""
    with s3_double.serving() as url:
        yield url


@pytest.fixture
def url(s3, monkeypatch):
    """Give the URL of a store to be."""
    return f"{s3_double.bucket(s3, monkeypatch)}/a b/history"


def bound(store):
    from airflow_provider_sparklineage.history.engines.duckdb import History

    with History(Store.open(store.url)) as history:
        return [row["run"] for row in history.rows("SELECT version_run_id AS run FROM bindings")]


def test_it_is_built_asked_and_compacted(url, monkeypatch):
    store = Store(url)
    with pytest.raises(HistoryError, match="There is no history"):
        Store.open(url)
    assert add_facts(store, lines([WRITTEN, READER])).new == 2
    assert bound(store) == ["a"]
    assert add_facts(Store(url), lines([LATE, READER])).new == 1
    assert bound(store) == ["b"]
    monkeypatch.setattr(building, "MAX_PARTS", 1)
    assert add_facts(Store(url), lines([OTHER])).new == 1
    assert len(store.manifest.facts) == 1
    assert bound(store) == ["b"]
    assert store.files.names("facts") != []
    assert LOCK not in store.files.names("")


def test_many_events_are_built_in_rounds_and_no_file_of_a_round_is_left(url, tmp_path):
    events = [
        *(event(f"w{n}", at(n), write(f"dt={n}", name=f"t{n % 4}")) for n in range(1, 12)),
        *(event(f"r{n}", at(n, 30), read("dt=1", name="t1"), started=at(n)) for n in range(12)),
    ]
    store, whole = Store(url), Store(str(tmp_path / "whole"))
    few = Sizes(bucket=4, piece=5, round=3)
    add_facts(store, lines(events[:3]), sizes=few)
    add_facts(Store(url), lines(events[3:]), sizes=few)
    add_facts(whole, lines(events))
    assert of_store(Store.open(url)) == of_store(whole)
    manifest = Store.open(url).manifest
    named = {name for name in manifest.files() if name.startswith("generations")}
    retired = {one.name for one in manifest.retired}
    folders = (f"generations/{name}" for name in store.files.names("generations"))
    found = {
        f"{one}/{name}" for one in folders if one not in retired for name in store.files.names(one)
    }
    assert found - retired == named


def test_who_opened_it_stays_with_what_was_there(url):
    from airflow_provider_sparklineage.history.engines.duckdb import History

    store = Store(url)
    add_facts(store, lines([WRITTEN, READER]))
    with History(Store.open(url)) as history:
        add_facts(Store(url), lines([LATE]))
        assert history.rows("SELECT version_run_id FROM bindings") == [{"version_run_id": "a"}]


def test_what_an_interrupted_build_left_is_removed(url):
    store = Store(url)
    add_facts(store, lines([WRITTEN]))
    store.files.write("generations/000009-x/runs.parquet", b"")
    add_facts(store, lines([READER]))
    assert "000009-x" not in store.files.names("generations")


def test_who_builds_keeps_others_out_and_who_is_gone_does_not(url):
    store = Store(url)
    with store.building(), pytest.raises(HistoryError, match=r"built already, by process \d+ on"):
        add_facts(Store(url), lines([WRITTEN]))
    store.files.write(LOCK, msgspec.json.encode(GONE))
    assert add_facts(Store(url), lines([WRITTEN])).new == 1
    assert [name for name in store.files.names("") if name.startswith(LOCK)] == []


def test_of_many_who_write_a_file_that_is_not_there_one_does(url):
    stores = [Store(url) for _ in range(8)]
    with ThreadPoolExecutor(len(stores)) as threads:
        made = threads.map(lambda store: store.files.create("x", b"x"), stores)
        assert sum(made) == 1


def test_it_becomes_part_of_another_one(url, tmp_path):
    add_facts(Store(url), lines([WRITTEN, READER]))
    other = Store(str(tmp_path / "other"))
    assert build(other, [source_of(url)]).new == 2
    assert bound(other) == ["a"]


def test_what_tasks_deliver_to_it_is_merged_and_removed(url):
    sender = incoming.Sender("shop", "revenue", "manual", -1, 1)
    assert not incoming.deliver(url, sender, EVENT, 10)
    store = Store(url)
    add_facts(store, lines([WRITTEN]))
    for number in range(3):
        assert incoming.deliver(url, sender, EVENT.replace(b"revenue", b"%d" % number), 10)
    assert len(incoming.waiting(store).names) == 3
    built = build(Store(url), ())
    assert (built.new, built.delivered, built.skipped) == (3, 3, {})
    assert incoming.waiting(store).names == []


def test_a_store_that_does_not_answer_holds_a_task_no_longer_than_it_is_given(url, monkeypatch):
    add_facts(Store(url), lines([WRITTEN]))
    released = Event()
    monkeypatch.setattr(Objects, "names", lambda *_: released.wait(60))
    with pytest.raises(HistoryError, match=r"did not take the event \(.*0\.2 s"):
        incoming.deliver(url, incoming.Sender("a", "b", "c", -1, 1), EVENT, 0.2)
    assert not released.is_set()
    released.set()
