"""The content of an event, typed: OpenLineage's keys, and those of this package's own facets.

Keys without a field in these classes are ignored. A key that may be absent may also be null.

An event can come from any producer, so each part of it can have any shape. An event of the right
shape, as nearly all are, is decoded in one go. In any other event each part is decoded by itself: a
part of the right shape is the same as in a valid event, an element of a wrong shape is left out of
its list or map, and a key with a value of a wrong shape counts as absent. The left-out parts are
counted.

A reader of many facets, as the conversion for DataHub is, reads them one by one
(:func:`read_facet`).
"""

from __future__ import annotations

import json
import types
from functools import cache, cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Meta, Struct, field

from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# --- names ----------------------------------------------------------------------------------------


# Keys of facets that several modules name; those of this package begin with its name.
CAPTURE_KEY = "sparkLineage_capture"
CHECK_KEY = "sparkLineage_partitionCheck"
PARTITIONS_KEY = "sparkLineage_partitions"
DESCRIPTION_KEY = "sparkLineage_subsetDescription"
SUBSET_KEY = "subset"
BARE_PARTITIONS_KEY = "partitions"
COLUMNS_KEY = "columnLineage"
LIFECYCLE_KEY = "lifecycleStateChange"
DOCUMENTATION_KEY = "documentation"
LINEAGE_KEY = "lineage"
ASSERTIONS_KEY = "dataQualityAssertions"
TEST_KEY = "test"
CARRIERS = (CAPTURE_KEY, TEST_KEY)
"""The run facets that can carry the neutral event: the first of them that an event has."""

PARTITION_TEXTS = {
    Side.READ: "read the expected partitions",
    Side.WRITE: "wrote the expected partitions",
}
"""The texts of the assertions of the partition check, in the facet ``dataQualityAssertions``."""
FRESHNESS_TEXTS = ("is up to date", "has up-to-date partitions")
"""The texts of the assertions of the freshness check: of all partitions, and of chosen ones."""


def name_of(dataset: dict[str, Any]) -> DatasetName:
    """Give the name of a dataset in an event, or of another object with the same two keys."""
    return DatasetName(dataset["namespace"], dataset["name"])


# --- shapes ---------------------------------------------------------------------------------------


Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
"""A number that is not negative and fits into a ``BIGINT``."""
NOT_KNOWN = -1
"""In place of a number in the lists ``rows`` and ``bytes`` of ``sparkLineage_partitions``."""
Value = str | int | float | bool | None


class Name(Struct):
    """An object with a ``namespace`` and a ``name``."""

    namespace: str
    name: str

    @property
    def dataset_name(self) -> DatasetName:
        """The namespace and the name, as the name of a dataset."""
        return DatasetName(self.namespace, self.name)


# --- the run --------------------------------------------------------------------------------------


class Id(Struct):
    """A reference to a run: its id."""

    runId: str | None = None  # noqa: N815  (OpenLineage's names, here and below)


class Root(Struct):
    """The topmost of a run's ancestors."""

    run: Id | None = None


class Job(Struct):
    """The job of an event, or of a run that an event refers to."""

    namespace: str | None = None
    name: str | None = None


class Parent(Struct):
    """Run facet ``parent``."""

    run: Id | None = None
    root: Root | None = None
    job: Job | None = None


class NominalTime(Struct):
    """Run facet ``nominalTime``; for a task of Airflow it is the data interval."""

    nominalStartTime: str | None = None  # noqa: N815
    nominalEndTime: str | None = None  # noqa: N815


class Dag(Struct):
    """A DAG, in Airflow's run facets."""

    dag_id: str | None = None
    owner: str | None = None


class DagRun(Struct):
    """A DAG run, in Airflow's run facets; ``execution_date`` is Airflow 2's logical date."""

    run_id: str | None = None
    run_type: str | None = None
    start_date: str | None = None
    logical_date: str | None = None
    execution_date: str | None = None
    data_interval_start: str | None = None
    data_interval_end: str | None = None
    partition_key: str | None = None


class TaskGroup(Struct):
    """A group of tasks, in Airflow's run facet."""

    group_id: str | None = None


class Task(Struct):
    """A task, in Airflow's run facet; Airflow writes some lists of ids as text: ``['a', 'b']``."""

    task_id: str | None = None
    task_group: TaskGroup | None = None
    upstream_task_ids: str | list[str] | None = None
    external_dag_id: str | None = None
    external_task_id: str | None = None
    external_task_ids: str | list[str] | None = None


class TaskInstance(Struct):
    """A try, in Airflow's run facet; ``map_index`` is absent if the task is not mapped."""

    try_number: int | None = None
    map_index: int | None = None
    start_date: str | None = None
    duration: float | None = None
    log_url: str | None = None


class AirflowFacet(Struct):
    """Run facets ``airflow`` of a task, and ``airflowDagRun`` of a DAG run."""

    dag: Dag | None = None
    dag_run: DagRun | None = field(name="dagRun", default=None)
    task: Task | None = None
    task_instance: TaskInstance | None = field(name="taskInstance", default=None)


# --- this package's run facets --------------------------------------------------------------------


class Counted(Struct):
    """Some partitions: their number, the first and the last one, and a summary for people."""

    summary: str | None = None
    count: Count | None = None
    first: str | None = None
    last: str | None = None


class Seen(Struct):
    """An entry of ``sparkLineage_capture.datasets``: an access to a dataset, and its reporter.

    :param witness: the reporter of the access: listener, observer, both, or a declaration; see
        :class:`~airflow_provider_sparklineage.model.terms.Witness`
    :param accessed: the extent of the access, e.g. ``all`` or ``part``
    :param planned: number of partitions that Spark only planned to read
    :param removed: number of partitions that a write emptied
    :param attempt: number of the last attempt of the driver that accessed it, if a later one did
        not
    """

    dataset: Name
    side: str
    witness: str | None = None
    accessed: str | None = None
    planned: Count | None = None
    removed: Count | None = None
    failed: bool | None = None
    writes: Count | None = None
    attempt: Count | None = None


class Missing(Struct):
    """A degradation: a missing part of the lineage, with the reason."""

    code: str | None = None
    message: str | None = None


class Maintained(Struct):
    """An entry of ``sparkLineage_capture.maintenance``: a table, and a command about its files."""

    dataset: Name
    operation: str | None = None


class Capture(Struct):
    """Run facet ``sparkLineage_capture``."""

    maintenance: list[Maintained] | None = None
    datasets: list[Seen] | None = None
    degradations: list[Missing] | None = None
    degradationCounts: dict[str, Count] | None = None  # noqa: N815
    datasetCounts: dict[str, Count] | None = None  # noqa: N815
    applicationId: Value = None  # noqa: N815
    sparkVersion: Value = None  # noqa: N815
    actions: Value = None
    attempts: Count | None = None

    @property
    def unlisted(self) -> int:
        """The number of degradations that are counted but not listed."""
        counted = sum((self.degradationCounts or {}).values())
        return max(0, counted - len(self.degradations or ()))


class Condition(Struct, omit_defaults=True):
    """A condition of the facet ``subset``, of any of its types.

    :param left: left side of a comparison or a binary condition
    :param right: its right side
    """

    type: str | None = None
    partitions: list[NamedPartition] | None = None
    locations: list[str] | None = None
    left: Condition | None = None
    comparison: str | None = None
    operator: str | None = None
    right: Condition | None = None
    field: str | None = None
    value: Value = None


class NamedPartition(Struct, omit_defaults=True):
    """A partition of a condition, by its dimensions, or by an identifier if these are not known."""

    dimensions: dict[str, Value] | None = None
    identifier: str | None = None


class ValueSource(Struct):
    """The source of an expected value: a template, a declaration, or an argument."""

    value: str = ""
    kind: str = ""
    field: str = ""
    template: str = ""
    dimension: str | None = None
    expressions: list[str] | None = None


class Checked(Struct):
    """An entry of ``sparkLineage_partitionCheck``: a dataset's expected and observed partitions."""

    dataset: Name
    summary: str | None = None
    status: str | None = None
    dimensions: list[Dimension] | None = None
    sources: list[ValueSource] | None = field(name="from", default=None)
    accessed: str | None = None
    condition: Condition | None = None
    expected: Counted | None = None
    observed: Counted | None = None
    planned: Counted | None = None
    removed: Counted | None = None
    unexpected: Counted | None = None
    missing: Counted | None = None
    failed: bool | None = None
    unreported: str | None = None

    def how(self, side: str) -> str:
        """Give the verb for the access, e.g. ``read``, ``was to write`` or ``declared to read``.

        :param side: whether the entry is about a read or a write
        """
        if self.failed:
            return "was to write"
        if self.unreported:
            return f"{self.unreported.replace('_', ' ')} to {side}"
        if self.planned and self.observed and self.planned.count == self.observed.count:
            return "planned to read"
        if self.accessed == "removed":
            return "removed from"
        return "read" if side == Side.READ else "wrote"

    @property
    def part(self) -> str:
        """The accessed part in a few words: the summary without the dataset's name."""
        label = self.dataset.name.rstrip("/").rpartition("/")[2]
        return (self.summary or "").removeprefix(label).lstrip(", ")


class Check(Struct):
    """Run facet ``sparkLineage_partitionCheck``."""

    summary: str | None = None
    status: str | None = None
    reads: list[Checked] | None = None
    writes: list[Checked] | None = None

    def of_side(self, side: str) -> list[Checked]:
        """Give the entries of the reads, or of the writes; [] if there are none.

        :param side: ``read`` or ``write``
        """
        return (self.reads if side == Side.READ else self.writes) or []


class RunFacets(Struct):
    """Facets of a run."""

    parent: Parent | None = None
    nominal_time: NominalTime | None = field(name="nominalTime", default=None)
    airflow: AirflowFacet | None = None
    airflow_dag_run: AirflowFacet | None = field(name="airflowDagRun", default=None)
    capture: Capture | None = field(name=CAPTURE_KEY, default=None)
    check: Check | None = field(name=CHECK_KEY, default=None)


class Run(Struct):
    """The run of an event."""

    runId: str | None = None  # noqa: N815
    facets: RunFacets | None = None


# --- datasets -------------------------------------------------------------------------------------


# An event can have 100,000 sources of columns. They are in no cycle, and Python's garbage
# collector need not walk through them: hence ``gc=False``, and tuples, which it does not track.


class Transformation(Struct, gc=False):
    """A transformation of a column's source."""

    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class InputField(Name, gc=False):
    """An entry of ``inputFields``: a column that is a source of an output's column."""

    field: str
    transformations: tuple[Transformation, ...] | None = None


class ColumnSources(Struct, gc=False):
    """The sources of a column.

    The specification has deprecated ``transformationType`` and ``transformationDescription``. They
    are read because some producers give only these, and no ``transformations`` in ``inputFields``.
    """

    inputFields: list[InputField] | None = None  # noqa: N815
    transformationType: str | None = None  # noqa: N815
    transformationDescription: str | None = None  # noqa: N815


class ColumnLineage(Struct):
    """Dataset facet ``columnLineage``."""

    fields: dict[str, ColumnSources] | None = None
    dataset: list[InputField] | None = None

    @property
    def sources(self) -> Iterator[InputField]:
        """The sources of each column in the facet's order, then those of the whole dataset."""
        for column in (self.fields or {}).values():
            yield from column.inputFields or ()
        yield from self.dataset or ()


class SchemaField(Struct):
    """A column of a dataset."""

    name: str
    type: str | None = None


class Schema(Struct):
    """Dataset facet ``schema``, without the fields of nested columns."""

    fields: list[SchemaField] | None = None


class NestedField(Struct, gc=False):
    """A column with its nested fields; a field of an array or of a map may have no name."""

    name: str = ""
    type: str | None = None
    description: str | None = None
    fields: list[NestedField] | None = None


class NestedSchema(Struct):
    """Dataset facet ``schema``, down to the fields of nested columns."""

    fields: list[NestedField] | None = None


class Lifecycle(Struct):
    """Dataset facet ``lifecycleStateChange``."""

    change: str | None = field(name=LIFECYCLE_KEY, default=None)


class Dimension(Struct):
    """A dimension of a dataset's partitioning."""

    fields: list[str] | None = None
    transform: str | None = None


class Removed(Counted):
    """The partitions that a write emptied; they are listed unless they are too many."""

    partitions: list[NamedPartition] | None = None


class Figures(NamedTuple):
    """The rows and bytes that a run added to a partition; None if not known."""

    rows: int | None
    size: int | None


def _number(number: int) -> int | None:
    return number if number >= 0 else None


class Partitions(Counted):
    """Dataset facet ``sparkLineage_partitions``: an output's partitioning, and its partitions."""

    dimensions: list[Dimension] | None = None
    removed: Removed | None = None
    replaced: str | None = None
    rows: list[int] | None = None
    sizes: list[int] | None = field(name="bytes", default=None)

    def figures(self, count: int) -> list[Figures]:
        """Give rows and bytes of each of the named partitions; [] if none are known.

        :param count: the number of partitions that the output's subset names
        """
        rows, sizes = self.rows or (), self.sizes or ()
        if not count or {len(rows), len(sizes)} - {0, count}:
            return []
        return [
            Figures(_number(row), _number(size))
            for row, size in zip_longest(rows, sizes, fillvalue=NOT_KNOWN)
        ]


class Produced(Struct):
    """A facet; only its producer is decoded."""

    producer: str | None = field(name="_producer", default=None)


class DatasetFacets(Struct):
    """Facets of a dataset; the large ones stay JSON text until their content is needed."""

    schema: msgspec.Raw = msgspec.Raw()
    lifecycle: Lifecycle | None = field(name=LIFECYCLE_KEY, default=None)
    column_lineage: msgspec.Raw = field(name=COLUMNS_KEY, default=msgspec.Raw())
    partitions: Partitions | None = field(name=PARTITIONS_KEY, default=None)
    data_source: Produced | None = field(name="dataSource", default=None)


class Subset(Struct):
    """Facet ``subset`` of an input or output."""

    input: Condition | None = field(name="inputCondition", default=None)
    output: Condition | None = field(name="outputCondition", default=None)


class Described(Struct):
    """Facet ``sparkLineage_subsetDescription``."""

    description: str | None = None


class Statistics(Struct):
    """Facets ``inputStatistics`` and ``outputStatistics``."""

    rowCount: Count | None = None  # noqa: N815
    size: Count | None = None
    fileCount: Count | None = None  # noqa: N815


class SideFacets(Struct):
    """Facets of a dataset as an input or an output."""

    subset: Subset | None = None
    described: Described | None = field(name=DESCRIPTION_KEY, default=None)
    input_statistics: Statistics | None = field(name="inputStatistics", default=None)
    output_statistics: Statistics | None = field(name="outputStatistics", default=None)


class Dataset(Name, dict=True):
    """An input or an output."""

    facets: DatasetFacets | None = None
    inputFacets: SideFacets | None = None  # noqa: N815
    outputFacets: SideFacets | None = None  # noqa: N815

    @property
    def of_side(self) -> SideFacets:
        """Its ``inputFacets`` or ``outputFacets``; empty if it has neither."""
        return self.inputFacets or self.outputFacets or SideFacets()

    @property
    def figures(self) -> list[Figures]:
        """Rows and bytes of the partitions that its subset names; [] if none are known."""
        condition = self.of_side.subset and self.of_side.subset.output
        return self.partitions.figures(len((condition and condition.partitions) or ()))

    @property
    def partitions(self) -> Partitions:
        """Facet ``sparkLineage_partitions``; an empty facet if it is absent."""
        return (self.facets and self.facets.partitions) or Partitions()

    @cached_property
    def columns(self) -> list[SchemaField]:
        """Columns of its schema; [] without a schema, or with one that cannot be read."""
        facet = read_part(self.facets.schema, Schema)[0] if self.facets else None
        return (facet and facet.fields) or []

    @cached_property
    def column_lineage(self) -> ColumnLineage:
        """Facet ``columnLineage``; an empty facet if it is absent or cannot be read."""
        text = self.facets.column_lineage if self.facets else b""
        return read_part(text, ColumnLineage)[0] or ColumnLineage()


# --- facets of other producers --------------------------------------------------------------------


class Engine(Struct):
    """Run facet ``processing_engine``."""

    name: str = ""
    version: Value = None


class SparkApplication(Struct):
    """Run facet ``spark_applicationDetails``."""

    applicationId: Value = None  # noqa: N815
    master: Value = None
    historyUrl: str = ""  # noqa: N815
    proxyUrl: str = ""  # noqa: N815


class ExternalQuery(Struct):
    """Run facet ``externalQuery``."""

    externalQueryId: Value = None  # noqa: N815


class ErrorMessage(Struct):
    """Run facet ``errorMessage``."""

    message: str = ""


class TaskStates(Struct):
    """Run facet ``airflowState`` of a DAG run: the state of each task."""

    tasksState: dict[str, str | None] = {}  # noqa: N815


class JobDependency(Struct):
    """A job, or a run of it, that another job depends on."""

    run: Id = field(default_factory=Id)
    job: Job = field(default_factory=Job)


class JobDependencies(Struct):
    """Run facet ``jobDependencies``."""

    upstream: list[JobDependency] = []


class Tag(Struct):
    """A tag of a job or of a run."""

    key: str = ""
    value: Value = None


class Tags(Struct):
    """Facet ``tags`` of a job or of a run."""

    tags: list[Tag] = []


class Owner(Struct):
    """An owner of a job."""

    name: str = ""
    type: str = ""


class Ownership(Struct):
    """Job facet ``ownership``."""

    owners: list[Owner] = []


class JobType(Struct):
    """Job facet ``jobType``."""

    jobType: str = ""  # noqa: N815
    integration: str = ""
    processingType: str = ""  # noqa: N815


class Sql(Struct):
    """Job facet ``sql``."""

    query: str = ""


class SourceCodeLocation(Struct):
    """Job facet ``sourceCodeLocation``."""

    url: str = ""


class TaskOfDag(Struct):
    """A task in Airflow's job facet.

    :param emits_ol_events: False for a task that Airflow does not run, so that it has no events
    """

    operator: Value = None
    task_group: Value = None
    emits_ol_events: bool = True
    downstream_task_ids: list[str] = []


class AirflowJob(Struct):
    """Job facet ``airflow`` of a DAG: its tasks by their ids."""

    tasks: dict[str, TaskOfDag] = {}


class Documentation(Struct):
    """Facet ``documentation`` of a job or of a dataset."""

    description: str = ""


class Symlink(Name):
    """Another name of a dataset."""

    type: str = ""


class Symlinks(Struct):
    """Dataset facet ``symlinks``."""

    identifiers: list[Symlink] = []


class Catalog(Struct):
    """Dataset facet ``catalog``."""

    framework: str = ""
    type: str = ""


class Version(Struct):
    """Dataset facet ``version``."""

    datasetVersion: str = ""  # noqa: N815


class Storage(Struct):
    """Dataset facet ``storage``."""

    storageLayer: str = ""  # noqa: N815
    fileFormat: str = ""  # noqa: N815


class LineageInput(Name):
    """A source in facet ``lineage``: a dataset, or a column of it."""

    type: str = ""
    field: str = ""
    transformations: tuple[Transformation, ...] = ()


class LineageField(Struct):
    """The sources of a column, in facet ``lineage``."""

    inputs: list[LineageInput] = []


class LineageEntry(Struct):
    """The sources of a dataset: its facet ``lineage``, or its entry in the job facet ``lineage``.

    :param inputs: None if the entry has only the sources of columns
    """

    namespace: str = ""
    name: str = ""
    type: str = ""
    inputs: list[LineageInput] | None = None
    fields: dict[str, LineageField] = {}


class JobLineage(Struct):
    """Job facet ``lineage``."""

    entries: list[LineageEntry] = []


class ColumnMetrics(Struct):
    """Metrics of a column, in facet ``dataQualityMetrics``."""

    nullCount: Count | None = None  # noqa: N815
    distinctCount: Count | None = None  # noqa: N815
    min: Value = None
    max: Value = None
    quantiles: dict[str, Value] = {}


class QualityMetrics(Struct):
    """Facet ``dataQualityMetrics`` of a dataset, or of it as an input or output."""

    rowCount: Count | None = None  # noqa: N815
    bytes: Count | None = None
    columnMetrics: dict[str, ColumnMetrics] = {}  # noqa: N815


class DataTest(Struct):
    """A test of a dataset's content, and its result."""

    assertion: str = ""
    success: bool | None = None
    name: str = ""
    column: str = ""
    description: str = ""
    severity: str = ""
    expected: str = ""
    actual: str = ""


class QualityAssertions(Struct):
    """Facet ``dataQualityAssertions`` of a dataset, or of it as an input or output."""

    assertions: list[DataTest] = []


# --- the event ------------------------------------------------------------------------------------


class Sending(Struct):
    """The key ``sending`` of an archived event: facets and time that Airflow adds on sending."""

    started: str | None = None
    facets: RunFacets | None = field(name="runFacets", default=None)


class Event(Struct):
    """A run event; it has ``sending`` only if it comes from the archive."""

    run: Run = field(default_factory=Run)
    job: Job = field(default_factory=Job)
    eventTime: str | None = None  # noqa: N815
    eventType: str | None = None  # noqa: N815
    producer: str | None = None
    inputs: list[Dataset] | None = None
    outputs: list[Dataset] | None = None
    sending: Sending | None = None

    @property
    def capture(self) -> Capture:
        """Facet ``sparkLineage_capture``; an empty facet if it is absent."""
        return (self.run.facets and self.run.facets.capture) or Capture()

    @property
    def check(self) -> Check:
        """Facet ``sparkLineage_partitionCheck``; an empty facet if it is absent."""
        return (self.run.facets and self.run.facets.check) or Check()

    @property
    def accesses(self) -> dict[tuple[str, DatasetName], Seen]:
        """The accesses that the capture facet lists, by side (``read``, ``write``) and dataset.

        The facet does not always list all datasets.
        """
        return {(one.side, one.dataset.dataset_name): one for one in self.capture.datasets or ()}

    @property
    def datasets(self) -> list[Dataset]:
        """Inputs, then outputs."""
        return [*(self.inputs or ()), *(self.outputs or ())]


Facets = dict[str, Any]
"""Facets by key, as plain JSON: :func:`read_facet` reads one of them."""


class PlainRun(Struct):
    """The run of a :class:`PlainEvent`."""

    runId: str = ""  # noqa: N815
    facets: Facets = {}


class PlainJob(Struct):
    """The job of a :class:`PlainEvent`."""

    namespace: str = ""
    name: str = ""
    facets: Facets = {}


class PlainDataset(Name):
    """An input or an output of a :class:`PlainEvent`."""

    facets: Facets = {}
    inputFacets: Facets = {}  # noqa: N815
    outputFacets: Facets = {}  # noqa: N815


class PlainEvent(Struct):
    """A run event whose facets are plain JSON, for a reader of many of them, one by one."""

    run: PlainRun = field(default_factory=PlainRun)
    job: PlainJob = field(default_factory=PlainJob)
    eventTime: str = ""  # noqa: N815
    eventType: str = ""  # noqa: N815
    producer: str = ""
    inputs: list[PlainDataset] = []
    outputs: list[PlainDataset] = []


_Part = TypeVar("_Part", bound=Struct)
_Json = TypeVar("_Json")


# --- reading, part by part where an event does not fit --------------------------------------------


_ABSENT = object()


class Read(NamedTuple):
    """An event that was read.

    :param left_out: number of its parts that were left out because of a wrong shape
    """

    event: Event
    left_out: int = 0


def read(text: bytes) -> Read | None:
    """Read an event from JSON text.

    :return: None if the text is not a JSON object; an object without the keys of an event is read
        as an event without content
    :raise ValueError: if the text is not JSON
    :raise RecursionError: if it is nested too deeply
    """
    event, left_out = _read(text, Event)
    return Read(event, left_out) if isinstance(event, Event) else None


def read_document(document: Mapping[str, Any]) -> Event:
    """Read an event from decoded JSON; if it is nested too deeply, give an empty event."""
    return read_as(document, Event)


def read_as(document: Mapping[str, Any], of: type[_Part]) -> _Part:
    """Read an event from decoded JSON as an object of a given class.

    :param of: the class; all its fields have defaults
    :return: an object with the defaults if the event is nested too deeply
    """
    try:
        part: _Part = _read(_text_of(document), of)[0]
    except RecursionError:
        return of()
    return part


def _text_of(document: Mapping[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(document)
    except (ValueError, OverflowError):  # msgspec refuses half of a surrogate pair
        return json.dumps(document).encode()


def read_facet(facets: Mapping[str, Any], key: str, of: type[_Json]) -> _Json:
    """Read the facet with a key; an empty facet if it is absent or no part of it can be read.

    :param of: the class of the facet; all its fields have defaults
    """
    value = facets.get(key)
    return of() if value is None else fitted(value, of)


def fitted(value: Any, of: type[_Json]) -> _Json:
    """Convert decoded JSON to a type, part by part; the type's empty value if none can be read.

    :param of: the type, e.g. ``list[str]``; if it is a class, all its fields have defaults
    """
    converted = _Fitting().to(value, of)
    return of() if converted is _ABSENT else converted


def read_part(text: bytes, of: type[_Part]) -> tuple[_Part | None, int]:
    """Read a facet from its text, and count the left-out parts.

    :param of: the class of the facet
    :return: the facet, or None if the text is empty or no part of it can be read; and the number of
        its parts that were left out
    """
    if not text:
        return None, 0
    try:
        facet, left_out = _read(text, of)
    except (ValueError, RecursionError):
        return None, 1
    return (facet if isinstance(facet, of) else None), left_out


@cache
def decoder(of: type[Struct]) -> msgspec.json.Decoder[Any]:
    """Give a decoder of JSON to a class; it raises an error for any wrong shape.

    Null has no wrong shape: it is decoded as None.
    """
    shape: Any = of
    return msgspec.json.Decoder(shape | None)


def _read(text: bytes, of: type[Struct]) -> tuple[Any, int]:
    try:
        return decoder(of).decode(text), 0
    except ValueError:  # a part has a wrong shape, or the text has NaN or half a surrogate, or both
        value = _decoded(text)
    fitting = _Fitting()
    return fitting.to(value, of), fitting.left_out


def _decoded(text: bytes) -> Any:
    """Decode JSON, also with NaN, infinite numbers and halves of surrogate pairs.

    NaN and infinite numbers become None, and half of a surrogate pair becomes ``?``.
    """
    try:
        return msgspec.json.decode(text)
    except ValueError:
        value = json.loads(text, parse_constant=lambda _: None)
        return msgspec.json.decode(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


class _Fitting:
    """Converts decoded JSON to types, part by part; counts the parts of a wrong shape.

    A part that is nested too deeply has a wrong shape.
    """

    def __init__(self) -> None:
        self.left_out = 0

    def to(self, value: Any, of: Any) -> Any:
        """Convert a value to a type; give ``_ABSENT`` if no part of the value has the right shape.

        :param of: the type, as an annotation
        """
        try:
            return msgspec.convert(value, of)
        except (msgspec.ValidationError, RecursionError, UnicodeError):
            pass  # a UnicodeError is for half of a surrogate pair where no text may be
        if isinstance(value, float) and value.is_integer():  # JSON has one kind of number
            return self.to(int(value), of)
        try:
            converted = self._of_parts(value, of)
        except (RecursionError, UnicodeError):
            converted = _ABSENT
        if converted is _ABSENT:
            self.left_out += 1
        return converted

    def _of_parts(self, value: Any, of: Any) -> Any:
        if of is msgspec.Raw:
            return msgspec.Raw(msgspec.json.encode(value))
        if get_origin(of) in (Union, types.UnionType):
            read = (self._of_parts(value, one) for one in get_args(of))
            return next((one for one in read if one is not _ABSENT), _ABSENT)
        match get_origin(of), value:
            case None, dict() if issubclass(of, msgspec.Struct):
                return self._struct(value, of)
            case (origin, list()) if origin in (list, tuple):
                converted = (self.to(one, get_args(of)[0]) for one in value)
                return origin(one for one in converted if one is not _ABSENT)
            case origin, dict() if origin is dict:
                named = {key: self.to(one, get_args(of)[1]) for key, one in value.items()}
                return {key: one for key, one in named.items() if one is not _ABSENT}
        return _ABSENT

    def _struct(self, value: dict[str, Any], of: type[msgspec.Struct]) -> Any:
        fields = {}
        for part in _fields(of):
            value_of_part = value.get(part.encode_name, _ABSENT)
            converted = _ABSENT if value_of_part is _ABSENT else self.to(value_of_part, part.type)
            if converted is not _ABSENT:
                fields[part.name] = converted
            elif part.required:
                return _ABSENT
        return of(**fields)


@cache  # resolving the annotations takes longer than the rest of the conversion
def _fields(of: type[msgspec.Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(of)
