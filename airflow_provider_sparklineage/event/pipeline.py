"""A task's lineage to its event: what is done, in which order.

The event is made once (:mod:`.make`). Then it goes through a list of steps, each ``event -> event``
(:data:`.document.Step`), each giving back what it was given where it has nothing to do. What a step
takes away it declares in the event itself (:func:`.capture_facet.declared`). XCom, archive, tab and
commands take what comes out, which is neutral: nothing in it was changed for one backend.

============================  ======================================================================
:mod:`.steps.credentials`     users and passwords of URIs are stripped, in names too
:mod:`.steps.secrets`         what Airflow masks in logs is masked here, but for names
:mod:`.steps.short_texts`     long texts are truncated; after secrets, of which half would not be
                              recognised
:mod:`.steps.glance`          the partition check gets a line for each dataset
:mod:`.steps.size`            detail is dropped until the event fits
============================  ======================================================================

What is sent is made for a backend (:mod:`.leaving`). Its names and repairs come before the last two
steps, which they have a say in: how long a line's name is, and how much there is to drop. So both
events are made of the same one, and are the same object where the backend needs nothing changed.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.event.leaving import OPTION, adapted, finished
from airflow_provider_sparklineage.event.make import made
from airflow_provider_sparklineage.event.steps.credentials import without_credentials
from airflow_provider_sparklineage.event.steps.secrets import masked
from airflow_provider_sparklineage.event.steps.short_texts import shortened
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_REPRESENTATION,
    Representation,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.event.document import Event, Header, Step
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.model.representation import Leaving
    from airflow_provider_sparklineage.spark.capture.reports import ReadReport


class Made(NamedTuple):
    """The event of a task's lineage, for those who keep it and for those who send it.

    :param kept: neutral
    :param adapted: as the backend can take it, see :func:`.leaving.adapted`; the same object if
        that needs nothing
    """

    kept: Event
    adapted: Event


def event_of(
    lineage: TaskLineage,
    report: ReadReport | None = None,
    representation: Representation = DEFAULT_REPRESENTATION,
    mask: Callable[[str], str] = str,
    header: Header | None = None,
    budget: Budget = UNLIMITED,
) -> Event:
    """Make the event of a task's lineage, as it is kept.

    :param report: what reading the events met; None before the job has run
    :param mask: hides the secrets in a text; Airflow knows them
    :param header: None for Airflow's hooks, which fill it in themselves
    :param budget: for all of this; when nothing is left, facets are left out
    """
    clean = _clean(lineage, report, representation, mask, header, budget)
    return finished(clean, representation.max_event_bytes, budget)


def events_of(
    lineage: TaskLineage,
    how: Leaving,
    report: ReadReport | None = None,
    representation: Representation = DEFAULT_REPRESENTATION,
    mask: Callable[[str], str] = str,
    header: Header | None = None,
    budget: Budget = UNLIMITED,
) -> Made:
    """Make the event of a task's lineage, as it is kept and for a backend; see :func:`event_of`.

    :param how: what is done for the backend
    """
    clean = _clean(lineage, report, representation, mask, header, budget)
    sent = adapted(clean, how, budget.part(_FOR_BACKEND))
    kept = finished(clean, representation.max_event_bytes, budget)
    return Made(kept, kept if sent is clean else sent)


def _clean(
    lineage: TaskLineage,
    report: ReadReport | None,
    representation: Representation,
    mask: Callable[[str], str],
    header: Header | None,
    budget: Budget,
) -> Event:
    """Make an event, and take out of it what nobody may see."""
    if report is not None:  # else there are no columns yet, and nothing to declare in
        from airflow_provider_sparklineage.event.steps.size.foreseen import bounded

        lineage = bounded(lineage, representation.max_event_bytes, OPTION)
    event = made(lineage, report, representation, header, budget.part(_FOR_MAKING))
    steps: tuple[Step, ...] = (without_credentials, partial(masked, mask=mask), shortened)
    return reduce(lambda this, step: step(this), steps, event)


_FOR_MAKING = 0.25
"""The steps take as long, and sizes twice as long."""
_FOR_BACKEND = 0.6
"""Of the rest, where there is more than one event: a backend waits for one of them."""
