"""What fed a partition."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from airflow_provider_sparklineage.history.queries import walk
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.model.exceptions import HistoryError
from tests.unit.history.queries.asked import named, short
from tests.unit.history.worlds import at, edge, event, read, write

LOAD = event("load", at(1), write("dt=1"), started=at(0))
MAKE = event("make", at(3), read("dt=1"), write("dt=1", name="revenue"), started=at(2))


def test_each_hop_is_what_the_run_of_the_hop_before_had_read(history):
    found = trace(history(LOAD, MAKE), named("revenue"), "dt=1")
    assert short(found) == [
        (0, "revenue", "dt=1", None, "make"),
        (1, "orders", "dt=1", None, "load"),
    ]
    assert found[1].via == ("make",)
    assert found[1].run.job == "dag.load"


def test_a_hop_as_json_has_its_partition_by_dimension(history):
    [hop] = trace(history(LOAD), named("orders"), "dt=1")
    assert msgspec.to_builtins(hop) == {
        "depth": 0,
        "dataset": {"namespace": "ns", "name": "orders"},
        "partition": {"dt": "1"},
        "column": None,
        "run": {"run_id": "load", "job": "dag.load", "ended": "2024-10-15T00:01:00Z"},
        "transformations": (),
        "is_certain": True,
        "via": (),
        "note": None,
    }


def test_a_run_found_the_version_that_was_there_when_it_started(history):
    again = event("again", at(5), write("dt=1"), started=at(4))
    found = trace(history(LOAD, MAKE, again), named("revenue"), "dt=1")
    assert short(found)[1][-1] == "load"


def test_what_nobody_is_known_to_have_written_is_a_hop_without_a_run(history):
    found = trace(history(MAKE), named("revenue"), "dt=1")
    assert short(found)[1:] == [(1, "orders", "dt=1", None, None)]
    assert found[1].note == walk.UNKNOWN_WRITER


def test_as_of_asks_for_what_was_there_then(history):
    again = event("again", at(5), write("dt=1"), started=at(4))
    then = datetime(2024, 10, 15, 0, 4, tzinfo=UTC)
    asked = history(LOAD, again)
    assert [h.run.run_id for h in trace(asked, named("orders"), "dt=1", as_of=then)] == ["load"]
    assert [h.run.run_id for h in trace(asked, named("orders"), "dt=1")] == ["again"]


def test_a_read_of_all_found_all_that_was_there(history):
    more = event("more", at(2), write("dt=2"))
    late = event("late", at(9), write("dt=3"), started=at(8))
    total = event("total", at(4), read(), write(name="revenue"), started=at(3))
    found = trace(history(LOAD, more, total, late), named("revenue"))
    assert short(found)[1:] == [
        (1, "orders", "dt=1", None, "load"),
        (1, "orders", "dt=2", None, "more"),
    ]


def test_a_partition_by_some_of_its_dimensions_is_all_that_have_them(history):
    load = event("load", at(1), write("dt=1/region=eu"), write("dt=2/region=eu"))
    assert short(trace(history(load), named("orders"), "dt=1")) == [
        (0, "orders", "dt=1/region=eu", None, "load")
    ]


def test_a_table_that_reads_itself_is_followed_to_its_first_day(history):
    first = event("first", at(1), write("dt=1"), started=at(0))
    second = event("second", at(3), read("dt=1"), write("dt=2"), started=at(2))
    third = event("third", at(5), read("dt=2"), write("dt=3"), started=at(4))
    asked = history(first, second, third)
    assert [hop[-1] for hop in short(trace(asked, named("orders"), "dt=3"))] == [
        "third",
        "second",
        "first",
    ]
    assert len(trace(asked, named("orders"), "dt=3", depth=1)) == 2


def test_what_is_reached_in_two_ways_is_listed_once_at_its_least_depth(history):
    both = event("both", at(5), read("dt=1"), read("dt=1", name="revenue"),
                 write("dt=1", name="report"), started=at(4))  # fmt: skip
    found = trace(history(LOAD, MAKE, both), named("report"), "dt=1")
    assert [hop[:2] for hop in short(found)] == [(0, "report"), (1, "orders"), (1, "revenue")]


class TestColumns:
    MAKE = event(
        "make", at(3), read("dt=1"), read(name="rates"), read(name="names"),
        write("dt=1", name="revenue"), started=at(2),
        columns=[
            edge("amount", "price", subtype="IDENTITY"),
            edge("other", "label"),
            edge(None, "currency", in_name="rates", type="INDIRECT", subtype="JOIN"),
        ],
    )  # fmt: skip

    PLAIN = event(
        "make", at(3), read("dt=1"), write("dt=1", name="revenue"), started=at(2),
        columns=[edge("amount", "price")],
    )  # fmt: skip

    def test_a_column_comes_from_its_edges_and_from_conditions_of_all(self, history):
        found = trace(history(LOAD, self.MAKE), named("revenue"), "dt=1", "amount")
        assert short(found) == [
            (0, "revenue", "dt=1", "amount", "make"),
            (1, "orders", "dt=1", "price", "load"),
            (1, "rates", None, "currency", None),
        ]
        assert [(t.type, t.subtype) for hop in found for t in hop.transformations] == [
            ("DIRECT", "IDENTITY"),
            ("INDIRECT", "JOIN"),
        ]

    def test_of_a_run_without_columns_all_that_it_read_may_be_in_it(self, history):
        found = trace(history(LOAD, MAKE), named("revenue"), "dt=1", "amount")
        assert short(found)[1] == (1, "orders", "dt=1", None, "load")
        assert found[1].note == walk.UNKNOWN_COLUMNS

    def test_a_column_that_nobody_wrote_is_refused_with_those_that_are_known(self, history):
        with pytest.raises(HistoryError, match=r"No run names a column 'amuont'.*amount"):
            trace(history(LOAD, self.PLAIN), named("revenue"), "dt=1", "amuont")


def test_more_hops_than_anybody_reads_are_refused(history, monkeypatch):
    monkeypatch.setattr(walk, "MOST_HOPS", 1)
    with pytest.raises(HistoryError, match="more than 1 hops"):
        trace(history(LOAD, MAKE), named("revenue"), "dt=1")


def test_progress_counts_hops_after_each_depth(history):
    seen = []
    trace(history(LOAD, MAKE), named("revenue"), progress=seen.append)
    assert seen == [1, 2]
