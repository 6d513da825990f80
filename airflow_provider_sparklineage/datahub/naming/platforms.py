"""What DataHub calls a dataset that OpenLineage calls by namespace and name.

Names are those that DataHub's own connectors give, so that what they know of a table and its
lineage are of one dataset. No server is in them: where there are two of a platform, DataHub tells
them apart by platform instance (:mod:`.namespaces`).

======================================  =============  =============================================
namespace                               platform       name
======================================  =============  =============================================
``s3``, ``s3a``, ``s3n``; ``gs``        s3; gcs        ``bucket/path``
``abfs[s]``, ``wasb[s]``                abs            ``container/path``, whichever account
``file``, ``hdfs://h:1``, other files   by scheme      ``path``, ``h:1/path``
``kafka://h:1``                         kafka          the topic
databases, e.g. ``postgres://h:1``      by scheme      ``database.schema.table``
``snowflake://…``                       snowflake      so, in lower case
``sqlserver://…``                       mssql          so
``oracle://…``                          oracle         ``schema.table``, in lower case unless quoted
``awsathena://…``                       athena         without the catalog ``AwsDataCatalog``
``bigquery``                            bigquery       without partition and date of a sharded table
``arn:aws:glue:…``                      glue           ``database.table``
``azurekusto://…``                      kusto          ``database.table``
any other                               its scheme     with the authority, for what that may be
======================================  =============  =============================================
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.datasets import DatasetName, canonical

if TYPE_CHECKING:
    from collections.abc import Callable

UNKNOWN = "unknown"
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
    scheme, authority = _split(name.namespace)
    platform = platform or _BY_SCHEME.get(scheme, scheme) or UNKNOWN
    text = name.name
    if platform == "abs":
        authority = authority.partition("@")[0]
    if platform in _NAMES:
        text = _NAMES[platform](text)
    elif platform not in _ON_SERVERS:
        text = text.strip("/")
    if authority and platform not in _ON_SERVERS:
        text = f"{authority.rstrip('/')}/{text}".strip("/")
    return Place(platform, text or "/")


def is_on_server(name: DatasetName) -> bool:
    """Whether a dataset is a table or a topic as it is, and no files that a table consists of."""
    scheme, _ = _split(canonical(name).namespace)
    return _BY_SCHEME.get(scheme, scheme) in _ON_SERVERS


def _split(namespace: str) -> tuple[str, str]:
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


_NAMES: dict[str, Callable[[str], str]] = {
    "athena": _athena,
    "bigquery": _bigquery,
    "glue": _glue,
    "hive": _glue,  # of which old listeners' names have that form, too
    "kusto": _kusto,
    "oracle": _oracle,
    "snowflake": str.lower,
}
