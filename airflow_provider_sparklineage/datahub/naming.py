"""Name an event's entities as DataHub does, by URNs that DataHub's server accepts.

The input is OpenLineage's namespaces and names, with the facets that add to them (``symlinks``,
``parent``). The output is the URN of each dataset, from its platform and its table, and the URNs of
flows, jobs and runs. The names are the same as those of DataHub's own connectors, so that this
package and a connector write to one entity.
"""

from __future__ import annotations

import re
from bisect import bisect
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, quote_plus

from airflow_provider_sparklineage.datahub.configuration import namespace_settings
from airflow_provider_sparklineage.datahub.proposals import stored
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.datasets import DatasetName, canonical
from airflow_provider_sparklineage.model.producer import DISTRIBUTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_sparklineage.datahub.configuration import Conversion


# URNs are plain text, as DataHub's SDK makes them. The server (``UrnValidationUtil``) refuses a URN
# that takes more than 512 bytes once it is encoded for a URL (except the URN of a field), and any
# URN with a ``␟``. Commas and parentheses separate the parts of a URN. So texts are changed:
#
# ========================  ======================================================================
# ``,`` ``(`` ``)`` ``␟``   percent-encoded (``UrnEncoder`` of the SDK)
# control characters        percent-encoded too, like halves of surrogate pairs: not every database
#                           stores them
# ``%`` before such a code  ``%25``, so that ``a,b`` and a name ``a%2Cb`` differ; any other ``%``
#                           stays
# a text that is too long   its beginning, and a checksum of the whole text
# ========================  ======================================================================

MAX_BYTES = 512
"""The most bytes of a URN, encoded for a URL: ``UrnValidationUtil.URN_NUM_BYTES_LIMIT``."""

_CODES = r"2C|28|29|E2%90%9F|[01][0-9A-F]|7F|ED%[AB][0-9A-F]%[89AB][0-9A-F]"
_RESERVED = re.compile(rf"[,()␟\x00-\x1f\x7f\ud800-\udfff]|%(?=(?:25)*(?:{_CODES}))")
_CHECKSUM_DIGITS = 16  # hex digits: 64 bits


def encoded(text: str) -> str:
    """Percent-encode the characters that have a meaning in a URN.

    Different texts stay different.
    """
    return _RESERVED.sub(lambda match: quote(match[0], safe="", errors="surrogatepass"), text)


def fitted(text: str, before: str, after: str) -> str:
    """Encode a text so that the URN with this text in it is short enough for the server.

    :param text: a name or an id
    :param before: the part of the URN before the text, encoded
    :param after: the part of the URN after the text, encoded
    :return: the whole text if it fits, else its beginning with a checksum of the whole text
    """
    return _shortened(text, MAX_BYTES - _url_bytes(before) - _url_bytes(after))


def dataset_urn(platform: str, name: str, env: str) -> str:
    """Give the URN of a dataset.

    :param platform: DataHub's name of the platform, e.g. ``s3``
    :param name: the dataset's name, beginning with the platform instance if there is one
    :param env: the environment (``FabricType``), e.g. ``PROD``
    """
    before, after = f"urn:li:dataset:({data_platform_urn(platform)},", f",{env})"
    return f"{before}{fitted(name, before, after)}{after}"


_PLATFORM_BYTES = 64  # leaves room for names; the longest platform name of DataHub's has 22


def data_platform_urn(platform: str) -> str:
    """Give the URN of a platform."""
    return f"urn:li:dataPlatform:{_shortened(platform, _PLATFORM_BYTES)}"


def platform_instance_urn(platform: str, instance: str) -> str:
    """Give the URN of an instance of a platform."""
    before = f"urn:li:dataPlatformInstance:({data_platform_urn(platform)},"
    return f"{before}{fitted(instance, before, ')')})"


def platform_urn_of(dataset: str) -> str:
    """Give the URN of the platform that the URN of a dataset names."""
    return dataset.partition("(")[2].partition(",")[0]


def schema_field_urn(dataset: str, path: str) -> str:
    """Give the URN of a field.

    :param dataset: URN of the field's dataset
    :param path: the field path, as ``SchemaMetadata`` has it
    """
    return f"urn:li:schemaField:({dataset},{encoded(path)})"


_FLOW_BYTES = 200  # leaves about as much room for the ids of the flow's jobs


def process_instance_urn(run_id: str) -> str:
    """Give the URN of the DataProcessInstance for a run.

    :param run_id: OpenLineage's id of the run
    """
    before = "urn:li:dataProcessInstance:"
    return before + fitted(run_id.strip(), before, "")


def _shortened(text: str, room: int) -> str:
    whole = encoded(text)
    if _url_bytes(whole) <= room:
        return whole
    mark = f"~{sha256(text.encode(errors='surrogatepass')).hexdigest()[:_CHECKSUM_DIGITS]}"
    beginnings = range(1, len(text))
    most = bisect(beginnings, room, key=lambda n: _url_bytes(encoded(text[:n]) + mark))
    return encoded(text[:most]) + mark


def _url_bytes(text: str) -> int:
    """Count the bytes of a text in the form that ``java.net.URLEncoder`` gives it.

    That class encodes ``~`` too, but not ``*``.
    """
    return len(quote_plus(text, safe="*")) + 2 * text.count("~")


# A dataset's platform, and its name on that platform, come from OpenLineage's namespace and name.
# DataHub's own connectors give the same names, so that a table from a connector and this lineage
# belong to one dataset. The names of databases and topics have no server: where a platform has two
# servers, DataHub tells them apart by platform instance (key ``namespaces`` of the configuration).
#
# ======================================  =============  =========================================
# namespace                               platform       name
# ======================================  =============  =========================================
# ``s3``, ``s3a``, ``s3n``; ``gs``        s3; gcs        ``bucket/path``
# ``abfs[s]``, ``wasb[s]``                abs            ``container/path``, without the account
# ``file``, ``hdfs://h:1``, other files   by scheme      ``path``, ``h:1/path``
# ``kafka://h:1``                         kafka          the topic
# databases, e.g. ``postgres://h:1``      by scheme      ``database.schema.table``
# ``snowflake://…``                       snowflake      the same, in lower case
# ``sqlserver://…``                       mssql          the same
# ``oracle://…``                          oracle         ``schema.table``, in lower case unless
#                                                        quoted
# ``awsathena://…``                       athena         without the catalog ``AwsDataCatalog``
# ``bigquery``                            bigquery       without partition and date of a sharded
#                                                        table
# ``arn:aws:glue:…``                      glue           ``database.table``
# ``azurekusto://…``                      kusto          ``database.table``
# any other                               its scheme     ``authority/name``, since the authority
#                                                        may be a part of the name
# ======================================  =============  =========================================

# Platforms whose name is not the scheme itself.
_BY_SCHEME = {
    "s3a": "s3", "s3n": "s3", "gs": "gcs",
    "abfs": "abs", "abfss": "abs", "wasb": "abs", "wasbs": "abs",
    "awsathena": "athena", "azurekusto": "kusto", "mongo": "mongodb", "postgresql": "postgres",
    "saphana": "hana", "sqlserver": "mssql", "thrift": "hive",
}  # fmt: skip

# Platforms whose authority is a server, on which the name of a table or a topic is unique.
_ON_SERVERS = frozenset({
    "athena", "bigquery", "cassandra", "clickhouse", "cockroachdb", "crate", "databricks", "db2",
    "dremio", "druid", "elasticsearch", "glue", "hana", "hive", "iceberg", "kafka", "kusto",
    "mariadb", "mongodb", "mssql", "mysql", "oceanbase", "oracle", "pinot", "postgres", "presto",
    "redshift", "snowflake", "teradata", "trino", "vertica",
})  # fmt: skip

_SCHEME = re.compile(r"(?:jdbc:)?([a-z][a-z0-9+.-]*):(?://)?(.*)", re.DOTALL | re.IGNORECASE)
_GLUE = re.compile(r"(?:arn:)?aws[a-z-]*:glue:")


def placed(name: DatasetName, platform: str = "") -> tuple[str, str]:
    """Give a dataset's platform, and the dataset's name on that platform; never raises.

    :param name: the dataset's name in OpenLineage
    :param platform: the platform, if a setting or a facet names it; empty to take the platform from
        the namespace
    """
    name = canonical(name)
    scheme, authority = _scheme_and_authority(name.namespace)
    platform = platform or _BY_SCHEME.get(scheme, scheme) or "unknown"  # as in DataHub's converter
    text = name.name
    if platform == "abs":
        authority = authority.partition("@")[0]
    if platform in _NAMES_BY_PLATFORM:
        text = _NAMES_BY_PLATFORM[platform](text)
    elif platform not in _ON_SERVERS:
        text = text.strip("/")
    if authority and platform not in _ON_SERVERS:
        text = f"{authority.rstrip('/')}/{text}".strip("/")
    return platform, text or "/"


def is_on_server(name: DatasetName) -> bool:
    """Whether a dataset is a table or a topic itself, not the files of a table."""
    scheme, _ = _scheme_and_authority(canonical(name).namespace)
    return _BY_SCHEME.get(scheme, scheme) in _ON_SERVERS


def _scheme_and_authority(namespace: str) -> tuple[str, str]:
    if _GLUE.match(namespace):
        return "glue", ""
    match = _SCHEME.fullmatch(namespace)
    if match is None:
        return namespace, ""
    return match[1].lower(), scrub_name(f"{match[1]}://{match[2]}").partition("://")[2]


# --- names by platform ----------------------------------------------------------------------------

_DATE = r"[0-9]{4}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])"
_SHARD = re.compile(rf"(?<=[^.0-9]){_DATE}\Z")


def _athena(name: str) -> str:
    catalog, _, rest = name.partition(".")
    return rest if catalog.lower() == "awsdatacatalog" and "." in rest else name


def _bigquery(name: str) -> str:
    table = name.partition("$")[0]
    base = _SHARD.sub("", table).rstrip("_") if _SHARD.search(table) else table
    return table if base.endswith(".") else base


def _glue(name: str) -> str:
    return name.removeprefix("table/").replace("/", ".")


def _oracle(name: str) -> str:
    parts = name.split(".")
    shown = [part.lower() if part.isupper() else part for part in parts]
    return ".".join(shown[-2:] if len(parts) == len(("service", "schema", "table")) else shown)


_NAMES_BY_PLATFORM: dict[str, Callable[[str], str]] = {
    "athena": _athena,
    "bigquery": _bigquery,
    "glue": _glue,
    "hive": _glue,  # old listeners write names of Hive's tables in that form, too
    "kusto": lambda name: name.replace("/", "."),
    "oracle": _oracle,
    "snowflake": str.lower,
}


# The files of a table become that table in DataHub: the listener names its inputs and outputs by
# their files, and a symlink of type ``TABLE`` names the table. As in DataHub's own converter, a
# table of a Glue catalog is of ``glue`` and any other is of ``hive``, with two exceptions:
#
# - a dataset that is a table or a topic itself keeps its own name: a stream of Flink that is a
#   topic of Kafka stays that topic
# - a table of an Iceberg catalog that is neither Hive's nor Glue's is of ``iceberg``, as DataHub
#   ingests it.
#
# Column lineage may mention a dataset by any of its names, so each name leads to the same dataset.


class Identity(NamedTuple):
    """A dataset of DataHub.

    :param platform: name of the platform, e.g. ``s3``
    :param name: name of the dataset without the instance; not encoded
    :param instance: the platform instance; empty if there is none
    :param env: the environment (``FabricType``), e.g. ``PROD``
    """

    platform: str
    name: str
    instance: str
    env: str

    @property
    def urn(self) -> str:
        """Give the URN of the dataset."""
        name = f"{self.instance}.{self.name}" if self.instance else self.name
        return dataset_urn(self.platform, name, self.env)


class Table(NamedTuple):
    """The dataset that a name stands for: a table in place of its files, or the dataset itself.

    :param name: the name of that dataset in OpenLineage
    :param platform: the platform, by the catalog facet; empty if the namespace names the platform
    """

    name: DatasetName
    platform: str = ""


def identity(name: DatasetName, how: Conversion, platform: str = "") -> Identity:
    """Give the dataset of DataHub that an OpenLineage name stands for.

    :param how: the settings of the conversion
    :param platform: the platform, if a facet names it; else empty. If the settings of the namespace
        have a platform, that is used instead
    """
    known = namespace_settings(name.namespace, how.namespaces)
    platform, text = placed(name, known.platform or platform)
    text = f"{known.name_prefix}{text}"
    instance = known.platform_instance
    return Identity(
        platform,
        text.lower() if known.lower_case else text,
        how.platform_instance if instance is None else instance,
        known.env or how.env,
    )


def tables(datasets: Iterable[model.PlainDataset], *, follow: bool) -> dict[DatasetName, Table]:
    """Find the dataset that each name stands for: one dataset can have several names.

    :param datasets: the inputs and outputs of the event
    :param follow: whether files become the table that a symlink names; if not, the table becomes
        its files
    :return: by name, the dataset that the name stands for. The names are those of the datasets
        and of their symlinks. A name without an entry stands for itself
    """
    theirs: dict[DatasetName, Table] = {}
    own: dict[DatasetName, Table] = {}  # another dataset may have a symlink of the same name
    for dataset in datasets:
        name = canonical(dataset.dataset_name)
        links = model.read_facet(dataset.facets, "symlinks", model.Symlinks).identifiers
        named = [
            canonical(link.dataset_name)
            for link in links
            if link.name and link.type.upper() == "TABLE"
        ]
        table = None
        if follow and named and not is_on_server(name):
            table = Table(min(named, key=_preference), _platform_of_catalog(dataset, named))
        for one in (name, *(canonical(link.dataset_name) for link in links if link.name)):
            (theirs if table else own).setdefault(one, table or Table(name))
    return own | theirs


def _preference(name: DatasetName) -> tuple[bool, bool, DatasetName]:
    """Give the sort key of a table's name: first those of Glue, then those of Hive, then others.

    The facet ``symlinks`` of the same files can have the tables in another order in each event.
    """
    platform, _ = placed(name)
    return platform != "glue", platform != "hive", name


def _platform_of_catalog(dataset: model.PlainDataset, named: Iterable[DatasetName]) -> str:
    if any(map(is_on_server, named)):  # the namespace names the platform
        return ""
    catalog = model.read_facet(dataset.facets, "catalog", model.Catalog)
    of_iceberg = catalog.framework == "iceberg" and catalog.type not in ("hive", "glue")
    return "iceberg" if of_iceberg else "hive"


# An event has one name for its flow and its job. DataHub's own Airflow plugin names the DAG
# ``(airflow,<dag_id>)`` and the task by its ``task_id``. This module does the same, so that both
# write to the same entities. The ids of Airflow may have dots, so a name is cut where the name of
# its parent ends: a task's parent is its DAG's run, an action's parent is its Spark application.
#
# =================================  =======================  =========  ========================
# event of                           its name                 flow       job
# =================================  =======================  =========  ========================
# a DAG's run (``jobType``: DAG)     ``a.dag``                ``a.dag``  none
# a task, parent ``a.dag``           ``a.dag.group.task``     ``a.dag``  ``group.task``
# a Spark application (APPLICATION)  ``app``                  ``app``    none
# an action of it, parent ``app``    ``app.insert_in.table``  ``app``    ``insert_in.table``
# any other, as in the converter     ``flow.job``             ``flow``   ``job``
# any other, without a dot           ``job``                  ``job``    ``job``
# =================================  =======================  =========  ========================

AIRFLOW = "airflow"
_OF_FLOWS = {"DAG", "APPLICATION"}
# URLs of the producers' sources; those of Airflow and of this package name no integration.
_PRODUCERS = re.compile(
    rf"^urn:(?P<ours>{DISTRIBUTION})|github\.com/apache/(?P<airflow>airflow)\b"
    r"|github\.com/OpenLineage/.*/integration/(?P<integration>\w+)",
    re.IGNORECASE,
)


class JobName(NamedTuple):
    """A flow, and a job in it.

    :param orchestrator: the platform that runs the flow, by DataHub's name: ``airflow``, ``spark``
    :param flow: a ``dag_id``, or the name of an application
    :param job: a ``task_id``, or the name of an action; empty for an event of the flow itself
    """

    orchestrator: str
    flow: str
    job: str = ""

    def flow_urn(self, how: Conversion) -> str:
        """Give the URN of the DataFlow, with the platform instance if one is configured.

        :param how: the settings of the conversion
        """
        name = self.flow or "unknown"
        flow = f"{how.platform_instance}.{name}" if how.platform_instance else name
        limits = (self.orchestrator, 32), (flow, _FLOW_BYTES), (how.cluster, 32)
        return f"urn:li:dataFlow:({','.join(_shortened(*part) for part in limits)})"

    def job_urn(self, how: Conversion) -> str:
        """Give the URN of the DataJob; :meth:`flow_urn` describes ``how``."""
        before = f"urn:li:dataJob:({self.flow_urn(how)},"
        return f"{before}{fitted(self.job or self.flow or 'unknown', before, ')')})"


def job_name(event: model.PlainEvent) -> JobName:
    """Name the flow and the job of an event; both names are empty if the event has no job name."""
    name = stored(event.job.name).strip()
    orchestrator = orchestrator_of(event)
    if model.read_facet(event.job.facets, "jobType", model.JobType).jobType in _OF_FLOWS:
        return JobName(orchestrator, name)
    parent = model.read_facet(event.run.facets, "parent", model.Parent).job
    dag = model.read_facet(event.run.facets, "airflow", model.AirflowFacet).dag
    parents = (parent.name if parent else None, dag.dag_id if dag else None)
    return split_job_name(orchestrator, name, *parents)


def split_job_name(orchestrator: str, name: str, *parents: str | None) -> JobName:
    """Split a job's name into the names of the flow and the job.

    The name is split after the first of ``parents`` with which the name begins, else at the first
    dot in the name.

    :param orchestrator: the platform that runs the flow, as in :class:`JobName`
    :param parents: possible names of the parent; None is skipped
    :return: if the name begins with no parent's name and has no dot, flow and job both have the
        whole name
    """
    for parent in map(stored, filter(None, parents)):
        if name.startswith(f"{parent}.") and len(name) > len(parent) + 1:
            return JobName(orchestrator, parent, name[len(parent) + 1 :])
    flow, _, job = name.partition(".")
    return JobName(orchestrator, flow, job) if flow and job else JobName(orchestrator, name, name)


def orchestrator_of(event: model.PlainEvent) -> str:
    """Name the job's orchestrator: the integration, else the engine, else the producer.

    The name is ``unknown`` if the event has none of the three. DataHub's converter has the same
    order (``OpenLineagePlatformResolver.getOrchestrator``). The orchestrator of this package's
    events is always Airflow: they are events of tasks, though they may have the engine of the
    task's Spark application.
    """
    producer = _PRODUCERS.search(stored(event.producer))
    if producer and producer["ours"]:
        return AIRFLOW
    names = (
        model.read_facet(event.job.facets, "jobType", model.JobType).integration,
        model.read_facet(event.run.facets, "processing_engine", model.Engine).name,
        (producer and (producer["airflow"] or producer["integration"])) or "",
    )
    return next(filter(None, (stored(name).strip() for name in names)), "unknown").lower()
