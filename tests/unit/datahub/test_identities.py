"""Which dataset of DataHub a dataset of an event is: symlinks, namespaces that are configured."""

from __future__ import annotations

from itertools import permutations

import pytest

from airflow_provider_sparklineage.datahub.configuration import (
    Conversion,
    Namespace,
    read_namespaces,
)
from airflow_provider_sparklineage.datahub.subject import Subject
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import SettingsError

FILES = DatasetName("s3://lake", "warehouse/shop.db/orders")
ICEBERG = {"framework": "iceberg", "type": "rest"}


def linked(*symlinks, of=FILES, catalog=None):
    identifiers = [
        {"namespace": namespace, "name": name, "type": type_} for namespace, name, type_ in symlinks
    ]
    facets = {"symlinks": {"identifiers": identifiers}}
    if catalog:
        facets["catalog"] = catalog
    return {"namespace": of.namespace, "name": of.name, "facets": facets}


def subject(*inputs, outputs=(), **how):
    event = {
        "eventType": "COMPLETE",
        "run": {"runId": "0196"},
        "job": {"namespace": "airflow", "name": "dag.task"},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }
    return Subject(event, Conversion(**how))


def short(urn):
    """Give what a URN says, as ``platform,name,env``."""
    return urn.removeprefix("urn:li:dataset:(urn:li:dataPlatform:").removesuffix(")")


HIVE = ("hive://metastore:9083", "shop.orders", "TABLE")
GLUE = ("arn:aws:glue:eu-west-1:123", "table/shop/orders", "TABLE")
WAREHOUSE = ("s3://lake/warehouse", "shop.orders", "TABLE")


@pytest.mark.parametrize(
    ("document", "urn"),
    [
        (linked(), "s3,lake/warehouse/shop.db/orders,PROD"),
        (linked(HIVE), "hive,shop.orders,PROD"),
        (linked(GLUE), "glue,shop.orders,PROD"),
        (linked(WAREHOUSE), "hive,shop.orders,PROD"),
        (linked(WAREHOUSE, catalog=ICEBERG), "iceberg,shop.orders,PROD"),
        (linked(WAREHOUSE, catalog=ICEBERG | {"type": "hive"}), "hive,shop.orders,PROD"),
        (linked(GLUE, catalog=ICEBERG | {"type": "glue"}), "glue,shop.orders,PROD"),
        (linked(("s3://lake", "other", "LOCATION")), "s3,lake/warehouse/shop.db/orders,PROD"),
        (
            linked(HIVE, of=DatasetName("kafka://broker:9092", "orders")),
            "kafka,orders,PROD",
        ),
    ],
    ids=[
        "none",
        "hive",
        "glue",
        "warehouse",
        "iceberg",
        "iceberg-hive",
        "iceberg-glue",
        "location",
        "topic",
    ],
)
def test_files_are_the_table_that_their_symlink_names(document, urn):
    assert short(subject(document).inputs[0].urn) == urn


def test_a_table_is_the_same_in_whichever_order_its_symlinks_are():
    found = {
        subject(linked(*links)).inputs[0].urn for links in permutations([WAREHOUSE, GLUE, HIVE])
    }

    assert [*map(short, found)] == ["glue,shop.orders,PROD"]


def test_a_table_is_one_dataset_by_all_of_its_names_and_on_both_sides():
    plain = {"namespace": FILES.namespace, "name": FILES.name}

    found = subject(plain, outputs=[linked(HIVE)])

    assert found.inputs[0].urn == found.outputs[0].urn
    assert found.dataset(FILES) == found.dataset(DatasetName(*HIVE[:2])) == found.inputs[0].urn
    assert found.field(FILES, "id") == f"urn:li:schemaField:({found.inputs[0].urn},id)"


def test_a_table_is_its_files_where_symlinks_are_not_followed():
    found = subject(linked(HIVE), symlinks=False)

    assert short(found.inputs[0].urn) == "s3,lake/warehouse/shop.db/orders,PROD"
    assert found.dataset(DatasetName(*HIVE[:2])) == found.inputs[0].urn


@pytest.mark.parametrize(
    "facets",
    [
        *(None, [], "x", {"symlinks": None}, {"symlinks": []}, {"catalog": "iceberg"}),
        *({"symlinks": {"identifiers": one}} for one in ("x", [None], [{}], [[]])),
        {"symlinks": {"identifiers": [{"namespace": "hive", "name": 5, "type": "TABLE"}]}},
    ],
)
def test_a_malformed_facet_names_nothing(facets):
    document = {"namespace": "s3://lake", "name": "orders", "facets": facets}

    assert short(subject(document).inputs[0].urn) == "s3,lake/orders,PROD"


@pytest.mark.parametrize(
    "inputs", [None, {}, "x", [None], [{}], [{"namespace": "s3://lake"}], [{"name": "x"}], [[]]]
)
def test_what_is_no_dataset_is_none(inputs):
    event = {"run": {"runId": "0196"}, "job": {"name": "d.t"}, "inputs": inputs}

    assert Subject(event, Conversion()).inputs == ()


def test_the_instance_is_before_the_name_and_the_environment_behind():
    found = subject(linked(), env="DEV", platform_instance="eu")

    assert short(found.inputs[0].urn) == "s3,eu.lake/warehouse/shop.db/orders,DEV"


def namespaces(**says):
    return read_namespaces({"s3://lake": says})


@pytest.mark.parametrize(
    ("says", "urn"),
    [
        ({}, "s3,eu.lake/warehouse/shop.db/orders,PROD"),
        ({"platform": "delta-lake"}, "delta-lake,eu.lake/warehouse/shop.db/orders,PROD"),
        ({"env": "dev"}, "s3,eu.lake/warehouse/shop.db/orders,DEV"),
        ({"platform_instance": "us"}, "s3,us.lake/warehouse/shop.db/orders,PROD"),
        ({"platform_instance": ""}, "s3,lake/warehouse/shop.db/orders,PROD"),
        ({"name_prefix": "x."}, "s3,eu.x.lake/warehouse/shop.db/orders,PROD"),
        ({"name_prefix": "X.", "lower_case": True}, "s3,eu.x.lake/warehouse/shop.db/orders,PROD"),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_what_is_known_of_a_namespace_goes_before_all_else(says, urn):
    found = subject(linked(), platform_instance="eu", namespaces=namespaces(**says))

    assert short(found.inputs[0].urn) == urn


def test_the_first_glob_that_matches_is_taken():
    known = read_namespaces(
        {"s3://dev-*": {"env": "DEV"}, "s3://*": {"env": "QA"}, "*": {"env": "TEST"}}
    )
    names = [("s3://dev-lake", "o"), ("s3://lake", "o"), ("kafka://b:1", "o")]

    found = subject(namespaces=known)

    envs = [found.identity(DatasetName(*name)).env for name in names]
    assert envs == ["DEV", "QA", "TEST"]


def test_a_table_is_configured_by_the_namespace_of_its_catalog():
    known = read_namespaces({"hive://*": {"platform_instance": "eu"}, "s3://*": {"env": "DEV"}})

    assert (
        short(subject(linked(HIVE), namespaces=known).inputs[0].urn) == "hive,eu.shop.orders,PROD"
    )


def test_the_configuration_is_read_in_its_order():
    assert read_namespaces({"b*": {}, "a*": {"platform": "s3", "env": "prod"}}) == (
        Namespace("b*"),
        Namespace("a*", platform="s3", env="PROD"),
    )


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["hive"], "are no object"),
        ({"hive": "eu"}, "'hive'.* say nothing"),
        ({"hive": {"platfrom": "hive"}}, r"unknown key 'platfrom'.* Did you mean platform\?"),
        ({"hive": {"x": "hive"}}, "unknown key 'x'.* There are: platform, env"),
        ({"hive": {"env": "LIVE"}}, "unknown env 'LIVE'.* There are: PROD"),
        ({"hive": {"platform": 5}}, "impossible platform 5.* Write platform as a JSON string"),
        ({"hive": {"lower_case": "yes"}}, "Write lower_case as true or false"),
    ],
)
def test_an_impossible_configuration_says_what_is_wrong_and_what_to_do(given, problem):
    with pytest.raises(SettingsError, match=problem):
        read_namespaces(given)
