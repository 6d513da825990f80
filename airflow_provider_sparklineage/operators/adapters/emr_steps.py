"""EmrAddStepsOperator: a cluster of Amazon EMR runs steps, of which some are spark-submit.

A step that starts Spark is one of ``command-runner.jar`` whose ``Args`` begin with spark-submit;
all others stay as they are, and so does a spark-submit inside ``bash -c``, which a shell reads. A
task may have several: their drivers share the application run id of the try. ``Args`` are shown to
all who may describe the step, and their length is limited. Properties that the cluster was
configured with are below those of the step, and the cluster's release label tells the version of
Spark.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adapters import looked_up
from airflow_provider_sparklineage.spark.submit import releases
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.submission import (
    Submission,
    read_arguments,
    with_application,
    with_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

_WAITS = "spark.yarn.submit.waitAppCompletion"
_LONGEST = 10_240
"""The number of characters that EMR takes in all texts of a step together."""


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:  # noqa: ARG001  (EMR takes no transport of Airflow's)
    """Read the steps that start Spark.

    :raise ListenerError: if there is none, if the steps have another form than EMR takes, or if
        a step names a properties file, which cannot be read here
    """
    submissions = spark_steps(operator)
    if not submissions:
        problem = "No step of the task is a spark-submit of command-runner.jar."
        fix = "Give its `Args` as a list whose first entry is spark-submit."
        raise ListenerError(problem, fix)
    if any(submission.properties_file for submission in submissions):
        problem = "What `--properties-file` of a step has is not known, and must not be replaced."
        raise ListenerError(problem, "Give its properties by `--conf`.")
    cluster = looked_up(lambda: _cluster(operator)) or {}
    defaults = _spark_defaults(cluster)
    submissions = [replace(each, file_properties=defaults) for each in submissions]
    ends_with_step = all(each.value(_WAITS) != "false" for each in submissions)
    target = Target(
        is_polled=(operator.deferrable or operator.wait_for_completion) and ends_with_step,
        service="Amazon EMR",
        spark=releases.spark_of(releases.EMR, cluster.get("ReleaseLabel")),
        is_deferred=operator.deferrable,
        account=(
            f"{operator.job_flow_id or operator.job_flow_name} {operator.execution_role_arn or ''}"
        ),
    )
    return submissions, target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the arguments of the steps that start Spark.

    :raise ListenerError: if EMR would not take them, because they are too long
    """
    steps, left = [], list(submissions)
    for step in _steps(operator):
        if (words := _words(step)) is None:
            steps.append(step)
            continue
        command = step["HadoopJarStep"]
        changed = [command["Args"][0], *with_arguments(words, left.pop(0))]
        if sum(len(word) + 1 for word in (command["Jar"], *changed)) > _LONGEST:
            msg = f"With the listener, a step would have more than {_LONGEST:,} characters."
            raise ListenerError(msg, "Put parts of its arguments into files.")
        steps.append({**step, "HadoopJarStep": {**command, "Args": changed}})
    operator.steps = steps


def replace_application(operator: Any, application: str, arguments: list[str]) -> None:
    """Let the operator add one step, with the flags of the task's first spark-submit."""
    step = next(step for step in _steps(operator) if _words(step) is not None)
    command = step["HadoopJarStep"]
    words = with_application(_words(step) or (), application, arguments)
    operator.steps = [
        {
            **step,
            # A cluster that ends with its first failed step has to stay.
            "ActionOnFailure": "CONTINUE",
            "HadoopJarStep": {**command, "Args": [command["Args"][0], *words]},
        }
    ]


def spark_steps(operator: Any) -> list[Submission]:
    """Give the submissions of the steps that start Spark.

    :raise ListenerError: if the steps have another form than EMR takes
    """
    try:
        found = (_words(step) for step in _steps(operator))
        return [read_arguments(words) for words in found if words is not None]
    except (AttributeError, SyntaxError, TypeError, ValueError) as error:
        msg = f"`steps` of the task are no steps of EMR ({type(error).__name__}: {error})."
        raise ListenerError(msg) from error


def _steps(operator: Any) -> Any:
    steps = operator.steps
    return ast.literal_eval(steps) if isinstance(steps, str) else steps


def _words(step: Mapping[str, Any]) -> list[str] | None:
    """Give the arguments of a step's spark-submit; None if the step does not start Spark."""
    command = step.get("HadoopJarStep") or {}
    arguments = command.get("Args") or []
    is_runner = str(command.get("Jar")).rpartition("/")[2] == "command-runner.jar"
    if not (is_runner and arguments and str(arguments[0]).rpartition("/")[2] == "spark-submit"):
        return None
    return [str(argument) for argument in arguments[1:]]


def _cluster(operator: Any) -> dict[str, Any]:
    hook = operator.hook
    cluster = operator.job_flow_id or hook.get_cluster_id_by_name(
        str(operator.job_flow_name), operator.cluster_states
    )
    described: dict[str, Any] = hook.conn.describe_cluster(ClusterId=cluster)["Cluster"]
    return described


def _spark_defaults(cluster: Mapping[str, Any]) -> dict[str, str]:
    properties: dict[str, str] = {}
    for each in cluster.get("Configurations") or ():
        if each.get("Classification") == "spark-defaults":
            properties |= each.get("Properties") or {}
    return properties
