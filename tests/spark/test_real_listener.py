"""A real Spark with the listener injected by us: its events must merge like the recorded ones."""

from __future__ import annotations

import json
import shutil
import uuid

import msgspec
import pytest

from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from airflow_provider_sparklineage.spark.submit.injection import Injection, inject
from airflow_provider_sparklineage.spark.submit.submission import Submission
from tests import record_events
from tests.openlineage_spec import validate_event

# The same job is run by `tests/dag_runs/test_dag_run.py`, every time.
pytestmark = [pytest.mark.spark, pytest.mark.long]


@pytest.fixture(scope="session")
def bundle(spark, orders_lake, tmp_path_factory):
    """Run the staging application once and give its capture bundle."""
    work = tmp_path_factory.mktemp("spark")
    lake = work / "lake"
    shutil.copytree(orders_lake, lake)
    scratch = work / "scratch"
    scratch.mkdir()
    made = capture.create(work / "captures", Manifest(application_run_id=str(uuid.uuid4())))
    conf = record_events.spark_conf(lake, scratch)
    injection = Injection(
        (str(spark.listener),),
        made.events_path,
        made.manifest.application_run_id,
        defaults={"spark.openlineage.columnLineage.descriptionsEnabled": "true"},  # as recorded
    )
    submission = inject(Submission(conf=conf), injection)
    options = ["--jars", submission.jars, *record_events.conf_options(submission.conf)]
    application = record_events.APPLICATIONS / "staging_chain.py"
    exit_code, tail = record_events.submit(spark, application, lake, scratch, options)
    assert exit_code == 0, tail
    return made


def short(name):
    return name.partition("/lake/")[2]


def test_the_listener_writes_events_of_the_run_that_was_set(bundle):
    lineage = task_lineage(bundle)
    assert lineage.application.run_id == bundle.manifest.application_run_id
    assert lineage.application.finished
    assert lineage.application.foreign_events == 0


def test_a_fresh_run_gives_the_lineage_of_the_recorded_one(bundle, recorded):
    def compared(lineage):
        inputs = [short(d.name.name) for d in lineage.inputs]
        columns = {
            (short(d.name.name), column): {
                (short(c.dataset.name), c.field): t for c, t in edges.items()
            }
            for d in lineage.outputs
            for column, edges in d.columns.fields.items()
        }
        return inputs, columns, [d.code for d in lineage.degradations]

    assert compared(task_lineage(bundle)) == compared(recorded("staging_chain").lineage)


def test_the_merged_event_is_valid_openlineage(bundle):
    validate_event(merged_event(bundle, task_lineage(bundle)))


def test_a_truncated_event_file_still_gives_the_events_that_are_complete(bundle, tmp_path):
    text = bundle.events_path.read_bytes()
    copy = capture.create(tmp_path, bundle.manifest)
    copy.events_path.write_bytes(text[: len(text) * 2 // 3])
    lineage = task_lineage(msgspec.structs.replace(copy))
    codes = {str(d.code) for d in lineage.degradations}
    assert {"application_unfinished", "torn_event"} <= codes
    assert json.dumps([d.name.name for d in lineage.inputs])
