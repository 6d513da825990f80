"""The driver of a PySpark task, which is the task's own process: listened to, observed, and left.

Nothing here raises into the task, but what ``strict`` asks for; nothing stays in PySpark when the
task's function has returned. What the JVM has to be waited for is asked in a thread: Airflow's task
timeout interrupts the task's own, and would leave it with half an answer.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.operators import importing, session_injection
from airflow_provider_sparklineage.operators.masking import mask
from airflow_provider_sparklineage.spark import in_process
from airflow_provider_sparklineage.spark.capture.bundle import OBSERVATIONS
from airflow_provider_sparklineage.spark.in_process import Jvm, LateListener
from airflow_provider_sparklineage.spark.submit import injection
from airflow_provider_sparklineage.spark.submit.injection import (
    DELTA_TAG,
    OBSERVER,
    SUBMIT_OPTS,
    with_quiet_jvm,
)
from airflow_provider_sparklineage.spark.submit.submission import Submission

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.operators.task_try import Try
    from airflow_provider_sparklineage.operators.try_capture import TryCapture

log = logger(__name__)

_DRAIN_MS = 10_000
_LIMIT = f"{OBSERVER}limits"


class TaskDriver:
    """What is added to the driver of one try.

    :param capture: its bundle, which has a folder
    """

    def __init__(self, current: Try, capture: TryCapture, context: Context) -> None:
        self._try, self._capture, self._context = current, capture, context
        self._is_refused = True
        """Whether nothing can be seen of what PySpark makes here."""
        self._is_met = False
        """Whether there has been a SparkContext."""
        self._is_observing = False
        self._late: LateListener | None = None
        self._tagged: Any = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Have all that the task's function does with Spark in here collected."""
        with suppress(Exception):
            import_module("pyspark.sql")  # as Airflow's operator is going to: no wait of ours
        with ExitStack() as stack:
            with self._capture.refusing(), self._try.cost.before_job():
                # Without PySpark there is nothing to look at, which Airflow's operator reports.
                with suppress(ImportError):
                    stack.enter_context(in_process.watched_contexts(self))
                    self._attach(*in_process.active_context())
                self._is_refused = False
            try:
                yield
            finally:
                with suppress(Exception, AirflowTaskTimeout), self._try.cost.after_job():
                    self._end()

    # --- before a SparkContext is made ------------------------------------------------------------

    @contextmanager
    def starting(self, conf: Any) -> Iterator[Any]:
        """Start a JVM with the options that the listener wants, and without secrets in sight."""
        own = os.environ.get(SUBMIT_OPTS)
        os.environ[SUBMIT_OPTS] = with_quiet_jvm(own or "")
        try:
            with importing.meanwhile():
                yield conf and _without_transport(conf)
        finally:
            if own is None:
                del os.environ[SUBMIT_OPTS]
            else:
                os.environ[SUBMIT_OPTS] = own

    def prepared(self, client: Any, conf: Any) -> Any:
        """Add the listener to the configuration of a SparkContext that is about to be made."""
        self._is_met = True
        with self._try.cost.before_job(), self._capture.refusing():
            changed = conf.clone()
            self._listen(Jvm(client), changed, is_late=False)
            conf = changed
        return conf  # noqa: RET504  (as it was, if that is refused)

    def _attach(self, context: Any, session: Any) -> None:
        """Add the listener to a SparkContext that is there; None: there is none."""
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
        """Put the listener into a JVM, and what it needs into a configuration (Java's)."""
        with suppress(Exception):  # a Spark with another log than Log4j 2, for one
            in_process.observer_module("attaching").drop_warning(jvm.client)
        before = jvm.properties(conf)
        given, spark = Submission(conf=before), jvm.spark()
        mask(*injection.transport_secrets(given))
        chosen = session_injection.jars(given, spark, jvm.listeners(), self._capture.settings)
        identity = self._capture.identity(given, self._context)
        after = session_injection.with_listener(given, self._capture, identity, is_late=is_late)
        jvm.add(chosen.paths)
        _apply(conf, before, {**after.in_file, **after.conf})
        session_injection.note(self._capture, given, after, chosen, spark)
        self._observe(before, after)
        return after

    def _observe(self, before: dict[str, str], after: Submission) -> None:
        """Observe the sessions that are going to be made."""
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
            self._nothing_met()
            return
        is_over = False
        try:
            is_over = self._await_last_records()
        finally:
            if not is_over:
                self._capture.degrade(
                    DegradationCode.OBSERVER_FAILED,
                    "The driver's JVM did not answer in time when the task's function had "
                    "returned, so what Spark did last may be missing.",
                )
            if self._is_observing:
                in_process.observer_module("in_process").end()

    def _await_last_records(self) -> bool:
        """Wait for them, in the time that there is; give whether all are there."""
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

    def _nothing_met(self) -> None:
        if self._is_refused:  # a degradation has the reason
            return
        self._capture.degrade(
            DegradationCode.NO_EVENTS,
            "The task made no SparkContext in its own process, so there was nothing to listen to. "
            "The driver of a session of Spark Connect is the server's.",
        )


def _without_transport(conf: Any) -> Any:
    """Keep the user's transport, with its secrets, from the arguments of a JVM, which all can read.

    The SparkContext's configuration has it all the same.
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
