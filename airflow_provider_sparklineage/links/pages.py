"""The URLs of a task's pages in its lineage backend; empty where no page opens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.openlineage.plugins.macros import lineage_job_name, lineage_job_namespace

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.settings.resolution import Settings

log = logger(__name__)


def job_page(operator: Any, ti: Any) -> str:
    """Give the page of the task's OpenLineage job; never raises."""
    try:
        settings = _settings(operator)
        if settings is None or not settings.web_url:
            return ""
        from airflow_provider_sparklineage.event.backends import backend_of

        namespace = lineage_job_namespace()  # type: ignore[no-untyped-call]
        page = backend_of(settings.backend).job_page(
            settings.web_url, namespace, lineage_job_name(ti)
        )
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
        from airflow_provider_sparklineage.event.backends import backend_of

        backend = backend_of(settings.backend)
        names = (n for n in _outputs(operator) if output is None or n.name == output)
        pages = (backend.columns_page(settings.web_url, name) for name in names)
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


def _outputs(operator: Any) -> Iterator[DatasetName]:
    """Yield the outputs whose columns are known, by name; without columns a page is empty.

    Until a try has any, and if it fails without, they are those of the last successful run.
    """
    current = operator.lineage_try
    written = current.collected["outputs"] if current.collected is not None else ()
    names = [
        (d["name"], d["namespace"]) for d in written if "columnLineage" in (d.get("facets") or {})
    ]
    if not names and current.prepared is not None:
        known = current.prepared.known.last.outputs
        names = [(d.name, d.namespace) for d in known if "schema" in d.facets]
    for name, namespace in sorted(names):
        yield DatasetName(namespace, name)
