"""What the page asks, of a store that was built from a simulated world."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from itertools import product
from pathlib import Path
from unittest.mock import Mock, patch
from uuid import NAMESPACE_URL, uuid5

import pytest

from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.queries.stale import stale_alone
from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import LimitError, TooManyError
from airflow_provider_sparklineage.plugins.history import answers
from airflow_provider_sparklineage.plugins.history import health as page_health
from airflow_provider_sparklineage.plugins.history import opened as asking
from airflow_provider_sparklineage.plugins.history.catalog import (
    MAX_COLUMNS,
    Catalog,
    catalog_of,
    search_columns,
)
from airflow_provider_sparklineage.plugins.history.health import gaps_of_all, health
from airflow_provider_sparklineage.plugins.history.opened import OpenedHistory, partition_of
from airflow_provider_sparklineage.plugins.history.permissions import Visibility
from tests.conftest import GOLDEN, long_after
from tests.history import events
from tests.history.simulation import world

ALL = Visibility(lambda _: True, lambda _: True, frozenset, lambda: True)
NOTHING = Visibility(lambda _: False, lambda _: False, frozenset, lambda: False)


@pytest.fixture(scope="module", params=long_after(1, range(3)))
def history(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("history")
    events.write_archive(world(request.param, 20), folder / "archive")
    build(Store(str(folder / "store")), [source_of(str(folder / "archive"))])
    opened = OpenedHistory(str(folder / "store"))
    yield opened
    opened.close()


@pytest.fixture
def datasets(history):
    found = Catalog(history).search("", ALL)
    assert found["count"] == len(found["datasets"]) > 1
    return [DatasetName(one["namespace"], one["name"]) for one in found["datasets"]]


def test_partitions_that_are_stale_are_those_of_the_query(history, datasets):
    for dataset in datasets:
        found = json.loads(json.dumps(answers.partition_states(dataset, history, ALL)))
        shown = found["partitions"]
        assert len(shown["names"]) == len(shown["states"]) == len(set(shown["names"]))
        marked = {
            n for n, state in zip(shown["names"], shown["states"], strict=True) if state == "s"
        }
        assert {partition_of(one["partition"]) for one in history.stale(dataset)} <= marked
        assert bool(marked) == bool(found["causes"])


def test_each_partition_has_a_graph_and_plans(history, datasets):
    for dataset in datasets:
        shown = answers.partition_states(dataset, history, ALL)["partitions"]
        there = zip(shown["names"], shown["states"], strict=True)
        for name in [name for name, state in there if state != "n"][:5]:
            wanted = answers.Selection(dataset, name or None)
            found = json.loads(json.dumps(answers.partition_graph(wanted, history, ALL)))
            assert found["upstream"]["hidden"] == found["downstream"]["hidden"] == 0
            assert json.dumps(answers.rerun_plans(wanted, history, ALL))


def test_a_plan_of_spans_is_that_of_the_stale_partitions_in_them(history, datasets):
    planned = 0
    for dataset in datasets:
        shown = answers.partition_states(dataset, history, ALL)["partitions"]
        there = zip(shown["names"], shown["states"], strict=True)
        stale = [name for name, state in there if state == "s" and name]
        if len(stale) < 2:
            continue
        planned += 1
        whole, of_first, of_others = (
            steps_of(answers.refresh_plan(dataset, [span], history, ALL))
            for span in ((stale[0], stale[-1]), (stale[0], stale[0]), (stale[1], stale[-1]))
        )
        alone = answers.rerun_plans(answers.Selection(dataset, stale[0]), history, ALL)
        assert of_first == steps_of(alone)
        assert whole == of_first | of_others
        assert whole
    assert planned


def steps_of(plans):
    plan = plans["refresh"]
    return {step["run"]["run_id"] for part in ("steps", "by_hand") for step in plan[part]}


def test_who_may_see_no_dag_finds_nothing_that_a_dag_did(history, datasets):
    runs = {row["job"] for row in history.rows("SELECT job FROM runs WHERE dag_id IS NOT NULL")}
    assert runs
    for dataset in datasets:
        shown = json.dumps(answers.partition_states(dataset, history, NOTHING))
        assert [job for job in runs if f'"{job}"' in shown] == []


def whole_health(history, visibility):
    """Ask for the health until all datasets are looked at."""
    catalog = catalog_of(history)
    for _ in range(20):
        found = json.loads(json.dumps(health(catalog, history, visibility)))
        if found["looked"]["done"] == found["looked"]["of"]:
            return found
    pytest.fail("the search for never written partitions does not end")


def test_health_counts_what_the_views_of_the_datasets_show(history, datasets):
    found = whole_health(history, ALL)
    counted = {(d["namespace"], d["name"]): d["counts"] for d in found["datasets"]}
    totals = Counter()
    for dataset in datasets:
        states = answers.partition_states(dataset, history, ALL)["partitions"]
        shown = Counter(states["states"])
        counts = counted.get((dataset.namespace, dataset.name), {})
        totals.update(counts)
        assert {one: counts.get(one, 0) for one in "mwn"} == {one: shown[one] for one in "mwn"}
        assert counts.get("x", 0) <= shown["x"]
        # A stale write of the whole is one version, and the view marks all partitions that it has.
        is_whole = ("", "s") in zip(states["names"], states["states"], strict=True)
        assert counts.get("s", 0) == shown["s"] or (is_whole and 0 < counts["s"] < shown["s"])
    assert found["totals"] == dict(totals)
    assert found["fine"] + len(found["datasets"]) == len(datasets)
    assert totals["s"] + totals["n"] > 0


def test_the_plan_of_all_makes_again_what_is_stale_and_writes_what_never_was(history):
    found = whole_health(history, ALL)
    gaps = gaps_of_all(history, catalog_of(history))
    plan = answers.plan_of_all(history, gaps, ALL)
    steps = plan["steps"] + plan["by_hand"]
    reasons = [text for step in steps for text in step["reasons"]]
    planned = {one.cell for one in gaps if one.is_planned and one.job}
    assert {cell for cell in planned if not any(cell in text for text in reasons)} == set()
    assert bool(steps) == bool(found["totals"].get("s") or planned)
    assert not plan["steps"] or min(step["wave"] for step in plan["steps"]) == 0


def test_who_may_see_no_dag_sees_no_trouble(history):
    found = whole_health(history, NOTHING)
    assert (found["datasets"], found["totals"], found["fine"]) == ([], {}, 0)


def test_the_trouble_of_a_hidden_dataset_is_not_shown_to_who_sees_runs_without_a_dag(
    history, datasets
):
    user = Visibility(lambda _: False, lambda _: False, frozenset, lambda: True)
    catalog = catalog_of(history)
    hidden = next(one for one in datasets if one not in catalog.names(user))
    count = page_health._Count(hidden, "x", None, None, 1, None)  # nobody knows its job
    with patch.object(page_health, "_counts", return_value=[count]):
        found = health(catalog, history, user, is_quick=True)
    assert (found["datasets"], found["totals"]) == ([], {})


def test_the_graph_of_a_column_begins_with_the_sources_and_uses_of_the_queries(history, datasets):
    compared = 0
    for dataset in datasets:
        columns = answers.column_graph(answers.Selection(dataset), history, ALL)["columns"]
        shown = answers.partition_states(dataset, history, ALL)["partitions"]
        there = zip(shown["names"], shown["states"], strict=True)
        names = [name for name, state in there if name and state in "fsm"][-2:]
        for column, name in product(columns, names):
            wanted = answers.Selection(dataset, name, column, depth=1)
            edges = answers.column_graph(wanted, history, ALL)["edges"]
            for side, end, hops in (
                ("upstream", "source", history.trace(dataset, name, column, 1)),
                ("downstream", "target", history.downstream(dataset, name, column, 1)),
            ):
                ends = {_end(e[end], e[end]["column"]) for e in edges if e["side"] == side}
                of_hops = {_end(h["dataset"], h["column"]) for h in hops if h["depth"] == 1}
                with_column = {one for one in of_hops if one[-1]}
                assert {one for one in ends if one[-1]} >= with_column
                compared += len(with_column)
    assert compared


def _end(dataset, column):
    return dataset["namespace"], dataset["name"], column


def test_a_column_is_found_by_words_of_its_dataset_and_its_name(history):
    columns = {
        dataset: answers.column_graph(answers.Selection(dataset), history, ALL)["columns"]
        for dataset in Catalog(history).names(ALL)
    }
    found_of = [(dataset, one) for dataset, of_dataset in columns.items() for one in of_dataset]
    assert found_of
    for dataset, column in found_of[:3]:
        found = search_columns(f"{dataset.name} {column}", history, ALL)["columns"]
        assert (dataset.name, column) in {(one["name"], one["column"]) for one in found}
        assert search_columns(column, history, NOTHING)["columns"] == []
    nothing = {"columns": [], "count": 0, "is_cut": False}
    assert search_columns("no_such_column", history, ALL) == nothing


@pytest.fixture
def add(tmp_path):
    """Add events to one store, and open it; gives what the page asks."""
    opened = []

    def opened_with(found):
        file = tmp_path / f"{len(opened)}.ndjson"
        file.write_text("".join(f"{json.dumps(event)}\n" for event in found))
        build(Store(str(tmp_path / "store")), [source_of(str(file))])
        opened.append(OpenedHistory(str(tmp_path / "store")))
        return opened[-1]

    yield opened_with
    for one in opened:
        one.close()


# --- columns whose names are alike ---

MANY = 6_000


def event_of(dag_id, columns):
    """Give the event of a task that copied columns from one table to another."""
    source, target = ({"namespace": "file", "name": f"/{dag_id}/{name}"} for name in ("raw", "out"))
    fields = {one: {"inputFields": [{**source, "field": one}]} for one in columns}
    facet = {"_producer": "https://shop.example", "_schemaURL": "https://openlineage.io/x.json"}
    return {
        "eventType": "COMPLETE",
        "eventTime": "2024-05-06T00:00:00Z",
        "producer": "https://shop.example",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json",
        "run": {"runId": str(uuid5(NAMESPACE_URL, dag_id))},
        "job": {"namespace": "airflow", "name": f"{dag_id}.task"},
        "inputs": [source],
        "outputs": [{**target, "facets": {"columnLineage": {**facet, "fields": fields}}}],
    }


@pytest.fixture
def alike(add):
    hidden = [f"amount_{n}" for n in range(MANY)]
    seen = ["net_amount", "amounts", "amount", "total"]
    return add([event_of("hidden", hidden), event_of("seen", seen)])


def found_in(found):
    return [(one["name"], one["column"]) for one in found["columns"]]


def test_a_column_of_the_text_comes_first_then_those_that_begin_with_it(alike):
    found = search_columns("seen amount", alike, ALL)
    assert found_in(found) == [
        (f"/seen/{table}", column)
        for column in ("amount", "amounts", "net_amount")
        for table in ("out", "raw")
    ]
    assert (found["count"], found["is_cut"]) == (6, False)


def test_if_a_text_is_in_very_many_names_some_are_found_and_the_best(alike):
    found = search_columns("amount", alike, ALL)
    assert found_in(found)[:2] == [("/seen/out", "amount"), ("/seen/raw", "amount")]
    assert len(found["columns"]) == MAX_COLUMNS < found["count"] < MANY
    assert found["is_cut"]
    assert not search_columns("amount_599", alike, ALL)["is_cut"]


def test_columns_that_a_user_may_not_see_keep_no_others_from_being_found(alike):
    known = frozenset({"hidden", "seen"})
    user = Visibility(lambda dag: dag == "seen", lambda _: False, lambda: known, lambda: False)
    found = search_columns("amount", alike, user)
    assert (found["count"], found["is_cut"]) == (6, False)
    assert found_in(found)[-1] == ("/seen/raw", "net_amount")


# --- the recorded month of flights ---------------------------------------------------------------

DELAYS = DatasetName("file", "/flights/lake/daily_delays")


def lines_of(part):
    text = gzip.decompress((GOLDEN / "history" / f"flights_{part}.ndjson.gz").read_bytes())
    return [json.loads(line) for line in text.splitlines()]


def states_of(dataset, history):
    shown = answers.partition_states(dataset, history, ALL)["partitions"]
    days = (Path(name).name.rpartition("=")[2] for name in shown["names"])
    return dict(zip(days, shown["states"], strict=True))


def is_of(event, task, day):
    return event["job"]["name"].endswith(f".{task}") and (
        event["sending"]["runFacets"]["airflow"]["dagRun"]["run_id"] == day
    )


def test_a_state_of_the_store_that_was_built_since_is_asked_and_not_what_is_kept(add):
    before = add(lines_of("month"))
    assert set(states_of(DELAYS, before).values()) == {"f"}
    after = add(lines_of("rewritten"))
    assert [d for d, state in states_of(DELAYS, after).items() if state == "s"] == ["2013-01-15"]
    assert set(states_of(DELAYS, before).values()) == {"f"}
    last = add(lines_of("cleared"))
    assert set(states_of(DELAYS, last).values()) == {"f"}


def test_each_dataset_is_asked_for_alone_if_too_many_runs_are_stale(add):
    history = add([*lines_of("month"), *lines_of("rewritten")])
    too_many = Mock(side_effect=TooManyError("More than 300,000 runs are stale."))
    alone = Mock(side_effect=stale_alone)
    with patch.multiple(asking, stale=too_many, stale_alone=alone):
        for _ in range(2):
            states = states_of(DELAYS, history)
            assert [day for day, state in states.items() if state == "s"] == ["2013-01-15"]
    assert (too_many.call_count, alone.call_count) == (1, 1)


def test_sources_whose_changes_are_not_known_are_named_as_far_as_there_is_time(add):
    history = add(lines_of("month"))
    [sentence] = answers.partition_states(DELAYS, history, ALL)["unjudged"]
    assert sentence.startswith("No known run writes 3 datasets that are read: flights.csv, ")
    flights = DELAYS._replace(name="/flights/lake/flights")
    with patch.object(asking, "unseen_by_stale", Mock(side_effect=LimitError("It takes long."))):
        [sentence] = answers.partition_states(flights, history, ALL)["unjudged"]
    assert "were not looked for" in sentence


def test_each_state_comes_of_what_runs_did(add):
    found = [*lines_of("month"), *lines_of("rewritten")]
    never = [e for e in found if not is_of(e, "daily_delays", "2013-01-20")]
    wrong = of_day(never, "daily_delays", "2013-01-10")
    wrong["run"]["facets"]["sparkLineage_partitionCheck"]["status"] = "unexpected"
    history = add(never)

    states = states_of(DELAYS, history)
    of = {"2013-01-10": "m", "2013-01-15": "s", "2013-01-20": "n"}
    assert {day: state for day, state in states.items() if state != "f"} == of
    assert len(states) == 30


def of_day(found, task, day):
    [event] = [e for e in found if is_of(e, task, day)]
    return event


def again(event, year=2040, **changes):
    """Give the event of a later run of the same task instance, the only one in that year."""
    copy = json.loads(json.dumps(event)) | {"eventTime": f"{year}-01-01T00:00:00Z"} | changes
    copy["run"]["runId"] = f"00000000-0000-7000-8000-00000000{year}"
    return copy


def removing(event):
    """Give the event of a later run that removes what a run wrote."""
    copy = again(event, inputs=[])
    copy["outputs"][0]["facets"]["lifecycleStateChange"]["lifecycleStateChange"] = "TRUNCATE"
    return copy


def test_a_failed_write_needs_a_person_until_another_run_has_written_the_same(add):
    found = lines_of("month")
    of_day(found, "daily_delays", "2013-01-10")["eventType"] = "FAIL"
    wrong = of_day(found, "daily_delays", "2013-01-11")
    wrong["eventType"] = "FAIL"
    wrong["run"]["facets"]["sparkLineage_partitionCheck"]["status"] = "unexpected"
    history = add(found)

    states = states_of(DELAYS, history)
    of = {"2013-01-10": "w", "2013-01-11": "m"}
    assert {day: state for day, state in states.items() if state != "f"} == of
    [one] = whole_health(history, ALL)["datasets"]
    assert (one["name"], one["counts"]) == (DELAYS.name, {"m": 1, "w": 1})
    [run] = [
        run
        for run in answers.partition_states(DELAYS, history, ALL)["runs"]
        if run["dag_run_id"] == "2013-01-11"
    ]
    assert run["state"] == "FAIL"

    good = again(of_day(lines_of("month"), "daily_delays", "2013-01-10"))
    assert set(states_of(DELAYS, add([good])).values()) == {"f", "m"}


def test_a_failed_write_counts_over_what_is_there_and_over_what_was_removed(add):
    found = lines_of("month")
    there, last = (of_day(found, "daily_delays", f"2013-01-{day}") for day in (10, 30))
    after = add([*found, removing(last), again(there, 2041, eventType="FAIL")])
    assert states_of(DELAYS, after)["2013-01-10"] == "w"
    assert states_of(DELAYS, after)["2013-01-30"] == "x"
    history = add([again(last, 2042, eventType="FAIL")])
    assert states_of(DELAYS, history)["2013-01-30"] == "w"
    [one] = [d for d in whole_health(history, ALL)["datasets"] if d["name"] == DELAYS.name]
    assert one["counts"] == {"w": 2}


def test_who_may_not_see_the_failed_run_does_not_see_that_it_failed(add):
    found = lines_of("month")
    of_day(found, "daily_delays", "2013-01-10")["eventType"] = "FAIL"
    history = add(found)
    dag_id = found[0]["job"]["name"].partition(".")[0]
    user = Visibility(lambda dag: dag != dag_id, lambda _: False, lambda: {dag_id}, lambda: True)
    assert whole_health(history, user)["totals"] == {}


def test_what_was_read_and_nobody_wrote_has_no_known_writer(add):
    found = [e for e in lines_of("month") if not is_of(e, "prepare_flights", "2013-01-01")]
    states = states_of(DatasetName("file", "/flights/lake/flights"), add(found))
    assert {day: state for day, state in states.items() if state != "f"} == {"2013-01-01": "u"}


def test_what_was_removed_is_missing(add):
    found = lines_of("month")
    event = removing(of_day(found, "daily_delays", "2013-01-30"))
    assert states_of(DELAYS, add([*found, event]))["2013-01-30"] == "x"
