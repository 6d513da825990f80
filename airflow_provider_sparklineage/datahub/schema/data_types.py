"""Types of columns as DataHub has them for all platforms: a class, with no parameters.

They decide the sign before a column in DataHub's pages and what its search can filter by; the type
as the producer has it is always next to it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub.schema.column_types import ARRAY, MAP, UNION

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.schema.column_types import ColumnType

_NAMES = {
    "Number": (
        "tinyint smallint mediumint int integer bigint hugeint byte short long float double real"
        " decimal dec numeric number bignumeric bigdecimal int2 int4 int8 int16 int32 int64 byteint"
        " uint8 uint16 uint32 uint64 float4 float8 float16 float32 float64 serial bigserial money"
    ),
    "Boolean": "boolean bool bit",
    "String": (
        "string varchar varchar2 nvarchar nvarchar2 char nchar bpchar character text tinytext"
        " mediumtext longtext clob nclob uuid uniqueidentifier"
    ),
    "Bytes": "binary varbinary bytes bytea blob tinyblob mediumblob longblob raw image",
    "Date": "date date32",
    "Time": (
        "timestamp timestamp_ntz timestamp_ltz timestamp_tz timestamptz datetime datetime2 time"
    ),
    "Enum": "enum",
    "Fixed": "fixed",
    "Record": "struct json jsonb variant object",
    "Array": "array",
    "Map": "map",
    "Union": "union",
}
_CLASSES = {name: one for one, names in _NAMES.items() for name in names.split()}


@lru_cache(maxsize=4096)
def data_type(of: ColumnType) -> Json:
    """Give the ``SchemaFieldDataType`` of a type; one that is not known is a ``NullType``.

    The same object for the same type: nobody changes it.
    """
    # "double precision", "timestamp without time zone", "int unsigned"
    named = _CLASSES.get(of.name) or _CLASSES.get(of.name.partition(" ")[0], "Null")
    return {"type": {f"com.linkedin.schema.{named}Type": _parameters(of)}}


def _parameters(of: ColumnType) -> Json:
    inner = [child.type.name for child in of.children]
    if not inner:
        return {}
    if of.name == ARRAY:
        return {"nestedType": inner}
    if of.name == UNION:
        return {"nestedTypes": inner}
    return {"keyType": inner[0], "valueType": inner[-1]} if of.name == MAP else {}
