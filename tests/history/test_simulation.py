"""Simulated worlds: their events are as real ones, and all that can go wrong happens in some."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest

from tests.conftest import GOLDEN
from tests.history import events
from tests.history.simulation import world
from tests.openlineage_spec import validate_event

WORLDS = [world(seed) for seed in range(40)]


@pytest.mark.parametrize("seed", range(8))
def test_events_are_valid_and_so_are_their_facets(seed):
    for run in world(seed).runs:
        for event in events.events(run):
            validate_event(event)


def test_an_archived_event_has_nothing_that_a_real_one_has_not():
    real = json.loads((GOLDEN / "airflow" / "complete.json").read_text())
    ours = [run for one in WORLDS for run in one.runs if run.instance is not None]
    archived = [events.archived(run) for run in ours]
    assert {key for event in archived for key in event} - {"sending"} == set(real)
    for side in ("inputs", "outputs"):
        facets = {key for event in archived for one in event[side] for key in one["facets"]}
        assert facets <= {key for one in real[side] for key in one["facets"]}


def test_the_same_seed_makes_the_same_world():
    one, other = world(7), world(7)
    assert (one.tables, one.runs, one.fed) == (other.tables, other.runs, other.fed)


def test_another_seed_makes_another_world():
    assert all(one.runs != other.runs for one, other in pairwise(WORLDS))


def test_all_kinds_of_accesses_happen():
    runs = [run for one in WORLDS for run in one.runs]
    reads = Counter(one.extent for run in runs for one in run.reads)
    writes = Counter((one.extent, one.mode) for run in runs for one in run.claimed())
    assert set(reads) == {"cells", "all", "range", "condition", "unknown", "none"}
    assert set(writes) >= {
        *(("cells", mode) for mode in ("overwrite", "append", "drop")),
        *(("all", mode) for mode in ("overwrite", "append", "drop", "truncate")),
        *((extent, "overwrite") for extent in ("range", "unknown")),
        ("unknown", "unknown"),
    }


def test_runs_fail_are_repeated_write_many_days_and_meet_in_time():
    runs = [run for one in WORLDS for run in one.runs]
    assert {run.state for run in runs} == {"COMPLETE", "FAIL"}
    assert max(run.try_number for run in runs) > 2
    assert any("manual" in run.instance.dag_run_id and run.reads for run in runs if run.instance)
    assert any(run.started == run.ended for run in runs)
    assert any(run.instance is None and run.reads for run in runs)
    ended = {(number, run.ended) for number, one in enumerate(WORLDS) for run in one.runs}
    assert any((n, run.started) in ended for n, one in enumerate(WORLDS) for run in one.runs)


def test_a_year_can_be_simulated():
    assert len({run.ended.date() for run in world(1, days=365).runs}) > 360


def test_files_have_every_event_some_twice_and_in_no_order(tmp_path):
    ledger, file = world(3), tmp_path / "events.ndjson"
    events.write_stream(ledger, file, seed=3)
    lines = file.read_text().splitlines()
    sent = [json.dumps(event) for run in ledger.runs for event in events.events(run)]
    assert set(lines) == set(sent)
    assert len(lines) > len(sent)
    assert lines[: len(sent)] != sent


def test_an_archive_has_a_file_for_each_try(tmp_path):
    ledger = world(3)
    events.write_archive(ledger, tmp_path)
    names = {f"{events.name_of(run)}.json" for run in ledger.runs if run.instance}
    assert {str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.json")} == names
