"""Proposals as JSON, against DataHub's SDK."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.datahub.proposals import Proposal
from tests.unit.datahub.sdk import checked

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/orders,PROD)"


def test_the_sdk_reads_a_proposal_as_what_it_is():
    given = [
        Proposal(ORDERS, "status", {"removed": False}),
        Proposal(
            ORDERS,
            "upstreamLineage",
            [{"op": "add", "path": "/upstreams/x", "value": {}}],
            is_patch=True,
        ),
        Proposal(ORDERS, "status", {"removed": False}, only_if_absent=True),
    ]

    assert checked(given) == given
    assert given[0].entity_type == "dataset"
    assert [one.change_type for one in given] == ["UPSERT", "PATCH", "CREATE"]
    assert given[2].document()["headers"] == {"If-None-Match": "*"}


@pytest.mark.parametrize(
    "aspect", [{"removed": "perhaps"}, {"removed": False, "because": "of a typing error"}]
)
def test_the_judge_refuses_what_is_no_aspect(aspect):
    with pytest.raises((AssertionError, ValueError)):
        checked([Proposal(ORDERS, "status", aspect)])
