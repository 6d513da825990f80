"""What is missing of an application's events, as degradations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.model.budget import MORE_TIME
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode

if TYPE_CHECKING:
    from airflow_provider_sparklineage.lineage.application.accumulation import SparkApplication
    from airflow_provider_sparklineage.spark.capture.reports import ReadReport


def incomplete(application: SparkApplication, is_delivered: bool = False) -> list[Degradation]:
    """Report that its start or its end is not among them, or that there are none.

    :param is_delivered: whether its driver delivered all that there was; without ``spark.stop()``
        an application ends later than its Python, which delivers
    """
    if not application.events:
        return [
            Degradation(
                DegradationCode.NO_EVENTS,
                "The listener wrote no events of this application. If the job did start a "
                "SparkSession, look in its log for messages of OpenLineageSparkListener, and for "
                "spark.openlineage.disabled.",
            )
        ]
    missing = []
    if not application.begun:
        missing.append(
            Degradation(
                DegradationCode.CAPTURE_UNAVAILABLE,
                "The events begin in the middle of the application: their file was removed or "
                "replaced while the job ran, and what the job had done by then may be missing.",
            )
        )
    if not application.finished and not is_delivered:
        missing.append(
            Degradation(
                DegradationCode.APPLICATION_UNFINISHED,
                "The application never reported its end: its driver was killed, so its last "
                "actions may be missing.",
            )
        )
    return missing


def left_out(report: ReadReport, application: SparkApplication) -> list[Degradation]:
    """Report what of the file was not merged."""
    troubles = []
    if application.foreign_events:
        troubles.append(
            Degradation(
                DegradationCode.FOREIGN_EVENTS,
                f"{application.foreign_events} event(s) in the file are of another application "
                f"than {application.run_id} and were left out.",
            )
        )
    if application.left_out:
        what = ", ".join(f"{count} {what}" for what, count in sorted(application.left_out.items()))
        troubles.append(
            Degradation(
                DegradationCode.COLLECTION_CUT,
                f"The events are more than merging keeps in memory, and {what} were left out.",
            )
        )
    if report.torn:
        troubles.append(
            Degradation(
                DegradationCode.TORN_EVENT,
                "The last line of the event file is incomplete, because the driver ended while "
                "writing it.",
            )
        )
    if report.malformed_lines:
        named = "; ".join(report.malformed)
        troubles.append(
            Degradation(
                DegradationCode.MALFORMED_EVENTS,
                f"{report.malformed_lines} line(s) cannot be read as OpenLineage run events and "
                f"were left out: {named}.",
            )
        )
    if report.cut:
        troubles.append(
            Degradation(
                DegradationCode.COLLECTION_CUT,
                f"Collecting took too long and ended after {report.events} events; {MORE_TIME}.",
            )
        )
    return troubles
