"""What queries ask: anything that answers SQL on the tables of :mod:`..tables` with rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Rows(Protocol):
    """A generation of the tables, under their names, for as long as it is open."""

    def rows(self, sql: str, parameters: Mapping[str, Any] = ...) -> list[dict[str, Any]]:
        """Answer a query in DuckDB's dialect.

        :param parameters: values of ``$name`` in the query
        :return: rows by name of column; times are without a zone, in UTC
        """
