"""The event that is kept to the event that is sent: what only one backend needs, when it leaves.

What Airflow keeps of a try (XCom, archive) has all that is known, and is what the tab, the commands
and the next run read. A backend may need more to show it, or take less. So this is done last, when
an event is handed to Airflow's OpenLineage provider or is sent again: a pure function of the kept
event.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event.backends import backend_of

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.document import Event, Step
    from airflow_provider_sparklineage.model.representation import Leaving


def leaving(event: Event, how: Leaving, last: Event | None = None) -> Event:
    """Give what is sent of an event.

    :param event: as it is kept, or as START has it: without a header
    :param last: of the task's last successful run, as it was kept; for what this one does not know
        of its datasets
    :return: the same object if there is nothing to do
    """
    return reduce(lambda this, step: step(this), _steps(how, last), event)


def _steps(how: Leaving, last: Event | None) -> tuple[Step, ...]:
    backend = backend_of(how.backend)
    steps: list[Step] = []
    if how.describe_datasets and backend.shows_descriptions:
        from airflow_provider_sparklineage.event.steps.describe import described

        steps.append(partial(described, last=last))
    if backend.pays_per_column:
        from airflow_provider_sparklineage.event.steps.columns import with_few_columns

        steps.append(partial(with_few_columns, max_columns=how.max_columns, last=last))
    return tuple(steps)
