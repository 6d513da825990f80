"""Every state of a task's run: which events Airflow sends, and what a Marquez shows after each."""

from __future__ import annotations

import pytest

from tests.dag_runs import states
from tests.marquez_model import MarquezModel

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


# Each is several runs of a DAG.
ALWAYS = (
    states.the_first_run_and_the_second,
    states.a_failure_after_a_success,
    states.a_retry,
    states.marked_as_success_while_it_runs,
    states.map_indexes_that_write_different_tables,
)
STATES = [
    pytest.param(state, marks=[] if state in ALWAYS else [pytest.mark.long], id=state.__name__)
    for state in states.STATES
]


@pytest.mark.parametrize("state", STATES)
def test_events_and_what_marquez_shows(state, task_runs):
    state(task_runs(MarquezModel(), state.__name__))
