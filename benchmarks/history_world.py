"""A year of an Airflow as the tables of the history have it, made by SQL alone.

Pipelines of three hops each, on tables that are partitioned by day and region: ``raw`` is ingested,
``clean`` is made of the same day, ``weekly`` of seven days of that and of a whole dimension, and
``mart`` of the same day; a report is made of all days of the first mart. One day in a hundred of
``raw`` was ingested again a month later, and nothing after it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.duckdb import copy
from airflow_provider_sparklineage.history.engines.layouts import Sizes
from airflow_provider_sparklineage.history.engines.pieces import make
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.history.tables import TABLES

if TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

DAYS, REGIONS, COLUMNS = 365, 10, 50
LAYERS = ("raw", "clean", "weekly", "mart")
NAMESPACE = "s3://lake"
ACCESSES_A_DAY = REGIONS * (1 + 2 + 8 + 2) + 1
"""Of one pipeline: each layer's reads and writes of cells, and the read of the dimension."""


def store_of(folder: Path, accesses: int, regions: int = REGIONS) -> Store:
    """Make a store of the tables, without facts, in an empty folder.

    :param accesses: how many there are at least, in pipelines as they are with ten regions
    :param regions: of each table, 365 partitions each
    """
    import duckdb

    pipelines, store = -(-accesses // (ACCESSES_A_DAY * DAYS)), Store(str(folder))
    with store.building() as building:
        making = building.scratch / "making.duckdb"
        with duckdb.connect(str(making)) as connection:
            connection.execute("SET enable_progress_bar = false")
            _tables(connection)
            connection.execute(_TASKS.format(days=DAYS, pipelines=pipelines))
            files = {}
            for name, query in _ROWS.items():
                text = query.format(
                    regions=regions, columns=COLUMNS, namespace=NAMESPACE, days=DAYS
                )
                connection.execute(f"INSERT INTO {name} BY NAME {text}")
            for table in TABLES:
                files[table.name] = building.scratch / f"{table.name}.parquet"
                order = ", ".join(table.sorted_by)
                copy(connection, f"FROM {table.name} ORDER BY {order}", files[table.name])
            layout = make(connection, building, files, Sizes(), accesses)
        names = {name: [one.file for one in pieces] for name, pieces in layout.pieces.items()}
        building.publish({}, names, {}, {}, layout=layout)
    return store


def _tables(connection: DuckDBPyConnection) -> None:
    for table in TABLES:
        columns = ", ".join(f'"{column.name}" {column.type}' for column in table.columns)
        connection.execute(f"CREATE TABLE {table.name} ({columns})")


# A run for each pipeline, layer and day; try 2 is what was ingested again.
_TASKS = """
CREATE TABLE tasks AS
WITH days AS (
    SELECT DATE '2024-01-01' + day::INTEGER AS dt, p AS pipeline, k AS layer, try_number
    FROM generate_series(0, {days} - 1) AS d(day), generate_series(0, {pipelines} - 1) AS p(p),
        generate_series(0, 3) AS k(k), generate_series(1, 2) AS t(try_number)
    WHERE try_number = 1 OR (k = 0 AND (day * 31 + p * 17) % 100 = 0)
    UNION ALL SELECT DATE '2024-01-01' + {days}::INTEGER, 0, 4, 1
)
SELECT md5(concat_ws(' ', dt, pipeline, layer, try_number))::UUID::VARCHAR AS run_id,
    dt, pipeline::INTEGER AS pipeline, layer::INTEGER AS layer, try_number::INTEGER AS try_number,
    CASE layer WHEN 4 THEN 'report'
        ELSE ['raw', 'clean', 'weekly', 'mart'][layer::INTEGER + 1] || '_' || pipeline
    END AS task_id,
    dt + to_hours(layer::INTEGER + 1 + 720 * (try_number::INTEGER - 1))
        + to_seconds(pipeline) AS started,
    started + INTERVAL 10 MINUTE AS ended
FROM days
"""

_CELL = "'dt=' || strftime({dt}, '%Y-%m-%d') || '/region=r' || region"
_KEY = "'partition' AS extent, {cell} AS partition, {cell} AS cell, 'dt,region' AS dims"
_WRITTEN = f"""
SELECT t.*, '{{namespace}}' AS namespace, 'warehouse/' || task_id AS name,
    {_KEY.format(cell=_CELL.format(dt="t.dt"))}, 'overwrite' AS mode, 'both' AS evidence
FROM tasks t, generate_series(0, {{regions}} - 1) AS r(region)
WHERE layer < 4
UNION ALL
SELECT t.*, '{{namespace}}', 'warehouse/report', 'all', NULL, NULL, NULL, 'overwrite', 'both'
FROM tasks t WHERE layer = 4
"""
_READ = f"""
SELECT t.*, s.run_id AS version_run_id, s.dt AS read_dt, '{{namespace}}' AS namespace,
    'warehouse/' || s.task_id AS name, {_KEY.format(cell=_CELL.format(dt="s.dt"))}
FROM tasks t JOIN tasks s ON s.pipeline = t.pipeline AND s.layer = t.layer - 1
    AND s.try_number = 1 AND s.dt BETWEEN
        t.dt - (CASE t.layer WHEN 2 THEN 6 WHEN 4 THEN {{days}} ELSE 0 END)::INTEGER AND t.dt,
    generate_series(0, {{regions}} - 1) AS r(region)
WHERE t.layer > 0
"""
# The dimension has one row each day, and seven regions of a week are one read of the region.
_WHOLE = """
SELECT t.*, '{namespace}' AS namespace, 'warehouse/dimension' AS name, 'all' AS extent
FROM tasks t WHERE layer = 2
"""

_ROWS = {
    "runs": """
SELECT run_id, 'airflow' AS namespace, 'shop.' || task_id AS job, 'shop' AS dag_id, task_id,
    'scheduled__' || strftime(dt, '%Y-%m-%dT00:00:00+00:00') AS dag_run_id, -1 AS map_index,
    try_number, dt AS logical_date, dt AS data_interval_start, dt + 1 AS data_interval_end,
    'COMPLETE' AS state, started, ended, TRUE AS is_time_certain, TRUE AS is_ours
FROM tasks
""",
    "accesses": f"""
SELECT run_id, ended AS accessed_at, 'write' AS side, namespace, name, extent, partition, cell,
    dims, 'both' AS evidence, mode, FALSE AS is_failed FROM ({_WRITTEN})
UNION ALL
SELECT run_id, started, 'read', namespace, name, extent, partition, cell, dims, 'both', NULL, NULL
FROM ({_READ})
UNION ALL
SELECT run_id, started, 'read', namespace, name, extent, NULL, NULL, NULL, 'both', NULL, NULL
FROM ({_WHOLE})
""",
    "columns": """
SELECT t.run_id, t.ended, '{namespace}' AS out_namespace, 'warehouse/' || t.task_id AS out_name,
    'c' || c AS out_column, '{namespace}' AS in_namespace, 'warehouse/' || s.task_id AS in_name,
    'c' || c AS in_column, 'DIRECT' AS type, 'IDENTITY' AS subtype, FALSE AS masking
FROM tasks t JOIN (SELECT DISTINCT pipeline, layer, task_id FROM tasks) s
    ON s.pipeline = t.pipeline AND s.layer = t.layer - 1,
    generate_series(0, {columns} - 1) AS c(c)
""",
    "changes": f"""
SELECT namespace, name, extent, partition, cell, dims, w.run_id, mode, evidence,
    w.ended AS valid_from,
    r.ended AS valid_to, r.run_id AS replaced_by, TRUE AS is_certain
FROM ({_WRITTEN}) w LEFT JOIN tasks r ON r.dt = w.dt AND r.pipeline = w.pipeline
    AND r.layer = w.layer AND r.try_number = w.try_number + 1
""",
    "bindings": f"""
SELECT namespace, name, extent, partition, cell, dims, b.run_id AS reader_run_id,
    b.started AS read_at, version_run_id, 'partition' AS version_extent, cell AS version_cell,
    v.ended AS valid_from, r.ended AS valid_to, 'both' AS evidence, TRUE AS is_certain
FROM ({_READ}) b JOIN tasks v ON v.run_id = b.version_run_id
    LEFT JOIN tasks r ON r.dt = v.dt AND r.pipeline = v.pipeline AND r.layer = v.layer
        AND r.try_number = 2
UNION ALL
SELECT namespace, name, extent, NULL, NULL, NULL, run_id, started, NULL, NULL, NULL, NULL,
    NULL, 'both', TRUE
FROM ({_WHOLE})
""",
    "changes_by_run": "FROM changes",
    "bindings_by_run": "FROM bindings",
}
