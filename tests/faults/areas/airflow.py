"""Airflow's side: its database, OpenLineage provider, XComs, metrics and links."""

from __future__ import annotations

import time
from types import SimpleNamespace

from airflow_provider_sparklineage.event import xcom
from tests.faults.bench import raising
from tests.faults.registry import Area

AREA = Area(
    "Airflow",
    "Lineage asks Airflow for little, and does without what Airflow does not answer.",
)
fault = AREA.fault
NONE = "injection_failed"
WITHOUT = "The job runs without lineage"
GONE = ConnectionError("the API server is gone")
OPENLINEAGE = "airflow.providers.openlineage"


@fault("XComs cannot be pushed", warns="is not shown in Airflow")
def _(bench):
    bench.monkeypatch.setattr(type(bench.ti), "xcom_push", raising(GONE))


@fault("The XCom backend ends the process", warns="is not shown in Airflow")
def _(bench):
    bench.lineage["reads"] = ["/lake/orders"]
    bench.monkeypatch.setattr(type(bench.ti), "xcom_push", raising(SystemExit(3)))


@fault("An XCom may have ten bytes", warns="is not shown in Airflow")
def _(bench):
    bench.monkeypatch.setattr(xcom, "MAX_BYTES", 10)


@fault("Airflow does not know the last run")
def _(bench):
    bench.ti.get_previous_ti = raising(GONE)


@fault("The XCom of the last run is garbage")
def _(bench):
    bench.ti.get_previous_ti = lambda **_: bench.ti
    bench.ti.xcom_pull = lambda **_: {"no": "event"}


@fault("Airflow takes long to say what the last run was", within=15)
def _(bench):
    bench.ti.get_previous_ti = lambda **_: time.sleep(1)


@fault("Airflow does not say how it has ended a task", ends="AirflowException", changes="the job's")
def _(bench):
    bench.ti.get_task_states = raising(GONE)
    bench.interrupt(lambda task: task.on_kill())


@fault("The task instance does not say whether it is mapped", NONE, warns=WITHOUT)
def _(bench):
    del bench.ti.map_index


@fault("The task instance has no number of its try", NONE, warns=WITHOUT)
def _(bench):
    del bench.ti.try_number


@fault("The run has no logical date")
def _(bench):
    del bench.context["logical_date"]


@fault("Airflow's OpenLineage provider is disabled", NONE, warns=WITHOUT)
def _(bench):
    bench.patch(f"{OPENLINEAGE}.conf.is_disabled", lambda: True)
    bench.monkeypatch.setenv("AIRFLOW__OPENLINEAGE__DISABLED", "True")


@fault("Airflow's OpenLineage provider has a transport that is no JSON", NONE, warns=WITHOUT)
def _(bench):
    bench.patch(f"{OPENLINEAGE}.conf.is_disabled", raising(ValueError("no JSON")))


@fault("Airflow's OpenLineage provider has no listener", NONE, warns=WITHOUT)
def _(bench):
    bench.patch(f"{OPENLINEAGE}.plugins.listener.get_openlineage_listener", lambda: None)


@fault("The names of the job in OpenLineage cannot be made", NONE, warns=WITHOUT)
def _(bench):
    bench.breaks(".operators.attempt.submit.lineage_job_namespace")


@fault("The parent of the job in OpenLineage cannot be found", "injection_failed")
def _(bench):
    bench.breaks(".operators.attempt.submit.inject_parent_job_information_into_spark_properties")


@fault("Airflow cannot mask secrets", warns="could not hide the secrets")
def _(bench):
    bench.breaks(".operators.masking.redact")


@fault("Airflow cannot register secrets")
def _(bench):
    bench.breaks(".operators.masking.mask_secret")


@fault("Metrics cannot be counted", warns="were not counted")
def _(bench):
    bench.breaks(".operators.partition_check.Stats.incr")


@fault("There are no events of outlets to record partitions on")
def _(bench):
    bench.lineage["record_asset_partitions"] = True


@fault("The links of the task cannot be shown")
def _(bench):
    bench.patch(".links.lineage.job_page", raising(GONE))


@fault(
    "Airflow's tasks load no OpenLineage listener: a plugin is installed twice", NONE, warns=WITHOUT
)
def _(bench):
    plugins = SimpleNamespace(is_registered=lambda _: False)
    bench.patch("airflow.sdk.listener.get_listener_manager", lambda: SimpleNamespace(pm=plugins))
    twice = {"shop_plugin:Shop": ("/opt/airflow/plugins", "/home/airflow/.local")}
    bench.patch(".hooks.sources.plugins_found_twice", lambda: twice)
