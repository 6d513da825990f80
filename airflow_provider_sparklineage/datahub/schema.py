"""The schema of a dataset: its fields, with the paths and types that DataHub's connectors use.

The input is the fields of an event's ``schema`` facet and the dataset's platform. The output is a
:class:`Schema`: the fields for the aspect ``schemaMetadata``, and the path of each column for
lineage and statistics.

A producer writes a nested type in one of two forms, and both are read:

- as text: ``struct<a:int,b:array<string>>`` (Spark, Hive), ``STRUCT<a INT64>`` (BigQuery),
  ``row(a integer)`` (Trino);
- as the name of a type with ``fields`` (``SchemaDatasetFacet``): the OpenLineage listener writes
  ``_element`` below an ``array``, ``key`` and ``value`` below a ``map``, and the columns below a
  ``struct``.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.datahub.configuration import FieldPaths
from airflow_provider_sparklineage.datahub.proposals import plain, stored
from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.datahub.proposals import Json


MAX_DEPTH = 16
"""The most levels of structs, arrays and maps that are read; DataHub's paths name each level."""
MAX_NAME = 500
"""The most characters of a column's name; a longer name is cut, and ends in a checksum."""
MAX_TYPE = 100_000
"""The most characters of a type that is parsed; of a longer type only the beginning is shown."""
MAX_NATIVE = 1_000
"""The most characters of a type that are shown."""

STRUCT, ARRAY, MAP, UNION = "struct", "array", "map", "union"

_NESTED_TYPES = {
    "struct": STRUCT,
    "record": STRUCT,
    "row": STRUCT,
    "array": ARRAY,
    "list": ARRAY,
    "map": MAP,
    "union": UNION,
    "uniontype": UNION,
}
_UNKNOWN_TYPE = "unknown"
_OPENING, _CLOSING = "<([{", ">)]}"


class ColumnType(NamedTuple):
    """The type of a column, or of a part of a nested column.

    :param native: the type in the producer's words, at most ``MAX_NATIVE`` characters
    :param name: the type's name without parameters, in lower case: ``decimal``; for nested types
        ``struct``, ``array``, ``map``, ``union``
    :param children: the fields of a struct, the element of an array, key and value of a map, the
        members of a union; () if they are not known
    :param is_cut: whether children are left out, because they are too deep or the type is too long
    """

    native: str
    name: str
    children: tuple[Child, ...] = ()
    is_cut: bool = False


class Child(NamedTuple):
    """A type within a nested type.

    :param name: the name of a struct's field; empty within an array, a map or a union
    """

    name: str
    type: ColumnType
    description: str = ""


# --- as nested fields -----------------------------------------------------------------------------


def type_of_field(field: model.NestedField, depth: int = 0) -> ColumnType:
    """Read the type of a field of a schema facet.

    :param field: the field; if it has ``fields``, the children are read from them, and ``type``
        gives only the kind of nesting
    :param depth: the number of nested types around the field
    """
    written = stored(field.type or "", MAX_TYPE)
    if not field.fields:
        return _parsed_type(written, depth)
    kind = _NESTED_TYPES.get(_base_name(written), STRUCT)
    if depth >= MAX_DEPTH:
        return ColumnType(_shown_type(written or kind), kind, is_cut=True)
    children = tuple(_children(kind, field.fields, depth + 1))
    return ColumnType(_rendered_type(kind, children), kind, children)


def _children(kind: str, below: list[model.NestedField], depth: int) -> Iterator[Child]:
    if kind == STRUCT:
        for field in below:
            if field.name:
                name, description = stored(field.name, MAX_NAME), stored(field.description or "")
                yield Child(name, type_of_field(field, depth), description)
    else:
        yield from (Child("", type_of_field(one, depth)) for one in _unnamed(kind, below))


def _unnamed(kind: str, below: list[model.NestedField]) -> list[model.NestedField]:
    names = [field.name for field in below]
    if kind == MAP:
        named = dict(zip(names, below, strict=True))
        return [named.get("key", model.NestedField()), named.get("value", model.NestedField())]
    if kind == ARRAY and names not in (["_element"], ["element"]):
        # `below` are the columns of the elements; BigQuery's repeated records have this form.
        return [model.NestedField(fields=below)]
    return below


def _rendered_type(kind: str, children: Sequence[Child]) -> str:
    """Format a nested type in Spark's notation, e.g. ``struct<a:int,b:array<string>>``.

    Only the beginning is formatted, so that the time grows no more than linearly with the depth.

    :param kind: ``struct``, ``array``, ``map`` or ``union``
    """
    shown = (f"{one.name}:{one.type.native}" if one.name else one.type.native for one in children)
    return _shown_type(f"{kind}<{','.join(islice(shown, MAX_NATIVE))}>")


# --- as text --------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _parsed_type(written: str, depth: int) -> ColumnType:
    """Read a type from its text; a type that is not nested has no children.

    :param written: the type in the producer's words
    :param depth: the number of nested types around it
    """
    written = written.strip()
    kind = _NESTED_TYPES.get(_base_name(written))
    if kind is None:
        name = ARRAY if written.endswith("[]") else _base_name(written)
        return ColumnType(_shown_type(written), name or _UNKNOWN_TYPE)
    inner = _between_brackets(written)
    if depth >= MAX_DEPTH or not inner:
        is_cut = bool(inner) or len(written) >= MAX_TYPE
        return ColumnType(_shown_type(written), kind, is_cut=is_cut)
    return ColumnType(_shown_type(written), kind, tuple(_members(kind, inner, depth + 1)))


def _members(kind: str, inner: str, depth: int) -> Iterator[Child]:
    for part in (inner,) if kind == ARRAY else _split_list(inner):
        if kind != STRUCT:
            yield Child("", _parsed_type(part, depth))
        elif match := _QUOTED_FIELD.fullmatch(part) or _PLAIN_FIELD.fullmatch(part):
            name = stored(match[1].replace("``", "`"), MAX_NAME)
            yield Child(name, _parsed_type(_COLUMN_OPTIONS.sub("", match[2]), depth))


_BRACKETS = re.compile(r"[<(\[]")
_QUOTED_FIELD = re.compile(r"`((?:[^`]|``)+)`\s*:?\s*(.+)", re.DOTALL)
_PLAIN_FIELD = re.compile(r"([^\s:<>`]+)(?:\s*:|\s)\s*(.+)", re.DOTALL)
_COLUMN_OPTIONS = re.compile(
    r"\s+(?:not\s+null\b|comment\s+'|options\s*\().*", re.DOTALL | re.IGNORECASE
)


def _base_name(written: str) -> str:
    """Give the name before a type's brackets: ``timestamp`` of ``timestamp(3) with time zone``."""
    start = _BRACKETS.search(written)
    return written[: start.start() if start else MAX_NATIVE].strip().lower()


def _shown_type(written: str) -> str:
    return stored(written, MAX_NATIVE) or _UNKNOWN_TYPE


def _between_brackets(written: str) -> str:
    """Give the text in a type's outer brackets; empty if the type does not end in a bracket."""
    start = _BRACKETS.search(written)
    return written[start.end() : -1].strip() if start and written[-1] in _CLOSING else ""


def _split_list(inner: str) -> Iterator[str]:
    """Split the text in a type's brackets at the commas outside of inner brackets and backticks."""
    start = level = 0
    is_quoted = False
    for at, char in enumerate(inner):
        if char == "`":
            is_quoted = not is_quoted
        elif is_quoted:
            continue
        elif char in _OPENING:
            level += 1
        elif char in _CLOSING:
            level -= 1
        elif char == "," and level <= 0:
            yield inner[start:at].strip()
            start = at + 1
    yield inner[start:].strip()


# DataHub's types for all platforms: a class, with no parameters. They decide the icon of a column
# in DataHub's pages and the filters of its search; the producer's own type is always next to it.

_NAMES_BY_CLASS = {
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


def _by_name(names_by_kind: Mapping[str, str]) -> dict[str, str]:
    return {name: kind for kind, names in names_by_kind.items() for name in names.split()}


_CLASSES_BY_NAME = _by_name(_NAMES_BY_CLASS)


@lru_cache(maxsize=4096)
def data_type(of: ColumnType) -> Json:
    """Give the ``SchemaFieldDataType`` of a type; ``NullType`` for a type that is not known.

    The result is cached, so callers must not change it.
    """
    # "double precision", "timestamp without time zone", "int unsigned"
    named = _CLASSES_BY_NAME.get(of.name) or _CLASSES_BY_NAME.get(of.name.partition(" ")[0], "Null")
    return {"type": {f"com.linkedin.schema.{named}Type": _nested_types(of)}}


def _nested_types(of: ColumnType) -> Json:
    inner = [child.type.name for child in of.children]
    if of.name == MAP and inner:
        return {"keyType": inner[0], "valueType": inner[-1]}
    key = {ARRAY: "nestedType", UNION: "nestedTypes"}.get(of.name)
    return {key: inner} if key and inner else {}


# DataHub identifies a field by its path. If DataHub also ingests the dataset with a connector, the
# fields from both are the same only if the paths are equal in each character. Paths of version 2
# contain types (SDK: ``datahub.ingestion.extractor.schema_util`` for Avro,
# ``datahub.utilities.hive_schema_to_avro`` for types of Hive and Spark). Whether a column that is
# not nested has such a path depends on the connector:
#
# ====================  ====================================  ====================================
# platform              a column that is not nested           the SDK's source
# ====================  ====================================  ====================================
# glue, hive            ``[version=2.0].[type=int].id``       ``aws.glue``, ``sql.hive``
#                                                             (metastore)
# delta-lake            the same, by the names of Delta       ``delta_lake``
# iceberg               ``[version=2.0].[type=struct]         ``iceberg``
#                       .[type=int].id``
# others: files,        ``id``                                ``s3``, ``sql``, ``snowflake``,
# databases                                                   ``bigquery_v2``, ``unity``
# ====================  ====================================  ====================================
#
# A nested column has a path of version 2 on every platform. A path of version 1 has only names,
# joined by dots.

_VERSION = "[version=2.0]"
_STRUCT_PREFIX = f"{_VERSION}.[type=struct]"

_LOWER_CASE_PLATFORMS = frozenset({"hive", "glue", "snowflake", "bigquery"})
"""Platforms whose columns DataHub has in lower case: a metastore stores them in lower case, or the
connector converts them to lower case by default."""

_NESTED_KINDS = frozenset({STRUCT, ARRAY, MAP, UNION})

_HIVE_NAMES_BY_AVRO = {
    "string": "string varchar char binary",
    "boolean": "boolean bool",
    "int": "tinyint byte smallint short int integer date timestamp datetime",
    "long": "bigint long",
    "float": "float",
    "double": "double",
    "bytes": "decimal numeric bytes",
}
_AVRO_OF_HIVE = MappingProxyType({**_by_name(_HIVE_NAMES_BY_AVRO), "double precision": "double"})
"""Avro's types for the types of Hive and Spark; a type without an entry is ``null`` in Avro."""

_AVRO_OF_DELTA = {
    name: avro for name, avro in _AVRO_OF_HIVE.items() if name not in {"byte", "short"}
}
"""Avro's types for Delta's types. ``byte`` and ``short`` are left out, because the SDK reads the
names of Delta's types as those of Hive's, and Hive has no such types."""

_AVRO_OF_ICEBERG = {
    **_AVRO_OF_HIVE,
    "binary": "bytes",
    **dict.fromkeys(("timestamp", "timestamp_ntz", "timestamptz", "time"), "long"),
    **dict.fromkeys(("decimal", "fixed"), "fixed"),
    "uuid": "string",
}


class Naming(Frozen, frozen=True):
    """The rules for naming the fields of a dataset.

    :param prefix: the beginning of the path of a column that is not nested, before the column's
        type; None if the path is only the column's name
    :param avro: the Avro type for each name of a column type
    :param is_lower: whether names are in lower case
    :param version: the version of the paths of nested columns
    """

    prefix: str | None = None
    avro: Mapping[str, str] = _AVRO_OF_HIVE
    is_lower: bool = False
    version: FieldPaths = FieldPaths.V2

    def flat(self, type_name: str) -> str:
        """Give the beginning of the path of a column that is not nested: all before its name.

        :param type_name: the name of the column's type
        :return: empty if paths of the platform have no such beginning
        """
        if self.prefix is None:
            return ""
        return f"{self.prefix}.[type={self.avro.get(type_name, 'null')}]."

    def token(self, of: ColumnType) -> str:
        """Give the part of a nested field's path that stands for a type: ``[type=int]``."""
        known = of.name if of.name in _NESTED_KINDS else "null"
        return f"[type={self.avro.get(of.name, known)}]"

    def name(self, name: str) -> str:
        """Give a field's name in DataHub: in lower case if :attr:`is_lower`, else unchanged."""
        return name.lower() if self.is_lower else name


_NAMING_BY_PLATFORM = {
    "glue": Naming(_VERSION, is_lower=True),
    "hive": Naming(_VERSION, is_lower=True),
    "delta-lake": Naming(_VERSION, _AVRO_OF_DELTA),
    "iceberg": Naming(_STRUCT_PREFIX, _AVRO_OF_ICEBERG),
}


def naming_of_platform(platform: str, version: FieldPaths) -> Naming:
    """Give the rules for naming the fields of a platform's datasets.

    :param platform: the platform's id in DataHub: ``glue``, ``s3``
    :param version: the version of paths; paths of version 1 have no types
    """
    is_lower = platform in _LOWER_CASE_PLATFORMS
    if version is FieldPaths.V1:
        return Naming(is_lower=is_lower, version=version)
    return _NAMING_BY_PLATFORM.get(platform) or Naming(is_lower=is_lower)


def cased(how: Naming, names: Sequence[str]) -> Naming:
    """Give the rules for naming the columns of one dataset.

    If two of the names differ only in case, the rules keep the case of all names: a metastore that
    converts names to lower case could not have stored both columns.

    :param how: the rules of the dataset's platform
    :param names: the names of the dataset's columns
    """
    if how.is_lower and len({name.lower() for name in names}) < len(set(names)):
        return replace(how, is_lower=False)
    return how


class Field(NamedTuple):
    """A column, or a field within a nested column.

    :param path: the field's path in DataHub
    :param names: the names of the column and of the fields down to this one, as the event has them
    :param type: the declared type; for an array of structs, it is the array
    :param is_cut: whether fields below this one are left out
    """

    path: str
    names: tuple[str, ...]
    type: ColumnType
    description: str
    is_cut: bool = False


def nested_fields(
    how: Naming, prefix: str, at: ColumnType, field: Field, token: str = ""
) -> Iterator[Field]:
    """Walk down the type of a field, and yield the field and the fields below it, parents first.

    An array or a map within a field is a part of the field's path and has no field of its own; the
    key of a map has no field either. A union has a field of its own, and a field for each member.

    :param how: the rules for naming fields
    :param prefix: the path so far
    :param at: the current place in the type: the type itself, an element, a value, a member
    :param field: the field, with its names; its path is not read
    :param token: the part of the path that stands for ``at``; if it is empty, it is made by
        :meth:`Naming.token`
    """
    token = token or how.token(at)
    inner = _joined_path(prefix, token) if how.version is FieldPaths.V2 else prefix
    if at.children and at.name in (ARRAY, MAP):
        yield from nested_fields(how, inner, at.children[-1].type, field)
        return
    path = _joined_path(inner, how.name(field.names[-1]))
    yield field._replace(path=path, is_cut=at.is_cut)
    if at.name == UNION:
        for number, member in enumerate(at.children):
            # The SDK numbers the structs of a union among themselves.
            yield from nested_fields(how, inner, member.type, field, _member_token(at, number))
    else:
        for name, of, description in at.children:
            below = Field("", (*field.names, name), of, description)
            yield from nested_fields(how, path, of, below)


def _member_token(union: ColumnType, number: int) -> str:
    if union.children[number].type.name != STRUCT:
        return ""
    before = sum(member.type.name == STRUCT for member in union.children[:number])
    return f"[type={STRUCT}{before}]"


def _joined_path(prefix: str, part: str) -> str:
    return f"{prefix}.{part}" if prefix else part


# A schema has a limited number of fields, and counts the fields that are left out. GMS refuses a
# schema with an empty path, or with two fields that have one path (``FieldPathValidator``). So of
# two fields with one path, the second is left out.

MAX_FIELDS = 20_000
"""The most fields of a schema, including nested ones: about 4 MB of JSON."""
MAX_DESCRIPTION = 10_000
"""The most characters of a column's description."""

_TOO_DEEP = f"What is below is left out: there are more than {MAX_DEPTH} levels."
_CONTAINER_STEPS = frozenset({"_element", "element", "key", "value"})
"""Parts of a column's name that lead into an array or a map; DataHub's names lack these parts."""


class Schema:
    """The fields of a dataset in DataHub, and the path of each column.

    :param fields: the fields of a schema facet; a field without a name is left out
    :param naming: the rules of the dataset's platform for naming fields
    :param partitioning: names of the columns that the dataset is partitioned by
    """

    def __init__(
        self,
        fields: Sequence[model.NestedField],
        naming: Naming,
        partitioning: frozenset[str] = frozenset(),
    ) -> None:
        named = [(stored(one.name, MAX_NAME), one) for one in fields if one.name]
        self.left_out = len(fields) - len(named)
        self._naming = cased(naming, [name for name, _ in named])
        self._partitioning = partitioning
        self._fields: dict[str, Json] = {}
        self._flat: dict[str, str] = {}
        self._nested: dict[str, str] = {}
        for name, field in named:
            self._add(name, field)

    @property
    def fields(self) -> list[Json]:
        """Give the fields as JSON, in the form of ``SchemaMetadata``."""
        return list(self._fields.values())

    def path(self, column: str) -> str:
        """Give the path of a column, or of a field within a nested column: ``address.geo.lat``.

        If a name leads into a nested column, but to no field (``attributes.colour``, where
        ``attributes`` is a map), the result is the path of the nested column. For any other name
        that the schema does not have, the result is the name in the platform's case.
        """
        name = stored(column, MAX_NAME)
        return (
            self._flat.get(name)
            or self._nested.get(name)
            or self._by_lower_case.get(name.lower())
            or self._within(name)
            or self._naming.name(name)
        )

    def _within(self, name: str) -> str | None:
        steps = [step for step in name.split(".") if step not in _CONTAINER_STEPS]
        while steps and (path := self._nested.get(".".join(steps))) is None:
            steps.pop()
        return path if steps else None

    @cached_property
    def _by_lower_case(self) -> dict[str, str]:
        """Give the paths by names in lower case, because Spark finds a column in any case.

        The path is empty for a name that two columns have in lower case.
        """
        paths: dict[str, str] = {}
        for name, path in (*self._nested.items(), *self._flat.items()):
            paths[name.lower()] = "" if name.lower() in paths else path
        return paths

    # --- making the fields ------------------------------------------------------------------------

    def _add(self, name: str, field: model.NestedField) -> None:
        of = type_of_field(field)
        description = plain(field.description or "", MAX_DESCRIPTION)
        if not of.children:
            path = self._naming.flat(of.name) + self._naming.name(name)
            if self._put(Field(path, (name,), of, description)):
                self._flat[name] = path
            return
        prefix = _STRUCT_PREFIX if self._naming.version is FieldPaths.V2 else ""
        for one in nested_fields(self._naming, prefix, of, Field("", (name,), of, description)):
            if self._put(one):
                self._nested.setdefault(".".join(one.names), one.path)

    def _put(self, one: Field) -> bool:
        """Add a field and return True; return False if its path is in use or the schema is full."""
        if one.path in self._fields or len(self._fields) >= MAX_FIELDS:
            self.left_out += 1
            return False
        # No event shows whether a column is nullable. Spark's columns are nullable by default.
        field = {"fieldPath": one.path, "nullable": True, "type": data_type(one.type)}
        field["nativeDataType"] = one.type.native
        notes = filter(None, (one.description, _TOO_DEEP if one.is_cut else ""))
        if description := "\n\n".join(notes):
            field["description"] = description
        if len(one.names) == 1 and one.names[0] in self._partitioning:
            field["isPartitioningKey"] = True
        self._fields[one.path] = field
        return True
