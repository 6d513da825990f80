"""Checked partitions with a real Marquez; the unit tests try them with its model."""

from __future__ import annotations

import pytest

from tests.checked_runs import CASES, Runs
from tests.integration.conftest import MARQUEZ_URL, needs_marquez
from tests.integration.marquez_server import MarquezServer

pytestmark = needs_marquez


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_checks_on_the_pages_of_marquez(case):
    case(Runs(MarquezServer(MARQUEZ_URL)))
