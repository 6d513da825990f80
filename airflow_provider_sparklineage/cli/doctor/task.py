"""Checks of one task: its operator, the service that starts its driver, and what its job would get.

The task's DAG file is parsed, and its fields are rendered for a run that does not take place. The
functions of a run then put listener and observer into the job, and each degradation that the event
of a run would have is a check; nothing is submitted. With ``--spark-submit`` a small application
goes to the task's own service, with the task's own arguments but for the application.
"""

from __future__ import annotations

import os
import re
import uuid
from copy import copy
from datetime import UTC, datetime
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, cast

from airflow.providers.common.compat.sdk import AirflowNotFoundException, BaseHook
from airflow.sdk.bases.operator import BaseOperator, ExecutorSafeguard
from msgspec.structs import replace

from airflow_provider_sparklineage.cli import adoption_survey, commands, explanation
from airflow_provider_sparklineage.cli.doctor import cluster, spark
from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model import exceptions
from airflow_provider_sparklineage.model.producer import DISTRIBUTION
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.operators.adapters import ForTrial, adapter
from airflow_provider_sparklineage.operators.adoption import adopting, kinds
from airflow_provider_sparklineage.operators.attempt import submit
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.checks import Check, failed, passed, warning
from airflow_provider_sparklineage.spark.capture import tools
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
from airflow_provider_sparklineage.spark.submit.submission import as_texts
from airflow_provider_sparklineage.storage import bounded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.operators.adoption.kinds import Kind
    from airflow_provider_sparklineage.operators.attempt.submit import Capture
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.submit.deploy_mode import Target


TASK, PROVIDER, CONNECTION = "task", "provider", "connection of the task"
SERVICE, JOB = "service", "job"

_SHOWN = 3
_ASK_S = 60.0

_ON_WORKER = ("spark_submit", "pyspark", "spark_sql", "spark_jdbc", "spark_pipelines")
"""Adapters whose jobs the worker starts: the checks of the machine are for them."""
_PERMISSIONS = {
    "emr_serverless": "emr-serverless:GetApplication",
    "emr_steps": "elasticmapreduce:DescribeCluster",
    "glue": "glue:GetJob",
    "dataproc": "dataproc.clusters.get",
}
"""The permission by which the worker learns, from the service, which Spark will run."""
_NEEDS_NO_CONNECTION = ("aws_conn_id", "kubernetes_conn_id")
"""Arguments whose hook does without the connection, by what the machine itself has."""
_UNTRIED = {
    "glue": (
        "The script of a Glue job is a part of the job, which is not changed for a trial.",
        "Run the task once, or give the doctor a job that is made for it.",
    ),
    "dataproc_workflow": (
        "A workflow makes a cluster for its jobs, or selects one, and is not run for a trial.",
        "Let a task of DataprocSubmitJobOperator submit to a cluster of the same image, and name "
        "that task.",
    ),
    "databricks": (
        "Nothing can be added to a run of Databricks, so there is nothing to try.",
        "Look at the check `service`.",
    ),
    "spark_pipelines": (
        "The driver of a pipeline is a Spark Connect server, which no trial starts.",
        "Run the task once. The doctor without a task tries the Spark of this machine.",
    ),
}
"""Adapters without a trial: the reason, and what to do instead."""
_LEAST_EXECUTORS = {"dataproc_batch": "2"}
"""Numbers of executors below which a service refuses a job, by adapter."""
_FOR_TRIAL = {
    "deferrable": False,
    "asynchronous": False,
    "wait_for_completion": True,
    "wait_for_termination": True,
    "durable": False,
    "reattach_on_restart": False,
    "delete_on_termination": True,
    "cancel_on_kill": True,
    "request_id": None,  # for a second request with the same id the service gives the first job
    "openlineage_inject_transport_info": False,
}
"""Attributes of operators: a trial is waited for, is a job of its own, and sends nothing."""


class Task(Frozen, frozen=True):
    """A task that was rendered, and is not run.

    :param context: Airflow's context of a run that does not take place; it has the operator
    :param adoption: the check whether the task has lineage
    """

    context: Context
    kind: Kind
    adoption: Check

    @property
    def operator(self) -> Any:
        """The operator, with its fields rendered."""
        return self.context["task"]

    @property
    def adapter(self) -> str:
        """The name of the operator's adapter."""
        return str(self.operator.lineage_adapter)

    @property
    def is_on_worker(self) -> bool:
        """Whether the worker starts the driver, and no service."""
        return self.adapter in _ON_WORKER

    @property
    def untried(self) -> Check | None:
        """The check that says why there is no trial; None if there is one."""
        reason = _UNTRIED.get(self.adapter)
        return None if reason is None else warning(spark.TRIAL, *reason)

    @property
    def spark_conn_id(self) -> str | None:
        """The Spark connection of the task; None if a service starts its driver."""
        if not self.is_on_worker:
            return None
        known = vars(self.operator)
        # That of a JDBC task comes first: it ignores the `conn_id` that it inherits.
        names = ("_spark_conn_id", "_conn_id", "conn_id")
        return str(next(filter(None, map(known.get, names)), "spark_default"))

    @property
    def conf(self) -> dict[str, str]:
        """The properties of the task's job."""
        return as_texts(self.operator.lineage_properties)


def find(dag_id: str, task_id: str) -> Task:
    """Find a task of a DAG file, and render it.

    :raise UnusableInputError: as by :func:`of_dag`, or if there is no such DAG
    """
    parsed = adoption_survey.parse_dags(None)
    dag = next((dag for dag in parsed.dags if dag.dag_id == dag_id), None)
    if dag is None:
        why = " ".join(problem.message for problem in parsed.problems[:_SHOWN])
        commands.refuse(f"No DAG file that can be imported has a DAG {dag_id}.", why)
    return of_dag(dag, task_id)


def of_dag(dag: Any, task_id: str) -> Task:
    """Give a task of a DAG, rendered.

    A task that is not adopted is adopted here, so that the other checks know what it would get.

    :raise UnusableInputError: if there is no such task, it starts no Spark, or cannot be rendered
    """
    task = explanation.task_of(dag, task_id)
    cls, kind = kinds.kind_of(task)
    name = f"{dag.dag_id}.{task_id} is a {adopting.original(cls).__name__}"
    if kind is None:
        commands.refuse(f"{name}, which starts no Spark that can have lineage.")
    adoption = passed(TASK, f"{name}, and has lineage.")
    if not adopting.has_lineage(cls):
        adoption = _left_alone(task, name, kind)
        try:
            adopting.adopt(task)
        except Exception as error:  # of a user's class, which cannot be extended
            commands.refuse(f"{name}, which cannot be adopted ({kinds.described(error)}).")
    context = explanation.rendered(dag, task, explanation.DryRun(datetime.now(UTC)))
    _complete(context)
    if not context["task"].lineage_try.is_on:
        fix = "Leave out lineage=False, and set [sparklineage] disabled to False."
        adoption = warning(TASK, f"{name}, whose lineage is switched off.", fix)
    return Task(cast("Context", context), kind, adoption)


def _left_alone(task: Any, name: str, kind: Kind) -> Check:
    source = sources.configuration("adopt", "declarations")
    adopt, declared = (resolution.value(each, source) for each in ("adopt", "declarations"))
    reason = adopting.decide(task, adoption_survey.Rules.of(adopt, declared).adoption).reason
    return warning(
        TASK,
        f"{name}, and runs without lineage ({reason.removeprefix('left alone: ')}).",
        f"Use {kind.ours.rpartition('.')[2]} in the DAG, or adopt the task: [sparklineage] adopt.",
    )


def _complete(context: dict[str, Any]) -> None:
    """Add to a context what operators use while they run; what they store is forgotten."""
    ti = context["ti"]
    vars(ti).update(
        task=context["task"],
        stats_tags={},
        xcom_push=lambda *_, **__: None,
        xcom_pull=lambda *_, **__: None,
        get_template_context=lambda: context,
    )
    vars(ti.dag_run).update(clear_number=0)
    context["ti"].run_id = context["run_id"] = f"doctor__{ti.dag_run.run_after.isoformat()}"


# --- what the job would get -----------------------------------------------------------------------


def check(task: Task) -> tuple[list[Check], spark.Machine | None]:
    """Check a task whose driver a service starts.

    :return: the checks, and the service's Spark for a trial; None for the Spark if the job would
        get no listener
    """
    checks = [_provider(task), *_connections(task)]
    try:
        resolved = replace(task.operator.lineage_try.settings(), strict=False)
        target = bounded.within(_ASK_S, partial(_target, task), cluster.THREAD)
    except exceptions.SettingsError:  # a check of the settings says so
        return checks, None
    except exceptions.SparkLineageError as error:
        return [*checks, failed(SERVICE, error)], None
    except Exception as error:  # of the provider, its connection, or the service
        text = f"The task's job cannot be read ({bounded.reason(error, _ASK_S)})."
        return [*checks, failed(SERVICE, text, "Check the connection, and its permissions.")], None
    versions = target.spark or resolved.spark_version
    checks.append(_service(task, target, versions))
    if versions is None:
        return checks, None
    machine = spark.Machine(SparkDistribution(None, *versions), "", {}, ())
    if not target.listener and spark.is_fetched_later(resolved, machine.spark, os.environ):
        return [*checks, spark.FETCHED_LATER], machine
    try:
        more, is_heard = _job(task, resolved)
    except exceptions.SparkLineageError as error:
        return [*checks, failed(JOB, error)], None
    return [*checks, *more], machine if is_heard else None


def _provider(task: Task) -> Check:
    """Check the version of the provider against that which this package's extra asks for."""
    for required in metadata.requires(DISTRIBUTION) or ():
        found = re.match(r"(apache-airflow-providers-([\w-]+))>=([\d.]+)(?:.*\"(\w+)\")?", required)
        if found is None:
            continue
        name, short, least, extra = found.groups()
        if task.kind.stock.startswith(f"airflow.providers.{short.replace('-', '.')}."):
            version = metadata.version(name)
            if _numbers(version) < _numbers(least):
                fix = f"pip install '{DISTRIBUTION}[{extra}]'" if extra else f"Update {name}."
                return warning(PROVIDER, f"{name} {version} is older than {least}.", fix)
            return passed(PROVIDER, f"{name} {version}.")
    return passed(PROVIDER, f"{task.kind.stock} is there.")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


def _connections(task: Task) -> Iterator[Check]:
    """Check that the connections are there which the task names for its service."""
    for name, conn_id in vars(task.operator).items():
        argument = name.lstrip("_")
        if not argument.endswith("conn_id") or argument == "lineage_conn_id" or not conn_id:
            continue
        try:
            BaseHook.get_connection(str(conn_id))
            yield passed(CONNECTION, f"{argument} is {conn_id}.")
        except AirflowNotFoundException:
            if argument in _NEEDS_NO_CONNECTION:
                text = f"There is no connection {conn_id}: the machine's own credentials are used."
                yield passed(CONNECTION, text)
            else:
                fix = f"Add it: airflow connections add {conn_id}"
                yield failed(CONNECTION, f"There is no connection {conn_id} ({argument}).", fix)
        except Exception as error:  # any error of the configured secrets backend
            text = f"Connection {conn_id} cannot be read ({type(error).__name__})."
            yield failed(CONNECTION, text, "Look at [secrets] backend, and at AIRFLOW_CONN_….")


def _target(task: Task) -> Target:
    # A copy, because reading switches off what Airflow itself would add.
    return adapter(task.adapter).read(copy(task.operator), task.context)[1]


def _service(task: Task, target: Target, versions: tuple[str, str] | None) -> Check:
    permission = _PERMISSIONS.get(task.adapter, "")
    unknown = f"{target.service} does not say which Spark it runs"
    if permission:
        unknown += f" to a worker without {permission}, or its release is not known here"
    if versions is None:
        fix = (
            "Set [sparklineage] spark_version, for example to 3.5.6-scala2.12, in the "
            "configuration or in the connection that the task names as lineage_conn_id."
        )
        if permission:
            fix = f"Allow the worker {permission}. Or: {fix[0].lower()}{fix[1:]}"
        return failed(SERVICE, f"{unknown}, so the job would run without lineage.", fix)
    text = f"{target.service} starts the driver, with Spark {versions[0]} on Scala {versions[1]}"
    source = "by its release" if target.spark else f"by [sparklineage] spark_version: {unknown}"
    return passed(SERVICE, f"{text} ({source}).")


def _job(task: Task, settings: Settings) -> tuple[list[Check], bool]:
    """Put the listener into the task's job, as a run would, and check what is missing then.

    :return: the checks, and whether the job would be listened to
    :raise CaptureError: if the capture bundle cannot be made
    """
    operator = copy(task.operator)
    bundle = spark.new_bundle(settings)
    capture = submit.Capture(settings, bundle, submit.OwnFiles(bundle.path))
    try:
        capture = submit.injected(capture, partial(_inject, operator, task.context), None)
    finally:
        capture.own_files.remove()
        bundle.remove()
    manifest = capture.bundle.manifest
    make = warning if manifest.injected else failed
    checks = [make(JOB, loss.message or "", loss.code.remedy) for loss in manifest.degradations]
    if not manifest.injected:
        return checks, False
    place = f"{settings.capture_location.url}/{tools.FOLDER}"
    known = "drivers like this one have read them"
    if not manifest.reached_tools:
        known = "whether drivers read them, --spark-submit tries"
    text = f"The job gets what it needs for its lineage from {place}; {known}."
    return [passed(JOB, text), *checks], True


def _inject(operator: Any, context: Context, capture: Capture) -> Capture:
    changed: Capture = operator._inject_lineage(capture, context)  # noqa: SLF001  (the task does the same)
    return changed


# --- the trial ------------------------------------------------------------------------------------


def run_trial(task: Task, machine: spark.Machine) -> Check:
    """Submit the trial's application as the task submits its own, and judge its lineage.

    :param machine: the service's Spark
    :raise SparkLineageError: if the bundle cannot be made, or the application not be submitted
    """
    settings = replace(task.operator.lineage_try.settings(), strict=False)
    return cluster.tried(partial(_submit, task), machine, settings)


def _submit(task: Task, settings: Settings, bundle: CaptureBundle, in_spark: str) -> tools.Marks:
    """Submit the application by the task's operator, which nobody else has, and wait for its end.

    :raise RemoteDriverError: if the application gets no listener
    """
    operator, of_service = copy(task.operator), cast("ForTrial", adapter(task.adapter))
    context = cast("Context", {**task.context, "task": operator})
    application = f"{in_spark}/{cluster.APPLICATION}"
    of_service.replace_application(operator, application, [f"{in_spark}/tables"])
    for name, value in {**_FOR_TRIAL, "client_request_token": str(uuid.uuid4())}.items():
        if name in vars(operator):
            setattr(operator, name, value)
    submissions, _ = of_service.read(operator, context)
    executors = _LEAST_EXECUTORS.get(task.adapter, "1")
    small = [replace(each, conf=cluster.small(each.conf, executors)) for each in submissions]
    of_service.write(operator, small)
    capture = submit.Capture(settings, bundle, submit.OwnFiles(bundle.path))
    try:
        manifest = _inject(operator, context, capture).bundle.manifest
        if not manifest.remote:
            problem = " ".join(loss.message or "" for loss in manifest.degradations)
            raise exceptions.RemoteDriverError(problem)
        _execute(operator, task.kind, context)
    finally:
        capture.own_files.remove()
    return tools.Marks(manifest.reached_tools, manifest.unreached_tools)


def _execute(operator: Any, kind: Kind, context: Context) -> None:
    """Execute the stock operator, and neither lineage's ``execute`` nor that of a user's class.

    :raise OutOfTimeError: if it takes too long; the application is killed then, if it can be
    """
    # The last one of this path: a class that adoption has made has the path of the original.
    stock: Any = next(
        cls for cls in reversed(type(operator).__mro__) if kinds.path(cls) == kind.stock
    )
    ExecutorSafeguard.tracker.set(operator)
    can_kill = stock.on_kill is not BaseOperator.on_kill
    kill = operator.on_kill if can_kill else None
    cluster.wait_for_end(lambda: stock.execute(operator, context), kill)
