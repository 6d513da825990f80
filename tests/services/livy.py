"""A Livy that passes batches on to a Spark of this machine."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests import livy_double
from tests.cluster.submitting import LivySubmitter

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from tests.cluster.submitting import Submitter
    from tests.services.local_spark import LocalSpark


@contextmanager
def running(behind: LocalSpark, monkeypatch: pytest.MonkeyPatch) -> Iterator[Submitter]:
    """Give what posts batches to this Livy."""
    drivers = []

    def start(batch):
        given = (batch.get("conf", {}), batch.get("jars", ()), batch.get("pyFiles", ()))
        drivers.append(behind.start_with(*given, batch["file"], batch.get("args", ())))

    def states():
        return [drivers[-1].state("running", "success", "dead")]

    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__SPARK_VERSION", "{}-scala{}".format(*behind.version))
    with livy_double.livy(does=start, now=states) as server:
        connection = {"conn_type": "livy", "host": "127.0.0.1", "port": server.server_port}
        monkeypatch.setenv("AIRFLOW_CONN_LIVY_DEFAULT", json.dumps(connection))
        yield LivySubmitter()
