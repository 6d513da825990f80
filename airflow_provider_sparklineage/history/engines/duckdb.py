"""DuckDB, in this process: the engine that reads the history, and builds it unless it is Spark."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_sparklineage.history.tables import TABLES, Table
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.storage.bounded import reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import ModuleType

    import duckdb

    from airflow_provider_sparklineage.history.store import Store

PARQUET = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1"
"""Options of ``COPY``, for all files of a store."""
_DAMAGED = (
    "If a file of the store is damaged, remove its manifest.json and build it from the archive."
)
_INSTALL = "pip install 'airflow-provider-sparklineage[history]'"
_GLOB = str.maketrans({"[": "[[]", "*": "[*]", "?": "[?]"})


class History:
    """A generation of a store, to ask it; a context, for one thread.

    What is built meanwhile is seen by who opens it anew.

    :raise HistoryError: if DuckDB is missing, or there is no history yet
    """

    def __init__(self, store: Store) -> None:
        self.manifest = store.manifest
        self._store = store  # which removes its copies of what is elsewhere when nobody has it
        self._connection = connect()
        with failing("opened"):
            for table in TABLES:
                files = store.local(self.manifest.tables.get(table.name, ()))
                create_view(self._connection, table, files)

    def rows(
        self, sql: str, parameters: Mapping[str, object] | None = None
    ) -> list[dict[str, Any]]:
        """Give the rows of a query of the tables, each by the names of its columns.

        :param parameters: of ``$name`` in the query; lists are lists of SQL
        :raise HistoryError: if the query is none, or a file cannot be read
        """
        with failing("asked"):
            found = self._connection.execute(sql, dict(parameters or {}))
            names = [column[0] for column in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def close(self) -> None:
        """Let go of the files."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(**options: str | int | bool) -> duckdb.DuckDBPyConnection:
    """Give DuckDB, in memory.

    :param options: its settings
    :raise HistoryError: if it is not installed
    """
    settings = {"autoinstall_known_extensions": False, **options}
    connection: duckdb.DuckDBPyConnection = _duckdb().connect(config=settings)
    connection.execute("SET enable_progress_bar = false")  # it would be between the lines of JSON
    return connection


def _duckdb() -> ModuleType:
    try:
        import duckdb
    except ImportError as error:
        problem = "The history needs DuckDB."
        raise HistoryError(problem, f"Install it: {_INSTALL}.") from error
    return duckdb


@contextmanager
def failing(done: str) -> Iterator[None]:
    """Raise what DuckDB raises as a :exc:`HistoryError`: it could not be ``done``.

    :raise HistoryError: also if it is not installed
    """
    problems = (_duckdb().Error, OSError)
    try:
        yield
    except problems as error:
        problem = f"The history could not be {done} ({reason(error)})."
        raise HistoryError(problem, _DAMAGED if done != "asked" else "") from error


def create_view(
    connection: duckdb.DuckDBPyConnection, table: Table, files: Iterable[str], name: str = ""
) -> None:
    """Make a view of the files of a table, whichever engine and version wrote them.

    A column that an older version did not have is null.
    """
    scan, found = "(SELECT 1 WHERE FALSE)", set()
    if names := ", ".join(literal(file) for file in files):
        scan = f"read_parquet([{names}], union_by_name = true, hive_partitioning = false)"
        described = connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
        found = {(column[0], column[1]) for column in described}
    columns = ", ".join(_column(one.name, one.type, found) for one in table.columns)
    connection.execute(f"CREATE VIEW {name or table.name} AS SELECT {columns} FROM {scan}")


def literal(file: object) -> str:
    """Write the path of a file as a text of SQL, in which nothing stands for other names."""
    return text_literal(str(file).translate(_GLOB))


def text_literal(text: str) -> str:
    """Write a text as SQL has it."""
    quoted = text.replace("'", "''")
    return f"'{quoted}'"


def _column(name: str, type_: str, found: set[tuple[str, str]]) -> str:
    if (name, type_) in found:  # a cast would keep what is asked for out of the scan
        return f'"{name}"'
    if any(name == one for one, _ in found):
        return f'CAST("{name}" AS {type_}) AS "{name}"'
    return f'CAST(NULL AS {type_}) AS "{name}"'
