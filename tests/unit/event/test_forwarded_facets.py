"""Facets of the listener: equal ones are decoded once, wrong ones declared of each dataset."""

from __future__ import annotations

import json

import msgspec
import pytest

from airflow_provider_sparklineage.event.make import Forwarding
from airflow_provider_sparklineage.model.datasets import DatasetName

ORDERS, RATES = DatasetName("file", "/orders"), DatasetName("file", "/rates")


def raw(**body):
    header = {"_producer": "https://spark", "_schemaURL": "https://openlineage.io/spec/x.json"}
    return msgspec.Raw(json.dumps(header | body).encode())


def test_equal_facets_of_two_datasets_are_one_object():
    forwarding = Forwarding()
    one, other = (forwarding.of({"dataSource": raw(name="file")}, d) for d in (ORDERS, RATES))
    assert one["dataSource"] is other["dataSource"]
    assert one["dataSource"]["name"] == "file"


def test_a_facet_is_judged_by_its_name_too():
    forwarding = Forwarding()
    facets = {"schema": raw(fields=[]), "version": raw(fields=[])}
    assert list(forwarding.of(facets, ORDERS)) == ["schema"]
    assert [d.dataset for d in forwarding.degradations()] == [ORDERS]


def test_a_facet_that_is_wrong_is_declared_of_each_dataset():
    forwarding = Forwarding()
    for dataset in (ORDERS, RATES):
        assert forwarding.of({"schema": raw(fields="none")}, dataset) == {}
    assert [d.dataset for d in forwarding.degradations()] == [ORDERS, RATES]


@pytest.mark.parametrize("counts", [{"rowCount": -1}, {"size": -1}, {"fileCount": 2**63}])
def test_statistics_that_no_reader_takes_are_left_out(counts):
    forwarding = Forwarding()
    assert forwarding.of({"outputStatistics": raw(**counts)}, ORDERS) == {}
    assert [d.dataset for d in forwarding.degradations()] == [ORDERS]
