"""Checks whether task instances in Airflow's database can be cleared, clears and observes them.

They are cleared by Airflow's own ``SerializedDAG.clear``, which ``airflow tasks clear`` and the
REST API use, too. A person who can run commands on Airflow's database may clear everything in it,
as with ``airflow tasks clear``; Airflow's pages check permissions only for their own users. Each
task instance that is cleared is noted in Airflow's audit log.
"""

from __future__ import annotations

import getpass
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.log import Log
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance
from airflow.providers.openlineage import conf
from airflow.utils.session import create_session
from airflow.utils.state import State
from sqlalchemy import select

from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from airflow_provider_sparklineage.plugins.stored import is_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy.orm import Session

EVENT = "cli_sparklineage_clear"
"""Name of a clearing in the audit log; Airflow's own commands have ``cli_`` before their name."""

GONE = "gone"
"""State of a task instance whose run or DAG was deleted."""
PAUSED = "waits in a paused DAG"
"""State of a task instance that was cleared, but cannot begin while its DAG is paused."""


class Key(NamedTuple):
    """The key of a task instance."""

    dag_id: str
    task_id: str
    run_id: str
    map_index: int = -1

    def __str__(self) -> str:
        mapped = "" if self.map_index < 0 else f"[{self.map_index}]"
        return f"{self.dag_id}.{self.task_id}{mapped} of {self.run_id}"


class TaskInstances:
    """The task instances in Airflow's database."""

    STRANDED = "stranded: its DAG run was closed"
    """State of a task instance that was cleared, but cannot begin as its DAG run has ended."""

    @property
    def namespace(self) -> str:
        """OpenLineage's namespace of this Airflow's jobs."""
        return str(conf.namespace())

    def obstacles(self, known: Mapping[Key, datetime | None]) -> dict[Key, str]:
        """Give the task instances that cannot be cleared, each with the reason as a sentence.

        :param known: task instances, each with the end of its last run in the history, or None
        """
        with create_session() as session:
            obstacles = {key: _obstacle(key, ended, session) for key, ended in known.items()}
        return {key: why for key, why in obstacles.items() if why}

    def clear(self, keys: Sequence[Key]) -> None:
        """Clear task instances in one transaction, so that Airflow runs them again.

        :raise UnusableInputError: if a DAG was deleted in the meantime; then nothing is cleared
        """
        runs = defaultdict(list)
        for key in keys:
            runs[key.dag_id, key.run_id].append((key.task_id, key.map_index))
        with create_session() as session:
            for (dag_id, run_id), tasks in runs.items():
                dag = SerializedDagModel.get_dag(dag_id, session=session)
                if dag is None:  # its task instances would look as if they had succeeded again
                    problem = f"Airflow has no DAG {dag_id} any more."
                    raise UnusableInputError(problem, "Nothing was cleared.")
                dag.clear(task_ids=tasks, run_id=run_id, session=session)
            session.add_all(_logged(key) for key in keys)

    def states(self, keys: Iterable[Key]) -> Mapping[Key, str]:
        """Give the states of the task instances that have ended.

        Task instances that will not begin are given as well, as :data:`GONE`, :data:`PAUSED` or
        :attr:`STRANDED`.
        """
        with create_session() as session:
            ends = {key: _end(key, session) for key in keys}
        return {key: end for key, end in ends.items() if end}

    def closing(self, keys: Iterable[Key]) -> set[str]:
        """Give the DAG runs that have no task instance to run, and that are not closed yet.

        The scheduler is about to close them, or does not run.

        :param keys: task instances; only their DAG runs are looked at
        :return: each as ``dag_id run_id``
        """
        runs = {(key.dag_id, key.run_id) for key in keys}
        with create_session() as session:
            return {f"{dag} {run}" for dag, run in runs if _is_closing(dag, run, session)}


def _is_closing(dag_id: str, run_id: str, session: Session) -> bool:
    if _state_of(dag_id, run_id, session) not in State.unfinished_dr_states:
        return False
    of_run = (TaskInstance.dag_id == dag_id) & (TaskInstance.run_id == run_id)
    is_open = TaskInstance.state.is_(None) | TaskInstance.state.not_in(State.finished)
    return session.execute(select(TaskInstance.task_id).where(of_run, is_open)).first() is None


def _state_of(dag_id: str, run_id: str, session: Session) -> str | None:
    run = (DagRun.dag_id == dag_id) & (DagRun.run_id == run_id)
    return session.scalar(select(DagRun.state).where(run))


def _end(key: Key, session: Session) -> str:
    instance = session.execute(select(TaskInstance.state).where(is_of(key))).first()
    if instance is None:
        return GONE
    if instance.state in State.finished:
        return str(instance.state)
    if instance.state is not None:
        return ""
    # Airflow starts no task of a paused DAG, but tasks that have begun go on.
    dag = session.get(DagModel, key.dag_id)
    if dag is None:
        return GONE
    if _state_of(key.dag_id, key.run_id, session) in State.finished_dr_states:
        return TaskInstances.STRANDED
    return PAUSED if dag.is_paused else ""


def _obstacle(key: Key, ended: datetime | None, session: Session) -> str:
    dag = session.get(DagModel, key.dag_id)
    if dag is None or dag.is_stale:
        return "Airflow has no such DAG any more."
    if dag.is_paused:
        return f"Its DAG is paused. Unpause it: airflow dags unpause {key.dag_id}"
    columns = (TaskInstance.state, TaskInstance.start_date)
    instance = session.execute(select(*columns).where(is_of(key))).first()
    if instance is None:
        return "Airflow has no such task instance any more."
    if instance.state not in State.finished:
        return f"It is not at its end: it is {instance.state or 'waiting to be scheduled'}."
    if ended and instance.start_date and instance.start_date > ended:
        return "It has run again since. Bring the history up to date: sparklineage history build"
    serialized = SerializedDagModel.get_dag(key.dag_id, session=session)
    if serialized is None or not serialized.has_task(key.task_id):
        return "The DAG has no such task any more."
    return ""


def _logged(key: Key) -> Log:
    user = ""
    with suppress(OSError, KeyError):  # a user without a name, as in containers
        user = getpass.getuser()
    return Log(EVENT, owner=user or None, **key._asdict())
