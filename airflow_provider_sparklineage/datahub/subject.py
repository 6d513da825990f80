"""The entities of an event, each with its URN, and other values that all parts of a conversion use.

The input is an event of any producer, the output is a :class:`Subject`. The parts of the conversion
get URNs from the subject and make none themselves, so that a dataset or a field has the same name
everywhere.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow_provider_sparklineage.datahub import naming
from airflow_provider_sparklineage.datahub.naming import JobName
from airflow_provider_sparklineage.datahub.proposals import ACTOR, stored
from airflow_provider_sparklineage.datahub.schema import Schema, naming_of_platform
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.datasets import DatasetName, canonical
from airflow_provider_sparklineage.model.terms import Frozen, Side

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.configuration import Conversion
    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.schema import Naming


class Dataset(Frozen, frozen=True, dict=True):
    """An input or an output of the event.

    :param urn: the dataset's URN in DataHub
    :param name: the dataset's name in the event
    :param facets: the facets of the dataset itself, which do not depend on the access
    :param of_side: the facets of this access, ``inputFacets`` or ``outputFacets``
    """

    urn: str
    name: DatasetName
    facets: model.Facets
    of_side: model.Facets

    @cached_property
    def side(self) -> model.SideFacets:
        """Give the input or output facets of this access, decoded as :class:`.model.SideFacets`."""
        return model.fitted(self.of_side, model.SideFacets)

    @cached_property
    def schema_fields(self) -> list[model.NestedField]:
        """Give the fields of the dataset's schema facet; [] if it has no such facet."""
        return model.read_facet(self.facets, "schema", model.NestedSchema).fields or []

    @cached_property
    def partitions(self) -> model.Partitions:
        """Give the facet ``sparkLineage_partitions``; an empty facet if it is absent."""
        return model.read_facet(self.facets, model.PARTITIONS_KEY, model.Partitions)

    @cached_property
    def lifecycle(self) -> str:
        """Give the lifecycle change: CREATE, OVERWRITE, TRUNCATE, …; empty if it is not known."""
        return stored(
            model.read_facet(self.facets, model.LIFECYCLE_KEY, model.Lifecycle).change or ""
        )


class Subject:
    """The entities of an event.

    :param event: an event of any producer, so that any facet may be absent or malformed
    :param how: the configuration of the conversion
    """

    def __init__(self, event: Json, how: Conversion) -> None:
        self.event = model.fitted(event, model.PlainEvent)
        self.how = how
        self._urns: dict[DatasetName, str] = {}
        self._fields: dict[tuple[DatasetName, str], str] = {}

    # --- the run ----------------------------------------------------------------------------------

    @property
    def run_facets(self) -> model.Facets:
        """Give the facets of the run."""
        return self.event.run.facets

    @property
    def job_facets(self) -> model.Facets:
        """Give the facets of the job."""
        return self.event.job.facets

    @property
    def state(self) -> str:
        """Give the event's type: START, RUNNING, COMPLETE, FAIL, ABORT, OTHER."""
        return self.event.eventType or "OTHER"

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended: only then does the event report the run's accesses."""
        return self.state in ("COMPLETE", "FAIL", "ABORT")

    @cached_property
    def time(self) -> int | None:
        """Give the event's time in milliseconds since the epoch; None if it cannot be read."""
        return millis(self.event.eventTime)

    @property
    def _airflow_key(self) -> str:
        return "airflow" if self.run_facets.get("airflow") else "airflowDagRun"

    @cached_property
    def airflow(self) -> model.AirflowFacet:
        """Give Airflow's facet of a try or of a DAG's run; an empty facet if it is absent."""
        return model.read_facet(self.run_facets, self._airflow_key, model.AirflowFacet)

    @cached_property
    def airflow_values(self) -> dict[str, dict[str, model.Value]]:
        """Give the values of Airflow's facet by part (dag, dagRun, task, taskInstance) and key."""
        return model.read_facet(
            self.run_facets, self._airflow_key, dict[str, dict[str, model.Value]]
        )

    @property
    def task(self) -> model.Task:
        """Give the task of Airflow; an empty one if the event has none."""
        return self.airflow.task or model.Task()

    @property
    def task_instance(self) -> model.TaskInstance:
        """Give the try of Airflow's task; an empty one if the event has none."""
        return self.airflow.task_instance or model.TaskInstance()

    @property
    def dag_run(self) -> model.DagRun:
        """Give the run of Airflow's DAG; an empty one if the event has none."""
        return self.airflow.dag_run or model.DagRun()

    @cached_property
    def capture(self) -> model.Capture:
        """Give the facet ``sparkLineage_capture``; an empty facet if it is absent."""
        return model.read_facet(self.run_facets, model.CAPTURE_KEY, model.Capture)

    @cached_property
    def check(self) -> model.Check:
        """Give the facet ``sparkLineage_partitionCheck``; an empty facet if it is absent."""
        return model.read_facet(self.run_facets, model.CHECK_KEY, model.Check)

    @cached_property
    def names(self) -> JobName:
        """Give the names of the flow and the job; in Airflow, these are the DAG and the task."""
        return naming.job_name(self.event)

    @cached_property
    def is_of_flow(self) -> bool:
        """Whether the event is of a DAG's run or of an application, not of a job in it."""
        has_datasets = bool(self.event.inputs or self.event.outputs)
        return not self.names.job and not has_datasets

    @property
    def has_job(self) -> bool:
        """Whether the event has a DataJob; False for an event of a flow, or without a job name."""
        return bool(self.names.flow) and not self.is_of_flow

    @property
    def has_run(self) -> bool:
        """Whether the event has a DataProcessInstance: it has a flow, a run id and a time.

        OpenLineage also has events of a job or a dataset alone, which have no run.
        """
        return bool(self.names.flow and self.event.run.runId.strip()) and self.time is not None

    @cached_property
    def flow(self) -> str:
        """Give the URN of the DataFlow; in Airflow, the flow is the DAG."""
        return self.names.flow_urn(self.how)

    @cached_property
    def job(self) -> str:
        """Give the URN of the DataJob; in Airflow, the job is the task."""
        return self.names.job_urn(self.how)

    @cached_property
    def jobs_before(self) -> tuple[str, ...]:
        """Give the URNs of the jobs that must end before this job starts, each job once.

        For a task of Airflow these are the tasks before it in its DAG, and the tasks of another DAG
        that a sensor waits for (``airflow`` facet, ``ExternalTaskSensor``). After them come the
        jobs in the facet ``jobDependencies``, for any producer.
        """
        own, task = self.names, self.task
        flow = stored(task.external_dag_id or "")
        waited_for = [stored(task.external_task_id or ""), *_task_ids(task.external_task_ids)]
        others = (stored(one.job.name) for one in self.dependencies if one.job.name)
        names = [
            *(own._replace(job=job) for job in _task_ids(task.upstream_task_ids)),
            *(JobName(own.orchestrator, flow, job) for job in waited_for if flow and job),
            *(naming.split_job_name(own.orchestrator, name) for name in others),
        ]
        once = list(dict.fromkeys(name for name in names if name != own))
        return tuple(name.job_urn(self.how) for name in once[:MAX_DEPENDENCIES])

    @cached_property
    def run(self) -> str:
        """Give the URN of the run's DataProcessInstance; each try of an Airflow task has one."""
        return naming.process_instance_urn(stored(self.event.run.runId))

    @cached_property
    def parent_run(self) -> str:
        """Give the URN of the run that this run is a part of; empty if the event names none."""
        return _run_urn(model.read_facet(self.run_facets, "parent", model.Parent).run)

    @cached_property
    def runs_before(self) -> list[str]:
        """Give the URNs of the runs that triggered this run, each once (``jobDependencies``)."""
        urns = (_run_urn(one.run) for one in self.dependencies)
        return list(dict.fromkeys(filter(None, urns)))[:MAX_DEPENDENCIES]

    @cached_property
    def dependencies(self) -> list[model.JobDependency]:
        """Give the upstream entries of ``jobDependencies``: jobs or runs before this one."""
        return model.read_facet(self.run_facets, "jobDependencies", model.JobDependencies).upstream

    # --- datasets ---------------------------------------------------------------------------------

    @cached_property
    def inputs(self) -> tuple[Dataset, ...]:
        """Give the datasets that the run read."""
        return tuple(
            Dataset(self.dataset(name), name, one.facets, one.inputFacets)
            for one in self.event.inputs
            if (name := one.dataset_name).name
        )

    @cached_property
    def outputs(self) -> tuple[Dataset, ...]:
        """Give the datasets that the run wrote."""
        return tuple(
            Dataset(self.dataset(name), name, one.facets, one.outputFacets)
            for one in self.event.outputs
            if (name := one.dataset_name).name
        )

    @cached_property
    def _tables(self) -> dict[DatasetName, naming.Table]:
        named = (one for one in (*self.event.inputs, *self.event.outputs) if one.name)
        return naming.tables(named, follow=self.how.symlinks)

    def identity(self, name: DatasetName) -> naming.Identity:
        """Give the dataset of DataHub for a name; the files of a table are the table's dataset.

        If ``symlinks`` is false in the configuration, the files are a dataset of their own.
        """
        table = self._tables.get(canonical(name)) or naming.Table(name)
        return naming.identity(table.name, self.how, table.platform)

    def files(self, name: DatasetName) -> str:
        """Give the URN of a dataset by its own name, even if a symlink says that it is a table."""
        return naming.identity(name, self.how).urn

    def dataset(self, name: DatasetName) -> str:
        """Give the URN of a dataset that the event names.

        Column lineage may also name datasets that are neither inputs nor outputs.
        """
        if name not in self._urns:  # a thousand columns name the same few datasets
            self._urns[name] = self.identity(name).urn
        return self._urns[name]

    def field(self, name: DatasetName, column: str) -> str:
        """Give the URN of a column of a dataset."""
        if (name, column) not in self._fields:  # an output's columns have the same few sources
            urn = naming.schema_field_urn(self.dataset(name), self.path(name, column))
            self._fields[name, column] = urn
        return self._fields[name, column]

    def path(self, name: DatasetName, column: str) -> str:
        """Give the field path of a column, as the dataset's ``SchemaMetadata`` has it."""
        urn = self.dataset(name)
        schema = self.schemas.get(urn)
        return schema.path(column) if schema else self.naming(urn).name(column)

    @cached_property
    def schemas(self) -> dict[str, Schema]:
        """Give the schemas that the event has, by the URN of their dataset.

        For a dataset that was both read and written, this is the schema of the output, because the
        dataset has that schema after the run.
        """
        entries = (one for side in Side for one in self.check.of_side(side))
        checked = {one.dataset.dataset_name: one for one in entries}
        schemas: dict[str, Schema] = {}
        for dataset in (*self.outputs, *self.inputs):
            fields = dataset.schema_fields
            if fields and dataset.urn not in schemas:
                columns = _partitioning_columns(dataset, checked)
                schemas[dataset.urn] = Schema(fields, self.naming(dataset.urn), columns)
        return schemas

    def naming(self, urn: str) -> Naming:
        """Give the rules for naming the fields of the dataset with this URN."""
        platform = naming.platform_urn_of(urn).rpartition(":")[2]
        return naming_of_platform(platform, self.how.field_paths)


def _partitioning_columns(
    dataset: Dataset, checked: dict[DatasetName, model.Checked]
) -> frozenset[str]:
    """Give the columns that a dataset is partitioned by, directly or through a transform.

    For an input, only the run's facet ``sparkLineage_partitionCheck`` has these columns.

    :param checked: the entries of that facet, by dataset
    """
    entry = checked.get(dataset.name)
    bare = model.read_facet(dataset.facets, model.BARE_PARTITIONS_KEY, model.Partitions)
    dimensions = chain(
        dataset.partitions.dimensions or (),
        bare.dimensions or (),
        (entry and entry.dimensions) or (),
    )
    return frozenset(stored(column) for one in dimensions for column in one.fields or ())


def _run_urn(run: model.Id | None) -> str:
    run_id = stored((run and run.runId) or "").strip()
    return naming.process_instance_urn(run_id) if run_id else ""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def millis(time: str | None) -> int | None:
    """Convert a time of ISO 8601 to milliseconds since the epoch; None if it cannot be parsed.

    A time without a zone is read as UTC.
    """
    try:
        moment = datetime.fromisoformat(time or "")
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None


def audit_stamp(subject: Subject) -> Json:
    """Give DataHub's ``AuditStamp`` with the event's time, or 0 if that time cannot be read."""
    return {"time": subject.time or 0, "actor": ACTOR}


# --- dependencies ---------------------------------------------------------------------------------

MAX_DEPENDENCIES = 500
"""The most jobs before a job, or runs before a run; hardly any task comes after more jobs."""
_TASK_ID = re.compile(r"'([^']+)'")  # Airflow writes lists of ids as Python does: ['a', 'b']


def _task_ids(ids: str | list[str] | None) -> list[str]:
    """Read the ids of tasks from a list, or from a list that was written as text, and sort them.

    Airflow's facet has such a text, made of a set: the order of the ids in the text is by chance.
    """
    listed = _TASK_ID.findall(ids) if isinstance(ids, str) else map(stored, ids or ())
    return sorted(filter(None, listed))


# Addresses of Airflow's pages. The event of a task instance has the address of the log, from which
# the functions below make the addresses of the other pages. Airflow's provider sends no address of
# any other page, and the events of a DAG's run have no address at all.

_MAX_URL = 2000
_WEB_SCHEMES = ("http://", "https://")


def dag_page(subject: Subject) -> str:
    """Give the URL of the DAG's page, from the URL of a log; empty if the event has no such URL."""
    base, is_page, _ = task_instance_page(subject).partition("/dags/")
    return f"{base}/dags/{quote(subject.names.flow, safe='')}" if is_page else ""


def task_page(subject: Subject) -> str:
    """Give the URL of the page with all runs of a task; empty if :func:`dag_page` is empty."""
    page = dag_page(subject)
    return f"{page}/tasks/{quote(subject.names.job, safe='')}" if page else ""


def task_instance_page(subject: Subject) -> str:
    """Give the URL of a try's log; empty if the event does not have it."""
    return web_page(subject.task_instance.log_url or "")


def web_page(url: str) -> str:
    """Give an HTTP URL without credentials; empty if the text is too long, or no HTTP URL."""
    return scrub(url) if url.startswith(_WEB_SCHEMES) and len(url) <= _MAX_URL else ""
