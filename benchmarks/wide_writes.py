"""What a job of wide writes leaves: the events and observations of a recorded one, made to measure.

Each write is of as many columns as its source, each of them made of two: ``c0 * 2 + c1 AS c0``, of
the rows ``WHERE c0 > 1``. As recorded from Spark 4.0 with its listener 1.53, but for sizes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.terms import EVENTS, OBSERVATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN_ID = "00000000-0000-0000-0000-000000000000"
"""Of the application, in its events."""
LAKE = "/lake"

_PRODUCER = "https://github.com/OpenLineage/OpenLineage/tree/1.53.0/integration/spark"
_SPEC = "https://openlineage.io/spec"
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_PLANS = "org.apache.spark.sql.catalyst.plans.logical"
_EXECUTION = "org.apache.spark.sql.execution.datasources"


def write_to(folder: Path, writes: int, columns: int) -> None:
    """Write what listener and observer write of such a job, under the names of a bundle."""
    for name, records in (
        (EVENTS, _events(writes, columns)),
        (OBSERVATIONS, _observations(writes, columns)),
    ):
        (folder / name).write_text("".join(f"{json.dumps(record)}\n" for record in records))


# --- events ---------------------------------------------------------------------------------------


def _facet(schema: str, **fields: Any) -> dict[str, Any]:
    return {"_producer": _PRODUCER, "_schemaURL": f"{_SPEC}/{schema}", **fields}


def _events(writes: int, columns: int) -> Iterator[dict[str, Any]]:
    yield _event("START", RUN_ID, 0, "wide_writes")
    schema = _facet(
        "facets/1-2-0/SchemaDatasetFacet.json",
        fields=[{"name": f"c{number}", "type": "long"} for number in range(columns)],
    )
    source = f"{LAKE}/source"
    read = {"namespace": "file", "name": source, "facets": {"schema": schema}}
    for write in range(writes):
        facets = {"schema": schema, "columnLineage": _column_lineage(source, columns)}
        facets["lifecycleStateChange"] = _facet(
            "facets/1-0-1/LifecycleStateChangeDatasetFacet.json", lifecycleStateChange="OVERWRITE"
        )
        written = {"namespace": "file", "name": f"{LAKE}/table{write}", "facets": facets}
        for number, kind in enumerate(("START", "RUNNING", "RUNNING", "COMPLETE")):
            run_id = f"{RUN_ID[:-3]}{write + 1:03}"
            event = _event(kind, run_id, 4 * write + number, "wide_writes.write")
            parent = _facet(
                "facets/1-2-0/ParentRunFacet.json",
                run={"runId": RUN_ID},
                job={"namespace": "default", "name": "wide_writes"},
            )
            event["run"]["facets"]["parent"] = parent
            yield event | {"inputs": [read], "outputs": [written]}
    yield _event("COMPLETE", RUN_ID, 4 * writes, "wide_writes")


def _event(kind: str, run_id: str, seconds: int, job: str) -> dict[str, Any]:
    return {
        "eventTime": f"2024-05-06T10:{seconds // 60:02}:{seconds % 60:02}.500Z",
        "producer": _PRODUCER,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "eventType": kind,
        "run": {"runId": run_id, "facets": {}},
        "job": {"namespace": "default", "name": job, "facets": {}},
        "inputs": [],
        "outputs": [],
    }


def _column_lineage(source: str, columns: int) -> dict[str, Any]:
    def field(name: str, kind: str, subtype: str, description: str) -> dict[str, Any]:
        transformation = {"type": kind, "subtype": subtype, "description": description}
        made = {"namespace": "file", "name": source, "field": name}
        return made | {"transformations": [transformation | {"masking": False}]}

    fields = {}
    for number in range(columns):
        one, other = f"c{number}", f"c{(number + 1) % columns}"
        made = ("DIRECT", "TRANSFORMATION", f"(({one} * 2L) + {other}) AS {one}")
        fields[one] = {"inputFields": [field(one, *made), field(other, *made)]}
    where = "WHERE ((c0 IS NOT NULL) AND (c0 > 1L))"
    of_all = [field("c0", "INDIRECT", "FILTER", where)]
    return _facet("facets/1-2-0/ColumnLineageDatasetFacet.json", fields=fields, dataset=of_all)


# --- observations ---------------------------------------------------------------------------------


def _observations(writes: int, columns: int) -> Iterator[dict[str, Any]]:
    begun = 1714989600000  # 2024-05-06 10:00, in milliseconds
    yield {
        "kind": "start",
        "version": 1,
        "application_id": "local-1",
        "spark_version": "4.0.5",
        "time": begun,
    }
    schema = [
        {"name": f"c{n}", "type": "long", "nullable": True, "metadata": {}} for n in range(columns)
    ]
    for write in range(writes):
        read_from, written_to = f"file:{LAKE}/source", f"file:{LAKE}/table{write}"
        read = {
            "node": "FileSourceScanExec",
            "numFiles": 2,
            "format": "Parquet",
            "index": "InMemoryFileIndex",
            "table": None,
            "roots": [read_from],
            "partition_filters": [],
            "data_filters": ["(c0 IS NOT NULL)", "(c0 > 1L)"],
            "selected": 1,
            "layouts": [{"base": read_from, "dimensions": [], "partitions": [[]]}],
        }
        written: dict[str, Any] = {
            "node": "InsertIntoHadoopFsRelationCommand",
            "table": None,
            "mode": "whole",
            "static": {},
            "format": "files",
            "numParts": 0,
            "numFiles": 2,
            "path": written_to,
            "layouts": [{"base": written_to, "dimensions": [], "partitions": [[]]}],
            "how": "exact",
            "shared": [],
        }
        command = {
            "node": "InsertIntoHadoopFsRelationCommand",
            "target": {"path": written_to, "table": None},
            "schema": {"type": "struct", "fields": schema},
            "columns": [field["name"] for field in schema],
            "plan": _plan(columns),
            "relations": [{"path": read_from, "table": None, "ids": list(range(columns))}],
        }
        yield {
            "kind": "query",
            "version": 1,
            "query": write + 1,
            "function": "command",
            "started": begun + 4000 * write,
            "ended": begun + 4000 * write + 3000,
            "reads": [read],
            "writes": [written],
            "command": command,
        }
    yield {"kind": "end", "queries": writes}


def _node(class_: str, children: int, **fields: Any) -> dict[str, Any]:
    return {"class": class_, "num-children": children, **fields}


def _attribute(number: int) -> dict[str, Any]:
    return _node(
        f"{_EXPRESSIONS}.AttributeReference",
        0,
        name=f"c{number}",
        dataType="long",
        nullable=True,
        metadata={},
        exprId=_id(number),
        qualifier=[],
    )


def _id(number: int) -> dict[str, Any]:
    return {"product-class": f"{_EXPRESSIONS}.ExprId", "id": number}


def _long(value: int) -> list[dict[str, Any]]:
    literal = _node(f"{_EXPRESSIONS}.Literal", 0, value=str(value), dataType="integer")
    return [_node(f"{_EXPRESSIONS}.Cast", 1, child=0, dataType="long", evalMode=None), literal]


def _plan(columns: int) -> list[dict[str, Any]]:
    def projected(number: int) -> list[dict[str, Any]]:
        name, id_ = f"c{number}", _id(columns + number)
        return [
            _node(f"{_EXPRESSIONS}.Alias", 1, child=0, name=name, exprId=id_, qualifier=[]),
            _node(f"{_EXPRESSIONS}.Add", 2, left=0, right=1, evalMode=None),
            _node(f"{_EXPRESSIONS}.Multiply", 2, left=0, right=1, evalMode=None),
            _attribute(number),
            *_long(2),
            _attribute((number + 1) % columns),
        ]

    greater = _node(f"{_EXPRESSIONS}.GreaterThan", 2, left=0, right=1)
    return [
        _node(f"{_EXECUTION}.InsertIntoHadoopFsRelationCommand", 1, query=0),
        _node(f"{_PLANS}.Project", 1, projectList=[projected(n) for n in range(columns)], child=0),
        _node(f"{_PLANS}.Filter", 1, condition=[greater, _attribute(0), *_long(1)], child=0),
        _node(
            f"{_EXECUTION}.LogicalRelation",
            0,
            relation=None,
            output=[[_attribute(number)] for number in range(columns)],
            isStreaming=False,
        ),
    ]
