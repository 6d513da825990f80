"""What a task's job is described by in the backend: what its run did, then the user's own text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.descriptions import Descriptions
from airflow_provider_sparklineage.event.leaving import shows_descriptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.model.representation import Leaving


def of_run(event: Event, how: Leaving) -> str:
    """Describe the run that an event is of; empty where the backend shows no such text."""
    return Descriptions(event).of_run() if shows_descriptions(how) else ""


def of_job(operator: Any, own: str | None, run: str) -> str | None:
    """Put the text of the job's run in front of the one that Airflow would show.

    :param own: the operator's ``doc``
    :return: that, where there is no text of the run
    """
    if not run:
        return own
    texts = [run, next(filter(None, _texts(operator, own)), "")]
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
