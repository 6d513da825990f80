"""An event that is too large, on its way to fitting."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY, with_degradations
from airflow_provider_sparklineage.event.steps.size.declaration import of_dropped, too_large
from airflow_provider_sparklineage.event.steps.size.measured_event import size_of
from airflow_provider_sparklineage.event.steps.size.reductions import KINDS, everything
from airflow_provider_sparklineage.model.truncation import some

if TYPE_CHECKING:
    from airflow_provider_sparklineage.event.steps.size.measured_event import MeasuredEvent
    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.model.degradations import Degradation

_NAMED = 5
"""Facets of the last step that are named; the others are counted."""


class Fitting:
    """Dropping in progress; the capture facet is measured with all that it has to say by then."""

    def __init__(
        self, event: MeasuredEvent, capture: dict[str, Any] | None, max_bytes: int, option: str
    ) -> None:
        self.dropped: list[Degradation] = []
        self.capture = capture
        self._known = capture
        self._event = event
        self._max_bytes = max_bytes
        self._option = option
        for place in event.places(CAPTURE_KEY, group="run"):
            event.reduce(place, everything)

    def drop(self, budget: Budget) -> None:
        """Drop kind by kind, until the rest fits."""
        details = partial(self._details, budget)
        for drop in (details, self._witnesses, self._column_lineage, self._facets):
            if self._fits():
                return
            drop()
        if not self._fits():
            what = "Even the names of the datasets, and the list of what is missing, are more"
            self.dropped.append(too_large(what, self._option))
            self._declare()

    def _fits(self) -> bool:
        if self._event.bytes > self._max_bytes:  # then there is no need to make the facet
            return False
        self._declare()
        declared = 0 if self.capture is None else size_of({CAPTURE_KEY: self.capture})
        return self._event.bytes + declared <= self._max_bytes

    def _declare(self) -> None:
        if self._known is not None:
            self.capture = with_degradations(self._known, self.dropped, in_front=True)

    def _details(self, budget: Budget) -> None:
        for kind in KINDS:
            if self._fits() or budget.is_spent():
                return
            count = sum(
                self._event.reduce(place, kind.reduced) for place in self._event.places(*kind.keys)
            )
            if count:
                self.dropped.append(of_dropped(f"{count} {kind.what}", self._option))

    def _witnesses(self) -> None:
        if self._known is not None and (datasets := self._known.get("datasets")):
            self._known = {k: v for k, v in self._known.items() if k != "datasets"}
            what = f"{len(datasets)} entries on who saw a dataset"
            self.dropped.append(of_dropped(what, self._option))

    def _column_lineage(self) -> None:
        places = self._event.places("columnLineage", group="outputs")
        for place in self._event.largest_first(places):
            if self._fits():
                return
            self._event.reduce(place, everything)
            name = self._event.dataset(place)
            self.dropped.append(of_dropped(f"The column lineage of {name}", self._option, name))

    def _facets(self) -> None:
        before, named = len(self.dropped), list[str]()
        places = self._event.largest_first(self._event.places())
        for place in places:
            if named and self._fits():
                return
            self._event.reduce(place, everything)
            name = self._event.dataset(place)
            named.append(f"{place.key} of {name}" if name else place.key)
            what = f"Facets were left out ({some(named, _NAMED)}): they are more"
            self.dropped[before:] = [too_large(what, self._option)]
