"""What answers cannot judge: an empty answer says what it did not see."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from airflow_provider_sparklineage.history.queries import unjudged
from airflow_provider_sparklineage.history.queries.drift import compare
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.stale import stale
from airflow_provider_sparklineage.history.queries.trace import trace
from tests.unit.history.queries.answers import Answers
from tests.unit.history.queries.asked import named
from tests.unit.history.queries.test_impact import LOAD, MAKE, task
from tests.unit.history.worlds import ORDERS, read, write

UNKNOWN = {"extent": "unknown"}


def texts(found):
    return [one.text for one in found]


def test_a_world_that_is_known_leaves_only_that_the_first_run_read_nothing(history):
    assert texts(unjudged.of_stale(history(LOAD, MAKE))) == [
        "No read is known of runs that wrote 1 dataset: orders."
    ]


def test_nobody_knows_whether_a_dataset_changed_that_no_known_run_writes(history):
    asked = history(MAKE)
    assert stale(asked) == []
    [one] = unjudged.of_stale(asked)
    assert one.text == "No known run writes 1 dataset that is read: orders."
    assert (one.reason, one.count, one.names) == ("no_writer", 1, ("ns/orders",))


@pytest.mark.parametrize("extent", ["unknown", "condition", "range"])
def test_unknown_parts_that_were_written_after_a_dataset_was_read_whole(history, extent):
    whole = task("whole", 2, read(), write(name="total"))
    first = task("first", 0, write())
    later = task("later", 6, write(extent=extent, mode="append"))
    asked = history(first, whole, later)
    assert stale(asked) == []
    [_, one] = unjudged.of_stale(asked)
    assert (
        one.text == "Parts that are not known were written since runs had read 1 dataset: orders."
    )


def test_parts_that_were_written_before_the_read_or_by_the_reader_are_no_question(history):
    earlier = task("earlier", 0, write(mode="append", **UNKNOWN))
    whole = task("whole", 2, read(), write(mode="append", **UNKNOWN))
    reasons = [one.reason for one in unjudged.of_stale(history(earlier, whole))]
    assert reasons == ["no_reads"]


def test_a_write_that_failed_is_named_until_it_is_repeated(history):
    failed = task("failed", 6, write("dt=1"), event_type="FAIL")
    again = task("again", 8, write("dt=1"))
    reasons = [one.reason for one in unjudged.of_stale(history(LOAD, failed))]
    assert reasons == ["no_reads", "failed_writes"]
    assert [one.reason for one in unjudged.of_stale(history(LOAD, failed, again))] == ["no_reads"]


def test_events_with_losses_are_named(history):
    lossy = task("lossy", 2, read("dt=1"), write("dt=1", name="revenue"), degradations=2)
    asked = history(LOAD, lossy)
    assert texts(unjudged.of_stale(asked, named("revenue")))[-1] == (
        "Events of runs that wrote 1 dataset state that something is missing in them: revenue."
    )
    assert texts(impact(asked, named(ORDERS)).unjudged) == [
        "1 run may have read it, too: their events state that something is missing: dag.lossy."
    ]


def test_of_one_dataset_only_it_and_its_sources_are_named(history):
    other = task("other", 3, read(name="elsewhere"), write(name="other"))
    asked = history(MAKE, other)
    assert [one.count for one in unjudged.of_stale(asked)] == [2]
    assert [one.names for one in unjudged.of_stale(asked, named("other"))] == [("ns/elsewhere",)]


def test_what_the_jobs_read_is_named_if_it_takes_too_long_to_find_what_the_runs_read(history):
    copied = [
        task(f"copy_{n}", n, read(name=f"in_{n}"), write(name=f"out_{n}"), job="dag.copy")
        for n in (2, 3)
    ]
    asked = history(MAKE, *copied)
    assert [one.names for one in unjudged.of_stale(asked, named("out_2"))] == [("ns/in_2",)]
    with patch.object(unjudged.bounds, "left", lambda: -1):  # half of it is over at once
        (one,) = unjudged.of_stale(asked, named("out_2"))
    assert (one.reason, one.names) == ("no_writer", ("ns/in_2", "ns/in_3"))


def test_a_trace_ends_at_data_without_a_writer_and_at_runs_without_a_read(history):
    asked = history(LOAD, task("make", 2, read("dt=1"), read(name="codes"), write(name="revenue")))
    hops = trace(asked, named("revenue"))
    assert texts(unjudged.of_trace(asked, named("revenue"), hops)) == [
        "No run is known that wrote 1 dataset, in the versions that were read: codes.",
        "No read is known of 1 run: dag.load.",
    ]


def test_a_trace_of_data_that_no_run_wrote_says_so(history):
    asked = history(MAKE)
    [one] = unjudged.of_trace(asked, named(ORDERS), trace(asked, named(ORDERS)))
    assert one.text == "No run is known that wrote 1 dataset: orders."


def test_a_trace_names_what_was_read_in_parts_that_are_not_known(history):
    asked = history(LOAD, task("make", 2, read(**UNKNOWN), write(name="revenue")))
    hops = trace(asked, named("revenue"))
    [_, one] = unjudged.of_trace(asked, named("revenue"), hops)
    assert one.reason == "unknown_part"
    assert one.text.startswith("Conditions or unknown parts of 1 dataset were read, so that all")
    assert unjudged.of_trace(asked, named("revenue"), hops[:1]) == []


def test_impact_names_the_runs_that_read_and_are_not_known_to_have_written(history):
    export = task("export", 3, read("dt=1"))
    broken = task("broken", 4, read("dt=1"), write(name="x"), event_type="FAIL")
    other = task("other", 5, read("dt=2"))
    asked = history(LOAD, MAKE, export, broken, other)
    assert texts(impact(asked, named(ORDERS), "dt=1").unjudged) == [
        "No write is known of 1 run that read it, or data made of it: dag.export.",
        "1 run that read it, or data made of it, failed or has not ended: dag.broken.",
    ]


def test_drift_says_which_runs_it_cannot_compare():
    asked = Answers()
    asked.run(0, ["dt=1"], ["dt=1"], state="FAIL", run_id="failed")
    asked.run(0, ["dt=1"], ["dt=1"])
    found = compare(asked, "dag.build")
    assert found.changes == []
    assert texts(found.unjudged) == [
        "1 run failed or has not ended, and is not compared: dag.build.",
        "1 run has no other run to be compared with: dag.build.",
        "1 run has no column lineage, so that columns are not compared there: dag.build.",
        "The usual number of partitions of 2 datasets is not known yet: orders, revenue.",
    ]


def test_drift_of_many_runs_says_which_came_before_those_that_it_compares():
    asked = Answers()
    for day in range(10):
        asked.run(day, [f"dt={day}"], [f"dt={day}"], edges=[("a", "a", "IDENTITY")])
    assert compare(asked, "dag.build").unjudged == []
    [one] = compare(asked, "dag.build", 8).unjudged
    assert one.text == "2 runs that ended before the others are not compared: dag.build."
