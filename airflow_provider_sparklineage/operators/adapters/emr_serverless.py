"""EmrServerlessStartJobOperator: EMR Serverless starts the driver of a job run.

A property is a flag or ``--conf`` in ``sparkSubmitParameters``, a text, which wins; or it is in the
classification ``spark-defaults`` of ``configuration_overrides``. Additions go into the latter,
where no value has to be quoted: the text changes only if it has the property already. The
application may have the same classification, and a job run's may take the place of all of it. So a
job run that gets one by additions gets the application's properties, too. The release label, which
tells Spark's version, is the application's. EMR shows all of this to those who may describe the job
run, except secrets that are given as ``EMR.secret@<name>``.

EMR on EKS takes a job run of the same form, which :mod:`.emr_containers` reads and writes by the
functions here.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adapters import (
    TRANSPORT_FLAG,
    airflow_transport,
    looked_up,
)
from airflow_provider_sparklineage.spark.submit import releases
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.injection import REDACTED_BY_DEFAULT
from airflow_provider_sparklineage.spark.submit.submission import (
    Submission,
    arguments,
    as_texts,
    changes,
    read_arguments,
    with_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

DRIVER = "sparkSubmit"
"""The key of a Spark application in ``job_driver``."""
_EXECUTORS = re.compile(r"(?<!\S)(--num-executors[\s=]+)\S+")
_MOST, _LONGEST = 100, 1024
"""The limits of a classification: properties, and characters of a value. A value that is too long
goes into the text, and all that is added if there are too many."""
_PROPERTIES = {"jars": "spark.jars", "py_files": "spark.submit.pyFiles"}


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read the job run that the operator is going to start.

    :raise ListenerError: if it is none of Spark, or has another form than EMR takes
    """
    application = looked_up(
        lambda: operator.hook.conn.get_application(applicationId=operator.application_id)
    )
    described = (application or {}).get("application", {})
    submission = job_run(operator, DRIVER, described.get("runtimeConfiguration"))
    _refuse_replacing(operator, described)
    target = Target(
        transport=airflow_transport(operator, TRANSPORT_FLAG, context),
        is_polled=operator.wait_for_completion,
        service="EMR Serverless",
        spark=releases.spark_of(releases.EMR, described.get("releaseLabel")),
        is_deferred=operator.deferrable and operator.wait_for_completion,
        account=str(operator.execution_role_arn),
    )
    return [submission], target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the properties of the job run, and those flags that it has already."""
    [submission] = submissions
    write_job_run(operator, DRIVER, submission)


def replace_application(operator: Any, application: str, arguments: list[str]) -> None:
    """Let the operator start a job run of another application."""
    replace_entry_point(operator, DRIVER, application, arguments)


def _refuse_replacing(operator: Any, application: Mapping[str, Any]) -> None:
    """Refuse a job run if additions would take the place of what is not known, or show a secret.

    :param application: the description of the job run's application; empty if it is not known
    :raise ListenerError: if so
    """
    if {"configurationOverrides", "jobDriver"} & {*(operator.config or {})}:
        msg = "`config` of the task has a part of the job run that has an argument of its own."
        raise ListenerError(msg, "Use `configuration_overrides` and `job_driver`.")
    overrides = operator.configuration_overrides or {}
    if _spark_defaults(overrides.get("applicationConfiguration")) is not None:
        return
    fix = "Give the job run a classification spark-defaults in `configuration_overrides`."
    if not application:
        problem = "The application cannot be read, whose properties must not be replaced."
        raise ListenerError(problem, f"Allow the worker emr-serverless:GetApplication. Or: {fix}")
    defaults = _spark_defaults(application.get("runtimeConfiguration")) or {}
    if secrets := [name for name in defaults if re.search(REDACTED_BY_DEFAULT, name)]:
        problem = f"With the application's properties, the job run would show {secrets[0]}."
        raise ListenerError(problem, fix)


def job_run(operator: Any, key: str, defaults: Any = None) -> Submission:
    """Read a job run of EMR Serverless or of EMR on EKS.

    :param key: the key of a Spark application in ``job_driver``
    :param defaults: the classifications of the application in which the job runs, if it has some
    :raise ListenerError: if the job run is none of Spark, or has another form than EMR takes
    """
    try:
        driver, overrides = operator.job_driver[key], operator.configuration_overrides or {}
        words = _words(driver)
        flags = read_arguments(words, str(driver["entryPoint"]))
        properties = _spark_defaults(overrides.get("applicationConfiguration"))
        if properties is None:
            properties = _spark_defaults(defaults) or {}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = (
            f"`job_driver` and `configuration_overrides` of the task are no Spark application of "
            f"EMR ({type(error).__name__}: {error})."
        )
        fix = f"A Spark application has its `entryPoint` in job_driver[{key!r}]."
        raise ListenerError(problem, fix) from error
    if read_arguments(words).application:  # not named, because it may be a part of a secret
        problem = "`sparkSubmitParameters` has a word that is no option of spark-submit."
        raise ListenerError(problem, "Quote values with spaces as for a shell.")
    if flags.properties_file:
        problem = "`--properties-file` takes the place of all properties that could be added."
        raise ListenerError(problem, "Give its properties in `configuration_overrides`.")
    return replace(flags, conf={**properties, **flags.conf})


def write_job_run(operator: Any, key: str, submission: Submission) -> None:
    """Replace the operator's job run by that of a submission.

    :param key: the key of a Spark application in ``job_driver``
    """
    driver, overrides = operator.job_driver[key], operator.configuration_overrides or {}
    classifications = overrides.get("applicationConfiguration") or []
    words, before = _words(driver), _spark_defaults(classifications) or {}
    own = read_arguments(words)
    conf = dict(submission.conf)
    for field, name in _PROPERTIES.items():
        if (value := getattr(submission, field)) and not getattr(own, field):
            conf[name] = value
    in_text = {name for name, value in conf.items() if name in own.conf or len(value) > _LONGEST}
    if len(before | conf) - len(in_text) > _MOST:
        in_text |= conf.keys() - before.keys()
    flags = replace(
        own,
        conf={name: value for name, value in conf.items() if name in in_text},
        **{field: getattr(submission, field) for field in _PROPERTIES if getattr(own, field)},
    )
    properties = {name: value for name, value in before.items() if name in conf}
    properties |= {name: value for name, value in conf.items() if name not in in_text}
    if flags != own:
        text = _changed(str(driver.get("sparkSubmitParameters") or ""), own, flags)
        operator.job_driver = {
            **operator.job_driver,
            key: {**driver, "sparkSubmitParameters": text},
        }
    if properties != before:
        configuration = _with_spark_defaults(classifications, properties)
        operator.configuration_overrides = {
            **overrides,
            "applicationConfiguration": configuration,
        }


def replace_entry_point(operator: Any, key: str, application: str, arguments: list[str]) -> None:
    """Replace the application of the operator's job run; a ``--class`` has no effect on Python.

    :param key: the key of a Spark application in ``job_driver``
    """
    own = {"entryPoint": application, "entryPointArguments": arguments}
    driver = {**operator.job_driver[key], **own}
    if text := driver.get("sparkSubmitParameters"):
        driver["sparkSubmitParameters"] = _EXECUTORS.sub(r"\g<1>1", text)
    operator.job_driver = {**operator.job_driver, key: driver}


def _changed(text: str, own: Submission, flags: Submission) -> str:
    """Append changed flags to a text of flags, because the last one of a name wins.

    The text stays as it is, unless a property has to leave it: nobody knows how EMR reads quotes.
    """
    if own.conf.keys() - flags.conf.keys():
        return shlex.join(with_arguments(shlex.split(text), flags))
    return f"{text} {shlex.join(arguments(changes(own, flags)))}".strip()


def _spark_defaults(classifications: Any) -> dict[str, str] | None:
    """Give the properties of ``spark-defaults``; None if it is not among the classifications."""
    for each in classifications or ():
        if each["classification"] == "spark-defaults":
            return as_texts(each.get("properties"))
    return None


def _with_spark_defaults(
    classifications: list[dict[str, Any]], properties: Mapping[str, str]
) -> list[dict[str, Any]]:
    configuration = list(classifications)
    for index, each in enumerate(configuration):
        if each["classification"] == "spark-defaults":
            configuration[index] = {**each, "properties": properties}
            return configuration
    return [*configuration, {"classification": "spark-defaults", "properties": properties}]


def _words(driver: Mapping[str, Any]) -> list[str]:
    return shlex.split(str(driver.get("sparkSubmitParameters") or ""))
