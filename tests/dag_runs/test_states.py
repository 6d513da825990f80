"""Every state of a task's run: which events Airflow sends, and what a Marquez shows after each."""

from __future__ import annotations

import pytest

from tests.dag_runs.states import STATES
from tests.marquez_model import MarquezModel

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_events_and_what_marquez_shows(state, task_runs):
    state(task_runs(MarquezModel(), state.__name__))
