"""Small worlds for tests: facts of runs by hand, and the tables that the steps make of them."""

from __future__ import annotations

import json
from unittest.mock import patch

import duckdb

from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.facts.line import Columns, Line
from airflow_provider_sparklineage.history.sources import Reading
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.tables import ACCESS, EDGE, FACTS

MIDNIGHT = "2024-10-15T00:{:02}:{:02}.000000Z"
ORDERS = "orders"


def at(minute, second=0):
    """Give the text of a time, so many minutes after midnight."""
    return MIDNIGHT.format(minute, second)


def read(cell=None, name=ORDERS, **fields):
    return _access("read", name, cell, fields)


def write(cell=None, name=ORDERS, mode="overwrite", **fields):
    return _access("write", name, cell, {"mode": mode, **fields})


def edge(out_column, in_column, in_name=ORDERS, **fields):
    names = {"out_namespace": "ns", "out_name": "revenue", "in_namespace": "ns"}
    return _row(EDGE, names | {"out_column": out_column, "in_column": in_column}
                | {"in_name": in_name, "type": "DIRECT"} | fields)  # fmt: skip


def event(run_id, ended, *accesses, started=None, columns=(), **fields):
    """Give the facts of an event that ends a run."""
    known = {
        "event_id": f"{run_id}@{ended}",
        "run_id": run_id,
        "namespace": "jobs",
        "job": f"dag.{run_id}",
        "event_type": "COMPLETE",
        "event_time": ended,
        "started": started,
        "is_ours": True,
        "degradations": 0,
        "accesses": list(accesses),
        "columns": list(columns),
    }
    return _row(FACTS, known | fields)


def lines(events):
    """Give events as the store takes them."""
    return list(map(line, events))


def line(event):
    """Give an event as the store takes it."""
    head = {key: value for key, value in event.items() if key != "columns"}
    text = json.dumps(event["columns"]).encode()
    return Line(json.dumps(head).encode()[:-1], Columns(text, str(hash(text)).encode()))


def add_facts(store, lines, **options):
    """Add lines of facts to a store, as if they had been read from sources."""

    def read(reading, sources):
        del sources
        for line in lines:
            reading.events += 1
            yield line

    with patch.object(Reading, "lines", read):
        return build(store, (), **options)


def kill_at(store, monkeypatch, number, names):
    """Let a process end at so many of its calls of some methods of the store's files.

    :return: the calls, which are noted as they come
    """
    calls = []

    def counted(method):
        def call(*arguments):
            calls.append(method)
            if len(calls) == number:
                raise KeyboardInterrupt
            return method(*arguments)

        return call

    for name in names:
        monkeypatch.setattr(store.files, name, counted(getattr(store.files, name)))
    return calls


def tables(folder, events):
    """Make all tables of events; give a function that asks for rows of one."""
    file = folder / "facts.ndjson"
    file.write_bytes(b"".join(one.text for one in lines(events)))
    connection = duckdb.connect(config={"threads": 1})
    columns = {one.name: one.type for one in FACTS.columns}
    connection.execute(
        f"CREATE TABLE facts AS SELECT * FROM read_json('{file}', format = 'newline_delimited', "
        f"columns = {columns})"
    )
    for step in STEPS:
        connection.execute(f"CREATE TABLE {step.name} AS {step.sql}")

    def rows(columns, table, where="TRUE"):
        query = f"SELECT {columns} FROM {table} WHERE {where} ORDER BY ALL"
        found = connection.execute(query).fetchall()
        return [row[0] for row in found] if len(connection.description) == 1 else found

    return rows


def _access(side, name, cell, fields):
    known = {"side": side, "namespace": "ns", "name": name, "extent": "all", "evidence": "both"}
    if cell is not None:
        dims = ",".join(part.partition("=")[0] for part in cell.split("/"))
        known |= {"extent": "partition", "partition": cell, "cell": cell, "dims": dims}
    return _row(ACCESS, known | {"is_failed": False} | fields)


def _row(table, fields):
    names = {one.name for one in table.columns}
    assert fields.keys() <= names, fields.keys() - names
    return fields
