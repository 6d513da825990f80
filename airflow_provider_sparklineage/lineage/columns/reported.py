"""Decode the column lineage that listeners report of a write, and correct it by Spark's own plan.

All forms in which listeners report column lineage are read into one form:

======================================  ========================================================
form                                    how it is read
======================================  ========================================================
``transformations`` of an input field   as reported
no ``transformations`` (old listeners,   the deprecated ``transformationType`` of the output
queries of JDBC relations)              column if it has a known word, else unknown
``dataset`` (the default from 1.37 on)  each entry is INDIRECT; its subtype is FILTER unless it
                                        names an indirect one
no ``dataset``: INDIRECT with each      influences on rows (FILTER, JOIN, GROUP_BY, SORT) that
column                                  are the same for every column go to ``dataset``
``CONDITION``, ``CONDITIONAL``          both INDIRECT, and passed on as reported
```a` ``, ``"a"``, ```a`.`b` ``         ``a``, ``a``, ``a.b``; nested columns stay in one
``empty2null(x) AS x``                  IDENTITY: Spark wraps partition columns of a write in it
IDENTITY of a JDBC column, no text      DIRECT, subtype unknown: it may be an expression
``_file``, ``_pos``, …                  no columns, unless the input's schema has them
======================================  ========================================================

Where a column could be followed through all of the plan, the plan decides: it shows sources that
the listener loses (scalar subqueries, the values of MERGE and UPDATE, the columns of a FILTER
clause, columns below a Python function or a ROLLUP), and not the wrong ones that it reports. For
other columns the union of both is reported. A transformation that both have keeps the listener's
description.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from airflow_provider_sparklineage.lineage.application.repairs import input_names
from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    DIRECT_SUBTYPES,
    INDIRECT,
    INDIRECT_SUBTYPES,
    ROW_SUBTYPES,
    Column,
    ColumnLineage,
    Edges,
    Transformation,
    Transformations,
    compact,
    joined,
    lists,
    mapped,
    union,
    unite_into,
)
from airflow_provider_sparklineage.model.allowance import SpentError, Work
from airflow_provider_sparklineage.model.datasets import DatasetName, is_database

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
    from airflow_provider_sparklineage.lineage.application.accumulation import Action
    from airflow_provider_sparklineage.lineage.columns.plans.commands import PlannedColumns


# The next two structs are frozen and have tuples, because they are parts of keys: many columns have
# the same entry.
class _Transformation(msgspec.Struct, frozen=True):
    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class _InputField(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    field: str
    transformations: tuple[_Transformation, ...] | None = None


class _Field(msgspec.Struct):
    # Decoded column by column: those of a wide table are a million objects together.
    input_fields: msgspec.Raw = msgspec.field(name="inputFields", default=msgspec.Raw(b"null"))
    type: str | None = msgspec.field(name="transformationType", default=None)
    description: str | None = msgspec.field(name="transformationDescription", default=None)


class _Facet(msgspec.Struct):
    fields: dict[str, _Field] | None = None
    dataset: list[_InputField] | None = None


# The text of the value of a pivot; its second argument is the aggregate, written out.
_PIVOT = re.compile(r"pivotfirst\((?P<by>[^,()]+), `")

_FACET = msgspec.json.Decoder(_Facet)
_INPUT_FIELDS = msgspec.json.Decoder(list[_InputField] | None)

_EMPTY_TO_NULL = re.compile(r"empty2null\((?:[\w`]+\.)*`?(?P<of>\w+)`?\) AS `?\w+`?", re.IGNORECASE)


def decode(
    facet: bytes | msgspec.Raw,
    relocate: Callable[[DatasetName], DatasetName],
    work: Work = lambda _: None,
) -> ColumnLineage:
    """Decode a ``columnLineage`` facet of the listener.

    :param relocate: a function that gives the dataset that a name in the facet stands for; the
        facet may name single files where ``inputs`` names their directory
    :param work: counts units of work, and raises :exc:`SpentError` if there is no time left
    :raise msgspec.ValidationError: if the facet does not have the form of a ``columnLineage`` facet
    :raise SpentError: if there is no time left
    """
    decoded = _FACET.decode(facet)
    reading = _Reading(relocate, work)
    fields: dict[str, Edges] = {}
    for name, entry in (decoded.fields or {}).items():
        if edges := reading.field(entry):
            column = _unquoted(name)
            known = fields.get(column)
            fields[column] = union(known, edges) if known else edges
    if decoded.dataset:
        return ColumnLineage(fields, reading.influences(decoded.dataset))
    return compact(ColumnLineage(fields), ROW_SUBTYPES)


class _Reading:
    """Turns entries of one facet into edges; objects that are equal in many entries are shared."""

    def __init__(self, relocate: Callable[[DatasetName], DatasetName], work: Work) -> None:
        self._work = work
        self._edges: dict[tuple[bytes, str | None, str | None], Edges] = {}
        dataset = cache(relocate)
        self._column = cache(
            lambda namespace, name, field: Column(
                dataset(DatasetName(namespace, name)), _unquoted(field)
            )
        )

    def field(self, entry: _Field) -> Edges:
        """Read the edges of an output column; equal edges are one object.

        :param entry: the column's entry in the ``fields`` of the facet
        """
        key = (bytes(entry.input_fields), entry.type, entry.description)
        if (edges := self._edges.get(key)) is None:
            inputs = _inputs(entry.input_fields)
            self._work(len(inputs))
            of_all = (_deprecated(entry.type, entry.description or ""),)
            edges = self._edges[key] = self._read(inputs, of_all)
        return edges

    def _read(self, inputs: Iterable[_InputField], of_all: Transformations) -> Edges:
        edges: dict[Column, Transformations] = {}
        for entry in inputs:
            column = self._column(entry.namespace, entry.name, entry.field)
            given = self._transformations(entry) or of_all
            edges[column] = joined(edges[column], given) if column in edges else given
        return edges

    def influences(self, inputs: Iterable[_InputField]) -> Edges:
        """Read the facet's ``dataset`` list: the influences on all columns."""
        edges: dict[Column, Transformations] = {}
        for entry in inputs:
            column = self._column(entry.namespace, entry.name, entry.field)
            indirect = tuple(map(_as_indirect, entry.transformations or (_Transformation(),)))
            edges[column] = joined(edges.get(column, ()), tuple(dict.fromkeys(indirect)))
        return edges

    def _transformations(self, entry: _InputField) -> Transformations:
        transformations, has_pivot = _all_as_reported(entry.transformations or ())
        if has_pivot:
            return tuple(_of_pivot(t, entry.field) for t in transformations)
        return transformations


def _inputs(raw: msgspec.Raw) -> list[_InputField]:
    try:
        return _INPUT_FIELDS.decode(raw) or []
    except msgspec.ValidationError as error:
        where = str(error).replace("`$", "`$.fields[...].inputFields")
        raise msgspec.ValidationError(where) from None


@lru_cache(maxsize=4096)  # many columns have the same few
def _all_as_reported(given: Iterable[_Transformation]) -> tuple[Transformations, bool]:
    """Convert the listener's transformations; also tell whether some describe a pivot."""
    transformations = tuple(map(_as_reported, given))
    return transformations, any(_PIVOT.match(t.description) for t in transformations)


def _as_reported(t: _Transformation) -> Transformation:
    kind = (t.type or "").upper()
    subtype, description = t.subtype or None, t.description or ""
    if subtype == "TRANSFORMATION" and (wrapped := _EMPTY_TO_NULL.fullmatch(description)):
        subtype, description = "IDENTITY", wrapped["of"]
    if kind not in (DIRECT, INDIRECT):  # OpenLineage knows no others
        return Transformation(None, None, description, bool(t.masking))
    return Transformation(kind, subtype, description, bool(t.masking))


def _of_pivot(t: Transformation, field: str) -> Transformation:
    chosen = _PIVOT.match(t.description) if t.type == DIRECT else None
    # The column by which a pivot chooses is aggregated with the value, and reported as a value.
    if chosen and _PARTS.findall(chosen["by"])[-1:] == _PARTS.findall(field)[-1:]:
        return t._replace(type=INDIRECT, subtype="CONDITIONAL")
    return t


def _as_indirect(t: _Transformation) -> Transformation:
    subtype = t.subtype if t.subtype in INDIRECT_SUBTYPES else "FILTER"
    return Transformation(INDIRECT, subtype, t.description or "", bool(t.masking))


def _deprecated(word: str | None, description: str) -> Transformation:
    """Read the deprecated ``transformationType``: one word for all inputs of an output column.

    The words of the specification are IDENTITY and MASKED. This package reads two more forms: the
    type alone, and type and subtype, such as ``DIRECT:AGGREGATION``. Without a known word, the
    transformation is of unknown type.

    :param word: the ``transformationType``; None if the column has none
    :param description: the description of the result
    """
    kind, colon, subtype = (word or "").upper().partition(":")
    if kind == "MASKED":
        return Transformation(DIRECT, "TRANSFORMATION", description, masking=True)
    if not colon and kind not in (DIRECT, INDIRECT):
        kind, subtype = "", kind
    if subtype in DIRECT_SUBTYPES and kind in ("", DIRECT):
        return Transformation(DIRECT, subtype, description)
    if subtype in INDIRECT_SUBTYPES and kind in ("", INDIRECT):
        return Transformation(INDIRECT, subtype, description)
    if kind in (DIRECT, INDIRECT):
        return Transformation(kind, subtype or None, description)
    return Transformation(description=description)


_PART = r"`(?:[^`]|``)+`|\"(?:[^\"]|\"\")+\"|[^`\".]+"
_PARTS = re.compile(_PART)
_QUOTED = re.compile(rf"(?:{_PART})(?:\.(?:{_PART}))*")


def _unquoted(name: str) -> str:
    """Take the quotes off the parts of a name; a name with quotes elsewhere stays as it is."""
    if ("`" not in name and '"' not in name) or not _QUOTED.fullmatch(name):
        return name
    return ".".join(
        part[1:-1].replace(part[0] * 2, part[0]) if part[0] in '`"' else part
        for part in _PARTS.findall(name)
    )


_METADATA = re.compile(r"_(file|pos|spec_id|partition|deleted|metadata)(\..*)?")


def metadata_columns_removed(
    lineage: ColumnLineage, has_column: Callable[[Column], bool]
) -> ColumnLineage:
    """Drop sources like ``_file`` and ``_metadata.…`` that are not in their dataset's schema.

    :param has_column: a function that tells whether a dataset's schema has a column, or has the
        first part of the column's name
    """
    if all(lineage.fields.values()) and not any(c.field[:1] == "_" for c in lineage.sources):
        return lineage

    def real(edges: Edges) -> Edges:
        if not any(c.field.startswith("_") for c in edges):
            return edges
        return {c: t for c, t in edges.items() if not _METADATA.fullmatch(c.field) or has_column(c)}

    fields = mapped(lineage.fields, real)
    return ColumnLineage({n: e for n, e in fields.items() if e}, real(lineage.dataset))


def unsure_identities(
    lineage: ColumnLineage, is_database: Callable[[DatasetName], bool]
) -> ColumnLineage:
    """Remove the subtype IDENTITY of edges from database columns, unless they have a description.

    The listener reports every column of a JDBC relation as IDENTITY, even if it is an expression.
    """
    databases = {dataset for dataset in lineage.datasets if is_database(dataset)}
    if not databases:
        return lineage

    def sure(t: Transformation) -> Transformation:
        unsure = t.type == DIRECT and t.subtype == "IDENTITY" and not t.description
        return t._replace(subtype=None) if unsure else t

    def edges_of(edges: Edges) -> Edges:
        return {
            c: tuple(dict.fromkeys(map(sure, ts))) if c.dataset in databases else ts
            for c, ts in edges.items()
        }

    fields = mapped(lineage.fields, edges_of)
    return ColumnLineage(fields, lineage.dataset)


_PYTHON_UDF = re.compile(r"\bpythonUDF\d+\b")


def is_nameless(text: str) -> bool:
    """Whether a description names the result of a Python function, such as ``pythonUDF0``."""
    return "pythonUDF" in text and bool(_PYTHON_UDF.search(text))


def is_incomplete(edges: Edges) -> bool:
    """Whether a description names a Python UDF, whose arguments the listener leaves out."""
    return any(is_nameless(t.description) for ts in lists(edges) for t in ts)


# --- the columns of one write ---------------------------------------------------------------------


class UnreadableColumnsError(Exception):
    """Raised when a facet of column lineage cannot be decoded; the message is a sentence."""


MAX_REMEMBERED_BYTES = 4 * 1024 * 1024
"""The greatest total size of the facets whose decoded column lineage is remembered, in bytes."""


class _Decoded(NamedTuple):
    """The column lineage of a facet.

    :param names: name of a dataset in the facet -> the dataset that the name stood for
    """

    lineage: ColumnLineage
    names: Mapping[DatasetName, DatasetName]


class ReportedColumns:
    """Decodes the column lineage of writes, and remembers the last known schema of each dataset."""

    def __init__(self, work: Work = lambda _: None) -> None:
        self._work = work
        self._schemas: dict[DatasetName, tuple[str, ...]] = {}
        self._decoded: dict[bytes, _Decoded] = {}
        self._room = MAX_REMEMBERED_BYTES

    def learn(self, action: Action) -> None:
        """Remember the columns of the datasets of an action."""
        for dataset in (*action.inputs, *action.outputs):
            if dataset.column_names:
                self._schemas[dataset.name] = dataset.column_names

    def schema(self, dataset: DatasetName) -> tuple[str, ...]:
        """Give the columns of a dataset; () where they are not known."""
        return self._schemas.get(dataset, ())

    def of_write(
        self,
        action: Action,
        output: ActionDataset,
        planned: Collection[PlannedColumns] = (),
        describing: Collection[PlannedColumns] = (),
    ) -> ColumnLineage:
        """Give the column lineage of an action's write of one of its outputs.

        :param planned: the columns, as each of Spark's own plans of the write shows them
        :param describing: the same, by plans of which only the descriptions count
        :raise UnreadableColumnsError: if the output's ``columnLineage`` facet cannot be read
        :raise SpentError: if there is no time left, or the facet did not fit into memory
        """
        if "columnLineage" in output.left_out:
            msg = "what the listener reports of it is too large to be read"
            raise SpentError(msg)
        facet = output.facets.get("columnLineage")
        try:
            reported = ColumnLineage()
            if facet:
                reported = self._read(bytes(facet), input_names(action))
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            msg = (
                f"The column lineage that the listener reported for {output.name} cannot be read: "
                f"{error}."
            )
            raise UnreadableColumnsError(msg) from error
        found = corrected(reported, planned) if planned else reported
        for plan in describing:
            found = described(found, plan)
        real = metadata_columns_removed(found, self._has_column)
        return unsure_identities(real, is_database)

    def _read(
        self, facet: bytes, stands_for: Callable[[DatasetName], DatasetName]
    ) -> ColumnLineage:
        """Decode a facet, or use the remembered lineage: a loop writes a facet many times.

        :param stands_for: gives the dataset that a name in the facet stands for
        """
        known = self._decoded.get(facet)
        if known and all(stands_for(name) == found for name, found in known.names.items()):
            return known.lineage
        names: dict[DatasetName, DatasetName] = {}

        def noted(name: DatasetName) -> DatasetName:
            found = names[name] = stands_for(name)
            return found

        lineage = decode(facet, noted, self._work)
        size = 0 if known else len(facet)
        if size > self._room:
            self._decoded.clear()
            self._room = MAX_REMEMBERED_BYTES
        if size <= self._room:
            self._room -= size
            self._decoded[facet] = _Decoded(lineage, names)
        return lineage

    def _has_column(self, column: Column) -> bool:
        schema = self._schemas.get(column.dataset)
        if schema is None:
            return True
        return column.field in schema or column.field.partition(".")[0] in schema


# --- corrected by plans ---------------------------------------------------------------------------


def corrected(reported: ColumnLineage, planned: Collection[PlannedColumns]) -> ColumnLineage:
    """Correct the listener's column lineage of a write by Spark's plans.

    :param planned: the columns, as each plan of the write shows them; there are several plans if a
        command runs another command
    """
    decided = frozenset[str]().union(
        *(plan.lineage.fields.keys() | plan.made_of for plan in planned)
    )
    decided -= frozenset().union(*(plan.incomplete for plan in planned))
    ours: dict[str, dict[Column, tuple[Transformation, ...]]] = {}
    rows: dict[Column, tuple[Transformation, ...]] = {}
    for plan in planned:
        unite_into(rows, plan.lineage.dataset)
        for name, edges in plan.lineage.fields.items():
            unite_into(ours.setdefault(name, {}), edges)
    fields = {
        name: _corrected_edges(
            reported.fields.get(name, {}), ours.get(name, {}), decides=name in decided
        )
        for name in dict.fromkeys((*reported.fields, *ours))
    }
    theirs = reported.dataset
    if all(plan.is_whole for plan in planned):
        # Only columns that filter, join, group or sort rows according to the plans are kept. The
        # listener, which reads the optimised plan, may know more transformations of such a column:
        # a filter of nulls before a join, say.
        theirs = {column: ts for column, ts in theirs.items() if column in rows}
    return ColumnLineage(
        {name: edges for name, edges in fields.items() if edges},
        _corrected_edges(theirs, rows, decides=False),
    )


def described(lineage: ColumnLineage, plan: PlannedColumns) -> ColumnLineage:
    """Describe the listener's column lineage by a plan, if the listener has described nothing.

    A column that has the same sources in both has the transformations of the plan: the listener
    takes what Spark does with partition columns (``empty2null``) for a TRANSFORMATION.
    """
    if any(t.description for edges in lineage.fields.values() for t in chain(*edges.values())):
        return lineage
    ours, incomplete = plan.lineage.fields, plan.incomplete
    fields = {
        name: ours[name]
        if name not in incomplete and ours.get(name, {}).keys() == edges.keys()
        else _described_edges(edges, ours.get(name, {}))
        for name, edges in lineage.fields.items()
    }
    return ColumnLineage(fields, _described_edges(lineage.dataset, plan.lineage.dataset))


def _corrected_edges(theirs: Edges, ours: Edges, *, decides: bool) -> Edges:
    """Give the edges of the plans with the listener's descriptions.

    :param theirs: the listener's edges
    :param ours: the edges of the plans
    :param decides: whether only the edges of the plans count; if not, the listener's are added
    """
    found = _described_edges(ours, theirs)
    if decides:
        return found
    kinds = {column: {t[:2] for t in ts if t.description} for column, ts in found.items()}
    others = {
        column: tuple(t for t in ts if t.description or t[:2] not in kinds.get(column, ()))
        for column, ts in theirs.items()
    }
    return union(others, found)


def _described_edges(edges: Edges, by: Edges) -> dict[Column, tuple[Transformation, ...]]:
    """Describe transformations by other sources of the same edges.

    A transformation is repeated with each description that ``by`` has of it. If ``by`` has none, it
    stays as it is.
    """
    return {
        column: tuple(dict.fromkeys(same for t in ts for same in _each(t, by.get(column, ()))))
        for column, ts in edges.items()
    }


def _each(one: Transformation, by: Collection[Transformation]) -> list[Transformation]:
    same = [
        one._replace(description=t.description)
        for t in by
        if t[:2] == one[:2] and t.description and not is_nameless(t.description)
    ]
    return same or [one]
