"""Sources at a URL: fetched when they are new, and only then."""

from __future__ import annotations

import json
import os

import pytest

from airflow_provider_sparklineage.history.sources import Reading, source_of
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from tests.local_store import URL, LocalStore
from tests.unit.history.test_sources import LINES, line_of

PLACE = URL.replace("connection@", "")  # which could be somebody's name and password


@pytest.fixture
def store(tmp_path, monkeypatch):
    return LocalStore(tmp_path).install(monkeypatch)


def read(url=URL, known=None):
    reading = Reading(known)
    lines = [json.loads(one.text) for one in reading.lines([source_of(url)])]
    return sorted((line["source"], int(line["event_time"][14:16])) for line in lines), reading


def put(store, name, content):
    file = store.root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def test_all_files_below_a_url_are_read_by_their_addresses(store):
    put(store, "a/events.ndjson", LINES)
    put(store, "shop/r1/report/-1/1.json", line_of(3))
    put(store, "=unsent/shop/r1/report/-1/1", b"")
    put(store, "=swept-1000", b"")
    put(store, "notes.txt", b"no events")
    found, reading = read()
    assert found == [
        (f"{PLACE}/a/events.ndjson", 1),
        (f"{PLACE}/a/events.ndjson", 2),
        (f"{PLACE}/shop/r1/report/-1/1.json", 3),
    ]
    assert +reading.skipped == {"other_file": 1}


def test_more_files_than_are_fetched_at_once_are_all_read(store):
    for minute in range(60):
        put(store, f"{minute:02}.json", line_of(minute))
    found, _ = read()
    assert [minute for _, minute in found] == list(range(60))


def test_a_url_may_be_that_of_a_file(store):
    put(store, "events.log", LINES)
    assert [minute for _, minute in read(f"{URL}/events.log")[0]] == [1, 2]


def test_a_file_is_fetched_again_only_if_it_was_written_since_and_read_on_from_there(store):
    old, log = put(store, "old.json", line_of(1)), put(store, "log.ndjson", line_of(2))
    _, first = read()
    store.calls.clear()
    assert read(known=first.marks)[0] == []
    assert store.calls["get_file"] == 0
    log.write_bytes(line_of(2) + line_of(3))
    os.utime(log, (2e9, 2e9))
    assert read(known=first.marks)[0] == [(f"{PLACE}/log.ndjson", 3)]
    assert store.calls["get_file"] == 1
    assert old.exists()


def test_a_bundle_at_a_url_is_passed_over_and_counted(store):
    put(store, "try/manifest.json", b"{}")
    put(store, "try/events.ndjson", LINES)
    put(store, "after.json", line_of(5))
    found, reading = read()
    assert [minute for _, minute in found] == [5]
    assert +reading.skipped == {"unusable_bundle": 1}


def test_a_file_that_cannot_be_fetched_is_counted_and_tried_again(store):
    put(store, "bad.json", line_of(1))
    put(store, "good.json", line_of(2))

    def refuse(method, path):
        if method == "get_file" and path.endswith("bad.json"):
            raise PermissionError(path)

    store.before = refuse
    found, reading = read()
    assert [minute for _, minute in found] == [2]
    assert (+reading.skipped, len(reading.marks)) == ({"unreadable": 1}, 1)


def test_a_url_with_nothing_below_it_is_an_error(store):
    with pytest.raises(UnusableInputError, match=f"no files at {PLACE}"):
        read()


def test_a_store_that_cannot_be_listed_is_an_error_that_says_why_without_secrets(store):
    def refuse(*_):
        raise ValueError("no such bucket, password=hunter2")  # noqa: EM101

    store.before = refuse
    with pytest.raises(UnusableInputError, match="no such bucket") as error:
        read()
    assert "hunter2" not in str(error.value)
