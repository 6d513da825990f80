"""What a task's job is described by in the backend: what its run did, then the user's own text."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.descriptions import Descriptions
from airflow_provider_sparklineage.event.document import DOCUMENTATION_KEY
from airflow_provider_sparklineage.event.pipeline import shows_descriptions
from airflow_provider_sparklineage.operators.masking import redacted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.event.document import Event, Facets
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


def own_facet(task: Any) -> Facets | None:
    """Give the job facet that Airflow would send of the user's own text; None if there is none.

    :param task: an operator, whose ``doc`` may begin with what its run did; None if it is not known
    """
    if task is None:
        return None
    from airflow.providers.openlineage.utils import utils
    from openlineage.client.facet_v2 import documentation_job
    from openlineage.client.serde import Serde

    texts = {name: getattr(task, name, None) for name in _OF_TASK}
    own: Any = SimpleNamespace(**texts | {"doc": vars(task).get("doc")})
    text, kind = utils.get_task_documentation(own)
    if not text:
        text, kind = utils.get_dag_documentation(getattr(task, "dag", None))
    if not text:
        return None
    facet = Serde.to_dict(documentation_job.DocumentationJobFacet(text, kind))
    safe: Facets = redacted({DOCUMENTATION_KEY: facet})[DOCUMENTATION_KEY]
    return safe


_BETWEEN = "\n\n—\n\n"
"""Marquez shows all of it as one paragraph."""


_OF_TASK = ("doc_md", "doc_json", "doc_yaml", "doc_rst")


def _texts(operator: Any, own: str | None) -> Iterator[str | None]:
    """Give what Airflow's OpenLineage provider looks at, in its order."""
    yield own
    for name in _OF_TASK:
        yield getattr(operator, name, None)
    dag = getattr(operator, "dag", None)
    for name in ("doc_md", "description"):
        yield getattr(dag, name, None)
