"""SQL that several queries share, and the interface to run queries on :mod:`..tables`.

One query handles many runs or versions at once: it gets them as lists, and joins them as a table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime


UNCERTAIN = "('declared', 'last_known')"
"""Evidence of accesses that were not observed."""

REMOVING = "('truncate', 'drop', 'removed')"
REPLACING = "('overwrite', 'create', 'truncate', 'drop', 'removed')"


DATASET = ("namespace", "name")
"""The columns by which a dataset is looked up."""
RUN = ("run_id", "ended")
"""The columns by which a run is looked up: also by ``ended``, by which the tables are sorted."""
_TIMES = ("at", "ended", "started")


def table_of(*names: str) -> str:
    """Give SQL that makes a table from parameters: each parameter is the list of a column's values.

    Each list is cast to the type of its column, because an empty list has no type. The column's
    name decides the type: TIMESTAMP for the names in ``_TIMES``, else VARCHAR.

    :param names: the names of the parameters, which become the names of the columns
    """
    types = ((name, "TIMESTAMP" if name in _TIMES else "VARCHAR") for name in names)
    columns = (f"unnest(CAST(${name} AS {type_}[])) AS {name}" for name, type_ in types)
    return f"SELECT {', '.join(columns)}"


def lists(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """Give the parameters for :func:`table_of`: the list of each column's values, by column.

    :param names: the names of the columns
    :param rows: the rows of the table; a row has a value for each column, in the same order
    """
    found = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in names]
    return dict(zip(names, found, strict=True))


def since(column: str, time: datetime | None) -> str:
    """Give the SQL condition that a time is null, or not before another one.

    The time is written into the query, because a parameter would not let DuckDB skip rows.

    :param column: SQL for the first time
    :param time: None if the condition holds for any time
    """
    if time is None:
        return "TRUE"
    return f"({column} IS NULL OR {column} >= CAST('{time.isoformat(' ')}' AS TIMESTAMP))"


READ_OR_WRITTEN = (*RUN, "namespace", "name", "of_column")
"""The columns of the table for :func:`column_edges`, which has columns that runs read or wrote.

``of_column`` is None for the dataset as a whole.
"""


def column_edges(side: str, other: str) -> str:
    """Give the SQL query for the column lineage of runs, from columns that they read or wrote.

    :param side: ``in`` for columns that the runs read, ``out`` for columns that they wrote
    :param other: the other one of these sides
    """
    names = (f"{other}_column", "type", "subtype", "masking", "description")
    of_column = (f"CASE WHEN f.of_column IS NOT NULL THEN c.{name} END AS {name}" for name in names)
    return f"""
    WITH f AS ({table_of(*READ_OR_WRITTEN)})
    SELECT DISTINCT f.run_id, f.namespace, f.name, f.of_column, c.{other}_namespace, c.{other}_name,
        {", ".join(of_column)}
    FROM columns AS c JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
        AND c.{side}_namespace = f.namespace AND c.{side}_name = f.name
    """


def meets(one: str, other: str) -> str:
    """Give the SQL condition that two partitions can have rows in common.

    They can, unless a dimension that both name has different values: ``dt=2024-10-15`` and
    ``dt=2024-10-15/region=eu`` meet. A value has no ``/`` and no ``=``, because both are escaped.

    :param one: SQL for the canonical text of a partition
    :param other: SQL for that of the other partition
    """
    parts = f"string_split({other}, '/')"
    labels = f"list_transform({parts}, lambda own: split_part(own, '=', 1))"
    differs = (
        f"list_contains({labels}, split_part(part, '=', 1)) AND NOT list_contains({parts}, part)"
    )
    return f"array_length(list_filter(string_split({one}, '/'), lambda part: {differs})) = 0"


def projected(cell: str, dims: str) -> str:
    """Give the SQL expression for the part of a partition that has only some of its dimensions.

    Two partitions meet (:func:`meets`) if their parts with the dimensions that both have are equal,
    by which they can be joined.

    :param cell: SQL for the canonical text of the partition
    :param dims: SQL for the names of the dimensions, with commas between
    """
    is_one = f"list_contains(string_split({dims}, ','), split_part(part, '=', 1))"
    parts = f"list_filter(string_split({cell}, '/'), lambda part: {is_one})"
    return f"COALESCE(array_to_string({parts}, '/'), '')"


def within(partition: str, row: str) -> str:
    """Give the SQL condition that a partition can be in a range of partitions.

    A partition whose text has another length than the range's two ends is taken to be in the range:
    its values may be numbers, and texts do not sort as numbers do.

    :param partition: SQL for the partition as text
    :param row: name of a row with first_partition and last_partition
    """
    first, last = f"{row}.first_partition", f"{row}.last_partition"
    return (
        f"({first} IS NULL OR {last} IS NULL OR length({partition}) <> length({first})"
        f" OR length({partition}) <> length({last}) OR {partition} BETWEEN {first} AND {last})"
    )


def found_by(reader: str, version: str) -> str:
    """Give the SQL condition that a run can have read a version.

    The version must have existed at the time of the read, and must overlap with the range that was
    read, if the read was of a range.

    :param reader: name of a row with reader_run_id, read_at, ended (the end of the reading run),
        extent, first_partition and last_partition
    :param version: name of a row of table ``changes``
    """
    no_time = f"{reader}.ended <= {reader}.read_at"
    is_range = f"{version}.extent = 'range'"
    outside = (
        f"{version}.last_partition < {reader}.first_partition"
        f" OR {reader}.last_partition < {version}.first_partition"
    )
    return f"""
    {version}.run_id <> {reader}.reader_run_id AND {version}.mode NOT IN {REMOVING}
    AND ({version}.valid_from < {reader}.read_at
        OR ({version}.valid_from = {reader}.read_at AND NOT {no_time}))
    AND ({version}.valid_to IS NULL OR {version}.valid_to > {reader}.read_at
        OR ({version}.valid_to = {reader}.read_at AND {no_time}))
    AND ({reader}.extent <> 'range'
        OR ({version}.cell IS NOT NULL AND {within(f"{version}.partition", reader)})
        OR ({version}.cell IS NULL AND NOT ({is_range} AND ({outside}))))
    """


def surely_found(reader: str, version: str) -> str:
    """Give the SQL condition that a read of several partitions certainly read a version.

    It also holds for a read without any version, for which a LEFT JOIN gives a row of nulls.

    :param reader: name of a row as for :func:`found_by`, with is_certain and evidence too
    :param version: name of a row of table ``changes``
    """
    return (
        f"({version}.run_id IS NULL OR ({reader}.is_certain AND {reader}.extent = 'all'"
        f" AND COALESCE({reader}.evidence, '') NOT IN {UNCERTAIN}"
        f" AND {version}.extent IN ('partition', 'all')"
        f" AND ({version}.uncertain_from IS NULL OR {version}.uncertain_from > {reader}.read_at)))"
    )


def vague(version: str) -> str:
    """Give the SQL condition that nobody says what a write wrote, nor how: most of dbt and SQL.

    :param version: name of a row of table ``changes``
    """
    return f"({version}.extent = 'unknown' AND {version}.mode = 'unknown')"


SURELY_BOUND = (
    f"b.is_certain AND COALESCE(b.evidence, '') NOT IN {UNCERTAIN}"
    " AND (b.version_run_id IS NULL OR b.version_extent IN ('partition', 'all'))"
)
"""The SQL condition that a read of one partition certainly read a version.

The read is a row ``b`` of table ``bindings``.
"""


class Rows(Protocol):
    """An opened store of the history, whose tables queries can read under the tables' names."""

    def rows(self, sql: str, parameters: Mapping[str, Any] = ...) -> list[dict[str, Any]]:
        """Run a query on the tables.

        :param sql: the query, in DuckDB's dialect
        :param parameters: values of ``$name`` in the query
        :return: rows as mappings from column names to values; times have no zone and are in UTC
        """
