"""Column lineage as data: decoded from the listener's facet, combined and composed.

An *edge* says that one input column influences one output column (``ColumnLineage.fields``) or all
of them (``ColumnLineage.dataset``), each with a list of transformations. Composition replaces the
columns of an intermediate dataset by what they were made of: A→tmp and tmp→B give A→B. The rule for
two transformations in a row is the listener's own
(``io.openlineage.client.utils.TransformationInfo.merge``), so that lineage through a staging table
reads like lineage within one query.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from airflow_provider_sparklineage.datasets import DatasetName

DIRECT = "DIRECT"
INDIRECT = "INDIRECT"
# The stronger statement about a value first: what was aggregated once is an aggregation for good.
DIRECT_SUBTYPES = ("AGGREGATION", "TRANSFORMATION", "IDENTITY")
_INDIRECT_SUBTYPES = frozenset(
    {"FILTER", "JOIN", "GROUP_BY", "SORT", "WINDOW", "CONDITION", "CONDITIONAL"}
)


class Transformation(NamedTuple):
    """How an input column influences an output column; the type is None where nobody knows."""

    type: str | None = None
    subtype: str | None = None
    description: str = ""
    masking: bool = False


class Column(NamedTuple):
    """A column of a dataset."""

    dataset: DatasetName
    field: str


Edges = Mapping[Column, tuple[Transformation, ...]]


@dataclass(frozen=True)
class ColumnLineage:
    """What the columns of one dataset are made of.

    :param fields: output column -> its input columns
    :param dataset: input columns that influence every output column (filters, joins, groupings):
        INDIRECT
    """

    fields: Mapping[str, Edges] = field(default_factory=dict)
    dataset: Edges = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.fields or self.dataset)


# --- the listener's facet -------------------------------------------------------------------------


class _Transformation(msgspec.Struct):
    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class _InputField(msgspec.Struct):
    namespace: str
    name: str
    field: str
    transformations: list[_Transformation] | None = None


class _Field(msgspec.Struct):
    input_fields: list[_InputField] | None = msgspec.field(name="inputFields", default=None)


class _Facet(msgspec.Struct):
    fields: dict[str, _Field] | None = None
    dataset: list[_InputField] | None = None


_FACET = msgspec.json.Decoder(_Facet)

# Spark wraps string partition columns of a partitioned write; the value is the same column.
_EMPTY_TO_NULL = re.compile(r"empty2null\((?:[\w`]+\.)*`?(?P<of>\w+)`?\) AS `?\w+`?", re.IGNORECASE)
_PYTHON_UDF = re.compile(r"\bpythonUDF\d+\b")


def decode(
    facet: bytes | msgspec.Raw, relocate: Callable[[DatasetName], DatasetName]
) -> ColumnLineage:
    """Decode a ``columnLineage`` facet of the listener.

    :param relocate: the dataset that a name in the facet stands for; the facet may name single
        files where ``inputs`` names their directory
    :raise msgspec.ValidationError: if the facet is none
    """
    decoded = _FACET.decode(facet)
    fields = {
        name: _edges(entry.input_fields or (), relocate, _as_said)
        for name, entry in (decoded.fields or {}).items()
    }
    return ColumnLineage(
        {name: edges for name, edges in fields.items() if edges},
        _edges(decoded.dataset or (), relocate, _as_indirect),
    )


def _edges(
    inputs: Iterable[_InputField],
    relocate: Callable[[DatasetName], DatasetName],
    read: Callable[[_Transformation], Transformation],
) -> dict[Column, tuple[Transformation, ...]]:
    edges: dict[Column, tuple[Transformation, ...]] = {}
    for entry in inputs:
        column = Column(relocate(DatasetName(entry.namespace, entry.name)), entry.field)
        said = tuple(read(t) for t in entry.transformations or ()) or (read(_Transformation()),)
        edges[column] = _union(edges.get(column, ()), said)
    return edges


def _as_said(t: _Transformation) -> Transformation:
    subtype, description = t.subtype, t.description or ""
    if subtype == "TRANSFORMATION" and _EMPTY_TO_NULL.fullmatch(description):
        subtype, description = "IDENTITY", _EMPTY_TO_NULL.fullmatch(description)["of"]  # type: ignore[index]
    return Transformation(t.type, subtype, description, bool(t.masking))


def _as_indirect(t: _Transformation) -> Transformation:
    """Read an entry of the facet's ``dataset`` list: INDIRECT, whatever it says of itself."""
    subtype = t.subtype if t.subtype in _INDIRECT_SUBTYPES else "FILTER"
    return Transformation(INDIRECT, subtype, t.description or "", bool(t.masking))


def is_incomplete(edges: Edges) -> bool:
    """Whether a Python UDF stands between: its arguments are not in the edges."""
    return any(_PYTHON_UDF.search(t.description) for ts in edges.values() for t in ts)


# --- the algebra ----------------------------------------------------------------------------------


def _union(
    first: tuple[Transformation, ...], second: tuple[Transformation, ...]
) -> tuple[Transformation, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def union(first: Edges, second: Edges) -> dict[Column, tuple[Transformation, ...]]:
    """Unite edges; several transformations between two columns stay a list without duplicates."""
    united = dict(first)
    unite_into(united, second)
    return united


def unite_into(edges: dict[Column, tuple[Transformation, ...]], others: Edges) -> None:
    """Add edges to a dict of them, in time of the length of what is added."""
    for column, transformations in others.items():
        edges[column] = _union(edges.get(column, ()), transformations)


def combine(this: Transformation, upstream: Transformation) -> Transformation:
    """Combine two transformations in a row: ``this`` is the one nearer to the output.

    INDIRECT here stays; DIRECT after an unknown is unknown; DIRECT after INDIRECT is that INDIRECT;
    DIRECT after DIRECT is the first of AGGREGATION, TRANSFORMATION, IDENTITY. Masking anywhere
    masks.
    """
    masking = this.masking or upstream.masking
    description = this.description
    if this.type == DIRECT and this.subtype == "IDENTITY":
        description = upstream.description
    if this.type == INDIRECT:
        return this._replace(masking=masking)
    if this.type is None or upstream.type is None:
        return Transformation(None, None, description, masking)
    if upstream.type == INDIRECT:
        return Transformation(upstream.type, upstream.subtype, description, masking)
    return Transformation(DIRECT, _stronger(this.subtype, upstream.subtype), description, masking)


def _stronger(first: str | None, second: str | None) -> str | None:
    for subtype in DIRECT_SUBTYPES:
        if subtype in (first, second):
            return subtype
    return first or second


class Origin(NamedTuple):
    """What is known of a dataset that an action read.

    :param lineage: the columns that this application wrote into it
    :param internal: nothing but those was read, so that the dataset itself is no source
    :param exact: that was observed, and not taken from what the events say of the writes
    """

    lineage: ColumnLineage
    internal: bool
    exact: bool = False


def compose(
    lineage: ColumnLineage, origin_of: Callable[[DatasetName], Origin | None]
) -> ColumnLineage:
    """Replace the columns of datasets that the application wrote itself by what those were made of.

    A column whose own sources are not known stays as it is: it is true, and more is not known. What
    influences the whole of an intermediate influences everything made of it.
    """
    fields = {name: _compose_edges(edges, origin_of) for name, edges in lineage.fields.items()}
    everything = _compose_edges(lineage.dataset, origin_of)
    used = {c.dataset for edges in (*lineage.fields.values(), lineage.dataset) for c in edges}
    for dataset in sorted(used):
        origin = origin_of(dataset)
        if origin is not None:
            everything = union(everything, origin.lineage.dataset)
    return ColumnLineage(fields, everything)


def _compose_edges(edges: Edges, origin_of: Callable[[DatasetName], Origin | None]) -> Edges:
    composed: dict[Column, tuple[Transformation, ...]] = {}
    for column, transformations in edges.items():
        origin = origin_of(column.dataset)
        sources = origin.lineage.fields.get(column.field) if origin else None
        if origin is None or not origin.internal or not sources:
            composed[column] = _union(composed.get(column, ()), transformations)
        for source, upstream in (sources or {}).items():
            both = tuple(combine(t, u) for t in transformations for u in upstream)
            composed[source] = _union(composed.get(source, ()), both)
    return composed


def without_sources_in(lineage: ColumnLineage, dataset: DatasetName) -> ColumnLineage:
    """Drop the sources that are columns of a dataset."""

    def others(edges: Edges) -> Edges:
        return {c: t for c, t in edges.items() if c.dataset != dataset}

    fields = {name: others(edges) for name, edges in lineage.fields.items()}
    return ColumnLineage({n: e for n, e in fields.items() if e}, others(lineage.dataset))


def metadata_columns_removed(
    lineage: ColumnLineage, has_column: Callable[[Column], bool]
) -> ColumnLineage:
    """Drop sources like ``_file`` and ``_metadata.…`` that their dataset's schema lacks."""

    def real(edges: Edges) -> Edges:
        return {c: t for c, t in edges.items() if not _METADATA.match(c.field) or has_column(c)}

    fields = {name: real(edges) for name, edges in lineage.fields.items()}
    return ColumnLineage({n: e for n, e in fields.items() if e}, real(lineage.dataset))


_METADATA = re.compile(r"_(file|pos|spec_id|partition|deleted|metadata)\b")
