"""URLs of DataHub's pages: those that its SDK makes, and that its web application reads again."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

import pytest

from airflow_provider_sparklineage.datahub.configuration import DEFAULT_CONVERSION, Conversion
from airflow_provider_sparklineage.datahub.subject import Subject
from airflow_provider_sparklineage.event.backends import BACKENDS
from airflow_provider_sparklineage.links.datahub_pages import Pages, web_url_of
from airflow_provider_sparklineage.model.datasets import DatasetName
from tests.unit.datahub.sdk import require_sdk

WEB = "http://datahub:9002"
REVENUE = DatasetName("s3://lake", "shop/revenue")


def pages(*datasets, dag_id="shop", how=DEFAULT_CONVERSION):
    return Pages(how, dag_id, datasets)


def urn_of(url):
    """Read the URN of a page as the web application does (``decodeUrn`` after its router)."""
    path = urlsplit(url).path
    # The router decodes all but what has a meaning in a URL.
    kept = re.sub("%(2F|3F|23|2C|3A|26|3B|40|3D|2B|24)", r"%25\1", path)
    _, _, urn, tab = unquote(kept).split("/")
    assert tab == "Lineage"
    return unquote(urn).replace("{{encoded_percent}}", "%")


def test_links_are_those_that_the_sdk_makes():
    require_sdk()
    from datahub.ingestion.graph.links import make_url_for_urn

    job = "urn:li:dataJob:(urn:li:dataFlow:(airflow,shop,prod),revenue)"
    dataset = "urn:li:dataset:(urn:li:dataPlatform:s3,lake/shop/revenue,PROD)"
    made = pages()
    assert made.job_page(WEB, "tests", "shop.revenue") == make_url_for_urn(WEB, job, tab="Lineage")
    assert made.dataset_page(f"{WEB}/", REVENUE) == make_url_for_urn(WEB, dataset, tab="Lineage")


def test_the_page_of_columns_is_the_graph_with_columns():
    made = pages()
    url = made.dataset_page(WEB, REVENUE)
    wanted = f"{url}?is_lineage_mode=true&show_columns=true"
    assert made.columns_page(WEB, REVENUE) == made.columns_page(WEB, REVENUE, "amount") == wanted


@pytest.mark.parametrize(
    "name",
    ["shop/a,b", "shop/a(b)", "shop/50%", "shop/%2F", "shop/a?b#c", "shop/ümsatz", "a b/[c]+&="],
)
def test_the_web_application_finds_the_urn_in_any_url(name):
    dataset = DatasetName("s3://lake", name)
    wanted = Subject({"run": {}, "job": {}}, DEFAULT_CONVERSION).dataset(dataset)
    assert urn_of(pages().dataset_page(WEB, dataset)) == wanted


def test_env_and_instance_are_those_of_the_transport():
    how = Conversion(env="DEV", platform_instance="eu")
    assert urn_of(pages(how=how).dataset_page(WEB, REVENUE)).endswith(",eu.lake/shop/revenue,DEV)")


def test_a_dataset_is_the_table_that_it_has_as_a_symlink():
    table = {"namespace": "hive://metastore:9083", "name": "shop.revenue", "type": "TABLE"}
    document = {**REVENUE._asdict(), "facets": {"symlinks": {"identifiers": [table]}}}
    urn = urn_of(pages(document).dataset_page(WEB, REVENUE))
    assert urn == "urn:li:dataset:(urn:li:dataPlatform:hive,shop.revenue,PROD)"


@pytest.mark.parametrize("web_url", [WEB, "https://example.com/datahub"])
def test_the_url_of_the_pages_is_found_in_the_link_to_a_task(web_url):
    link = pages().job_page(web_url, "tests", "shop.revenue")
    assert web_url_of(link) == web_url


def test_there_is_none_in_any_other_link():
    marquez = BACKENDS["marquez"].job_page("http://marquez:3000", "tests", "shop.revenue")
    assert web_url_of(marquez) == ""
    assert web_url_of(pages().dataset_page(WEB, REVENUE)) == ""
    assert web_url_of("") == ""
