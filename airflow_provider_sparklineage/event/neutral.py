"""What a transport that converts events gets: the event as it is kept, for everybody to see.

The kept event holds facets of other producers as they came. Airflow redacts those by the names of
their keys when it sends an event, and sees nothing of what travels next to that; so it is done
here. A job's text for people is the user's own: the one that is sent may begin with what the run
did, for a backend that shows no more than that text (:mod:`.steps.describe`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import DOCUMENTATION_KEY, replaced
from airflow_provider_sparklineage.event.producer import producer

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.event.document import Event, Facets


def neutral(kept: Event, redact: Callable[[Facets], Facets], documentation: Facets | None) -> Event:
    """Give a kept event as a transport may convert it.

    :param redact: hides secrets in facets that are not of this package, as Airflow does
    :param documentation: the job facet of the user's own text, if there is one
    """
    safe = redacted(kept, redact)
    if documentation is None:
        return safe
    job_facets = {**safe["job"]["facets"], DOCUMENTATION_KEY: documentation}
    return replaced(safe, job_facets=job_facets)


def redacted(event: Event, redact: Callable[[Facets], Facets]) -> Event:
    """Hide secrets in facets that are not of this package.

    :param redact: gives facets without them
    """

    def safe(facets: Facets) -> Facets:
        others = {
            key: facet
            for key, facet in facets.items()
            if not (isinstance(facet, dict) and facet.get("_producer") == producer())
        }
        return {**facets, **redact(others)} if others else facets

    def datasets(side: str, own: str) -> list[Any]:
        return [
            {**d, "facets": safe(d.get("facets") or {}), own: safe(d.get(own) or {})}
            for d in event.get(side) or ()
        ]

    run, job = event["run"], event["job"]
    return {
        **event,
        "run": {**run, "facets": safe(run.get("facets") or {})},
        "job": {**job, "facets": safe(job.get("facets") or {})},
        "inputs": datasets("inputs", "inputFacets"),
        "outputs": datasets("outputs", "outputFacets"),
    }
