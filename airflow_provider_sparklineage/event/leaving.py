"""The event that is kept to the event that is sent: what only one backend needs, when it leaves.

What Airflow keeps of a try (XCom, archive) has all that is known, as it is called where it is: that
is what the tab, the commands and the next run read, and what a transport for another product gets
(:func:`.openlineage.neutral_of`). A backend may not hold some names, choke on some facets, need
more to show it, or take less. So this is done last, when an event is handed to Airflow's
OpenLineage provider or is sent again: pure functions of the kept event.

============================  ======================================================================
:func:`adapted`
:mod:`.steps.rename`          names that the backend cannot hold are replaced
``Backend.repaired``          what the backend would choke on is changed
:mod:`.steps.glance`          the lines of the partition check get these names
:mod:`.steps.size`            detail is dropped until the event fits
:func:`leaving`
:mod:`.steps.describe`        job, datasets and columns get texts for people
:mod:`.steps.columns`         columns are dropped that the backend has no time for
============================  ======================================================================

The first half takes seconds of a large event, and is done while Airflow waits for the task. The
second one needs other runs, and is done in the hooks, which Airflow ends after a few seconds.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.event.backends import backend_of
from airflow_provider_sparklineage.event.partition_facets import CHECK_KEY
from airflow_provider_sparklineage.event.steps.rename import renamed
from airflow_provider_sparklineage.event.steps.size import fitted
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.event.document import Event, Step
    from airflow_provider_sparklineage.model.representation import Leaving


OPTION = "[sparklineage] max_event_bytes"


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
    if CHECK_KEY in event["run"]["facets"]:  # START has none, and does not wait for an import
        from airflow_provider_sparklineage.event.steps.glance import with_lines

        event = with_lines(event)
    return fitted(event, max_bytes, OPTION, budget)


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
    return reduce(lambda this, step: step(this), _steps(how, others), event)


def shows_descriptions(how: Leaving) -> bool:
    """Whether jobs, datasets and columns are described when an event leaves."""
    return how.describe_datasets and backend_of(how.backend).shows_descriptions


def _steps(how: Leaving, others: Others) -> tuple[Step, ...]:
    steps: list[Step] = []
    if shows_descriptions(how):
        from airflow_provider_sparklineage.event.steps.describe import described

        steps.append(partial(described, last=others.last, upstream=others.upstream))
    if backend_of(how.backend).pays_per_column:
        from airflow_provider_sparklineage.event.steps.columns import with_few_columns

        steps.append(partial(with_few_columns, max_columns=how.max_columns, last=others.last))
    return tuple(steps)
