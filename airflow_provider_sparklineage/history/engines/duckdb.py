"""DuckDB, in this process: the engine that reads the history, and builds it unless Spark does."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.tables import TABLES, Table
from airflow_provider_sparklineage.model.exceptions import (
    HistoryError,
    LimitError,
    TooManyError,
)
from airflow_provider_sparklineage.storage.bounded import reason, remedy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from types import ModuleType

    import duckdb

    from airflow_provider_sparklineage.history.store import Store

MOST_ROWS = 5_000_000
"""Greatest number of rows of a query, which take some gigabytes of memory in Python."""
_FETCHED = 50_000
_TOO_MANY = f"The answer needs more than {MOST_ROWS:,} rows."
_NARROW = "Ask for one dataset, or for a partition of it."
PARQUET = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1"
"""Options of ``COPY``, for all files of a store."""
_DAMAGED = (
    "If a file of the store is damaged, remove its manifest.json and build it from the archive."
)
_OUT_OF_MEMORY = "The answer takes more memory than it may."
_ROOM = "Or give it more room for temporary files: set TMPDIR."
_INSTALL = "pip install 'airflow-provider-sparklineage[history]'"
_GLOB = str.maketrans({"[": "[[]", "*": "[*]", "?": "[?]"})


MEMORY = "2GB"
"""DuckDB's limit of memory for the queries of a command or a task."""


def _temporary_folder() -> TemporaryDirectory[str] | None:
    """Make a folder for temporary files; None where no file can be written."""
    with suppress(OSError):
        return TemporaryDirectory(prefix="sparklineage-", ignore_cleanup_errors=True)
    return None


class History:
    """A generation of a store (a version of all its tables), open for queries.

    It is a context manager, for one thread. It shows the generation that was in force when it was
    opened; to see a later one, open another. What exceeds DuckDB's memory is in temporary files
    until it is closed, unless no file can be written.

    :param memory_limit: DuckDB's limit of memory
    :param options: other settings of DuckDB
    :raise HistoryError: if DuckDB is missing, or a file of the store cannot be read
    """

    def __init__(self, store: Store, memory_limit: str = MEMORY, **options: str) -> None:
        self.manifest = store.manifest
        self._store = store  # keeps alive its copies of remote files, which are deleted with it
        self._temporary = _temporary_folder()
        options["temp_directory"] = self._temporary.name if self._temporary else ""
        try:
            self._connection = connect(memory_limit=memory_limit, **options)
            with failing("opened"):
                # A table may have dozens of files, which do not change.
                self._connection.execute("SET parquet_metadata_cache = true")
                for table in TABLES:
                    files = store.local(self.manifest.tables.get(table.name, ()))
                    create_view(self._connection, table, files)
        except HistoryError:
            self._remove_temporary()
            raise

    def rows(
        self, sql: str, parameters: Mapping[str, object] | None = None
    ) -> list[dict[str, Any]]:
        """Run a query on the tables; give each row as a mapping from column names to values.

        :param parameters: values of ``$name`` in the query; a list becomes a list in SQL
        :raise LimitError: if the time of the question is over (:mod:`..bounds`), if DuckDB has not
            enough memory, or if there are more than :data:`MOST_ROWS` rows
        :raise HistoryError: if the query is invalid, or a file cannot be read
        """
        found: list[dict[str, Any]] = []
        with failing("asked"), bounds.interrupting(self._connection.interrupt):
            rows = self._connection.execute(sql, dict(parameters or {}))
            names = [column[0] for column in rows.description or ()]
            while some := rows.fetchmany(_FETCHED):
                found += (dict(zip(names, row, strict=True)) for row in some)
                if len(found) > MOST_ROWS:
                    raise TooManyError(_TOO_MANY, _NARROW)
                bounds.check()
        return found

    def close(self) -> None:
        """Close the connection, which closes the files, and remove temporary ones."""
        self._connection.close()
        self._remove_temporary()

    def _remove_temporary(self) -> None:
        if self._temporary:
            self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(**options: str | int | bool) -> duckdb.DuckDBPyConnection:
    """Open a new DuckDB database in memory.

    :param options: settings of DuckDB
    :raise HistoryError: if DuckDB is not installed
    """
    settings = {"autoinstall_known_extensions": False, **options}
    connection: duckdb.DuckDBPyConnection = _duckdb().connect(config=settings)
    connection.execute("SET enable_progress_bar = false")  # it would be mixed with JSON output
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
    """Turn errors of DuckDB and of files into a :exc:`HistoryError`.

    :param done: past participle for the message: ``built`` gives "The history could not be built"
    :raise HistoryError: also if DuckDB is not installed
    """
    duckdb = _duckdb()
    try:
        yield
    except (duckdb.Error, OSError) as error:
        if isinstance(error, duckdb.InterruptException):
            bounds.check()
        problem = f"The history could not be {done} ({reason(error)})."
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            fix = remedy(error)
        elif isinstance(error, duckdb.OutOfMemoryException):
            if done == "asked":
                raise LimitError(_OUT_OF_MEMORY, f"{_NARROW} {_ROOM}") from error
            fix = "Run it where there is more memory, or room on the disk of the store."
        else:
            is_of_file = not isinstance(error, duckdb.ProgrammingError) or done != "asked"
            fix = remedy(error, _DAMAGED if is_of_file else "")
        raise HistoryError(problem, fix) from error


def create_view(
    connection: duckdb.DuckDBPyConnection, table: Table, files: Iterable[str], name: str = ""
) -> None:
    """Create a view of the files of a table, which any engine and any version may have written.

    A column that the files lack is null. A column that has another type in the files is cast.

    :param files: paths of Parquet files; if there are none, the view has no rows
    :param name: name of the view; if it is empty, the view has the name of the table
    """
    scan, in_files = "(SELECT 1 WHERE FALSE)", {}
    if names := [*files]:
        # Without it, DuckDB would know the statistics of no file, and join in bad orders.
        scan = scan_of(names, "union_by_name = true")
        described = connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
        in_files = {column[0]: column[1] for column in described}
    columns = ", ".join(_column(one.name, one.type, in_files) for one in table.columns)
    connection.execute(f"CREATE VIEW {name or table.name} AS SELECT {columns} FROM {scan}")


def scan_of(files: Iterable[object], *options: str) -> str:
    """Give the call of DuckDB's ``read_parquet`` that reads files.

    :param files: paths of Parquet files, at least one
    :param options: further arguments, e.g. ``filename = true``
    """
    names = ", ".join(map(literal, files))
    return f"read_parquet({', '.join((f'[{names}]', 'hive_partitioning = false', *options))})"


def copy(connection: duckdb.DuckDBPyConnection, query: str, file: Path, options: str = "") -> int:
    """Write the rows of a query to a Parquet file; give their number.

    :param options: further options of ``COPY``, beginning with a comma
    """
    into = f"{text_literal(str(file))} ({PARQUET}{options})"
    return _number(connection, f"COPY ({query}) TO {into}")


def count_of(connection: duckdb.DuckDBPyConnection, rows: str) -> int:
    """Give the number of rows of a table, a view or a call in SQL."""
    return _number(connection, f"SELECT count(*) FROM {rows}")


def _number(connection: duckdb.DuckDBPyConnection, statement: str) -> int:
    row = connection.execute(statement).fetchone()
    return int(row[0]) if row else 0


def literal(file: object) -> str:
    """Quote the path of a file as an SQL string literal, with glob characters escaped."""
    return text_literal(str(file).translate(_GLOB))


def text_literal(text: str) -> str:
    """Quote a text as a string of SQL."""
    quoted = text.replace("'", "''")
    return f"'{quoted}'"


def _column(name: str, type_: str, in_files: Mapping[str, str]) -> str:
    if in_files.get(name) == type_:  # with a cast, DuckDB would not push filters into the scan
        return f'"{name}"'
    value = f'"{name}"' if name in in_files else "NULL"
    return f'CAST({value} AS {type_}) AS "{name}"'
