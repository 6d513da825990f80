"""From a task's submission to the one with the listener in it: what is read, checked and added."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError, ListenerError
from airflow_provider_sparklineage.spark.submit import (
    class_path,
    deploy_mode,
    distribution,
    fetching,
    listener_selection,
    observer_zip,
)
from airflow_provider_sparklineage.spark.submit.injection import (
    Injection,
    Observation,
    can_observe,
    inject,
    refuse_connect,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
    from airflow_provider_sparklineage.spark.submit.submission import Submission

log = logger(__name__)


class SubmitTarget(NamedTuple):
    """Where the submission goes, as the operator's hook resolves it from the Spark connection.

    :param transport: properties of Airflow's own transport, where the task is to give it to Spark
    """

    spark_binary: str
    master: str
    deploy_mode: str | None
    properties_file: str | None
    transport: Mapping[str, str] = MappingProxyType({})

    @property
    def environment_is_private(self) -> bool:
        """Whether ``env_vars`` stay such; on YARN and Kubernetes the hook makes conf of them."""
        return "yarn" not in self.master and "k8s" not in self.master


class ResolvedSubmission(NamedTuple):
    """A submission with the Spark and the properties that it meets, before anything is added."""

    submission: Submission
    spark: SparkDistribution
    env: Mapping[str, str]


class Injected(NamedTuple):
    """A submission with the listener in it, and what could not be added."""

    submission: Submission
    degradations: tuple[tuple[DegradationCode, str], ...]


def resolved(
    submission: Submission, target: SubmitTarget, settings: Settings
) -> ResolvedSubmission:
    """Find the Spark that will run, and the properties that a submission has from a file.

    :raise ListenerError: if there is no Spark, or its properties file cannot be found
    """
    env = distribution.environment(submission.env_vars)
    spark = listener_selection.spark_of(
        target.spark_binary, env, settings.spark_version, in_task=True
    )
    if target.properties_file:
        properties = distribution.read_properties(Path(target.properties_file))
    else:
        properties = spark.defaults(env)
    found = replace(submission, file_properties=properties)
    if not any(key.startswith("spark.openlineage.transport") for key in found.keys()):  # noqa: SIM118  (method)
        found = found.with_conf(target.transport)
    return ResolvedSubmission(found, spark, env)


def injected(
    before: ResolvedSubmission,
    target: SubmitTarget,
    bundle: CaptureBundle,
    settings: Settings,
    defaults: Mapping[str, str],
) -> Injected:
    """Add the listener, what extends it, and the observer, as far as they can be.

    :param defaults: of the listener's properties
    :raise RemoteDriverError: if nothing can be collected where the driver will run
    :raise ListenerError: if the job cannot carry the listener; names the fix
    """
    submission, spark, env = before
    host = deploy_mode.driver_host(submission, target.master, target.deploy_mode, env)
    deploy_mode.require_reachable(host, shared=settings.capture_location_shared)
    refuse_connect(submission, target.master, env)
    cache = fetching.cache_folder(env)
    found = class_path.listeners(submission, spark)
    own = class_path.only_listener(found, submission, spark, cache)
    jars: list[str] = []
    if own is None:
        jars.append(str(_jar(before, target, settings).absolute()))
    extensions, errors = class_path.extensions(settings.listener_extensions, own, cache)
    jars += extensions
    missing = [(DegradationCode.EXTENSION_UNAVAILABLE, str(error)) for error in errors]
    if errors and settings.strict:
        raise ListenerError(" ".join(map(str, errors)))
    observation, problem = _observation(submission, bundle, settings)
    if problem is not None:
        missing.append((DegradationCode.OBSERVER_UNAVAILABLE, problem))
    if host.is_remote:
        share = settings.capture_location / "jars"
        jars = [deploy_mode.reachable(host, jar, share, cache) for jar in jars]
    submit_opts = None
    if target.environment_is_private and not host.is_remote:
        submit_opts = env.get("SPARK_SUBMIT_OPTS", "")
    injection = Injection(
        jars=tuple(jars),
        events_path=bundle.events_path or Path(os.devnull),
        application_run_id=bundle.manifest.application_run_id,
        defaults=defaults,
        existing_transport=settings.existing_transport,
        submit_opts=submit_opts,
        observation=observation,
    )
    return Injected(inject(submission, injection), tuple(missing))


def _jar(before: ResolvedSubmission, target: SubmitTarget, settings: Settings) -> Path:
    """Find the listener jar, or fetch it if the task may."""
    if settings.fetch_listener and settings.listener_jar is None:
        listener_selection.fetch_for(
            before.spark, target.spark_binary, before.env, progress=log.info, in_task=True
        )
    return listener_selection.jar_for(before.spark, settings.listener_jar, before.env)


def _observation(
    submission: Submission, bundle: CaptureBundle, settings: Settings
) -> tuple[Observation | None, str | None]:
    """Put the observer into the bundle; where that is not possible, lineage goes on without."""
    folder, path = bundle.path, bundle.observations_path
    if not settings.observe or folder is None or path is None:
        return None, None
    if not can_observe(submission):
        return None, (
            "The application is no Python file, so the partitions that it reads and writes "
            "could not be observed."
        )
    try:
        observer = observer_zip.write(folder)
    except CaptureError as error:
        return None, str(error)
    return Observation(observer, path, bundle.manifest.application_run_id), None
