"""The event as OpenLineage's classes: what its client writes of them is the event again."""

from __future__ import annotations

import copy
import json

import pytest
from openlineage.client.event_v2 import InputDataset, Job, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    base_subset_dataset,
    column_lineage_dataset,
    tags_job,
)
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.datahub.transport import neutral_of
from airflow_provider_sparklineage.event import column_lineage, facets, openlineage
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.model.producer import producer
from airflow_provider_sparklineage.model.representation import Representation
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import OF_ONE_SPARK

EVERYTHING = Representation(bare_partitions=True, explicit_lineage=True)


@pytest.mark.parametrize(("spark", "case"), OF_ONE_SPARK)
def test_what_is_sent_is_the_event(recorded, spark, case):
    event = event_of(recorded(case, spark).lineage, ReadReport(), EVERYTHING)
    sent = json.dumps(openlineage.parts(event)._asdict(), default=Serde.to_dict)
    assert sent == json.dumps(
        {
            "inputs": event["inputs"],
            "outputs": event["outputs"],
            "run_facets": event["run"]["facets"],
            "job_facets": event["job"]["facets"],
        }
    )


def test_own_facets_ask_to_be_left_alone_and_those_of_spark_do_not(recorded):
    event = event_of(recorded("staging_chain").lineage, ReadReport())
    found = openlineage.parts(event)
    facets = {
        **found.run_facets,
        **{key: facet for d in found.outputs for key, facet in d.facets.items()},
    }
    own = {key for key, facet in facets.items() if not isinstance(facet, dict)}
    assert own == {"sparkLineage_capture", "sparkLineage_partitions", "columnLineage"}
    assert {"schema", "dataSource"} <= facets.keys() - own
    for key in own:
        assert facets[key]._producer == producer()
        assert sorted(facets[key].skip_redact) == sorted(Serde.to_dict(facets[key]))


def test_the_schemas_are_those_of_the_client():
    classes = {
        "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet,
        "inputCondition": base_subset_dataset.InputSubsetInputDatasetFacet,
        "outputCondition": base_subset_dataset.OutputSubsetOutputDatasetFacet,
    }
    own = {
        "columnLineage": column_lineage._DATASET_FACET,
        "inputCondition": facets._SUBSETS["read"][0],
        "outputCondition": facets._SUBSETS["write"][0],
    }
    assert own == {key: of._get_schema() for key, of in classes.items()}


# --- what is carried next to it -------------------------------------------------------------------


def airflow_event(facets, state=RunState.COMPLETE, job_facets=None, inputs=()):
    """Make the event that Airflow's provider makes of a task's run facets."""
    return RunEvent(
        eventTime="2024-05-06T00:00:00+00:00",
        producer="https://github.com/apache/airflow",
        run=Run("01902d7f-0000-7000-8000-000000000000", facets),
        job=Job("airflow", "dag.task", job_facets or {}),
        eventType=state,
        inputs=[*inputs],
    )


@pytest.fixture
def event(recorded):
    return event_of(recorded("staging_chain").lineage, ReadReport())


def carrying(event, neutral):
    return openlineage.with_neutral(openlineage.parts(event).run_facets, neutral)


def test_what_an_event_carries_is_in_no_json_of_it(event):
    plain = airflow_event(openlineage.parts(event).run_facets)
    loaded = airflow_event(carrying(event, event))
    assert Serde.to_json(loaded) == Serde.to_json(plain)
    assert loaded == plain
    assert repr(loaded) == repr(plain)


def test_what_an_event_carries_is_found_with_header_and_facets_of_airflow(event):
    added = {"airflow": {"_producer": "https://airflow", "task": {"retries": None, "owner": "me"}}}
    tags = tags_job.TagsJobFacet([tags_job.TagsJobFacetFields("team", "sea", "AIRFLOW")])
    described = {"documentation": {"_producer": "https://airflow", "description": "of a backend"}}
    sent = airflow_event(
        {**carrying(event, event), **added}, RunState.FAIL, {"tags": tags} | described
    )
    found = neutral_of(sent)
    assert found["eventType"] == "FAIL"
    assert found["eventTime"] == sent.eventTime
    assert found["run"]["runId"] == sent.run.runId
    assert (found["job"]["namespace"], found["job"]["name"]) == ("airflow", "dag.task")
    assert found["run"]["facets"].keys() == event["run"]["facets"].keys() | {"airflow"}
    assert found["run"]["facets"]["airflow"]["task"] == {"owner": "me"}
    assert found["job"]["facets"] == {"tags": Serde.to_dict(tags)}
    assert (found["inputs"], found["outputs"]) == (event["inputs"], event["outputs"])
    assert json.loads(json.dumps(found)) == found


def test_the_text_of_a_job_is_the_users_own_and_not_what_a_backend_shows(event):
    own = {"_producer": "https://x", "description": "Counts the delays."}
    neutral = {**event, "job": {"facets": {"documentation": own}}}
    described = {"documentation": {"_producer": "https://airflow", "description": "wrote …"}}
    sent = airflow_event(carrying(event, neutral), job_facets=described)
    assert neutral_of(sent)["job"]["facets"] == {"documentation": own}


def test_datasets_that_airflow_adds_to_a_task_without_any_are_found(event):
    bare = {**event, "inputs": [], "outputs": []}
    added = InputDataset("s3://lake", "orders", facets={})
    found = neutral_of(airflow_event(carrying(bare, bare), inputs=[added]))
    assert found["inputs"] == [Serde.to_dict(added)]
    assert found["outputs"] == []


def test_an_event_without_a_capture_facet_carries_nothing(event):
    assert openlineage.with_neutral({}, event) == {}
    assert neutral_of(airflow_event({})) is None
    assert neutral_of(airflow_event(openlineage.parts(event).run_facets)) is None


def test_facets_that_are_json_can_carry_as_well(event):
    facets = openlineage.with_neutral(event["run"]["facets"], event)
    found = neutral_of(airflow_event(facets))
    assert found["outputs"] == event["outputs"]
    assert (
        Serde.to_dict(facets["sparkLineage_capture"])
        == event["run"]["facets"]["sparkLineage_capture"]
    )


def test_a_copy_of_an_event_carries_the_same(event):
    sent = copy.deepcopy(airflow_event(carrying(event, event)))
    assert neutral_of(sent)["outputs"] == event["outputs"]
