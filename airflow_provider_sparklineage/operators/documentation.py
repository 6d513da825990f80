"""What a task's job is described by in the backend: what its run did, then the user's own text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.descriptions import Descriptions
from airflow_provider_sparklineage.event.leaving import shows_descriptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.model.representation import Leaving


def of_job(operator: Any, own: str | None, event: Event, how: Leaving) -> str | None:
    """Describe the run that an event is of, in front of the text that Airflow would show.

    :param own: the operator's ``doc``
    :return: that, where the backend shows no such text
    """
    if not shows_descriptions(how):
        return own
    texts = [Descriptions(event).of_run(), next(filter(None, _texts(operator, own)), "")]
    return _BETWEEN.join(filter(None, texts))


_BETWEEN = "\n\n—\n\n"
"""Marquez shows all of it as one paragraph."""


def _texts(operator: Any, own: str | None) -> Iterator[str | None]:
    """Give what Airflow's OpenLineage provider looks at, in its order."""
    yield own
    for name in ("doc_md", "doc_json", "doc_yaml", "doc_rst"):
        yield getattr(operator, name, None)
    dag = getattr(operator, "dag", None)
    for name in ("doc_md", "description"):
        yield getattr(dag, name, None)
