"""What a partition is: dimensions, values, and how Hive writes both as folders."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Iterable

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The value of a partition whose column is null: what Hive and Spark call its folder."""

IDENTITY = "identity"

_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
# org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils.escapePathName
_TO_ESCAPE = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")


@dataclass(frozen=True, order=True)
class Dimension:
    """One partition column, or a transform of columns.

    :param fields: the columns, e.g. ``("ts",)``
    :param transform: ``identity``, ``day``, ``bucket[16]`` …
    :param name: key of the values, e.g. ``ts_day``; the first field if empty
    :param format: of values that are times, as :meth:`~datetime.datetime.strptime` has it, e.g.
        ``%Y%m%d``; empty where that is not known, or the values are no times
    :param type: of the column, or of what the transform makes of it, as Spark or Iceberg writes it;
        empty where that is not known. Two reads may take one column for different types, so it
        makes no dimensions differ
    """

    fields: tuple[str, ...]
    transform: str = IDENTITY
    name: str = ""
    format: str = ""
    type: str = field(default="", compare=False)

    @classmethod
    def of(
        cls, column: str, transform: str = IDENTITY, name: str = "", type: str = ""
    ) -> Dimension:
        """Make the dimension of a single column."""
        return cls((column,), transform, name, type=type)

    @property
    def label(self) -> str:
        """The key of this dimension in a partition."""
        return self.name or self.fields[0]


# An application may have hundreds of thousands, in many sets.
class Partition(Frozen, frozen=True, order=True, gc=False, cache_hash=True):
    """Values by dimension label, in the order of the dimensions; null is :data:`NULL`.

    The empty partition is all of a dataset that is not partitioned.
    """

    values: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, values: Iterable[tuple[str, str | None]]) -> Partition:
        """Make a partition of values as data has them, with None for null."""
        return cls(tuple((label, NULL if v is None or v == "" else v) for label, v in values))

    def as_dict(self) -> dict[str, str]:
        """Values by dimension label."""
        return dict(self.values)

    def __str__(self) -> str:
        return "/".join(f"{escape(label)}={escape(value)}" for label, value in self.values)


def escape(text: str) -> str:
    """Write a column name or value as Hive and Spark do in a folder's name."""
    return _TO_ESCAPE.sub(lambda m: f"%{ord(m.group()):02X}", text)


def unescape(text: str) -> str:
    """Read a column name or value from a folder's name."""
    return _ESCAPED.sub(lambda m: chr(int(m.group(1), 16)), text)


def split_folder(folder: str) -> tuple[str, str] | None:
    """Read the column and value of a ``column=value`` folder; None if it is none."""
    label, equals, value = folder.partition("=")
    return (unescape(label), unescape(value)) if equals and label else None


class Fit(NamedTuple):
    """The partition of a path, and where in the path its values are."""

    partition: Partition
    spans: tuple[tuple[str, int, int], ...]
    """Label, start and end of each value in the path; several of one label where its fields are."""


def hive_fit(below: str) -> Fit | None:
    """Read the leading ``column=value`` folders of a path; None if it begins with another one."""
    values = []
    spans = []
    for folder in re.finditer("[^/]+", below):
        found = split_folder(folder[0])
        if found is None:
            break
        values.append(found)
        spans.append((found[0], folder.start() + folder[0].index("=") + 1, folder.end()))
    if below.strip("/") and not values:
        return None
    return Fit(Partition.of(values), tuple(spans))
