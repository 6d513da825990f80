"""How large an event may be, and what it goes without when it would be larger.

Consumers refuse large events (one at 5 MB), and then all of the event is lost. So detail goes, kind
by kind and all of a kind at once, until the rest fits:

1. descriptions of column lineage,
2. transformations of INDIRECT column lineage: the edges stay, and stay INDIRECT,
3. statistics,
4. comments of schemas,
5. INDIRECT column lineage,
6. column lineage of whole outputs, the largest first,
7. other facets, the largest first.

Each kind that went is a degradation that says how much of it there was; of the sixth, each output
is named. What always stays: the names of the datasets, and the facet that says what is missing
(``sparkLineage_capture``), which says what was dropped in front of all else.

The policy is the same for whoever has a bound: an event on its way to a backend, one that is kept
in a database, one for a server that takes less. What Airflow adds to a task's event, some KB of its
own facets, is not in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import attrs

from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY, with_dropped
from airflow_provider_sparklineage.event.event_parts import OpenLineageParts
from airflow_provider_sparklineage.event.size.measured_parts import MeasuredParts
from airflow_provider_sparklineage.event.size.measuring import size_of
from airflow_provider_sparklineage.event.size.reductions import STEPS, whole
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent
    from openlineage.client.facet_v2 import RunFacet

    from airflow_provider_sparklineage.model.datasets import DatasetName

_NAMED = 5
"""Facets of the last step that are named; the others are counted."""


def fitted_event(
    event: RunEvent, max_bytes: int, option: str
) -> tuple[RunEvent, tuple[Degradation, ...]]:
    """Drop what makes an event larger than it may be.

    :param event: with facets as :mod:`.facets` makes them; it is kept as it is
    :param max_bytes: of the event as OpenLineage's client writes it in JSON
    :param option: what a person would change to get more, as a sentence calls it:
        ``[sparklineage] max_event_bytes``
    :return: the event, which is the same object if it fits, and what was dropped; that is also in
        its ``sparkLineage_capture`` facet, if it has one
    """
    said = OpenLineageParts(
        event.inputs or [], event.outputs or [], event.run.facets or {}, event.job.facets or {}
    )
    kept, dropped = fitted(said, max_bytes, option)
    if kept is said:
        return event, ()
    return attrs.evolve(
        event,
        inputs=kept.inputs,
        outputs=kept.outputs,
        run=attrs.evolve(event.run, facets=kept.run_facets),
        job=attrs.evolve(event.job, facets=kept.job_facets),
    ), dropped


def fitted(
    said: OpenLineageParts, max_bytes: int, option: str
) -> tuple[OpenLineageParts, tuple[Degradation, ...]]:
    """Drop what makes the parts of an event larger than they may be; see :func:`fitted_event`."""
    event = MeasuredParts(said)
    if event.bytes <= max_bytes:
        return said, ()
    fitting = _Fitting(event, said.run_facets.get(CAPTURE_KEY), max_bytes, option)
    fitting.drop()
    kept = event.parts()
    if fitting.capture is not None:
        kept = replace(kept, run_facets={**kept.run_facets, CAPTURE_KEY: fitting.capture})
    return kept, tuple(fitting.dropped)


class _Fitting:
    """Dropping in progress; the capture facet is measured with all that it has to say by then."""

    def __init__(
        self, event: MeasuredParts, capture: RunFacet | None, max_bytes: int, option: str
    ) -> None:
        self.dropped: list[Degradation] = []
        self.capture = capture
        self._told = capture
        self._event = event
        self._max_bytes = max_bytes
        self._option = option
        for place in event.places(CAPTURE_KEY, group="run_facets"):
            event.reduce(place, whole)

    def drop(self) -> None:
        """Drop kind by kind, until the rest fits."""
        for step in (self._details, self._column_lineage, self._facets):
            if self._fits():
                return
            step()
        if not self._fits():
            what = "Even the names of the datasets, and what is said to be missing, are more"
            self._note(what)
            self._tell()

    def _fits(self) -> bool:
        if self._event.bytes > self._max_bytes:  # then there is no need to make the facet
            return False
        self._tell()
        told = 0 if self.capture is None else size_of({CAPTURE_KEY: self.capture})
        return self._event.bytes + told <= self._max_bytes

    def _tell(self) -> None:
        if self._told is not None:
            self.capture = with_dropped(self._told, self.dropped)

    def _degradation(self, what: str, dataset: DatasetName | None = None) -> Degradation:
        return Degradation(
            DegradationCode.DETAIL_DROPPED,
            f"{what} than {self._option} allows; raise it if what receives the event takes more.",
            dataset,
        )

    def _note(self, what: str, dataset: DatasetName | None = None) -> None:
        self.dropped.append(self._degradation(what, dataset))

    def _details(self) -> None:
        for step in STEPS:
            if self._fits():
                return
            count = sum(
                self._event.reduce(place, step.reduced) for place in self._event.places(*step.keys)
            )
            if count:
                self.dropped.append(
                    self._degradation(f"{count} {step.what} were left out: they are more")
                )

    def _column_lineage(self) -> None:
        places = self._event.places("columnLineage", group="outputs")
        for place in self._event.largest_first(places):
            if self._fits():
                return
            self._event.reduce(place, whole)
            name = self._event.dataset(place)
            self.dropped.append(
                self._degradation(f"The column lineage of {name} was left out: it is more", name)
            )

    def _facets(self) -> None:
        before, gone = list(self.dropped), list[str]()
        for place in self._event.largest_first(self._event.places()):
            if gone and self._fits():
                return
            self._event.reduce(place, whole)
            name = self._event.dataset(place)
            gone.append(f"{place.key} of {name}" if name else place.key)
            more = f" and {len(gone) - _NAMED} more" if len(gone) > _NAMED else ""
            named = f"Facets were left out ({', '.join(gone[:_NAMED])}{more}): they are more"
            self.dropped[:] = [*before, self._degradation(named)]
