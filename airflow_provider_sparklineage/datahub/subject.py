"""The entities of an event, each with its URN, and other values that all parts of a conversion use.

The input is an event of any producer, the output is a :class:`Subject`. The parts of the conversion
get URNs from the subject and make none themselves, so that a dataset or a field has the same name
everywhere.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from airflow_provider_sparklineage.datahub import naming
from airflow_provider_sparklineage.datahub.lenient import at, items, mapping, millis, text, texts
from airflow_provider_sparklineage.datahub.naming import (
    Identity,
    JobName,
    Table,
    identity,
    is_named,
    job_name,
    split_job_name,
    tables,
)
from airflow_provider_sparklineage.datahub.schema import Schema, naming_of_platform
from airflow_provider_sparklineage.event.model import (
    BARE_PARTITIONS_KEY,
    CHECK_KEY,
    PARTITIONS_KEY,
    name_of,
)
from airflow_provider_sparklineage.model.credentials import scrub
from airflow_provider_sparklineage.model.datasets import canonical

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.configuration import Conversion
    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.schema import Naming
    from airflow_provider_sparklineage.model.datasets import DatasetName


class Dataset(NamedTuple):
    """A dataset of one side of the event.

    :param urn: the dataset's URN in DataHub
    :param name: the dataset's name in the event
    :param document: the dataset as JSON, as the event has it; the facets may be absent
    """

    urn: str
    name: DatasetName
    document: dict[str, Any]

    @property
    def facets(self) -> Json:
        """Give the facets of the dataset itself, which do not depend on the access."""
        return mapping(self.document.get("facets"))

    @property
    def schema_fields(self) -> list[Json]:
        """Give the fields of the dataset's schema facet; [] if it has no such facet."""
        return items(at(self.facets, "schema", "fields"))

    def of_side(self, side: str) -> Json:
        """Give the facets of this access, ``inputFacets`` or ``outputFacets``."""
        return mapping(self.document.get(side))


class Subject:
    """The entities of an event.

    :param event: an event of any producer, so that any facet may be absent or malformed
    :param how: the configuration of the conversion
    """

    def __init__(self, event: Json, how: Conversion) -> None:
        self.event = event
        self.how = how
        self._urns: dict[DatasetName, str] = {}

    # --- the run ----------------------------------------------------------------------------------

    @property
    def run_facets(self) -> Json:
        """Give the facets of the run."""
        return mapping(at(self.event, "run", "facets"))

    @property
    def job_facets(self) -> Json:
        """Give the facets of the job."""
        return mapping(at(self.event, "job", "facets"))

    @property
    def state(self) -> str:
        """Give the event's type: START, RUNNING, COMPLETE, FAIL, ABORT, OTHER."""
        return str(self.event.get("eventType") or "OTHER")

    @property
    def has_ended(self) -> bool:
        """Whether the run has ended: only then does the event report the run's accesses."""
        return self.state in ("COMPLETE", "FAIL", "ABORT")

    @cached_property
    def time(self) -> int | None:
        """Give the event's time in milliseconds since the epoch; None if it cannot be read."""
        return millis(self.event.get("eventTime"))

    @cached_property
    def airflow(self) -> Json:
        """Give Airflow's facet of a try or of a DAG's run: dag, dagRun, task, taskInstance."""
        facets = self.run_facets
        return mapping(facets.get("airflow") or facets.get("airflowDagRun"))

    @cached_property
    def names(self) -> JobName:
        """Give the names of the flow and the job; in Airflow, these are the DAG and the task."""
        return job_name(self.event)

    @cached_property
    def is_of_flow(self) -> bool:
        """Whether the event is of a DAG's run or of an application, not of a job in it."""
        has_datasets = bool(self.event.get("inputs") or self.event.get("outputs"))
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
        return bool(self.names.flow and self._run_id) and self.time is not None

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
        """Give the URNs of the jobs that have to end before this job starts."""
        return tuple(one.job_urn(self.how) for one in jobs_before(self.event, self.names))

    @cached_property
    def run(self) -> str:
        """Give the URN of the DataProcessInstance; in Airflow, the run of a task is a try."""
        return naming.process_instance_urn(self._run_id)

    @property
    def _run_id(self) -> str:
        return text(at(self.event, "run", "runId")).strip()

    @cached_property
    def parent_run(self) -> str:
        """Give the URN of the run that this run is a part of; empty if the event names none."""
        run_id = text(at(self.run_facets, "parent", "run", "runId")).strip()
        return naming.process_instance_urn(run_id) if run_id else ""

    # --- datasets ---------------------------------------------------------------------------------

    @cached_property
    def inputs(self) -> tuple[Dataset, ...]:
        """Give the datasets that the run read."""
        return tuple(map(self._dataset, self._documents("inputs")))

    @cached_property
    def outputs(self) -> tuple[Dataset, ...]:
        """Give the datasets that the run wrote."""
        return tuple(map(self._dataset, self._documents("outputs")))

    def _documents(self, side: str) -> list[dict[str, Any]]:
        return list(filter(is_named, items(self.event.get(side))))

    def _dataset(self, document: dict[str, Any]) -> Dataset:
        name = name_of(document)
        return Dataset(self.dataset(name), name, document)

    @cached_property
    def _tables(self) -> dict[DatasetName, Table]:
        documents = [*self._documents("inputs"), *self._documents("outputs")]
        return tables(documents, follow=self.how.symlinks)

    def identity(self, name: DatasetName) -> Identity:
        """Give a dataset's identity in DataHub; the files of a table have the table's identity.

        If ``symlinks`` is false in the configuration, files have an identity of their own.
        """
        table = self._tables.get(canonical(name)) or Table(name)
        return identity(table.name, self.how, table.platform)

    def files(self, name: DatasetName) -> str:
        """Give the URN that a dataset has by its own name, without any symlink."""
        return identity(name, self.how).urn

    def dataset(self, name: DatasetName) -> str:
        """Give the URN of a dataset, also of one that is neither an input nor an output.

        Column lineage may name such a dataset.
        """
        if name not in self._urns:  # a thousand columns name the same few datasets
            self._urns[name] = self.identity(name).urn
        return self._urns[name]

    def field(self, name: DatasetName, column: str) -> str:
        """Give the URN of a column of a dataset."""
        return naming.schema_field_urn(self.dataset(name), self.path(name, column))

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
        checked = _checked_datasets(self.run_facets)
        found: dict[str, Schema] = {}
        for dataset in (*self.outputs, *self.inputs):
            fields = dataset.schema_fields
            if fields and dataset.urn not in found:
                columns = _partitioning_columns(dataset, checked)
                found[dataset.urn] = Schema(fields, self.naming(dataset.urn), columns)
        return found

    def naming(self, urn: str) -> Naming:
        """Give the rules for naming the fields of the dataset with this URN."""
        platform = naming.platform_urn_of(urn).rpartition(":")[2]
        return naming_of_platform(platform, self.how.field_paths)


def _partitioning_columns(dataset: Dataset, checked: dict[DatasetName, Json]) -> frozenset[str]:
    """Give the columns that a dataset is partitioned by, directly or through a transform.

    For an input, only the run's facet ``sparkLineage_partitionCheck`` has these columns.
    """
    entries = (
        at(dataset.facets, PARTITIONS_KEY),
        at(dataset.facets, BARE_PARTITIONS_KEY),
        checked.get(dataset.name),
    )
    dimensions = chain.from_iterable(items(at(entry, "dimensions")) for entry in entries)
    return frozenset(chain.from_iterable(texts(one.get("fields")) for one in dimensions))


def _checked_datasets(run_facets: Json) -> dict[DatasetName, Json]:
    check = at(run_facets, CHECK_KEY)
    entries = chain(items(at(check, "reads")), items(at(check, "writes")))
    named = ((mapping(entry.get("dataset")), entry) for entry in entries)
    return {name_of(dataset): entry for dataset, entry in named if is_named(dataset)}


ACTOR = "urn:li:corpuser:datahub"
"""DataHub's user for changes that no person makes; DataHub's own connectors use this user, too."""


def audit_stamp(subject: Subject) -> Json:
    """Give DataHub's ``AuditStamp`` with the event's time, or 0 if that time cannot be read."""
    return {"time": subject.time or 0, "actor": ACTOR}


# --- dependencies ---------------------------------------------------------------------------------

MAX_DEPENDENCIES = 500
"""The most jobs before a job, or runs before a run; hardly any task comes after more jobs."""
_TASK_ID = re.compile(r"'([^']+)'")  # Airflow writes lists of ids as Python does: ['a', 'b']


def jobs_before(event: Json, name: JobName) -> list[JobName]:
    """List the jobs that have to end before the event's job starts, each once.

    For a task of Airflow these are the tasks before it in its DAG, and the tasks of another DAG
    that a sensor waits for (``airflow`` facet, ``ExternalTaskSensor``). After them come the jobs
    in the facet ``jobDependencies``, for any producer.

    :param name: the event's own job
    """
    facets = mapping(at(event, "run", "facets"))
    task = mapping(at(facets, "airflow", "task"))
    found = [
        *(name._replace(job=job) for job in _task_ids(task.get("upstream_task_ids"))),
        *_waited_for(task, name.orchestrator),
        *(split_job_name(name.orchestrator, job) for job in _names_of_jobs_before(facets)),
    ]
    return list(dict.fromkeys(one for one in found if one != name))[:MAX_DEPENDENCIES]


def runs_before(event: Json) -> list[str]:
    """List the ids of the runs that triggered the event's run, each once (``jobDependencies``)."""
    found = (
        text(at(one, "run", "runId")).strip()
        for one in _job_dependencies(at(event, "run", "facets"))
    )
    return list(dict.fromkeys(filter(None, found)))[:MAX_DEPENDENCIES]


def _waited_for(task: dict[str, Any], orchestrator: str) -> list[JobName]:
    flow = text(task.get("external_dag_id"))
    ids = [text(task.get("external_task_id")), *_task_ids(task.get("external_task_ids"))]
    return [JobName(orchestrator, flow, job) for job in ids if flow and job]


def _task_ids(value: Any) -> list[str]:
    """Read the ids of tasks from a list, or from a list that was written as text, and sort them.

    Airflow's facet has such a text, made of a set: the order of the ids in the text is by chance.
    """
    return sorted(_TASK_ID.findall(value) if isinstance(value, str) else texts(value))


def _names_of_jobs_before(facets: Json) -> list[str]:
    return [name for one in _job_dependencies(facets) if (name := text(at(one, "job", "name")))]


def _job_dependencies(facets: Any) -> list[dict[str, Any]]:
    return items(at(facets, "jobDependencies", "upstream"))


# Addresses of Airflow's pages. The event of a task instance has the address of the log, from which
# the functions below make the addresses of the other pages. Airflow's provider sends no address of
# any other page, and the events of a DAG's run have no address at all.

_MAX_URL = 2000
_WEB_SCHEMES = ("http://", "https://")


def dag_page(subject: Subject) -> str:
    """Give the URL of a DAG's page; empty if the event has no address of a log."""
    base, found, _ = task_instance_page(subject).partition("/dags/")
    return f"{base}/dags/{quote(subject.names.flow, safe='')}" if found else ""


def task_page(subject: Subject) -> str:
    """Give the URL of the page with all runs of a task; empty if the event has no address."""
    page = dag_page(subject)
    return f"{page}/tasks/{quote(subject.names.job, safe='')}" if page else ""


def task_instance_page(subject: Subject) -> str:
    """Give the URL of a try's log; empty if the event has no such address."""
    return web_page(at(subject.airflow, "taskInstance", "log_url"))


def web_page(value: object) -> str:
    """Give an HTTP address without credentials; empty if the value is too long or no address."""
    found = value if isinstance(value, str) else ""
    return scrub(found) if found.startswith(_WEB_SCHEMES) and len(found) <= _MAX_URL else ""
