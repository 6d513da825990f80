"""The commands on the history, on a month of the flights example: what a person reads."""

from __future__ import annotations

import ast
import gzip
import json
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import jsonschema
import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.cli.history import store as reading
from airflow_provider_sparklineage.cli.schemas import answer_schema
from airflow_provider_sparklineage.history import incoming
from airflow_provider_sparklineage.history.bounds import Bound
from airflow_provider_sparklineage.history.engines import building
from airflow_provider_sparklineage.history.queries import stale as queries
from airflow_provider_sparklineage.history.store import Store
from tests.unit.history.worlds import add_facts, at, event, lines, read, write

RECORDED = Path(__file__).parents[1] / "golden" / "history"
MONTH, REWRITTEN, CLEARED = (
    str(RECORDED / f"flights_{name}.ndjson.gz") for name in ("month", "rewritten", "cleared")
)
WEEK = [f"2013-01-{day}" for day in range(15, 22)]
"""Ends of the weeks that 15 January is in."""


@pytest.fixture
def run(capsys):
    def run(*argv):
        code = cli.main([*map(str, argv)])
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return run


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Build the month, and one day of `flights` that was rewritten after it."""
    folder = tmp_path_factory.mktemp("history")
    assert cli.main(["history", "build", MONTH, REWRITTEN, "--store", str(folder)]) == 0
    return folder


@pytest.fixture
def ask(run, store):
    """Ask the store; give the objects that programs get."""

    def ask(*argv):
        done = run(*argv, "--store", store, "--json")
        assert done.code == 0, done.err
        return [json.loads(line) for line in done.out.splitlines()]

    return ask


def name(one):
    return one["dataset"]["name"].rpartition("/")[2]


# --- the store ------------------------------------------------------------------------------------


def test_a_build_says_what_it_read_and_what_is_there(run, tmp_path):
    done = run("history", "build", MONTH, "--store", tmp_path / "store")
    assert re.match(r"90 events were read in \d+\.\d s, 90 are new\.\n", done.out)
    assert "has events 90, runs 90, accesses " in done.out
    assert done.code == 0


def test_a_second_build_adds_what_is_new(run, tmp_path):
    first = json.loads(run("history", "build", MONTH, "--store", tmp_path, "--json").out)
    second = json.loads(
        run("history", "build", MONTH, REWRITTEN, "--store", tmp_path, "--json").out
    )
    assert (first["new"], second["new"], second["rows"]["events"]) == (90, 1, 91)


@pytest.fixture
def delivered(run, tmp_path):
    """Deliver an event to a new store; gives the store's folder."""
    folder = tmp_path / "store"
    assert run("history", "build", MONTH, "--store", folder).code == 0
    [line] = gzip.decompress(Path(REWRITTEN).read_bytes()).splitlines()
    sender = incoming.Sender("example_report_flight_delays", "prepare_flights", "again", -1, 2)
    assert incoming.deliver(folder.as_uri(), sender, line, 5)
    return folder


def test_a_question_notes_what_was_delivered_and_is_not_merged(run, delivered):
    done = run("stale", "--store", delivered)
    assert done.out.startswith("Nothing is stale.")
    assert "note: 1 event of tasks that have ended is not in the history yet; add: " in done.err
    command = done.err.partition("add: sparklineage ")[2].split()
    assert run(*command).code == 0
    done = run("stale", "daily_delays", "--store", delivered)
    assert "flights flight_date=2013-01-15 was rewritten" in done.out
    assert done.err == ""


def test_what_was_delivered_is_merged_until_nothing_waits(run, delivered, monkeypatch):
    monkeypatch.setattr(building, "MAX_DELIVERED", 1)
    sender = incoming.Sender("example_report_flight_delays", "prepare_flights", "again", -1, 3)
    assert incoming.deliver(delivered.as_uri(), sender, b"no json", 5)
    done = run("history", "build", "--delivered", "--store", delivered)
    assert done.out.count("1 event was read") == 2
    assert (done.code, list((delivered / "incoming").iterdir())) == (0, [])


def test_what_was_delivered_is_no_source(run, delivered):
    done = run("history", "build", MONTH, "--delivered", "--store", delivered)
    assert (done.code, "Give SOURCE or --delivered, not both." in done.err) == (2, True)


def test_what_is_skipped_is_a_note_and_with_strict_a_failure(run, tmp_path):
    events = tmp_path / "events.ndjson"
    events.write_text('{"eventType": "COMPLETE"}\nnonsense\n')
    done = run("history", "build", events, "--store", tmp_path / "store", "--strict")
    assert done.err.count("note: skipped: ") >= 1
    assert done.code == 1


def test_a_compacted_store_answers_as_before(run, tmp_path, monkeypatch):
    folders = [tmp_path / "parts", tmp_path / "one"]
    for folder, parts in zip(folders, (32, 1), strict=True):
        monkeypatch.setattr(building, "MAX_PARTS", parts)
        for events in (MONTH, REWRITTEN):
            assert run("history", "build", events, "--store", folder).code == 0
    assert [len(Store.open(str(folder)).manifest.facts) for folder in folders] == [2, 1]
    before, after = (run("stale", "--store", folder, "--json").out for folder in folders)
    assert before == after


def test_a_build_forgets_what_is_older_than_asked(run, tmp_path):
    run("history", "build", MONTH, "--store", tmp_path)
    argv = ("history", "build", REWRITTEN, "--store", tmp_path, "--keep", "0", "--json")
    assert json.loads(run(*argv).out)["rows"]["events"] == 0


def test_the_store_is_shown_with_its_datasets(run, ask, store):
    shown = run("history", "show", "--store", store)
    assert "91 runs of 3 jobs, from 20" in shown.out
    assert re.search(r"/flights/lake/daily_delays +30 +30 runs", shown.out)
    [daily] = [one for one in ask("history", "show") if name(one) == "daily_delays"]
    assert (daily["partitions"], daily["written_by"]) == (30, 30)
    assert datetime.fromisoformat(daily["last_written"]).utcoffset() == timedelta(0)


# --- the questions --------------------------------------------------------------------------------


def test_trace_leads_from_a_column_to_its_sources(ask):
    hops = ask(*["trace", "daily_delays", "--partition", "flight_date=2013-01-16"], "--column",
               "avg_visibility")  # fmt: skip
    assert hops[0]["partition"] == {"flight_date": "2013-01-16"}
    [visibility] = [h for h in hops if h["depth"] == 1 and h["column"] == "visib"]
    assert name(visibility) == "weather"
    assert visibility["run"]["job"] == "example_report_flight_delays.prepare_flights"
    kinds = [(t["type"], t["subtype"]) for t in visibility["transformations"]]
    assert kinds == [("DIRECT", "AGGREGATION")]


def test_trace_of_values_leaves_out_what_only_chose_rows(ask, run, store):
    argv = ("trace", "daily_delays", "--partition", "flight_date=2013-01-16", "--direct")
    hops = ask(*argv, "--column", "avg_visibility")
    assert [(hop["depth"], name(hop), hop["column"]) for hop in hops] == [
        (0, "daily_delays", "avg_visibility"),
        (1, "weather", "visib"),
        (2, "weather.csv", "visib"),
    ]
    done = run(*argv, "--store", store)
    assert done.err.endswith("--direct needs --column.\n")
    assert done.code == 2


def test_trace_goes_only_so_deep_and_back_in_time(ask):
    argv = ("trace", "daily_delays", "--partition", "flight_date=2013-01-16")
    assert {hop["depth"] for hop in ask(*argv, "--depth", "1")} == {0, 1}
    assert ask(*argv, "--as-of", "2020-01-01") == []


def test_stale_is_what_was_made_of_the_rewritten_day_and_nothing_else(ask):
    found = [(name(one), *one["partition"].values()) for one in ask("stale")]
    assert found == [("daily_delays", "2013-01-15"), *(("weekly_report", day) for day in WEEK)]


def test_too_many_stale_runs_are_an_error_that_names_what_makes_them_stale(run, store):
    with patch.object(queries, "MAX_RUNS", 7):  # eight are stale, and 30 made weekly_report
        every = run("stale", "--store", store)
        one = run("stale", "weekly_report", "--store", store)
    assert "runs are stale: too many to list. Name one dataset (sparklineage stale" in every.err
    assert every.err.endswith("runs stale (--ignore DATASET): flights.\n")
    assert "runs made what is there of the dataset: too many to look at." in one.err
    assert (every.code, one.code) == (2, 2)


def test_the_plan_of_what_is_stale_has_the_runs_that_wrote_it(ask):
    plan = ask("stale", "--plan")
    assert [(one["task_id"], one["dag_run_id"]) for one in plan] == [
        ("daily_delays", "2013-01-15"),
        *(("weekly_report", day) for day in WEEK),
    ]
    assert [one["order"] for one in plan] == [*range(1, 9)]


def test_after_the_plan_has_run_nothing_is_stale(run, tmp_path):
    run("history", "build", MONTH, REWRITTEN, CLEARED, "--store", tmp_path)
    done = run("stale", "--store", tmp_path, "--strict")
    assert done.out.splitlines() == [
        "Nothing is stale.",
        "Not judged",
        "No known run writes 3 datasets that are read: flights.csv, planes.csv, weather.csv.",
    ]
    assert done.code == 0


def test_impact_names_what_was_made_of_a_day(ask):
    argv = ("impact", "flights", "--partition", "flight_date=2013-01-15")
    assert {name(hop) for hop in ask(*argv)} >= {"daily_delays", "weekly_report"}
    assert [one["task_id"] for one in ask(*argv, "--plan")].count("weekly_report") == len(WEEK)


def test_patterns_gaps_and_drift_of_a_month_in_which_all_went_well(run, ask, store):
    rules = {
        one["input"]["name"].rpartition("/")[2]: one for one in ask("patterns", "daily_delays")
    }
    assert rules["flights"]["relation"] == "flight_date = flight_date"
    assert rules["flights"]["support"] == rules["flights"]["seen"] == 30
    assert ask("gaps", "daily_delays") == []
    shown = run("gaps", "daily_delays", "--store", store, "--strict")
    assert (shown.code, shown.out) == (0, "No partition is missing, as far as runs are known.\n")
    nothing = run("gaps", "planes", "--store", store).out
    assert nothing.startswith("No run is known that wrote partitions of it")
    unruled = run("patterns", "flights", "--store", store).out
    assert "no rule is known: flights.csv, weather.csv." in unruled
    assert ask("drift", "example_report_flight_delays.daily_delays") == []
    assert ask("drift", "daily_delays") == []


def test_the_timetable_of_a_rule_is_python_with_the_plugin_that_it_needs(run, ask, store):
    shown = run("patterns", "weekly_report", "--mapper", "--store", store)
    assert shown.code == 0
    code, _, plugin = shown.out.partition("# --- the file plugins/partition_rule.py ---\n")
    assert "# flight_date = week_ending - 6 days to week_ending (30 of 30 runs); the keys" in code
    assert "from partition_rule import PartitionRule\n" in code
    ast.parse(code)
    ast.parse(plugin)
    assert "class PartitionRulePlugin(AirflowPlugin)" in plugin
    [line] = ask("patterns", "weekly_report", "--mapper")
    assert (line["code"].strip(), line["needs_plugin"]) == (code.strip(), True)


def test_the_timetable_leaves_out_what_no_mapper_says(run, store):
    shown = run("patterns", "daily_delays", "--mapper", "--store", store).out
    reason, *_ = shown.splitlines()
    assert reason.endswith(
        "planes: the whole dataset is read, and a mapper waits for partitions that it can name."
    )
    assert "weather'): IdentityMapper(),\n" in shown
    assert "PartitionRule" not in shown
    whole = run("patterns", "planes", "--mapper", "--store", store).out
    assert "schedule" not in whole


# --- for programs ---------------------------------------------------------------------------------


@pytest.fixture
def validator():
    def validator(name):
        return jsonschema.Draft202012Validator(
            answer_schema(name), format_checker=jsonschema.FormatChecker()
        )

    return validator


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        ("trace", ("trace", "daily_delays", "--column", "avg_visibility")),
        ("trace", ("trace", "weekly_report")),
        ("impact", ("impact", "flights", "--column", "carrier")),
        ("plan", ("impact", "flights.csv", "--plan")),
        ("stale", ("stale",)),
        ("plan", ("stale", "--plan")),
        ("patterns", ("patterns", "weekly_report")),
        ("mappers", ("patterns", "weekly_report", "--mapper")),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else one,
)
def test_each_line_for_programs_is_as_its_schema_says(ask, validator, name, argv):
    lines = ask(*argv)
    assert lines
    for line in lines:
        validator(name).validate(line)


def test_a_hop_has_the_keys_of_the_contract_in_their_order(ask):
    argv = ("trace", "daily_delays", "--partition", "flight_date=2013-01-16", "--column")
    hop = ask(*argv, "avg_visibility", "--direct")[1]
    run_id = hop["run"].pop("run_id")
    assert len(run_id) == 36
    assert (
        hop.items()
        >= {
            "depth": 1,
            "dataset": {"namespace": "file", "name": "/flights/lake/weather"},
            "partition": {"observed_date": "2013-01-16"},
            "column": "visib",
            "run": {
                "job": "example_report_flight_delays.prepare_flights",
                "ended": hop["run"]["ended"],
            },
        }.items()
    )
    assert list(hop)[:6] == [
        "depth", "dataset", "partition", "column", "run", "transformations",
    ]  # fmt: skip
    [how] = hop["transformations"]
    assert (how["type"], how["subtype"], how["masking"]) == ("DIRECT", "AGGREGATION", False)
    assert datetime.fromisoformat(hop["run"]["ended"]).utcoffset() == timedelta(0)


def test_gaps_and_drift_are_as_their_schemas_say_with_times_in_utc(run, validator, tmp_path):
    # Of one day nothing ran; of a later one the report read a week that has another day.
    events = []
    for line in gzip.decompress(Path(MONTH).read_bytes()).splitlines():
        event = json.loads(line)
        airflow = event["sending"]["runFacets"]["airflow"]
        if event["job"]["name"].endswith("weekly_report"):
            if "2013-01-20" in airflow["dagRun"]["run_id"]:
                continue
            if "2013-01-25" in airflow["dagRun"]["run_id"]:
                event["inputs"][0]["inputFacets"]["subset"]["inputCondition"]["partitions"].pop()
        events.append(json.dumps(event))
    file = tmp_path / "events.ndjson"
    file.write_text("\n".join(events))
    assert run("history", "build", file, "--store", tmp_path / "store").code == 0
    argv = ("--store", tmp_path / "store", "--json")
    for name, of in (
        ("gaps", "weekly_report"),
        ("drift", "example_report_flight_delays.weekly_report"),
    ):
        lines = [json.loads(line) for line in run(name, of, *argv).out.splitlines()]
        assert lines
        for line in lines:
            validator(name).validate(line)
            if line["run"]:
                assert datetime.fromisoformat(line["run"]["ended"]).utcoffset() == timedelta(0)


def test_what_was_not_judged_is_lines_of_its_own_for_programs_and_else_on_stderr(
    run, ask, store, validator
):
    [line] = ask("stale", "daily_delays", "--unjudged")
    validator("unjudged").validate(line)
    assert (line["reason"], line["count"]) == ("no_writer", 3)
    done = run("stale", "daily_delays", "--store", store, "--json")
    assert all("cause" in json.loads(line) for line in done.out.splitlines())
    assert "note: not judged: No known run writes 3 datasets that are read: " in done.err
    assert run("stale", "--unjudged", "--plan", "--store", store).code == 2


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (("trace", "planes"), "No run is known that wrote 3 datasets, in the versions that were"),
        (("trace", "planes.csv"), "No run is known that wrote 1 dataset: planes.csv."),
        (("drift", "prepare_flights"), "The partitions that are read of 2 datasets follow no rule"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)
def test_each_answer_is_followed_by_what_it_could_not_judge(run, store, argv, sentence):
    *_, answer, _ = run(*argv, "--store", store).out.partition("Not judged\n")
    assert answer == "Not judged\n"
    alone = run(*argv, "--store", store, "--unjudged").out
    assert alone.startswith("Not judged\n")
    assert sentence in alone


def test_gaps_of_runs_that_wrote_an_unknown_part_are_not_judged(run, tmp_path):
    unknown = event("unknown", at(2), write(mode="append", extent="unknown"))
    add_facts(Store(str(tmp_path)), lines([event("known", at(1), write("dt=1")), unknown]))
    done = run("gaps", "orders", "--store", tmp_path)
    assert done.out.splitlines() == [
        "No partition is missing, as far as runs are known.",
        "Not judged",
        "The partitions follow from no date.",
        "1 run wrote an unknown part of it.",
    ]


def test_drift_names_the_namespace_where_two_airflows_have_a_task_of_one_name(run, tmp_path):
    events = [
        event(f"{space}-{n}", at(n), read(), *more, namespace=space, job="dag.load")
        for n, space, more in (
            (1, "prod", []),
            (2, "test", []),
            (3, "prod", []),
            (4, "test", [read(name="rates")]),
        )
    ]
    add_facts(Store(str(tmp_path)), lines(events))
    [titles, row, *_] = run("drift", "load", "--store", tmp_path).out.splitlines()
    assert titles.split()[-1] == "namespace"
    assert row.split()[-5:] == ["rates", "is", "read", "now.", "test"]
    [titles, row, *_] = run("drift", "test:load", "--store", tmp_path).out.splitlines()
    assert "namespace" not in titles
    assert row.rstrip().endswith("rates    is read now.")
    assert run("drift", "prod:load", "--store", tmp_path).out.startswith("Each run did the same")


def test_an_answer_that_takes_too_long_is_given_up_with_what_to_do(run, store):
    done = run("stale", "--store", store, "--seconds", "1")
    assert done.code == 0
    begun = Bound.of
    with patch.object(Bound, "of", lambda _, fix: begun(0, fix)):
        done = run("stale", "--store", store)
    assert done.code == 2
    assert "longer than 0 s, and was given up. Ask for one dataset, partition or column" in done.err
    assert "--seconds N" in done.err


# --- for people -----------------------------------------------------------------------------------


def test_stale_shows_the_cause_and_the_plan_and_strict_makes_it_a_failure(run, store):
    done = run("stale", "daily_delays", "--store", store, "--strict")
    assert "flights flight_date=2013-01-15 was rewritten 20" in done.out
    assert "To clear, in this order" in done.out
    assert "read flights flight_date=2013-01-15, which was rewritten 20" in done.out
    assert done.code == 1


def test_a_dataset_whose_changes_do_not_count_is_ignored(run, store):
    both = ("--ignore", "flights", "--ignore", "weather")
    assert run("stale", *both, "--store", store).out.startswith("Nothing is stale.\n")
    assert "weekly_report" in run("stale", "--ignore", "planes", "--store", store).out
    assert run("stale", "--ignore", "nowhere", "--store", store).code == 2


def test_impact_names_a_run_once_and_the_columns_through_which_it_goes(run, store):
    argv = ("impact", "weather", "--partition", "observed_date=2013-01-15", "--column", "visib")
    done = run(*argv, "--store", store)
    assert done.out.count("example_report_flight_delays.daily_delays") == 1
    assert "read weather observed_date=2013-01-15 (visib → avg_visibility" in done.out


def test_many_lines_are_one_for_each_cause_unless_all_are_wanted(run, store):
    argv = ("impact", "flights.csv", "--store", store)
    done = run(*argv)
    assert re.search(r"2 +weekly_report +30: week_ending=2013-01-01 … week_ending=2013-0", done.out)
    assert re.search(r"weekly_report +30: 2013-01-01 … 2013-01-30 .* read flights *\n", done.out)
    everything = run(*argv, "--all")
    assert everything.out.count(".weekly_report") == 30
    assert everything.out.count("flight_date=2013-01-09") > done.out.count("flight_date=2013-01-09")


@pytest.mark.parametrize(("hours", "noted"), [(0, ""), (3, "note: The history was built 3 hours")])
def test_how_old_the_history_is_goes_next_to_the_answer_if_it_is_old(
    run, store, tmp_path, hours, noted
):
    kept = shutil.copytree(store, tmp_path / "store")
    manifest = json.loads((kept / "manifest.json").read_text())
    manifest["built_at"] = (datetime.now(UTC) - timedelta(hours=hours)).isoformat()
    (kept / "manifest.json").write_text(json.dumps(manifest))
    done = run("trace", "daily_delays", "--store", kept)
    assert done.err.startswith(noted)
    assert "The history" not in done.out + done.err.removeprefix(noted)


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=70), "a minute ago"),
        (timedelta(minutes=119), "119 minutes ago"),
        (timedelta(hours=30), "30 hours ago"),
        (timedelta(days=400), "400 days ago"),
    ],
)
def test_an_age_is_in_a_unit_of_which_there_are_some(age, text):
    now = datetime(2024, 5, 6, tzinfo=UTC)
    assert reading.ago(now - age, now) == text


# --- what cannot be answered ----------------------------------------------------------------------


def test_without_a_store_the_command_that_builds_it_is_named(run, tmp_path):
    done = run("stale", "--store", tmp_path / "none")
    assert f"There is no history at {tmp_path}/none. Build it: sparklineage history" in done.err
    assert (done.code, done.out) == (2, "")


@pytest.mark.parametrize(
    ("argv", "problem", "there_is"),
    [
        (("trace", "daily_delay"), "There is no dataset 'daily_delay'", "daily_delays"),
        (("gaps", "nothing"), "There is no dataset 'nothing'", "weekly_report"),
        (("trace", "flights", "--partition", "flight_date=1999-01-01"), "1999-01-01", "2013-01-"),
        (("trace", "s3://lake:flight", "--depth", "1"), "'s3://lake:flight'", "flights"),
        (("trace", "daily_delays", "--column", "visibility"), "'visibility'", "avg_visibility"),
        (("impact", "weather", "--column", "visibil"), "'visibil'", "e.g. visib."),
        (("drift", "daily_delay"), "of 'daily_delay'", "example_report_flight_delays.daily_"),
    ],
)
def test_for_what_is_not_there_what_there_is_is_named(run, store, argv, problem, there_is):
    done = run(*argv, "--store", store)
    assert problem in done.err
    assert there_is in done.err
    assert (done.code, done.out) == (2, "")


def test_a_source_that_is_not_there_is_named(run, tmp_path):
    done = run("history", "build", tmp_path / "gone", "--store", tmp_path / "store")
    assert f"There is no {tmp_path}/gone." in done.err
    assert done.code == 2


def test_a_program_cannot_be_asked_whether_to_clear(run, store):
    done = run("stale", "--clear", "--json", "--store", store)
    assert done.err.endswith("Give --json or --clear, not both.\n")
    assert done.code == 2
