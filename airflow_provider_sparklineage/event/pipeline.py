"""A task's lineage to the event that leaves: what is done, in which order.

The event is made once (:mod:`.make`). Then it goes through a list of steps (:func:`steps`), each
``event -> event`` (:data:`.document.Step`), each giving back what it was given where it has nothing
to do. What a step takes away it declares in the event itself (:func:`.capture_facet.declared`).
Hooks, XCom, archive, tab and commands all take what comes out.

============================  ======================================================================
:mod:`.steps.credentials`     users and passwords of URIs are stripped, in names too
:mod:`.steps.secrets`         what Airflow masks in logs is masked here, but for names
:mod:`.steps.short_texts`     long texts are truncated; after secrets, of which half would not be
                              recognised
:mod:`.steps.rename`          names that the backend cannot hold are replaced
``Backend.repaired``          what the backend would choke on is changed
:mod:`.steps.glance`          the partition check gets a line for each dataset
:mod:`.steps.size`            detail is dropped until the event fits
============================  ======================================================================
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event.backends import backend_of
from airflow_provider_sparklineage.event.make import made
from airflow_provider_sparklineage.event.partition_facets import CHECK_KEY
from airflow_provider_sparklineage.event.steps.credentials import without_credentials
from airflow_provider_sparklineage.event.steps.rename import renamed
from airflow_provider_sparklineage.event.steps.secrets import masked
from airflow_provider_sparklineage.event.steps.short_texts import shortened
from airflow_provider_sparklineage.event.steps.size import fitted
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_REPRESENTATION,
    Representation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.event.document import Event, Header, Step
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.spark.capture.reports import ReadReport

_OPTION = "[sparklineage] max_event_bytes"


def event_of(
    lineage: TaskLineage,
    report: ReadReport | None = None,
    representation: Representation = DEFAULT_REPRESENTATION,
    mask: Callable[[str], str] = str,
    header: Header | None = None,
    budget: Budget = UNLIMITED,
) -> Event:
    """Make the event of a task's lineage, and take it through all steps.

    :param report: what reading the events met; None before the job has run
    :param mask: hides the secrets in a text; Airflow knows them
    :param header: None for Airflow's hooks, which fill it in themselves
    :param budget: for all of this; when nothing is left, facets are left out
    """
    if report is not None:  # else there are no columns yet, and nothing to declare in
        from airflow_provider_sparklineage.event.steps.size.foreseen import bounded

        lineage = bounded(lineage, representation.max_event_bytes, _OPTION)
    event = made(lineage, report, representation, header, budget.part(_FOR_MAKING))
    return reduce(lambda this, step: step(this), steps(representation, mask, budget), event)


_FOR_MAKING = 0.25
"""The steps take as long, and sizes twice as long."""


def steps(
    representation: Representation, mask: Callable[[str], str], budget: Budget = UNLIMITED
) -> tuple[Step, ...]:
    """List the steps of an event, in their order."""
    backend = backend_of(representation.backend)
    return (
        without_credentials,
        partial(masked, mask=mask),
        shortened,
        partial(renamed, identity=backend.identity, text=backend.text),
        backend.repaired,
        _with_lines,
        partial(fitted, max_bytes=representation.max_event_bytes, option=_OPTION, budget=budget),
    )


def _with_lines(event: Event) -> Event:
    """See :mod:`.steps.glance`; START has no partition check, and does not wait for an import."""
    if CHECK_KEY not in event["run"]["facets"]:
        return event
    from airflow_provider_sparklineage.event.steps.glance import with_lines

    return with_lines(event)
