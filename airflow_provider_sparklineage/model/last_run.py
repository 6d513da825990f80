"""The datasets that an earlier run of a task read and wrote, for the events of the next run.

The datasets of a run are known only when it has ended, and until then backends that show the latest
run would show no datasets. So the first events of a run have the datasets of an earlier run, with
the facets that identify a dataset and its version (:data:`KEPT`).
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from airflow_provider_sparklineage.model.datasets import DatasetName

KEPT = ("dataSource", "lifecycleStateChange", "schema", "symlinks")
"""The facets by which backends identify a dataset and its versions, which all runs share."""


class LastRunDataset(msgspec.Struct, frozen=True):
    """A dataset of an earlier run."""

    namespace: str
    name: str
    facets: dict[str, msgspec.Raw] = {}

    @property
    def dataset(self) -> DatasetName:
        """The dataset's namespace and name."""
        return DatasetName(self.namespace, self.name)


class LastRun(msgspec.Struct, frozen=True):
    """The datasets that an earlier run, usually the last successful one, read and wrote."""

    run_id: str = ""
    """OpenLineage run id of the earlier try; empty if it is not known."""
    inputs: tuple[LastRunDataset, ...] = ()
    outputs: tuple[LastRunDataset, ...] = ()

    @property
    def has_datasets(self) -> bool:
        """Whether the run read or wrote any dataset."""
        return bool(self.inputs or self.outputs)

    def only(self, *, inputs: bool, outputs: bool) -> LastRun:
        """Give a copy of the run without its inputs or its outputs.

        :param inputs: whether the copy has the inputs
        :param outputs: whether the copy has the outputs
        """
        return LastRun(self.run_id, self.inputs * inputs, self.outputs * outputs)


NO_LAST_RUN = LastRun()


class BothForms(NamedTuple):
    """An earlier run in two forms: as XCom or archive have it, and as it was sent to the backend.

    The sent form was adapted for the backend. It is needed because a backend makes a new version
    of a dataset that is sent with other facets than before.

    :param kept: the form that XCom or archive have
    :param sent: the form that the backend got
    :param versions_by_schema: whether the backend makes a version of a dataset for each schema that
        it meets in a run
    """

    kept: LastRun = NO_LAST_RUN
    sent: LastRun = NO_LAST_RUN
    versions_by_schema: bool = False
