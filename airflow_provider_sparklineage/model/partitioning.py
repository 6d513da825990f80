"""Partitions: their dimensions and values, and how Hive writes both as folders.

The module also gives the canonical form of a value: two texts for the same value have the same
canonical form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from enum import Enum, auto
from functools import lru_cache
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model import timestamps
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value of a partition whose column is null: Hive and Spark name its folder so."""

IDENTITY = "identity"

KEY_FIELD = re.compile(r"\{([^{}]+)\}")
"""A dimension in the format of a partition key, such as ``{dt}``."""
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
# org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.escapePathName
_TO_ESCAPE = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")


@dataclass(frozen=True, order=True)
class Dimension:
    """A dimension of partitions: one column, or a transform of columns.

    :param fields: the columns, e.g. ``("ts",)``
    :param transform: the transform, e.g. ``identity``, ``day``, ``bucket[16]``
    :param name: key of the values, e.g. ``ts_day``; if it is empty, the key is the first field
    :param format: the format of values that are times, in the directives of
        :meth:`~datetime.datetime.strptime`, e.g. ``%Y%m%d``; empty if the format is not known, or
        the values are not times
    :param type: the type of the column, or of the transform's result, as Spark or Iceberg writes
        it; empty if the type is not known. Two reads may give the same column different types, so
        dimensions that differ only in their type are equal
    """

    fields: tuple[str, ...]
    transform: str = IDENTITY
    name: str = ""
    format: str = ""
    type: str = field(default="", compare=False)

    @classmethod
    def of_column(
        cls, column: str, transform: str = IDENTITY, name: str = "", type: str = ""
    ) -> Dimension:
        """Make the dimension of one column; the other values are those of :class:`Dimension`."""
        return cls((column,), transform, name, type=type)

    @property
    def label(self) -> str:
        """The key of this dimension in a partition."""
        return self.name or self.fields[0]


# An application may have hundreds of thousands of partitions in many sets. So the garbage collector
# does not track partitions, and each remembers its hash.
class Partition(Frozen, frozen=True, order=True, gc=False, cache_hash=True):
    """A partition: pairs of :attr:`Dimension.label` and value, in the order of the dimensions.

    A value that is null is :data:`NULL`. The partition without values is the full dataset. It is
    the only partition of a dataset that is not partitioned.
    """

    values: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_values(cls, values: Iterable[tuple[str, str | None]]) -> Partition:
        """Make a partition from pairs of :attr:`Dimension.label` and value.

        The values None and ``""`` become :data:`NULL`.
        """
        return cls(tuple((label, NULL if v is None or v == "" else v) for label, v in values))

    def as_dict(self) -> dict[str, str]:
        """Give the values by :attr:`Dimension.label`."""
        return dict(self.values)

    def __str__(self) -> str:
        return "/".join(f"{escape(label)}={escape(value)}" for label, value in self.values)


def escape(text: str) -> str:
    """Escape a column name or value as Hive and Spark do in a folder's name."""
    return _TO_ESCAPE.sub(lambda m: f"%{ord(m.group()):02X}", text)


def unescape(text: str) -> str:
    """Undo :func:`escape`: read a column name or value from a folder's name."""
    return _ESCAPED.sub(lambda m: chr(int(m.group(1), 16)), text)


def split_folder(folder: str) -> tuple[str, str] | None:
    """Read the column and value of a ``column=value`` folder; None for any other folder."""
    label, equals, value = folder.partition("=")
    return (unescape(label), unescape(value)) if equals and label else None


class KeyPattern(Frozen, frozen=True):
    """How Airflow's partition keys of a dataset are written; :meth:`parse` makes it.

    :param text: the pattern, e.g. ``{dt}|{region}``
    :param labels: the labels of the dimensions in the key, in its order
    """

    text: str
    labels: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> KeyPattern:
        """Read a pattern such as ``{dt}|{region}``.

        :raise ValueError: if it names no dimension, or one of them twice
        """
        labels = tuple(KEY_FIELD.findall(text))
        if not labels or len(set(labels)) != len(labels):
            msg = "it must name each dimension once, as in {dt}|{region}"
            raise ValueError(msg)
        return cls(text, labels)

    def values(self, key: str) -> list[tuple[str, str]] | None:
        """Give the pairs of label and value of a key; None if the key does not fit."""
        literals = KEY_FIELD.split(self.text)[::2]
        match = re.fullmatch("(.+?)".join(map(re.escape, literals)), key, re.DOTALL)
        return list(zip(self.labels, match.groups(), strict=True)) if match else None


class Fit(NamedTuple):
    """The partition of a path, and the places of its values in the path.

    :param spans: label, start and end of each value in the path; a label with several fields has
        several such triples
    """

    partition: Partition
    spans: tuple[tuple[str, int, int], ...]


def hive_folders(
    path: str,
) -> Iterator[tuple[int, tuple[str, str] | None, tuple[str, int, int]]]:
    """Yield the folders of a path, each with the column and value that are its name.

    :return: triples of the position where the folder begins; its column and value; and its span:
        the column, and the positions where the value begins and ends. For a folder that is not
        ``column=value``, the second is None, and the span is ``""`` with the positions where the
        folder's name begins (after a leading ``=``) and ends
    """
    for folder in re.finditer("[^/]+", path):
        value = split_folder(folder[0])
        label = value[0] if value else ""
        begin = folder.start() + folder[0].find("=") + 1
        yield folder.start(), value, (label, begin, folder.end())


def hive_fit(below: str) -> Fit | None:
    """Read the leading ``column=value`` folders of a path below a dataset's root.

    :return: None if the path begins with another folder; an empty partition for an empty path
    """
    leading = [*takewhile(lambda one: one[1], hive_folders(below))]
    if below.strip("/") and not leading:
        return None
    values = [value for _, value, _ in leading if value]
    return Fit(Partition.from_values(values), tuple(span for _, _, span in leading))


# --- values in canonical form, by the type, format and transform of their dimension ---------------
#
# ================  ================================================================================
# times             ISO 8601: ``20240506`` is ``2024-05-06``, and is day 19849 of an Iceberg table
# transforms        truncated to the year, month, day or hour, in UTC if there is a zone
# dates             the day as it is written, as Spark reads a text with a time or a zone
# timestamps        to the second, or finer if the text is
# whole numbers     without leading zeros, because Spark reads ``month=05`` as 5
# other numbers     without trailing zeros: ``1.10`` is ``1.1``
# texts             as they are, unless they are times: ``05`` and ``5`` are two partitions
# of unknown type   as texts, but one or two digits are a number
# ================  ================================================================================
#
# Null remains null for each type.


class ValueKind(Enum):
    """The kinds of values, which decide how two values of a type are compared."""

    INTEGRAL = auto()
    FRACTIONAL = auto()
    BOOLEAN = auto()
    DATE = auto()
    TIMESTAMP = auto()
    TEXT = auto()
    UNKNOWN = auto()


# By the names that types have in Spark's schemas (integer), in its SQL (int) and in Iceberg.
_KINDS = {
    **dict.fromkeys(
        ("byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"),
        ValueKind.INTEGRAL,
    ),
    **dict.fromkeys(("float", "double", "decimal"), ValueKind.FRACTIONAL),
    **dict.fromkeys(
        ("timestamp", "timestamptz", "timestamp_ntz", "timestamp_ltz"), ValueKind.TIMESTAMP
    ),
    **dict.fromkeys(("string", "char", "varchar", "uuid"), ValueKind.TEXT),
    "boolean": ValueKind.BOOLEAN,
    "date": ValueKind.DATE,
}
_TYPE = re.compile("[a-z_]+")
_SMALL = re.compile(r"0*(\d{1,2})", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,40}", re.ASCII)
_SEPARATORS = re.compile("[-:T]")
_LONGEST_DECIMAL = 40  # 1E+9999 would become a text of ten thousand digits


def kind_of(dimension: Dimension) -> ValueKind:
    """Give the kind of a dimension's values, by its type."""
    return _kind_of(dimension.type)


@lru_cache(maxsize=1_000)
def _kind_of(type_name: str) -> ValueKind:
    base = _TYPE.match(type_name.casefold())
    return _KINDS.get(base[0], ValueKind.UNKNOWN) if base else ValueKind.UNKNOWN


def canonical_value(value: str, form: str, dimension: Dimension | None) -> str:
    """Give the canonical text of a partition's value: the same for every way to write the value.

    :param value: the value as it is written: ``20240506`` and ``2024-05-06`` are one date
    :param form: the format of the value, as for :func:`~.timestamps.canonical_time`
    :param dimension: the dimension that the value belongs to; None if no dimension was observed
    """
    if value == NULL:
        return value
    if dimension and dimension.transform in timestamps.PRECISION:
        return timestamps.canonical_of_transform(value, form, dimension.transform) or value
    kind = kind_of(dimension) if dimension else ValueKind.UNKNOWN
    if kind is ValueKind.DATE:
        return timestamps.canonical_day(value, form) or value
    timestamp = timestamps.canonical_time(value, form, or_iso=True)
    if timestamp is None:
        return timestamps.canonical_month(value) or _plain(value, kind)
    timestamp = timestamps.in_utc(timestamp)
    return timestamps.to_the_second(timestamp) if kind is ValueKind.TIMESTAMP else timestamp


def folder_values(value: str, canonical: str, *, is_text: bool) -> tuple[str, ...]:
    """List the texts that a folder's name may have for a value.

    A glob matches the value if it matches one of these texts. Several are needed, because the
    observed value can differ from the folder's text: Spark reads ``05`` as 5, and a layout may
    write ``2024-05-06`` without separators.

    :param value: the value as it was observed
    :param canonical: the same value in its canonical form
    :param is_text: whether the column's type is text: then Spark reports the folder's own text
    """
    both = (value, canonical, _SEPARATORS.sub("", canonical))
    return both if is_text else (*both, value.zfill(2))


def _plain(value: str, kind: ValueKind) -> str:
    if kind is ValueKind.INTEGRAL and _WHOLE.fullmatch(value):
        return str(int(value))
    if kind is ValueKind.FRACTIONAL:
        return _decimal(value)
    if kind is ValueKind.BOOLEAN:
        return value.casefold()
    if kind is ValueKind.UNKNOWN and (small := _SMALL.fullmatch(value)):
        return small[1].lstrip("0") or "0"
    return value


def _decimal(value: str) -> str:
    try:
        number = Decimal(value)
    except InvalidOperation:
        return value
    if not number.is_finite() or abs(number.adjusted()) > _LONGEST_DECIMAL:
        return str(number)
    return "0" if number == 0 else f"{number.normalize():f}"
