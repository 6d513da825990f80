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
from openlineage.client.utils import RedactMixin

from airflow_provider_sparklineage.event.model import CAPTURE_KEY
from airflow_provider_sparklineage.model.producer import producer

if TYPE_CHECKING:
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
