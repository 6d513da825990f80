"""DataHub's names of an event's entities, as URNs that its server takes.

In go OpenLineage's namespaces and names, with the facets that say more (``symlinks``, ``parent``);
out come the URN of a dataset by way of its platform and its table, and those of flows, jobs and
runs. Names are those that DataHub's own connectors give, so that both write to one entity.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, quote_plus

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.configuration import namespace_settings
from airflow_provider_sparklineage.event.model import name_of
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.datasets import DatasetName, canonical
from airflow_provider_sparklineage.model.producer import DISTRIBUTION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_sparklineage.datahub.configuration import Conversion
    from airflow_provider_sparklineage.datahub.proposals import Json


# URNs are plain text, as DataHub's SDK makes them. The server (``UrnValidationUtil``) refuses a URN
# that takes more than 512 bytes once it is encoded for a URL, but that of a field, and one with a
# ``␟``. Commas and parentheses it takes for its own.
#
# ========================  ======================================================================
# ``,`` ``(`` ``)`` ``␟``   percent-encoded (``UrnEncoder`` of the SDK)
# control characters        so, as well, and halves of surrogate pairs: not every database takes
#                           them
# ``%`` before such a code  ``%25``, so that ``a,b`` and a name ``a%2Cb`` are two. Any other stays
# a text that is too long   its beginning, and a checksum of all of it
# ========================  ======================================================================

MAX_BYTES = 512
"""Of a URN that is encoded for a URL: ``UrnValidationUtil.URN_NUM_BYTES_LIMIT``."""

_CODES = r"2C|28|29|E2%90%9F|[01][0-9A-F]|7F|ED%[AB][0-9A-F]%[89AB][0-9A-F]"
_RESERVED = re.compile(rf"[,()␟\x00-\x1f\x7f\ud800-\udfff]|%(?=(?:25)*(?:{_CODES}))")
_CHECKSUM_DIGITS = 16  # hex digits: 64 bits


def encoded(text: str) -> str:
    """Encode what has a meaning in a URN; two texts never become one."""
    return _RESERVED.sub(lambda found: quote(found[0], safe="", errors="surrogatepass"), text)


def fitted(text: str, before: str, after: str) -> str:
    """Encode a text so that the server takes the URN that it is a part of.

    :param text: a name, an id
    :param before: what the URN has before it, encoded
    :param after: what the URN has after it, encoded
    :return: all of it where there is room, else its beginning with a checksum of all
    """
    return _shortened(text, MAX_BYTES - _url_bytes(before) - _url_bytes(after))


def dataset_urn(platform: str, name: str, env: str) -> str:
    """Give the URN of a dataset.

    :param name: with the platform instance that it begins with, if there is one
    """
    before, after = f"urn:li:dataset:({data_platform_urn(platform)},", f",{env})"
    return f"{before}{fitted(name, before, after)}{after}"


_PLATFORM_BYTES = 64  # so that there is room for names: the longest of DataHub's own has 22


def data_platform_urn(platform: str) -> str:
    """Give the URN of a platform."""
    return f"urn:li:dataPlatform:{_shortened(platform, _PLATFORM_BYTES)}"


def platform_instance_urn(platform: str, instance: str) -> str:
    """Give the URN of one of several instances of a platform."""
    before = f"urn:li:dataPlatformInstance:({data_platform_urn(platform)},"
    return f"{before}{fitted(instance, before, ')')})"


def platform_urn_of(dataset: str) -> str:
    """Give the URN of the platform that the URN of a dataset names."""
    return dataset.partition("(")[2].partition(",")[0]


def schema_field_urn(dataset: str, path: str) -> str:
    """Give the URN of a field of the dataset that has a URN."""
    return f"urn:li:schemaField:({dataset},{encoded(path)})"


_FLOW_BYTES = 200  # so that there is as much room for the ids of its jobs


def data_flow_urn(flow_id: str, cluster: str, orchestrator: str = "airflow") -> str:
    """Give the URN of a DAG."""
    parts = _shortened(orchestrator, 32), _shortened(flow_id, _FLOW_BYTES), _shortened(cluster, 32)
    return f"urn:li:dataFlow:({','.join(parts)})"


def data_job_urn(flow: str, job_id: str) -> str:
    """Give the URN of a task."""
    before = f"urn:li:dataJob:({flow},"
    return f"{before}{fitted(job_id, before, ')')})"


def process_instance_urn(run_id: str) -> str:
    """Give the URN of a run."""
    before = "urn:li:dataProcessInstance:"
    return before + fitted(run_id.strip(), before, "")


def _shortened(text: str, room: int) -> str:
    whole = encoded(text)
    if _url_bytes(whole) <= room:
        return whole
    mark = f"~{sha256(text.encode(errors='surrogatepass')).hexdigest()[:_CHECKSUM_DIGITS]}"
    low, high = 0, len(text)  # how much of it surely has room, and how much surely has not
    while low + 1 < high:
        middle = (low + high) // 2
        fits = _url_bytes(encoded(text[:middle]) + mark) <= room
        low, high = (middle, high) if fits else (low, middle)
    return encoded(text[:low]) + mark


def _url_bytes(text: str) -> int:
    """Count as ``java.net.URLEncoder`` does, which encodes ``~`` and leaves ``*``."""
    return len(quote_plus(text, safe="*")) + 2 * text.count("~")


# A dataset's platform and its name there, by OpenLineage's namespace and name. Names are those that
# DataHub's own connectors give, so that their tables and lineage are of the same dataset. No server
# is in them: where there are two of a platform, DataHub tells them apart by platform instance (key
# ``namespaces`` of the configuration).
#
# ======================================  =============  =========================================
# namespace                               platform       name
# ======================================  =============  =========================================
# ``s3``, ``s3a``, ``s3n``; ``gs``        s3; gcs        ``bucket/path``
# ``abfs[s]``, ``wasb[s]``                abs            ``container/path``, whichever account
# ``file``, ``hdfs://h:1``, other files   by scheme      ``path``, ``h:1/path``
# ``kafka://h:1``                         kafka          the topic
# databases, e.g. ``postgres://h:1``      by scheme      ``database.schema.table``
# ``snowflake://…``                       snowflake      so, in lower case
# ``sqlserver://…``                       mssql          so
# ``oracle://…``                          oracle         ``schema.table``, in lower case unless
#                                                        quoted
# ``awsathena://…``                       athena         without the catalog ``AwsDataCatalog``
# ``bigquery``                            bigquery       without partition and date of a sharded
#                                                        table
# ``arn:aws:glue:…``                      glue           ``database.table``
# ``azurekusto://…``                      kusto          ``database.table``
# any other                               its scheme     with the authority, for what that may be
# ======================================  =============  =========================================

UNKNOWN_PLATFORM = "unknown"
"""The platform of what has no namespace; DataHub's own converter has that too."""


class Place(NamedTuple):
    """Where a dataset is in DataHub, but for instance and environment."""

    platform: str
    name: str


# Where it is not the scheme itself.
_BY_SCHEME = {
    "s3a": "s3", "s3n": "s3", "gs": "gcs",
    "abfs": "abs", "abfss": "abs", "wasb": "abs", "wasbs": "abs",
    "awsathena": "athena", "azurekusto": "kusto", "mongo": "mongodb", "postgresql": "postgres",
    "saphana": "hana", "sqlserver": "mssql", "thrift": "hive",
}  # fmt: skip

# Whose authority is a server, and the name of a table or a topic all that is needed on it.
_ON_SERVERS = frozenset({
    "athena", "bigquery", "cassandra", "clickhouse", "cockroachdb", "crate", "databricks", "db2",
    "dremio", "druid", "elasticsearch", "glue", "hana", "hive", "iceberg", "kafka", "kusto",
    "mariadb", "mongodb", "mssql", "mysql", "oceanbase", "oracle", "pinot", "postgres", "presto",
    "redshift", "snowflake", "teradata", "trino", "vertica",
})  # fmt: skip

_SCHEME = re.compile(r"(?:jdbc:)?([a-z][a-z0-9+.-]*):(?://)?(.*)", re.DOTALL | re.IGNORECASE)
_GLUE = re.compile(r"(?:arn:)?aws[a-z-]*:glue:")


def placed(name: DatasetName, platform: str = "") -> Place:
    """Give a dataset's platform and its name there.

    :param platform: if it is known better than by the namespace
    :raise: nothing, whatever the name is
    """
    name = canonical(name)
    scheme, authority = _scheme_and_authority(name.namespace)
    platform = platform or _BY_SCHEME.get(scheme, scheme) or UNKNOWN_PLATFORM
    text = name.name
    if platform == "abs":
        authority = authority.partition("@")[0]
    if platform in _NAMES_BY_PLATFORM:
        text = _NAMES_BY_PLATFORM[platform](text)
    elif platform not in _ON_SERVERS:
        text = text.strip("/")
    if authority and platform not in _ON_SERVERS:
        text = f"{authority.rstrip('/')}/{text}".strip("/")
    return Place(platform, text or "/")


def is_on_server(name: DatasetName) -> bool:
    """Whether a dataset is a table or a topic as it is, and no files that a table consists of."""
    scheme, _ = _scheme_and_authority(canonical(name).namespace)
    return _BY_SCHEME.get(scheme, scheme) in _ON_SERVERS


def _scheme_and_authority(namespace: str) -> tuple[str, str]:
    if _GLUE.match(namespace):
        return "glue", ""
    found = _SCHEME.fullmatch(namespace)
    if found is None:
        return namespace, ""
    return found[1].lower(), scrub_name(f"{found[1]}://{found[2]}").partition("://")[2]


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


def _kusto(name: str) -> str:
    return name.replace("/", ".")


def _oracle(name: str) -> str:
    parts = name.split(".")
    shown = [part.lower() if part.isupper() else part for part in parts]
    return ".".join(shown[-2:] if len(parts) == len(("service", "schema", "table")) else shown)


_NAMES_BY_PLATFORM: dict[str, Callable[[str], str]] = {
    "athena": _athena,
    "bigquery": _bigquery,
    "glue": _glue,
    "hive": _glue,  # of which old listeners' names have that form, too
    "kusto": _kusto,
    "oracle": _oracle,
    "snowflake": str.lower,
}


# Files that a table consists of are that table: the listener names its inputs and outputs by their
# files, and a symlink of type ``TABLE`` says whose they are. As in DataHub's own converter, that of
# a Glue catalog is ``glue``, any other ``hive``; not so
#
# - where a dataset is a table or a topic as it is: a stream of Flink's that is one of Kafka stays
#   that
# - where the catalog is of Iceberg, and neither Hive's nor Glue's: those DataHub ingests as
#   ``iceberg``.
#
# All names that a dataset has are its: columns mention it by any of them.


class Identity(NamedTuple):
    """A dataset of DataHub.

    :param platform: its name, e.g. ``s3``
    :param name: without the instance; not encoded
    :param instance: of the platform; empty for none
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

    @property
    def instance_urn(self) -> str:
        """Give the URN of the platform's instance; of a platform that has several."""
        return platform_instance_urn(self.platform, self.instance)


class Table(NamedTuple):
    """The table whose files a dataset is.

    :param platform: as the catalog says; empty where the namespace does
    """

    name: DatasetName
    platform: str = ""


def identity(name: DatasetName, how: Conversion, platform: str = "") -> Identity:
    """Give the dataset that a name is of.

    :param platform: if it is known better than by the namespace
    """
    known = namespace_settings(name.namespace, how.namespaces)
    place = placed(name, known.platform or platform)
    text = f"{known.name_prefix}{place.name}"
    instance = known.platform_instance
    return Identity(
        place.platform,
        text.lower() if known.lower_case else text,
        how.platform_instance if instance is None else instance,
        known.env or how.env,
    )


def tables(datasets: Iterable[dict[str, Any]], *, follow: bool) -> dict[DatasetName, Table]:
    """Find the tables among the datasets of an event.

    :param datasets: documents of both sides, each with a namespace and a name
    :param follow: whether files are the table that a symlink names, or the table is its files
    :return: by each of their names; what is not there is what it is called
    """
    theirs: dict[DatasetName, Table] = {}
    own: dict[DatasetName, Table] = {}  # of a dataset whose symlink another document may have
    for document in datasets:
        name = canonical(name_of(document))
        links = _symlinks(document)
        named = [link for link, type_ in links if type_ == "TABLE"]
        is_table = follow and named and not is_on_server(name)
        of = (
            Table(min(named, key=_preference), _platform_of_catalog(document, named))
            if is_table
            else None
        )
        for one in (name, *(link for link, _ in links)):
            (theirs if of else own).setdefault(one, of or Table(name))
    return own | theirs


def _symlinks(document: dict[str, Any]) -> list[tuple[DatasetName, str]]:
    """Give the other names of a dataset with their types; not what is malformed."""
    found = lenient.items(lenient.at(document, "facets", "symlinks", "identifiers"))
    return [
        (canonical(name_of(one)), str(one.get("type")).upper()) for one in found if is_named(one)
    ]


def is_named(document: dict[str, Any]) -> bool:
    """Whether something has the name of a dataset."""
    namespace, name = document.get("namespace"), document.get("name")
    return isinstance(namespace, str) and isinstance(name, str) and bool(name)


def _preference(name: DatasetName) -> tuple[bool, bool, DatasetName]:
    """Rank tables: Glue's, Hive's, others'; the order in the facet is none that lasts."""
    platform = placed(name).platform
    return platform != "glue", platform != "hive", name


def _platform_of_catalog(document: dict[str, Any], named: Iterable[DatasetName]) -> str:
    if any(map(is_on_server, named)):  # which says what it is
        return ""
    catalog = lenient.mapping(lenient.at(document, "facets", "catalog"))
    of_iceberg = catalog.get("framework") == "iceberg" and catalog.get("type") not in _METASTORES
    return "iceberg" if of_iceberg else "hive"


_METASTORES = ("hive", "glue")


# An event has one name for its flow and its job. DataHub's own Airflow plugin names the DAG
# ``(airflow,<dag_id>)`` and the task by its ``task_id``; so do we, that both write to the same
# entities. The ids of Airflow may have dots, so that a name is cut where the name of its parent
# ends: a task's parent is its DAG's run, and that of an action of Spark is the application.
#
# =================================  =======================  =========  ========================
# event of                           its name                 flow       job
# =================================  =======================  =========  ========================
# a DAG's run (``jobType``: DAG)     ``a.dag``                ``a.dag``  none
# a task, parent ``a.dag``           ``a.dag.group.task``     ``a.dag``  ``group.task``
# a Spark application (APPLICATION)  ``app``                  ``app``    none
# an action of it, parent ``app``    ``app.insert_in.table``  ``app``    ``insert_in.table``
# else, as DataHub's converter does  ``flow.job``             ``flow``   ``job``
# one without a dot                  ``job``                  ``job``    ``job``
# =================================  =======================  =========  ========================

AIRFLOW = "airflow"
_OF_FLOWS = {"DAG", "APPLICATION"}
# Where producers have their source; Airflow's and ours name no integration.
_PRODUCERS = re.compile(
    rf"^urn:(?P<ours>{DISTRIBUTION})|github\.com/apache/(?P<airflow>airflow)\b"
    r"|github\.com/OpenLineage/.*/integration/(?P<integration>\w+)",
    re.IGNORECASE,
)


class JobName(NamedTuple):
    """A flow, and a job in it.

    :param orchestrator: what runs it, as DataHub names that platform: ``airflow``, ``spark``
    :param flow: a ``dag_id``, the name of an application
    :param job: a ``task_id``; empty for an event of the flow itself
    """

    orchestrator: str
    flow: str
    job: str = ""

    def flow_urn(self, how: Conversion) -> str:
        """Give the URN of the DataFlow; with the platform instance, if there are several."""
        name = self.flow or "unknown"
        flow = f"{how.platform_instance}.{name}" if how.platform_instance else name
        return data_flow_urn(flow, how.cluster, self.orchestrator)

    def job_urn(self, how: Conversion) -> str:
        """Give the URN of the DataJob."""
        return data_job_urn(self.flow_urn(how), self.job or self.flow or "unknown")


def job_name(event: Json) -> JobName:
    """Name the flow and the job of an event; with empty names, if it is of none."""
    facets = lenient.at(event, "run", "facets")
    name = lenient.text(lenient.at(event, "job", "name")).strip()
    orchestrator = orchestrator_of(event)
    if lenient.text(lenient.at(event, "job", "facets", "jobType", "jobType")) in _OF_FLOWS:
        return JobName(orchestrator, name)
    parents = (
        lenient.at(facets, "parent", "job", "name"),
        lenient.at(facets, "airflow", "dag", "dag_id"),
    )
    return split_job_name(orchestrator, name, *parents)


def split_job_name(orchestrator: str, name: str, *parents: object) -> JobName:
    """Cut the name of a job where the first of its possible parents' ends, else at its first dot.

    :param parents: names; what is none is not looked at
    """
    for parent in map(lenient.text, parents):
        if parent and name.startswith(f"{parent}.") and len(name) > len(parent) + 1:
            return JobName(orchestrator, parent, name[len(parent) + 1 :])
    flow, _, job = name.partition(".")
    return JobName(orchestrator, flow, job) if flow and job else JobName(orchestrator, name, name)


def orchestrator_of(event: Json) -> str:
    """Name what runs the job: its integration, its engine, who sent the event; else ``unknown``.

    That is the order of DataHub's converter (``OpenLineagePlatformResolver.getOrchestrator``). This
    package makes events of tasks, and they may have the engine of their application.
    """
    producer = _PRODUCERS.search(lenient.text(event.get("producer")))
    if producer and producer["ours"]:
        return AIRFLOW
    known = (
        lenient.at(event, "job", "facets", "jobType", "integration"),
        lenient.at(event, "run", "facets", "processing_engine", "name"),
        producer and (producer["airflow"] or producer["integration"]),
    )
    found = next(filter(None, (lenient.text(one).strip() for one in known)), "unknown")
    return found.lower()
