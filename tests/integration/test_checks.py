"""Checked partitions with a real Marquez; the unit tests try them with its model."""

from __future__ import annotations

import os
import re

import pytest

from airflow_provider_sparklineage.event.backends.marquez import Marquez
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.model.datasets import DatasetName
from tests.browser.serving import chromium, find_chromium
from tests.checked_runs import CASES, RAW, REVENUE, Runs, accessed, neutral
from tests.integration.conftest import MARQUEZ_URL, needs_marquez
from tests.integration.marquez_server import MarquezServer

pytestmark = needs_marquez

WEB_URL = os.environ.get("SPARKLINEAGE_TEST_MARQUEZ_WEB_URL", "")
WAIT_MS = 10_000


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_checks_on_the_pages_of_marquez(case):
    case(Runs(MarquezServer(MARQUEZ_URL)))


def is_red(shown):
    """Whether the browser draws a text in red, as Marquez does by its theme's colour of errors."""
    shown.wait_for(timeout=WAIT_MS)
    colour = shown.evaluate("element => getComputedStyle(element).color")
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return red > 1.5 * max(green, blue)


@pytest.mark.skipif(not WEB_URL, reason="SPARKLINEAGE_TEST_MARQUEZ_WEB_URL names no web pages")
@pytest.mark.skipif(not find_chromium(), reason="there is no Chromium on the PATH")
def test_a_mismatch_is_red_on_the_datasets_page_and_at_its_node():
    server = MarquezServer(MARQUEZ_URL)
    read = accessed(RAW, Side.READ, ("04",), "05")
    Runs(server).send(neutral([read], [accessed(REVENUE, Side.WRITE, ("05",), "05")]))
    name = DatasetName(REVENUE.namespace, server.own(REVENUE.name))
    url = Marquez().dataset_page(WEB_URL, name)
    with chromium(find_chromium()) as browser:
        page = browser.new_page(viewport={"width": 1600, "height": 900})
        page.goto(url)
        assert is_red(page.get_by_text("1 FAILING"))
        assert not is_red(page.get_by_text("1 PASSING"))
        page.get_by_text("1 FAILING").hover()
        page.get_by_text("read the expected partitions of /lake/raw").wait_for(timeout=WAIT_MS)

        page.goto(url.partition("?")[0])  # without the drawer
        node = page.locator("text", has_text=name.name[:12]).last  # the first are of the small map
        node.hover()
        assert is_red(page.get_by_text("UNHEALTHY"))
