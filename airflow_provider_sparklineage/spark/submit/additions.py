"""Add listener, extensions and observer to a submission, as far as its target takes them.

Nothing here asks Airflow: the input is the operator's arguments as a ``Submission``, the place to
which they are submitted, and the settings. Each part that cannot be added is a degradation in the
answer; without the listener itself, an error is raised.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError, ListenerError
from airflow_provider_sparklineage.model.terms import EVENTS
from airflow_provider_sparklineage.spark.capture.tools import Marks
from airflow_provider_sparklineage.spark.submit import (
    deploy_mode,
    distribution,
    injection,
    listener_selection,
)
from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.submit.deploy_mode import DriverFiles, Target
    from airflow_provider_sparklineage.spark.submit.injection import CaptureOptions
    from airflow_provider_sparklineage.spark.submit.submission import Submission
    from airflow_provider_sparklineage.spark.submit.submitted_files import Links


_PLAIN_PATH = "Put the jar where the path is letters of ASCII, digits and / _ . + = @ ~ - alone."


class ResolvedSubmission(NamedTuple):
    """A submission before anything is added, with its Spark, properties and environment.

    :param submission: the arguments, with the properties of the file that Spark would read
    :param spark: the Spark that will run the job
    :param env: the environment of spark-submit
    """

    submission: Submission
    spark: SparkDistribution
    env: Mapping[str, str]


class Injected(NamedTuple):
    """A submission with the listener in it, and a degradation for each part that is missing.

    :param names: the names (never the values) of the properties, lists of files and environment
        variables that were added or changed
    :param degradations: pairs of the code and the message
    :param delivers: whether the driver delivers its captured files to the capture location's URL
    :param is_awaited: whether the task ends no earlier than its application
    :param tools: the marks of the files in the tools folder that the driver needs
    """

    submission: Submission
    names: tuple[str, ...]
    degradations: tuple[tuple[DegradationCode, str], ...]
    delivers: bool
    is_awaited: bool
    tools: Marks


def resolved(submission: Submission, target: Target, options: CaptureOptions) -> ResolvedSubmission:
    """Find the Spark that will run, and the properties that a submission gets from a file.

    :param target: the place to which the job is submitted
    :raise ListenerError: if there is no Spark, or the folder of ``spark-defaults.conf`` is not
        known
    """
    env = distribution.environment(submission.env_vars)
    if target.service:
        spark = _of_service(target, options)
        return ResolvedSubmission(with_transport(submission, target), spark, env)
    spark = listener_selection.spark_of(
        target.spark_binary, env, options.spark_version, in_task=True
    )
    with_file = _with_file_properties(submission, target, spark.home, env)
    return ResolvedSubmission(with_file, spark, env)


def _of_service(target: Target, options: CaptureOptions) -> SparkDistribution:
    """Give the Spark that a service runs: by the submission, or else by ``spark_version``.

    :raise ListenerError: if it is not known
    """
    versions = target.spark or options.spark_version
    if versions is None:
        problem = (
            f"The version of Spark that {target.service} runs is not known, and with a listener "
            "for another Scala the job would end."
        )
        fix = (
            "Set [sparklineage] spark_version, for example to 3.5.6-scala2.12, in the "
            "configuration or in the connection that the task names as lineage_conn_id."
        )
        raise ListenerError(problem, fix)
    return SparkDistribution(None, *versions)


def without_secrets(submission: Submission, target: Target) -> Submission:
    """Move secrets of the user's transport to a properties file; add no listener and no observer.

    :param target: the place to which the job is submitted
    :raise ListenerError: if the folder of ``spark-defaults.conf`` is not known: the new file has to
        replace that file, and so to repeat its properties
    """
    env = distribution.environment(submission.env_vars)
    spark = distribution.find(target.spark_binary, env)
    home = spark.home if spark else None
    return injection.without_secrets(_with_file_properties(submission, target, home, env))


def with_transport(submission: Submission, target: Target) -> Submission:
    """Add Airflow's transport if the target asks for it and the job has no transport of its own."""
    if any(key.startswith(injection.TRANSPORT) for key in submission.keys()):  # noqa: SIM118  (method)
        return submission
    return submission.with_conf(target.transport)


def _with_file_properties(
    submission: Submission, target: Target, home: Path | None, env: Mapping[str, str]
) -> Submission:
    """Add the properties that a submission gets from a file, and Airflow's transport.

    :param home: the folder ``SPARK_HOME``; None if it is not known
    :param env: the environment of spark-submit
    """
    if not target.reads_files_of_worker:
        properties = {}
    elif submission.properties_file:
        properties = distribution.read_properties(Path(submission.properties_file))
    else:
        properties = distribution.defaults(home, env)
    return with_transport(replace(submission, file_properties=properties), target)


def injected(
    before: ResolvedSubmission,
    target: Target,
    bundle: CaptureBundle,
    options: CaptureOptions,
    defaults: Mapping[str, str],
    links: Links,
    listen: Callable[[], Mapping[str, str]],
    budget: Budget,
) -> Injected:
    """Add the listener, its extensions and the observer, as far as they can be added.

    :param before: the submission, its Spark and its environment, as :func:`resolved` gives them
    :param target: the place to which the job is submitted
    :param bundle: a bundle that has a folder
    :param defaults: defaults of the listener's properties
    :param links: makes links to paths that Spark would misread
    :param listen: a function that makes this worker listen for events, and gives the properties by
        which the listener sends its events to the worker; called only if the driver writes no files
    :param budget: the time for putting listener and observer into the tools folder
    :raise RemoteDriverError: if nothing can be collected where the driver will run
    :raise ListenerError: if the job cannot carry the listener; the error names the fix
    :raise CaptureError: if Spark could not find the bundle, or a jar on the shared mount
    """
    submission, spark, env = before
    files = deploy_mode.driver_files(submission, target, env, bundle, options, links, budget)
    _refuse(submission, target, env, options)
    # If the driver has other jars, in a pod's image for instance, the jars of the worker's Spark
    # are not looked at.
    there = spark if files.has_jars_of_worker else replace(spark, home=None)
    listeners = listener_selection.job_listeners(submission, there, target.listener)
    own = listener_selection.only_listener(listeners, submission, there)
    jars: list[str] = []
    if own is None:
        jar = listener_selection.jar_in_task(
            spark, target.spark_binary, options, env, is_remote=files.host.is_remote
        )
        jars.append(_entry(jar, files, links, _PLAIN_PATH))

    def extension(name: str) -> str:
        return _entry(name, files, links, "Give it another path.")

    extensions, errors = listener_selection.checked_extensions(
        options.listener_extensions, own, extension, is_remote=files.host.is_remote
    )
    jars += extensions
    missing = [(DegradationCode.EXTENSION_UNAVAILABLE, str(error)) for error in errors]
    if errors and options.strict:
        raise ListenerError(" ".join(map(str, errors)))
    observation = None
    if options.observe:
        observation, problem = files.observation(submission, bundle, links)
        if problem is not None:
            missing.append((DegradationCode.OBSERVER_UNAVAILABLE, problem))
    if files.are_on_mount:
        share = options.capture_location.folder / "jars"
        jars = [deploy_mode.reachable(files.host, jar, share) for jar in jars]
    submit_opts = None
    if target.environment_is_private and not files.host.is_remote:
        submit_opts = env.get(injection.SUBMIT_OPTS, "")
    parts = injection.Injection(
        jars=tuple(jars),
        events_path=f"{files.folder}/{EVENTS}",
        application_run_id=bundle.manifest.application_run_id,
        defaults=defaults,
        existing_transport=options.existing_transport,
        submit_opts=submit_opts,
        is_quiet=target.reads_files_of_worker,
        observation=observation,
        sending=listen() if files.are_sent else {},
    )
    after = injection.inject(submission, parts)
    names = injection.injected_names(submission, after)
    if target.is_command and target.reads_files_of_worker:
        # The command's own arguments, which are not known here, win over properties in a file.
        after = after.all_in_file()
    return Injected(
        after,
        names,
        tuple(missing),
        delivers=bool(files.delivered_to),
        is_awaited=files.is_awaited,
        tools=files.tools.marks if files.tools else Marks(),
    )


def _refuse(
    submission: Submission, target: Target, env: Mapping[str, str], options: CaptureOptions
) -> None:
    """Refuse a job whose driver or environment takes no listener of ours.

    :raise ListenerError: with the fix
    """
    if not target.starts_connect_server:
        deploy_mode.refuse_connect(submission, target.master, env)
    if target.service:
        injection.refuse_variables(submission, options.existing_transport)


def _entry(name: str, files: DriverFiles, links: Links, fix: str) -> str:
    """Give the entry of ``--jars`` by which the driver gets a jar.

    :param name: the path of the jar on this worker, or its URL
    :param files: the places of the driver's files
    :param links: makes a link if Spark would misread the path
    :param fix: the advice for a path that Spark misreads
    :raise ListenerError: if the path has a character that Spark misreads
    :raise SparkLineageError: if the driver cannot get the jar
    """
    try:
        return files.jar(name, links)
    except CaptureError as error:
        if files.tools is not None:
            raise
        raise ListenerError(error.problem, fix) from error
