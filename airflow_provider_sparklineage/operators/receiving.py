"""A driver in a cluster that has no Python: the task takes its events, for as long as it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import RemoteDriverError
from airflow_provider_sparklineage.operators.masking import mask
from airflow_provider_sparklineage.spark.capture.receiver import HOSTNAME, Endpoint, Receiver

if TYPE_CHECKING:
    from pathlib import Path

ON_ITS_WAY_S = 2.0
"""For which what a driver has sent at its end is waited for; it has ended a second ago."""


def begin(endpoint: str, path: Path) -> Receiver:
    """Listen for events, and append them to a file.

    :param endpoint: ``[sparklineage] capture_endpoint``
    :raise SettingsError: if that cannot be understood
    :raise RemoteDriverError: if nothing can be listened on
    """
    hostname = ""
    if HOSTNAME in endpoint:
        from airflow.utils.net import get_hostname

        hostname = str(get_hostname())  # type: ignore[no-untyped-call]
    try:
        receiver = Receiver(Endpoint.of(endpoint, hostname), path)
    except (OSError, RuntimeError) as error:
        msg = f"This worker cannot take what the driver would send: {error}."
        raise RemoteDriverError(msg) from error
    mask(receiver.token)
    return receiver


def missing(receiver: Receiver) -> list[tuple[DegradationCode, str]]:
    """Report what did not come, of a receiver that is closed."""
    found = []
    if not receiver.events:
        tokens = ""
        if receiver.refused:
            tokens = f" {receiver.refused} request(s) did not have the token of this try."
        message = (
            f"The driver ran in a cluster, and no event of it came to {receiver.url}, where this "
            f"worker listened.{tokens} If the job did start a SparkSession, look in the driver's "
            "log for messages of HttpTransport, and let drivers reach [sparklineage] "
            "capture_endpoint."
        )
        found.append((DegradationCode.DRIVER_ELSEWHERE, message))
    if receiver.lost:
        message = (
            f"{len(receiver.lost)} event(s) that the driver sent to this worker were not taken: "
            f"{receiver.lost[0]}."
        )
        found.append((DegradationCode.DELIVERY_INCOMPLETE, message))
    return found
