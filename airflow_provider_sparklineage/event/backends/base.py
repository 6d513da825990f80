"""What this package asks of a lineage backend, and how to add one.

OpenLineage specifies what an event is, and not what a backend makes of it. Each backend refuses
some events, or takes them and shows less than is in them. A backend here knows that of one product,
and nothing else: events are sent by Airflow's OpenLineage provider, to where its own section says.

To add one:

1. a module of its own in this package with a class that extends :class:`Backend`; a method that is
   left out does what is right for a backend that takes whatever the specification allows,
2. an instance of it in :data:`~airflow_provider_sparklineage.event.backends.BACKENDS`, and its name
   in :class:`~airflow_provider_sparklineage.settings.option_kinds.BackendName` in the same order,
   so that ``[sparklineage] backend`` may name it,
3. its row in ``docs/backends.md``, with what was measured: a repair needs a reason that can be
   tried again.

All of it is pure: no backend is asked anything on the way of an event, which is plain JSON by then
(:mod:`..document`). What is kept of a try is neutral; what a backend needs is done with the event
that is sent to it (:func:`..pipeline.adapted`): ``identity`` and ``text`` are asked by
:mod:`..steps.rename`, and ``repaired`` is a step itself. Repairs are idempotent, keep datasets
apart that are apart, and give the same name to a dataset in every event, because names are what
joins the lineage of one task to the next. Pages are asked for by the names that ``identity`` gives.
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
    """In the configuration."""
    title: ClassVar[str]
    """For people."""
    versions_by_schema: ClassVar[bool] = False
    """Whether an output is one more version of its dataset for each schema, no schema being one,
    with which a run says it."""
    shows_descriptions: ClassVar[bool] = False
    """Whether its pages begin with a text of the job or dataset, and show one of each column."""

    pays_per_column: ClassVar[bool] = False
    """Whether it takes time for each column and each edge of an event, so that many of them are
    more than a client waits for."""

    # --- events -----------------------------------------------------------------------------------

    def identity(self, dataset: DatasetName) -> DatasetName | None:
        """Give the name under which the backend can hold a dataset; None if there is none.

        A name that is given back is given back for itself.
        """
        return dataset

    def text(self, text: str) -> str:
        """Give a column's name, or a description, as the backend can hold it."""
        return text

    def repaired(self, event: Event) -> Event:
        """Change what the backend would choke on.

        What is lost by it is declared in the event, by
        :func:`~airflow_provider_sparklineage.event.capture_facet.declared`.

        :param event: with names that :meth:`identity` has given; a new one is made of it
        :return: the same object if there is nothing to change
        """
        return event

    # --- pages ------------------------------------------------------------------------------------
    # Of the backend's web user interface at ``web_url``; None where it has none that opens.

    def job_page(self, web_url: str, namespace: str, name: str) -> str | None:
        """Link to the page of a job, on which its latest run is shown."""
        return None

    def dataset_page(self, web_url: str, dataset: DatasetName) -> str | None:
        """Link to the page of a dataset."""
        return None

    def columns_page(
        self, web_url: str, dataset: DatasetName, column: str | None = None
    ) -> str | None:
        """Link to the page on which the column lineage of an output is drawn.

        :param column: the column to highlight; None for the full dataset
        """
        return None
