"""The table of options, and the only place where options are described.

The table is used for the resolution of settings
(:mod:`~airflow_provider_sparklineage.settings.resolution`), the section in Airflow's configuration,
the connection's form, ``airflow sparklineage settings``, and the table in
``docs/configuration.md``, which ``python -m tests.write_options`` writes. To add an option, add a
field to :class:`Options`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from airflow_provider_sparklineage.model.representation import (
    DEFAULT_MAX_COLUMNS,
    DEFAULT_MAX_EVENT_BYTES,
)
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.settings import option_kinds as kinds
from airflow_provider_sparklineage.spark.submit.injection import CaptureOptions

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path

    from airflow_provider_sparklineage.model.representation import ColumnLineageForm, Intermediates
    from airflow_provider_sparklineage.model.rules import PartitionRules
    from airflow_provider_sparklineage.spark.capture.bundle import CaptureLocation
    from airflow_provider_sparklineage.spark.submit.injection import ExistingTransport

SECTION = "sparklineage"


class Option(Frozen, frozen=True):
    """An option of the package.

    :param name: the name in the configuration, in a connection's extra, and as an argument of the
        operator
    :param kind: the kind of the option's values
    :param default: the default as text, which the kind reads like a configured value
    :param example: an example of a value, as text
    :param description: sentences for people, whose only markup is Markdown's backquotes
    :param in_connection: whether a ``sparklineage`` connection may have the option
    :param in_operator: whether the operator has an argument of this name
    """

    name: str
    kind: kinds.Kind
    default: str
    example: str
    description: str
    in_connection: bool = True
    in_operator: bool = False


def _option(
    kind: kinds.Kind, example: str, description: str, *, default: str = "", **flags: bool
) -> Any:
    """Describe the option of a field of :class:`Options`, except its name.

    The name is that of the field, and :data:`OPTIONS` has it.

    The parameters are those of :class:`Option`.

    :param flags: ``in_connection`` and ``in_operator``
    """
    return Option("", kind, default, example, description, **flags)


def _flag(description: str, *, default: bool = False, **flags: bool) -> Any:
    """Describe an option that is on or off; the example is the value that is not the default.

    The parameters are those of :func:`_option`, but ``default`` is the value and not its text.
    """
    return _option(kinds.BOOLEAN, str(not default), description, default=str(default), **flags)


class Options(CaptureOptions, frozen=True):
    """The values of all options, with a field for each option.

    The default of a field is the description of its option, an :class:`Option`. Durations are
    ``timedelta``, and paths are absolute.
    """

    disabled: bool = _flag(
        "Run all tasks exactly as the stock operators would: nothing is injected or collected.",
        in_connection=False,
    )
    adopt: str = _option(
        kinds.TEXT,
        "all",
        "The tasks of Airflow's own Spark operators, and of operators made of these, that get "
        "lineage without a change of their DAG: `off`, `all`, or rules, which are a YAML file or "
        "stand here themselves (docs/adoption.md).",
        default="off",
        in_connection=False,
    )
    declarations: str = _option(
        kinds.TEXT,
        "/etc/airflow/declarations.yaml",
        "The datasets that adopted tasks read and write, in the operator's terms `reads`, "
        "`writes` and `on_partition_mismatch`: rules, which are a YAML file or stand here "
        "themselves (docs/adoption.md).",
        in_connection=False,
    )
    strict: bool = _flag(
        "Fail a task before it submits when its lineage cannot be collected, instead of running "
        "it without.",
        in_operator=True,
    )
    observe: bool = _flag(
        "Observe in the PySpark driver which partitions are really read and written.",
        default=True,
        in_operator=True,
    )
    backend: kinds.BackendName = _option(
        kinds.BACKEND,
        "generic",
        "The lineage backend that events are sent to. `marquez`: parts that Marquez would refuse "
        "or break on are repaired before an event is sent, and the event says so. `datahub` and "
        "`generic`: events stay as OpenLineage defines them. The events that Airflow keeps, and "
        "those that are converted for DataHub, are the same with each.",
        default="marquez",
    )
    web_url: str | None = _option(
        kinds.URL,
        "http://marquez:3000",
        "URL of the backend's pages, for people. Empty: there are no links to them.",
    )
    listener_jar: Path | str | None = _option(
        kinds.JAR,
        "/opt/spark/lineage/openlineage-spark_2.13-1.53.0.jar",
        "Path of the OpenLineage listener jar on the worker, or a URL that Spark knows: "
        "`local:///opt/…` for one in the image of drivers, `s3a://…`, `hdfs://…`. Empty: a "
        "listener in $SPARK_HOME/jars, else the cache that `sparklineage fetch-listener` fills. "
        "Drivers elsewhere get a jar of the worker from the tools folder of the capture location.",
    )
    fetch_listener: bool = _flag(
        "Let a task whose worker has no listener jar fetch one into the cache, by Spark's own "
        "resolver, before it submits.",
    )
    spark_version: tuple[str, str] | None = _option(
        kinds.SPARK_VERSION,
        "3.5.6-scala2.13",
        "Version of Spark that spark-submit runs, or a service such as Livy, for which it has to "
        "be set. Empty: found from spark-submit's files, or else from `spark-submit --version`.",
    )
    listener_extensions: tuple[str, ...] = _option(
        kinds.PATHS,
        "/opt/spark/lineage/shop-visitors.jar",
        "Jars on the worker that extend the listener with visitors of your own; they go where it "
        "goes.",
        in_operator=True,
    )
    existing_transport: ExistingTransport = _option(
        kinds.EXISTING_TRANSPORT,
        "collect_only",
        "The fate of a transport that a job has in `spark.openlineage.transport.*`: `keep`, "
        "Spark sends there as well, or `collect_only`, only the task's own event is sent.",
        default="keep",
    )
    capture_location: CaptureLocation = _option(
        kinds.LOCATION,
        "s3://aws_default@lake/lineage",
        "Directory on the worker for capture bundles, private to the worker's user. Empty: a "
        "directory of the user in the temporary folder. A URL: drivers in a cluster deliver "
        "their captures there, and the worker collects them through Airflow's ObjectStoragePath, "
        "with a connection's id before the @.",
    )
    capture_location_in_spark: str = _option(
        kinds.HADOOP_URL,
        "s3a://lake/lineage",
        "The URL by which Spark's drivers know a capture location that is a URL. Empty: derived, "
        "`s3` is `s3a` there, and the connection's id is left out.",
    )
    capture_endpoint: str = _option(
        kinds.TEXT,
        "worker-1.example.com:20000-20100",
        "Name or address by which drivers in a cluster reach this worker, and ports that are open "
        "for it, or none for any: applications without a Python driver (Scala, Java, R, SQL) then "
        "send their events to the worker while they run. `{hostname}` stands for the worker's own "
        "name. Empty: nothing listens.",
    )
    capture_location_shared: bool = _flag(
        "The capture location is on a mount that drivers in the cluster have as well, at the same "
        "path and writable: then their lineage is collected, too.",
    )
    max_partitions: int = _option(
        kinds.COUNT,
        "1000",
        "Partitions of one dataset that the event names, and locations where partitions are not "
        "known; if there are more, it has the range, the filter or their number. 0: never name "
        "them.",
        default="100",
    )
    max_event_bytes: int = _option(
        kinds.COUNT,
        "900000",
        "Bytes of lineage that one event may have when it is sent. From a larger event details are "
        "left out, columns that no edge names first and column lineage last, and a degradation "
        "lists them. The event that Airflow keeps has all of them, up to 64 MiB.",
        default=str(DEFAULT_MAX_EVENT_BYTES),
    )
    max_columns: int = _option(
        kinds.COUNT,
        "10000",
        "Columns that one event for Marquez may have, which takes most of a millisecond for "
        "each: those of schemas, those with column lineage once more, and one for every four "
        "edges. Of a larger event those go first that no edge names, then the column lineage of "
        "whole outputs, and a degradation says so. The event that Airflow keeps has them all. The "
        "default is for the first event of a task; the next one has as many as Marquez answers in "
        "4 s, by its time for the last one. Any other number stays as it is.",
        default=str(DEFAULT_MAX_COLUMNS),
    )
    describe_datasets: bool = _flag(
        "Describe jobs, datasets and columns in events for Marquez, whose pages show that first: "
        "the partitions that were read and written, and the columns that a column is made of. "
        "Tables and columns that have descriptions of their own keep them, and a job its text, "
        "after that.",
        default=True,
    )
    redact_literals: bool = _flag(
        "Hide the literals of filters and of descriptions of column lineage: `?` stands for each. "
        "Partitions and locations stay in the event.",
    )
    partitioning: PartitionRules = _option(
        kinds.PARTITIONING,
        "/etc/airflow/partitioning.yaml",
        "How the organisation partitions its datasets: a YAML file of rules, or the rules "
        "themselves.",
    )
    emit_bare_partitions_facet: bool = _flag(
        "Also add a dataset facet `partitions` to outputs, as in OpenLineage's partitioning "
        "proposal.",
    )
    column_lineage: ColumnLineageForm = _option(
        kinds.COLUMN_LINEAGE,
        "legacy",
        "How column lineage writes the filters, joins and groupings that influence all columns "
        "of an output: `compact`, once, or `legacy`, for every column, for backends that know no "
        "other form. Above 500 edges per output `compact` is used, and the event says so.",
        default="compact",
    )
    intermediate_datasets: Intermediates = _option(
        kinds.INTERMEDIATES,
        "drop: s3://lake/tmp/*, /staging/*",
        "Datasets that a task wrote only to read them back are its outputs (`keep`) or not "
        "(`drop`); after `drop:` come globs of datasets. Column lineage goes through either way.",
        default="keep",
    )
    emit_lineage_facet: bool = _flag(
        "Also write which inputs feed which output into OpenLineage's job facet `lineage`, which "
        "is experimental: if a task makes C of A and D of B, backends then see that A does not "
        "feed D.",
    )
    relay_spark_events: bool = _flag(
        "Send Spark's own events as well, through Airflow's OpenLineage transport, when the job "
        "has ended: jobs for the application and for each of its actions, next to the task's.",
        in_operator=True,
    )
    archive_url: str = _option(
        kinds.STORE,
        "s3://aws_default@lineage/tasks",
        "Where the event of every try is kept in full, one JSON file each: a URL that Airflow's "
        "ObjectStoragePath takes, with a connection's id before the @. Empty: with LocalExecutor, "
        "in $AIRFLOW_HOME/sparklineage/archive, a folder that only its user can read; with other "
        "executors, nowhere. From that folder an event is deleted after 90 days, from an archive "
        "of your own never. `none`: nowhere.",
        in_connection=False,
    )
    history_url: str = _option(
        kinds.URL_OF_STORE,
        "file:///mnt/lineage/history",
        "Where `sparklineage history build` keeps the tables of the history, which commands, the "
        "page and `SparkLineageFreshnessCheck` read. When it is there, each task delivers its "
        "event to it. Empty: in the folder `history` next to the archive.",
        in_connection=False,
    )
    history_merged_by: kinds.HistoryMerger = _option(
        kinds.HISTORY_MERGER,
        "tasks",
        "Who merges delivered events into the tables of the history: `page` (the API server, "
        "while somebody looks at the page), `tasks` (also each task at its end, which takes some "
        "seconds and needs the extra `history` on the workers), `command` (only `sparklineage "
        "history build`).",
        default="page",
        in_connection=False,
    )
    history_other_producers: kinds.OtherProducers = _option(
        kinds.OTHER_PRODUCERS,
        "everybody",
        "Who sees, on the page, runs of other producers (dbt, Spark jobs of their own), and of "
        "DAGs that were deleted: `dag_readers` (who may read the XComs of all DAGs), `everybody`.",
        default="dag_readers",
        in_connection=False,
    )
    keep_captures: kinds.KeepCaptures = _option(
        kinds.KEEP_CAPTURES,
        "all",
        "Which capture bundles outlive their try: `degraded` (failed tries and incomplete "
        "lineage), `all`, `none`.",
        default="degraded",
    )
    capture_retention: timedelta = _option(
        kinds.DAYS,
        "1",
        "Days after which a kept capture bundle is deleted.",
        default="7",
    )
    collect_timeout: timedelta = _option(
        kinds.SECONDS,
        "10",
        "Seconds that collecting and merging may take after Spark has ended.",
        default="30",
    )


_DESCRIBED = dict(zip(Options.__struct_fields__, Options.__struct_defaults__, strict=True))
OPTIONS: tuple[Option, ...] = tuple(
    replace(_DESCRIBED[name], name=name) for name in Options.__annotations__
)
