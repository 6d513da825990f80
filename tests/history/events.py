"""Events of simulated runs, exactly as the archive has them, and as other producers send them.

An archived event is the COMPLETE or FAIL of a try, with all that Airflow adds in
``sending``. As Airflow sends it, there is a START before, and what Airflow adds is in the event.
The runs of other producers say inputs at their START, outputs at their end, and know no partitions.
"""

from __future__ import annotations

import json
import random
from itertools import groupby
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.archive import encoded
from airflow_provider_sparklineage.model.producer import SCHEMA_BASE, facet, producer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tests.history.ledger import Access, Cell, Ledger, Run, Table

AIRFLOW = "https://github.com/apache/airflow/tree/providers-openlineage/2.20.3"
OTHER = "https://github.com/OpenLineage/OpenLineage/tree/1.53.0/integration/dbt"
SPEC = "https://openlineage.io/spec"
SCHEMA_URL = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_SUBSET = f"{SPEC}/facets/1-0-0/BaseSubsetDatasetFacet.json#/$defs/"


def _spec(version: str, facet: str) -> str:
    return f"{SPEC}/facets/{version}/{facet}.json#/$defs/{facet}"


def write_archive(ledger: Ledger, folder: Path) -> None:
    """Write what Airflow's tries left as an archive, and the events of others as a file in it."""
    for run in ledger.runs:
        if run.instance is not None:
            file = folder / f"{name_of(run)}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(archived(run)))
    others = [event for run in ledger.runs if run.instance is None for event in foreign(run)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "others.ndjson").write_text("".join(f"{json.dumps(e)}\n" for e in others))


def write_stream(ledger: Ledger, file: Path, seed: int) -> None:
    """Write all events into one file, in no order, some of them twice."""
    lines = [json.dumps(event) for run in ledger.runs for event in events(run)]
    chance = random.Random(seed)
    lines += chance.sample(lines, len(lines) // 10)
    chance.shuffle(lines)
    file.write_text("".join(f"{line}\n" for line in lines))


def name_of(run: Run) -> str:
    """Give the name of a try's event in the archive, without its suffix."""
    one = run.instance
    assert one is not None
    parts = (one.dag_id, one.dag_run_id, one.task_id, str(one.map_index))
    return "/".join((*map(encoded, parts), str(run.try_number)))


def events(run: Run) -> list[dict[str, Any]]:
    """Give the events of a run as they are sent."""
    if run.instance is None:
        return foreign(run)
    added, end = _added(run), _ended(run)
    known = {
        "inputs": [_as_known(one, "inputFacets") for one in end["inputs"]],
        "outputs": [_as_known(one, "outputFacets") for one in end["outputs"]],
    }
    start = {**end, **known, "eventType": "START", "eventTime": run.started.isoformat()}
    return [
        {**start, "run": {"runId": run.id, "facets": added}},
        {**end, "run": {"runId": run.id, "facets": {**added, **end["run"]["facets"]}}},
    ]


def archived(run: Run) -> dict[str, Any]:
    """Give the file of a try: the event, and in front of it what Airflow adds when it sends it."""
    sending = {
        "started": run.started.isoformat(),
        "runFacets": _added(run),
        "jobFacets": {},
        "documentation": None,
    }
    return {"sending": sending, **_ended(run)}


def foreign(run: Run) -> list[dict[str, Any]]:
    """Give START and end of a run of another producer."""
    inputs = [{**_id(one.table), "facets": {}} for one in run.reads]
    outputs = [{**_id(one.table), "facets": _columns(run, one.table)} for one in run.writes]
    return [
        _event(run, "START", run.started.isoformat(), {}, inputs, [], OTHER),
        _event(run, run.state, run.ended.isoformat(), {}, [], outputs, OTHER),
    ]


def _ended(run: Run) -> dict[str, Any]:
    facets = {"sparkLineage_capture": _capture(run)}
    if any(one.table.dims for one in (*run.reads, *run.writes)):
        facets["sparkLineage_partitionCheck"] = _check(run)
    inputs = [_input(one) for one in run.reads]
    outputs = [_output(run, *each) for each in _by_table(run.writes)]
    return _event(run, run.state, run.ended.isoformat(), facets, inputs, outputs, producer())


def _event(
    run: Run,
    kind: str,
    time: str,
    facets: dict[str, Any],
    inputs: list[dict[str, Any]],
    outputs: list[dict[str, Any]],
    by: str,
) -> dict[str, Any]:
    return {
        "eventTime": time,
        "eventType": kind,
        "inputs": inputs,
        "job": {"facets": {}, "name": run.job, "namespace": run.namespace},
        "outputs": outputs,
        "producer": by,
        "run": {"facets": facets, "runId": run.id},
        "schemaURL": SCHEMA_URL,
    }


def _id(table: Table) -> dict[str, str]:
    return {"namespace": table.namespace, "name": table.name}


def _as_known(dataset: dict[str, Any], own: str) -> dict[str, Any]:
    return {**dataset, "facets": {}, own: {}}


# --- facets of Airflow ----------------------------------------------------------------------------


def _added(run: Run) -> dict[str, Any]:
    one = run.instance
    assert one is not None
    date = one.logical_date.isoformat()
    above = {"name": one.dag_id, "namespace": run.namespace}
    dag_run = one.dag_run_id if run.namespace == "world" else f"{run.namespace}/{one.dag_run_id}"
    parent_id = f"00000000-0000-7000-8000-{abs(hash_of(dag_run)):012x}"
    ti = {"try_number": run.try_number, "log_url": "http://airflow:8080/"}
    if one.map_index >= 0:
        ti["map_index"] = one.map_index
    airflow = {
        "dag": {"dag_id": one.dag_id, "timetable_summary": "@daily"},
        "dagRun": {
            "dag_id": one.dag_id,
            "run_id": one.dag_run_id,
            "run_type": one.dag_run_id.partition("__")[0],
            "logical_date": date,
            "data_interval_start": date,
            "data_interval_end": date,
        },
        "task": {"task_id": one.task_id, "operator_class": "SparkLineageSubmitOperator"},
        "taskInstance": ti,
        "taskUuid": run.id,
    }
    parent = {
        "job": above,
        "run": {"runId": parent_id},
        "root": {"job": above, "run": {"runId": parent_id}},
    }
    return {
        "airflow": _of_airflow(f"{SPEC}/2-0-2/OpenLineage.json#/$defs/RunFacet", airflow),
        "parent": _of_airflow(_spec("1-1-0", "ParentRunFacet"), parent),
    }


def hash_of(text: str) -> int:
    """Give 48 bits of a text, the same in every process."""
    return random.Random(text).getrandbits(48)


def _of_airflow(schema: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"_producer": AIRFLOW, "_schemaURL": schema, **body}


# --- facets of datasets ---------------------------------------------------------------------------


def _input(one: Access) -> dict[str, Any]:
    own = _subset(one, "InputSubsetInputDatasetFacet", "inputCondition")
    return {**_id(one.table), "facets": {}, "inputFacets": own}


def _by_table(writes: Iterable[Access]) -> Iterator[tuple[Access, Access | None]]:
    """Give for each output what was written, and what was emptied: one dataset of an event.

    An output that was only emptied has no part that was written.
    """
    for _, found in groupby(writes, lambda one: one.table):
        accesses = list(found)
        removed = next((one for one in accesses if one.mode == "removed"), None)
        written = next((one for one in accesses if one.mode != "removed"), removed)
        assert written is not None
        assert len(accesses) == len({written, removed} - {None})
        yield written, removed


def _output(run: Run, one: Access, removed: Access | None) -> dict[str, Any]:
    facets = {} if one.is_failed else {**_columns(run, one.table), **_lifecycle(one)}
    if one.table.dims and not one.is_failed:
        facets["sparkLineage_partitions"] = _partitions(one, removed)
    own = {} if one.is_failed else _subset(one, "OutputSubsetOutputDatasetFacet", "outputCondition")
    if one.mode in ("overwrite", "append") and not one.is_failed:
        own["outputStatistics"] = facet(
            _spec("1-0-2", "OutputStatisticsOutputDatasetFacet"),
            rowCount=2,
            size=100,
        )
    return {**_id(one.table), "facets": facets, "outputFacets": own}


def _lifecycle(one: Access) -> dict[str, Any]:
    """Say what was done to the dataset; of appends and deletes the listener says nothing."""
    if one.mode in ("append", "unknown", "removed"):
        return {}
    schema = _spec("1-0-1", "LifecycleStateChangeDatasetFacet")
    made = facet(schema, lifecycleStateChange=one.mode.upper())
    return {"lifecycleStateChange": made}


def _subset(one: Access, schema: str, key: str) -> dict[str, Any]:
    condition = _condition(one)
    if condition is None and one.extent == "range":
        texts = [one.table.text(each) for each in one.actual]
        body = facet(f"{SCHEMA_BASE}:subsetDescription:1-0-0", description=_summary(sorted(texts)))
        return {"sparkLineage_subsetDescription": body}
    return {} if condition is None else {"subset": facet(f"{_SUBSET}{schema}", **{key: condition})}


def _condition(one: Access) -> dict[str, Any] | None:
    if one.mode == "removed":  # nothing was written
        return None
    match one.extent:
        case "cells" | "none":
            return {"partitions": _named(one), "type": "partition"}
        case "condition":
            return _compare("amount", "GREATER_THAN", "0")
        case "range" if one.table.dims == ("dt",):  # which has no gaps in these worlds
            low, high = (text.removeprefix("dt=") for text in one.ends)
            return {
                "left": _compare("dt", "GREATER_EQUAL_THAN", low),
                "right": _compare("dt", "LESS_EQUAL_THAN", high),
                "operator": "AND",
                "type": "binary",
            }
        case _:
            return None


def _named(one: Access) -> list[dict[str, Any]]:
    return [
        {"dimensions": _ordered(one.table, each), "identifier": one.table.text(each)}
        for each in sorted(one.cells)
    ]


def _ordered(table: Table, one: Cell) -> dict[str, str]:
    values = dict(one)
    return {dim: values[dim] for dim in table.dims if dim in values}


def _compare(field: str, comparison: str, value: str) -> dict[str, Any]:
    return {
        "left": {"field": field, "type": "field"},
        "right": {"value": value, "type": "literal"},
        "comparison": comparison,
        "type": "compare",
    }


def _partitions(one: Access, removed: Access | None) -> dict[str, Any]:
    known = one.truly if one.extent in ("cells", "range") and one.mode != "removed" else ()
    texts = sorted(one.table.text(each) for each in known)
    is_none = one.extent == "none" or one.mode == "removed"
    return facet(
        f"{SCHEMA_BASE}:partitions:1-0-0",
        dimensions=_dimensions(one.table),
        summary=_summary(texts) if known or is_none else "partitions not known",
        count=len(texts),
        truncated=one.extent == "range",
        description=f"PARTITIONED BY ({', '.join(one.table.dims)})",
        **({"first": texts[0], "last": texts[-1]} if texts else {}),
        **({"removed": _removed(removed)} if removed and removed.cells else {}),
    )


def _removed(one: Access) -> dict[str, Any]:
    return {**_counted(one), "partitions": _named(one)}


def _counted(one: Access) -> dict[str, Any]:
    texts = sorted(one.table.text(each) for each in one.truly)
    ends = {"first": texts[0], "last": texts[-1]}
    return {"summary": _summary(texts), "count": len(texts), **ends}


def _dimensions(table: Table) -> list[dict[str, Any]]:
    return [{"fields": [dim], "transform": "identity"} for dim in table.dims]


def _summary(texts: list[str]) -> str:
    if len(texts) < 2:
        return texts[0] if texts else "no partition"
    return f"{texts[0]} … {texts[-1]} ({len(texts)} partitions)"


def _columns(run: Run, table: Table) -> dict[str, Any]:
    edges = [edge for edge in run.edges if edge.output == table]
    if not edges:
        return {}
    fields: dict[str, Any] = {}
    for edge in edges:
        if edge.out_column is not None:
            made = fields.setdefault(edge.out_column, {"inputFields": []})
            made["inputFields"].append(_field(edge))
    conditions = [_field(edge) for edge in edges if edge.out_column is None]
    body = {"fields": fields, **({"dataset": conditions} if conditions else {})}
    return {
        "columnLineage": facet(
            _spec("1-2-0", "ColumnLineageDatasetFacet"),
            **body,
        )
    }


def _field(edge: Any) -> dict[str, Any]:
    how = {"type": edge.kind, "subtype": edge.subtype, "description": "", "masking": False}
    return {**_id(edge.input), "field": edge.in_column, "transformations": [how]}


# --- facets of the run ----------------------------------------------------------------------------

_ACCESSED = {"cells": "part", "range": "part", "condition": "part"}


def _accessed(one: Access) -> str:
    return "removed" if one.mode == "removed" else _ACCESSED.get(one.extent, one.extent)


def _sides(run: Run) -> Iterator[tuple[str, Access]]:
    yield from (("write", one) for one, _ in _by_table(run.writes))
    yield from (("read", one) for one in run.reads)


def _capture(run: Run) -> dict[str, Any]:
    return facet(
        f"{SCHEMA_BASE}:capture:1-0-0",
        applicationId="local-1",
        sparkVersion="4.0.1",
        listenerVersion="1.53.0",
        actions=1,
        events=4,
        bytes=1000,
        malformedLines=0,
        datasets=[
            {
                "dataset": _id(one.table),
                "side": side,
                "witness": "both",
                "accessed": _accessed(one),
                **({"failed": True} if one.is_failed else {}),
            }
            for side, one in _sides(run)
        ],
        degradations=[
            {"code": code, "message": "…", "dataset": _id(one.table), "side": side}
            for side, one in _sides(run)
            if (code := _DEGRADED.get(one.extent))
        ],
    )


_DEGRADED = {"range": "partitions_cut", "unknown": "partitions_unknown"}


def _check(run: Run) -> dict[str, Any]:
    return facet(
        f"{SCHEMA_BASE}:partitionCheck:1-0-0",
        summary="as it was",
        status="undeclared",
        reads=[_checked(one) for one in run.reads],
        writes=[_checked(*each) for each in _by_table(run.writes)],
    )


def _checked(one: Access, removed: Access | None = None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "dataset": _id(one.table),
        "summary": one.table.name,
        "status": "undeclared",
        "accessed": _accessed(one),
    }
    if one.table.dims:
        entry["dimensions"] = _dimensions(one.table)
    if one.is_failed:
        return {**entry, "failed": True}
    if (condition := _condition(one)) is not None:
        entry["condition"] = condition
    if one.extent in ("cells", "range") and one.mode != "removed":
        entry["observed"] = _counted(one)
    if removed and removed.cells:
        entry["removed"] = _counted(removed)
    return entry
