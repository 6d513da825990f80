"""Checks whether this worker can get the events that drivers in a cluster capture.

A driver with Python delivers to a capture location that is a URL; the worker writes, lists, reads
and deletes a probe there. A driver without Python sends to the worker's capture endpoint, which is
opened for a moment. With ``--spark-submit`` a small application runs in the cluster, and the
lineage that its driver delivers is judged.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from msgspec.structs import replace

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.cli.doctor import spark
from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model import credentials, exceptions, texts
from airflow_provider_sparklineage.operators.adapters.spark_submit import target_of
from airflow_provider_sparklineage.operators.attempt.submit import OwnFiles, listen
from airflow_provider_sparklineage.operators.attempt.timing import Deadline
from airflow_provider_sparklineage.settings.checks import (
    Check,
    Status,
    failed,
    passed,
    warning,
)
from airflow_provider_sparklineage.spark import driver
from airflow_provider_sparklineage.spark.capture import bundle as capture
from airflow_provider_sparklineage.spark.capture import tools
from airflow_provider_sparklineage.spark.capture.remote import received
from airflow_provider_sparklineage.spark.submit import submission, submitted_files
from airflow_provider_sparklineage.spark.submit.additions import injected, resolved
from airflow_provider_sparklineage.spark.submit.injection import ExistingTransport
from airflow_provider_sparklineage.storage import bounded, objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from airflow_provider_sparklineage.settings.resolution import Settings


# --- the capture location -------------------------------------------------------------------------


REMOTE = "remote location"

_PROBE_S = 20.0
THREAD = "sparklineage-doctor"
_PROBE = b"written by the doctor"


def location_checks(settings: Settings, timeout_s: float = _PROBE_S) -> list[Check]:
    """Write, list, read and delete a probe in the capture location; [] if that is not a URL.

    :param settings: the settings of a task, which have the location
    :param timeout_s: the most seconds for all steps together
    """
    captures = settings.capture_location
    if not captures.url:
        return []
    try:
        in_spark = capture.in_spark(captures.url, settings.capture_location_in_spark)
    except exceptions.SettingsError as error:
        return [failed(REMOTE, error)]
    steps: list[str] = []
    try:
        bounded.within(timeout_s, lambda: _probe(captures.url, steps), THREAD)
    except Exception as error:  # any error of the store's library
        why = bounded.reason(error, timeout_s)
        problem = f"This worker cannot {steps[-1]} {captures.url} ({why})."
        fix = (
            "Check the connection whose id is before the @, its permissions, and that the provider "
            "of this file system is installed. Files of drivers there cannot be collected."
        )
        return [failed(REMOTE, problem, fix)]
    text = f"This worker writes, lists, reads and deletes in {captures.url}"
    return [passed(REMOTE, f"{text}; drivers know it as {in_spark}.")]


def _probe(url: str, steps: list[str]) -> None:
    """Write, list, read and delete a file below a URL.

    :param steps: a list to which each step is added when it begins: ``write to``, ``list``, …; the
        last step is the one that failed, if the function raises
    """
    steps.append("write to")
    store = objects.Objects(url)
    folder = f"try-{uuid.uuid4().hex[:8]}"  # a sweep removes it if this process is killed
    store.write(f"{folder}/probe", _PROBE)
    try:
        steps.append("list")
        if store.names(folder) != ["probe"]:
            msg = "the written file is not listed"
            raise FileNotFoundError(msg)
        steps.append("read from")
        if store.read(f"{folder}/probe") != _PROBE:
            msg = "the content that is read is not the written one"
            raise ValueError(msg)
    finally:
        if steps[-1] == "read from":
            steps.append("delete from")
        store.remove_folder(folder)


# --- the capture endpoint -------------------------------------------------------------------------


ENDPOINT = "capture endpoint"


def endpoint_checks(settings: Settings) -> list[Check]:
    """Listen at the capture endpoint for a moment; [] if no endpoint is configured."""
    if not settings.capture_endpoint:
        return []
    try:
        receiver = listen(settings.capture_endpoint, Path(os.devnull))
    except (exceptions.SettingsError, exceptions.RemoteDriverError) as error:
        return [failed(ENDPOINT, error)]
    url = receiver.url
    receiver.close()
    text = f"This worker can listen for drivers without Python, at {url}; whether they reach it is"
    return [passed(ENDPOINT, f"{text} seen when one runs.")]


# --- an application in the cluster ----------------------------------------------------------------


TIMEOUT_S = 600
"""Seconds for the application; in a busy cluster an application has to wait."""
_COLLECT_S = 60.0
_KILL_S = 30.0
_LOOK = (
    "Look at the application in the cluster or in the service, where its name may be "
    "`sparklineage-doctor`, and at its driver's log."
)
_REACH = (
    "Give the user of the driver the permission, and Spark the file system, or set [sparklineage] "
    "capture_location_in_spark."
)
_MAX_REASON = 500
_STACK = re.compile(r"\s+at (?:[\w$]+\.)+[\w$<>]+\(")
APPLICATION = "trial_application.py"
_SMALL = {
    "spark.ui.enabled": "false",
    # Else this worker could not remove what a killed driver, which is another user, has left.
    "spark.hadoop.fs.permissions.umask-mode": "000",
}


def small(conf: Mapping[str, str], executors: str = "1") -> dict[str, str]:
    """Give the properties of a task for the trial, which needs few executors.

    :param conf: the task's properties, which win but for the number of executors
    :param executors: the number of executors
    """
    return {**_SMALL, **conf, "spark.executor.instances": executors}


class Submit(Protocol):
    """Submits the trial's application and waits for its end."""

    def __call__(
        self, settings: Settings, bundle: capture.CaptureBundle, in_spark: str
    ) -> tools.Marks:
        """Submit the application, with listener and observer.

        :param settings: settings of a task that only collects
        :param bundle: the bundle in the driver's folder
        :param in_spark: URL of the driver's folder, as Spark knows it
        :return: the marks of the files in the tools folder that the driver needs
        :raise OutOfTimeError: if it takes too long; the application is killed then
        """


def run(machine: spark.Machine, conn_id: str, conf: Mapping[str, str], settings: Settings) -> Check:
    """Run the trial's application as a task with this connection would, and judge its lineage.

    :param machine: the facts about this machine
    :param conn_id: the id of the Spark connection
    :param conf: Spark properties of the operator
    :param settings: settings of a task; their capture location is a URL
    :raise SparkLineageError: if the bundle cannot be made, or the application not be submitted
    """
    return tried(partial(_submit, conn_id, conf), machine, settings)


def tried(submit: Submit, machine: spark.Machine, settings: Settings) -> Check:
    """Run the trial's application in any way, and judge its lineage.

    The application and its tables are in the folder to which the driver delivers. This folder is
    removed afterwards. The application's events are sent to no backend, whichever transport its
    properties name.

    :param submit: submits the application
    :param machine: the Spark that runs it
    :param settings: settings of a task; their capture location is a URL
    :raise SparkLineageError: if the bundle cannot be made, or the application not be submitted
    """
    begun = time.monotonic()
    settings = replace(settings, existing_transport=ExistingTransport.COLLECT_ONLY)
    bundle = spark.new_bundle(settings)
    url = f"{settings.capture_location.url}/{cast('Path', bundle.path).name}"
    left = ""
    try:
        check = _tried(submit, machine, settings, bundle, url, begun)
    except exceptions.SparkLineageError:
        raise
    except Exception as error:  # of the store's library, or of Airflow's hook
        text = f"The application could not be run ({bounded.reason(error)})."
        check = failed(spark.TRIAL, text)
    finally:
        bundle.remove()
        left = _not_removed(url)
    if left and check.status is Status.OK:
        fix = "Remove it as the user of the driver; a later sweep of a task tries to do so, too."
        return warning(check.name, f"{check.message} {left}", fix)
    return check


def _not_removed(url: str) -> str:
    """Remove the folder of the trial; give a sentence with the reason if it is still there."""
    try:
        bounded.within(_PROBE_S, lambda: objects.Objects(url).remove_folder(""), THREAD)
    except Exception as error:  # of the store's library
        why = bounded.reason(error, _PROBE_S)
        return f"This worker could not remove the folder {url} of the trial ({why})."
    return ""


def _tried(
    submit: Submit,
    machine: spark.Machine,
    settings: Settings,
    bundle: capture.CaptureBundle,
    url: str,
    begun: float,
) -> Check:
    place, _, name = url.rpartition("/")
    in_spark = capture.in_spark(place, settings.capture_location_in_spark, name)
    store = objects.Objects(url)
    application = Path(str(driver.__file__)).with_name(APPLICATION)
    store.write(APPLICATION, application.read_bytes())
    for name, content in spark.ORDERS.items():
        store.write(f"tables/orders/{name}", content.encode())
    try:
        marks = submit(settings, bundle, in_spark)
    except bounded.OutOfTimeError as error:
        text = f"The application did not end within {TIMEOUT_S} seconds."
        return failed(spark.TRIAL, f"{text} {error}".strip(), _LOOK)
    except exceptions.SparkLineageError:
        raise
    except Exception as error:  # AirflowException, with the end of spark-submit's log
        return ended_badly(credentials.scrub(str(error)), url, in_spark)
    budget = Deadline().part(_COLLECT_S)
    manifest = replace(
        bundle.manifest,
        remote=url,
        outcome="COMPLETE",
        injected=("py_files",),
        versions={capture.OBSERVER: submitted_files.observer_digest()},
        reached_tools=marks.reached,
        unreached_tools=marks.unreached,
    )
    delivered = received(manifest, cast("Path", bundle.path), budget, waits=True)
    tools.note(manifest, budget, has_reported=delivered.has_begun)
    if not delivered.has_begun:
        return failed(
            spark.TRIAL,
            f"An application ran in the cluster, and its driver delivered nothing: it cannot write "
            f"to {in_spark}, or that is another place than {url}, where this worker looks.",
            "The driver's log has a line that begins with `sparklineage:` and says why. Give the "
            "driver's user the permission, or set [sparklineage] capture_location_in_spark.",
        )
    found = replace(bundle, manifest=replace(manifest, degradations=delivered.degradations))
    event = merged_event(found, task_lineage(found))
    return spark.judged(event, machine, "", time.monotonic() - begun, "in the cluster ")


def ended_badly(text: str, url: str, in_spark: str) -> Check:
    """Make a failed check from the end of Spark's output.

    If the output names the driver's folder, the check says that Spark does not reach this folder.

    :param text: message of Airflow's hook: the whole command, then the end of the output
    :param url: URL of the driver's folder, as the worker knows it
    :param in_spark: URL of the same folder, as Spark knows it
    """
    output = text.rpartition("Last spark-submit output:")[2].strip()
    printed = texts.truncated(_STACK.split(output)[0], _MAX_REASON)
    folder = url.rpartition("/")[2]
    if folder in printed or f"/{tools.FOLDER}/" in printed:
        problem = f"This worker reaches {url}, but Spark does not reach {in_spark}: {printed}"
        return failed(spark.TRIAL, problem, _REACH)
    problem = f"Spark ended with an error: {printed}"
    fix = f"{_LOOK} If the log names {in_spark}: {_REACH[0].lower()}{_REACH[1:]}"
    return failed(spark.TRIAL, problem, spark.explained(output, fix))


def _submit(
    conn_id: str,
    conf: Mapping[str, str],
    settings: Settings,
    bundle: capture.CaptureBundle,
    in_spark: str,
) -> tools.Marks:
    """Submit the application and wait for its end, as the operator's hook does.

    :param conn_id: the id of the Spark connection
    :param conf: Spark properties of the operator
    :param settings: the settings of a task
    :param bundle: the bundle in the driver's folder
    :param in_spark: URL of the driver's folder, as Spark knows it
    :return: the marks of the files in the tools folder that the driver needs
    :raise OutOfTimeError: if it takes too long; the application is killed then
    """
    target = target_of(SparkSubmitHook(conn_id=conn_id))
    application = f"{in_spark}/{APPLICATION}"
    files = OwnFiles(bundle.path)
    try:
        asked = submission.Submission(conf=small(conf), application=application)
        before = resolved(asked, target, settings)
        defaults = {"spark.openlineage.namespace": "sparklineage-doctor"}
        # A driver with Python delivers its events itself, so no endpoint has to listen for it.
        budget = Deadline().part(_COLLECT_S)
        carried = injected(before, target, bundle, settings, defaults, files.links, dict, budget)
        after, file = carried.submission, None
        if after.new_file is not None:
            folders = capture.folders_of_properties(settings.capture_location.folder)
            file = files.properties.write(after.new_file, folders)
        hook = SparkSubmitHook(
            conf=dict(after.conf),
            conn_id=conn_id,
            jars=after.jars,
            py_files=after.py_files,
            env_vars=dict(after.env_vars) or None,
            properties_file=file,
            name="sparklineage-doctor",
            application_args=[f"{in_spark}/tables"],
        )
        wait_for_end(lambda: hook.submit(application), hook.on_kill)
        return carried.tools
    finally:
        files.remove()


# --- the end of an application --------------------------------------------------------------------


def wait_for_end(execute: Callable[[], object], kill: Callable[[], object] | None) -> None:
    """Wait for the end of an application; kill it if this takes too long or is interrupted.

    :param execute: submits the application, and waits for its end
    :param kill: kills the application; None if nothing can
    :raise OutOfTimeError: if it takes too long; the text says so if the application may still run
    """
    try:
        with _interrupted_by_sigterm():
            bounded.within(TIMEOUT_S, execute, THREAD)
    except bounded.OutOfTimeError:
        raise bounded.OutOfTimeError(_killed(kill)) from None
    except (KeyboardInterrupt, SystemExit):
        commands.note(f"Interrupted. {_killed(kill)}")
        raise


def _killed(kill: Callable[[], object] | None) -> str:
    """Kill an application; give a sentence with the reason if it may still run, else nothing."""
    if kill is None:
        return "It may still run: Airflow's operator cannot stop it."
    try:
        bounded.within(_KILL_S, kill, THREAD)
    except Exception as error:  # of the provider, or the service
        return f"It may still run: it could not be stopped ({bounded.reason(error, _KILL_S)})."
    return ""


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM raise SystemExit meanwhile; only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
