"""A job that is a jar, submitted by the operator, with secrets in a transport of its own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from tests import record_events, spark_submit_double
from tests.java_application import compiled
from tests.loopback import serving
from tests.spark import submissions
from tests.spark.test_listener_set_up import _Receiver

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.long]

T = "spark.openlineage.transport."
SECRET = "pl4nted-s3cr3t"


@pytest.fixture(scope="module")
def ran(spark, tmp_path_factory):
    """Run it with an event log; give what the backend got, and every text that is left."""
    work = tmp_path_factory.mktemp("jar")
    for name in ("lake", "log"):
        (work / name).mkdir()
    received = {"authorizations": set(), "tenants": set(), "command_lines": []}
    with serving(_Receiver, **received) as backend, pytest.MonkeyPatch.context() as patched:
        environment = submissions.of_worker(spark, work) | {
            "AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES": "all",
        }
        for key, value in environment.items():
            patched.setenv(key, value)
        conf = record_events.spark_conf(work / "lake", work) | {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(work / "log"),
            "spark.eventLog.compress": "false",
            f"{T}type": "http",
            f"{T}url": backend.url,
            f"{T}auth.type": "api_key",
            f"{T}auth.apiKey": SECRET,
            f"{T}headers.X-Tenant": f"{SECRET}-tenant",
            f"{T}urlParams.key": f"{SECRET}-parameter",
        }
        del conf["spark.master"]
        task = SparkLineageSubmitOperator(
            task_id="totals",
            application=str(compiled(spark, work)),
            java_class="TotalsJob",
            application_args=[str(work / "lake")],
            conf=conf,
        )
        spark_submit_double.execute(task, spark_submit_double.task_context())
    lineage = task.get_openlineage_facets_on_complete(None)
    return SimpleNamespace(lineage=lineage, backend=backend, work=work)


def test_the_lineage_of_the_listener_is_there_and_what_is_missing_is_declared(ran):
    facet = ran.lineage.run_facets["sparkLineage_capture"]
    [code] = [d["code"] for d in facet.degradations if d["code"].startswith("observer")]
    assert code == "observer_unavailable"
    outputs = {Path(d.name).name for d in ran.lineage.outputs}
    assert outputs == {"orders", "totals"}


def test_the_users_backend_gets_the_events_and_no_command_line_the_key(ran):
    assert ran.backend.authorizations == {f"Bearer {SECRET}"}
    assert any("TotalsJob" in line for line in ran.backend.command_lines)
    assert [line for line in ran.backend.command_lines if SECRET in line] == []


def test_the_event_log_and_the_bundle_are_without_its_secrets(ran):
    texts = {str(file): file.read_text("latin-1") for file in ran.work.rglob("*") if file.is_file()}
    log = "".join(text for name, text in texts.items() if "/log/" in name)
    assert f"{T}transports.user.auth.apiKey" in log  # with a redacted value
    assert [name for name, text in texts.items() if SECRET in text] == []
