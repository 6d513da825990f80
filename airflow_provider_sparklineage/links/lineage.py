"""Extra links of the operator, and the URLs of a task's pages in its lineage backend.

Airflow's pages read the links from XComs that the worker pushes. A URL is empty where no page
opens. Every DAG with a Spark task imports this, so modules that only a page needs are imported
when it is asked for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperatorLink
from msgspec.json import decode, encode

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
    """The task's job in the lineage backend."""

    @property
    def name(self) -> str:
        """Name the button by the backend in Airflow's configuration: a DAG's file knows no more."""
        return _button()

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Give the URL, or an empty text: then there is no button."""
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


def job_page(operator: Any, ti: Any) -> str:
    """Give the page of the task's OpenLineage job; never raises."""
    try:
        from airflow.providers.openlineage.plugins import macros

        settings = _settings(operator)
        if settings is None or not settings.web_url:
            return ""
        namespace = macros.lineage_job_namespace()  # type: ignore[no-untyped-call]
        backend = _pages(settings.backend, ti.dag_id)
        page = backend.job_page(settings.web_url, namespace, macros.lineage_job_name(ti))
    except Exception:
        log.debug("The page of the lineage job is not known.", exc_info=True)
        return ""
    return page or ""


def columns_page(operator: Any, output: str | None = None) -> str:
    """Give the page on which an output's columns are drawn; never raises.

    While the task runs the outputs are those of its last successful run.

    :param output: name of the dataset; None for the first by name that has a page
    """
    try:
        settings = _settings(operator)
        if settings is None or not settings.web_url:
            return ""
        outputs = [d for d in _outputs(operator) if output is None or d["name"] == output]
        backend = _pages(settings.backend, operator.dag_id, outputs)
        names = (backend.identity(DatasetName(d["namespace"], d["name"])) for d in outputs)
        pages = (backend.columns_page(settings.web_url, name) for name in names if name)
        return next((page for page in pages if page), "")
    except Exception:
        log.debug("The page of the output's columns is not known.", exc_info=True)
        return ""


def _settings(operator: Any) -> Settings | None:
    """Give the settings that the task runs with; None if it has no lineage."""
    current = operator.lineage_try
    if not current.is_on:
        return None
    prepared = current.prepared
    settings: Settings = current.settings() if prepared is None else prepared.settings
    return settings


def _pages(name: str, dag_id: str, outputs: Iterable[dict[str, Any]] = ()) -> Backend:
    """Give what knows the pages of a backend.

    :param outputs: that pages are asked of, as events have them
    """
    from airflow_provider_sparklineage.event.backends import backend_of

    if name != BackendName.DATAHUB:
        return backend_of(name)
    from airflow_provider_sparklineage.datahub.pages import Pages
    from airflow_provider_sparklineage.hooks.datahub import conversion

    return Pages(conversion(), dag_id, outputs)


def _outputs(operator: Any) -> list[dict[str, Any]]:
    """Give the outputs whose columns are known, by name; without columns a page is empty.

    Until a try has any, and if it fails without, they are those of the last successful run.
    """
    current = operator.lineage_try
    written = current.collected["outputs"] if current.collected is not None else ()
    found = [d for d in written if "columnLineage" in (d.get("facets") or {})]
    if not found and current.prepared is not None:
        known = current.prepared.known.last.outputs
        found = [decode(encode(d)) for d in known if "schema" in d.facets]
    return sorted(found, key=lambda d: (d["name"], d["namespace"]))
