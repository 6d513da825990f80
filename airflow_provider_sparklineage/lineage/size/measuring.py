"""How many bytes a facet takes in an event.

Sizes are those of the JSON that OpenLineage's client sends (ASCII, with a space after each
separator), and never less.
"""

from __future__ import annotations

import json
from functools import cache
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any

import attrs
from openlineage.client.facet_v2 import column_lineage_dataset

from airflow_provider_sparklineage.lineage.json_text import json_text

ColumnLineageDatasetFacet = column_lineage_dataset.ColumnLineageDatasetFacet
InputField = column_lineage_dataset.InputField
Transformation = column_lineage_dataset.Transformation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.lineage.parts import OpenLineageParts

ENVELOPE = 1024
"""Bytes for what is around the datasets and facets: the event's run, job, time and producer."""


class Measuring:
    """Measures facets; of column lineage, which is nearly all of a large event, by its pieces.

    The same columns and transformations come again with each column that is made of them.
    """

    def __init__(self) -> None:
        self._dataset = cache(
            lambda namespace, name: size_of(InputField(namespace, name, "", None)) - len('""')
        )
        self._transformation = cache(lambda *said: size_of(Transformation(*said)))

    def facet(self, key: str, facet: Any) -> int:
        """Measure a facet with its key."""
        if not isinstance(facet, ColumnLineageDatasetFacet):
            return size_of({key: facet})
        bare = size_of({key: attrs.evolve(facet, fields={}, dataset=[])})
        fields = (
            _quoted(name)
            + len(': {"inputFields": []}')
            + _optional("transformationDescription", said.transformationDescription)
            + _optional("transformationType", said.transformationType)
            + self._sources(said.inputFields)
            for name, said in facet.fields.items()
        )
        return bare + _listed(fields) + self._sources(facet.dataset or [])

    def _sources(self, sources: Iterable[InputField]) -> int:
        return _listed(map(self._source, sources))

    def _source(self, source: InputField) -> int:
        size = self._dataset(source.namespace, source.name) + _quoted(source.field)
        if source.transformations is None:
            return size
        said = (
            self._transformation(t.type, t.subtype, t.description, t.masking)
            for t in source.transformations
        )
        return size + len(', "transformations": []') + _listed(said)


def _optional(name: str, value: str | None) -> int:
    return 0 if value is None else len(f', "{name}": ') + _quoted(value)


def _quoted(text: str) -> int:
    return len(encode_basestring_ascii(text))


def _listed(sizes: Iterable[int]) -> int:
    """Add the sizes of entries, and of what stands between them."""
    return max(0, sum(size + len(", ") for size in sizes) - len(", "))


_ASCII = bytes(range(128))


def at_most(said: OpenLineageParts) -> int:
    """Give a bound of the size that costs a fraction of measuring it, and is little above it."""
    text = json_text(said)
    return (
        len(text)
        + text.count(b",")  # a space after each, as after colons
        + text.count(b":")
        + sum(text.count(b"e%d" % digit) for digit in range(10))  # 1e16 is written as 1e+16
        + 4 * text.count(b"null")  # an infinite number
        + 2 * len(text.translate(None, _ASCII))  # two bytes of UTF-8 are six of ASCII
        + sum(map(_header, _facets(said)))
        + ENVELOPE
    )


def _facets(said: OpenLineageParts) -> Iterable[Any]:
    groups: list[Mapping[str, Any] | None] = [said.run_facets, said.job_facets]
    for read in said.inputs:
        groups += (read.facets, read.inputFacets)
    for written in said.outputs:
        groups += (written.facets, written.outputFacets)
    return (facet for group in groups for facet in (group or {}).values())


def _header(facet: Any) -> int:
    """Measure what of a facet is not in :func:`.json_text`."""
    if isinstance(facet, dict):
        return 0
    said = [getattr(facet, name, None) for name in ("_producer", "_schemaURL", "_deleted")]
    return size_of(said) + len('"_producer": "_schemaURL": "_deleted": ')


def size_of(value: Any) -> int:
    """Give the bytes of a value in JSON, as OpenLineage's client writes it."""
    return len(_ENCODER.encode(value))


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


_ENCODER = json.JSONEncoder(default=_fields)
