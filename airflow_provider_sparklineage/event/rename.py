"""Names as a lineage backend can hold them, in all that has a name or points at one.

Policy, case by case:

- A dataset whose name is given another goes by that one wherever it is mentioned, and it is said.
- A dataset that can have no name is left out, with what points at it, and it is said.
- Of two datasets of one side that would have the same name, the one that had it before keeps it,
  and the other is left out, and it is said: one would be taken for the other.
- Texts (names of columns, descriptions) are changed without a word: only what cannot be shown goes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.lineage.columns import Column, ColumnLineage, unite_into
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_sparklineage.lineage.columns import Edges, Transformation
    from airflow_provider_sparklineage.lineage.dataset import LineageDataset, TaskLineage
    from airflow_provider_sparklineage.model.datasets import DatasetName


def with_backend_names(
    lineage: TaskLineage,
    identity: Callable[[DatasetName], DatasetName | None],
    text: Callable[[str], str],
) -> TaskLineage:
    """Give a task's lineage with names and texts that a backend can hold.

    :param identity: the name of a dataset; None if it can have none. Of such a name, itself.
    :param text: a name of a column, or a description
    :return: the same object if nothing changes
    """
    rewriting = _Renaming(cache(identity), cache(text))
    inputs = rewriting.side(lineage.inputs)
    outputs = rewriting.side(lineage.outputs)
    before = (*lineage.inputs, *lineage.outputs)
    after = (*inputs, *outputs)
    if len(before) == len(after) and all(a is b for a, b in zip(before, after, strict=True)):
        return lineage
    degradations = (*lineage.degradations, *rewriting.notes)
    return replace(lineage, inputs=inputs, outputs=outputs, degradations=degradations)


class _Renaming:
    def __init__(
        self,
        identity: Callable[[DatasetName], DatasetName | None],
        text: Callable[[str], str],
    ) -> None:
        self._identity = identity
        self._text = text
        self._noted: dict[tuple[DatasetName, str], Degradation] = {}

    @property
    def notes(self) -> tuple[Degradation, ...]:
        return tuple(self._noted.values())

    def side(self, datasets: tuple[LineageDataset, ...]) -> tuple[LineageDataset, ...]:
        taken = {d.name for d in datasets if self._identity(d.name) == d.name}
        kept = []
        for dataset in datasets:
            name = self._identity(dataset.name)
            if name is None:
                self._note(dataset.name, "It was left out.")
                continue
            if name != dataset.name:
                if name in taken:
                    self._note(dataset.name, f"It was left out, for {name} is another dataset.")
                    continue
                self._note(dataset.name, f"It is called {name}.")
                taken.add(name)
            kept.append(self._dataset(dataset, name))
        return tuple(kept)

    def _note(self, dataset: DatasetName, what: str) -> None:
        message = (
            f"The lineage backend cannot hold a dataset of the namespace {dataset.namespace!r} and "
            f"the name {_short(dataset.name)!r}. {what}"
        )
        self._noted[dataset, what] = Degradation(DegradationCode.BACKEND_REPAIRED, message, dataset)

    def _dataset(self, dataset: LineageDataset, name: DatasetName) -> LineageDataset:
        columns = self._columns(dataset.columns) if dataset.columns else dataset.columns
        sources = self._sources(dataset.sources)
        is_same = name == dataset.name and columns is dataset.columns and sources == dataset.sources
        return dataset if is_same else replace(dataset, name=name, columns=columns, sources=sources)

    def _sources(self, sources: Iterable[DatasetName] | None) -> frozenset[DatasetName] | None:
        if sources is None:
            return None
        return frozenset(name for s in sources if (name := self._identity(s)) is not None)

    def _columns(self, said: ColumnLineage) -> ColumnLineage:
        every = (said.dataset, *said.fields.values())
        columns = {column for edges in every for column in edges}
        renamed = {column: self._column(column) for column in columns}
        transformations = {t for edges in every for ts in edges.values() for t in ts}
        told = {t: t._replace(description=self._text(t.description)) for t in transformations}
        names = {name: self._text(name) for name in said.fields}
        if all(a == b for renames in (renamed, told, names) for a, b in renames.items()):
            return said

        def edges(given: Edges) -> Edges:
            made: dict[Column, tuple[Transformation, ...]] = {}
            for column, ts in given.items():
                if (new := renamed[column]) is not None:
                    unite_into(made, {new: tuple(told[t] for t in ts)})
            return made

        fields: dict[str, Edges] = {}
        for name, given in said.fields.items():
            both = dict(fields.get(names[name], {}))
            unite_into(both, edges(given))
            fields[names[name]] = both
        return ColumnLineage(fields, edges(said.dataset))

    def _column(self, column: Column) -> Column | None:
        dataset = self._identity(column.dataset)
        return None if dataset is None else Column(dataset, self._text(column.field))


def _short(name: str) -> str:
    return name if len(name) <= 100 else f"{name[:100]}…"
