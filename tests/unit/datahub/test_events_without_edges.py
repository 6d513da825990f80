"""Events that have no lineage: failures, measurements, drops, jobs and datasets alone."""

from __future__ import annotations

from tests.unit.datahub.compatibility_events import (
    AIRFLOW,
    OTHERS,
    RUN,
    SPARK,
    TASK,
    data,
    fields,
    kind,
    ran,
)
from tests.unit.datahub.summaries import stored, summary


def test_an_application_that_fails_has_its_error_and_no_stack_trace():
    error = {"message": "No such bucket", "programmingLanguage": "JAVA", "stackTrace": "at Main"}
    run = SPARK | {"errorMessage": error}
    event = ran(OTHERS + "spark", "app", "FAIL", run=run, facets=kind("APPLICATION", "SPARK"))

    properties = stored(event)[f"urn:li:dataProcessInstance:{RUN}", "dataProcessInstanceProperties"]
    assert properties["customProperties"] == {"error": "No such bucket", "spark_version": "3.5.1"}
    assert summary(event) == ["run of spark:app", "FAILURE"]


def test_what_was_measured_of_a_table_is_its_profile():
    of_columns = {"ID": {"nullCount": 1, "distinctCount": 9, "quantiles": {"0.5": 3}}}
    read = data("snowflake://acme-eu", "SHOP.PUBLIC.ORDERS")
    read["inputFacets"] = {"dataQualityMetrics": {"rowCount": 10, "columnMetrics": of_columns}}
    event = ran(AIRFLOW, "shop.check", facets=TASK, inputs=[read])

    assert summary(event)[2:] == ["profile of snowflake:shop.public.orders: 10 rows, id"]


def test_a_table_that_was_dropped_is_gone_and_its_description_stays():
    facets = {"lifecycleStateChange": {"lifecycleStateChange": "DROP"}}
    facets |= {"documentation": {"description": "All orders."}, "version": {"datasetVersion": "7"}}
    event = ran("somebody", "shop.drop", outputs=[data("s3://lake", "orders", **facets)])

    urn = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,PROD)"
    found = stored(event)
    assert found[urn, "status"] == {"removed": True}
    assert found[urn, "datasetProperties"]["description"] == "All orders."
    assert summary(event)[2:] == ["DROP s3:lake/orders"]


def test_an_event_of_a_job_alone_is_its_description_and_no_run():
    event = ran("somebody", "shop.load", inputs=[data("s3://lake", "raw")])
    del event["run"], event["eventType"]
    event["job"]["facets"] = {
        "documentation": {"description": "Loads the orders."},
        "ownership": {"owners": [{"name": "team:data", "type": "DATA_STEWARD"}]},
        "tags": {"tags": [{"key": "tier", "value": "1", "source": "CATALOG"}]},
        "sourceCodeLocation": {"type": "git", "url": "https://git.example/load.py"},
    }

    job = "urn:li:dataJob:(urn:li:dataFlow:(unknown,shop,prod),load)"
    found = stored(event)
    [owner] = found[job, "ownership"]["owners"]
    assert (owner["owner"], owner["type"]) == ("urn:li:corpGroup:data", "DATA_STEWARD")
    assert found[job, "globalTags"]["tags"] == [{"tag": "urn:li:tag:tier:1"}]
    assert found[job, "dataJobInfo"]["description"] == "Loads the orders."
    assert found[job, "dataJobInfo"]["externalUrl"] == "https://git.example/load.py"
    assert summary(event) == []


def test_an_event_of_a_dataset_alone_is_of_no_run_and_changes_nothing():
    event = ran("somebody", "shop.load")
    del event["run"], event["job"], event["eventType"]

    assert stored(event | {"dataset": data("s3://lake", "raw", schema=fields(id="int"))}) == {}
