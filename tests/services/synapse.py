"""An Azure Synapse that passes batches on to a Spark of this machine."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.submitting import Submitter
from tests.record_events import APPLICATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow.sdk import BaseOperator

    from tests.services.local_spark import LocalSpark


class SynapseSubmitter(Submitter):
    """Submits batches to a pool, which reads those of the tests from this machine."""

    def operator(
        self,
        application: str,
        *arguments: str,
        conf: Mapping[str, str] | None = None,
        **options: Any,
    ) -> BaseOperator:
        """Make the operator of an application; it asks Synapse for the end."""
        from airflow_provider_sparklineage.operators.synapse import SparkLineageSynapseOperator

        payload = {
            "name": "job",
            "file": f"file://{APPLICATIONS}/{application}.py",
            "args": list(arguments),
            "conf": dict(conf or {}),
        }
        return SparkLineageSynapseOperator(
            payload=payload,
            spark_pool="pool",
            **{"task_id": "job", "check_interval": 1, **options},
        )


@contextmanager
def running(behind: LocalSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submitter]:
    """Give what submits batches to this Synapse."""
    pytest.importorskip("airflow.providers.microsoft.azure", reason="it brings fifty packages")
    from tests import synapse_double

    drivers = []

    def start(batch):
        given = (batch.get("conf", {}), batch.get("jars", ()), batch.get("pyFiles", ()))
        drivers.append(behind.start_with(*given, batch["file"], batch.get("args", ())))

    def states():
        return [drivers[-1].state("running", "success", "dead")]

    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION", "{}-scala{}".format(*behind.version))
    with synapse_double.synapse(monkeypatch, does=start, now=states) as server:
        connection = synapse_double.connection(server)
        monkeypatch.setenv("AIRFLOW_CONN_AZURE_SYNAPSE_DEFAULT", connection)
        yield SynapseSubmitter()
