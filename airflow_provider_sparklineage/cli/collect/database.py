"""Airflow's database, where this machine has it: the XCom of a task, and secrets to hide."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from airflow.models.connection import Connection
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.xcom import XComModel
from airflow.sdk.log import mask_secret
from airflow.utils.session import create_session
from sqlalchemy import and_, select

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.operators.publishing import xcom_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from airflow_provider_sparklineage.event.document import Written
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

log = logger(__name__)

_COLUMNS = ("dag_id", "run_id", "task_id", "map_index")


def mask_connections() -> None:
    """Hide what connections have in texts, as in the task that used them; never raises."""
    try:
        with create_session() as session:
            for connection in session.scalars(select(Connection)):
                with suppress(Exception):  # it was encrypted with another key
                    mask_secret(connection.password)
                    mask_secret(connection.extra_dejson)
    except Exception:
        log.debug("Airflow's connections are not known.", exc_info=True)


State = Literal["", "RUNNING", "COMPLETE", "FAIL"]
"""What became of a try, as far as that says how its job did."""

_STATES: dict[str, State] = {
    "success": "COMPLETE",
    "failed": "FAIL",
    "up_for_retry": "FAIL",
    "running": "RUNNING",
}


def state_of(task: TaskIdentity) -> State:
    """Ask in which state a try is, or has ended; never raises."""
    try:
        with create_session() as session:
            for model in (TaskInstance, TaskInstanceHistory):
                try_of = model.try_number == task.try_number
                state = session.scalar(select(model.state).where(*_of(task, model), try_of))
                if state is not None:
                    return _STATES.get(str(state), "")
    except Exception:
        log.debug("The state of a try is not known.", exc_info=True)
    return ""


def replace_xcom(
    task: TaskIdentity, written: Written, settings: Settings, *, is_first: bool = False
) -> bool:
    """Put an event in the place of the one that its try pushed; return whether it is there now.

    The tab and the next run read it. There is none if the try pushed none, if another try has begun
    since, or if a backend of the user's own keeps XComs elsewhere. Never raises.

    :param is_first: whether the try pushes none, and this one is added
    """
    try:
        value = xcom_of(written, settings)
        if value is None:
            return False
        with create_session() as session:
            row: Any = session.scalar(_pushed(task))
            if row is None and is_first and settings.xcom_max_bytes:
                return _push(task, value, session)
            if row is None or isinstance(row.value, str):
                return False
            row.value = value
    except Exception:
        log.debug("The XCom was not replaced.", exc_info=True)
        return False
    return True


def _push(task: TaskIdentity, value: dict[str, Any], session: Session) -> bool:
    if not session.scalar(select(TaskInstance.id).where(*_of(task), _is_latest(task))):
        return False
    place = {name: getattr(task, name) for name in _COLUMNS}
    XComModel.set(xcom.KEY, value, **place, serialize=False, session=session)
    return True


def _pushed(task: TaskIdentity) -> Any:
    """Select the XCom of a try, which is that of its task instance's latest."""
    same = [getattr(XComModel, name) == getattr(TaskInstance, name) for name in _COLUMNS]
    return (
        select(XComModel)
        .join(TaskInstance, and_(*same))
        .where(*_of(task, XComModel), XComModel.key == xcom.KEY, _is_latest(task))
    )


def _of(task: TaskIdentity, model: Any = TaskInstance) -> list[Any]:
    return [getattr(model, name) == getattr(task, name) for name in _COLUMNS]


def _is_latest(task: TaskIdentity) -> Any:
    return TaskInstance.try_number == task.try_number
