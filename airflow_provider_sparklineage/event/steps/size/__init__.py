"""How large an event may be, and what it goes without when it would be larger.

Consumers refuse large events (one at 5 MB), and then all of the event is lost. So detail goes, kind
by kind, until the rest fits: columns of schemas dataset by dataset, the widest first, and of each
other kind all at once.

1. columns of inputs that no edge of column lineage names,
2. descriptions of column lineage,
3. transformations of INDIRECT column lineage: the edges stay, and stay INDIRECT,
4. transformations of DIRECT column lineage that the output column's ``transformationType`` says,
5. statistics,
6. comments of schemas,
7. INDIRECT column lineage, and then columns of inputs that it alone named,
8. who saw which dataset (``datasets`` of ``sparkLineage_capture``),
9. columns of outputs that have no column lineage,
10. column lineage of full outputs, the largest first; before the next one's, the columns that it
    alone named,
11. other facets, the largest first.

So no column stands in the place of an edge, and none is missing that an edge names: backends draw
edges between columns of schemas only.

Each kind that went is a degradation that says how much of it there was; of the tenth, a few outputs
are named. What always stays: the names of the datasets, and of the facet that declares what is
missing (``sparkLineage_capture``) the rest, with what was dropped in front of all else. An event
that does not have that facet is not reduced: nothing goes silently.

The policy is the same for whoever has a bound: an event on its way to a backend, one that is kept
in a database, one for a server that takes less. What Airflow adds to a task's event, some KB of its
own facets, is not in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY
from airflow_provider_sparklineage.event.steps.size.measured_event import is_surely_within
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.model.degradations import Degradation


def fitted(event: Event, max_bytes: int, option: str, budget: Budget = UNLIMITED) -> Event:
    """Drop what makes an event larger than it may be, and declare it.

    :param max_bytes: of the event as OpenLineage's client writes it in JSON
    :param option: what a person would change to get more, as a sentence calls it:
        ``[sparklineage] max_event_bytes``
    :param budget: when nothing is left, column lineage and facets go at once
    """
    if is_surely_within(event, max_bytes):
        return event
    return ever_smaller(event, option, budget)(max_bytes)


def ever_smaller(event: Event, option: str, budget: Budget = UNLIMITED) -> Callable[[int], Event]:
    """Give what fits an event into so many bytes, and then into ever fewer.

    Each time it goes on from where it stopped: in which order what goes depends on no bound.
    """
    if CAPTURE_KEY not in event["run"]["facets"]:
        return lambda _: event
    from airflow_provider_sparklineage.event.steps.size.fitting import (
        Fitting,  # few events are too large
    )

    return Fitting(event, option, budget).within


def reduced(
    event: Event, max_bytes: int, option: str, budget: Budget = UNLIMITED
) -> tuple[Event, tuple[Degradation, ...]]:
    """Drop the same of an event with or without the facet that declares it.

    :return: the event, which is the same object if it fits, and what was dropped
    """
    if is_surely_within(event, max_bytes):
        return event, ()
    from airflow_provider_sparklineage.event.steps.size.fitting import (
        Fitting,  # few events are too large
    )

    fitting = Fitting(event, option, budget)
    return fitting.within(max_bytes), fitting.dropped
