"""What an earlier run of a task read and wrote, as far as the next one may know of it.

Before a run has ended nobody knows what it reads and writes, and backends that show the latest
run would show nothing meanwhile. The datasets of a run before stand in for it, with what
distinguishes them: the facets that :data:`KEPT` names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = ("dataSource", "lifecycleStateChange", "schema", "symlinks")
"""Facets of a dataset by which backends identify it and its versions; none that is of one run."""


class LastRunDataset(msgspec.Struct, frozen=True):
    """A dataset of an earlier run."""

    namespace: str
    name: str
    facets: dict[str, msgspec.Raw] = {}

    @property
    def dataset(self) -> DatasetName:
        """What it is called."""
        return DatasetName(self.namespace, self.name)


class LastRun(msgspec.Struct, frozen=True):
    """What an earlier run read and wrote: mostly the last successful one."""

    run_id: str = ""
    """OpenLineage run id of the task's try."""
    inputs: tuple[LastRunDataset, ...] = ()
    outputs: tuple[LastRunDataset, ...] = ()

    @property
    def has_datasets(self) -> bool:
        """Whether it read or wrote anything."""
        return bool(self.inputs or self.outputs)

    def only(self, *, inputs: bool, outputs: bool) -> LastRun:
        """Give what it read, what it wrote, both or neither."""
        return LastRun(self.run_id, self.inputs * inputs, self.outputs * outputs)


NO_LAST_RUN = LastRun()


class BothForms(NamedTuple):
    """An earlier run in the form in which it was kept, and in that in which a backend was sent it.

    A backend takes a dataset with other facets than it was sent before for another version of it.
    """

    kept: LastRun = NO_LAST_RUN
    sent: LastRun = NO_LAST_RUN


def of_event(event: Mapping[str, Any]) -> LastRun:
    """Take the datasets out of a merged event that was kept.

    :param event: as :func:`airflow_provider_sparklineage.event.model.validate` gives it
    """
    return LastRun(
        str(event["run"].get("runId", "")),
        tuple(map(_known, event.get("inputs") or ())),
        tuple(map(_known, event.get("outputs") or ())),
    )


def _known(dataset: Mapping[str, Any]) -> LastRunDataset:
    facets = dataset.get("facets") or {}
    return LastRunDataset(
        dataset["namespace"],
        dataset["name"],
        {key: msgspec.Raw(msgspec.json.encode(facets[key])) for key in KEPT if key in facets},
    )
