"""Put the listener into the JVM of a PySpark task, whose driver is the task's own process.

This module does for such a driver the work of :mod:`.submit` for a submission. The difference is
that the JVM runs already: it can be asked for its properties and listeners, while a submission has
to be searched for them, and jars are added to the JVM one by one.

Nothing here raises into the task, except under ``strict``. When the task's function has returned,
PySpark is as it was before. Calls that wait for the JVM at the end are made in a thread of their
own: Airflow's task timeout interrupts the task's thread, and would cut an answer of the JVM in two.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import ListenerError, SparkLineageError
from airflow_provider_sparklineage.model.terms import EVENTS, OBSERVATIONS
from airflow_provider_sparklineage.operators.attempt import submit
from airflow_provider_sparklineage.operators.attempt.task_try import importing_meanwhile
from airflow_provider_sparklineage.operators.masking import mask
from airflow_provider_sparklineage.spark import in_process
from airflow_provider_sparklineage.spark.in_process import Jvm, LateListener
from airflow_provider_sparklineage.spark.submit import (
    injection,
    listener_selection,
    submitted_files,
)
from airflow_provider_sparklineage.spark.submit.injection import (
    DELTA_TAG,
    OBSERVER,
    SUBMIT_OPTS,
    TRANSPORT,
    ExistingTransport,
    Injection,
    inject,
    injected_names,
    takes_tag,
    with_quiet_jvm,
)
from airflow_provider_sparklineage.spark.submit.submission import Submission

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.operators.attempt.submit import Capture
    from airflow_provider_sparklineage.operators.attempt.task_try import Try
    from airflow_provider_sparklineage.spark.submit.distribution import SparkDistribution
    from airflow_provider_sparklineage.spark.submit.injection import CaptureOptions
    from airflow_provider_sparklineage.spark.submit.listener_selection import JobListener

log = logger(__name__)


# These functions make, from a SparkContext's configuration, the configuration with the listener.


_THREADS = f"{TRANSPORT}withThreadPool"


class Jars(NamedTuple):
    """Paths of the jars to add to the JVM, and an error for each extension that cannot be added."""

    paths: tuple[str, ...]
    errors: tuple[SparkLineageError, ...]


def chosen_jars(
    submission: Submission,
    spark: SparkDistribution,
    listeners: tuple[JobListener, ...],
    options: CaptureOptions,
) -> Jars:
    """Choose the jars of the listener and its extensions that are to be added to the JVM.

    The listener's jar is left out if the JVM has a listener already.

    :param submission: all properties of the SparkContext
    :param listeners: listeners that the JVM has
    :raise ListenerError: if there is no listener that fits, or if an extension cannot be added and
        ``options.strict`` is true; the error names the fix
    """
    env = {**os.environ, **({"SPARK_HOME": str(spark.home)} if spark.home else {})}
    own = listener_selection.only_listener(listeners, submission, spark)
    chosen = []
    if own is None:
        chosen.append(_file(listener_selection.jar_in_task(spark, "spark-submit", options, env)))
    names = options.listener_extensions
    extensions, errors = listener_selection.checked_extensions(names, own, _file)
    if errors and options.strict:
        raise ListenerError(" ".join(map(str, errors)))
    return Jars((*chosen, *extensions), errors)


def _file(name: str) -> str:
    """Give the absolute path of a jar.

    :param name: the path or URL of the jar
    :raise ListenerError: if the jar is not a file of this machine
    """
    path = submitted_files.local_path(name)
    if path is None:
        problem = f"{name} is no file of this worker, and no spark-submit is there to fetch it."
        raise ListenerError(problem, "Put the jar on the worker and give its path.")
    return str(path.absolute())


def with_listener(
    submission: Submission, capture: Capture, identity: Mapping[str, str], *, is_late: bool
) -> Submission:
    """Add the listener's properties to those of a SparkContext, and the tag for Delta commits.

    The tag is in the metadata of each commit to a Delta table, so that the observer can recognise
    the commits of this application.

    :param submission: all properties of the SparkContext
    :param capture: a capture whose bundle has a folder
    :param identity: the listener's properties for job and parent; those of ``submission`` win
    :param is_late: whether the properties are for a second listener, in a SparkContext that exists
    :raise SparkLineageError: if the listener's properties cannot be set; the error names the fix
    """
    settings, bundle = capture.settings, capture.bundle
    # A listener of the user's goes on to send by the user's transport.
    existing = ExistingTransport.COLLECT_ONLY if is_late else settings.existing_transport
    injection = Injection(
        jars=(),
        events_path=str(capture.own_files.links.plain(cast("Path", bundle.path)) / EVENTS),
        application_run_id=bundle.manifest.application_run_id,
        defaults=identity,
        existing_transport=existing,
        is_quiet=False,  # options of Java do that, and the JVM has been started already
    )
    after = inject(submission, injection)
    if after.value(f"{TRANSPORT}type") == "composite" and after.value(_THREADS) is None:
        # A composite transport has one thread pool for the JVM, which ends for good with the first
        # application that used it.
        after = after.with_conf({_THREADS: "false"})
    tag = bundle.manifest.application_run_id
    if settings.observe and takes_tag(submission, tag):
        after = after.with_conf({DELTA_TAG: tag})
    return after


def noted(
    capture: Capture,
    before: Submission,
    after: Submission,
    chosen: Jars,
    spark: SparkDistribution,
) -> Capture:
    """Note in the manifest the injected parts, and the extensions that could not be added.

    The versions of Spark and Scala are noted, too.

    :param before: the properties of the SparkContext without the listener
    :param after: the properties with the listener
    :param chosen: the jars that were added, with the errors of the extensions that were not
    """
    names = {*injected_names(before, after)}
    names |= {"jars"} if chosen.paths else set()
    names |= {"observer"} if capture.settings.observe else set()
    versions = {"spark": spark.version, "scala": spark.scala}
    return capture.noted(
        *((DegradationCode.EXTENSION_UNAVAILABLE, str(error)) for error in chosen.errors),
        injected=tuple(sorted(names)),
        versions={**capture.bundle.manifest.versions, **versions},
    )


_DRAIN_MS = 10_000
_LIMIT = f"{OBSERVER}limits"


class TaskDriver:
    """Adds listener and observer to the driver of one try, until the task's function returns.

    :param current: a try with a capture, whose bundle has a folder
    """

    def __init__(self, current: Try, context: Context) -> None:
        self._try, self._context = current, context
        self._is_refused = True
        """Whether the SparkContexts that PySpark makes here cannot be watched."""
        self._is_met = False
        """Whether there has been a SparkContext."""
        self._is_observing = False
        self._late: LateListener | None = None
        self._tagged: Any = None

    @property
    def _capture(self) -> Capture:
        """The try's capture, with all changes until now."""
        return cast("Capture", self._try.capture)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Turn an error of the block into a degradation; raise it if the try is strict."""
        try:
            yield
        except Exception as error:
            self._try.capture = submit.refused(self._capture, error)

    def _degrade(self, code: DegradationCode, message: str) -> None:
        self._try.capture = self._capture.degraded(code, message)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Collect the lineage of all that the block, the task's function, does with Spark."""
        with suppress(Exception):
            # Airflow's operator is going to import it too, so this is not a cost of lineage.
            import_module("pyspark.sql")
        with ExitStack() as stack:
            with self._refusing(), self._try.cost.before_job:
                # A missing PySpark is for Airflow's operator to report.
                with suppress(ImportError):
                    stack.enter_context(in_process.watched_contexts(self))
                    self._attach(*in_process.active_context())
                self._is_refused = False
            try:
                yield
            finally:
                with suppress(Exception, AirflowTaskTimeout), self._try.cost.after_job:
                    self._end()

    # --- before a SparkContext is made ------------------------------------------------------------

    @contextmanager
    def starting(self, conf: Any) -> Iterator[Any]:
        """Set options of the JVM that the block starts, and keep secrets out of its arguments.

        The block gets the configuration for starting the JVM, without the user's transport.

        :param conf: the user's SparkConf, or None
        """
        own = os.environ.get(SUBMIT_OPTS)
        os.environ[SUBMIT_OPTS] = with_quiet_jvm(own or "")
        try:
            with importing_meanwhile():
                yield conf and _without_transport(conf)
        finally:
            if own is None:
                del os.environ[SUBMIT_OPTS]
            else:
                os.environ[SUBMIT_OPTS] = own

    def prepared(self, client: Any, conf: Any) -> Any:
        """Add the listener to the configuration of a SparkContext that is about to be made.

        :param client: py4j's client of the JVM
        :param conf: the SparkConf of the SparkContext
        :return: a changed copy; ``conf`` itself if the listener cannot be added
        """
        self._is_met = True
        with self._try.cost.before_job, self._refusing():
            changed = conf.clone()
            self._listen(Jvm(client), changed, is_late=False)
            conf = changed
        return conf  # noqa: RET504  (unchanged if the listener was refused)

    def _attach(self, context: Any, session: Any) -> None:
        """Add the listener to an existing SparkContext, and the observer to its session.

        :param context: the SparkContext; if it is None, nothing is done
        :param session: the existing session; None if there is none to observe
        """
        if context is None:
            return
        self._is_met = True
        java = context._jsc.sc()  # noqa: SLF001
        jvm = Jvm(context._gateway._gateway_client)  # noqa: SLF001
        conf = java.conf().clone()
        after = self._listen(jvm, conf, is_late=True)
        self._late = LateListener(jvm, java, conf)
        if session is not None:
            self._observe_session(session, after)

    def _observe_session(self, session: Any, after: Submission) -> None:
        if not self._is_observing:
            return
        tag = after.conf.get(DELTA_TAG)
        if tag is not None and session.conf.get(DELTA_TAG, None) is None:
            session.conf.set(DELTA_TAG, tag)
            self._tagged = session
        in_process.observer_module("attaching").attach(session)

    def _listen(self, jvm: Jvm, conf: Any, *, is_late: bool) -> Submission:
        """Add the jars to a JVM, and the listener's properties to a SparkConf of Java.

        :param is_late: whether the SparkContext exists already, and gets a second listener
        :return: the SparkConf's properties with those of the listener
        """
        with suppress(Exception):  # fails, for example, if Spark does not log by Log4j 2
            in_process.observer_module("attaching").drop_warning(jvm.client)
        before = jvm.properties(conf)
        submission, spark = Submission(conf=before), jvm.spark()
        mask(*injection.transport_secrets(submission))
        chosen = chosen_jars(submission, spark, jvm.listeners(), self._capture.settings)
        identity = submit.identity(self._capture, submission, self._context)
        after = with_listener(submission, self._capture, identity, is_late=is_late)
        jvm.add(chosen.paths)
        _apply(conf, before, {**after.in_file, **after.conf})
        self._try.capture = noted(self._capture, submission, after, chosen, spark)
        self._observe(before, after)
        return after

    def _observe(self, before: dict[str, str], after: Submission) -> None:
        """Begin to observe the sessions that PySpark makes from now on, if ``observe`` is on.

        :param before: the properties of the SparkContext without the listener
        :param after: the properties with the listener
        """
        bundle = self._capture.bundle
        if self._is_observing or not self._capture.settings.observe or bundle.path is None:
            return
        settings = {f"{OBSERVER}observations": str(bundle.path / OBSERVATIONS)}
        settings |= {key: value for key, value in before.items() if key == _LIMIT}
        tag = bundle.manifest.application_run_id
        if after.conf.get(DELTA_TAG) == tag:
            settings[f"{OBSERVER}tag"] = tag
        in_process.observer_module("in_process").begin(settings)
        self._is_observing = True

    # --- when the function has returned -----------------------------------------------------------

    def _end(self) -> None:
        if not self._is_met:
            if not self._is_refused:  # else a degradation has the reason
                self._degrade(
                    DegradationCode.NO_EVENTS,
                    "The task made no SparkContext in its own process, so there was nothing to "
                    "listen to. The driver of a session of Spark Connect is the server's.",
                )
            return
        is_over = False
        try:
            is_over = self._await_last_records()
        finally:
            if not is_over:
                self._degrade(
                    DegradationCode.OBSERVER_FAILED,
                    "The driver's JVM did not answer in time when the task's function had "
                    "returned, so what Spark did last may be missing.",
                )
            if self._is_observing:
                in_process.observer_module("in_process").end()

    def _await_last_records(self) -> bool:
        """Wait at most ``collect_timeout`` until listener and observer have written all they have.

        :return: whether they have ended in time
        """
        thread = threading.Thread(target=self._last_records, daemon=True)
        thread.start()  # raises if there may be no more threads
        left = self._try.deadline.part(self._capture.settings.collect_timeout.total_seconds())
        while thread.is_alive() and left.left > 0:
            thread.join(min(left.left, 0.1))
        return not thread.is_alive()

    def _last_records(self) -> None:
        for step in (self._finish_observing, self._untag, self._end_listening):
            try:
                step()
            except Exception:
                log.debug("The driver's end is not known.", exc_info=True)

    def _finish_observing(self) -> None:
        if self._is_observing:
            in_process.observer_module("in_process").finish(_DRAIN_MS)

    def _untag(self) -> None:
        if self._tagged is not None:
            self._tagged.conf.unset(DELTA_TAG)

    def _end_listening(self) -> None:
        if self._late is not None:
            self._late.end()


def _without_transport(conf: Any) -> Any:
    """Copy a SparkConf without the user's OpenLineage transport.

    PySpark starts the JVM with the copy, as arguments of a process, which all users of the machine
    can read. The SparkContext's own configuration still has the transport, with its secrets.
    """
    from pyspark import SparkConf

    shown = SparkConf(loadDefaults=False)  # a subclass may have another constructor
    for key, value in conf.getAll():
        if not key.startswith(injection.TRANSPORT):
            shown.set(key, value)
    return shown


def _apply(conf: Any, before: dict[str, str], after: dict[str, str]) -> None:
    for key in before.keys() - after.keys():
        conf.remove(key)
    for key, value in after.items():
        if before.get(key) != value:
            conf.set(key, value)
