"""Sources: what is an event in files, folders, archives and bundles, and where a build goes on."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from airflow_provider_sparklineage.cli.history.store import merged_document
from airflow_provider_sparklineage.event.archive import Archive, name_of, task_of
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.sources import Reading, source_of
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity
from tests.unit.history.facts.events import event, ours

GOLDEN = Path(__file__).parents[2] / "golden" / "spark-4.0"


def of_minute(minute: int, **changes):
    return event(eventTime=f"2024-10-15T03:{minute:02}:00Z", **changes)


def line_of(minute: int) -> bytes:
    return json.dumps(of_minute(minute)).encode() + b"\n"


def read(*sources: Path | str, known: dict[str, str] | None = None) -> tuple[list[int], Reading]:
    """Read sources; give the minutes of the events that were read, and the reading."""
    reading = Reading(known)
    of = [source_of(str(one), merged_document) for one in sources]
    lines = [json.loads(one.text) for one in reading.lines(of)]
    return [int(line["event_time"][14:16]) for line in lines], reading


LINES = line_of(1) + line_of(2)
ARRAY = json.dumps([of_minute(1), of_minute(2)], indent=1).encode()


@pytest.mark.parametrize(
    ("name", "content", "minutes"),
    [
        ("events.ndjson", LINES, [1, 2]),
        ("events.json", LINES, [1, 2]),
        ("openlineage.log", LINES, [1, 2]),
        ("events.ndjson", LINES.rstrip(), [1, 2]),
        ("events.ndjson", LINES.replace(b"\n", b"\r\n\r\n"), [1, 2]),
        ("events.jsonl.gz", gzip.compress(LINES), [1, 2]),
        ("event.json", json.dumps(of_minute(1), indent=2).encode(), [1]),
        ("event.json", b"\xef\xbb\xbf" + json.dumps(of_minute(1), indent=2).encode(), [1]),
        ("event.json.gz", gzip.compress(json.dumps(of_minute(1), indent=2).encode()), [1]),
        ("1.json", gzip.compress(json.dumps(of_minute(1)).encode()), [1]),
        ("events.json", ARRAY, [1, 2]),
        ("events.json", b"[" + line_of(1).strip() + b"]", [1]),
        ("events.json", b"", []),
        ("events.ndjson", b"\n\n", []),
    ],
)  # fmt: skip
def test_a_file_has_one_event_a_line_or_one_document(tmp_path, name, content, minutes):
    (tmp_path / name).write_bytes(content)
    found, reading = read(tmp_path / name)
    assert (found, reading.events, reading.skipped.total()) == (minutes, len(minutes), 0)


def test_a_file_that_has_not_changed_is_not_read_again(tmp_path):
    file = tmp_path / "events.ndjson"
    file.write_bytes(LINES)
    _, first = read(file)
    file.chmod(0)  # nor opened
    assert read(file, known=first.marks)[0] == []


def test_a_file_that_has_grown_is_read_on(tmp_path):
    file = tmp_path / "events.ndjson"
    file.write_bytes(LINES)
    _, first = read(file)
    with file.open("ab") as stream:
        stream.write(line_of(3))
    minutes, second = read(file, known=first.marks)
    assert minutes == [3]
    assert read(file, known=second.marks)[0] == []


def test_a_torn_last_line_is_left_for_the_next_build(tmp_path):
    file = tmp_path / "events.ndjson"
    file.write_bytes(LINES + line_of(3)[:40])
    minutes, first = read(file)
    assert (minutes, first.skipped) == ([1, 2], {"torn_line": 1})
    file.write_bytes(LINES + line_of(3) + line_of(4))
    assert read(file, known=first.marks)[0] == [3, 4]


@pytest.mark.parametrize("longer", [False, True], ids=["shorter", "longer"])
def test_a_file_that_was_written_anew_is_read_from_its_start(tmp_path, longer):
    file = tmp_path / "events.ndjson"
    file.write_bytes(LINES)
    _, first = read(file)
    file.write_bytes(b"".join(map(line_of, (5, 6, 7) if longer else (5,))))
    assert read(file, known=first.marks)[0] == ([5, 6, 7] if longer else [5])


def test_lines_that_are_none_and_lines_that_are_torn_in_the_middle_cost_themselves_only(tmp_path):
    file = tmp_path / "events.ndjson"
    file.write_bytes(line_of(1) + b"oops\n" + line_of(2)[:30] + b"\n[]\n{}\n" + line_of(3))
    minutes, reading = read(file)
    assert minutes == [1, 3]
    assert reading.skipped == {"no_json": 2, "no_run_event": 1}


def test_a_line_that_is_too_long_is_passed(tmp_path, monkeypatch):
    monkeypatch.setattr("airflow_provider_sparklineage.history.sources.MAX_BYTES", 600)
    file = tmp_path / "events.ndjson"
    file.write_bytes(line_of(1) + b"[" * 5_000 + b"\n" + line_of(2))
    minutes, reading = read(file)
    assert (minutes, reading.skipped) == ([1, 2], {"too_large": 1})


def test_a_compressed_document_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr("airflow_provider_sparklineage.history.sources.MAX_BYTES", 600)
    (tmp_path / "1.json").write_bytes(gzip.compress(b"{" + b" " * 100_000))
    minutes, reading = read(tmp_path / "1.json")
    assert (minutes, reading.skipped) == ([], {"too_large": 1})


def test_a_file_that_is_compressed_twice_is_unpacked_once(tmp_path):
    (tmp_path / "1.json").write_bytes(gzip.compress(gzip.compress(line_of(1))))
    assert read(tmp_path / "1.json")[0] == []


def test_a_compressed_file_that_ends_too_early_gives_what_was_before(tmp_path):
    file = tmp_path / "events.ndjson.gz"
    many = b"".join(map(line_of, range(60)))
    file.write_bytes(gzip.compress(many)[:-100])
    minutes, reading = read(file)
    assert minutes == list(range(len(minutes)))
    assert reading.skipped["torn_file"] == 1


def test_a_folder_is_read_with_all_below_it_and_other_files_are_counted(tmp_path):
    for name, minute in (("b/2.json", 2), ("a/x/1.ndjson", 1)):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_bytes(line_of(minute))
    (tmp_path / "notes.txt").write_text("no events")
    (tmp_path / "=swept-1000").touch()  # the archive's own mark
    minutes, reading = read(tmp_path)
    assert (sorted(minutes), reading.skipped) == ([1, 2], {"other_file": 1})


def test_the_source_is_the_name_that_the_user_gave_with_the_path_below(tmp_path, monkeypatch):
    (tmp_path / "events").mkdir()
    (tmp_path / "events/a.json").write_bytes(line_of(1))
    monkeypatch.chdir(tmp_path)
    (line,) = Reading().lines([source_of("events/")])
    assert json.loads(line.text)["source"] == "events/a.json"


TASK = TaskIdentity("shop/a=b", "task.ü", "manual__2024-10-15T00:00:00+00:00", 2, 7)


def test_an_archive_says_of_its_events_which_try_they_are_of(tmp_path):
    url = tmp_path.as_uri()
    sending = {"started": "2024-10-15T02:59:00+00:00", "runFacets": {}}
    Archive(url).write(TASK, Written(ours()), sending, is_unsent=True)
    reading = Reading()
    (line,) = (json.loads(one.text) for one in reading.lines([source_of(url)]))
    assert reading.skipped.total() == 0
    assert (line["dag_id"], line["task_id"], line["dag_run_id"]) == (
        TASK.dag_id, TASK.task_id, TASK.run_id,
    )  # fmt: skip
    assert (line["map_index"], line["try_number"]) == (7, 2)
    assert line["started"] == "2024-10-15T02:59:00.000000"


def test_an_event_of_an_archive_that_was_kept_anew_is_read_again(tmp_path):
    archive = Archive(tmp_path.as_uri())
    archive.write(TASK, Written(ours(eventTime="2024-10-15T03:01:00Z")), {"started": ""})
    _, first = read(tmp_path)
    archive.write(TASK, Written(ours(eventTime="2024-10-15T03:02:00Z", more="x")), {"started": ""})
    assert read(tmp_path, known=first.marks)[0] == [2]


@pytest.mark.parametrize(
    "task",
    [TASK, TaskIdentity("a", "b", "c", 1), TaskIdentity("..", "~", "%2F", 10, 0)],
    ids=["awkward", "plain", "dots"],
)
def test_the_name_of_a_kept_event_says_its_try(task):
    assert task_of(name_of(task)) == task


TOO_LONG = name_of(TaskIdentity("d" * 300, "t", "r", 1))


@pytest.mark.parametrize(
    "name", ["a/b/c/-1/x", "a/b/c/d/1", "=unsent/b/c/-1/1", "b/c/-1/1", TOO_LONG]
)
def test_other_names_and_those_that_were_too_long_say_no_try(name):
    assert task_of(name) is None


def test_a_bundle_is_its_merged_event_and_not_what_spark_reported(tmp_path):
    bundle = tmp_path / "tries" / "one"
    bundle.mkdir(parents=True)
    shutil.copy(GOLDEN / "staging_chain.ndjson", bundle / "events.ndjson")
    first = json.loads((bundle / "events.ndjson").read_text().splitlines()[0])
    manifest = {
        "application_run_id": first["run"]["runId"],
        "task": {"dag_id": "shop", "task_id": "report", "run_id": "r1", "try_number": 1},
        "started": "2024-10-15T02:00:00Z",
        "outcome": "COMPLETE",
    }
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    reading = Reading()
    source = source_of(str(tmp_path), merged_document)
    (line,) = (json.loads(one.text) for one in reading.lines([source]))
    assert (line["dag_id"], line["task_id"], line["map_index"]) == ("shop", "report", -1)
    assert line["started"] == "2024-10-15T02:00:00.000000"
    assert {access["side"] for access in line["accesses"]} == {"read", "write"}
    assert read(tmp_path, known=reading.marks)[0] == []


def test_a_bundle_that_cannot_be_merged_is_counted(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "events.ndjson").write_text("")
    assert read(tmp_path)[1].skipped == {"unusable_bundle": 1}


def test_a_bundle_is_counted_where_nobody_hands_in_how_it_is_merged(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "events.ndjson").write_text("")
    reading = Reading()
    assert list(reading.lines([source_of(str(tmp_path))])) == []
    assert reading.skipped == {"unusable_bundle": 1}


def test_a_source_that_is_not_there_is_an_error_that_says_what_to_give(tmp_path):
    with pytest.raises(UnusableInputError, match="Give an archive folder"):
        source_of(str(tmp_path / "nothing"))


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_opened_is_counted_and_tried_again(tmp_path):
    (tmp_path / "a.json").write_bytes(line_of(1))
    (tmp_path / "a.json").chmod(0)
    minutes, reading = read(tmp_path)
    assert (minutes, reading.skipped, reading.marks) == ([], {"unreadable": 1}, {})


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.json")
    assert read(tmp_path)[1].skipped == {"unreadable": 1}


def test_a_store_below_the_folder_of_its_events_is_not_read(tmp_path):
    (tmp_path / "first.ndjson").write_bytes(line_of(1))
    store = Store(str(tmp_path / "history"))
    built = build(store, [source_of(str(tmp_path))])
    assert (built.events, built.new, dict(built.skipped)) == (1, 1, {})
    (tmp_path / "second.ndjson").write_bytes(line_of(2))
    built = build(store, [source_of(str(tmp_path))])
    assert (built.events, built.new, dict(built.skipped)) == (1, 1, {})
