"""The tables of the history and their columns, the same for every engine.

Types are those of SQL: ``VARCHAR``, ``BIGINT``, ``INTEGER``, ``BOOLEAN``, and ``TIMESTAMP`` without
a zone, which is UTC with microseconds. In facts, times are texts: ISO 8601 in UTC.
"""

from __future__ import annotations

from airflow_provider_sparklineage.model.terms import Frozen

VERSION = 3
"""Version of all tables together.

The next build makes the tables of an older store anew; a store of a newer version is refused.
"""

TEXT, LONG, INT, FLAG, TIME = "VARCHAR", "BIGINT", "INTEGER", "BOOLEAN", "TIMESTAMP"


class Column(Frozen, frozen=True):
    """A column of a table; a value may be null unless the column's description says otherwise."""

    name: str
    type: str
    description: str


class Table(Frozen, frozen=True):
    """A table of the history, or the type of the elements of a list in a table.

    :param sorted_by: columns by which the rows in a file are sorted, to make lookups quick
    :param time: column by whose time the rows are divided among files
    :param is_by_dataset: whether the rows are divided among files by dataset, too
    """

    name: str
    description: str
    columns: tuple[Column, ...]
    sorted_by: tuple[str, ...] = ()
    time: str = ""
    is_by_dataset: bool = False

    def struct(self) -> str:
        """Give the SQL type of a row, for lists of such rows: ``STRUCT(a VARCHAR, b BIGINT)``."""
        return f"STRUCT({', '.join(f'{one.name} {one.type}' for one in self.columns)})"


_RUN = (
    Column("run_id", TEXT, "OpenLineage's id of the run; never null."),
    Column("namespace", TEXT, "Namespace of the job."),
    Column("job", TEXT, "Name of the job: dag_id.task_id of a task of Airflow."),
    Column("dag_id", TEXT, "The DAG; null if Airflow did not run it."),
    Column("task_id", TEXT, "The task in the DAG."),
    Column("dag_run_id", TEXT, "Airflow's run_id of the DAG run."),
    Column("map_index", INT, "Of a mapped task instance; -1 for others."),
    Column("try_number", INT, "Which try, from 1 on."),
    Column("logical_date", TIME, "Airflow's logical date of the DAG run."),
    Column("data_interval_start", TIME, "First moment of the data interval."),
    Column("data_interval_end", TIME, "End of the data interval, itself outside of it."),
    Column("partition_key", TEXT, "Airflow's partition key of the DAG run."),
)
_PRODUCER = (
    Column("producer", TEXT, "Producer of the event, a URI."),
    Column("parent_run_id", TEXT, "Run of the parent, e.g. the DAG run."),
    Column("root_run_id", TEXT, "Run at the root."),
    Column("is_ours", FLAG, "Whether this package made the event."),
    Column("check_status", TEXT, "Expected against observed partitions: matched, …"),
    Column("degradations", INT, "Number of losses that the event states."),
    Column("source", TEXT, "The file that the event was read from."),
)
_DATASET = (
    Column("namespace", TEXT, "Namespace of the dataset."),
    Column("name", TEXT, "Name of the dataset."),
)
_EXTENT = (
    Column("extent", TEXT, "The part: partition, all, range, condition, none or unknown."),
    Column("partition", TEXT, "The partition, dt=2024-10-15/region=eu, if extent is partition."),
    Column("cell", TEXT, "The partition with its dimensions sorted by name, for joins."),
    Column("dims", TEXT, "Names of the dimensions, sorted, with commas between."),
)
_RANGE = (
    Column("first_partition", TEXT, "First partition of a range."),
    Column("last_partition", TEXT, "Last partition of a range."),
)
_ACCESS = (
    Column("side", TEXT, "read or write."),
    *_DATASET,
    *_EXTENT,
    *_RANGE,
    Column("partition_count", LONG, "Number of partitions of a range."),
    Column("condition", TEXT, "OpenLineage's subset condition, JSON, if extent is condition."),
    Column("evidence", TEXT, "The witness: both, observer, listener, declared, last_known, other."),
    Column("mode", TEXT, "Of a write: overwrite, append, create, drop, truncate, removed, …"),
    Column("row_count", LONG, "Rows, where it is the only access of its dataset, side and run."),
    Column("byte_count", LONG, "Bytes, under the same rule."),
    Column("is_failed", FLAG, "Whether the write failed or never ended."),
)
_EDGE = (
    Column("out_namespace", TEXT, "Namespace of the dataset that was written."),
    Column("out_name", TEXT, "Its name."),
    Column("out_column", TEXT, "Its column; null: a condition of all of its columns."),
    Column("in_namespace", TEXT, "Namespace of the dataset that was read."),
    Column("in_name", TEXT, "Its name."),
    Column("in_column", TEXT, "Its column."),
    Column("type", TEXT, "DIRECT or INDIRECT."),
    Column("subtype", TEXT, "IDENTITY, AGGREGATION, FILTER, JOIN, …"),
    Column("masking", FLAG, "Whether the result hides the value."),
    Column("description", TEXT, "The expression."),
)

ACCESS = Table("access", "An element of `accesses` of the facts.", _ACCESS)
EDGE = Table("edge", "An element of `columns` of the facts.", _EDGE)

FACTS = Table(
    "facts",
    "One event: the facts about a run, its accesses and its columns.",
    (
        Column("event_id", TEXT, "Checksum of the event, by which it is counted once."),
        *_RUN,
        Column("event_type", TEXT, "START, RUNNING, COMPLETE, FAIL, ABORT or OTHER."),
        Column("event_time", TIME, "The event's own time."),
        Column("started", TIME, "When the run started, if the event says so."),
        *_PRODUCER,
        Column("accesses", f"{ACCESS.struct()}[]", "The reads and writes."),
        Column("columns", f"{EDGE.struct()}[]", "Each column, and a column that it was made of."),
    ),
)

RUNS = Table(
    "runs",
    "The runs, one row each.",
    (
        *_RUN,
        Column("state", TEXT, "COMPLETE, FAIL, ABORT, or RUNNING while no end is known."),
        Column("started", TIME, "When it started; its end, if the start is not known."),
        Column("ended", TIME, "When it ended."),
        Column("is_time_certain", FLAG, "Whether its start is known."),
        *_PRODUCER,
    ),
    ("ended", "run_id"),
    time="ended",
)
ACCESSES = Table(
    "accesses",
    "The reads and writes of each run, a row for each partition.",
    (
        Column("run_id", TEXT, "The run; never null."),
        Column("dag_id", TEXT, "The DAG of the run, as in runs."),
        Column("job", TEXT, "Name of the job of the run, as in runs."),
        Column("accessed_at", TIME, "When: the start of the run for a read, its end for a write."),
        *_ACCESS,
        Column("is_expected", FLAG, "Whether only the start of the run listed it, as a plan."),
    ),
    ("accessed_at", "run_id"),
    time="accessed_at",
    is_by_dataset=True,
)
COLUMNS = Table(
    "columns",
    "The columns that each run made, each with a column that it was made of.",
    (
        Column("run_id", TEXT, "The run; never null."),
        Column("ended", TIME, "The end of the run."),
        *_EDGE,
    ),
    ("ended", "run_id"),
    time="ended",
)
CHANGES = Table(
    "changes",
    "The versions of partitions: each successful write, and the time for which it was there.",
    (
        *_DATASET,
        *_EXTENT,
        *_RANGE,
        Column("run_id", TEXT, "The run that wrote it; never null."),
        Column("mode", TEXT, "overwrite, append, create, drop, truncate, removed or unknown."),
        Column("evidence", TEXT, "The witness of the write, as in accesses."),
        Column("valid_from", TIME, "When the write had ended."),
        Column("valid_to", TIME, "When it was replaced; null: it is there."),
        Column("replaced_by", TEXT, "The run that replaced it."),
        Column("is_certain", FLAG, "Whether nothing of this is assumed."),
        Column("uncertain_from", TIME, "From when on something is assumed; null if it is certain."),
    ),
    ("namespace", "name", "cell", "valid_from"),
    time="valid_from",
    is_by_dataset=True,
)
BINDINGS = Table(
    "bindings",
    "Which version each read of a partition got; several, where writes were added to one.",
    (
        *_DATASET,
        *_EXTENT,
        *_RANGE,
        Column("evidence", TEXT, "The witness of the read, as in accesses."),
        Column("reader_run_id", TEXT, "The run that read; never null."),
        Column("read_at", TIME, "When it began to read."),
        Column("version_run_id", TEXT, "The run that wrote the version; null if it is not known."),
        Column("version_extent", TEXT, "The part that was written, as in changes."),
        Column("version_cell", TEXT, "The cell that was written; null: more than one."),
        Column("valid_from", TIME, "When the version was written."),
        Column("valid_to", TIME, "When the version was replaced; null: it is there."),
        Column("is_certain", FLAG, "Whether nothing of this is assumed."),
    ),
    ("namespace", "name", "cell", "read_at"),
    time="read_at",
    is_by_dataset=True,
)
CHANGES_BY_RUN = Table(
    "changes_by_run",
    "The rows of changes in the order of time, to find the writes of a run.",
    CHANGES.columns,
    ("valid_from", "run_id"),
    time="valid_from",
)
BINDINGS_BY_RUN = Table(
    "bindings_by_run",
    "The rows of bindings in the order of time, to find the reads of a run.",
    BINDINGS.columns,
    ("read_at", "reader_run_id"),
    time="read_at",
)

TABLES = (RUNS, ACCESSES, COLUMNS, CHANGES, BINDINGS, CHANGES_BY_RUN, BINDINGS_BY_RUN)
