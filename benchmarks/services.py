"""What the operators of services cost: a DAG file, and the time before a submission.

Everything is compared with the stock operators. Before a submission to a service listener and
observer are looked for in the tools folder of the capture location; it is filled here, as it is
for all tasks but the first. The location is a mount, or S3: a server on this machine, whose own
time is not counted. Measured with those operators whose providers are installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG

from airflow_provider_sparklineage.operators.adoption.kinds import KINDS
from benchmarks import submitting
from benchmarks.dag_files import importing
from benchmarks.measuring import in_turns
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.operators.adoption.kinds import Kind

TASKS = 20
"""Tasks of each operator in the DAG."""
RUNS = 30
GOAL, GOAL_MS = 1.05, 100
_IMPORTING = (
    "the settings, the templates' declarations and OpenLineage's client are imported with any "
    "operator of ours, once in a process"
)
_S3 = (
    "most of it is what opens S3 for Airflow: s3fs and aiobotocore (and boto3, if the operator has "
    "not) are imported and make a client, before the job and not after it"
)

_ROLE = "arn:aws:iam::123456789012:role/etl"
_DRIVER = {"entryPoint": "s3://lake/job.py", "entryPointArguments": ["{{ ds }}"]}
_PYTHON = {"main_python_file_uri": "gs://lake/job.py", "args": ["{{ ds }}"]}
_STEP = {"Jar": "command-runner.jar", "Args": ["spark-submit", "s3://lake/job.py", "{{ ds }}"]}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "SparkSqlOperator": {"sql": "SELECT '{{ ds }}'"},
    "LivyOperator": {"file": "hdfs:///job.py", "args": ["{{ ds }}"]},
    "SparkKubernetesOperator": {"template_spec": {"spec": {"arguments": ["{{ ds }}"]}}},
    "EmrServerlessStartJobOperator": {
        "application_id": "1",
        "execution_role_arn": _ROLE,
        "job_driver": {"sparkSubmit": _DRIVER},
    },
    "EmrContainerOperator": {
        "name": "job",
        "virtual_cluster_id": "1",
        "execution_role_arn": _ROLE,
        "release_label": "emr-7.5.0-latest",
        "job_driver": {"sparkSubmitJobDriver": _DRIVER},
    },
    "EmrAddStepsOperator": {
        "job_flow_id": "1",
        "steps": [{"Name": "job", "HadoopJarStep": _STEP}],
    },
    "GlueJobOperator": {"job_name": "job", "script_args": {"--date": "{{ ds }}"}},
    "DatabricksSubmitRunOperator": {"json": {"spark_python_task": {"parameters": ["{{ ds }}"]}}},
    "DataprocSubmitJobOperator": {"region": "eu", "job": {"pyspark_job": _PYTHON}},
    "DataprocCreateBatchOperator": {"region": "eu", "batch": {"pyspark_batch": _PYTHON}},
    "DataprocInstantiateInlineWorkflowTemplateOperator": {
        "region": "eu",
        "template": {"jobs": [{"step_id": "a", "pyspark_job": _PYTHON}]},
    },
    "AzureSynapseRunSparkBatchOperator": {"payload": {"file": "job.py"}, "spark_pool": "pool"},
}
"""Arguments of each stock operator, by the name of its class."""


def measured() -> Iterator[Result]:
    """Measure parsing and importing, then the time before a submission."""
    kinds = [kind for kind in KINDS if _name(kind) in ARGUMENTS and _is_installed(kind)]
    yield _parsing(kinds)
    yield from map(_importing, _one_of_each_module(kinds))
    yield from _submitting()


def _name(kind: Kind) -> str:
    return kind.stock.rpartition(".")[2]


def _is_installed(kind: Kind) -> bool:
    try:
        return bool(_class(kind.stock) and _class(kind.ours))
    except ImportError:
        return False


def _class(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


# --- DAG files ------------------------------------------------------------------------------------


def _parsing(kinds: list[Kind]) -> Result:
    """Make a DAG with tasks of all services, by our operators and by the stock ones."""
    ours = [(_class(kind.ours), ARGUMENTS[_name(kind)]) for kind in kinds]
    stock = [(_class(kind.stock), ARGUMENTS[_name(kind)]) for kind in kinds]
    ours_s, stock_s = in_turns(_making(ours), _making(stock), runs=RUNS)
    figures = f"ours {ours_s * 1000:.1f}, stock {stock_s * 1000:.1f} ms of CPU"
    name = f"parse a DAG of {TASKS} tasks of each of {len(kinds)} operators / the stock operators'"
    return Result(name, ours_s / stock_s, GOAL, figures)


def _making(operators: list[tuple[type, dict[str, Any]]]) -> Callable[[], object]:
    def make() -> DAG:
        with DAG("shop", schedule=None, start_date=datetime(2024, 5, 6, tzinfo=UTC)) as made:
            for operator, arguments in operators:
                for number in range(TASKS):
                    operator(task_id=f"{operator.__name__}_{number}", **arguments)
        return made

    return make


def _one_of_each_module(kinds: list[Kind]) -> list[Kind]:
    return list({kind.ours.rpartition(".")[0]: kind for kind in kinds}.values())


def _importing(kind: Kind) -> Result:
    ours, stock = (path.rpartition(".")[0] for path in (kind.ours, kind.stock))
    what = f"operators.{ours.rpartition('.')[2]} / the stock operator's module"
    return importing(what, ours, stock, _IMPORTING)


# --- before a submission --------------------------------------------------------------------------


# Each ends the task's process when it would submit the job.
_TASK = (
    submitting.SETUP
    + """
arguments = ["--date", "{{ ds }}", "--output", "s3a://lake/revenue/dt={{ ds }}"]

def submit(job):
    end("execute")
    print(json.dumps({"ended": ended, "job": job}), flush=True)
    os._exit(0)
"""
)
LIVY = (
    _TASK
    + """
from airflow.providers.apache.livy.hooks.livy import LivyHook
from airflow.providers.apache.livy.operators.livy import LivyOperator
from airflow_provider_sparklineage.operators.livy import SparkLineageLivyOperator

OPERATORS.update(ours=SparkLineageLivyOperator, stock=LivyOperator)
operator = made(file="hdfs:///job.py", args=arguments, conf={"spark.shop": "1"}, polling_interval=1)
LivyHook.post_batch = lambda hook, **batch: submit(batch)
"""
    + submitting.BEFORE_A_JOB
)
EMR_SERVERLESS = (
    _TASK
    + """
from airflow.providers.amazon.aws.operators.emr import EmrServerlessStartJobOperator
from airflow_provider_sparklineage.operators.emr import SparkLineageEmrServerlessOperator
from botocore.client import BaseClient

OPERATORS.update(
    ours=SparkLineageEmrServerlessOperator, stock=EmrServerlessStartJobOperator
)
driver = {"entryPoint": "s3://lake/job.py", "entryPointArguments": arguments}
operator = made(application_id="1", execution_role_arn="arn:aws:iam::123456789012:role/etl",
    job_driver={"sparkSubmit": driver}, aws_conn_id="lake_s3")

def call(client, operation, asked):
    if operation == "StartJobRun":
        submit(asked)
    return {"application": {"state": "STARTED"}}

BaseClient._make_api_call = call
"""
    + submitting.BEFORE_A_JOB
)


def _submitting() -> Iterator[Result]:
    submitting.make_ready()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with _s3(folder) as (url, connections):
            env = submitting.environment(folder) | {
                "AIRFLOW__SPARKLINEAGE__SPARK_VERSION": "4.0.1",
                **connections,
            }
            mount = f"file://{folder}/mount"
            yield _waiting("a batch of Livy", LIVY, "on a mount", mount, env)
            yield _waiting("a batch of Livy", LIVY, "in S3", url, env, _S3)
            yield _waiting("a job of EMR Serverless", EMR_SERVERLESS, "in S3", url, env, _S3)


def _waiting(
    job: str, task: str, place: str, location: str, env: dict[str, str], missed: str = ""
) -> Result:
    phases = partial(_phases, task, env | {"AIRFLOW__SPARKLINEAGE__CAPTURE_LOCATION": location})
    phases("ours")  # fills the tools folder
    return submitting.waiting(f"{job}, captures {place}", phases, GOAL_MS, missed)


def _phases(task: str, env: dict[str, str], who: str) -> list[float]:
    printed = submitting.printed_by(task, who, env)
    is_injected = "/.tools/" in json.dumps(printed["job"])
    assert is_injected is (who == "ours"), "nothing was injected, so nothing was measured"
    return submitting.of_phases(printed["ended"])


@contextmanager
def _s3(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Serve S3 in another process; give the URL of a bucket's folder, and its connection."""
    script = """
import sys, time
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
import boto3
url = "http://{}:{}".format(*server.get_host_and_port())
boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="a",
    aws_secret_access_key="b").create_bucket(Bucket="lake")
print(url, flush=True)
sys.stdin.read()
"""
    server = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        text=True,
    )
    assert server.stdout is not None
    try:
        url = server.stdout.readline().strip()
        extra = {"endpoint_url": url, "region_name": "us-east-1"}
        connection = {"conn_type": "aws", "login": "a", "password": "b", "extra": extra}
        yield "s3://lake_s3@lake/lineage", {"AIRFLOW_CONN_LAKE_S3": json.dumps(connection)}
    finally:
        server.communicate()
