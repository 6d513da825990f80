"""The same jobs on this machine's files and in a cluster have the same lineage, but for paths."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest
from openlineage.client.serde import Serde

from tests.dag_runs.documents import normalised

pytestmark = [pytest.mark.spark, pytest.mark.airflow]

JOBS = (
    "staging_chain",  # filters, a join, an aggregation, a staging folder read back
    "partitioned_writes",  # appended, and overwritten statically and dynamically; five outputs
    "append_then_read",  # paths and tables that an earlier application wrote
    "catalog_tables",  # CREATE TABLE AS SELECT, saveAsTable
    "self_overwrite",  # an input that is the output
    "union_diamond",  # one source by two ways
    "rewritten_staging",  # staging that is overwritten between two reads
    "python_udf",
    "writes_nothing",
    "failing_action",  # in the middle
)


@pytest.fixture
def here(orders_lake, tmp_path, monkeypatch):
    """Copy the lake of the recorded applications; name a connection for jobs on it."""
    connection = {"conn_type": "spark", "host": "local[2]"}
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_HERE", json.dumps(connection))
    return str(shutil.copytree(orders_lake, tmp_path / "lake"))


@pytest.mark.parametrize("job", JOBS)
def test_a_job_has_the_same_lineage_here_and_in_a_cluster(
    submit, captures, cluster, lake, here, job
):
    def run(root, **options):
        conf = {"spark.sql.warehouse.dir": f"{root}/warehouse"}
        return submit(job, root, conf=conf, **options)

    with ThreadPoolExecutor(2) as threads:
        # Without the cluster's configuration paths are of this machine.
        on_files = {"conn_id": "spark_here", "env_vars": {"HADOOP_CONF_DIR": here}}
        running = threads.submit(run, here, **on_files)
        ours, theirs = run(lake), running.result()
    assert (ours.error is None) == (theirs.error is None)
    folder = lake.removeprefix(cluster.hdfs)
    in_cluster = document(ours, {lake: "/lake", folder: "/lake", cluster.hdfs: "file"})
    assert in_cluster["inputs"]
    differing = "\n".join(
        differences(in_cluster, document(theirs, {f"file:{here}": "/lake", here: "/lake"}))
    )
    assert not differing, differing


def differences(ours, theirs, place=""):
    """Name the places where two documents differ, with what is there."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            yield from differences(ours.get(key), theirs.get(key), f"{place}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(*pair, f"{place}[{number}]")
    elif ours != theirs:
        yield f"{place}: {ours} != {theirs}"


def document(ran, names):
    """Give what a task's event has of its lineage, with the same paths for all."""
    lineage = ran.lineage
    event = {
        "inputs": [Serde.to_dict(dataset) for dataset in lineage.inputs],
        "outputs": [Serde.to_dict(dataset) for dataset in lineage.outputs],
        "run": {"facets": {n: Serde.to_dict(facet) for n, facet in lineage.run_facets.items()}},
        "job": {"facets": {n: Serde.to_dict(facet) for n, facet in lineage.job_facets.items()}},
    }
    text = json.dumps(event)
    for theirs, ours in names.items():
        text = text.replace(theirs, ours)
    return in_order(normalised(json.loads(text), "/lake"))


def in_order(value):
    """Sort what the listener gives in the order of a hash map, which is of names."""
    if isinstance(value, list):
        return [in_order(each) for each in value]
    if not isinstance(value, dict):
        return value
    value = {key: in_order(each) for key, each in value.items()}
    if "transformations" in value:
        value["transformations"].sort(key=json.dumps)
    if text := value.get("transformationDescription"):
        value["transformationDescription"] = "; ".join(sorted(text.split("; ")))
    return value
