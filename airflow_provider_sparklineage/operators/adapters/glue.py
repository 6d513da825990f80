"""GlueJobOperator: AWS Glue runs a job, and starts its driver.

The properties of a run are in one of its arguments, ``--conf``: a text of pairs with `` --conf ``
between them. An argument of a run takes the place of the job's default argument of that name, so
the additions are to the job's own value if the run has none. The Spark of Glue 5 brings an
OpenLineage listener, and a second one could end the SparkContext: such a job gets configuration and
the observer, but no jar. A job may replace Glue's listener by ``--extra-jars`` and
``--user-jars-first``. So Glue's version has to be known. All arguments are shown to those who may
read the run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adapters import TRANSPORT_FLAG, airflow_transport
from airflow_provider_sparklineage.spark.submit import releases
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.listener import identity_of_name
from airflow_provider_sparklineage.spark.submit.submission import Submission

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

CONF = "--conf"
_FILES = {"--extra-jars": "jars", "--extra-py-files": "py_files"}
_NO_VERSION = "of an unknown version"
_BRINGS_LISTENER = {"0": False, "1": False, "2": False, "3": False, "4": False, "5": True}
"""Whether the Spark of a major version of Glue brings a listener."""


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read the run that the operator is going to start, and its job.

    :raise ListenerError: if the job runs no Spark, does not take the arguments, or has another form
        than Glue takes; or if it is not known whether Glue's Spark brings a listener
    """
    job = _job(operator)
    command, version = job.get("Command") or {}, str(job.get("GlueVersion") or _NO_VERSION)
    if command.get("Name", "glueetl") not in ("glueetl", "gluestreaming"):
        msg = f"A job of the kind {command['Name']} starts no Spark."
        raise ListenerError(msg)
    if fixed := {CONF, *_FILES} & {*(job.get("NonOverridableArguments") or {})}:
        msg = f"The job sets {', '.join(sorted(fixed))} for all runs, which cannot be changed."
        raise ListenerError(msg)
    arguments = {**(job.get("DefaultArguments") or {}), **operator.script_args}
    submission = Submission(
        conf=properties(arguments),
        jars=arguments.get("--extra-jars"),
        py_files=arguments.get("--extra-py-files"),
        application=str(command.get("ScriptLocation") or operator.script_location or ""),
    )
    listener = _listener(version, submission, arguments)
    target = Target(
        transport=airflow_transport(operator, TRANSPORT_FLAG, context),
        is_polled=operator.deferrable or operator.wait_for_completion,
        service="AWS Glue",
        spark=releases.spark_of(releases.GLUE, version),
        listener=listener,
        is_deferred=operator.deferrable,
        account=str(job.get("Role") or operator.iam_role_arn or operator.iam_role_name),
    )
    return [submission], target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the arguments of the run for properties, jars and Python files."""
    [submission] = submissions
    conf = f" {CONF} ".join(f"{key}={value}" for key, value in submission.conf.items())
    files = {name: getattr(submission, field) for name, field in _FILES.items()}
    added = {name: value for name, value in {CONF: conf, **files}.items() if value}
    operator.script_args = {**operator.script_args, **added}


def properties(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Give the properties among the arguments of a run or of a job."""
    text = str(arguments.get(CONF) or "").strip()
    pairs = (pair.partition("=") for pair in re.split(rf"\s+{CONF}\s+", text) if pair)
    return {key.strip(): value for key, _, value in pairs}


def _job(operator: Any) -> dict[str, Any]:
    """Give the definition of the job: the job's own, or that by which the operator will make it.

    :raise ListenerError: if the worker may not read it, or the arguments have another form
    """
    new = operator.create_job_kwargs or {}
    if not (isinstance(new, dict) and isinstance(operator.script_args, dict)):
        msg = "`script_args` or `create_job_kwargs` of the task is no mapping."
        raise ListenerError(msg)
    if operator.update_config:
        return new
    glue = operator.hook.conn
    try:
        known: dict[str, Any] = glue.get_job(JobName=operator.job_name)["Job"]
    except glue.exceptions.EntityNotFoundException:
        return new
    except Exception as error:
        problem = f"The job cannot be read, whose arguments must not be replaced ({error})."
        raise ListenerError(problem, "Allow the worker glue:GetJob.") from error
    return known


def _listener(version: str, submission: Submission, arguments: Mapping[str, Any]) -> str:
    """Give the name of the listener that Glue's Spark brings; empty if it brings none.

    It is empty, too, if the job replaces that listener by its own.

    :raise ListenerError: if it is not known whether this version of Glue brings a listener
    """
    jars = submission.listed_jars()
    has_own = any(identity_of_name(jar.rpartition("/")[2]) for jar in jars)
    if has_own and str(arguments.get("--user-jars-first")).lower() == "true":
        return ""
    brings = _BRINGS_LISTENER.get(version.partition(".")[0])
    if brings is None:
        problem = f"Whether Glue {version} brings a listener is not known."
        fix = (
            "Set GlueVersion in `create_job_kwargs` or in the job. Or give the listener of the "
            "job's Spark in --extra-jars, and --user-jars-first: 'true'."
        )
        raise ListenerError(problem, fix)
    return f"the listener of Glue {version}" if brings else ""
