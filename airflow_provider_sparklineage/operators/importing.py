"""What is needed after the job is imported while it runs, when the task only waits for it.

In a thread, which is safe here. It imports what the task would import anyway, and what fails in it
fails again, and is reported, where it is needed. It has ended before the task goes on: Airflow's
OpenLineage provider forks then, and a lock that an import holds would never be released in the
child.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowTaskTimeout

if TYPE_CHECKING:
    from collections.abc import Iterator

DELAY_S = 1.0
"""By then spark-submit has been started, which this must not delay. No job of Spark is over."""


@contextmanager
def meanwhile() -> Iterator[None]:
    """Import while what is in here runs, if it takes long enough; its outcome stays what it is."""
    timer = threading.Timer(DELAY_S, _import)
    timer.daemon = True
    with suppress(RuntimeError):  # there may be no more threads
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        with suppress(AirflowTaskTimeout):  # the job has ended
            if timer.is_alive():
                timer.join()


def _import() -> None:
    with suppress(Exception):
        from airflow_provider_sparklineage.event import (  # noqa: F401
            archive,
            column_lineage,
            from_bundle,
        )
        from airflow_provider_sparklineage.event.steps import fitting  # noqa: F401
        from airflow_provider_sparklineage.operators import (  # noqa: F401
            partition_check,
            publishing,
        )
        from airflow_provider_sparklineage.spark.capture import events  # noqa: F401
