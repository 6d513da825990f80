"""Who changed something in DataHub, and when: the same for the same event."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.subject import Subject

ACTOR = "urn:li:corpuser:datahub"
"""DataHub's user for what no person does; its own connectors name it as well."""


def stamp(subject: Subject) -> Json:
    """Give DataHub's ``AuditStamp``; its time is the event's, 0 where that is unreadable."""
    return {"time": subject.time or 0, "actor": ACTOR}
