"""Small worlds that queries can ask."""

from __future__ import annotations

import duckdb

from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.tables import FACTS
from airflow_provider_sparklineage.model.datasets import DatasetName
from tests.unit.history.worlds import lines


class Asked:
    """The tables that the steps make of events."""

    def __init__(self, folder, events):
        file = folder / "facts.ndjson"
        file.write_bytes(b"".join(one.text for one in lines(events)))
        self.connection = duckdb.connect(config={"threads": 1})
        columns = {one.name: one.type for one in FACTS.columns}
        self.connection.execute(
            f"CREATE TABLE facts AS SELECT * FROM read_json('{file}', "
            f"format = 'newline_delimited', columns = {columns})"
        )
        for step in STEPS:
            self.connection.execute(f"CREATE TABLE {step.name} AS {step.sql}")

    def rows(self, sql, parameters=None):
        found = self.connection.execute(sql, parameters or {})
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def named(name):
    return DatasetName("ns", name)


def short(hops):
    """Give depth, dataset, partition, column and run of each hop."""
    return [
        (hop.depth, hop.dataset.name, text(hop.partition), hop.column, hop.run and hop.run.run_id)
        for hop in hops
    ]


def text(partition):
    return partition and "/".join(f"{label}={value}" for label, value in partition.items())
