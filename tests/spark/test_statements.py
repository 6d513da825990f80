"""What a job is easily reported to have read or written, and did not: one real application."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

import airflow_provider_sparklineage
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from tests import record_events
from tests.spark import submissions
from tests.spark.lakes import lines

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCHEMAS = Path(airflow_provider_sparklineage.__file__).parent / "event" / "schemas"
APPLICATION = record_events.APPLICATIONS / "statements.py"
DAYS = ["2024-05-05", "2024-05-06", "2024-05-07"]
TODAY = ["2024-05-06"]


@pytest.fixture(scope="module")
def work(spark, tmp_path_factory):
    """Let one submission plant the lake, and another one, observed, work on it."""
    planted, work = tmp_path_factory.mktemp("planted"), tmp_path_factory.mktemp("statements")
    connectors = [c for c in submissions.available(spark) if c == "delta"]
    submissions.submit(spark, APPLICATION, planted, observe=False, connectors=connectors)
    shutil.move(planted / "lake", work / "lake")
    submissions.submit(spark, APPLICATION, work, listener=spark.listener, connectors=connectors)
    return work


@pytest.fixture(scope="module")
def records(work):
    return lines(work / "observations.ndjson")


@pytest.fixture(scope="module")
def reads(records):
    """Give what was observed of reads, by folder of the lake."""
    found: dict[str, list] = {}
    for record in records:
        for read in record.get("reads", ()):
            for base in {layout["base"] for layout in read.get("layouts", ())}:
                found.setdefault(folder(base), []).append(read)
    return found


@pytest.fixture(scope="module")
def writes(records):
    found: dict[str, list] = {}
    for record in records:
        for write in record.get("writes", ()):
            found.setdefault(folder(write["path"]), []).append(write)
    return found


@pytest.fixture(scope="module")
def lineage(work):
    first = json.loads((work / "events.ndjson").read_text().splitlines()[0])
    manifest = Manifest(application_run_id=first["run"]["runId"], injected=("py_files",))
    return task_lineage(CaptureBundle(work, manifest))


def folder(path):
    return path.rpartition("/lake/")[2]


def partitions_of(reads):
    return [p for read in reads for layout in read["layouts"] for [p] in layout["partitions"]]


def accessed(datasets):
    """Give {folder of the lake: its partitions, "all" or "unknown"}."""
    found = {}
    for dataset in datasets:
        if dataset.subset is not None and not dataset.subset.full:
            values = [value for p in sorted(dataset.subset.partitions) for _, value in p.values]
            found[folder(dataset.name.name)] = values
        else:
            found[folder(dataset.name.name)] = "all" if dataset.observed else "unknown"
    return found


def sources(lineage, name):
    """Give {column: its sources} of an output; only those of which its values are made."""
    [output] = [d for d in lineage.outputs if folder(d.name.name) == name]
    return {
        column: {
            f"{folder(c.dataset.name)}.{c.field}"
            for c, found in edges.items()
            if any(t.type == "DIRECT" for t in found)
        }
        for column, edges in output.columns.fields.items()
    }


def degradations(lineage, code):
    return {folder(d.dataset.name) for d in lineage.degradations if d.code == code and d.dataset}


# --- what was not done ----------------------------------------------------------------------------


def test_a_write_that_is_skipped_says_so(writes):
    [real, *skipped] = writes["out_ignored"]
    assert "skipped" not in real
    assert [w["skipped"] for w in skipped] == [True, True, True]
    assert all(layout["partitions"] == [] for w in skipped for layout in w["layouts"])


def test_a_write_into_a_new_place_is_not_skipped_whatever_its_mode_and_size(writes):
    for name in ("out_ignored_new", "out_ignored_empty"):
        [write] = writes[name]
        assert "skipped" not in write


def test_a_skipped_write_of_delta_is_known_by_the_lack_of_a_commit(spark, writes):
    submissions.require(spark, "delta")
    [skipped] = writes["delta_ignored"]
    [written] = writes["out_delta_ignored"]
    assert skipped["skipped"]
    assert written["node"] == "DeltaCommit"


def test_a_scan_that_was_planned_and_never_opened_is_no_read(reads):
    assert "ignored" not in reads
    assert "failed" not in reads


@pytest.mark.parametrize(
    ("name", "partitions"),
    [
        pytest.param("ignored_source", TODAY, id="mode ignore into a new place"),
        pytest.param("ignored_shuffle", TODAY, id="shuffle before a write that is skipped"),
        pytest.param("aqe", DAYS, id="side of a join that turned out superfluous"),
        pytest.param("cached", TODAY * 2, id="cached plan, used twice"),
        pytest.param("subquery", TODAY, id="scalar subquery"),
        pytest.param("reused", TODAY, id="reused exchange"),
        pytest.param("no_files", [], id="partition without files"),
    ],
)
def test_a_scan_that_was_opened_is_a_read(reads, name, partitions):
    assert partitions_of(reads[name]) == partitions


@pytest.mark.parametrize(
    ("name", "is_planned"),
    [
        pytest.param("limited", True, id="limit"),
        pytest.param("shown", True, id="show"),
        pytest.param("limited_join", True, id="limit before a join"),
        pytest.param("counted_limit", False, id="limit of groups"),
        pytest.param("sorted_limit", False, id="limit of what is sorted"),
        pytest.param("one_file", False, id="first row of one file"),
    ],
)
def test_what_a_limit_may_have_left_unopened_is_planned(reads, name, is_planned):
    [read] = reads[name]
    assert read.get("planned", False) is is_planned


# --- the whole of it ------------------------------------------------------------------------------


def test_files_that_an_option_chose_are_not_all_of_a_dataset(lineage):
    assert accessed(lineage.inputs)["glob_filter"] == DAYS


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("merged", TODAY, id="merge in one partition"),
        pytest.param("whole", "all", id="all of a table"),
        pytest.param("skipping", [], id="files that statistics exclude"),
    ],
)
def test_a_delta_table_is_read_in_full_only_if_all_of_its_files_are(spark, lineage, name, expected):
    submissions.require(spark, "delta")
    assert accessed(lineage.inputs)[name] == expected


def test_the_change_data_feed_of_a_table_is_a_read_of_the_changed_partitions(spark, lineage):
    """Delta reads it in queries of its own, which Spark reports since 4.0.

    A stream has read the feed of another table before, in queries that the observer sees.
    """
    submissions.require(spark, "delta")
    assert "feed_streamed" in accessed(lineage.inputs)
    assert accessed(lineage.inputs)["feed"] == (TODAY if spark.line >= "4.0" else "unknown")
    assert sources(lineage, "out_feed") == {
        name: {f"feed.{name}"}
        for name in ("id", "user", "dt", "_change_type", "_commit_version", "_commit_timestamp")
    }
    assert sources(lineage, "out_feed_most") == {"dt": {"feed.dt"}, "most": {"feed.user"}}


def test_each_of_two_writes_at_the_same_time_has_its_columns(lineage):
    """The listener hides one of them where Delta's extension is, and reports the other."""
    assert sources(lineage, "out_threads") == {
        name: {f"one.{name}", f"other.{name}"} for name in ("id", "user")
    }


# --- definitions ----------------------------------------------------------------------------------


def test_tables_that_are_only_defined_are_no_outputs(lineage):
    written = {folder(d.name.name) for d in lineage.outputs}
    only = {"located", "added", "repaired", "warehouse/made", "warehouse/made_like"}
    assert not written & (only | {"delta_located", "warehouse/delta_made"})


def test_tables_that_are_defined_and_filled_are_outputs(spark, lineage):
    written = accessed(lineage.outputs)
    assert written["warehouse/filled"] == TODAY
    assert {"warehouse/selected", "warehouse/saved"} <= written.keys()
    if "delta" in submissions.available(spark):
        assert "warehouse/delta_filled" in written


def test_data_that_a_job_defines_a_table_over_is_its_input(lineage):
    assert accessed(lineage.inputs)["repaired"] == TODAY


# --- texts whose columns are inferred -------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("header", TODAY, id="header"),
        pytest.param("inferred", "all", id="types inferred"),
        pytest.param("files/a", "all", id="several files"),
        pytest.param("globbed/a", "all", id="glob"),
        pytest.param("globbed/b", "all", id="glob's other folder"),
        pytest.param("union/b", "all", id="several folders"),
        pytest.param("json", "all", id="JSON"),
        pytest.param("json_days", TODAY, id="JSON in partitions"),
        pytest.param("text", TODAY, id="text"),
    ],
)
def test_text_files_are_known_as_exactly_as_others(lineage, name, expected):
    assert accessed(lineage.inputs)[name] == expected


# --- what is gone ---------------------------------------------------------------------------------


def test_an_output_that_was_renamed_after_it_was_written_is_reported_to_be_gone(lineage):
    assert degradations(lineage, "output_gone") == {"staging/renamed"}
    assert "staging/renamed" in accessed(lineage.outputs)


def test_a_write_of_files_that_the_listener_hides_is_an_output_and_not_reported_missing(lineage):
    assert {"out_reused", "out_subquery"} <= accessed(lineage.outputs).keys()
    assert "delta_hides_writes" not in {str(d.code) for d in lineage.degradations}


# --- in general -----------------------------------------------------------------------------------


def test_nothing_failed_inside_the_observer(records):
    assert [r for r in records if {"error", "errors", "cut"} & r.keys()] == []


def test_every_record_follows_the_schema(records):
    schema = json.loads((SCHEMAS / "observation.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    for record in records:
        validator.validate(record)
