"""An event that is too large, on its way to fitting."""

from __future__ import annotations

from collections import Counter
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event.capture_facet import CAPTURE_KEY, with_degradations
from airflow_provider_sparklineage.event.document import COLUMNS_KEY, replaced
from airflow_provider_sparklineage.event.steps.size.declaration import (
    NAMED,
    of_column_lineage,
    of_dropped,
    too_large,
)
from airflow_provider_sparklineage.event.steps.size.measured_event import BYTES, MeasuredEvent
from airflow_provider_sparklineage.event.steps.size.named import NamedColumns
from airflow_provider_sparklineage.event.steps.size.reductions import KINDS, everything
from airflow_provider_sparklineage.model.budget import UNLIMITED
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.event.steps.size.measured_event import Measure, Place
    from airflow_provider_sparklineage.model.budget import Budget
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.degradations import Degradation

_SIDES = {"inputs": "inputs that no column lineage names", "outputs": "outputs without lineage"}


class Fitting:
    """Dropping in progress; the capture facet is measured with all that it has to say by then.

    :param budget: when nothing is left, column lineage and facets go at once
    :param measure: of what the event may have so much
    """

    def __init__(
        self, event: Event, option: str, budget: Budget = UNLIMITED, measure: Measure = BYTES
    ) -> None:
        self._event = event
        self._option = option
        self._budget = budget
        self._measure = measure
        self._capture = self._known = event["run"]["facets"].get(CAPTURE_KEY)
        self._drops: Iterator[None] | None = None
        self._declared: dict[str, list[Degradation]] = {}
        """What went, by its kind, in the order in which kinds went."""
        self._unnamed: Counter[str] = Counter()
        """Columns of schemas that went, of each side."""
        self._bare: list[DatasetName] = []
        """Outputs whose column lineage went."""
        self._named: NamedColumns | None = None
        self._gone: list[Place] = []
        """Facets that went in the last step."""

    def within(self, limit: int) -> Event:
        """Give the event in so much, which is no more than the last time."""
        if self._drops is None:
            if self._measured.size <= limit:
                return self._event
            for place in self._measured.places(CAPTURE_KEY, group="run"):
                self._measured.reduce(place, everything)
            self._drops = self._dropping()
        for _ in chain((None,), self._drops):
            if self._fits(limit):
                break
        self._declare()
        kept = self._measured.event()
        if self._capture is None:
            return kept
        return replaced(kept, run_facets={**kept["run"]["facets"], CAPTURE_KEY: self._capture})

    @property
    def dropped(self) -> tuple[Degradation, ...]:
        """What went by now."""
        return tuple(chain.from_iterable(self._declared.values()))

    @cached_property
    def _measured(self) -> MeasuredEvent:
        return MeasuredEvent(self._event, self._measure)

    def _fits(self, limit: int) -> bool:
        if self._measured.size > limit:  # then there is no need to make the facet
            return False
        self._declare()
        declared = 0 if self._capture is None else self._measure.facet(CAPTURE_KEY, self._capture)
        return self._measured.size + declared <= limit

    def _declare(self) -> None:
        """Make the sentences of which there may be thousands in between, and the facet."""
        for side, count in self._unnamed.items():
            what = f"{count} columns of {_SIDES[side]}"
            self._declared[side] = [of_dropped(what, self._option)]
        if self._bare:
            self._declared[COLUMNS_KEY] = of_column_lineage(self._bare, self._option)
        if self._gone:
            self._declared["facets"] = [self._without_facets()]
        if self._known is not None:
            self._capture = with_degradations(self._known, self.dropped, in_front=True)

    def _dropping(self) -> Iterator[None]:
        """Drop one thing after the other, each when it is asked for."""
        yield from self._columns("inputs")
        yield from self._details()
        yield from self._columns("inputs")  # those that INDIRECT edges named
        if self._measure.of_text:
            yield from self._witnesses()
        yield from self._columns("outputs")
        yield from self._column_lineage()
        yield from self._facets()
        what = "Even the names of the datasets, and the list of what is missing, are more"
        self._declared["names"] = [too_large(what, self._option)]

    def _columns(self, side: str) -> Iterator[None]:
        for place in self._measured.largest_first(self._measured.places("schema", group=side)):
            self._leave_named(place)
            yield

    def _leave_named(self, place: Place) -> None:
        """Leave only columns that column lineage names in a schema."""
        name = self._measured.dataset(place)
        if name is None or self._measured.facet(place) is None:
            return
        if gone := self._measured.reduce(place, partial(self._names.left_of, name)):
            self._declared.setdefault(place.group, [])
            self._unnamed[place.group] += gone

    @property
    def _names(self) -> NamedColumns:
        if self._named is None:
            places = self._measured.places(COLUMNS_KEY, group="outputs")
            names = ((place, self._measured.dataset(place)) for place in places)
            self._named = NamedColumns((p, n, self._measured.facet(p)) for p, n in names if n)
        return self._named

    def _details(self) -> Iterator[None]:
        for kind in KINDS:
            if self._budget.is_spent():
                return
            if kind.is_text and not self._measure.of_text:
                continue
            places = self._measured.places(*kind.keys)
            count = sum(self._measured.reduce(place, kind.reduced) for place in places)
            if count:
                self._named = None
                self._declared[kind.what] = [of_dropped(f"{count} {kind.what}", self._option)]
            yield

    def _witnesses(self) -> Iterator[None]:
        if self._known is not None and (datasets := self._known.get("datasets")):
            self._known = {k: v for k, v in self._known.items() if k != "datasets"}
            what = f"{len(datasets)} entries on who saw a dataset"
            self._declared["witnesses"] = [of_dropped(what, self._option)]
            yield

    def _column_lineage(self) -> Iterator[None]:
        names = self._names
        schemas: dict[DatasetName | None, list[Place]] = {}
        for place in self._measured.places("schema"):
            schemas.setdefault(self._measured.dataset(place), []).append(place)
        places = self._measured.places(COLUMNS_KEY, group="outputs")
        for place in self._measured.largest_first(places):
            name = self._measured.dataset(place)
            if name is None or not self._measured.reduce(place, everything):
                continue
            self._declared.setdefault(COLUMNS_KEY, [])
            self._bare.append(name)
            yield
            for dataset in names.forget(place):
                for schema in schemas.get(dataset, ()):
                    self._leave_named(schema)
            yield

    def _facets(self) -> Iterator[None]:
        for place in self._measured.largest_first(self._measured.places()):
            if self._measured.reduce(place, everything):
                self._declared.setdefault("facets", [])
                self._gone.append(place)
                yield

    def _without_facets(self) -> Degradation:
        named = some(self._gone, NAMED, self._called)
        return too_large(f"Facets were left out ({named}): they are more", self._option)

    def _called(self, place: Place) -> str:
        name = self._measured.dataset(place)
        return f"{place.key} of {name}" if name else place.key
