"""The event's parts as OpenLineage's classes: the one place that makes them, for Airflow's hooks.

Airflow redacts what an operator gives it: it goes through dicts by the names of their keys, and
would blank the lineage of a column called ``password``. Facets of this package hold no secret by
then (:func:`.steps.texts.masked`), so each is given to Airflow as an object that asks to be left
alone; that goes for all that is in it. Facets of the listener stay dicts, for Airflow's redactor to
see.

The classes of OpenLineage's client for facets would not do: not every version that this package
runs with has all of them, and making their objects takes longer than all that is before.

What is handed over was made for one backend (:func:`.pipeline.leaving`). A transport for another
one, next to it, needs the event as it was before that. So the object of the capture facet can carry
it, in a slot that is no field: nobody writes it into JSON, and Airflow's redactor does not look
there.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.serde import Serde
from openlineage.client.utils import RedactMixin

from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY
from airflow_provider_sparklineage.event.document import DOCUMENTATION_KEY
from airflow_provider_sparklineage.model.producer import producer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from openlineage.client.event_v2 import Dataset, RunEvent

    from airflow_provider_sparklineage.event.document import Event, Facets


class OpenLineageParts(NamedTuple):
    """What an operator gives to Airflow's OpenLineage provider."""

    inputs: list[InputDataset]
    outputs: list[OutputDataset]
    run_facets: dict[str, Any]
    job_facets: dict[str, Any]


def parts(event: Event) -> OpenLineageParts:
    """Give the parts of an event; what OpenLineage's client writes of them is the event again."""
    return OpenLineageParts(
        [
            InputDataset(
                d["namespace"],
                d["name"],
                facets=_facets(d["facets"]),
                inputFacets=_facets(d["inputFacets"]),
            )
            for d in event["inputs"]
        ],
        [
            OutputDataset(
                d["namespace"],
                d["name"],
                facets=_facets(d["facets"]),
                outputFacets=_facets(d["outputFacets"]),
            )
            for d in event["outputs"]
        ],
        _facets(event["run"]["facets"]),
        _facets(event["job"]["facets"]),
    )


# --- the neutral event ----------------------------------------------------------------------------


def with_neutral(run_facets: Facets, neutral: Event) -> Facets:
    """Let the capture facet among the facets of a run carry the event as no backend has changed it.

    :param run_facets: as :func:`parts` gives them, or as JSON has them
    :param neutral: with secrets hidden in facets of other producers; the job's ``documentation`` is
        the user's own, or absent where there is none
    :return: the same object if there is no capture facet, as of a job that has not run
    """
    capture = run_facets.get(CAPTURE_KEY)
    if capture is None:
        return run_facets
    carrying = _unredacted(vars(capture) if isinstance(capture, _Facet) else capture)
    carrying.neutral = neutral
    return {**run_facets, CAPTURE_KEY: carrying}


def neutral_of(run_event: RunEvent) -> Event | None:
    """Give an event that is about to be sent as no backend has changed it, as plain JSON.

    Run, job, time, and what Airflow adds (its facets, and datasets if the task has none) are those
    of the event; all else is as it was kept.

    :return: None if the event carries no such one: START, other tasks, other producers
    """
    facets = run_event.run.facets or {}
    neutral: Event | None = getattr(facets.get(CAPTURE_KEY), "neutral", None)
    if neutral is None:
        return None
    run, job, state = run_event.run, run_event.job, run_event.eventType
    own = neutral["job"]["facets"]
    others = {key: facet for key, facet in (job.facets or {}).items() if key != DOCUMENTATION_KEY}
    has_datasets = neutral["inputs"] or neutral["outputs"]
    return {
        "eventTime": run_event.eventTime,
        "eventType": str(state.value) if state else "OTHER",
        "producer": run_event.producer,
        "schemaURL": run_event.schemaURL,
        "run": {"runId": run.runId, "facets": _added(facets) | neutral["run"]["facets"]},
        "job": {"namespace": job.namespace, "name": job.name, "facets": _added(others) | own},
        "inputs": neutral["inputs"] if has_datasets else _as_json(run_event.inputs),
        "outputs": neutral["outputs"] if has_datasets else _as_json(run_event.outputs),
    }


def _added(facets: Mapping[str, Any]) -> Facets:
    """Give the facets that are not of this package, as JSON."""
    return {key: Serde.to_dict(facet) for key, facet in facets.items() if not _is_own(facet)}


def _is_own(facet: Any) -> bool:
    if isinstance(facet, dict):  # of an event that was JSON
        return facet.get("_producer") == producer()
    return isinstance(facet, _Facet)


def _as_json(datasets: Iterable[Dataset] | None) -> list[dict[str, Any]]:
    return [Serde.to_dict(dataset) for dataset in datasets or ()]


# --- facets ---------------------------------------------------------------------------------------


def _facets(facets: Facets) -> Facets:
    return {
        key: _unredacted(facet) if facet.get("_producer") == producer() else facet
        for key, facet in facets.items()
    }


def _unredacted(facet: Facets) -> Any:
    made = _class(tuple(facet))()
    vars(made).update(facet)
    return made


class _Facet(RedactMixin):
    """What facets are compared and printed by: all that is in them."""

    __slots__ = ("neutral",)  # no field, and not among the vars()
    neutral: Event
    """What :func:`with_neutral` lets it carry."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Facet) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SparkLineageFacet({vars(self)!r})"


@cache  # facets have few sets of keys
def _class(keys: tuple[str, ...]) -> type[Any]:
    """Make the class of facets with these keys: plain values in it survive Airflow's redactor.

    Keys may have spaces, of which attrs can write no code.
    """
    return attrs.make_class(
        "SparkLineageFacet",
        {key: attrs.field(init=False) for key in keys},
        bases=(_Facet,),
        class_body={"_skip_redact": list(keys)},
        init=False,
        repr=False,
        eq=False,
    )
