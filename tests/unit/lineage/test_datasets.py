"""What merging looks at of an action's dataset: typed, and nothing where a facet is no facet."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
from airflow_provider_sparklineage.model.datasets import DatasetName

T = DatasetName("file", "/t")
FILES = {"size": 7, "fileCount": 2}


def dataset(side=None, **facets):
    raw = {name: msgspec.Raw(json.dumps(facet).encode()) for name, facet in facets.items()}
    sides = {name: msgspec.Raw(json.dumps(facet).encode()) for name, facet in (side or {}).items()}
    return ActionDataset(T, raw, sides)


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        pytest.param({"fields": [{"name": "b"}, {"name": "a"}]}, ("b", "a"), id="in their order"),
        pytest.param({"fields": None}, (), id="no fields"),
        pytest.param({"fields": "many"}, (), id="another shape"),
        pytest.param(None, (), id="null"),
    ],
)
def test_columns_are_those_of_the_schema(schema, names):
    assert dataset(schema=schema).column_names == names


@pytest.mark.parametrize(
    ("facet", "names"),
    [
        pytest.param(
            {"identifiers": [{"namespace": "hive", "name": "shop.t", "type": "TABLE"}]},
            {DatasetName("hive", "shop.t")},
            id="one",
        ),
        pytest.param({"identifiers": [{"name": "t"}]}, {DatasetName("", "t")}, id="no namespace"),
        pytest.param({"identifiers": [1]}, set(), id="another shape"),
    ],
)
def test_symlinks_are_other_names(facet, names):
    assert dataset(symlinks=facet).symlinks == names


@pytest.mark.parametrize(
    ("side", "facets", "found", "written"),
    [
        pytest.param({"inputStatistics": FILES}, {}, 7, None, id="files that were read"),
        pytest.param({"inputStatistics": {"size": 7}}, {}, None, None, id="a catalog's statistics"),
        pytest.param({"inputStatistics": FILES}, {"storage": {}}, None, None, id="a scan's files"),
        pytest.param({"outputStatistics": {"size": 7}}, {}, None, 7, id="bytes that were written"),
        pytest.param({"outputStatistics": {"size": "7"}}, {}, None, None, id="another shape"),
    ],
)
def test_sizes_are_those_of_the_full_dataset(side, facets, found, written):
    sized = dataset(side, **facets)
    assert (sized.size_found, sized.size_written) == (found, written)


def test_a_dataset_with_other_facets_is_decoded_anew():
    first = dataset(lifecycleStateChange={"lifecycleStateChange": "CREATE"})
    assert first.lifecycle == "CREATE"
    assert replace(first, facets={}).lifecycle == ""
    assert dataset(lifecycleStateChange={"lifecycleStateChange": None}).lifecycle == ""
