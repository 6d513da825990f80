"""A Kubernetes whose Spark operator passes SparkApplications on to a Spark of this machine."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.operators.spark_kubernetes import SparkLineageKubernetesOperator
from tests import kubernetes_double, spark_submit_double
from tests.cluster.submitting import Ran, Submitter
from tests.record_events import APPLICATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest
    from airflow.sdk import BaseOperator

    from tests.services.local_spark import LocalSpark


class KubernetesSubmitter(Submitter):
    """Creates SparkApplications, whose drivers read those of the tests from this machine."""

    def __init__(self, version: tuple[str, str]) -> None:
        super().__init__()
        self._version = version

    def operator(
        self,
        application: str,
        *arguments: str,
        conf: Mapping[str, str] | None = None,
        **options: Any,
    ) -> BaseOperator:
        """Make the operator of an application; it waits for the end of the driver's pod."""
        spec = {
            "type": "Python",
            "mode": "cluster",
            "sparkVersion": "{}-scala{}".format(*self._version),
            "mainApplicationFile": f"file://{APPLICATIONS}/{application}.py",
            "arguments": list(arguments),
            "sparkConf": dict(conf or {}),
            "driver": {},
            "executor": {},
        }
        body = {
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "SparkApplication",
            "metadata": {"name": "job"},
            "spec": spec,
        }
        return SparkLineageKubernetesOperator(
            template_spec=body, **{"task_id": "job", "startup_check_interval_seconds": 1, **options}
        )

    def execute(self, operator: BaseOperator, context: dict[str, Any] | None = None) -> Ran:
        """Execute it, as the task runner does."""
        known = context or spark_submit_double.task_context()
        more = {"task_instance": known["ti"], "run_id": "manual", "dag": None}
        return super().execute(operator, {**known, **more})


@contextmanager
def running(behind: LocalSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submitter]:
    """Give what creates SparkApplications in this Kubernetes."""
    drivers = []

    def start(created):
        spec, deps = created["spec"], created["spec"].get("deps") or {}
        files = (deps.get("jars") or (), deps.get("pyFiles") or ())
        started = behind.start_with(
            spec.get("sparkConf") or {}, *files, spec["mainApplicationFile"], spec["arguments"]
        )
        drivers.append(started)

    def phases():
        return [drivers[-1].state("Running", "Succeeded", "Failed")]

    with kubernetes_double.kubernetes(does=start, now=phases) as server:
        connection = kubernetes_double.connection(server)
        monkeypatch.setenv("AIRFLOW_CONN_KUBERNETES_DEFAULT", connection)
        yield KubernetesSubmitter(behind.version)
