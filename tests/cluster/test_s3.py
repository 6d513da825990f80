"""A capture location in S3: the driver delivers by S3A, the worker collects by s3fs.

S3 is moto's server on the loopback. Hadoop's own jar of the whole AWS SDK has 500 MB; what S3A uses
of it is in modules of 10.
"""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from airflow_provider_sparklineage.storage.objects import Objects
from tests import maven, s3_double, spark_submit_double
from tests.record_events import APPLICATIONS

pytest.importorskip("moto", reason="an environment that is older than the pins has no S3")

pytestmark = [pytest.mark.spark, pytest.mark.airflow]

_SDK = "2.24.9"  # Hadoop 3.4.1 is built with 2.24
_JARS = (
    "org.apache.hadoop:hadoop-aws:3.4.1",
    *(
        f"software.amazon.awssdk:{module}:{_SDK}"
        for module in ("s3", "sts", "s3-transfer-manager", "apache-client")
    ),
)
_NOT_NEEDED = ("software.amazon.awssdk:bundle", "software.amazon.awssdk:netty-nio-client")
_OF_SPARK = ("commons-codec", "commons-logging", "httpclient", "httpcore", "slf4j-api")


@pytest.fixture(scope="module")
def s3():
    """Serve S3; give its URL."""
    with s3_double.serving() as url:
        yield url


@pytest.fixture
def bucket(s3, monkeypatch):
    """Have a bucket that Airflow knows by a connection; give its URL."""
    return s3_double.bucket(s3, monkeypatch)


@pytest.fixture(scope="session")
def s3a(spark):
    """Give S3A and what it needs that Spark has not, as a list of jars for spark-submit."""
    jars = maven.jars(*_JARS, without=_NOT_NEEDED)
    return ",".join(str(jar) for jar in jars if not any(name in jar.name for name in _OF_SPARK))


@pytest.fixture
def run(on_yarn, spark, s3, bucket, lake, monkeypatch):
    """Run a job whose driver is in the cluster; give its lineage."""
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION", f"{bucket}/lineage")

    def run(**options):
        s3a = {
            "spark.hadoop.fs.s3a.endpoint": s3,
            "spark.hadoop.fs.s3a.endpoint.region": s3_double.REGION,
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": s3_double.USER,
            "spark.hadoop.fs.s3a.secret.key": s3_double.PASSWORD,
        }
        task = SparkLineageSubmitOperator(
            task_id="job",
            application=f"{APPLICATIONS}/staging_chain.py",
            application_args=[lake],
            conf=on_yarn.spark_conf(spark.distribution.home) | s3a,
            durable=False,
            **options,
        )
        spark_submit_double.execute(task, spark_submit_double.task_context())
        return task.get_openlineage_facets_on_complete(None)

    return run


def degradations(lineage):
    return [d["code"] for d in lineage.run_facets["sparkLineage_capture"].degradations]


def test_a_driver_delivers_by_s3a_and_the_worker_collects_by_s3fs(run, bucket, s3a, monkeypatch):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__KEEP_CAPTURES", "all")
    lineage = run(jars=s3a)
    assert degradations(lineage) == []
    outputs = sorted(dataset.name.rpartition("/")[2] for dataset in lineage.outputs)
    assert outputs == ["enriched_orders", "revenue"]
    [name] = Objects(f"{bucket}/lineage").names("")
    kept = {path.rpartition("/")[2] for path, _ in Objects(f"{bucket}/lineage/{name}").walk("")}
    assert {"manifest.json", "start.json", "events-00001.ndjson", "end.json"} <= kept


def test_without_s3a_the_job_runs_and_its_lineage_is_declared_missing(run):
    assert "driver_elsewhere" in degradations(run())


def test_files_are_what_they_are_on_a_disk(bucket, tmp_path):
    store = Objects(f"{bucket}/files")
    store.write("a/b", b"first")
    store.write("a/b", b"second")
    assert store.read("a/b") == b"second"
    assert store.read("a/b", 3) == b"sec"
    assert (store.names(""), store.names("a"), store.names("c")) == (["a"], ["b"], [])
    assert store.files("a") == {"b": 6}
    assert [name for name, written in store.walk("") if written] == ["a/b"]
    store.download("a/b", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"second"
    with pytest.raises(FileNotFoundError):
        store.read("c")
    store.remove("a/b")
    store.remove("a/b")
    store.write("d/e/f", b"")
    store.remove_folder("d")
    store.remove_folder("d")
    assert list(store.walk("")) == []
