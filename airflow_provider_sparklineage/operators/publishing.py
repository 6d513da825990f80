"""What a try leaves in Airflow itself: its event as an XCom, and in the archive.

The document is the event that Airflow's OpenLineage provider sends, as no backend has changed it
(:mod:`~airflow_provider_sparklineage.event.pipeline`); of what the provider adds (ownership, run
facets of Airflow) nothing is in it.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowTaskTimeout

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.event.archive import archive_of
from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.event.steps.size import ever_smaller
from airflow_provider_sparklineage.model import budget
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import ArchiveError
from airflow_provider_sparklineage.operators import delivery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.operators.deadline import Deadline
    from airflow_provider_sparklineage.operators.try_capture import TryCapture
    from airflow_provider_sparklineage.settings.resolution import Settings

log = logger(__name__)

ARCHIVE_TIMEOUT_S = 10.0
_KILLED_TIMEOUT_S = 1.0  # Airflow sends SIGKILL 5 s after SIGTERM, and collecting had 3 of them
_XCOM_OPTION = "[sparklineage] xcom_max_bytes"


def publish(
    capture: TryCapture,
    deadline: Deadline,
    event: Event,
    context: Context,
    *,
    is_for_sending: bool = True,
) -> None:
    """Push the XCom and write the archive; never raises, and what fails is one warning for each.

    :param is_for_sending: whether Airflow is going to ask for the event
    """
    written = Written(event)
    with (
        _warning("The lineage of this try is not shown in Airflow"),
        budget.garbage_collector_paused(),
    ):
        _push(written, capture.settings, context)
    with _warning("The event of this try is not in the archive"):
        sending = _sending(capture, context) if is_for_sending else None
        _archive(written, capture, sending, is_killed=deadline.is_killed)


@contextmanager
def _warning(what: str) -> Iterator[None]:
    try:
        yield
    except (Exception, AirflowTaskTimeout) as error:
        # Spark has ended, and how it ended is the task's outcome.
        log.warning("%s (%s: %s).", what, type(error).__name__, error)
        log.debug("Publishing lineage failed.", exc_info=True)


def xcom_of(written: Written, settings: Settings) -> dict[str, Any] | None:
    """Make the XCom of an event, as large as it may be; None if not even names fit."""
    smaller = ever_smaller(written.event, _XCOM_OPTION)
    return xcom.encode(written, settings.xcom_max_bytes, smaller)


def _push(written: Written, settings: Settings, context: Context) -> None:
    if not settings.xcom_max_bytes:
        return
    value = xcom_of(written, settings)
    if value is None:
        log.warning(
            "The lineage of this try is not shown in Airflow: even without detail it is more than "
            "%s allows.",
            _XCOM_OPTION,
        )
        return
    context["ti"].xcom_push(key=xcom.KEY, value=value)


def _sending(capture: TryCapture, context: Context) -> dict[str, Any] | None:
    if not capture.settings.archive_url:
        return None
    try:
        return delivery.additions(capture.bundle.manifest, context)
    except Exception:  # of a provider that is not as those that are known
        log.debug("What Airflow adds to the event is not known.", exc_info=True)
        return None


def _archive(
    written: Written, capture: TryCapture, sending: dict[str, Any] | None, *, is_killed: bool
) -> None:
    settings, task = capture.settings, capture.bundle.manifest.task
    archive = archive_of(settings, _KILLED_TIMEOUT_S if is_killed else ARCHIVE_TIMEOUT_S)
    if archive is None or task is None:
        return
    is_unsent = sending is not None and archive.has_marks and delivery.can_be_watched()
    archive.write(task, written, sending, is_unsent=is_unsent)
    if not is_killed:  # else the next try has the time for it
        with suppress(ArchiveError):  # the next try sweeps
            archive.sweep_at_times(older_than=settings.archive_retention, now=datetime.now(UTC))
