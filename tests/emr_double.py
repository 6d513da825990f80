"""EMR without Spark: moto keeps what is started, and lets a driver deliver.

What moto keeps of a job run or a step has a state for ever. So both doubles here call ``does`` with
what was started, and give, whenever they are asked, the state that ``now`` gives.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import boto3
from moto import mock_aws
from moto.backends import get_backend
from moto.emr.models import ElasticMapReduceBackend
from moto.emrcontainers.models import EMRContainersBackend
from moto.emrserverless.models import EMRServerlessBackend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pytest

REGION = "eu-west-1"
ACCOUNT = "123456789012"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/spark"


@contextmanager
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let moto answer for AWS, which Airflow knows by its default connection."""
    connection = {"conn_type": "aws", "login": "test", "password": "testing"}
    connection["extra"] = {"region_name": REGION}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(connection))
    with mock_aws():
        yield


class JobRuns(NamedTuple):
    """What a service keeps of the job runs that were started.

    :param place: the id of the application, or of the virtual cluster
    """

    place: str
    started: list[Any]


def _watched(
    monkeypatch: pytest.MonkeyPatch,
    backend: type,
    asked: str,
    does: Callable[[Any], object],
    now: Callable[[Any], str],
) -> list[Any]:
    started = []
    start, get = backend.start_job_run, getattr(backend, asked)

    def start_job_run(self, *args, **kwargs):
        run = start(self, *args, **kwargs)
        started.append(run)
        does(run)
        return run

    def job_run(self, *args, **kwargs):
        run = get(self, *args, **kwargs)
        run.state = now(run)
        return run

    monkeypatch.setattr(backend, "start_job_run", start_job_run)
    monkeypatch.setattr(backend, asked, job_run)
    return started


@contextmanager
def serverless(
    monkeypatch: pytest.MonkeyPatch,
    does: Callable[[Any], object],
    now: Callable[[Any], str] = lambda _: "SUCCESS",
    label: str = "emr-7.5.0",
) -> Iterator[JobRuns]:
    """Give an EMR Serverless with an application of a release."""
    with aws(monkeypatch):
        started = _watched(monkeypatch, EMRServerlessBackend, "get_job_run", does, now)
        client = boto3.client("emr-serverless", REGION)
        made = client.create_application(
            name="shop", releaseLabel=label, type="SPARK", clientToken="1"
        )
        yield JobRuns(made["applicationId"], started)


@contextmanager
def containers(
    monkeypatch: pytest.MonkeyPatch,
    does: Callable[[Any], object],
    now: Callable[[Any], str] = lambda _: "COMPLETED",
) -> Iterator[JobRuns]:
    """Give an EMR on EKS with a virtual cluster."""
    with aws(monkeypatch):
        started = _watched(monkeypatch, EMRContainersBackend, "describe_job_run", does, now)
        eks = {"id": "eks", "type": "EKS", "info": {"eksInfo": {"namespace": "spark"}}}
        client = boto3.client("emr-containers", REGION)
        made = client.create_virtual_cluster(name="shop", containerProvider=eks, clientToken="1")
        yield JobRuns(made["id"], started)


class Steps(NamedTuple):
    """What a cluster keeps of the steps that were added.

    :param cluster: the id of the cluster
    :param states: the state of all steps, for a test to change
    """

    cluster: str
    added: list[Any]
    states: Sequence[str] = ()


@contextmanager
def cluster(
    monkeypatch: pytest.MonkeyPatch,
    does: Callable[[Any], object],
    now: Callable[[Any], str] = lambda _: "COMPLETED",
    properties: dict[str, str] | None = None,
) -> Iterator[Steps]:
    """Give a cluster of Amazon EMR.

    :param properties: the properties of Spark that it is configured with
    """
    added = []
    add, get = ElasticMapReduceBackend.add_job_flow_steps, ElasticMapReduceBackend.describe_step

    def add_job_flow_steps(self, *args, **kwargs):
        steps = add(self, *args, **kwargs)
        for step in steps:
            added.append(step)
            does(step)
        return steps

    def describe_step(self, *args, **kwargs):
        step = get(self, *args, **kwargs)
        step.state = now(step)
        return step

    monkeypatch.setattr(ElasticMapReduceBackend, "add_job_flow_steps", add_job_flow_steps)
    monkeypatch.setattr(ElasticMapReduceBackend, "describe_step", describe_step)
    spark = {"Classification": "spark-defaults", "Properties": properties or {}}
    with aws(monkeypatch):
        made = boto3.client("emr", REGION).run_job_flow(
            Name="shop",
            ReleaseLabel="emr-7.5.0",
            Instances={"KeepJobFlowAliveWhenNoSteps": True},
            Configurations=[spark],
            JobFlowRole="spark",
            ServiceRole="emr",
        )
        yield Steps(made["JobFlowId"], added)


def application(of: str) -> Any:
    """Give what EMR Serverless keeps of an application."""
    return get_backend("emr-serverless")[ACCOUNT][REGION].applications[of]


def properties(run: Any) -> dict[str, str]:
    """Give the properties in the classification ``spark-defaults`` of a job run."""
    for each in (run.configuration_overrides or {}).get("applicationConfiguration", ()):
        if each["classification"] == "spark-defaults":
            return each["properties"]
    return {}
