"""The ``sparklineage`` command, as a person in a shell meets it."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.cli import commands, show
from airflow_provider_sparklineage.cli.command_line import AIRFLOW_COMMANDS, COMMANDS
from airflow_provider_sparklineage.event.model import read_document
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.terms import JobName
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from tests.conftest import golden

STAGING = str(golden("staging_chain"))


@pytest.fixture
def bundle(tmp_path):
    """Make a capture bundle of a recorded case."""

    def make(case="staging_chain", **manifest):
        text = golden(case).read_text()
        run_id = json.loads(text.splitlines()[0])["run"]["runId"]
        made = capture.create(
            tmp_path / "captures", Manifest(application_run_id=run_id, **manifest)
        )
        made.events_path.write_text(text)
        return made.path

    return make


# --- merge ----------------------------------------------------------------------------------------


def test_merge_prints_one_run_event_and_its_notes(run):
    done = run("merge", STAGING)
    event = json.loads(done.out)
    assert event["eventType"] == "COMPLETE"
    assert [d["name"] for d in event["inputs"]] == [
        "/lake/customers",
        "/lake/orders",
        "/lake/rates",
    ]
    assert (
        event["run"]["runId"]
        == json.loads(golden("staging_chain").read_text().splitlines()[0])["run"]["runId"]
    )
    assert done.err.startswith("note: internal_read_assumed: ")
    assert done.code == 0


def test_the_same_events_give_the_same_bytes_in_any_order_of_files(run, tmp_path):
    lines = golden("staging_chain").read_text().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    first, second = tmp_path / "a.ndjson", tmp_path / "b.ndjson"
    first.write_text("".join(lines[:7]))
    second.write_text("".join(lines[7:]))
    outputs = {
        run("merge", *order).out for order in ([str(first), str(second)], [str(second), str(first)])
    }
    outputs.add(run("merge", STAGING).out)
    assert len(outputs) == 1


def test_merge_reads_stdin(run, monkeypatch):
    text = golden("staging_chain").read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text)))
    assert run("merge", "-").out == run("merge", STAGING).out


def test_merge_reads_json_documents(run, tmp_path):
    events = [json.loads(line) for line in golden("staging_chain").read_text().splitlines()]
    array = tmp_path / "events.json"
    array.write_text(json.dumps(events, indent=2))
    assert (
        json.loads(run("merge", str(array)).out)["inputs"]
        == json.loads(run("merge", STAGING).out)["inputs"]
    )


def test_the_job_of_the_merged_event_can_be_named(run):
    event = json.loads(run("merge", STAGING, "--job-namespace", "ns", "--job-name", "dag.task").out)
    assert (event["job"]["namespace"], event["job"]["name"]) == ("ns", "dag.task")


def test_merge_takes_identity_and_time_of_a_bundle_from_its_manifest(run, bundle):
    from datetime import UTC, datetime

    path = bundle(
        run_id="00000000-0000-7000-8000-000000000001",
        job=JobName("airflow", "shop.revenue"),
        ended=datetime(2024, 5, 7, tzinfo=UTC),
        outcome="FAIL",
    )
    event = json.loads(run("merge", str(path)).out)
    assert event["run"]["runId"] == "00000000-0000-7000-8000-000000000001"
    assert (event["job"]["namespace"], event["job"]["name"]) == ("airflow", "shop.revenue")
    assert (event["eventTime"], event["eventType"]) == ("2024-05-07T00:00:00+00:00", "FAIL")


def test_notes_beyond_those_that_the_event_lists_are_counted():

    capture = {"degradations": [{}, {}], "degradationCounts": {"a": 2, "b": 5}}
    event = {"run": {"facets": {"sparkLineage_capture": capture}}}
    assert read_document(event).capture.unlisted == 5


def test_a_compressed_file_of_the_archive_is_shown_as_a_plain_one_is(run, tmp_path):
    event = run("merge", STAGING).out.encode()
    shown = []
    for name, content in (("plain.json", event), ("compressed.json", gzip.compress(event))):
        (tmp_path / name).write_bytes(content)
        shown.append(run("show", str(tmp_path / name)))
    assert shown[0].code == 0
    assert shown[0] == shown[1]


def test_a_compressed_file_that_is_damaged_is_refused(run, tmp_path):
    (tmp_path / "1.json").write_bytes(gzip.compress(b"{}" * 99)[:-20])
    done = run("show", str(tmp_path / "1.json"))
    assert done.code == 2
    assert "1.json cannot be kept in" in done.err


def test_strict_turns_a_note_into_exit_code_1(run):
    done = run("merge", STAGING, "--strict")
    assert done.code == 1
    assert json.loads(done.out)


def test_a_bundle_limits_the_size_of_its_event(run, bundle):
    full, small = (run("merge", str(bundle(**m))) for m in ({}, {"max_event_bytes": 9000}))
    assert '"description": "' in full.out
    assert '"description": "' not in small.out
    assert "note: detail_dropped: " in small.err


def test_merge_takes_another_limit_than_the_bundle_has_and_names_it(run, bundle):
    limited = str(bundle(max_event_bytes=9000))
    hint = "note: --max-event-bytes N gives an event of up to N bytes, whatever is configured\n"
    small, full = run("merge", limited), run("merge", limited, "--max-event-bytes", "1000000")
    assert small.err.endswith(hint)
    assert hint not in full.err
    assert "detail_dropped" not in full.err + full.out


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(b"", "1: no complete event", id="empty"),
        pytest.param(b"not json\n", ":1: ", id="not JSON"),
        pytest.param(b'{"a": 1}\n', ":1: ", id="not an event"),
        pytest.param(b'\n\n{"eventTime": 5}\n', ":3: ", id="third line"),
    ],
)
def test_unusable_input_is_exit_code_2_with_file_and_line(run, tmp_path, text, why):
    file = tmp_path / "events.ndjson"
    file.write_bytes(text)
    done = run("merge", str(file))
    assert done.code == 2
    assert f"{file}" in done.err
    assert why in done.err
    assert done.out == ""


def test_a_file_that_is_not_there_is_exit_code_2(run):
    done = run("merge", "/nowhere/events.ndjson")
    assert (done.code, done.err) == (2, "sparklineage: /nowhere/events.ndjson does not exist.\n")


def test_a_directory_without_manifest_is_exit_code_2(run, tmp_path):
    done = run("merge", str(tmp_path))
    assert done.code == 2
    assert "is no capture bundle" in done.err


def test_a_bundle_and_files_do_not_mix(run, bundle):
    assert run("merge", str(bundle()), STAGING).code == 2


def test_events_of_two_applications_need_a_choice(run):
    both = (STAGING, str(golden("python_udf")))
    done = run("merge", *both)
    assert done.code == 2
    assert "--application" in done.err
    wanted = json.loads(golden("python_udf").read_text().splitlines()[0])["run"]["runId"]
    chosen = run("merge", *both, "--application", wanted)
    assert chosen.code == 0
    assert json.loads(chosen.out)["run"]["runId"] == wanted
    assert "foreign_events" in chosen.err


# --- show -----------------------------------------------------------------------------------------


def test_show_prints_tables_columns_and_what_is_missing(run):
    out = run("show", STAGING).out
    assert "Inputs" in out
    assert "dt=2024-05-06" in out
    assert "orders.amount (aggregation), rates.rate (aggregation)" in out
    assert "internal_read_assumed" in out
    assert "\x1b" not in out  # no colours where there is no terminal


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_show_wraps_texts_between_words_and_keeps_their_indent(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    event = json.loads(run("merge", STAGING).out)
    show.print_event(read_document(event), terminal := Terminal())
    lines = terminal.getvalue().splitlines()
    begin = next(n for n, line in enumerate(lines) if line.startswith("  internal_read_assumed"))
    assert [line[:2] for line in lines[begin : begin + 3]] == ["  "] * 3
    assert max(map(len, lines)) <= 80


def test_show_takes_a_bundle(run, bundle):
    assert "Columns of revenue" in run("show", str(bundle())).out


def test_show_says_what_is_done_with_a_source_also_where_only_the_column_says_it(run, tmp_path):
    event = json.loads(run("merge", STAGING).out)
    for output in event["outputs"]:
        for field in output["facets"]["columnLineage"]["fields"].values():
            for source in field["inputFields"]:
                del source["transformations"]
    file = tmp_path / "lineage.ndjson"
    file.write_text(json.dumps(event))
    assert "orders.amount (aggregation), rates.rate (aggregation)" in run("show", str(file)).out


def test_show_takes_the_last_merged_event_of_each_job(run, tmp_path):
    merged = run("merge", STAGING).out
    events = []
    for job, time in (("a", "2026-01-01"), ("b", "2026-01-02"), ("a", "2026-01-03")):
        event = json.loads(merged)
        event["job"]["name"], event["eventTime"] = job, f"{time}T00:00:00Z"
        events.append(json.dumps(event))
    file = tmp_path / "lineage.ndjson"
    file.write_text(
        '{"run": {"runId": "x"}, "job": {"namespace": "n", "name": "start"}}\n' + "\n".join(events)
    )
    out = run("show", str(file)).out
    assert "2026-01-01" not in out
    assert out.index("2026-01-02") < out.index("2026-01-03")


def test_show_names_hostile_names_as_text(run, tmp_path):
    event = json.loads(run("merge", STAGING).out)
    event["inputs"][0]["name"] = "/lake/[red]x[/red] <b>"
    event["job"]["name"] = "[bold]job[/bold]"
    file = tmp_path / "lineage.ndjson"
    file.write_text(json.dumps(event))
    out = run("show", str(file)).out
    assert "[red]x[/red] <b>" in out
    assert "[bold]job[/bold]" in out


def test_show_lets_no_control_character_through(run, tmp_path):
    event = json.loads(run("merge", STAGING).out)
    event["inputs"][0]["name"] = "/lake/\x1b[2Jx:x:\u202e"
    file = tmp_path / "lineage.ndjson"
    file.write_text(json.dumps(event))
    out = run("show", str(file)).out
    assert "\x1b" not in out
    assert "x:x:" in out


@pytest.mark.parametrize("command", [("show",), ("explain", "--run"), ("show", "--strict")])
def test_nothing_in_a_stored_event_is_markup_or_a_control(run, tmp_path, command):
    event = json.loads(run("merge", STAGING).out)
    event["eventTime"], event["run"]["runId"] = "[/red]", "\x1b]0;title\x07"
    event["run"]["facets"]["sparkLineage_capture"]["degradations"] = [
        {"code": "[/x]", "message": "\x1b[2J[/y]"},
        {},
    ]
    del event["eventType"]
    file = tmp_path / "lineage.ndjson"
    file.write_text(json.dumps(event))
    out = run(*command, str(file)).out
    assert "[/red]" in out
    assert "\x1b" not in out


def test_notes_let_no_control_character_through(run, tmp_path):
    text = golden("staging_chain").read_text().replace("columnLineage", "nothing")
    file = tmp_path / "events.ndjson"
    file.write_text(text.replace("revenue", "\\u001b[2Jrevenue"))
    done = run("merge", str(file))
    assert "[2Jrevenue" in done.err
    assert "\x1b" not in done.err


def test_show_writes_a_page(run, tmp_path):
    page = tmp_path / "lineage.html"
    result = run("show", STAGING, "--html", str(page))
    assert (result.code, result.out) == (0, f"{page}\n")
    [packed] = re.findall('<script id="events".*?>(.*?)</script>', page.read_text())
    assert b"enriched_orders" in gzip.decompress(base64.b64decode(packed))


def test_show_reports_where_no_page_can_be_written(run):
    result = run("show", STAGING, "--html", "/nowhere/lineage.html")
    assert result.code == 2
    assert "/nowhere/lineage.html cannot be written" in result.err


def test_show_refuses_what_a_newer_version_wrote(run, tmp_path):
    text = run("merge", STAGING).out.replace("facet:capture:1-0-0", "facet:capture:2-0-0")
    (tmp_path / "event.json").write_text(text)
    result = run("show", str(tmp_path / "event.json"))
    assert (result.code, result.out) == (2, "")
    assert "newer airflow-provider-sparklineage" in result.err


def test_show_takes_what_merge_prints(run, monkeypatch):
    merged = run("merge", STAGING).out.encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(merged)))
    assert "Columns of revenue" in run("show", "-").out


def test_merge_refuses_what_is_merged(run, tmp_path):
    file = tmp_path / "merged.json"
    file.write_text(run("merge", STAGING).out)
    done = run("merge", str(file))
    assert done.code == 2
    assert "merged events already" in done.err


def test_events_of_a_listener_that_knows_no_job_types_are_one_application(run, tmp_path):
    events = [json.loads(line) for line in golden("staging_chain").read_text().splitlines()]
    for event in events:
        del event["job"]["facets"]["jobType"]
    file = tmp_path / "old.ndjson"
    file.write_text("\n".join(map(json.dumps, events)))
    merged = json.loads(run("merge", str(file)).out)
    assert merged["inputs"] == json.loads(run("merge", STAGING).out)["inputs"]


def test_actions_whose_applications_events_are_missing_are_still_one_application(run, tmp_path):
    lines = golden("staging_chain").read_text().splitlines()
    file = tmp_path / "truncated.ndjson"
    file.write_text("\n".join(lines[1:-1]))
    done = run("merge", str(file))
    assert done.code == 0
    assert "application_unfinished" in done.err


# --- codes of degradations ------------------------------------------------------------------------


def test_show_says_what_a_code_means_and_what_to_do(run):
    done = run("show", "no_events", "partitions_cut")
    assert [line.rstrip() for line in done.out.splitlines()] == [
        "no_events",
        f"  meaning     {DegradationCode.NO_EVENTS.meaning}",
        f"  missing     {DegradationCode.NO_EVENTS.missing}",
        f"  what to do  {DegradationCode.NO_EVENTS.remedy}",
        "partitions_cut",
        f"  meaning     {DegradationCode.PARTITIONS_CUT.meaning}",
        f"  missing     {DegradationCode.PARTITIONS_CUT.missing}",
        f"  what to do  {DegradationCode.PARTITIONS_CUT.remedy}",
    ]
    assert done.code == 0


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (("partition_cut",), "partition_cut does not exist. Did you mean partitions_cut"),
        (("no_events", STAGING), "no_events is the code of a degradation. Give codes alone."),
        (("no_events", "--strict"), "no_events is the code of a degradation. Give codes alone."),
        (("nowhere",), "nowhere does not exist."),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_what_is_no_code_is_reported(run, argv, error):
    done = run("show", *argv)
    assert done.err.startswith(f"sparklineage: {error}")
    assert (done.code, done.out) == (2, "")


def test_explain_names_the_command_that_explains_a_code(run):
    done = run("explain", "no_events")
    assert done.err == (
        "sparklineage: no_events is no template, but the code of a degradation. See its meaning: "
        "sparklineage show no_events\n"
    )
    assert done.code == 2


def test_a_file_with_the_name_of_a_code_is_a_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "no_events").write_bytes(golden("staging_chain").read_bytes())
    assert "Columns of revenue" in run("show", "no_events").out


@pytest.mark.parametrize("command", ["show", "merge"])
def test_what_prints_a_code_says_how_to_ask_about_it(run, command):
    done = run(command, STAGING)
    assert "internal_read_assumed" in (out := done.out if command == "show" else done.err)
    assert "`sparklineage show CODE` says what a code means, and what to do" in out


# --- schema, help ---------------------------------------------------------------------------------


def test_schemas_are_listed_and_printed(run):
    names = run("schema").out.split()
    assert "SparkLineageCaptureRunFacet" in names
    for name in names:
        assert json.loads(run("schema", name).out)["$schema"]


def functions(command):
    if isinstance(command, commands.Group):
        return [one.function for one in command.commands]
    return [command.function]


def test_every_command_names_a_function():
    listed = {f for c in (*COMMANDS, *AIRFLOW_COMMANDS) for f in functions(c)}
    missing = []
    for listed_function in sorted(listed):
        module, _, name = listed_function.partition(":")
        path = Path(cli.__file__).parent / module.replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if f"\ndef {name}(args: argparse.Namespace) -> int:" not in file.read_text():
            missing.append(listed_function)
    assert missing == []


def test_readme_names_every_command():
    readme = (Path(cli.__file__).parents[2] / "README.md").read_text()
    named = set(re.findall(r"^(?:airflow )?sparklineage ([\w-]+)", readme, re.MULTILINE))
    assert {command.name for command in (*COMMANDS, *AIRFLOW_COMMANDS)} <= named


def test_an_unknown_schema_is_reported_with_the_known_ones(run):
    done = run("schema", "nothing")
    assert done.code == 2
    assert "SparkLineageCaptureRunFacet" in done.err
