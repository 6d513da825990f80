"""A listener added to a SparkContext that was there before, and taken away again.

It has a configuration of its own. Spark has reported the application's start by then, and may
report its end after we have gone, so it gets both from here.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS

if TYPE_CHECKING:
    from airflow_provider_sparklineage.spark.in_process.jvm import Jvm

_DRAIN_MS = 10_000


class LateListener:
    """The listener of one try.

    :param context: Java's SparkContext
    :param conf: Java's SparkConf, for the listener alone
    """

    def __init__(self, jvm: Jvm, context: Any, conf: Any) -> None:
        self._jvm, self._context = jvm, context
        self._listener = jvm.named(LISTENER_CLASS)(conf)
        self._listener.onApplicationStart(self._start())
        context.addSparkListener(self._listener)

    def end(self) -> None:
        """Take the listener away, if the application goes on."""
        if self._context.isStopped():  # and has reported its end
            return
        with suppress(Exception):  # a timeout: what is late is lost
            self._context.listenerBus().waitUntilEmpty(_DRAIN_MS)
        self._context.removeSparkListener(self._listener)
        self._listener.onApplicationEnd(self._end())

    def _start(self) -> Any:
        none = self._jvm.named("scala.Option").empty()
        some = self._jvm.named("scala.Option").apply
        context = self._context
        return self._jvm.named("org.apache.spark.scheduler.SparkListenerApplicationStart")(
            context.appName(),
            some(context.applicationId()),
            int(time.time() * 1000),  # of the task's part
            context.sparkUser(),
            context.applicationAttemptId(),
            none,
            none,
        )

    def _end(self) -> Any:
        ended = self._jvm.named("org.apache.spark.scheduler.SparkListenerApplicationEnd")
        now = int(time.time() * 1000)
        try:
            return ended(now)
        except Exception:  # Spark 4 wants the exit code, which may be none
            return ended(now, self._jvm.named("scala.Option").empty())
