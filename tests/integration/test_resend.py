"""Runs that are sent late or twice, with a real Marquez; the unit tests try them with its model."""

from __future__ import annotations

import pytest

from tests.integration.conftest import MARQUEZ_URL, needs_marquez
from tests.integration.marquez_server import MarquezServer
from tests.resent_runs import CASES, Runs

pytestmark = needs_marquez


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_runs_that_are_sent_again(recorded, case):
    case(Runs(MarquezServer(MARQUEZ_URL), recorded("staging_chain").event))
