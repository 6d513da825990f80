"""An event that is too large, on its way to fitting."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY, with_degradations
from airflow_provider_sparklineage.event.document import replaced
from airflow_provider_sparklineage.event.steps.size.declaration import of_dropped, too_large
from airflow_provider_sparklineage.event.steps.size.measured_event import MeasuredEvent, size_of
from airflow_provider_sparklineage.event.steps.size.reductions import KINDS, everything

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.event.steps.size.measured_event import Place
    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.model.degradations import Degradation

_NAMED = 5
"""Facets of the last step that are named; the others are counted."""


class Fitting:
    """Dropping in progress; the capture facet is measured with all that it has to say by then.

    :param budget: when nothing is left, column lineage and facets go at once
    """

    def __init__(self, event: Event, option: str, budget: Budget) -> None:
        self.dropped: list[Degradation] = []
        self._event = event
        self._option = option
        self._capture = self._known = event["run"]["facets"].get(CAPTURE_KEY)
        self._drops: Iterator[bool] | None = None
        self._gone: list[Place] = []
        """Facets that went in the last step."""
        self._sentence = 0
        """Where the one on them stands."""
        self._budget = budget

    def within(self, max_bytes: int) -> Event:
        """Give the event in so many bytes, which are no more than the last time."""
        if self._drops is None:
            if self._measured.bytes <= max_bytes:
                return self._event
            for place in self._measured.places(CAPTURE_KEY, group="run"):
                self._measured.reduce(place, everything)
            self._drops = self._dropping()
        while not self._fits(max_bytes) and next(self._drops, False):
            pass
        self._declare()
        kept = self._measured.event()
        if self._capture is None:
            return kept
        return replaced(kept, run_facets={**kept["run"]["facets"], CAPTURE_KEY: self._capture})

    @cached_property
    def _measured(self) -> MeasuredEvent:
        return MeasuredEvent(self._event)

    def _fits(self, max_bytes: int) -> bool:
        if self._measured.bytes > max_bytes:  # then there is no need to make the facet
            return False
        self._declare()
        declared = 0 if self._capture is None else size_of({CAPTURE_KEY: self._capture})
        return self._measured.bytes + declared <= max_bytes

    def _declare(self) -> None:
        if self._gone:
            self.dropped[self._sentence] = self._without_facets()
        if self._known is not None:
            self._capture = with_degradations(self._known, self.dropped, in_front=True)

    def _dropping(self) -> Iterator[bool]:
        """Drop one thing after the other, each when it is asked for."""
        for drops in (self._details, self._witnesses, self._column_lineage, self._facets):
            for _ in drops():
                yield True
        what = "Even the names of the datasets, and the list of what is missing, are more"
        self.dropped.append(too_large(what, self._option))

    def _details(self) -> Iterator[None]:
        for kind in KINDS:
            if self._budget.is_spent():
                return
            places = self._measured.places(*kind.keys)
            count = sum(self._measured.reduce(place, kind.reduced) for place in places)
            if count:
                self.dropped.append(of_dropped(f"{count} {kind.what}", self._option))
            yield

    def _witnesses(self) -> Iterator[None]:
        if self._known is not None and (datasets := self._known.get("datasets")):
            self._known = {k: v for k, v in self._known.items() if k != "datasets"}
            what = f"{len(datasets)} entries on who saw a dataset"
            self.dropped.append(of_dropped(what, self._option))
            yield

    def _column_lineage(self) -> Iterator[None]:
        places = self._measured.places("columnLineage", group="outputs")
        for place in self._measured.largest_first(places):
            self._measured.reduce(place, everything)
            name = self._measured.dataset(place)
            self.dropped.append(of_dropped(f"The column lineage of {name}", self._option, name))
            yield

    def _facets(self) -> Iterator[None]:
        """There can be thousands of them: their one sentence is made when it is declared."""
        for place in self._measured.largest_first(self._measured.places()):
            self._measured.reduce(place, everything)
            self._gone.append(place)
            if len(self._gone) == 1:
                self._sentence = len(self.dropped)
                self.dropped.append(self._without_facets())
            yield

    def _without_facets(self) -> Degradation:
        named = ", ".join(map(self._called, self._gone[:_NAMED]))
        more = len(self._gone) - _NAMED
        listed = f"{named} and {more} more" if more > 0 else named
        return too_large(f"Facets were left out ({listed}): they are more", self._option)

    def _called(self, place: Place) -> str:
        name = self._measured.dataset(place)
        return f"{place.key} of {name}" if name else place.key
