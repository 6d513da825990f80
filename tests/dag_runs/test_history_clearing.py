"""``--clear`` on a real database of Airflow: exactly what a plan names, wave after wave."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from airflow_provider_sparklineage.cli.history import clearing
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test; it forks to send events, and has threads.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

DAYS = [datetime(2024, 5, day, tzinfo=UTC) for day in (1, 2)]


class Step(NamedTuple):
    dag_id: str
    task_id: str
    dag_run_id: str
    wave: int = 0
    map_index: int = -1
    ended: datetime | None = None
    namespace: str = ""


@pytest.fixture(scope="module")
def runs(airflow_db):
    """Run a DAG of two tasks on two days; give the ids of the runs."""
    from airflow.models.dag import DagModel
    from airflow.sdk import DAG, task
    from airflow.utils.session import create_session

    from tests.dag_runs.conftest import run_as_dags_test

    with DAG("rerun", schedule="@daily", start_date=DAYS[0], catchup=False) as dag:

        @task
        def daily(n):
            return n

        @task
        def weekly():
            pass

        daily.expand(n=[1, 2]) >> weekly()
    ids = [run_as_dags_test(dag, day).run_id for day in DAYS]
    with create_session() as session:
        session.get(DagModel, "rerun").is_paused = False
    return ids


@pytest.fixture
def database(runs):
    """Give Airflow's task instances, of which every one has succeeded before and after."""
    from airflow_provider_sparklineage.cli.history.task_instances import TaskInstances

    yield TaskInstances()
    succeed()


def task_instances():
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = session.scalars(select(TaskInstance).where(TaskInstance.dag_id == "rerun"))
        return {(t.task_id, t.run_id, t.map_index): t.state and str(t.state) for t in found}


def succeed():
    """Do what the scheduler and its tasks would."""
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from sqlalchemy import update

    with create_session() as session:
        for model in (TaskInstance, DagRun):
            session.execute(update(model).where(model.dag_id == "rerun").values(state="success"))


def waiting():
    return sorted(key for key, state in task_instances().items() if state != "success")


def test_a_plan_is_cleared_in_its_order_and_nothing_else(runs, database):
    first, second = runs
    steps = [
        Step("rerun", "daily", first, map_index=1),
        Step("rerun", "weekly", first, 1),
        Step("rerun", "weekly", second, 1),
    ]
    waves, left_out = clearing.possible(steps, database)
    assert not left_out
    seen = []

    def scheduler(_):
        seen.append(waiting())
        succeed()

    assert clearing.run(waves, database, scheduler) == 0
    assert seen == [
        [("daily", first, 1)],
        sorted([("weekly", first, -1), ("weekly", second, -1)]),
    ]


def test_the_runs_of_what_is_cleared_go_on_and_the_audit_log_knows_who(runs, database):
    from airflow.models.dagrun import DagRun
    from airflow.models.log import Log
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from airflow_provider_sparklineage.cli.history import task_instances

    database.clear([task_instances.Key("rerun", "weekly", runs[0])])
    with create_session() as session:
        of_dag = select(DagRun.run_id, DagRun.state).where(DagRun.dag_id == "rerun")
        states = {run_id: str(state) for run_id, state in session.execute(of_dag)}
        logged = session.scalars(
            select(Log).where(Log.event == task_instances.EVENT, Log.run_id == runs[0])
        ).all()
        assert (states[runs[0]], states[runs[1]]) == ("queued", "success")
        assert [(one.task_id, bool(one.owner)) for one in logged][-1:] == [("weekly", True)]


def test_what_cannot_be_cleared_is_left_out_with_the_reason(runs, database, capsys):
    database.clear([clearing._key(Step("rerun", "weekly", runs[0]))])
    waves, left_out = clearing.possible(
        [
            Step("rerun", "weekly", runs[0]),
            Step("rerun", "weekly", "other"),
            Step("rerun", "daily", runs[1], map_index=7),
            Step("gone", "weekly", runs[1]),
            Step("rerun", "weekly", runs[1], ended=datetime.now(UTC) - timedelta(days=1)),
            Step("rerun", "daily", runs[1], map_index=0, ended=datetime.now(UTC)),
        ],
        database,
    )
    assert left_out
    assert [[str(key) for key in wave] for wave in waves] == [[f"rerun.daily[0] of {runs[1]}"]]
    why = [line.partition(" is left out. ")[2] for line in capsys.readouterr().err.splitlines()]
    assert why == [
        "It is not at its end: it is waiting to be scheduled.",
        "Airflow has no such task instance any more.",
        "Airflow has no such task instance any more.",
        "Airflow has no such DAG any more.",
        "It has run again since. Bring the history up to date: sparklineage history build",
    ]


def closed(runs, state):
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import update

    with create_session() as session:
        of_dag = (DagRun.dag_id == "rerun") & DagRun.run_id.in_(runs)
        session.execute(update(DagRun).where(of_dag).values(state=state))


def test_a_dag_run_that_is_about_to_be_closed_is_known(runs, database):
    keys = [clearing._key(Step("rerun", "weekly", run_id)) for run_id in runs]
    closed(runs[:1], "running")  # all of its task instances have ended
    assert database.closing(keys) == {f"rerun {runs[0]}"}
    database.clear(keys[:1])
    assert database.closing(keys) == set()


def test_a_task_instance_in_a_closed_dag_run_is_stranded_and_cleared_again(runs, database, capsys):
    key = clearing._key(Step("rerun", "weekly", runs[0]))
    looks = []

    def scheduler(_):
        looks.append(waiting())
        if len(looks) == 1:  # it had seen all task instances at their ends
            closed(runs, "success")
        else:
            succeed()

    assert clearing.run([[key]], database, scheduler) == 0
    assert looks == [[("weekly", runs[0], -1)]] * 2
    assert (
        f"cleared again, as Airflow had just closed its DAG run  {key}" in capsys.readouterr().err
    )


def test_a_task_of_another_airflow_is_left_out(runs, database, capsys):
    step = Step("rerun", "weekly", runs[0], namespace="elsewhere")
    assert clearing.possible([step], database) == ([], True)
    assert "an Airflow whose [openlineage] namespace is 'elsewhere'" in capsys.readouterr().err
    assert clearing.possible([step._replace(namespace=database.namespace)], database)[0] != []


def pause(is_paused):
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.get(DagModel, "rerun").is_paused = is_paused


def test_a_dag_that_is_paused_meanwhile_is_not_waited_for(runs, database, capsys):
    from airflow_provider_sparklineage.cli.history.task_instances import Key

    waves = [[Key("rerun", "weekly", runs[0])], [Key("rerun", "weekly", runs[1])]]
    try:
        assert clearing.run(waves, database, lambda _: pause(is_paused=True)) == 1
    finally:
        pause(is_paused=False)
    assert waiting() == [("weekly", runs[0], -1)]
    printed = capsys.readouterr().err
    assert f"waits in a paused DAG  rerun.weekly of {runs[0]}\n" in printed
    assert f"not cleared, as it comes after  rerun.weekly of {runs[1]}\n" in printed


def test_a_run_that_is_deleted_meanwhile_is_not_waited_for(runs, database):
    from airflow_provider_sparklineage.cli.history.task_instances import Key

    gone = Key("rerun", "weekly", "deleted")
    assert database.states([gone, Key("rerun", "weekly", runs[0])]) == {
        gone: "gone",
        Key("rerun", "weekly", runs[0]): "success",
    }


def test_nothing_is_cleared_if_a_dag_has_gone(runs, database):
    from airflow_provider_sparklineage.cli.history.task_instances import Key

    with pytest.raises(UnusableInputError, match="Airflow has no DAG gone any more"):
        database.clear([Key("rerun", "weekly", runs[0]), Key("gone", "weekly", runs[0])])
    assert waiting() == []


def test_what_is_in_a_paused_dag_would_wait_for_ever_and_is_left_out(runs, database, capsys):
    pause(is_paused=True)
    try:
        waves, left_out = clearing.possible([Step("rerun", "weekly", runs[0])], database)
    finally:
        pause(is_paused=False)
    assert (waves, left_out) == ([], True)
    assert "Unpause it: airflow dags unpause rerun" in capsys.readouterr().err
