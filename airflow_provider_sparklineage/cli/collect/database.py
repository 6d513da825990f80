"""Airflow's database, where this machine has it: the XCom of a task, and secrets to hide."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.models.connection import Connection
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.sdk.log import mask_secret
from airflow.utils.session import create_session
from sqlalchemy import and_, select

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.operators.publishing import xcom_of

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.document import Written
    from airflow_provider_sparklineage.settings.resolution import Settings
    from airflow_provider_sparklineage.spark.capture.bundle import TaskIdentity

log = logger(__name__)


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


def replace_xcom(task: TaskIdentity, written: Written, settings: Settings) -> bool:
    """Put an event in the place of the one that its try pushed; return whether it is there now.

    The tab and the next run read it. There is none if the try pushed none, if another try has begun
    since, or if a backend of the user's own keeps XComs elsewhere. Never raises.
    """
    try:
        value = xcom_of(written, settings)
        with create_session() as session:
            row: Any = session.scalar(_pushed(task))
            if value is None or row is None or isinstance(row.value, str):
                return False
            row.value = value
    except Exception:
        log.debug("The XCom was not replaced.", exc_info=True)
        return False
    return True


def _pushed(task: TaskIdentity) -> Any:
    """Select the XCom of a try, which is that of its task instance's latest."""
    columns = ("dag_id", "run_id", "task_id", "map_index")
    same = [getattr(XComModel, name) == getattr(TaskInstance, name) for name in columns]
    wanted = [getattr(XComModel, name) == getattr(task, name) for name in columns]
    return (
        select(XComModel)
        .join(TaskInstance, and_(*same))
        .where(*wanted, XComModel.key == xcom.KEY, TaskInstance.try_number == task.try_number)
    )
