"""Replaces the names that a lineage backend cannot hold, in all parts of the event.

Policy, case by case:

- If a dataset gets another name, all parts of the event use it, and the event declares it.
  Degradations of earlier steps keep the old names.
- A dataset for which there is no possible name is left out, with the edges from it, and the event
  declares it.
- If two inputs, or two outputs, would have the same name, the dataset that has this name already
  keeps it; if both would get it as a new name, the first one gets it. The other dataset is left
  out, because a backend would take both for one, and the event declares that.
- If two columns would have the same name, their sources are united; the deprecated description is
  that of the first column.
- Texts (names of columns, descriptions) are changed silently, because they lose only characters
  that cannot be shown.
"""

from __future__ import annotations

from functools import cache
from itertools import starmap
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.event.document import replaced
from airflow_provider_sparklineage.event.facets import declared, with_renamed_datasets
from airflow_provider_sparklineage.event.model import name_of
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from airflow_provider_sparklineage.event.backends.base import Backend
    from airflow_provider_sparklineage.event.document import Event, Facets

    Json = dict[str, Any]


def renamed(event: Event, backend: Backend) -> Event:
    """Give the event with the names and texts that its backend can hold.

    :return: the same object if the backend can hold all names and texts
    """
    renaming = _Renaming(backend)
    if not renaming.is_needed(event):
        return event
    inputs = renaming.side(event["inputs"])
    outputs = renaming.side(event["outputs"])
    names = {
        side: {old: name_of(dataset) for old, dataset in datasets.items()}
        for side, datasets in ((Side.READ, inputs), (Side.WRITE, outputs))
    }
    changed = replaced(
        event,
        inputs=[*inputs.values()],
        outputs=[renaming.output(d) for d in outputs.values()],
        run_facets=with_renamed_datasets(event["run"]["facets"], names),
        job_facets=renaming.job_facets(event["job"]["facets"], names[Side.WRITE]),
    )
    return declared(changed, [*renaming.noted.values()])


class _Renaming:
    def __init__(self, backend: Backend) -> None:
        self._identity = cache(backend.identity)
        self._text = cache(backend.text)
        self.noted: dict[tuple[DatasetName, str], Degradation] = {}

    def is_needed(self, event: Event) -> bool:
        """Whether the event has a name or a text that the backend cannot hold."""
        edges = [*_edges(event)]
        # By their ids, because the same objects stand in many places.
        lists = {id(sources): sources for sources, _ in edges}.values()
        sources = [source for sources in lists for source in sources]
        transformations = {id(t): t for s in sources for t in s.get("transformations", ())}.values()
        named = (*event["inputs"], *event["outputs"], *sources)
        names = {(one["namespace"], one["name"]) for one in named}
        texts = {column for _, columns in edges for column in columns}
        texts |= {source.get("field", "") for source in sources}
        texts |= {transformation.get("description", "") for transformation in transformations}
        return any(self._identity(name) != name for name in starmap(DatasetName, names)) or any(
            self._text(text) != text for text in texts
        )

    # --- datasets ---------------------------------------------------------------------------------

    def side(self, datasets: list[Json]) -> dict[DatasetName, Json]:
        """Rename the inputs, or the outputs.

        :return: the datasets by their old names, without those that are left out
        """
        before = [name_of(d) for d in datasets]
        taken = {name for name in before if self._identity(name) == name}
        kept = {}
        for old, dataset in zip(before, datasets, strict=True):
            name = self._identity(old)
            if name is None:
                self._note(old, "It was left out.")
                continue
            if name != old:
                if name in taken:
                    self._note(old, f"It was left out, for {name} is another dataset.")
                    continue
                self._note(old, f"It is called {name}.")
                taken.add(name)
            kept[old] = dataset if name == old else {**dataset, **name._asdict()}
        return kept

    def _note(self, dataset: DatasetName, what: str) -> None:
        message = (
            f"The lineage backend cannot hold a dataset of the namespace {dataset.namespace!r} and "
            f"the name {_short(dataset.name)!r}. {what}"
        )
        self.noted[dataset, what] = Degradation(DegradationCode.BACKEND_REPAIRED, message, dataset)

    def output(self, output: Json) -> Json:
        """Rename the columns of an output's column lineage, and their sources."""
        facet = output["facets"].get(model.COLUMNS_KEY)
        if facet is None:
            return output
        from airflow_provider_sparklineage.event.column_lineage import transformation_type

        fields: Json = {}
        for column, field in facet["fields"].items():
            name = self._text(column)
            known = fields.get(name, field)
            sources = [*(known["inputFields"] if name in fields else ()), *field["inputFields"]]
            left = self._sources(sources)
            # In a kept event that was reduced, sources may have lost transformations, and only the
            # type still has them.
            is_full = all("transformations" in source for source in left)
            kind = transformation_type(left) if is_full else known["transformationType"]
            fields[name] = {
                **known,
                "inputFields": left,
                "transformationType": kind,
            }
            if text := known.get("transformationDescription"):
                fields[name]["transformationDescription"] = self._text(text)
        facet = {
            **facet,
            "fields": {name: fields[name] for name in sorted(fields)},
            "dataset": self._sources(facet["dataset"]),
        }
        return {**output, "facets": {**output["facets"], model.COLUMNS_KEY: facet}}

    def _sources(self, sources: Iterable[Json]) -> list[Json]:
        """Rename sources, unite those that are the same column after that, and sort them."""
        kept: dict[tuple[Any, ...], Json] = {}
        for source in sources:
            name = self._identity(name_of(source))
            if name is None:
                continue
            new = {**source, **name._asdict()}
            if "field" in source:
                new["field"] = self._text(source["field"])
            if "transformations" in source:
                new["transformations"] = [self._described(t) for t in source["transformations"]]
            # Datasets come before the columns that influence all of an output.
            key = ("field" in source, *name, new.get("field", ""))
            if (known := kept.get(key)) is not None and "transformations" in known:
                every = [*known["transformations"], *new.get("transformations", ())]
                new["transformations"] = [t for n, t in enumerate(every) if t not in every[:n]]
            kept[key] = new
        return [kept[key] for key in sorted(kept)]

    def _described(self, transformation: Json) -> Json:
        if "description" not in transformation:
            return transformation
        return {**transformation, "description": self._text(transformation["description"])}

    # --- the facet of the job ---------------------------------------------------------------------

    def job_facets(self, facets: Facets, outputs: dict[DatasetName, DatasetName]) -> Facets:
        """Rename the datasets in the job facet ``lineage``; drop those that were left out.

        :param outputs: new names of the event's outputs by the old ones
        """
        explicit = facets.get(model.LINEAGE_KEY)
        if explicit is None:
            return facets
        entries = [
            self._entry(entry, outputs[name])
            for entry in explicit["entries"]
            if (name := name_of(entry)) in outputs
        ]
        if not entries:
            return {key: facet for key, facet in facets.items() if key != model.LINEAGE_KEY}
        return {**facets, model.LINEAGE_KEY: {**explicit, "entries": entries}}

    def _entry(self, entry: Json, name: DatasetName) -> Json:
        new = {**entry, **name._asdict(), "inputs": self._sources(entry["inputs"])}
        if "fields" in entry:
            fields: Json = {}
            for column, field in entry["fields"].items():
                known = fields.get(self._text(column), {"inputs": []})
                left = self._sources([*known["inputs"], *field["inputs"]])
                fields[self._text(column)] = {"inputs": left}
            new["fields"] = {
                name: fields[name] for name in sorted(fields) if fields[name]["inputs"]
            }
        return new


def _edges(event: Event) -> Iterator[tuple[Iterable[Json], Iterable[str]]]:
    """Yield the lists of sources in an event's column lineage, each with names of columns.

    If the sources are those of an output as a whole, the names are those of the output's columns;
    if they are those of one column, there are no names.
    """
    for output in event["outputs"]:
        if facet := output["facets"].get(model.COLUMNS_KEY):
            yield facet["dataset"], facet["fields"]
            for field in facet["fields"].values():
                yield field["inputFields"], ()
    for entry in event["job"]["facets"].get(model.LINEAGE_KEY, {}).get("entries", ()):
        yield entry["inputs"], entry.get("fields", ())
        for field in entry.get("fields", {}).values():
            yield field["inputs"], ()


def _short(name: str) -> str:
    return name if len(name) <= 100 else f"{name[:100]}…"
