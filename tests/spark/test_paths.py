"""Awkward paths with a real Spark: what it makes of lists, and a job with everything at such."""

from __future__ import annotations

import json
import shutil
import uuid

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture.bundle import Manifest
from airflow_provider_sparklineage.spark.submit import submitted_files
from airflow_provider_sparklineage.spark.submit.injection import Injection, Observation, inject
from airflow_provider_sparklineage.spark.submit.submission import Submission
from airflow_provider_sparklineage.spark.submit.submitted_files import Links
from tests import record_events, spark_lists
from tests.unit.listener_jars import other_jar
from tests.unit.spark.test_plain_paths import MISREAD, READ, laid

pytestmark = [pytest.mark.spark, pytest.mark.long]

AWKWARD = "c,d[1]{x}#y%20 ?*:\\;\"'$HOME~ü!@\n\r"


@pytest.fixture(scope="module", params=["C.UTF-8", "C"])
def ran(spark, tmp_path_factory, request):
    """Run a job whose bundle, listener and extension have awkward paths, in a locale."""
    work = tmp_path_factory.mktemp("paths")
    lake, scratch = work / "lake", work / "scratch"
    lake.mkdir()
    scratch.mkdir()
    jars = [str(laid(lake / f"lists{n}" / name)) for n, name in enumerate((*MISREAD, *READ))]
    for folder in lake.glob("lists*"):
        laid(folder / "sxt")  # which a pattern finds as well
    (lake / "lists.json").write_text(json.dumps(jars), encoding="utf-8")
    (work / AWKWARD).mkdir()
    listener = work / AWKWARD / "listener,[2].jar"
    shutil.copy(spark.listener, listener)
    extension = other_jar(work / AWKWARD / "listener,[2].jar ü.jar")
    manifest = Manifest(application_run_id=str(uuid.uuid4()), injected=("py_files",))
    bundle = capture.create(work / AWKWARD / "captures", manifest)
    links = Links(bundle.path)
    visible = replace(bundle, path=links.plain(bundle.path))
    zip_entry = links.entry(str(submitted_files.write_observer(visible.path)))
    submission = inject(
        Submission(conf=record_events.spark_conf(lake, scratch), application="a.py"),
        Injection(
            (links.entry(str(listener)), links.entry(str(extension))),
            visible.events_path,
            manifest.application_run_id,
            observation=Observation(
                zip_entry, visible.observations_path, manifest.application_run_id
            ),
        ),
    )
    options = ["--jars", submission.jars, "--py-files", submission.py_files]
    options += record_events.conf_options(submission.conf)
    application = record_events.APPLICATIONS / "asked_lists.py"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LC_ALL", request.param)
        exit_code, tail = record_events.submit(spark, application, lake, scratch, options)
    links.remove()
    assert exit_code == 0, tail
    answers = json.loads((lake / "answers.json").read_text(encoding="utf-8"))
    return bundle, answers, request.param


def test_the_lineage_is_collected_and_the_partitions_observed(ran):
    bundle, _, _ = ran
    lineage = task_lineage(bundle)
    [output] = lineage.outputs
    assert output.observed
    assert "'day'" in repr(output.subset)
    serious = [d for d in lineage.degradations if d.code.needs_attention]
    assert serious == []


def test_spark_takes_lists_for_what_the_tests_think(ran):
    _, answers, locale = ran

    def thought(text):
        try:
            return spark_lists.files(text) == [text]
        except ValueError:
            return False

    if locale == "C":  # in which Java has no other characters
        answers = {text: paths for text, paths in answers.items() if text.isascii()}
    read = {text: paths == [text] for text, paths in answers.items()}
    assert read == {text: thought(text) for text in answers}
