"""Extra links of the operator, and the URLs of a task's pages in its lineage backend.

Airflow's pages read the links from XComs that the worker pushes. A URL is empty if the backend has
no such page. Every DAG with a Spark task imports this module, so it imports modules for pages only
when a page is requested.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink
from msgspec.json import decode, encode

from airflow_provider_sparklineage.model import pages
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.settings.option_kinds import BackendName
from airflow_provider_sparklineage.settings.options import SECTION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.providers.common.compat.sdk import Context
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

    from airflow_provider_sparklineage.event.backends.base import Backend
    from airflow_provider_sparklineage.settings.resolution import Settings

log = logger(__name__)


class LineageJobLink(BaseOperatorLink):
    """The link to the page of the task's job in the lineage backend."""

    @property
    def name(self) -> str:
        """The name of the link's button, which depends on the backend in the configuration.

        A connection may have another backend, but no connection is read when a DAG's file is
        parsed.
        """
        return _button()

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Give the URL; if it is empty, Airflow shows no button."""
        return job_page(operator, ti_key)


@cache  # called for each task of each parsed DAG, while a process has one configuration
def _button() -> str:
    try:
        from airflow.providers.common.compat.sdk import conf

        is_datahub = conf.get(SECTION, "backend", fallback="") == BackendName.DATAHUB
    except Exception:
        log.debug("The backend is not known.", exc_info=True)
        is_datahub = False
    return "Lineage in DataHub" if is_datahub else "Lineage job"


class OutputColumnsLink(BaseOperatorLink):
    """The link to the columns of one of the task's outputs: the one whose name sorts first."""

    name = "Output columns"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002
        """Give the URL; if it is empty, Airflow shows no button."""
        return columns_page(operator)


LINKS = (LineageJobLink(), OutputColumnsLink())


def push(operator: Any, context: Context) -> None:
    """Push the URLs of an operator's links to XCom while its task runs; never raises.

    Airflow itself pushes them only at the end of the task.
    """
    try:
        ti: Any = context["ti"]
        for link in LINKS:
            if url := link.get_link(operator, ti_key=ti):
                ti.xcom_push(key=link.xcom_key, value=url)
    except Exception:
        log.debug("The links are shown when the task has ended.", exc_info=True)


def job_page(operator: Any, ti: Any) -> str:
    """Give the URL of the page of the task's OpenLineage job; never raises.

    :param operator: an operator with lineage
    :param ti: the task instance, which names the task
    :return: empty if there is no page, or its URL cannot be found
    """
    try:
        from airflow.providers.openlineage.plugins import macros

        settings = _settings(operator)
        if settings is None or not settings.web_url:
            return ""
        namespace = macros.lineage_job_namespace()  # type: ignore[no-untyped-call]
        backend = pages_of(settings.backend, ti.dag_id)
        page = backend.job_page(settings.web_url, namespace, macros.lineage_job_name(ti))
    except Exception:
        log.debug("The page of the lineage job is not known.", exc_info=True)
        return ""
    return page or ""


def columns_page(operator: Any, output: str | None = None) -> str:
    """Give the URL of the page that draws an output's columns; never raises.

    While the task runs, the outputs are the outputs of its last successful run.

    :param operator: an operator with lineage
    :param output: name of the dataset; None for the first dataset by name that has a page
    :return: empty if there is no page, or its URL cannot be found
    """
    try:
        settings = _settings(operator)
        if settings is None or not settings.web_url:
            return ""
        outputs = [d for d in _outputs(operator) if output is None or d["name"] == output]
        backend = pages_of(settings.backend, operator.dag_id, outputs)
        names = (backend.identity(DatasetName(d["namespace"], d["name"])) for d in outputs)
        pages = (backend.columns_page(settings.web_url, name) for name in names if name)
        return next((page for page in pages if page), "")
    except Exception:
        log.debug("The page of the output's columns is not known.", exc_info=True)
        return ""


def tab_page(ti: Any) -> str:
    """Give the URL of the tab "Spark lineage" of a task's try in Airflow; empty if it is not known.

    :param ti: the task instance, which has the URL of its log
    """
    page, _, query = str(getattr(ti, "log_url", "") or "").partition("?")
    return f"{page}/plugin/spark-lineage{'?' if query else ''}{query}" if page else ""


def dataset_page(ti: Any, dataset: DatasetName, states: str = "") -> str:
    """Give the URL of a dataset's partitions on the page "Lineage" of this Airflow.

    :param ti: a task instance, which has the URL of its log
    :param states: the letters of the states to which the page limits the partitions
    :return: empty if Airflow's own URL is not known
    """
    airflow_url, _, path = str(getattr(ti, "log_url", "") or "").rpartition("/dags/")
    return pages.dataset_page(airflow_url, dataset, states=states) if path else ""


def _settings(operator: Any) -> Settings | None:
    """Give the settings of the task's try; None if lineage is off for the try.

    :param operator: an operator with lineage
    """
    current = operator.lineage_try
    if not current.is_on:
        return None
    prepared = current.prepared
    settings: Settings = current.settings() if prepared is None else prepared.settings
    return settings


def pages_of(name: str, dag_id: str, outputs: Iterable[dict[str, Any]] = ()) -> Backend:
    """Give the backend that makes the URLs of pages.

    :param name: the name of the backend
    :param dag_id: the task's DAG; only DataHub's pages need the DAG and the outputs
    :param outputs: the datasets whose pages are requested, as an event's ``outputs`` has them
    """
    from airflow_provider_sparklineage.event.backends import backend_of

    if name != BackendName.DATAHUB:
        return backend_of(name)
    from airflow_provider_sparklineage.hooks.sources import conversion
    from airflow_provider_sparklineage.links.datahub_pages import Pages

    return Pages(conversion(), dag_id, outputs)


def _outputs(operator: Any) -> list[dict[str, Any]]:
    """Give the outputs whose columns are known, sorted by name; other outputs have an empty page.

    If the try has no such output yet, or fails without one, the outputs are the outputs of the last
    successful run.

    :param operator: an operator with lineage
    :return: datasets as JSON, as an event's ``outputs`` has them
    """
    current = operator.lineage_try
    written = current.collected["outputs"] if current.collected is not None else ()
    outputs = [d for d in written if "columnLineage" in (d.get("facets") or {})]
    if not outputs and current.prepared is not None:
        last = current.prepared.known.last.outputs
        outputs = [decode(encode(d)) for d in last if "schema" in d.facets]
    return sorted(outputs, key=lambda d: (d["name"], d["namespace"]))
