"""A Dataproc on the loopback that runs no job: it keeps what it is given, and lets drivers deliver.

Its methods are those of Dataproc's own gRPC services: what a client of Google's library sends is
read by the library's own messages.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import grpc
from airflow.providers.google.cloud.hooks import dataproc as hooks
from google.cloud import dataproc_v1 as v1
from google.cloud.dataproc_v1.services.batch_controller.transports import (
    BatchControllerGrpcTransport,
)
from google.cloud.dataproc_v1.services.cluster_controller.transports import (
    ClusterControllerGrpcTransport,
)
from google.cloud.dataproc_v1.services.job_controller.transports import (
    JobControllerGrpcTransport,
)
from google.cloud.dataproc_v1.services.workflow_template_service.transports import (
    WorkflowTemplateServiceGrpcTransport,
)
from google.longrunning import operations_pb2
from google.protobuf import any_pb2, empty_pb2

TRANSPORTS = (
    BatchControllerGrpcTransport,
    ClusterControllerGrpcTransport,
    JobControllerGrpcTransport,
    WorkflowTemplateServiceGrpcTransport,
)
CONNECTION = {
    "conn_type": "google_cloud_platform",
    "extra": {"is_anonymous": True, "project": "shop"},
}
JOBS = ("pyspark_job", "spark_job", "spark_sql_job")
BATCHES = ("pyspark_batch", "spark_batch", "spark_sql_batch")


def parts(message, names, properties=None):
    """Give what a job or batch starts: properties, jars, Python files, application, arguments."""
    name = next(name for name in names if name in message)
    spark = getattr(message, name)
    return (
        dict(spark.properties if properties is None else properties),
        list(spark.jar_file_uris),
        list(getattr(spark, "python_file_uris", ())),
        getattr(spark, "main_python_file_uri", ""),
        list(getattr(spark, "args", ())),
    )


class Dataproc(grpc.GenericRpcHandler):
    """The services of Dataproc.

    :param does: called with the parts of each job and batch that starts Spark
    :param now: gives the state of this moment, in place of those in ``states``
    """

    def __init__(self, does=None, now=None):
        self.does = does or (lambda *_: None)
        self.now = now
        self.states = ["DONE"]
        self.refuses = None
        self.image = "2.2.45-debian12"
        self.clusters_seen = 0
        self.delay = 0
        self.cluster_properties = {}
        self.service_account = ""
        self.jobs, self.batches, self.templates, self.deleted = [], {}, [], []
        self._methods = {
            "ClusterController/GetCluster": (v1.GetClusterRequest, self.cluster),
            "JobController/SubmitJob": (v1.SubmitJobRequest, self.submit),
            "JobController/GetJob": (v1.GetJobRequest, self.job),
            "BatchController/CreateBatch": (v1.CreateBatchRequest, self.create),
            "BatchController/GetBatch": (v1.GetBatchRequest, self.batch),
            "BatchController/DeleteBatch": (v1.DeleteBatchRequest, self.delete),
            "WorkflowTemplateService/InstantiateInlineWorkflowTemplate": (
                v1.InstantiateInlineWorkflowTemplateRequest,
                self.instantiate,
            ),
            "Operations/GetOperation": (operations_pb2.GetOperationRequest, self.operation),
        }

    def service(self, details):
        request, answer = self._methods[details.method.rpartition(".")[2]]

        def handle(message, context):
            self.context = context
            found = answer(message)
            plain = isinstance(found, operations_pb2.Operation | empty_pb2.Empty)
            return found.SerializeToString() if plain else type(found).serialize(found)

        read = getattr(request, "deserialize", None) or request.FromString
        return grpc.unary_unary_rpc_method_handler(handle, request_deserializer=read)

    def state(self):
        if self.now is not None:
            return self.now()
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def refused(self):
        if self.refuses is not None:
            self.context.abort(self.refuses, "no")

    def cluster(self, request):
        self.clusters_seen += 1
        time.sleep(self.delay)
        if self.image is None:
            self.context.abort(grpc.StatusCode.PERMISSION_DENIED, "no")
        software = {"image_version": self.image, "properties": self.cluster_properties}
        account = {"service_account": self.service_account}
        config = {"software_config": software, "gce_cluster_config": account}
        return v1.Cluster({"cluster_name": request.cluster_name, "config": config})

    def submit(self, request):
        self.refused()
        job = v1.Job(request.job)
        self.jobs.append(job)
        if any(name in job for name in JOBS):
            self.does(*parts(job, JOBS))
        return v1.Job({"reference": {"job_id": f"job-{len(self.jobs)}"}})

    def job(self, request):
        state = v1.JobStatus.State[self.state()]
        return v1.Job({"reference": {"job_id": request.job_id}, "status": {"state": state}})

    def create(self, request):
        self.refused()
        name = request.batch_id or f"batch-{len(self.batches)}"
        if name in self.batches:
            self.context.abort(grpc.StatusCode.ALREADY_EXISTS, "it is there")
        self.batches[name] = batch = v1.Batch(request.batch)
        if any(kind in batch for kind in BATCHES):
            self.does(*parts(batch, BATCHES, batch.runtime_config.properties))
        of = v1.BatchOperationMetadata({"batch": f"projects/shop/locations/eu/batches/{name}"})
        return operations_pb2.Operation(name=f"operations/{name}", metadata=packed(of))

    def batch(self, request):
        return v1.Batch({"name": request.name, "state": v1.Batch.State[self.state()]})

    def delete(self, request):
        name = request.name.rpartition("/")[2]
        self.deleted.append(name)
        del self.batches[name]
        return empty_pb2.Empty()

    def instantiate(self, request):
        self.refused()
        self.templates.append(v1.WorkflowTemplate(request.template))
        for job in request.template.jobs:
            if any(name in job for name in JOBS):
                self.does(*parts(job, JOBS))
        return self.operation(SimpleNamespace(name="operations/workflow-1"))

    def operation(self, request):
        operation = operations_pb2.Operation(
            name=request.name, metadata=packed(v1.WorkflowMetadata())
        )
        state = self.state()
        operation.done = state != "RUNNING"
        if state == "ERROR":
            operation.error.code, operation.error.message = 9, "a job failed"
        elif operation.done:
            operation.response.Pack(empty_pb2.Empty())
        return operation


def packed(message):
    found = any_pb2.Any()
    found.Pack(type(message).pb(message))
    return found


@contextmanager
def dataproc(monkeypatch, **arguments):
    """Serve a Dataproc to which Airflow's hook is connected, by the default connection."""
    double = Dataproc(**arguments)
    server = grpc.server(ThreadPoolExecutor(4), handlers=[double])
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"

    def channel(*_, **__):
        return grpc.insecure_channel(address)

    for transport in TRANSPORTS:
        monkeypatch.setattr(transport, "create_channel", channel)
    monkeypatch.setenv("AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT", json.dumps(CONNECTION))
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: time.sleep(0.1))
    monkeypatch.setattr(hooks, "time", clock)  # which waits for ten seconds at once
    server.start()
    try:
        yield double
    finally:
        server.stop(0).wait()
