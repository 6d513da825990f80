"""A task's lineage to its event, and to the event that is sent: the steps, in their order.

The event is made once (:mod:`.make`). Then it goes through a list of steps, each ``event -> event``
(:data:`.document.Step`), each giving back what it was given where it has nothing to do. What a step
takes away it declares in the event itself (:func:`.capture_facet.declared`). XCom, archive, tab and
commands take what comes out, which is neutral: nothing in it was changed for one backend.

=============================  =====================================================================
:func:`event_of`
``without_credentials``        users and passwords of URIs are stripped, in names too
``masked``                     what Airflow masks in logs is masked here, but for names
``shortened``                  long texts are truncated; after secrets, of which half would not be
                               recognised
``with_lines``                 the partition check gets a line for each dataset
``fitted``                     detail is dropped until the event fits
=============================  =====================================================================

What Airflow keeps of a try (XCom, archive) has all that is known, as it is called where it is: that
is what the tab, the commands and the next run read, and what a transport for another product gets
(``datahub/transport``). A backend may not hold some names, choke on some facets, need more to show
it, or take less. So what is sent is made for a backend, by pure functions: when an event is handed
to Airflow's OpenLineage provider, or is sent again.

=============================  =====================================================================
:func:`adapted`
``renamed``                    names that the backend cannot hold are replaced
``Backend.repaired``           what the backend would choke on is changed
``with_lines``                 the lines of the partition check get these names
``fitted``                     detail is dropped until the event fits
:func:`leaving`
``described``                  job, datasets and columns get texts for people
``with_few_columns``           columns are dropped that the backend has no time for
=============================  =====================================================================

Names and repairs come before the last two steps of an event, which they have a say in: how long a
line's name is, and how much there is to drop. So both events are made of the same one
(:func:`events_of`), and are the same object where the backend needs nothing changed.

To adapt a large event takes seconds, and is done while Airflow waits for the task. What
:func:`leaving` does needs other runs, and is done in the hooks, which Airflow ends after a few
seconds.
"""

from __future__ import annotations

import uuid
from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.event.backends import backend_of
from airflow_provider_sparklineage.event.descriptions import described
from airflow_provider_sparklineage.event.document import Header
from airflow_provider_sparklineage.event.make import made
from airflow_provider_sparklineage.event.model import CHECK_KEY
from airflow_provider_sparklineage.event.steps.rename import renamed
from airflow_provider_sparklineage.event.steps.size import fitted, with_few_columns
from airflow_provider_sparklineage.event.steps.texts import (
    masked,
    shortened,
    with_lines,
    without_credentials,
)
from airflow_provider_sparklineage.model import budget
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_REPRESENTATION,
    Representation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_sparklineage.event.document import Event, Step
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage
    from airflow_provider_sparklineage.model.representation import Leaving
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle
    from airflow_provider_sparklineage.spark.capture.reports import ReadReport


# --- the event for a backend ----------------------------------------------------------------------


SIZE_OPTION = "[sparklineage] max_event_bytes"


class Others(NamedTuple):
    """Events of other runs, which have what this one does not know of its datasets.

    They are :func:`adapted` to the same backend: it knows datasets by those names.

    :param last: of the task's last successful run
    :param upstream: of the tasks before it in the same run, the nearest first
    """

    last: Event | None = None
    upstream: Sequence[Event] = ()


NO_OTHERS = Others()


def adapted(event: Event, how: Leaving, budget: Budget = UNLIMITED) -> Event:
    """Give an event as its backend can take it: with other names, and repaired.

    :param event: as it is kept, or on its way to that
    :param budget: when nothing is left, column lineage and facets go at once
    :return: the same object if the backend needs nothing changed
    """
    backend = backend_of(how.backend)
    held = backend.repaired(renamed(event, backend.identity, backend.text))
    return event if held is event else finished(held, how.max_event_bytes, budget)


def finished(event: Event, max_bytes: int, budget: Budget = UNLIMITED) -> Event:
    """Do what is done last with an event whose names are those that it will have."""
    if CHECK_KEY in event["run"]["facets"]:  # START has none
        event = with_lines(event)
    return fitted(event, max_bytes, SIZE_OPTION, budget)


def sent_of(kept: Event, how: Leaving, last: Event | None = None) -> Event:
    """Give what is sent of an event that was kept.

    :param last: of the task's last successful run, as it was kept
    """
    return leaving(adapted(kept, how), how, Others(last and adapted(last, how)))


def leaving(event: Event, how: Leaving, others: Others = NO_OTHERS) -> Event:
    """Give what is sent of an event.

    :param event: :func:`adapted` to the backend; that of START has no header
    :return: the same object if there is nothing to do
    """
    return reduce(lambda this, step: step(this), _steps_for_backend(how, others), event)


def shows_descriptions(how: Leaving) -> bool:
    """Whether jobs, datasets and columns are described when an event leaves."""
    return how.describe_datasets and backend_of(how.backend).shows_descriptions


def _steps_for_backend(how: Leaving, others: Others) -> tuple[Step, ...]:
    steps: list[Step] = []
    if shows_descriptions(how):
        steps.append(partial(described, last=others.last, upstream=others.upstream))
    if backend_of(how.backend).pays_per_column:
        steps.append(partial(with_few_columns, max_columns=how.max_columns, last=others.last))
    return tuple(steps)


# --- the event of a lineage -----------------------------------------------------------------------


class Made(NamedTuple):
    """The event of a task's lineage, for those who keep it and for those who send it.

    :param kept: neutral
    :param adapted: as the backend can take it, see :func:`adapted`; the same object if
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
        # START does not wait for this import.
        from airflow_provider_sparklineage.event.column_lineage import bounded

        lineage = bounded(lineage, representation.max_event_bytes, SIZE_OPTION)
    event = made(lineage, report, representation, header, budget.part(_FOR_MAKING))
    steps: tuple[Step, ...] = (without_credentials, partial(masked, mask=mask), shortened)
    return reduce(lambda this, step: step(this), steps, event)


_FOR_MAKING = 0.25
"""The steps take as long, and sizes twice as long."""
_FOR_BACKEND = 0.6
"""Of the rest, where there is more than one event: a backend waits for one of them."""


# --- the event of a bundle ------------------------------------------------------------------------


@budget.garbage_collector_paused()
def merged_event(
    bundle: CaptureBundle,
    lineage: TaskLineage,
    mask: Callable[[str], str] = str,
    budget: Budget = UNLIMITED,
) -> Event:
    """Make the merged RunEvent, as it is kept.

    :param mask: hides the secrets in a text; Airflow knows them
    """
    representation = bundle.manifest.representation
    return event_of(lineage, bundle.report, representation, mask, header(bundle, lineage), budget)


@budget.garbage_collector_paused()
def merged_events(
    bundle: CaptureBundle,
    lineage: TaskLineage,
    how: Leaving,
    mask: Callable[[str], str] = str,
    budget: Budget = UNLIMITED,
) -> Made:
    """Make the merged RunEvent, as it is kept and for a backend; see :func:`merged_event`."""
    representation = bundle.manifest.representation
    of = header(bundle, lineage)
    return events_of(lineage, how, bundle.report, representation, mask, of, budget)


def header(bundle: CaptureBundle, lineage: TaskLineage) -> Header:
    """Name run, job and time of an event: the manifest's, else the application's."""
    manifest, application = bundle.manifest, lineage.application
    time = manifest.ended or (application and application.last_event) or manifest.started
    job = manifest.job
    return Header(
        _uuid(manifest.run_id or manifest.application_run_id),
        job.namespace if job else (application and application.namespace) or "default",
        job.name if job else (application and application.job_name) or "unknown",
        time.isoformat() if time else "1970-01-01T00:00:00+00:00",
    )


def _uuid(run_id: str) -> str:
    """Make a run id of what an event calls one: OpenLineage wants a UUID, and may get another."""
    try:
        return str(uuid.UUID(run_id))
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, run_id))
