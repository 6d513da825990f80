"""The event as OpenLineage's classes: what its client writes of them is the event again."""

from __future__ import annotations

import json

import pytest
from openlineage.client.facet_v2 import (
    base_subset_dataset,
    column_lineage_dataset,
)
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.event import (
    column_lineage_facet,
    openlineage,
    partition_facets,
)
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.event.producer import producer
from airflow_provider_sparklineage.model.representation import Representation
from airflow_provider_sparklineage.spark.capture.reports import ReadReport
from tests.conftest import RECORDED

EVERYTHING = Representation(bare_partitions=True, explicit_lineage=True)


@pytest.mark.parametrize(("spark", "case"), RECORDED)
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
    facets = {
        "columnLineage": column_lineage_dataset.ColumnLineageDatasetFacet,
        "inputCondition": base_subset_dataset.InputSubsetInputDatasetFacet,
        "outputCondition": base_subset_dataset.OutputSubsetOutputDatasetFacet,
    }
    own = {
        "columnLineage": column_lineage_facet._SCHEMA,
        "inputCondition": partition_facets._INPUT_SUBSET,
        "outputCondition": partition_facets._OUTPUT_SUBSET,
    }
    assert own == {key: of._get_schema() for key, of in facets.items()}
