"""Facets on partitions in which anything may stand."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.datahub.assertions import partition_checks, quality
from airflow_provider_sparklineage.datahub.configuration import DEFAULT_CONVERSION
from airflow_provider_sparklineage.datahub.partitions import operations, profiles
from airflow_provider_sparklineage.datahub.runs import run_datasets
from airflow_provider_sparklineage.datahub.subject import Subject
from tests.conftest import GOLDEN
from tests.unit.datahub.partition_events import ORDERS, event, output, stored_below
from tests.unit.datahub.sdk import checked

_PARTS = (run_datasets, operations, profiles, partition_checks, quality)
_COMPLETE = json.loads((GOLDEN / "airflow" / "complete.json").read_text())
_COMPLETE["eventTime"] = "2026-01-02T03:04:05+00:00"
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Give the places of facets, and of all that is in them."""
    of = value.items() if isinstance(value, dict) else ()
    of = enumerate(value) if isinstance(value, list) else of
    below = [place for key, one in of for place in _places(one, (*path, key))]
    is_facet = any("acets" in str(key) for key in path[:-1])
    return [path, *below] if is_facet else below


_PLACES = _places(_COMPLETE)


def _converted(document: dict[str, Any]) -> list[Any]:
    subject = Subject(document, DEFAULT_CONVERSION)
    return checked(one for part in _PARTS for one in part(subject))


def test_the_recorded_event_of_airflow_has_all_kinds():
    found = {one.aspect_name for one in _converted(_COMPLETE)}

    assert found == {
        "dataProcessInstanceInput",
        "dataProcessInstanceOutput",
        "operation",
        "datasetProfile",
        "assertionInfo",
        "assertionRunEvent",
        "dataPlatformInstance",
    }


@given(st.lists(st.tuples(st.sampled_from(_PLACES), _JSON), min_size=1, max_size=4))
def test_whatever_stands_in_a_facet_what_is_made_of_it_is_valid(changes):
    document = copy.deepcopy(_COMPLETE)
    for path, value in changes:
        at = document
        try:
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away

    _converted(document)


@given(_JSON, _JSON)
def test_whatever_is_measured_or_tested_what_is_made_of_it_is_valid(metrics, assertions):
    facets = {
        "dataQualityMetrics": {"rowCount": 3, "columnMetrics": {"a": metrics}},
        "dataQualityAssertions": {
            "assertions": [{"assertion": "min", "success": True, "column": assertions}, assertions]
        },
    }

    _converted(event(inputs=[{**ORDERS, "inputFacets": facets}]))


@given(_JSON)
def test_whatever_is_a_condition_gms_would_store_it(condition):
    for one in _converted(event(output(condition))):
        if one.aspect_name == "operation":
            assert stored_below(one)[-1]


def test_a_condition_as_deep_as_it_likes_is_no_condition():
    leaf = {"type": "location", "locations": ["a"]}
    deep: dict[str, Any] = leaf
    for _ in range(400):
        deep = {"type": "binary", "operator": "AND", "left": leaf, "right": deep}

    [_, found] = _converted(event(output(deep)))
    assert found.aspect["partitionSpec"]["partition"] == "partitions not known"
