"""Events of any producer, with passwords where their users wrote them: none of them is stored."""

from __future__ import annotations

import json
import time

import pytest

from airflow_provider_sparklineage.datahub.conversion import proposals
from tests.unit.datahub.events import dataset, event
from tests.unit.datahub.sdk import checked

SECRET = "hunter2"
URL = f"https://me:{SECRET}@host/x"


def stored(document):
    found = checked(proposals(document))
    return "\n".join(json.dumps(one.document(), ensure_ascii=False) for one in found)


@pytest.mark.parametrize(
    "namespace",
    [
        f"postgres://me:{SECRET}@h:5432",
        f"jdbc:postgresql://h:5432/db?user=me&password={SECRET}",
        f"s3://key:{SECRET}@bucket",
        f"sqlserver://h;password={SECRET}",
        f"other://h/?token={SECRET}",
    ],
)
def test_the_namespace_of_a_dataset_is_shown_without_them(namespace):
    a, b = ({"namespace": namespace, "name": name, "facets": {}} for name in ("s.a", "s.b"))
    text = stored(event((a,), (b,)))
    assert "openlineage.namespace" in text
    assert SECRET not in text


def test_texts_of_a_job_and_its_datasets_are_shown_without_them():
    texts = {
        "documentation": {"description": f"See {URL}."},
        "version": {"datasetVersion": URL},
        "storage": {"storageLayer": URL},
        "schema": {"fields": [{"name": "x", "type": "int", "description": URL}]},
        "dataQualityAssertions": {
            "assertions": [{"assertion": "not_null", "description": URL, "success": True}]
        },
    }
    text = stored(
        event(
            outputs=(dataset("a", **texts),),
            sql={"query": f"COPY a FROM 's3://b' CREDENTIALS 'aws_secret_access_key={SECRET}'"},
            documentation=texts["documentation"],
            sourceCodeLocation={"url": URL},
            ownership={"owners": [{"name": URL}]},
            tags={"tags": [{"key": "password", "value": SECRET}]},
        )
    )
    assert SECRET not in text
    for kept in ("See https://host/x.", "COPY a FROM", "urn:li:tag:password"):
        assert kept in text


def test_what_a_run_did_is_shown_without_them():
    place = {"namespace": "s3://lake", "name": "a"}
    write = {"dataset": place, "status": "missing", "missing": {"summary": URL}}
    write["from"] = [{"field": "env", "template": URL}]
    found = event(outputs=(dataset("a"),))
    found["outputs"][0]["outputFacets"] = {
        "subset": {"outputCondition": {"type": "location", "locations": [f"s3://me:{SECRET}@b/x"]}}
    }
    found["run"]["facets"] = {
        "airflow": {"taskInstance": {"log_url": URL}, "dagRun": {"run_id": URL}},
        "sparkLineage_partitionCheck": {"status": "missing", "writes": [write]},
    }
    text = stored(found)
    assert SECRET not in text
    assert '"partition": "s3://b/x"' in text
    assert "assertionRunEvent" in text


def test_a_million_partitions_are_converted_in_no_time():
    found = event(outputs=(dataset("a"),))
    partitions = [{"identifier": f"id={number:07}"} for number in range(1_000_000)]
    found["outputs"][0]["outputFacets"] = {
        "subset": {"outputCondition": {"type": "partition", "partitions": partitions}}
    }
    begun = time.process_time()
    text = stored(found)
    # A tenth of a second; it took ten when each partition was looked at.
    assert time.process_time() - begun < 3
    assert "id=0000000 … id=0010000 (more than 10,000 partitions)" in text


def test_a_number_that_python_does_not_write_is_absent():
    huge = 10**5000
    found = event(outputs=(dataset("a"),))
    metrics = {"rowCount": 5, "columnMetrics": {"x": {"min": huge, "max": 3}}}
    compared = {"left": {"type": "field", "field": "x"}, "right": {"value": huge}}
    found["outputs"][0]["outputFacets"] = {
        "dataQualityMetrics": metrics,
        "subset": {"outputCondition": {"type": "compare", "comparison": "EQUAL", **compared}},
    }
    found["run"]["facets"] = {"airflow": {"task": {"retries": huge, "queue": "default"}}}
    text = stored(found)
    assert "/customProperties/queue" in text
    assert "retries" not in text
