"""The whole conversion of any event: what comes out is valid, and nothing raises."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openlineage.client.generated import base

from airflow_provider_sparklineage.datahub.configuration import Conversion, FieldPaths, Namespace
from airflow_provider_sparklineage.datahub.conversion import proposals
from tests.conftest import RECORDED
from tests.unit.datahub.openlineage_events import (
    EVENTS,
    RUN_ID,
    facet_classes,
    key_of,
    spoilt,
    values,
)
from tests.unit.datahub.sdk import checked

MAPPED = Namespace("s3://*", platform="minio", name_prefix="(,")
WAYS = st.fixed_dictionaries(
    {
        "env": st.sampled_from(("PROD", "DEV")),
        "platform_instance": st.sampled_from(("", "eu", "a,b")),
        "field_paths": st.sampled_from(FieldPaths),
        "indirect": st.booleans(),
        "symlinks": st.booleans(),
        "namespaces": st.sampled_from(((), (MAPPED,))),
    }
).map(lambda says: Conversion(**says))
ALL_FACETS = [
    (kind, cls)
    for kind in (
        *(base.RunFacet, base.JobFacet, base.DatasetFacet),
        *(base.InputDatasetFacet, base.OutputDatasetFacet),
    )
    for cls in facet_classes(kind)
]


@given(EVENTS, WAYS)
def test_whatever_openlineage_has_is_converted_to_what_the_sdk_takes(event, how):
    checked(proposals(event, how))


@pytest.mark.parametrize(
    ("kind", "cls"), ALL_FACETS, ids=[f"{key_of(cls)}-{kind.__name__}" for kind, cls in ALL_FACETS]
)
@settings(max_examples=settings().max_examples // 4)  # of each of forty
@given(data=st.data())
def test_each_facet_is_converted_whatever_is_in_it(kind, cls, data):
    event = with_facet(kind, key_of(cls), data.draw(values(cls)))

    checked(proposals(event))
    checked(proposals(spoilt(event, data.draw(st.integers(0, 10_000)))))


def with_facet(kind, key, facet):
    dataset = {"namespace": "s3://lake", "name": "orders", "facets": {}}
    run, job, of_dataset, read, written = ({}, {}, {}, {}, {})
    by_kind = {base.RunFacet: run, base.JobFacet: job, base.DatasetFacet: of_dataset}
    by_kind |= {base.InputDatasetFacet: read, base.OutputDatasetFacet: written}
    by_kind[kind][key] = facet
    return {
        "eventType": "COMPLETE",
        "eventTime": "2026-01-01T00:00:00Z",
        "producer": "https://github.com/apache/airflow",
        "run": {"runId": RUN_ID, "facets": run},
        "job": {"namespace": "airflow", "name": "dag.task", "facets": job},
        "inputs": [dataset | {"name": "raw", "inputFacets": read}],
        "outputs": [dataset | {"facets": of_dataset, "outputFacets": written}],
    }


@given(case=st.sampled_from(RECORDED), seed=st.integers(0, 10_000))
def test_an_event_of_ours_that_was_spoilt_is_converted_as_far_as_it_can_be(recorded, case, seed):
    event = recorded(case[1], case[0]).event

    checked(proposals(spoilt(event, seed)))
