"""Builds whose process is killed: readers have what was there, the next build finishes."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from airflow_provider_sparklineage.history.store import LOCK, Store
from tests.unit.history.worlds import add_facts, at, event, lines, read, write

pytest.importorskip("duckdb", reason="DuckDB is not in this environment: it is what builds")

WRITTEN = event("a", at(1), write("dt=1"))
READER = event("r", at(5), read("dt=1"), started=at(4))
LATE = event("b", at(2), write("dt=1"))
BOUND = "SELECT version_run_id FROM bindings"

# Builds until it comes to a point, says so, and stays there.
BUILD = """
import sys, time
from airflow_provider_sparklineage.history.store import Store
from tests.history.test_killed_builds import LATE
from tests.unit.history.worlds import add_facts, lines

store, where = Store(sys.argv[1]), sys.argv[2]

def stay():
    print("there", flush=True)
    time.sleep(600)

def given():
    yield from lines([LATE])
    if where == "reading":
        stay()

def staying(method):
    def call(name, *arguments):
        if name.startswith(where):
            stay()
        return method(name, *arguments)
    return call

store.files.put = staying(store.files.put)
store.files.write = staying(store.files.write)
add_facts(store, given())
"""


@pytest.mark.parametrize("where", ["reading", "facts/", "generations/", "manifest.json"])
def test_a_killed_build_costs_nothing_but_itself(tmp_path, where):
    from airflow_provider_sparklineage.history.engines.duckdb import History

    store = Store(str(tmp_path / "store"))
    add_facts(store, lines([WRITTEN, READER]))
    with History(Store.open(store.url)) as reader:
        command = [sys.executable, "-c", BUILD, store.url, where]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as building:
            assert building.stdout.readline() == "there\n"
            building.kill()
            assert building.wait(60) == -signal.SIGKILL
        assert (store.files.root / LOCK).exists()
        with History(Store.open(store.url)) as later:
            for history in (reader, later):
                assert history.rows(BOUND) == [{"version_run_id": "a"}]
        assert add_facts(store, lines([LATE])).new == 1
        assert reader.rows(BOUND) == [{"version_run_id": "a"}]
    with History(Store.open(store.url)) as history:
        assert history.rows(BOUND) == [{"version_run_id": "b"}]
    assert not (store.files.root / LOCK).exists()
    assert store.files.names("tmp") == []
    manifest = store.manifest
    kept = manifest.folders() | {one.folder for one in manifest.retired}
    found = {f"{top}/{one}" for top in ("facts", "generations") for one in store.files.names(top)}
    assert found == kept
