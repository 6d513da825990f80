"""The interface of a lineage backend in this package, and how to add a backend.

OpenLineage specifies events, but not how a backend handles them. Each backend refuses some events,
or takes them and shows only a part of their content. A class here knows these limits of one
product, and nothing else: Airflow's OpenLineage provider sends the events, to the transport of its
own section of Airflow's configuration.

To add a backend:

1. write a module in this package with a class that extends :class:`Backend`; the methods of
   :class:`Backend` suit a backend that takes all that the specification allows, so override only
   those that differ,
2. add an instance to :data:`~airflow_provider_sparklineage.event.backends.BACKENDS`, and its name
   to :class:`~airflow_provider_sparklineage.settings.option_kinds.BackendName` in the same order,
   so that ``[sparklineage] backend`` may name it,
3. add a row to ``docs/backends.md`` with your measurements: each repair needs a reason that
   somebody else can test again.

The methods are pure: they send no request, and take and give events as plain JSON
(:mod:`..document`). The event in XCom and archive is not changed for a backend; only the event that
is sent is (:func:`..pipeline.adapted`): :mod:`..steps.rename` calls ``identity`` and ``text``, and
``repaired`` is a step of its own. Repairs are idempotent. They never give two datasets one name,
and they give a dataset the same name in every event, because names join the lineage of one task to
that of the next. The methods for pages take the names that ``identity`` gives.
"""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.model.datasets import DatasetName


class Backend(ABC):
    """A lineage backend."""

    name: ClassVar[str]
    """Its name in the configuration."""
    title: ClassVar[str]
    """Its name in messages and on pages."""
    versions_by_schema: ClassVar[bool] = False
    """Whether the events of one run make a version of an output for each schema that they give to
    it; an event without a schema of the output makes a version, too."""
    shows_descriptions: ClassVar[bool] = False
    """Whether its pages begin with the description of the job or dataset, and show a description of
    each column."""

    pays_per_column: ClassVar[bool] = False
    """Whether it needs time for each column and each edge of an event, so that a client's time
    limit ends before the backend has stored an event with many columns."""

    pages_show: ClassVar[str] = ""
    """The runs that its pages on jobs and datasets show first, in words; empty if they show all."""

    # --- events -----------------------------------------------------------------------------------

    def identity(self, dataset: DatasetName) -> DatasetName | None:
        """Give the name under which the backend can hold a dataset; None if there is none.

        The method is idempotent: for a name that it has given, it gives the same name.
        """
        return dataset

    def text(self, text: str) -> str:
        """Give a column's name, or a description, as the backend can hold it."""
        return text

    def repaired(self, event: Event) -> Event:
        """Change the parts of an event that the backend cannot take.

        A degradation in the event reports each loss
        (:func:`~airflow_provider_sparklineage.event.facets.declared`).

        :param event: its names are those that :meth:`identity` gives; it is not changed itself
        :return: a new event; the same object if there is nothing to change
        """
        return event

    # --- pages ------------------------------------------------------------------------------------
    def job_page(self, web_url: str, namespace: str, name: str) -> str | None:
        """Give the URL of a job's page, which shows its latest run.

        :param web_url: the URL of the backend's web user interface
        :return: None if no page can be opened
        """
        return None

    def dataset_page(self, web_url: str, dataset: DatasetName) -> str | None:
        """Give the URL of a dataset's page.

        :param web_url: the URL of the backend's web user interface
        :return: None if no page can be opened
        """
        return None

    def columns_page(
        self, web_url: str, dataset: DatasetName, column: str | None = None
    ) -> str | None:
        """Give the URL of the page that draws the column lineage of an output.

        :param web_url: the URL of the backend's web user interface
        :param column: the column to highlight; None to highlight none
        :return: None if no page can be opened
        """
        return None
