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
from airflow_provider_sparklineage.spark.capture.remote_bundles import received

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.operators.attempt.capture import TryCapture
    from airflow_provider_sparklineage.spark.capture.bundle import Manifest


log = logger(__name__)

_ANNOUNCE_S = 10.0  # the job waits
_FIND_S = 10.0
_END_S = 5.0
_KEPT_S = 2.0  # of the time that there is once Airflow ends the process: for collecting
_FOR_RECEIVING = 2 / 3
"""The rest is for merging what has come."""


def announce(capture: TryCapture) -> None:
    """Leave the manifest where the driver is going to deliver, for who has no bundle of the try.

    :raise CaptureError: if the store does not take it in time
    """
    remote_bundles.announce(capture.bundle.manifest, Deadline().part(_ANNOUNCE_S))


def withdraw(capture: TryCapture, deadline: Deadline) -> None:
    """Remove the folder of a try to which nobody is going to deliver."""
    remote_bundles.remove(capture.bundle.manifest.remote, deadline.part(_END_S, _KEPT_S))


def download_delivered(capture: TryCapture, budget: Budget) -> None:
    """Put into the bundle what the driver has delivered, and wait for the rest, for some time."""
    bundle = capture.bundle
    if bundle.path is None:
        return
    delivered = received(bundle.manifest, bundle.path, budget.part(_FOR_RECEIVING), waits=True)
    codes = {degradation.code for degradation in delivered.degradations}
    capture.is_delivered = delivered.has_ended and DegradationCode.DELIVERY_INCOMPLETE not in codes
    capture.note(degradations=delivered.still_missing(bundle.manifest))
    for degradation in delivered.degradations:
        capture.degrade(degradation.code, degradation.message)


def manifest_of_earlier_try(capture: TryCapture, deadline: Deadline) -> Manifest | None:
    """Find what the try knew that submitted the job, whichever worker it had.

    To the folder of this one nobody is going to deliver.
    """
    budget = deadline.part(_FIND_S, _KEPT_S)
    own, location = capture.bundle.manifest, capture.settings.capture_location.url
    remote_bundles.remove(own.remote, budget)
    try:
        return remote_bundles.earlier_try(location, own, budget, capture.resumed_id)
    except CaptureError as error:
        log.debug("%s", error)
        return None


def end_remote_folder(capture: TryCapture, deadline: Deadline, *, keep: bool) -> None:
    """Keep or remove the folder, and look now and then for what is old.

    While a driver may still deliver, or somebody may have to find what it did, it is kept.
    """
    budget = deadline.part(_END_S, _KEPT_S)
    manifest, settings = capture.bundle.manifest, capture.settings
    if keep or not capture.is_delivered:
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
