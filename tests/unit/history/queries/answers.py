"""The tables of a few runs by hand, in DuckDB, that answer as an opened store does."""

from __future__ import annotations

from datetime import datetime, timedelta

import duckdb

from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.history.tables import TABLES

START = datetime(2024, 1, 1, 6)  # noqa: DTZ001  (times of the tables have no zone)


class Answers:
    """Give rows of tables to which runs are added day by day."""

    def __init__(self):
        self._connection = duckdb.connect(config={"threads": 1})
        for table in TABLES:
            columns = ", ".join(f'"{one.name}" {one.type}' for one in table.columns)
            self._connection.execute(f"CREATE TABLE {table.name} ({columns})")

    def rows(self, sql, parameters=None):
        found = self._connection.execute(sql, parameters or {})
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def add(self, table, **values):
        names = ", ".join(f'"{name}"' for name in values)
        marks = ", ".join(f"${name}" for name in values)
        self._connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", values)

    def run(self, day, reads=(), writes=(), task="build", state="COMPLETE", edges=(), **fields):
        """Add the run of a day, six hours after the end of its interval's first moment.

        :param reads: partitions of ``orders``, or (name, partition); None is the whole dataset
        :param writes: partitions of ``revenue``, or (name, partition)
        :param edges: (output column, input column, subtype)
        """
        run_id = fields.get("run_id", f"{task}-{day}")
        at = START + timedelta(day)
        interval = at.replace(hour=0)
        known = {"namespace": "jobs", "job": f"dag.{task}", "dag_id": "dag", "task_id": task}
        known |= {"run_id": run_id, "dag_run_id": f"scheduled-{day}", "state": state}
        known |= {"data_interval_start": interval, "data_interval_end": interval + timedelta(1)}
        known |= {"logical_date": interval, "started": at, "ended": at + timedelta(hours=1)}
        self.add("runs", **known | fields)
        for side, cells, default in (("read", reads, "orders"), ("write", writes, "revenue")):
            for one in cells:
                name, cell = one if isinstance(one, tuple) else (default, one)
                self._access(known | fields, side, name, cell, at)
        for column, source, subtype in edges:
            names = {"out_namespace": "ns", "out_name": "revenue", "in_namespace": "ns"}
            names |= {"in_name": "orders", "out_column": column, "in_column": source}
            names |= {"run_id": run_id, "ended": (known | fields)["ended"]}
            self.add("columns", type="DIRECT", subtype=subtype, **names)

    def _access(self, run, side, name, cell, at):
        known = {"run_id": run["run_id"], "namespace": "ns", "name": name, "partition": cell}
        known |= {"extent": "partition" if cell else "all"}
        known |= {"cell": cell_of_text(cell).cell if cell else None}
        failed = run["state"] != "COMPLETE"
        mode = "overwrite" if side == "write" else None
        of_run = {"dag_id": run["dag_id"], "job": run["job"], "accessed_at": at}
        self.add("accesses", side=side, is_failed=failed, mode=mode, **of_run, **known)
        if side == "write" and not failed:
            self.add("changes", mode=mode, valid_from=at, is_certain=True, **known)
