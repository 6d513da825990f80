"""The states of a run with a real Marquez: it shows what its model does.

``SPARKLINEAGE_TEST_MARQUEZ_URL`` is the URL of its API, e.g. ``http://127.0.0.1:5000``.
"""

from __future__ import annotations

import pytest

from tests.dag_runs.states import STATES
from tests.integration.conftest import MARQUEZ_URL, needs_marquez
from tests.integration.marquez_server import MarquezServer

pytestmark = [
    pytest.mark.airflow,
    needs_marquez,
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_events_and_what_marquez_shows(state, task_runs):
    state(task_runs(MarquezServer(MARQUEZ_URL), f"{state.__name__}_served"))
