"""The URLs of DataHub's pages: of a task, of a dataset, and of an output's columns.

A URL has the form that DataHub's web application (datahub-web-react) uses: a route for the kind of
entity, the entity's URN, and the name of a tab (``PageRoutes``, ``getPathName`` of
``DataJobEntity`` and ``DatasetEntity``). The SDK makes the same URLs
(``datahub.ingestion.graph.links``), except for a ``%`` in a URN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_sparklineage.datahub.subject import Subject
from airflow_provider_sparklineage.event.backends.datahub import DataHub
from airflow_provider_sparklineage.model.producer import producer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.datahub.configuration import Conversion
    from airflow_provider_sparklineage.model.datasets import DatasetName


_TASK, _DATASET = "tasks", "dataset"
_JOB = quote("urn:li:dataJob:(", safe="")


class Pages(DataHub):
    """The pages of a task and of its datasets.

    The URLs need more than names: the name of a dataset in DataHub also depends on its facets,
    and the name of a job can be cut into DAG and task only if the DAG's name is known.

    :param how: the settings by which the transport converts events
    :param dag_id: the id of the task's DAG
    :param datasets: the datasets whose pages are linked to, as JSON of events, with their facets
    """

    def __init__(
        self, how: Conversion, dag_id: str, datasets: Iterable[Mapping[str, Any]] = ()
    ) -> None:
        self._how = how
        self._dag_id = dag_id
        self._datasets = Subject({"run": {}, "job": {}, "outputs": list(datasets)}, how)

    def job_page(self, web_url: str, namespace: str, name: str) -> str:
        """Give the URL of the page with the lineage of a task.

        :param web_url: the URL of DataHub's web application
        :param namespace: namespace of the task's OpenLineage job
        :param name: name of that job
        """
        event = {
            "producer": producer(),
            "run": {"facets": {"parent": {"job": {"namespace": namespace, "name": self._dag_id}}}},
            "job": {"namespace": namespace, "name": name},
        }
        return _page(web_url, _TASK, Subject(event, self._how).job)

    def dataset_page(self, web_url: str, dataset: DatasetName) -> str:
        """Give the URL of the page with the lineage of a dataset.

        :param web_url: the URL of DataHub's web application
        """
        return _page(web_url, _DATASET, self._datasets.dataset(dataset))

    def columns_page(
        self,
        web_url: str,
        dataset: DatasetName,
        column: str | None = None,  # noqa: ARG002
    ) -> str:
        """Give the URL of the graph around a dataset, with columns.

        :param web_url: the URL of DataHub's web application
        :param column: not used, because no URL of DataHub highlights a column
        """
        return f"{self.dataset_page(web_url, dataset)}?is_lineage_mode=true&show_columns=true"


def web_url_of(link: str) -> str:
    """Give the URL of DataHub's web application from a link to a task; empty for any other link."""
    web_url, route, _ = link.partition(f"/{_TASK}/{_JOB}")
    return web_url if route else ""


def _page(web_url: str, route: str, urn: str) -> str:
    # The web application decodes the path of a page twice; it writes a % as this placeholder.
    held = urn.replace("%", "{{encoded_percent}}")
    return f"{web_url.rstrip('/')}/{route}/{quote(held, safe='')}/Lineage"
