"""Events as tasks leave them in an archive, as many as are wanted, quickly.

A hundred tasks run each day. Each reads the three days before of three tables of others, and
writes its own day of its table, of ten or of fifty columns: 7 or 18 KB an event. Of *skewed*
events, each reads the whole of one more table, too, which the first task overwrites.
"""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.producer import SCHEMA_BASE, producer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TASKS, DAYS_READ, TABLES_READ = 100, 3, 3
COLUMNS = (10, 50)
_FIRST = date(2000, 1, 1)
_DAY, _RUN = "<day -{}>", "<run>"
_COMMON = {"namespace": "s3://lake", "name": "warehouse/common"}


def events(count: int, first: int = 0, *, is_skewed: bool = False) -> Iterator[bytes]:
    """Give events in the order of time, each a document of JSON.

    :param first: the number of the first one; a hundred later, it is the same task's next day
    """
    made = [json.dumps(_event(task, is_skewed=is_skewed)) for task in range(TASKS)]
    for number in range(first, first + count):
        task = number % TASKS
        day = day_of(number)
        text = made[task].replace(_RUN, f"00000000-0000-7000-8000-{number:012x}")
        for ago in range(DAYS_READ + 1):
            text = text.replace(_DAY.format(ago), str(day - timedelta(ago)))
        yield text.encode()


def day_of(number: int) -> date:
    """Give the day of an event by its number."""
    return _FIRST + timedelta(number // TASKS)


def write(file: Path, count: int, first: int = 0, *, is_skewed: bool = False) -> None:
    """Write events as NDJSON; see :func:`events`."""
    with file.open("wb") as stream:
        stream.writelines(b"%b\n" % e for e in events(count, first, is_skewed=is_skewed))


def write_archive(folder: Path, count: int) -> None:
    """Write each event to a file of its own, as the archive does."""
    for number, event in enumerate(events(count)):
        run, task = divmod(number, TASKS)
        file = folder / f"shop/scheduled__{_FIRST + timedelta(run)}/task_{task}/-1/1.json"
        file.parent.mkdir(parents=True)
        file.write_bytes(event)


def _event(task: int, *, is_skewed: bool) -> dict[str, Any]:
    read = [_name((task + 1 + number) % TASKS) for number in range(TABLES_READ)]
    days = [_DAY.format(ago) for ago in range(DAYS_READ + 1)]
    inputs = [{**one, "facets": _facets(10), **_subset("input", days[1:])} for one in read]
    wide = _facets(COLUMNS[task % 2])
    wide["columnLineage"] = _facet("columnLineage", fields=_columns(task, read[0]))
    wide["lifecycleStateChange"] = _facet("lifecycle", lifecycleStateChange="OVERWRITE")
    output = {**_name(task), "facets": wide, **_subset("output", days[:1])}
    seen = [*_seen(read, "read"), *_seen([_name(task)], "write")]
    outputs = [output]
    if is_skewed:
        inputs.append({**_COMMON, "facets": _facets(10)})
        seen += _seen([_COMMON], "read", "all")
        if task == 0:
            overwritten = {"lifecycleStateChange": wide["lifecycleStateChange"]}
            outputs.append({**_COMMON, "facets": _facets(10) | overwritten})
            seen += _seen([_COMMON], "write", "all")
    capture = _facet("capture", datasets=seen)
    return {
        "sending": {"started": f"{days[0]}T01:00:00+00:00", "runFacets": _airflow(task)},
        "eventTime": f"{days[0]}T01:{task % 60:02}:30.123456+00:00",
        "eventType": "COMPLETE",
        "producer": producer(),
        "run": {"runId": _RUN, "facets": {"sparkLineage_capture": capture}},
        "job": {"namespace": "airflow", "name": f"shop.task_{task}", "facets": {}},
        "inputs": inputs,
        "outputs": outputs,
    }


def _name(task: int) -> dict[str, str]:
    return {"namespace": "s3://lake", "name": f"warehouse/table_{task}"}


def _facet(name: str, **fields: Any) -> dict[str, Any]:
    return {"_producer": producer(), "_schemaURL": f"{SCHEMA_BASE}:{name}:1-0-0", **fields}


def _facets(columns: int) -> dict[str, Any]:
    fields = [{"name": f"column_{number}", "type": "string"} for number in range(columns)]
    return {"schema": _facet("schema", fields=fields)}


def _subset(side: str, days: list[str]) -> dict[str, Any]:
    partitions = [{"dimensions": {"dt": day}, "identifier": f"dt={day}"} for day in days]
    condition = {"type": "partition", "partitions": partitions}
    return {f"{side}Facets": {"subset": _facet("subset", **{f"{side}Condition": condition})}}


def _seen(names: list[dict[str, str]], side: str, accessed: str = "part") -> list[dict[str, Any]]:
    known = {"side": side, "witness": "both", "accessed": accessed}
    return [{"dataset": name, **known} for name in names]


def _columns(task: int, source: dict[str, str]) -> dict[str, Any]:
    how = {"type": "DIRECT", "subtype": "AGGREGATION", "masking": False}
    return {
        f"column_{number}": {
            "inputFields": [
                {
                    **source,
                    "field": f"column_{number}",
                    "transformations": [{**how, "description": f"round(sum(column_{number}), 2)"}],
                }
            ]
        }
        for number in range(COLUMNS[task % 2])
    }


def _airflow(task: int) -> dict[str, Any]:
    day = _DAY.format(0)
    dag_run = {"run_id": f"scheduled__{day}", "logical_date": f"{day}T00:00:00+00:00"}
    dag_run |= {"data_interval_start": f"{day}T00:00:00+00:00"}
    named = {"dag": {"dag_id": "shop"}, "task": {"task_id": f"task_{task}"}, "dagRun": dag_run}
    instance = {"try_number": 1, "log_url": "http://airflow:8080/"}
    above = {"run": {"runId": _RUN}, "job": {"namespace": "airflow", "name": "shop"}}
    return {
        "airflow": _facet("airflow", **named, taskInstance=instance),
        "parent": _facet("parent", **above, root=above),
    }
