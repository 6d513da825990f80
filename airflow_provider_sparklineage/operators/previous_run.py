"""The lineage of a task's last successful run, found in Airflow: no backend is asked.

It is the XCom of that run, or what the archive has of it. A value that cannot be had is as good as
none: what is wanted is only what to show until the run has ended.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.last_run import NO_LAST_RUN, LastRun, of_event
from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.event.archive import Archive
    from airflow_provider_sparklineage.event.document import Event

log = logger(__name__)

TIMEOUT_S = 3.0
"""The job waits for it."""

_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


class Last(NamedTuple):
    """The last successful run."""

    run: LastRun = NO_LAST_RUN
    event: Event | None = None
    """That it is of; None if none is known."""


def last_known(ti: Any, archive: Archive | None = None, *, is_dated: bool) -> Last:
    """Find what the last successful run of a task read and wrote; never raises.

    The nearest run before this one is asked first, by logical date, or by time where runs have
    none. A backfill of dates before all others has no run before it, and gets the latest.

    :param ti: the task instance that runs
    :param is_dated: whether its run has a logical date
    """
    deadline = time.monotonic() + TIMEOUT_S
    try:
        for event in _events(ti, archive, deadline, is_dated=is_dated):
            if event.get("eventType") == "COMPLETE":
                return Last(of_event(event), event)
            if time.monotonic() > deadline:
                break
    except Exception:
        log.debug("The lineage of the last successful run was not found.", exc_info=True)
    return Last()


def _events(
    ti: Any, archive: Archive | None, deadline: float, *, is_dated: bool
) -> Iterator[dict[str, Any]]:
    map_index = -1 if ti.map_index is None else ti.map_index

    def pulled(**of_run: Any) -> dict[str, Any]:
        return xcom.decode(
            ti.xcom_pull(task_ids=ti.task_id, key=xcom.KEY, map_indexes=map_index, **of_run)
        )

    if not is_dated:  # Airflow has no order of such runs, but of their XComs
        yield from _tried(partial(pulled, include_prior_dates=True))
    asked = {ti.run_id}
    for before in (None, _LATEST):  # None: before this run
        previous = ti.get_previous_ti(state="success", logical_date=before, map_index=map_index)
        if previous is None or previous.run_id in asked:
            continue
        asked.add(previous.run_id)
        yield from _tried(partial(pulled, run_id=previous.run_id))
        if archive is not None:
            identity = TaskIdentity(
                ti.dag_id, ti.task_id, previous.run_id, previous.try_number, map_index
            )
            left = archive.within(max(0.0, deadline - time.monotonic()))
            yield from _tried(partial(left.read, identity))


def _tried(read: Callable[[], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    try:
        yield read()
    except Exception as error:
        log.debug("No lineage of an earlier run: %s", error)
