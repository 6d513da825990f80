"""The URLs of a task's pages in its lineage backend; empty where no page opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.openlineage.plugins.macros import lineage_job_name, lineage_job_namespace
from msgspec.json import decode, encode

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.settings.option_kinds import BackendName

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.event.backends.base import Backend
    from airflow_provider_sparklineage.settings.resolution import Settings

log = logger(__name__)


def job_page(operator: Any, ti: Any) -> str:
    """Give the page of the task's OpenLineage job; never raises."""
    try:
        settings = _settings(operator)
        if settings is None or not settings.web_url:
            return ""
        namespace = lineage_job_namespace()  # type: ignore[no-untyped-call]
        backend = _pages(settings.backend, ti.dag_id)
        page = backend.job_page(settings.web_url, namespace, lineage_job_name(ti))
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
