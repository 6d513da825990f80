"""What an event is about, as DataHub's entities: each with its URN.

The parts of the conversion ask this object for URNs and make none themselves, so that a dataset and
a field have one name wherever they are mentioned.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.naming import urns
from airflow_provider_sparklineage.datahub.naming.identities import (
    Identity,
    Table,
    identity,
    is_named,
    tables,
)
from airflow_provider_sparklineage.datahub.naming.job_names import job_name
from airflow_provider_sparklineage.datahub.runs.dependencies import jobs_before
from airflow_provider_sparklineage.datahub.schema import field_paths
from airflow_provider_sparklineage.datahub.schema.schemas import by_urn
from airflow_provider_sparklineage.event.document import name_of
from airflow_provider_sparklineage.model.datasets import canonical

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.naming.job_names import JobName
    from airflow_provider_sparklineage.datahub.options import Conversion
    from airflow_provider_sparklineage.datahub.schema.field_paths import Naming
    from airflow_provider_sparklineage.datahub.schema.schema_fields import Schema
    from airflow_provider_sparklineage.event.document import Event, Facets
    from airflow_provider_sparklineage.model.datasets import DatasetName


class Dataset(NamedTuple):
    """A dataset of one side of the event.

    :param document: as the event has it; its facets may be absent
    """

    urn: str
    name: DatasetName
    document: dict[str, Any]

    @property
    def facets(self) -> Facets:
        """Give the facets of the dataset itself, whoever reads or writes it."""
        return lenient.mapping(self.document.get("facets"))

    def of_side(self, side: str) -> Facets:
        """Give the facets of this access, ``inputFacets`` or ``outputFacets``."""
        return lenient.mapping(self.document.get(side))


class Subject:
    """The entities of an event.

    :param event: with a header; of any producer, so that any facet may be absent or malformed
    """

    def __init__(self, event: Event, how: Conversion) -> None:
        self.event = event
        self.how = how
        self._urns: dict[DatasetName, str] = {}

    # --- the run ----------------------------------------------------------------------------------

    @property
    def run_facets(self) -> Facets:
        """Give the facets of the run."""
        return lenient.mapping(lenient.at(self.event, "run", "facets"))

    @property
    def job_facets(self) -> Facets:
        """Give the facets of the job."""
        return lenient.mapping(lenient.at(self.event, "job", "facets"))

    @property
    def state(self) -> str:
        """Give the event's type: START, RUNNING, COMPLETE, FAIL, ABORT, OTHER."""
        return str(self.event.get("eventType") or "OTHER")

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended, and the event has what it did."""
        return self.state in ("COMPLETE", "FAIL", "ABORT")

    @cached_property
    def time(self) -> int | None:
        """Give the time of the event in milliseconds since the epoch; None if it has none."""
        return lenient.millis(self.event.get("eventTime"))

    @cached_property
    def airflow(self) -> Facets:
        """Give what Airflow writes of a try, or of a DAG's run: dag, dagRun, task, taskInstance."""
        facets = self.run_facets
        return lenient.mapping(facets.get("airflow") or facets.get("airflowDagRun"))

    @cached_property
    def names(self) -> JobName:
        """Name the flow and the job: the DAG and the task."""
        return job_name(self.event)

    @cached_property
    def is_of_flow(self) -> bool:
        """Whether it is an event of a DAG's run, or of an application."""
        has_datasets = bool(self.event.get("inputs") or self.event.get("outputs"))
        return not self.names.job and not has_datasets

    @property
    def has_job(self) -> bool:
        """Whether there is a DataJob; one of a flow has none, nor has one that is of no job."""
        return bool(self.names.flow) and not self.is_of_flow

    @property
    def has_run(self) -> bool:
        """Whether there is a DataProcessInstance: OpenLineage has events of jobs and datasets."""
        return bool(self.names.flow and self._run_id) and self.time is not None

    @cached_property
    def flow(self) -> str:
        """Give the URN of the DataFlow: the DAG."""
        return self.names.flow_urn(self.how)

    @cached_property
    def job(self) -> str:
        """Give the URN of the DataJob: the task."""
        return self.names.job_urn(self.how)

    @cached_property
    def jobs_before(self) -> tuple[str, ...]:
        """Give the URNs of the jobs that have to end before this one starts."""
        return tuple(one.job_urn(self.how) for one in jobs_before(self.event, self.names))

    @cached_property
    def run(self) -> str:
        """Give the URN of the DataProcessInstance: the try."""
        return urns.process_instance(self._run_id)

    @property
    def _run_id(self) -> str:
        return lenient.text(lenient.at(self.event, "run", "runId")).strip()

    @cached_property
    def parent_run(self) -> str:
        """Give the URN of the run that this one is a part of; empty if there is none."""
        run_id = lenient.text(lenient.at(self.run_facets, "parent", "run", "runId")).strip()
        return urns.process_instance(run_id) if run_id else ""

    # --- datasets ---------------------------------------------------------------------------------

    @cached_property
    def inputs(self) -> tuple[Dataset, ...]:
        """Give what was read."""
        return tuple(map(self._dataset, self._documents("inputs")))

    @cached_property
    def outputs(self) -> tuple[Dataset, ...]:
        """Give what was written."""
        return tuple(map(self._dataset, self._documents("outputs")))

    def _documents(self, side: str) -> list[dict[str, Any]]:
        return list(filter(is_named, lenient.items(self.event.get(side))))

    def _dataset(self, document: dict[str, Any]) -> Dataset:
        name = name_of(document)
        return Dataset(self.dataset(name), name, document)

    @cached_property
    def _tables(self) -> dict[DatasetName, Table]:
        documents = [*self._documents("inputs"), *self._documents("outputs")]
        return tables(documents, follow=self.how.symlinks)

    def identity(self, name: DatasetName) -> Identity:
        """Give a dataset's identity in DataHub: that of its table, if it is the files of one."""
        table = self._tables.get(canonical(name)) or Table(name)
        return identity(table.name, self.how, table.platform)

    def files(self, name: DatasetName) -> str:
        """Give the URN that a dataset has by its own name, as where no symlink is known of it."""
        return identity(name, self.how).urn

    def dataset(self, name: DatasetName) -> str:
        """Give the URN of a dataset, which need not be on a side: column lineage names others."""
        if name not in self._urns:  # of each of a thousand columns the same ones
            self._urns[name] = self.identity(name).urn
        return self._urns[name]

    def field(self, name: DatasetName, column: str) -> str:
        """Give the URN of a column of a dataset."""
        return urns.schema_field(self.dataset(name), self.path(name, column))

    def path(self, name: DatasetName, column: str) -> str:
        """Give the field path of a column, as the dataset's ``SchemaMetadata`` has it."""
        urn = self.dataset(name)
        schema = self.schemas.get(urn)
        return schema.path(column) if schema else self.naming(urn).name(column)

    @cached_property
    def schemas(self) -> dict[str, Schema]:
        """Give the schemas that the event has, by the URN of their dataset."""
        return by_urn(self)

    def naming(self, urn: str) -> Naming:
        """Give how the fields of a dataset are called."""
        platform = urns.platform_of(urn).rpartition(":")[2]
        return field_paths.naming(platform, self.how.field_paths)
