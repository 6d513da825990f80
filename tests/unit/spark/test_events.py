"""Reading what a listener left behind, whatever state its file is in."""

import io
from datetime import UTC, datetime

import pytest

from airflow_provider_sparklineage.spark.capture.events import as_lines, read_events
from airflow_provider_sparklineage.spark.capture.lines import ReadReport

EVENT = (
    b'{"eventTime":"2026-01-02T03:04:05Z","eventType":"START","run":{"runId":"r"},'
    b'"job":{"namespace":"n","name":"j"},"producer":"p","schemaURL":"s"}'
)


def read(*lines: bytes, **kwargs):
    report = ReadReport()
    return list(read_events(lines, report, source="events.ndjson", **kwargs)), report


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [("", 0), (".1", 100_000), (".04", 40_000), (".123456", 123_456), (".1234567", 123_457)],
)
def test_event_times_have_any_number_of_fraction_digits(text, microsecond):
    line = EVENT.replace(b"05Z", b"05" + text.encode() + b"Z") + b"\n"
    [event], _ = read(line)
    assert event.event_time == datetime(2026, 1, 2, 3, 4, 5, microsecond, tzinfo=UTC)


def test_a_time_without_zone_is_utc():
    [event], _ = read(EVENT.replace(b"05Z", b"05") + b"\n")
    assert event.event_time == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_a_torn_last_line_is_reported_and_costs_nothing_else():
    events, report = read(EVENT + b"\n", EVENT[:60])
    assert (len(events), report.torn, report.malformed_lines) == (1, True, 0)


def test_a_complete_last_line_without_line_end_counts():
    events, report = read(EVENT)
    assert (len(events), report.torn) == (1, False)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\xff\xfe\n",
        b"not json\n",
        b"[]\n",
        b'{"run":{}}\n',
        b"\x00\x00\n",
        b'{"eventTime":1}\n',
        b"null\n",
    ],
)
def test_garbage_lines_are_named_and_skipped(garbage):
    events, report = read(EVENT + b"\n", garbage, EVENT + b"\n")
    assert len(events) == 2
    assert report.malformed_lines == 1
    assert report.malformed[0].startswith("events.ndjson:2: ")


def test_only_the_first_garbage_lines_are_named():
    _, report = read(*[b"x\n"] * 50)
    assert (report.malformed_lines, len(report.malformed)) == (50, 5)


def test_empty_lines_are_nothing():
    events, report = read(b"\n", EVENT + b"\n", b"  \n")
    assert (len(events), report.malformed_lines) == (1, 0)


def test_reading_ends_when_time_is_up():
    answers = iter([False, True])
    events, report = read(EVENT + b"\n", EVENT + b"\n", past_deadline=lambda: next(answers))
    assert (len(events), report.cut) == (1, True)


def test_facets_that_nobody_knows_and_nulls_are_accepted():
    line = EVENT.replace(
        b'"producer"',
        b'"inputs":null,"outputs":[{"namespace":"n","name":"d","facets":null,"outputFacets":{"x":{"y":1}}}],'
        b'"unknown":{"a":[1]},"producer"',
    )
    [event], report = read(line + b"\n")
    assert report.malformed_lines == 0
    assert bytes(event.outputs[0].output_facets["x"]) == b'{"y":1}'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(EVENT + b"\n" + EVENT + b"\n", id="NDJSON"),
        pytest.param(b"[" + EVENT + b",\n" + EVENT + b"]", id="array over lines"),
        pytest.param(b"[" + EVENT + b"," + EVENT + b"]\n", id="array on one line"),
        pytest.param(b"\n" + EVENT + b"\n" + EVENT + b"\n", id="empty first line"),
    ],
)
def test_ndjson_and_json_documents_are_read_alike(text):
    events, report = read(*as_lines(io.BytesIO(text)))
    assert (len(events), report.malformed_lines) == (2, 0)


def test_a_pretty_printed_event_is_one_event():
    events, _ = read(*as_lines(io.BytesIO(EVENT.replace(b",", b",\n  "))))
    assert len(events) == 1


def test_nothing_is_no_event():
    assert read(*as_lines(io.BytesIO(b"")))[0] == []
