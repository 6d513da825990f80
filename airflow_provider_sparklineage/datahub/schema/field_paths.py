"""Paths of fields: what a field is called in DataHub, as the connector of its platform calls it.

A field is its path there, so a dataset that DataHub also ingests itself has ours only if ours is
the same, in each character. Version 2 of paths has types in them (SDK:
``datahub.ingestion.extractor.schema_util`` for Avro, ``datahub.utilities.hive_schema_to_avro`` for
types of Hive and Spark); which columns have one depends on the connector:

====================  ====================================  ========================================
platform              a column that is not nested           the SDK's source
====================  ====================================  ========================================
glue, hive            ``[version=2.0].[type=int].id``       ``aws.glue``, ``sql.hive`` (metastore)
delta-lake            the same, by the names of Delta       ``delta_lake``
iceberg               ``[version=2.0].[type=struct]         ``iceberg``
                      .[type=int].id``
others: files,        ``id``                                ``s3``, ``sql``, ``snowflake``,
databases                                                   ``bigquery_v2``, ``unity``
====================  ====================================  ========================================

A nested column has a path of version 2 in all of them. Version 1 is names with points between them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.datahub.options import FieldPaths
from airflow_provider_sparklineage.datahub.schema.column_types import ARRAY, MAP, STRUCT, UNION
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.datahub.schema.column_types import ColumnType

_VERSION = "[version=2.0]"
_NESTED = f"{_VERSION}.[type=struct]"

_LOWER = frozenset({"hive", "glue", "snowflake", "bigquery"})
"""Whose columns DataHub has in lower case: a metastore stores them so, or the connector does it by
default."""

_KINDS = frozenset({STRUCT, ARRAY, MAP, UNION})

_HIVE = MappingProxyType(
    {
        "string": "string",
        "varchar": "string",
        "char": "string",
        "binary": "string",
        "boolean": "boolean",
        "bool": "boolean",
        "tinyint": "int",
        "byte": "int",
        "smallint": "int",
        "short": "int",
        "int": "int",
        "integer": "int",
        "date": "int",
        "timestamp": "int",
        "datetime": "int",
        "bigint": "long",
        "long": "long",
        "float": "float",
        "double": "double",
        "double precision": "double",
        "decimal": "bytes",
        "numeric": "bytes",
        "bytes": "bytes",
    }
)
"""Types of Avro that stand for those of Hive and Spark; there is none for the others: ``null``."""

_DELTA = {name: avro for name, avro in _HIVE.items() if name not in {"byte", "short"}}
"""The SDK reads Delta's names as if they were Hive's, which has no ``byte`` and no ``short``."""

_ICEBERG = {
    **_HIVE,
    "binary": "bytes",
    "timestamp": "long",
    "timestamp_ntz": "long",
    "timestamptz": "long",
    "time": "long",
    "decimal": "fixed",
    "fixed": "fixed",
    "uuid": "string",
}


class Naming(Frozen, frozen=True):
    """How the fields of a dataset are called.

    :param prefix: of a column that is not nested, before its type; None if it has its name only
    :param avro: the type of Avro for a type of a column
    :param is_lower: whether names are in lower case
    :param version: of nested columns
    """

    prefix: str | None = None
    avro: Mapping[str, str] = _HIVE
    is_lower: bool = False
    version: FieldPaths = FieldPaths.V2

    def flat(self, type_name: str) -> str:
        """Give what stands before the name of a column that is not nested."""
        if self.prefix is None:
            return ""
        return f"{self.prefix}.[type={self.avro.get(type_name, 'null')}]."

    def token(self, of: ColumnType) -> str:
        """Give what a type is in the path of a field that is nested."""
        known = of.name if of.name in _KINDS else "null"
        return f"[type={self.avro.get(of.name, known)}]"

    def name(self, name: str) -> str:
        """Give the name of a field as DataHub has it."""
        return name.lower() if self.is_lower else name


_BY_PLATFORM = {
    "glue": Naming(_VERSION, is_lower=True),
    "hive": Naming(_VERSION, is_lower=True),
    "delta-lake": Naming(_VERSION, _DELTA),
    "iceberg": Naming(_NESTED, _ICEBERG),
}


def naming(platform: str, version: FieldPaths) -> Naming:
    """Give how the fields of a platform's datasets are called.

    :param platform: its id in DataHub: ``glue``, ``s3``
    """
    is_lower = platform in _LOWER
    if version is FieldPaths.V1:
        return Naming(is_lower=is_lower, version=version)
    return _BY_PLATFORM.get(platform) or Naming(is_lower=is_lower)


def cased(how: Naming, names: Sequence[str]) -> Naming:
    """Give how fields of these names are called: in lower case only if that names them all.

    Where columns differ in their case only, no metastore has put them into lower case.
    """
    if how.is_lower and len({name.lower() for name in names}) < len(set(names)):
        return replace(how, is_lower=False)
    return how


class Field(NamedTuple):
    """A nested column, or a field below one.

    :param path: of the field
    :param names: of the column and of the fields down to this one, as the event has them
    :param type: as declared: of an array of structs, that array
    :param is_cut: whether there are fields below that are left out
    """

    path: str
    names: tuple[str, ...]
    type: ColumnType
    description: str
    is_cut: bool = False


def nested(how: Naming, name: str, of: ColumnType, description: str = "") -> Iterator[Field]:
    """Give a nested column and the fields below it, parents first.

    Arrays and maps are part of the path of a field, and have no field of their own; nor has the
    key of a map. Only a union has several: its own and one for each member.
    """
    prefix = _NESTED if how.version is FieldPaths.V2 else ""
    yield from _fields(how, prefix, of, Field("", (name,), of, description))


def _fields(
    how: Naming, prefix: str, at: ColumnType, field: Field, token: str = ""
) -> Iterator[Field]:
    """Walk the type of a field.

    :param at: where in its type the walk is: the type itself, its element, the value, a member
    :param token: in the place of the type's own
    """
    token = token or how.token(at)
    inner = _joined(prefix, token) if how.version is FieldPaths.V2 else prefix
    if at.children and at.name in (ARRAY, MAP):
        yield from _fields(how, inner, at.children[-1].type, field)
        return
    path = _joined(inner, how.name(field.names[-1]))
    yield field._replace(path=path, is_cut=at.is_cut)
    if at.name == UNION:
        for number, member in enumerate(at.children):
            # The SDK numbers the structs of a union among themselves.
            yield from _fields(how, inner, member.type, field, _member_token(at, number))
    else:
        for name, of, description in at.children:
            yield from _fields(how, path, of, Field("", (*field.names, name), of, description))


def _member_token(union: ColumnType, number: int) -> str:
    if union.children[number].type.name != STRUCT:
        return ""
    before = sum(member.type.name == STRUCT for member in union.children[:number])
    return f"[type={STRUCT}{before}]"


def _joined(prefix: str, part: str) -> str:
    return f"{prefix}.{part}" if prefix else part
