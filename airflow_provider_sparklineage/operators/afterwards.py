"""What is left for ``airflow sparklineage collect``, where a try cannot collect its lineage."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.credentials import logger, scrub
from airflow_provider_sparklineage.model.exceptions import CaptureError, NotAwaitedError
from airflow_provider_sparklineage.settings.connection import DEFAULT_CONN_ID
from airflow_provider_sparklineage.spark.capture.bundle import collect_command
from airflow_provider_sparklineage.spark.capture.remote import SENDING
from airflow_provider_sparklineage.storage.bounded import reason, within
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.operators.try_capture import TryCapture

log = logger(__name__)

_TIMEOUT_S = 5.0  # the job waits for it
_MAX_BYTES = 16 * 1024 * 1024


def not_awaited(capture: TryCapture) -> NotAwaitedError:
    """Say what becomes of the lineage of a job that nobody has waited for."""
    problem = (
        "spark-submit did not wait for the end of the job, which is still running as far as is "
        "known, so what it reads and writes is not in this event."
    )
    task, conn_id = capture.bundle.manifest.task, capture.lineage_conn_id
    if task is None:
        return NotAwaitedError(problem)
    more = () if conn_id == DEFAULT_CONN_ID else ("--conn-id", conn_id)
    return NotAwaitedError(problem, f"When it has ended: {collect_command(task, *more)}")


def keep_additions(capture: TryCapture, context: Context) -> None:
    """Keep with a bundle what Airflow adds to its event, ``null`` if that is not for sending.

    Never raises.
    """
    from airflow_provider_sparklineage.operators import delivery

    manifest, path = capture.bundle.manifest, capture.bundle.path
    if path is None:
        return
    try:
        content = json.dumps(delivery.additions(manifest, context)).encode()
        store = Objects(manifest.remote or f"file://{path}", is_for_group=True)
        within(_TIMEOUT_S, lambda: store.write(SENDING, content), "sparklineage-sending")
    except Exception:
        log.debug("What Airflow adds to the event was not kept.", exc_info=True)


def additions(url: str) -> dict[str, Any] | None:
    """Give what Airflow adds to the event of a bundle; None if that is not for sending.

    :param url: of the bundle's folder
    :raise CaptureError: if it is not known
    """
    try:
        content = within(
            _TIMEOUT_S, lambda: Objects(url).read(SENDING, _MAX_BYTES), "sparklineage-sending"
        )
        found = json.loads(content)
    except Exception as error:  # whatever the store's library raises
        problem = scrub(f"{url}/{SENDING} cannot be read ({reason(error, _TIMEOUT_S)}).")
        raise CaptureError(problem) from error
    return found if isinstance(found, dict) else None
