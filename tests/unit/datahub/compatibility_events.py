"""Events of other producers, in the shapes that OpenLineage's compatibility tests have them.

Names and values are ours. The shapes are those of the scenarios in the GitHub repository
``OpenLineage/compatibility-tests``: who sends them, below what, with which facets and namespaces.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
RUN, ABOVE, ROOT = (f"0196{n}000-0000-7000-8000-00000000000{n}" for n in (1, 2, 3))
HIVE, HDFS = "hive://metastore:9083", "hdfs://namenode"
AIRFLOW = "https://github.com/apache/airflow/tree/providers-openlineage/1.14.0"
OTHERS = "https://github.com/OpenLineage/OpenLineage/tree/1.40.0/integration/"
SPARK = {"processing_engine": {"name": "spark", "version": "3.5.1"}}


def ran(producer: str, job: str, state: str = "COMPLETE", run_id: str = RUN, **more: Any) -> Json:
    """Make a RunEvent.

    :param more: ``inputs``, ``outputs``; ``run`` and ``facets``, those of the run and the job
    """
    return {
        "eventType": state,
        "eventTime": "2026-01-02T03:04:05.678Z",
        "producer": producer,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": run_id, "facets": more.pop("run", {})},
        "job": {"namespace": "default", "name": job, "facets": more.pop("facets", {})},
        **more,
    }


def data(namespace: str, name: str, **facets: Any) -> Json:
    """Make a dataset."""
    return {"namespace": namespace, "name": name, "facets": facets}


def fields(**types: str) -> Json:
    """Make a ``schema``, as Airflow's provider does: fields of which none has fields."""
    return {"fields": [{"name": name, "type": of, "fields": []} for name, of in types.items()]}


def column(of: tuple[str, str], field: str, *kinds: str) -> Json:
    """Make an ``InputField``; a kind is ``DIRECT:IDENTITY``."""
    every = [dict(zip(("type", "subtype"), kind.split(":"), strict=True)) for kind in kinds]
    every = [{**one, "description": "", "masking": False} for one in every]
    return {"namespace": of[0], "name": of[1], "field": field, "transformations": every}


def made_of(*conditions: Json, **columns: list[Json]) -> Json:
    """Make a ``columnLineage``; one with conditions has the form of 1-2-0."""
    of_fields = {name: {"inputFields": sources} for name, sources in columns.items()}
    return {"fields": of_fields, **({"dataset": list(conditions)} if conditions else {})}


def link(namespace: str, name: str, type_: str = "TABLE") -> Json:
    """Make a ``symlinks``."""
    return {"identifiers": [{"namespace": namespace, "name": name, "type": type_}]}


def below(job: str, **root: Any) -> Json:
    """Make the run facets of a part of another job's run."""
    parent = {"run": {"runId": ABOVE}, "job": {"namespace": "default", "name": job}}
    return {"parent": {**parent, **root}}


def kind(job_type: str, integration: str, processing: str = "BATCH") -> Json:
    """Make the job facets that say what a job is."""
    of = {"jobType": job_type, "integration": integration, "processingType": processing}
    return {"jobType": of}


TASK = kind("TASK", "AIRFLOW")
