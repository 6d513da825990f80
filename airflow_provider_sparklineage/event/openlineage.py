"""The event's parts as OpenLineage's classes: the one place that makes them, for Airflow's hooks.

Airflow redacts the facets that an operator gives it: it looks at the keys of dicts, and would blank
the lineage of a column called ``password``. The facets of this package contain no secret by then
(:func:`.steps.texts.masked`), so each becomes an object that Airflow's redactor skips with all that
is in it. The facets of the listener stay dicts, so that the redactor does its work on them.

The classes of OpenLineage's client for facets are not used: some of the client's versions with
which this package runs lack some of them, and making their objects takes longer than all previous
work on the event.

The event that an operator gives to Airflow is adapted to one backend
(:func:`.pipeline.ready_to_send`). A second transport, for another product, needs the event as it
was before. So the object of a run facet of this package can carry the neutral event, in a slot that
is not a field: no encoder writes it into JSON, and Airflow's redactor does not look there.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.utils import RedactMixin

from airflow_provider_sparklineage.event.model import CARRIERS
from airflow_provider_sparklineage.model.producer import producer

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.document import Event, Facets


class OpenLineageParts(NamedTuple):
    """The datasets and facets that an operator gives to Airflow's OpenLineage provider."""

    inputs: list[InputDataset]
    outputs: list[OutputDataset]
    run_facets: dict[str, Any]
    job_facets: dict[str, Any]


def parts(event: Event) -> OpenLineageParts:
    """Give the parts of an event; OpenLineage's client writes them as the JSON of the event."""

    def datasets(side: str, kind: type[Any], own: str) -> list[Any]:
        return [
            kind(d["namespace"], d["name"], facets=_facets(d["facets"]), **{own: _facets(d[own])})
            for d in event[side]
        ]

    return OpenLineageParts(
        datasets("inputs", InputDataset, "inputFacets"),
        datasets("outputs", OutputDataset, "outputFacets"),
        _facets(event["run"]["facets"]),
        _facets(event["job"]["facets"]),
    )


# --- the neutral event ----------------------------------------------------------------------------


def with_neutral(run_facets: Facets, neutral: Event) -> Facets:
    """Let one of a run's facets (:data:`.model.CARRIERS`) carry the neutral event.

    :param run_facets: the facets as :func:`parts` gives them, or as JSON has them
    :param neutral: the event before its adaptation to a backend, with secrets hidden in facets of
        other producers; its job's ``documentation`` is the user's own, or absent if there is none
    :return: new facets; the same object if there is no such facet, as before the job has run
    """
    key = next((key for key in CARRIERS if key in run_facets), None)
    if key is None:
        return run_facets
    facet = run_facets[key]
    carrying = _unredacted(vars(facet) if isinstance(facet, _Facet) else facet)
    carrying.neutral = neutral
    return {**run_facets, key: carrying}


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
    """A facet as an object; it is compared and printed by its keys and values."""

    __slots__ = ("neutral",)  # no field, and not among the vars()
    neutral: Event
    """The event that it carries (:func:`with_neutral`)."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Facet) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SparkLineageFacet({vars(self)!r})"


@cache  # facets have few sets of keys
def _class(keys: tuple[str, ...]) -> type[Any]:
    """Make the class of facets with these keys, whose values Airflow's redactor skips.

    The class has none of the methods that attrs generates as code, because keys may have spaces.
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
