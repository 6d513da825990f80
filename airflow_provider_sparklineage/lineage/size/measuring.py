"""How many bytes a facet takes in an event.

Sizes are those of the JSON that OpenLineage's client sends (ASCII, with a space after each
separator), and never less.
"""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import attrs
from openlineage.client.facet_v2 import column_lineage_dataset

ColumnLineageDatasetFacet = column_lineage_dataset.ColumnLineageDatasetFacet
Fields = column_lineage_dataset.Fields
InputField = column_lineage_dataset.InputField
Transformation = column_lineage_dataset.Transformation

if TYPE_CHECKING:
    from collections.abc import Iterable


class Measuring:
    """Measures facets; of column lineage, which is nearly all of a large event, by its pieces.

    The same columns and transformations come again with each column that is made of them.
    """

    def __init__(self) -> None:
        self._column = cache(
            lambda namespace, name, column: size_of(InputField(namespace, name, column, None))
        )
        self._transformation = cache(lambda *said: size_of(Transformation(*said)))

    def facet(self, key: str, facet: Any) -> int:
        """Measure a facet with its key."""
        if not isinstance(facet, ColumnLineageDatasetFacet):
            return size_of({key: facet})
        bare = size_of({key: attrs.evolve(facet, fields={}, dataset=[])})
        fields = (
            size_of({name: Fields([], said.transformationDescription, said.transformationType)})
            - len("{}")
            + self._sources(said.inputFields)
            for name, said in facet.fields.items()
        )
        return bare + _listed(fields) + self._sources(facet.dataset or [])

    def _sources(self, sources: Iterable[InputField]) -> int:
        return _listed(map(self._source, sources))

    def _source(self, source: InputField) -> int:
        size = self._column(source.namespace, source.name, source.field)
        if source.transformations is None:
            return size
        said = (
            self._transformation(t.type, t.subtype, t.description, t.masking)
            for t in source.transformations
        )
        return size + len(', "transformations": []') + _listed(said)


def _listed(sizes: Iterable[int]) -> int:
    """Add the sizes of entries, and of what stands between them."""
    return max(0, sum(size + len(", ") for size in sizes) - len(", "))


def size_of(value: Any) -> int:
    """Give the bytes of a value in JSON, as OpenLineage's client writes it."""
    return len(json.dumps(value, default=_fields))


def _fields(value: Any) -> dict[str, Any]:
    """Read an attrs object as OpenLineage's client does, which leaves out what is None."""
    return {
        name: field
        for name in _field_names(value.__class__)
        if (field := getattr(value, name)) is not None
    }


@cache
def _field_names(of: type) -> tuple[str, ...]:
    return tuple(a.name for a in attrs.fields(of))
