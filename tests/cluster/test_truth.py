"""The same jobs on this machine's files and in a cluster have the same lineage, but for paths.

That holds for each way in which Airflow starts a driver in the cluster.
"""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.documents import differences, document, in_cluster
from tests.services.jobs import JOBS

pytestmark = [pytest.mark.spark, pytest.mark.airflow]


@pytest.fixture
def here(orders_lake, tmp_path, monkeypatch):
    """Copy the lake of the recorded applications; name a connection for jobs on it."""
    connection = {"conn_type": "spark", "host": "local[2]"}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_HERE", json.dumps(connection))
    return str(shutil.copytree(orders_lake, tmp_path / "lake"))


@pytest.fixture(params=["submit", "submit_to_livy"], ids=["yarn", "livy"])
def submit_there(request):
    """Run an application in the cluster, in one of the ways of Airflow."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def known():
    """Keep what jobs on this machine's files report: it is the same for all ways."""
    return {}


@pytest.mark.parametrize("job", JOBS)
def test_a_job_has_the_same_lineage_here_and_in_a_cluster(
    job, submit_there, submit, captures, cluster, lake, here, known
):
    def run(submit, root, **options):
        conf = {"spark.sql.warehouse.dir": f"{root}/warehouse"}
        return submit(job, root, conf=conf, **options)

    def run_here():
        # Without the cluster's configuration paths are of this machine.
        on_files = {"conn_id": "spark_here", "env_vars": {"HADOOP_CONF_DIR": here}}
        ran = run(submit, here, **on_files)
        return ran.error is None, document(ran, {f"file:{here}": "/lake", here: "/lake"})

    with ThreadPoolExecutor(2) as threads:
        running = None if job in known else threads.submit(run_here)
        ours = run(submit_there, lake)
        if running:
            known[job] = running.result()
    succeeded, theirs = known[job]
    assert (ours.error is None) == succeeded
    there = in_cluster(ours, lake, cluster)
    assert there["inputs"]
    assert differences(there, theirs) == []
