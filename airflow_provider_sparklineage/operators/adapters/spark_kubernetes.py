"""SparkKubernetesOperator: the Spark operator of Kubernetes starts a driver for a SparkApplication.

All of a submission is in ``spec`` of the SparkApplication, which the task has in
``application_file``, as a path or as YAML, or in ``template_spec``. Airflow's operator reads either
of them each time that it asks for ``template_body``, in which the SparkApplication is below
``spark``, and a file comes before ``template_spec``. So the changed body becomes ``template_spec``,
and there is no file any more. The arguments ``image`` and ``code_path`` replace what ``spec`` has.

The Spark operator calls spark-submit with the properties and lists of ``spec``. ``sparkVersion``
names Spark alone; the tag of an image may name its Scala. Everyone who may read SparkApplications
sees the properties, but not the variables that ``spec.driver`` takes from Secrets.
"""

from __future__ import annotations

import re
from contextlib import suppress
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.adapters import (
    configured_transport,
    text_of,
    with_entries,
    with_properties,
)
from airflow_provider_sparklineage.spark.submit import distribution
from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
from airflow_provider_sparklineage.spark.submit.injection import TRANSPORT_VARIABLE
from airflow_provider_sparklineage.spark.submit.submission import Submission, as_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow.providers.common.compat.sdk import Context

_KIND = ("SparkApplication", "sparkoperator.k8s.io")
_SCALA = re.compile(r"scala[-_]?(\d\.\d+)", re.IGNORECASE)


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:
    """Read the SparkApplication that the operator is going to create.

    :raise ListenerError: if the body is no SparkApplication, or its driver gets no pod of its own
    """
    body = operator.template_body
    spec = spec_of(body)
    deps, driver = spec.get("deps") or {}, spec.get("driver") or {}
    application = operator.code_path or spec.get("mainApplicationFile")
    submission = Submission(
        conf=as_texts(spec.get("sparkConf")),
        jars=text_of(deps.get("jars")),
        packages=text_of(deps.get("packages")),
        py_files=text_of(deps.get("pyFiles")),
        application=str(application or "") if spec.get("type") == "Python" else "",
        env_vars=dict.fromkeys(_transport_variables(body, driver), ""),
    )
    account = (operator.kubernetes_conn_id, operator.namespace, driver.get("serviceAccount"))
    target = Target(
        transport=configured_transport(context),
        is_polled=True,
        service="the Spark operator of Kubernetes",
        spark=_spark(spec, driver, operator.image),
        is_deferred=operator.deferrable,
        account=" ".join(map(str, account)),
    )
    return [submission], target


def write(operator: Any, submissions: list[Submission]) -> None:
    """Set the properties, jars and Python files; a property that was not changed keeps its type.

    :raise ListenerError: if the operator does not take them from its arguments
    """
    [submission], body = submissions, operator.template_body
    application, spec = body["spark"], spec_of(body)
    deps, properties = spec.get("deps") or {}, with_properties(spec.get("sparkConf"), submission)
    deps = _with(deps, "jars", with_entries(deps.get("jars"), submission.jars))
    deps = _with(deps, "pyFiles", with_entries(deps.get("pyFiles"), submission.py_files))
    spec = _with(_with(spec, "sparkConf", properties), "deps", deps)
    _write_body(operator, {**body, "spark": {**application, "spec": spec}})


def replace_application(operator: Any, application: str, arguments: list[str]) -> None:
    """Let the operator create a SparkApplication of another application, which is tried once.

    :raise ListenerError: if the operator does not take it from its arguments
    """
    body = operator.template_body
    own = {"type": "Python", "mainApplicationFile": application, "arguments": arguments}
    spec = {**spec_of(body), **own, "restartPolicy": {"type": "Never"}}
    spec["executor"] = {**(spec.get("executor") or {}), "instances": 1}
    spec.pop("mainClass", None)
    operator.code_path, operator.random_name_suffix = None, True
    _write_body(operator, {**body, "spark": {**body["spark"], "spec": spec}})


def _write_body(operator: Any, wanted: Mapping[str, Any]) -> None:
    """Let the operator create a SparkApplication of a body.

    :raise ListenerError: if the operator does not take it from its arguments
    """
    own = operator.template_spec, operator.application_file
    operator.template_spec, operator.application_file = deepcopy(wanted), None
    if operator.template_body != wanted:
        operator.template_spec, operator.application_file = own
        msg = "The task's own code makes the SparkApplication, so nothing can be added to it."
        raise ListenerError(msg)


def _with(mapping: Mapping[str, Any], key: str, value: Any) -> Mapping[str, Any]:
    """Set an entry, unless it was not there and remains empty."""
    return {**mapping, key: value} if value or mapping.get(key) else mapping


def spec_of(body: Any) -> Mapping[str, Any]:
    """Give ``spec`` of the SparkApplication in a body.

    :raise ListenerError: if there is none, or its driver gets no pod of its own
    """
    application = _mapping(body).get("spark")
    spec = _mapping(application).get("spec")
    kind = (_mapping(application).get("kind"), _group(_mapping(application)))
    parts = [_mapping(spec).get(name) or {} for name in ("sparkConf", "deps", "driver")]
    lists = [_mapping(parts[1]).get(name) or [] for name in ("jars", "packages", "pyFiles")]
    is_known = kind == _KIND and all(isinstance(part, dict) for part in (spec, *parts))
    if not (is_known and all(isinstance(each, list) for each in lists)):
        msg = (
            "The task has no SparkApplication of sparkoperator.k8s.io whose `spec.sparkConf`, "
            "`spec.deps` and `spec.driver` are mappings, and the entries of `spec.deps` lists."
        )
        raise ListenerError(msg)
    known: Mapping[str, Any] = _mapping(spec)
    if (mode := known.get("mode") or "cluster") != "cluster":
        msg = f"The SparkApplication has `mode: {mode}`, so its driver gets no pod of its own."
        raise ListenerError(msg, "Use `mode: cluster`.")
    return known


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _group(application: Mapping[str, Any]) -> str:
    """Give the API group, which Airflow's operator takes from one of two fields."""
    version = str(application.get("apiVersion") or application.get("apiGroup") or "")
    return version.partition("/")[0]


def _spark(
    spec: Mapping[str, Any], driver: Mapping[str, Any], image: str | None
) -> tuple[str, str] | None:
    """Give the versions of Spark and of Scala; None if ``sparkVersion`` is no version."""
    version = str(spec.get("sparkVersion") or "")
    scala = _SCALA.search(f"{version} {driver.get('image') or image or spec.get('image')}")
    with suppress(ValueError):
        spark, usual = distribution.declared(version)
        return spark, scala[1] if scala else usual
    return None


def _transport_variables(body: Mapping[str, Any], driver: Mapping[str, Any]) -> Iterator[str]:
    """Yield the variables of the driver's environment that give the listener a transport.

    Those of a whole Secret or ConfigMap are not known.
    """
    more = _mapping(body.get("kubernetes")).get("env_vars")
    variables = (*(driver.get("env") or ()), *(more or ()))
    names = [_mapping(one).get("name") or getattr(one, "name", one) for one in variables]
    for name in (*names, *(driver.get("envVars") or ()), *(driver.get("envSecretKeyRefs") or ())):
        if str(name).startswith(TRANSPORT_VARIABLE):
            yield str(name)
