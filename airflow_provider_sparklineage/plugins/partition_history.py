"""What other runs of a task read and wrote of partitioned datasets: the values of dates, no more.

The tab asks for it after it has drawn a task's own lineage, and draws it next to that. So it may
take :data:`TIMEOUT_S`, and what is not found until then is left out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.plugins import stored
from airflow_provider_sparklineage.plugins.other_runs import around

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.orm import Session

    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

    Values = tuple[tuple[str, str], ...]

TIMEOUT_S = 2.0
MAX_RUNS = 60
MAX_VALUES = 800
"""Of one dataset on one side; hours of a month are fewer."""

# A part of a date, as far as one sees it without its neighbours: 2024-05-06, 20240506T03, 7.
_OF_A_DATE = re.compile(r"\d[\d:./TZ _+-]{0,30}", re.ASCII)
_SIDES = (("read", "inputs", "input"), ("written", "outputs", "output"))


class History(NamedTuple):
    """What the tab gets.

    :param runs: how many instances of the task it is of
    :param datasets: of each ``side``, ``namespace`` and ``name``, and ``partitions``: values that
        may be parts of dates, by dimension
    :param note: why there may be more than that
    """

    runs: int
    datasets: list[dict[str, Any]]
    note: str


def of(wanted: TaskIdentity, settings: Settings, session: Session) -> History:
    """Find what other runs of a task accessed, next to one of its instances."""
    archive = stored.BoundedArchive(settings, TIMEOUT_S)
    values = _Values()
    instances = around(wanted, session, MAX_RUNS)
    unread = len(instances)
    in_part = []  # of which the archive may have more; their events would fill the memory
    for instance in instances:
        if archive.is_over:
            break
        found = stored.pushed(instance.identity, session)
        if found.is_whole or not archive.is_there:
            values.add(found.event)
            unread -= 1
        else:
            in_part.append(instance.identity)
    for identity in in_part:
        if archive.is_over:
            break
        values.add(archive.read(identity).event or stored.pushed(identity, session).event)
        unread -= 1
    note = archive.complaint
    if unread and not note:
        note = f"{unread} of {len(instances)} other runs could not be read within {TIMEOUT_S:g} s."
    return History(values.runs, values.datasets(), note)


class _Values:
    """Values of dates, by side and dataset."""

    def __init__(self) -> None:
        self.runs = 0
        self._found: dict[tuple[str, str, str], set[Values]] = {}

    def add(self, event: dict[str, Any] | None) -> None:
        """Add what a run accessed; nothing of one that failed, or of which there is no event."""
        if event is None or event.get("eventType") != "COMPLETE":
            return
        self.runs += 1
        for side, key, prefix in _SIDES:
            for dataset in event.get(key) or ():
                values = set(map(_dated, _partitions(dataset, prefix))) - {()}
                if values:
                    name = (side, dataset["namespace"], dataset["name"])
                    self._found.setdefault(name, set()).update(values)

    def datasets(self) -> list[dict[str, Any]]:
        """Give them as JSON has them."""
        return [
            {
                "side": side,
                "namespace": namespace,
                "name": name,
                "partitions": [dict(v) for v in sorted(values, reverse=True)[:MAX_VALUES]],
            }
            for (side, namespace, name), values in sorted(self._found.items())
        ]


def _partitions(dataset: dict[str, Any], prefix: str) -> Iterator[dict[str, Any]]:
    """Yield the partitions that an event names of a dataset; what it stores may be of any shape."""
    value: Any = dataset
    for key in (f"{prefix}Facets", "subset", f"{prefix}Condition", "partitions"):
        value = value.get(key) if isinstance(value, dict) else None
    for partition in value if isinstance(value, list) else ():
        dimensions = partition.get("dimensions") if isinstance(partition, dict) else None
        if isinstance(dimensions, dict):
            yield dimensions


def _dated(dimensions: dict[str, Any]) -> Values:
    return tuple(
        (label, value)
        for label, value in dimensions.items()
        if isinstance(value, str) and _OF_A_DATE.fullmatch(value)
    )
