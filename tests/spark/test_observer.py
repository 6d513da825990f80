"""The observer in a real driver: the partitions that it reports are those in the lake."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import uuid
from functools import cache
from pathlib import Path

import jsonschema
import pytest

import airflow_provider_sparklineage
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from airflow_provider_sparklineage.spark.submit import submitted_files
from airflow_provider_sparklineage.spark.submit.injection import (
    Injection,
    Observation,
    Submission,
    inject,
)
from tests import record_events
from tests.openlineage_spec import validate_event
from tests.spark import submissions
from tests.spark.lakes import Lake, distinct, lines, planned_cases

pytestmark = pytest.mark.spark

SCHEMAS = Path(airflow_provider_sparklineage.__file__).parent / "event" / "schemas"


# --- the table of cases ---------------------------------------------------------------------------


@pytest.fixture(scope="session")
def lake(spark, prepared, tmp_path_factory):
    """Run all cases in one application."""
    work = tmp_path_factory.mktemp("observed")
    application = record_events.APPLICATIONS / "observed_lake.py"
    submissions.submit(spark, application, work, connectors=submissions.available(spark))
    return Lake(work, work / "lake")


CASES = planned_cases("observed_lake.py")


@pytest.fixture(params=CASES)
def case(request, spark, lake):
    """Give each case."""
    submissions.require(spark, CASES[request.param])
    return lake.cases[request.param]


def test_what_is_read_is_what_was_planted(lake, case):
    observed = lake.reads(case)
    expected = {folder: distinct(partitions) for folder, partitions in case["reads"].items()}
    # Statements that change rows read their own target, which is not what their case is about.
    own = {f: p for f, p in observed.items() if f in expected or f not in case["writes"]}
    assert own == expected


def test_what_is_written_is_what_the_lake_got(lake, case):
    observed, removed = lake.written(case), lake.written(case, "removed")
    for folder, truth in case["writes"].items():
        assert observed.get(folder, []) == distinct(truth["written"])
        if "removed" in truth:
            assert removed.get(folder, []) == distinct(truth["removed"])
    assert set(observed) <= set(case["writes"]) | {"elsewhere/moved"}


def test_every_write_of_the_table_is_known_exactly(lake):
    how = {write["how"] for case in lake.cases.values() for _, write in lake.writes(case)}
    assert how == {"exact"}


def test_the_mode_of_a_write_is_the_commands(lake):
    for case in lake.cases.values():
        for folder, mode in case.get("modes", {}).items():
            assert {w["mode"] for f, w in lake.writes(case) if f == folder} == {mode}, case["name"]


def test_an_append_reports_what_it_shares_with_older_files(lake):
    [(_, write)] = lake.writes(lake.cases["append_to_old_and_new"])
    assert write["shared"] == [["2024-05-06", "us"]]


def test_tables_are_reported_by_their_identifiers(lake):
    [record] = lake.during(lake.cases["catalog_read"])
    assert [r["table"] for r in record["reads"]] == ["spark_catalog.default.sales"]


def test_predicates_are_reported_as_sql(lake):
    [record] = [r for r in lake.during(lake.cases["filtered_read"]) if r["reads"]]
    [read] = record["reads"]
    assert "(dt = DATE '2024-05-06')" in read["partition_filters"]
    assert "(amount > 0)" in read["data_filters"]


def test_predicates_that_iceberg_took_are_reported_as_sql(spark, lake):
    submissions.require(spark, "iceberg")
    [record] = [r for r in lake.during(lake.cases["iceberg_read"]) if r["reads"]]
    assert any("ts >= " in text for text in record["reads"][0]["pushed_filters"])
    # Above a V2 scan Spark qualifies its columns.
    left = record["reads"][0].get("data_filters", [])
    assert [text for text in left if "upper(" in text and "NOWHERE" in text], left
    assert record["reads"][0]["snapshot"].isdecimal()


def test_the_arguments_of_python_udfs_are_reported(lake):
    udfs = [u for r in lake.during(lake.cases["python_udf"]) for u in r.get("python_udfs", ())]
    assert [(u["result"], u["columns"]) for u in udfs] == [("pythonUDF0", ["amount"])]


def test_a_compaction_is_no_write(spark, lake):
    submissions.require(spark, "delta")
    assert list(lake.writes(lake.cases["delta_optimize"])) == []


def test_nothing_failed_inside_the_observer(lake):
    troubles = [r for r in lake.records if {"error", "errors", "cut"} & r.keys()]
    assert troubles == []
    assert lake.records[-1]["kind"] == "end"


def test_no_query_is_reported_twice(lake):
    reported = [(r["query"], r["function"]) for r in lake.records if r.get("kind") == "query"]
    assert len(reported) == len(set(reported))


def test_every_record_follows_the_schema(lake):
    validator = jsonschema.Draft202012Validator(
        json.loads((SCHEMAS / "observation.json").read_text())
    )
    for record in lake.records:
        validator.validate(record)


# --- with the listener, merged --------------------------------------------------------------------


@pytest.fixture(scope="session")
def chain(spark, orders_lake, tmp_path_factory):
    """Run the chain with the listener and the observer; give the merged lineage and event."""
    runs = {}
    prepared = tmp_path_factory.mktemp("chain")
    root = shutil.copytree(orders_lake, prepared / "lake")
    older = root / "totals" / "dt=2024-05-05"
    older.mkdir(parents=True)
    for file in (root / "orders" / "dt=2024-05-05").rglob("*.parquet"):
        (older / file.name).write_bytes(file.read_bytes())

    def run(*arguments):
        if arguments in runs:
            return runs[arguments]
        scratch = prepared / f"scratch{len(arguments)}"
        scratch.mkdir()
        manifest = Manifest(application_run_id=str(uuid.uuid4()), injected=("py_files",))
        bundle = capture.create(prepared / "captures", manifest)
        injection = Injection(
            (str(spark.listener),),
            bundle.events_path,
            manifest.application_run_id,
            observation=Observation(
                str(submitted_files.write_observer(bundle.path)),
                bundle.observations_path,
                manifest.application_run_id,
            ),
        )
        conf = record_events.spark_conf(root, scratch)
        application = record_events.APPLICATIONS / "observed_chain.py"
        submission = inject(Submission(conf=conf, application=str(application)), injection)
        options = ["--jars", submission.jars, "--py-files", submission.py_files]
        options += record_events.conf_options(submission.conf)
        wrapper = scratch / "observed_chain.py"
        wrapper.write_text(
            f"import sys\nsys.argv += {list(arguments)!r}\n"
            + application.read_text().replace("from __future__ import annotations\n", "")
        )
        exit_code, tail = record_events.submit(spark, wrapper, root, scratch, options)
        assert exit_code == 0, tail
        lineage = task_lineage(bundle)
        runs[arguments] = lineage, merged_event(bundle, lineage)
        return runs[arguments]

    return run


def partitions_of(datasets):
    return {
        d.name.name.partition("/lake/")[2]: (
            [str(p) for p in sorted(d.subset.partitions)]
            if d.subset and not d.subset.full
            else None
        )
        for d in datasets
    }


@pytest.mark.smoke
def test_a_partition_that_is_read_back_is_internal(chain):
    lineage, _ = chain()
    assert partitions_of(lineage.inputs) == {"orders": ["dt=2024-05-06"]}
    assert partitions_of(lineage.outputs) == {
        "totals": ["dt=2024-05-06"],
        "report": ["dt=2024-05-06"],
    }
    assert "internal_read_assumed" not in {str(d.code) for d in lineage.degradations}
    report = next(d for d in lineage.outputs if d.name.name.endswith("/report"))
    sources = {str(c.dataset).rpartition("/")[2] for c in report.columns.fields["amount"]}
    assert sources == {"orders"}


def test_the_merged_event_is_valid_openlineage(chain):
    _, event = chain()
    validate_event(event)


@pytest.mark.long
def test_what_came_from_outside_stays_an_input_with_exactly_that(chain):
    lineage, event = chain("both")
    assert partitions_of(lineage.inputs)["totals"] == ["dt=2024-05-05"]
    [totals] = [d for d in event["inputs"] if d["name"].endswith("/totals")]
    [partition] = totals["inputFacets"]["subset"]["inputCondition"]["partitions"]
    assert partition == {"dimensions": {"dt": "2024-05-05"}, "identifier": "dt=2024-05-05"}


@pytest.mark.smoke
def test_outputs_name_their_partitions_by_the_schema(chain):
    _, event = chain()
    schema = json.loads((SCHEMAS / "SparkLineagePartitionsDatasetFacet.json").read_text())
    for output in event["outputs"]:
        facet = output["facets"]["sparkLineage_partitions"]
        jsonschema.Draft202012Validator(schema).validate(facet)
        assert facet["summary"] == "dt=2024-05-06"


@pytest.mark.smoke
def test_the_observer_has_no_troubles_of_its_own(chain):
    lineage, _ = chain()
    codes = {str(d.code) for d in lineage.degradations}
    assert not codes & {
        "observations_missing",
        "observer_failed",
        "malformed_observations",
        "observation_untied",
        "partitions_unknown",
    }


# --- invisible ------------------------------------------------------------------------------------


# Spark takes a configuration without an appender for none, and brings its own.
SILENT_LOG = """
rootLogger.level = off
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
"""


# Permissions do not keep root from writing; a mount does, and is seen by this one process only.
MOUNT = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" "$0" && cd "$0" && exec "$@"'


def read_only(folder: Path) -> list[str]:
    """Give what a command is to be prefixed with to run in a folder that it cannot write to."""
    folder.chmod(0o555)
    prefix = ["unshare", "--mount", "sh", "-c", MOUNT, str(folder)]
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return []
    tried = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    return prefix if tried.returncode == 0 else []


def run_job(spark, work: Path, ending: str, *, observed: bool):
    """Run the job with a silent log: (stdout, stderr, exit code), and the observer's file."""
    folder = work / ("observed" if observed else "alone")
    cwd, conf_dir, site = folder / "cwd", folder / "conf", folder / "site"
    for made in (cwd, conf_dir, site):
        made.mkdir(parents=True)
    (conf_dir / "log4j2.properties").write_text(SILENT_LOG)
    (site / "sitecustomize.py").write_text("SHOP = 'the shop''s own'\n")
    library = folder / "shop_library.py"
    library.write_text("NAME = 'shop'\n")
    conf = record_events.spark_conf(folder / "lake", cwd) | {
        "spark.local.dir": str(folder / "local"),
        "spark.ui.enabled": "false",
    }
    submission = Submission(conf=conf, py_files=str(library), application="invisible.py")
    observations = folder / "observations.ndjson"
    if observed:
        observation = Observation(str(submitted_files.write_observer(folder)), observations, "tag")
        injection = Injection((), folder / "e", str(uuid.uuid4()), observation=observation)
        after = inject(submission, injection)
        ours = {k: v for k, v in after.conf.items() if "sparklineage" in k and "openlin" not in k}
        submission = Submission(conf={**conf, **ours}, py_files=after.py_files)
    finished = subprocess.run(
        [
            *read_only(cwd),
            f"{spark.distribution.home}/bin/spark-submit",
            *["--py-files", submission.py_files, *record_events.conf_options(submission.conf)],
            str(record_events.APPLICATIONS / "invisible.py"),
            *[str(work / "table" / str(observed)), ending],
        ],
        cwd=cwd,
        env=record_events.environment(spark, folder)
        | {"SPARK_CONF_DIR": str(conf_dir), "PYTHONPATH": str(site), "TMPDIR": "/tmp"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert list(cwd.iterdir()) == []
    texts = [
        text.replace(str(observed), "<run>").replace(str(work), "<work>")
        for text in (finished.stdout, finished.stderr)
    ]
    return (*texts, finished.returncode), observations


@pytest.fixture(scope="session")
def unobserved(spark, tmp_path_factory):
    """Run the job without the observer, once for each ending."""
    folder = tmp_path_factory.mktemp
    return cache(lambda ending: run_job(spark, folder("unobserved"), ending, observed=False))


@pytest.mark.parametrize(
    ("ending", "exit_code"),
    [
        pytest.param("stop", 0, marks=pytest.mark.long),
        pytest.param("exit", 3, marks=pytest.mark.long),
        pytest.param("raise", 1, marks=pytest.mark.long),
        ("sigterm", 143),
    ],
)
def test_the_job_is_the_same_with_and_without(spark, unobserved, tmp_path, ending, exit_code):
    alone, nothing = unobserved(ending)
    watched, observations = run_job(spark, tmp_path, ending, observed=True)
    assert watched == alone
    assert alone[2] == exit_code, alone
    assert "site the shops own" in alone[0]
    assert ("audit ['command'" in alone[0]) is (ending == "stop")
    assert not nothing.exists()
    writes = [w for r in lines(observations) for w in r.get("writes", ())]
    assert [w["layouts"][0]["partitions"] for w in writes] == [[["0"], ["1"]]]
    if "can write here: yes" in alone[0]:
        pytest.skip("all held, but root may not make a read-only mount here")
    assert "can write here: no" in alone[0]


@pytest.mark.long
def test_os_exit_loses_at_most_the_last_records(spark, unobserved, tmp_path):
    """The one known exception: py4j may log that its callback was interrupted."""
    alone, _ = unobserved("os_exit")
    watched, _ = run_job(spark, tmp_path, "os_exit", observed=True)
    assert (watched[0], watched[2]) == (alone[0], alone[2])
    assert alone[2] == 4


@pytest.mark.long
def test_a_file_that_cannot_be_written_is_no_trouble_of_the_job(spark, unobserved, tmp_path):
    alone, _ = unobserved("exit")
    (tmp_path / "observed" / "observations.ndjson").mkdir(parents=True)
    watched, _ = run_job(spark, tmp_path, "exit", observed=True)
    assert watched == alone
