"""A driver in a cluster that cannot write into the bundle: its deliveries, or the events it sends.

A driver with Python delivers to a folder of the capture location, which is announced before the
job, received after it, and kept or removed. Whatever is asked of the store ends in time, and a
failure of the store is a degradation. From a driver without Python the task takes the events
itself, for as long as it waits. This is imported only where there is such a driver.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.exceptions import CaptureError, RemoteDriverError
from airflow_provider_sparklineage.operators.attempt.timing import Deadline
from airflow_provider_sparklineage.operators.masking import mask
from airflow_provider_sparklineage.spark.capture import remote_bundles
from airflow_provider_sparklineage.spark.capture.receiver import HOSTNAME, Endpoint, Receiver
from airflow_provider_sparklineage.spark.capture.remote_bundles import Delivered, received

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest


log = logger(__name__)

_ANNOUNCE_S = 10.0  # the job waits
_FIND_S = 10.0
_END_S = 5.0
_KEPT_S = 2.0  # of the time that there is once Airflow ends the process: for collecting
_FOR_RECEIVING = 2 / 3
"""The rest is for merging what has come."""


def announce(manifest: Manifest) -> None:
    """Leave the manifest where the driver is going to deliver, for readers without the bundle.

    :raise CaptureError: if the store does not take it in time
    """
    remote_bundles.announce(manifest, Deadline().part(_ANNOUNCE_S))


def withdraw(manifest: Manifest, deadline: Deadline) -> None:
    """Remove the folder of a try to which nobody is going to deliver."""
    remote_bundles.remove(manifest.remote, deadline.part(_END_S, _KEPT_S))


def download(manifest: Manifest, into: Path, budget: Budget) -> Delivered:
    """Put the driver's deliveries into a bundle's folder, and wait for the rest, for some time."""
    return received(manifest, into, budget.part(_FOR_RECEIVING), waits=True)


def earlier_manifest(
    own: Manifest, location: str, deadline: Deadline, resumed_id: str
) -> Manifest | None:
    """Find the manifest of the try that submitted the job, whichever worker it had.

    To the folder of this one nobody is going to deliver, so it is removed.

    :param own: manifest of this try
    :param location: URL of the capture location
    :param resumed_id: by which Airflow knows the job
    """
    budget = deadline.part(_FIND_S, _KEPT_S)
    remote_bundles.remove(own.remote, budget)
    try:
        return remote_bundles.earlier_try(location, own, budget, resumed_id)
    except CaptureError as error:
        log.debug("%s", error)
        return None


def end_remote_folder(
    manifest: Manifest, settings: Settings, deadline: Deadline, *, keep: bool
) -> None:
    """Keep or remove the folder of a try, and look now and then for old ones.

    :param keep: whether a driver may still deliver, or somebody may have to find its deliveries
    """
    budget = deadline.part(_END_S, _KEPT_S)
    if keep:
        try:
            remote_bundles.announce(manifest, budget)
        except CaptureError as error:
            log.debug("%s", error)
    else:
        remote_bundles.remove(manifest.remote, budget)
    remote_bundles.sweep_at_times(
        settings.capture_location,
        older_than=settings.capture_retention,
        now=datetime.now(UTC),
        budget=budget,
    )


ON_ITS_WAY_S = 2.0
"""For which what a driver has sent at its end is waited for; it has ended a second ago."""


def listen(endpoint: str, path: Path) -> Receiver:
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


def missing_events(receiver: Receiver) -> list[tuple[DegradationCode, str]]:
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
