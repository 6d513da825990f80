"""From the configuration of a SparkContext in this process to the one with the listener in it.

As :mod:`.injection` for a submission, but that the driver's JVM is there: it is asked what a
submission would have to be searched for, and gets its jars one by one.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.capture.bundle import EVENTS
from airflow_provider_sparklineage.spark.submit import fetching, listener_selection, submitted_files
from airflow_provider_sparklineage.spark.submit.injection import (
    DELTA_TAG,
    TRANSPORT,
    ExistingTransport,
    Injection,
    inject,
    injected_names,
    takes_tag,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from airflow_provider_sparklineage.operators.try_capture import TryCapture
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
    from airflow_provider_sparklineage.spark.submit.listener_selection import JobListener
    from airflow_provider_sparklineage.spark.submit.submission import Submission

log = logger(__name__)

_THREADS = f"{TRANSPORT}withThreadPool"


class Jars(NamedTuple):
    """Jars that the JVM is to have, and why one that extends the listener cannot be among them."""

    paths: tuple[str, ...]
    errors: tuple[ListenerError, ...]


def jars(
    submission: Submission,
    spark: SparkDistribution,
    found: tuple[JobListener, ...],
    settings: Settings,
) -> Jars:
    """Choose the jars to add: the listener, unless the JVM has one, and what extends it.

    :param submission: all that the SparkContext is configured with
    :param found: listeners that the JVM has
    :raise ListenerError: if there is no listener that fits; names the fix
    """
    env = {**os.environ, **({"SPARK_HOME": str(spark.home)} if spark.home else {})}
    cache = fetching.cache_folder(env)
    own = listener_selection.only_listener(found, submission, spark, cache)
    chosen = [] if own is not None else [_file(_listener(spark, settings, env))]
    extensions, errors = listener_selection.checked_extensions(
        settings.listener_extensions, own, cache
    )
    for name in extensions:
        try:
            chosen.append(_file(name))
        except ListenerError as error:
            errors = (*errors, error)
    if errors and settings.strict:
        raise ListenerError(" ".join(map(str, errors)))
    return Jars(tuple(chosen), errors)


def _listener(spark: SparkDistribution, settings: Settings, env: Mapping[str, str]) -> str:
    if settings.fetch_listener and settings.listener_jar is None:
        listener_selection.fetch_for(spark, "spark-submit", env, progress=log.info, in_task=True)
    return listener_selection.jar_for(spark, settings.listener_jar, env)


def _file(name: str) -> str:
    """Give the path of a jar.

    :raise ListenerError: if it is none of this machine
    """
    path = submitted_files.local_path(name)
    if path is None:
        problem = f"{name} is no file of this worker, and no spark-submit is there to fetch it."
        raise ListenerError(problem, "Put the jar on the worker and give its path.")
    return str(path.absolute())


def with_listener(
    submission: Submission, capture: TryCapture, identity: Mapping[str, str], *, is_late: bool
) -> Submission:
    """Add the properties of listener and Delta commits.

    :param capture: of a bundle that has a folder
    :param identity: defaults of the listener's properties
    :param is_late: whether they are for a listener of its own, in a SparkContext that is there
    :raise SparkLineageError: if the listener cannot have them; names the fix
    """
    settings, bundle = capture.settings, capture.bundle
    # A listener of the user's goes on to send by the user's transport.
    existing = ExistingTransport.COLLECT_ONLY if is_late else settings.existing_transport
    injection = Injection(
        jars=(),
        events_path=str(capture.links.plain(_folder(capture)) / EVENTS),
        application_run_id=bundle.manifest.application_run_id,
        defaults=identity,
        existing_transport=existing,
        is_quiet=False,  # of options of Java: the JVM has been started
    )
    after = inject(submission, injection)
    if after.value(f"{TRANSPORT}type") == "composite" and after.value(_THREADS) is None:
        # Its threads are the JVM's, and end for good with the first application that sent by any.
        after = after.with_conf({_THREADS: "false"})
    tag = bundle.manifest.application_run_id
    if settings.observe and takes_tag(submission, tag):
        after = after.with_conf({DELTA_TAG: tag})
    return after


def _folder(capture: TryCapture) -> Path:
    if capture.bundle.path is None:
        msg = "There is no bundle."
        raise ValueError(msg)
    return capture.bundle.path


def note(
    capture: TryCapture,
    before: Submission,
    after: Submission,
    chosen: Jars,
    spark: SparkDistribution,
) -> None:
    """Note in the manifest what was added, and what could not be."""
    names = {*injected_names(before, after)}
    names |= {"jars"} if chosen.paths else set()
    names |= {"observer"} if capture.settings.observe else set()
    versions = {"spark": spark.version, "scala": spark.scala}
    capture.note(
        injected=tuple(sorted(names)),
        versions={**capture.bundle.manifest.versions, **versions},
    )
    for error in chosen.errors:
        capture.degrade(DegradationCode.EXTENSION_UNAVAILABLE, str(error))
