"""What the tasks before this one have written in the same run: the events in their XComs.

A backend that keeps one text of a table takes the writer's away when a reader's event has none. So
a task repeats the texts of what the tasks before it wrote.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import DocumentError
from airflow_provider_sparklineage.operators.openlineage_hooks import OpenLineageHooks

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.document import Event

log = logger(__name__)

MAX_TASKS = 5
"""Of those that are asked; each is a question to Airflow, for which the job waits."""
TIMEOUT_S = 1.0
"""No more are asked after it."""


def events(ti: Any, task: Any) -> tuple[Event, ...]:
    """Give the events of the tasks before a task, the nearest first; never raises.

    :param ti: the task instance that runs
    :param task: its operator; results of mapped tasks are not looked at
    """
    deadline = time.monotonic() + TIMEOUT_S
    found = []
    try:
        for task_id in _before(task)[:MAX_TASKS]:
            if time.monotonic() > deadline:
                break
            value = ti.xcom_pull(task_ids=task_id, key=xcom.KEY, map_indexes=-1)
            with suppress(DocumentError):  # none, or of another version
                found.append(xcom.decode(value))
    except Exception:
        log.debug("The lineage of the tasks before this one was not found.", exc_info=True)
    return tuple(found)


def _before(task: Any) -> list[str]:
    direct = task.upstream_task_ids
    relatives = task.get_flat_relatives(upstream=True)
    every: set[str] = {of.task_id for of in relatives if issubclass(type(of), OpenLineageHooks)}
    return sorted(every, key=lambda task_id: (task_id not in direct, task_id))
