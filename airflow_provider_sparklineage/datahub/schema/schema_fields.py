"""The schema of a dataset: fields for its ``SchemaMetadata``, and their paths for lineage.

A schema is bounded, and what is left out of it is declared. GMS refuses a schema in which a path is
empty or comes twice (``FieldPathValidator``), so of two fields with one path the first is kept.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub.lenient import text
from airflow_provider_sparklineage.datahub.schema.column_types import (
    MAX_DEPTH,
    MAX_NAME,
    MAX_TYPE,
    ColumnType,
    of_field,
    of_text,
)
from airflow_provider_sparklineage.datahub.schema.data_types import data_type
from airflow_provider_sparklineage.datahub.schema.field_paths import cased, nested
from airflow_provider_sparklineage.datahub.values import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.datahub.proposals import Json
    from airflow_provider_sparklineage.datahub.schema.field_paths import Field, Naming

MAX_FIELDS = 20_000
"""Fields of a schema, nested ones among them: 4 MB of JSON."""
MAX_DESCRIPTION = 10_000
"""Characters of a column's description."""

_CUT = f"What is below is left out: there are more than {MAX_DEPTH} levels."
_STEPS = frozenset({"_element", "element", "key", "value"})
"""Names that lead into an array or a map, and are of no field."""


class Schema:
    """The fields of a dataset.

    :param fields: as a schema facet has them; those without a name are left out
    :param naming: how the dataset's platform calls them
    :param partitioning: names of columns that the dataset is partitioned by
    """

    def __init__(
        self, fields: Iterable[Json], naming: Naming, partitioning: frozenset[str] = frozenset()
    ) -> None:
        given = [(text(one.get("name"), MAX_NAME), one) for one in fields]
        named = [(name, one) for name, one in given if name]
        self.left_out = len(given) - len(named)
        self._naming = cased(naming, [name for name, _ in named])
        self._partitioning = partitioning
        self._fields: dict[str, Json] = {}
        self._flat: dict[str, str] = {}
        self._nested: dict[str, str] = {}
        for name, field in named:
            self._add(name, field)

    @property
    def fields(self) -> list[Json]:
        """Give the fields, as ``SchemaMetadata`` has them."""
        return list(self._fields.values())

    def path(self, column: str) -> str:
        """Give the path of a column, or of a field of a nested one: ``address.geo.lat``.

        One that the schema does not have is a column by its name. What is below a nested column and
        is no field of it (``attributes.colour``, of a map) is that column.
        """
        name = text(column, MAX_NAME)
        return (
            self._flat.get(name)
            or self._nested.get(name)
            or self._by_lower_case.get(name.lower())
            or self._within(name)
            or self._naming.name(name)
        )

    def _within(self, name: str) -> str | None:
        steps = [step for step in name.split(".") if step not in _STEPS]
        while steps and (path := self._nested.get(".".join(steps))) is None:
            steps.pop()
        return path if steps else None

    @cached_property
    def _by_lower_case(self) -> dict[str, str]:
        """Paths by names in lower case: Spark finds a column so. None of names that clash."""
        found: dict[str, str] = {}
        for name, path in (*self._nested.items(), *self._flat.items()):
            found[name.lower()] = "" if name.lower() in found else path
        return found

    # --- making them ------------------------------------------------------------------------------

    def _add(self, name: str, field: Json) -> None:
        of = of_field(field) if field.get("fields") else of_text(text(field.get("type"), MAX_TYPE))
        description = plain(field.get("description"), MAX_DESCRIPTION)
        if of.children:
            for one in nested(self._naming, name, of, description):
                self._add_nested(one)
            return
        path = self._naming.flat(of.name) + self._naming.name(name)
        if self._put(path, of, description, is_key=name in self._partitioning):
            self._flat[name] = path

    def _add_nested(self, field: Field) -> None:
        notes = filter(None, (field.description, _CUT if field.is_cut else ""))
        is_key = len(field.names) == 1 and field.names[0] in self._partitioning
        if self._put(field.path, field.type, "\n\n".join(notes), is_key=is_key):
            self._nested.setdefault(".".join(field.names), field.path)

    def _put(self, path: str, of: ColumnType, description: str, *, is_key: bool) -> bool:
        if path in self._fields or len(self._fields) >= MAX_FIELDS:
            self.left_out += 1
            return False
        # No event says which columns are nullable, and Spark's are unless somebody forbids it.
        field = {"fieldPath": path, "nullable": True, "type": data_type(of)}
        field["nativeDataType"] = of.native
        if description:
            field["description"] = description
        if is_key:
            field["isPartitioningKey"] = True
        self._fields[path] = field
        return True
