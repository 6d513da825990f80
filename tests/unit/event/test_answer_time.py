"""How many columns the next event may have, by the time that the backend took for the last one."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import requests
from msgspec.structs import replace
from urllib3.exceptions import MaxRetryError, ReadTimeoutError

from airflow_provider_sparklineage.event.archive import Archive
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.event.emitter import timed
from airflow_provider_sparklineage.event.pipeline import Others, asked, ready_to_send
from airflow_provider_sparklineage.event.steps.size import columns_in_time
from airflow_provider_sparklineage.history.sources import Reading, source_of
from airflow_provider_sparklineage.model.representation import Adaptation, Answered
from airflow_provider_sparklineage.settings.resolution import Origin, Source, resolve
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from tests.unit.event.test_columns import WIDE, columns_of, counted, start
from tests.unit.event.test_size import dropped_messages

TIMED = Adaptation("marquez", max_columns=400, is_timed=True)
NAME = "shop/manual/revenue/-1/1"


def answer(columns=3000, datasets=0, limit=3000, *, is_whole=False, slow=0, seconds=4.0):
    return Answered(columns, datasets, limit, is_whole, slow, seconds)


@pytest.mark.parametrize(
    ("answered", "columns"),
    [
        pytest.param(answer(seconds=8.0), 1500, id="half of what took twice the time"),
        pytest.param(answer(seconds=55.0), 300, id="a tenth of the first limit at least"),
        pytest.param(answer(seconds=None), 1200, id="no answer counts as ten seconds"),
        pytest.param(
            answer(seconds=8.0, is_whole=True), 1500, id="a slow answer to a whole event counts"
        ),
        pytest.param(answer(2300, 100, seconds=6.0), 1300, id="a dataset is seven columns"),
        pytest.param(answer(100, 600, seconds=8.0), 300, id="the datasets alone take too long"),
        pytest.param(answer(seconds=2.5), 4800, id="more in proportion"),
        pytest.param(answer(seconds=0.1), 6000, id="twice as many at most"),
        pytest.param(answer(seconds=0.0), 6000, id="an answer in no time"),
        pytest.param(answer(slow=5000, seconds=0.1), 4000, id="half the way to what was too slow"),
        pytest.param(answer(slow=4000, seconds=0.1), 3000, id="not a few more because of that"),
        pytest.param(answer(seconds=3.5), 3000, id="not for a few columns more"),
        pytest.param(answer(seconds=4.0), 3000, id="just in time"),
        pytest.param(answer(1800, seconds=3.9), 3000, id="in time with fewer than were allowed"),
        pytest.param(answer(50, seconds=0.1, is_whole=True), 3000, id="no more than is needed"),
        pytest.param(answer(50, limit=900, seconds=0.1, is_whole=True), 900, id="nor after less"),
        pytest.param(answer(50, seconds=12.0, is_whole=True), 300, id="few that take long"),
    ],
)
def test_the_limit_follows_from_the_last_answer(answered, columns):
    assert columns_in_time(answered, 3000) == columns


# --- a task that runs again and again -------------------------------------------------------------


def runs(per_column, per_dataset, count=30):
    """Send the event of a task by runs to a backend of this speed; give columns and seconds."""
    how = TIMED
    found = []
    for _ in range(count):
        sent = ready_to_send(WIDE, how)
        columns = asked(WIDE, sent, how)
        seconds = per_column * counted(sent) + per_dataset * 40
        found.append((counted(sent), seconds))
        how = replace(how, answered=replace(columns, seconds=seconds))
    return found


def test_the_first_event_has_the_columns_of_the_setting():
    assert runs(0.001, 0, 1)[0][0] == counted(ready_to_send(WIDE, replace(TIMED, is_timed=False)))


@pytest.mark.parametrize("per_dataset", [0, 0.01, 0.05])
@pytest.mark.parametrize("per_column", [0.02, 0.012, 0.008, 0.0045])
def test_soon_each_event_is_answered_in_time_with_the_same_columns(per_column, per_dataset):
    *_, before, last = runs(per_column, per_dataset)
    assert before == last
    assert last[1] <= 4
    # Outputs go as a whole, and one with its column lineage has 110 columns.
    assert last[1] + 110 * per_column > 4 / 1.25


@pytest.mark.parametrize("per_column", [0.1, 0.06])
def test_where_not_even_an_output_is_answered_in_time_it_is_seldom_tried(per_column):
    late = [seconds > 4 for _, seconds in runs(per_column, 0)[1:]]
    assert sum(late) <= len(late) / 5


def test_after_a_slow_answer_the_limit_grows_again():
    slow = replace(TIMED, answered=answer(1100, 40, 2000, is_whole=True, seconds=40.0))
    found = []
    for _ in range(30):
        sent = ready_to_send(WIDE, slow)
        found.append(counted(sent))
        slow = replace(slow, answered=replace(asked(WIDE, sent, slow), seconds=0.1))
    assert found[0] <= 40
    assert found == sorted(found)
    assert found[-1] == 1100


def test_a_quick_backend_soon_gets_all_of_it():
    columns = [columns for columns, _ in runs(0.0005, 0.001)]
    assert columns[0] <= 400 < columns[1] <= 800
    assert set(columns[2:]) == {1100}


def test_a_slow_backend_gets_less_the_second_time():
    (first, slow), (second, quicker), *_ = runs(0.02, 0)
    assert slow > 4 >= quicker
    assert first > second


# --- what an event says of it ---------------------------------------------------------------------


def test_an_event_says_why_it_has_less_and_where_all_of_it_is():
    how = replace(TIMED, answered=answer(3000, limit=3000, seconds=14.26))
    [of_inputs, *_] = dropped_messages(ready_to_send(WIDE, how))
    assert of_inputs == (
        "240 columns of inputs that no column lineage names were left out: they are more than the "
        "time of Marquez allows; in the run before it took 14.3 s for 3,000 columns, so this event "
        "has at most 841, and the archive and the tab have all of them."
    )


def test_an_event_says_that_the_last_one_was_not_answered():
    how = replace(TIMED, answered=answer(500, limit=500, seconds=None))
    [first, *_] = dropped_messages(ready_to_send(WIDE, how))
    assert first.endswith(
        " were left out: they are more than the time of Marquez allows; in the run before it did "
        "not answer 500 columns, so this event has at most 200, and the archive and the tab have "
        "all of them."
    )


def test_an_event_that_fits_is_sent_as_it_is():
    how = replace(TIMED, describe_datasets=False, answered=answer(1100, limit=1100, seconds=3.9))
    assert ready_to_send(WIDE, how) is WIDE


def test_start_has_the_columns_that_the_end_will_have():
    how = replace(TIMED, answered=answer(1000, limit=1000, seconds=6.0))
    end, begin = ready_to_send(WIDE, how), ready_to_send(start(WIDE), how, Others(WIDE))
    for side in ("inputs", "outputs"):
        assert columns_of(begin, side) == columns_of(end, side)


@pytest.mark.parametrize("columns", ["10000", "500"])
def test_a_limit_that_the_user_has_set_stays(columns):
    how = resolve(Source(Origin.CONFIGURATION, {"max_columns": columns})).adaptation
    slow = replace(how, answered=answer(seconds=40.0))
    assert not how.is_timed
    assert asked(WIDE, WIDE, how) is None
    assert ready_to_send(WIDE, slow) == ready_to_send(WIDE, how)
    assert resolve().adaptation.is_timed


def test_a_backend_that_does_not_pay_per_column_is_not_measured():
    how = replace(TIMED, backend="generic", answered=answer(seconds=40.0))
    assert asked(WIDE, WIDE, how) is None
    assert ready_to_send(WIDE, how) is WIDE


# --- the time of an answer ------------------------------------------------------------------------


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Sending:
    """A transport that takes some time, and raises an error if there is one."""

    def __init__(self, clock, seconds, error=None, kind="http"):
        self.kind = kind
        self._clock, self._seconds, self._error = clock, seconds, error

    def emit(self, event):
        self._clock.now += self._seconds
        if self._error is not None:
            raise self._error
        return event


def measured(*children):
    """Send an event by all of these, as a composite transport does; give the measured times."""
    transport = SimpleNamespace(kind="composite", transports=list(children))
    with timed(transport, children[0]._clock) as found:
        for child in children:
            try:
                child.emit("an event")
            except Exception:
                continue
    assert all("emit" not in vars(child) for child in children)
    return found


# As ``requests`` raises it when ``urllib3`` has tried in vain to read an answer.
GAVE_UP = requests.ConnectionError(MaxRetryError(None, "/", ReadTimeoutError(None, "/", "late")))


@pytest.mark.parametrize(
    ("error", "times"),
    [
        pytest.param(None, [2.0], id="an answer"),
        pytest.param(requests.ReadTimeout(), [2.0], id="no answer in time"),
        pytest.param(GAVE_UP, [2.0], id="no answer, also when asked again"),
        pytest.param(requests.ConnectTimeout(), [], id="nobody there"),
        pytest.param(requests.ConnectionError("refused"), [], id="refused"),
        pytest.param(requests.HTTPError("422"), [], id="not taken"),
    ],
)
def test_an_answer_and_a_wait_in_vain_are_measured_and_another_error_is_not(error, times):
    assert measured(Sending(Clock(), 2.0, error)) == times


def test_each_server_is_measured_and_other_transports_are_not():
    clock = Clock()
    children = [Sending(clock, 5.0, kind="datahub"), Sending(clock, 1.5), Sending(clock, 0.5)]
    assert measured(*children) == [1.5, 0.5]


# --- in the archive -------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path):
    return Archive(f"file://{tmp_path}/archive")


@pytest.mark.parametrize("seconds", [None, 8.25])
def test_the_next_run_of_the_task_finds_the_time(archive, seconds):
    assert archive.answered(NAME) is None
    archive.note_answered(NAME, answer(seconds=seconds))
    assert archive.answered("shop/scheduled/revenue/-1/7") == answer(seconds=seconds)
    assert archive.answered("shop/manual/other/-1/1") is None
    assert archive.answered("shop/manual/revenue/3/1") is None
    archive.note_answered(NAME, None)
    assert archive.answered(NAME) is None


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'{"columns": "many"}', b"{" * 5000])
def test_a_damaged_time_is_none(archive, content):
    archive.note_answered(NAME, answer())
    [file] = (archive.folder / "=answered").rglob("-1")
    file.write_bytes(content)
    assert archive.answered(NAME) is None


def test_times_are_neither_events_nor_read_by_the_history(archive):
    archive.write(TaskIdentity("shop", "revenue", "manual", 1), Written(WIDE))
    archive.note_answered(NAME, answer())
    assert [entry.name for entry in archive.entries()] == [NAME]
    assert archive.unsent() == []
    reading = Reading()
    assert len([*reading.lines([source_of(str(archive.folder))])]) == 1
    assert json.loads(json.dumps(reading.skipped)) == {}


def test_an_object_store_has_no_times():
    store = Archive("s3://lake/lineage")
    store.note_answered(NAME, answer())  # asks nobody
    assert store.answered(NAME) is None
