"""Extra links of the operator; Airflow's pages read them from XComs that the worker pushes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.settings.option_kinds import BackendName
from airflow_provider_sparklineage.settings.options import SECTION

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

log = logger(__name__)


class LineageJobLink(BaseOperatorLink):
    """The task's job in the lineage backend."""

    @property
    def name(self) -> str:
        """Name the button by the backend in Airflow's configuration: a DAG's file knows no more."""
        return _button()

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Give the URL, or an empty text: then there is no button."""
        from airflow_provider_sparklineage.links.pages import job_page

        return job_page(operator, ti_key)


@cache  # asked for each task of each DAG that is parsed; a process has one configuration
def _button() -> str:
    try:
        from airflow.providers.common.compat.sdk import conf

        is_datahub = conf.get(SECTION, "backend", fallback="") == BackendName.DATAHUB
    except Exception:
        log.debug("The backend is not known.", exc_info=True)
        is_datahub = False
    return "Lineage in DataHub" if is_datahub else "Lineage job"


class OutputColumnsLink(BaseOperatorLink):
    """The column lineage of the task's first output by name."""

    name = "Output columns"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """Give the URL, or an empty text: then there is no button."""
        from airflow_provider_sparklineage.links.pages import columns_page

        return columns_page(operator)


LINKS = (LineageJobLink(), OutputColumnsLink())


def push(operator: Any, context: Context) -> None:
    """Show the links while the task runs; Airflow pushes them when it has ended. Never raises."""
    try:
        ti: Any = context["ti"]
        for link in LINKS:
            if url := link.get_link(operator, ti_key=ti):
                ti.xcom_push(key=link.xcom_key, value=url)
    except Exception:
        log.debug("The links are shown when the task has ended.", exc_info=True)
