"""What is kept of a large event, and its compressed file in the archive."""

from __future__ import annotations

import gzip
import json

import pytest

from airflow_provider_sparklineage.event import archive as archives
from airflow_provider_sparklineage.event import column_lineage, pipeline, sending
from airflow_provider_sparklineage.event.archive import (
    MAX_BYTES,
    Archive,
    ArchivedEvent,
    content_of,
    unpacked,
)
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.event.pipeline import (
    adapted,
    event_of,
    events_of,
    ready_to_send,
    sent_of,
)
from airflow_provider_sparklineage.event.stored import stored
from airflow_provider_sparklineage.model.allowance import Allowance, Stage
from airflow_provider_sparklineage.model.exceptions import DocumentError
from airflow_provider_sparklineage.model.representation import (
    MAX_KEPT_BYTES,
    Adaptation,
    Representation,
)
from airflow_provider_sparklineage.settings.resolution import Origin, Source, resolve
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER
from tests.unit.event.test_size import dropped_messages, size, wide

LINEAGE = wide()
WHOLE = event_of(LINEAGE, ReadReport(), header=HEADER)
LIMIT = size(WHOLE) // 3
BACKENDS = ("generic", "marquez")
SENDING = {"started": "2024-05-06T01:00:00+00:00", "runFacets": {}, "jobFacets": {}}
TASK = TaskIdentity("shop", "revenue", "manual", 1)


def limited(backend):
    return Adaptation(backend, max_event_bytes=LIMIT)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_event_is_kept_whole_and_sent_within_the_limit(backend):
    made = events_of(LINEAGE, limited(backend), ReadReport(), header=HEADER)
    assert made.kept == WHOLE
    assert not dropped_messages(made.kept)
    assert dropped_messages(made.adapted)
    assert all("[sparklineage] max_event_bytes" in m for m in dropped_messages(made.adapted))
    assert size(made.adapted) <= LIMIT < size(made.kept)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_large_event_is_sent_again_as_it_was_at_first(backend):
    made = events_of(LINEAGE, limited(backend), ReadReport(), header=HEADER)
    again = sent_of(stored(content_of(Written(made.kept), None)), limited(backend))
    assert again == ready_to_send(made.adapted, limited(backend))


def test_the_events_of_other_runs_are_as_large_as_they_were_sent():
    sent = adapted(WHOLE, limited("generic"))
    assert size(sent) <= LIMIT
    assert adapted(sent, limited("generic")) is sent


def test_a_transport_that_converts_events_gets_no_more_than_may_be_sent():
    archived = ArchivedEvent({**WHOLE, "run": {**WHOLE["run"], "runId": "r"}}, SENDING)
    how = limited("generic")
    [line] = sending.lines_of(archived, how, dict, with_start=False, with_neutral=True)
    assert all(size(event) <= LIMIT for event in json.loads(line))


def test_the_setting_limits_what_is_sent_and_not_what_is_kept():
    of_user = resolve(Source(Origin.CONFIGURATION, {"max_event_bytes": "9000"}))
    assert of_user.adaptation.max_event_bytes == 9000
    assert of_user.representation.max_event_bytes == MAX_KEPT_BYTES


def test_an_event_beyond_the_limit_of_kept_ones_says_so():
    kept = event_of(LINEAGE, ReadReport(), Representation(max_event_bytes=LIMIT), header=HEADER)
    assert size(kept) <= LIMIT
    assert all("than the limit of a kept event allows" in m for m in dropped_messages(kept))


@pytest.fixture
def _nothing_is_cheap(monkeypatch):
    """Let column lineage that cannot be sent be left out before its facets are made."""
    monkeypatch.setattr(column_lineage, "CHEAP", 1000)


FEW = LIMIT // 3  # even the edges alone are more


@pytest.mark.usefixtures("_nothing_is_cheap")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_monstrous_event_is_kept_whole_and_made_smaller_for_the_backend_alone(backend):
    made = events_of(LINEAGE, Adaptation(backend, max_event_bytes=FEW), ReadReport(), header=HEADER)
    assert made.kept == WHOLE
    assert size(made.adapted) <= FEW
    assert all("[sparklineage] max_event_bytes" in m for m in dropped_messages(made.adapted))
    # Left out before its facets were made, so that they are not adapted in vain.
    assert "The column lineage of " in dropped_messages(made.adapted)[-1]


@pytest.mark.usefixtures("_nothing_is_cheap")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_monstrous_event_is_kept_in_part_if_time_is_short_and_says_so(backend, monkeypatch):
    left = [20.0]  # seconds, of which adapting the event takes nearly all

    def sendable(*args):
        left[0] = 1.0
        return of_pipeline(*args)

    of_pipeline = pipeline.sendable
    monkeypatch.setattr(pipeline, "sendable", sendable)
    allowance = Allowance(lambda: left[0], after=Stage.MERGING)
    made = events_of(
        LINEAGE,
        Adaptation(backend, max_event_bytes=FEW),
        ReadReport(),
        header=HEADER,
        allowance=allowance,
    )
    capture = made.kept["run"]["facets"]["sparkLineage_capture"]
    [cut] = [d["message"] for d in capture["degradations"] if d["code"] == "collection_cut"]
    assert cut.startswith("Making the event took too long, so that Airflow keeps no more of it ")
    assert size(made.kept) < size(WHOLE)
    assert dropped_messages(made.kept)


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture
def _small_is_large(monkeypatch):
    monkeypatch.setattr(archives, "DEFAULT_MAX_EVENT_BYTES", 1000)


@pytest.mark.parametrize("sending_part", [None, SENDING])
def test_the_file_of_an_event_that_can_be_sent_is_plain_json(sending_part):
    content = content_of(Written(WHOLE), sending_part)
    assert json.loads(content) == ({"sending": sending_part} if sending_part else {}) | WHOLE
    assert unpacked(content) is content


@pytest.mark.usefixtures("_small_is_large")
@pytest.mark.parametrize("sending_part", [None, SENDING])
def test_the_file_of_a_larger_event_is_compressed_and_the_same_each_time(sending_part):
    content = content_of(Written(WHOLE), sending_part)
    assert content == content_of(Written(WHOLE), sending_part)
    assert len(content) < size(WHOLE) / 10
    assert json.loads(gzip.decompress(content)) == json.loads(unpacked(content))
    assert json.loads(unpacked(content)).pop("sending", None) == sending_part


@pytest.mark.usefixtures("_small_is_large")
def test_the_archive_reads_what_it_has_compressed(tmp_path):
    archive = Archive(f"file://{tmp_path}")
    archive.write(TASK, Written(WHOLE), SENDING)
    assert archive.read(TASK) == WHOLE
    [entry] = archive.entries()
    assert archive.archived(entry.name) == (WHOLE, SENDING)
    assert archive.tries(TASK) == [1]


@pytest.mark.usefixtures("_small_is_large")
def test_a_smaller_event_of_the_same_try_replaces_a_compressed_one(tmp_path):
    archive = Archive(f"file://{tmp_path}")
    archive.write(TASK, Written(WHOLE))
    small = event_of(wide(1, 0, 1), ReadReport(), header=HEADER)
    archive.write(TASK, Written(small))
    assert archive.read(TASK) == small
    assert len(archive.entries()) == 1


def test_the_largest_kept_event_can_be_read_with_what_airflow_adds():
    content = gzip.compress(b"x" * MAX_KEPT_BYTES + b"y" * 1024 * 1024)
    assert len(unpacked(content)) == MAX_KEPT_BYTES + 1024 * 1024


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(gzip.compress(b" " * (MAX_BYTES + 1)), "bytes, so it is not", id="a bomb"),
        pytest.param(b" " * (MAX_BYTES + 1), "bytes, so it is not read", id="a large file"),
        pytest.param(gzip.compress(b"{}" * 99)[:-9], "it ends too early", id="a torn file"),
        pytest.param(b"\x1f\x8b{}", "is damaged", id="no compressed file"),
    ],
)
def test_a_file_that_is_too_large_or_damaged_is_refused(content, problem):
    with pytest.raises(DocumentError, match=problem):
        unpacked(content)
