"""The event that is kept to the event that is sent: what only one backend needs, when it leaves.

What Airflow keeps of a try (XCom, archive) has all that is known, and is what the tab, the commands
and the next run read. A backend may need more to show it, or take less. So this is done last, when
an event is handed to Airflow's OpenLineage provider or is sent again: a pure function of the kept
event.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.event.backends import backend_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.event.document import Event, Step
    from airflow_provider_sparklineage.model.representation import Leaving


class Others(NamedTuple):
    """Events as they were kept, which have what this one does not know of its datasets.

    :param last: of the task's last successful run
    :param upstream: of the tasks before it in the same run, the nearest first
    """

    last: Event | None = None
    upstream: Sequence[Event] = ()


NO_OTHERS = Others()


def leaving(event: Event, how: Leaving, others: Others = NO_OTHERS) -> Event:
    """Give what is sent of an event.

    :param event: as it is kept, or as START has it: without a header
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
