"""What other runs of a task accessed: the tab's second question."""

from __future__ import annotations

import time
import weakref

import pytest

from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.plugins import stored, task_lineage
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from tests.browser.events import partitioned
from tests.operators.tab.conftest import event

pytestmark = pytest.mark.airflow


DROPPED = {"code": "detail_dropped"}


def accessed(*written, read=()):
    """Make the event of a run that read and wrote these partitions."""
    inputs = [partitioned("input", "orders", named=list(read))[0]]
    outputs = [partitioned("output", "revenue", named=list(written))[0]]
    return event() | {"inputs": inputs, "outputs": outputs}


def of_day(number):
    return {"dt": f"2024-05-{number:02}"}


@pytest.fixture
def partitions(ask):
    """Ask for them; gives the partitions written, how many runs there are, and the note."""

    def ask_for(**query):
        answer = ask(what="partitions", **query)
        written = [d["partitions"] for d in answer["datasets"] if d["side"] == "written"]
        return (written[0] if written else []), answer["runs"], answer["note"]

    return ask_for


def test_other_runs_have_their_partitions(ask, ran):
    ran(4, accessed(of_day(4), read=[of_day(3)]))
    ran(5, accessed(of_day(5), read=[of_day(4)]))
    ran(7, accessed(of_day(7)))
    identity = {"namespace": "s3://lake"}
    assert ask(what="partitions") == {
        "runs": 3,
        "datasets": [
            {
                "side": "read",
                **identity,
                "name": "orders",
                "partitions": [of_day(4), of_day(3)],
            },
            {
                "side": "written",
                **identity,
                "name": "revenue",
                "partitions": [of_day(7), of_day(5), of_day(4)],
            },
        ],
        "note": "",
    }


def test_its_own_are_not_among_them(partitions, push, ran):
    push(accessed(of_day(6)))
    ran(5, accessed(of_day(5)))
    assert partitions() == ([of_day(5)], 1, "")


def test_what_failed_is_not(partitions, ran):
    ran(4, accessed(of_day(4)), state="failed")
    ran(5, accessed(of_day(5)) | {"eventType": "FAIL"})
    assert partitions() == ([], 0, "")


def test_nothing_but_dates_is_given(partitions, ran):
    ran(5, accessed(of_day(5) | {"customer": "Alice"}, of_day(5) | {"customer": "Bob"}, {"x": "y"}))
    assert partitions()[0] == [of_day(5)]


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param(None, id="none"),
        pytest.param({"partitions": 5}, id="a number"),
        pytest.param({"partitions": [5, {}, {"dimensions": [1]}]}, id="no partitions"),
        pytest.param({"partitions": [{"dimensions": {"dt": 5}}]}, id="no texts"),
        pytest.param([], id="a list"),
    ],
)
def test_facets_of_any_shape_are_harmless(partitions, ran, condition):
    pushed = accessed()
    pushed["outputs"][0]["outputFacets"] = {"subset": {"outputCondition": condition}}
    ran(5, pushed)
    assert partitions() == ([], 1, "")


def test_siblings_of_a_mapped_instance_are_other_runs(partitions, push):
    push(accessed(of_day(6)), map_index=7)
    assert partitions() == ([of_day(6)], 1, "")


def test_of_many_siblings_the_nearest_are_read_and_as_many_runs(
    partitions, ran, map_to, monkeypatch
):
    monkeypatch.setattr(task_lineage, "MAX_OTHER_RUNS", 4)
    for day in (3, 4, 5):
        ran(day, accessed(of_day(day)), map_index=7)
    for index in (4, 6, 8, 9, 11, 12):
        map_to(index, accessed(of_day(index + 10)))
    assert partitions(map_index=7) == ([of_day(day) for day in (18, 16, 5, 4)], 4, "")


def test_as_many_runs_are_read_as_are_near(partitions, ran, monkeypatch):
    monkeypatch.setattr(task_lineage, "MAX_OTHER_RUNS", 5)  # and a mapped sibling is one
    for day in range(1, 13):
        ran(day, accessed(of_day(day)))
    assert partitions() == ([of_day(day) for day in (8, 7, 6, 5)], 4, "")


def test_where_there_are_few_before_it_more_after_it_are(partitions, ran, monkeypatch):
    monkeypatch.setattr(task_lineage, "MAX_OTHER_RUNS", 5)  # and a mapped sibling is one
    for day in (5, 8, 9, 10, 11, 12):
        ran(day, accessed(of_day(day)))
    assert partitions() == ([of_day(day) for day in (10, 9, 8, 5)], 4, "")


def test_an_answer_is_small(ask, ran):
    hours = [{"dt": "2024-05-05", "customer": str(n)} for n in range(5000)]
    ran(5, accessed(*hours))
    answer = ask(what="partitions")
    assert len(answer["datasets"][0]["partitions"]) == task_lineage.MAX_VALUES


def test_runs_without_an_xcom_are_read_from_the_archive(partitions, ran, archive):
    ran(4, accessed(of_day(4)))
    ran(5)
    archive.write(TaskIdentity("shop", "revenue", "run of 5", 1), Written(accessed(of_day(5))))
    ran(3)  # of which nobody has anything
    assert partitions() == ([of_day(5), of_day(4)], 2, "")


def test_one_event_is_held_in_memory_at_a_time(partitions, ran, archive, monkeypatch):
    class Held(dict):
        """An event that can be referred to weakly."""

        __hash__ = object.__hash__

    made, most = weakref.WeakSet(), []

    def pushed(_wanted, _session):
        found = Held(accessed(of_day(5)))
        found["run"] = {"facets": {"sparkLineage_capture": {"degradations": [DROPPED]}}}
        made.add(found)
        most.append(len(made))
        return stored.StoredEvent(found)

    monkeypatch.setattr(stored, "pushed", pushed)
    for day in range(1, 6):
        ran(day)
    assert partitions() == ([of_day(5)], 6, "")
    assert max(most) <= 2


def test_an_archive_that_is_away_is_a_note(partitions, ran, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__ARCHIVE_URL", "gs://nobody@nowhere/x")
    ran(3)
    ran(4, accessed(of_day(4)))
    ran(5)
    written, runs, note = partitions()
    assert (written, runs) == ([of_day(4)], 1)
    assert note.count("could not be read from") == 1


def test_an_archive_that_hangs_is_waited_for_once(partitions, ran, archive, monkeypatch):
    monkeypatch.setattr(task_lineage, "HISTORY_TIMEOUT_S", 0.2)
    monkeypatch.setattr(Archive, "_store", lambda _: time.sleep(5))
    for day in range(1, 6):
        ran(day, accessed(of_day(day)) if day == 4 else None)
    started = time.monotonic()
    written, runs, note = partitions()
    assert (written, runs) == ([of_day(4)], 1)
    assert "no answer within" in note
    assert time.monotonic() - started < 4


def test_no_such_task_instance(ask):
    ask(404, what="partitions", task_id="nosuch")
