"""Compose A→tmp and tmp→B to A→B: replace columns of intermediate datasets by their sources.

The rule for two transformations in a row is the listener's own
(``io.openlineage.client.utils.TransformationInfo.merge``), so that lineage through a staging table
reads like lineage within one query. The descriptions are composed, too. If a job first writes the
column ``(amount * rate) AS amount_eur`` of a staging table, and then ``sum(amount_eur) AS revenue``
of another table, ``revenue`` gets the description ``sum((amount * rate)) AS revenue``, and comes
from ``amount`` and ``rate``. In a description that would be too long, … stands for the inner text.

Where each of 200 columns is made of 200 columns that are made of 200 columns, there are 8 million
ways, but only 40,000 edges. So work that is the same for many sources is done once, for a set of
sources (:class:`ColumnSets`). The number of edges in memory is bounded.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from airflow_provider_sparklineage.lineage.application.accesses import Grade
from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    DIRECT_SUBTYPES,
    INDIRECT,
    Column,
    ColumnLineage,
    Edges,
    Transformation,
    Transformations,
    count,
    mapped,
)
from airflow_provider_sparklineage.model.allowance import Limit, SpentError, Work
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.model.datasets import DatasetName


# --- the SQL of the two, as one short text --------------------------------------------------------


MAX_DESCRIPTION = 1000
"""Characters of a composed description; in a longer one, … stands in place of the inner text."""

_ALIAS = re.compile(r"(?P<text>.*\S)\s+AS\s+(?:`[^`]+`|\w+)", re.DOTALL | re.IGNORECASE)


@lru_cache(maxsize=4096)  # many columns have the same few texts
def composed_description(outer: str, column: str, inner: str) -> str:
    """Replace a column's name in a description by the expression that made the column.

    :param outer: the later action's description
    :param column: the column of the intermediate dataset
    :param inner: the earlier action's description, which has the expression that made the column
    :return: the new text; ``outer`` if it does not name the column; either one is shortened
    """
    aliased = _ALIAS.fullmatch(inner)
    source = aliased["text"] if aliased else inner
    if not source or source == column or column not in outer:
        return shortened_description(outer)
    end = _ALIAS.fullmatch(outer)
    text, alias = (end["text"], outer[len(end["text"]) :]) if end else (outer, "")
    parts, count = _column_reference(column).subn(lambda m: m[0] if m[1] else "\0", text)
    named = parts.count("\0")
    if not count or not named:
        return shortened_description(outer)
    if len(parts) + named * len(source) + len(alias) > MAX_DESCRIPTION:
        source = "…"
    return shortened_description(parts.replace("\0", source) + alias)


def shortened_description(text: str) -> str:
    """Shorten a text to :data:`MAX_DESCRIPTION` characters."""
    return truncated(text, MAX_DESCRIPTION)


@lru_cache(maxsize=4096)
def _column_reference(column: str) -> re.Pattern[str]:
    """Give a pattern that matches quoted texts (in group 1), and a column's name outside them."""
    name = re.escape(column)
    return re.compile(
        r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
        rf"|(?<![\w.`])(?<!\bAS )(?:(?:\w+|`[^`]+`)\.)*(?:`{name}`|{name})(?![\w`.(])",
        re.DOTALL,
    )


# --- two transformations in a row, as one ---------------------------------------------------------


def combine(this: Transformation, upstream: Transformation, via: str = "") -> Transformation:
    """Combine two transformations in a row to one; ``this`` is the one nearer to the output.

    An INDIRECT ``this`` keeps its type and subtype. A DIRECT ``this`` after an unknown type gives
    an unknown type; after INDIRECT it gives that INDIRECT; after DIRECT it gives the first of
    AGGREGATION, TRANSFORMATION and IDENTITY that one of the two has, but an unknown subtype
    if the two are IDENTITY and unknown. If ``this`` is of an unknown type, so is the result. The
    result masks if one of the two masks.

    The description of the result is that of ``this``, with the text of ``upstream`` in place of the
    column, shortened to :data:`MAX_DESCRIPTION` characters. If ``this`` adds nothing to the
    description of ``upstream``, the latter is the result's description.

    :param via: the column between the two, as the description of ``this`` names it; empty where
        the name in a text could stand for another column
    """
    if _adds_no_text(this, upstream):
        description = shortened_description(upstream.description or this.description)
    elif via:
        description = composed_description(this.description, via, upstream.description)
    else:
        description = shortened_description(this.description)
    kind = _combined_kind(this.type, this.subtype, upstream.type, upstream.subtype)
    return Transformation(*kind, description, this.masking or upstream.masking)


@lru_cache(maxsize=1024)  # there are few
def _combined_kind(
    this: str | None, subtype: str | None, upstream: str | None, upstream_subtype: str | None
) -> tuple[str | None, str | None]:
    if this == INDIRECT:
        return INDIRECT, subtype
    if this is None or upstream is None:
        return None, None
    if upstream == INDIRECT:
        return INDIRECT, upstream_subtype
    return DIRECT, _stronger(subtype, upstream_subtype)


def _adds_no_text(this: Transformation, upstream: Transformation) -> bool:
    return this.type == DIRECT and (this.subtype == "IDENTITY" or upstream.type == INDIRECT)


def _stronger(first: str | None, second: str | None) -> str | None:
    if None in (first, second) and "IDENTITY" in (first, second):
        return None  # one of the two is not known, and the other one changes nothing
    for subtype in DIRECT_SUBTYPES:
        if subtype in (first, second):
            return subtype
    return first or second


class Way(NamedTuple):
    """Two transformations in a row whose descriptions are not combined yet.

    Combining descriptions takes most of the time of composing, and :func:`settled` drops many
    descriptions. So only those that stay are combined. The fields are the arguments of
    :func:`combine`.
    """

    this: Transformation
    upstream: Transformation
    via: str


Variant = Transformation | Way


class Upstream:
    """The transformations that made a column of an intermediate dataset from a set of sources.

    :param via: the name of the column, as for :func:`combine`
    """

    def __init__(self, transformations: Transformations, via: str) -> None:
        self.transformations = transformations
        self._via = via

    def variants(self, these: Transformations) -> tuple[Variant, ...]:
        """Combine transformations of the column with those that made it, without duplicates.

        :param these: the transformations by which a later action used the column
        :return: the combined transformations; a :class:`Way` stands for one that is made later
        """
        found = [variant for this in these for variant in self._variants(this)]
        return tuple(dict.fromkeys(found)) if len(found) > 1 else tuple(found)

    def _variants(self, this: Transformation) -> list[Variant]:
        if this[:2] == _IDENTITY:
            return [combine(this, t) for t in self.transformations]
        if self._via and self._via in this.description:
            return [_variant_of_two(this, t, self._via) for t in self.transformations]
        return [combine(this, t) for t in self._without_texts]

    @cached_property
    def _without_texts(self) -> Transformations:
        """The transformations, without the descriptions of those that are DIRECT.

        They are for a later description that does not name the column, so that no earlier
        description can be put in place of the name.
        """
        plain = (t if t.type == INDIRECT else without_text(t) for t in self.transformations)
        return tuple(dict.fromkeys(plain))


_IDENTITY = (DIRECT, "IDENTITY")


def _variant_of_two(this: Transformation, upstream: Transformation, via: str) -> Variant:
    if upstream.description and not _adds_no_text(this, upstream):
        return Way(this, upstream, via)
    return combine(this, upstream)


def with_text(variant: Variant) -> Transformation:
    """Give a transformation as it is; of a :class:`Way`, give the combined transformation."""
    return combine(*variant) if isinstance(variant, Way) else variant


def without_text(variant: Variant) -> Transformation:
    """Give a transformation, or that of a :class:`Way`, without its description."""
    if isinstance(variant, Way):
        this, upstream, _ = variant
        kind = _combined_kind(this.type, this.subtype, upstream.type, upstream.subtype)
        return Transformation(*kind, masking=this.masking or upstream.masking)
    if not variant.description:
        return variant
    return variant._replace(description="")


# --- the sources of a column by the variants in which they come, and sets of columns as numbers ---


V = TypeVar("V")
MAX_VARIANTS = 32
"""The most variants between two columns; a variant is a transformation, or a :class:`Way`.

If composing makes more variants than this, none of them keeps its description.
"""


def settled(parts: Sequence[tuple[Sequence[Variant], int]]) -> list[tuple[Transformation, int]]:
    """Make transformations from variants: each variant is a transformation, or a :class:`Way`.

    If a source has more than :data:`MAX_VARIANTS` variants, its transformations have no
    descriptions. The variants of each source are counted first. So the result does not depend on
    their order, and no description is made only to be dropped.

    :param parts: pairs of variants and a set of sources; each of the sources has all the variants
    :return: pairs of a transformation and its set of sources; the transformations of each
        source are in the order of these pairs
    """
    variants = each_variant_once(parts)
    many = in_more_than(MAX_VARIANTS, [sources for _, sources in variants])
    made: list[tuple[tuple[Transformation], int]] = []
    for variant, sources in variants:
        if few := sources & ~many:
            made.append(((with_text(variant),), few))
        if sources & many:
            made.append(((without_text(variant),), sources & many))
    return each_variant_once(made)  # different variants can give equal transformations


def each_variant_once(parts: Sequence[tuple[Sequence[V], int]]) -> list[tuple[V, int]]:
    """Give pairs of a variant and its set of sources, so that no source has a variant twice.

    :param parts: pairs of variants and a set of sources; each of the sources has all the variants
    :return: pairs of one variant and a set of sources that have it, as a bit mask
    """
    known: dict[V, int] = {}
    found = []
    for variants, sources in parts:
        for variant in variants:
            before = known.get(variant, 0)
            if new := sources & ~before:
                known[variant] = before | new
                found.append((variant, new))
    return found


def in_more_than(limit: int, sets: Sequence[int]) -> int:
    """Find the members of more than ``limit`` sets.

    Sets are bit masks: the bit n of a number tells whether the member n is in the set.

    :return: the members, as a bit mask
    """
    if len(sets) <= limit:
        return 0
    in_more = [0] * (limit + 1)  # number -> the members of more sets than so many
    for members in sets:
        counted = members & ~in_more[-1]
        for number, known in enumerate(in_more):
            in_more[number] |= counted
            counted &= known  # goes on with those that were in more sets than so many already
            if not counted:
                break
    return in_more[-1]


class ColumnSets:
    """Makes sets of columns, as bit masks with one bit for each column, and edges of such sets."""

    def __init__(self) -> None:
        self._columns: list[Column] = []
        self._bits: dict[Column, int] = {}
        self._members: dict[int, tuple[Column, ...]] = {}
        self._edges: dict[tuple[tuple[Transformation, int], ...], Edges] = {}
        self._lists: dict[Transformations, Transformations] = {}

    def of(self, column: Column) -> int:
        """Give the set with only this column."""
        if (bit := self._bits.get(column)) is None:
            bit = self._bits[column] = 1 << len(self._columns)
            self._columns.append(column)
        return bit

    def edges(self, added: Sequence[tuple[Transformation, int]]) -> Edges:
        """Make edges of the pairs that :func:`settled` gives; equal edges are one object."""
        key = tuple(added)
        if (edges := self._edges.get(key)) is None:
            edges = self._edges[key] = self._made(key)
        return edges

    def _made(self, added: Sequence[tuple[Transformation, int]]) -> Edges:
        if len(added) == 1 or len({sources for _, sources in added}) == 1:
            return dict.fromkeys(self._listed(added[0][1]), tuple(t for t, _ in added))
        lists: dict[Column, list[Transformation]] = {}
        for transformation, sources in added:
            for column in self._listed(sources):
                lists.setdefault(column, []).append(transformation)
        made = ((column, tuple(found)) for column, found in lists.items())
        return {column: self._lists.setdefault(ts, ts) for column, ts in made}

    def _listed(self, columns: int) -> tuple[Column, ...]:
        if (found := self._members.get(columns)) is None:
            found = self._members[columns] = tuple(self._each(columns))
        return found

    def _each(self, columns: int) -> Iterator[Column]:
        while columns:
            lowest = columns & -columns
            yield self._columns[lowest.bit_length() - 1]
            columns ^= lowest


# --- composing: the datasets that an action reads, by their sources -------------------------------


class Provenance(NamedTuple):
    """The origin of the data that an action read from a dataset which the application wrote.

    :param columns: the sources from which this application had made the dataset's columns
    :param internal: whether only data of the application itself was read; if so, the dataset is not
        a source
    :param grade: the kind of evidence for ``internal``
    :param sources: datasets from outside the application, from which the application made the data
    """

    columns: ColumnLineage
    internal: bool
    grade: Grade = Grade.LIFECYCLE
    sources: frozenset[DatasetName] = frozenset()


def too_many() -> SpentError:
    """Make the error for transformations that do not fit into memory."""
    return SpentError(f"the job has more than {Limit.TRANSFORMATIONS} transformations of columns")


def compose(
    lineage: ColumnLineage,
    provenance_of: Callable[[DatasetName], Provenance | None],
    work: Work = lambda _: None,
    most: int = Limit.TRANSFORMATIONS,
) -> ColumnLineage:
    """Replace the columns of datasets that the application wrote itself by their sources.

    A column whose own sources are not known stays as it is, because it is a true source. Influences
    on all columns of an intermediate dataset are added to the influences on all written columns.
    One step of replacement is enough, even if datasets are made of each other, because the columns
    of each write are composed before those of the next.

    If there are more than :data:`MAX_VARIANTS` transformations between a source and a column, all
    of them lose their descriptions. So the lineage of loops of reads and writes stays small.

    :param provenance_of: a function that gives the provenance of the data that was read from a
        dataset; None if the application had written none of that data
    :param work: counts units of work, and raises :exc:`SpentError` if there is no time left
    :param most: how many transformations fit into memory
    :return: column lineage in which equal edges are one object
    :raise SpentError: if there is no time left, or the edges do not fit into memory
    """
    known = {dataset: provenance_of(dataset) for dataset in sorted(lineage.datasets)}
    if not any(known.values()):
        return lineage
    names = Counter(c.field for c in lineage.sources)
    clear = {name for name, number in names.items() if number == 1}
    composing = _Composing(known, clear, work, most)
    fields = mapped(lineage.fields, composing.edges)
    found = (p.columns.dataset for p in known.values() if p is not None)
    return ColumnLineage(fields, composing.edges(lineage.dataset, *found))


class _Composing:
    """Composes the edges of one action.

    :param known: the provenance of each dataset that the action read
    :param clear: names of columns that only one of those datasets has: only these names are
        unambiguous in a text
    :param most: how many transformations fit into memory
    """

    def __init__(
        self,
        known: Mapping[DatasetName, Provenance | None],
        clear: Collection[str],
        work: Work,
        most: int,
    ) -> None:
        self._known = known
        self._clear = clear
        self._work = work
        self._most = most
        self._made = 0
        self._folded: dict[DatasetName, dict[str, str]] = {}
        self._sets = ColumnSets()
        self._reads: dict[Column, list[tuple[Upstream | None, int]]] = {}
        self._upstreams: dict[tuple[Transformations, str], Upstream] = {}
        self._variants: dict[tuple[Transformations, Upstream], tuple[Variant, ...]] = {}

    def edges(self, edges: Edges, *others: Edges) -> Edges:
        """Compose the edges of one column.

        :param others: more edges of that column, which are composed already
        """
        parts: list[tuple[Sequence[Variant], int]] = []
        for column, transformations in edges.items():
            if (read := self._reads.get(column)) is None:
                read = self._reads[column] = self._read(column)
            for upstream, sources in read:
                variants = (
                    self._combined(transformations, upstream) if upstream else transformations
                )
                parts.append((variants, sources))
        for column, transformations in chain.from_iterable(e.items() for e in others):
            parts.append((transformations, self._sets.of(column)))
        self._work(len(parts))
        composed = self._sets.edges(settled(parts))
        self._made += count(composed)
        if self._made > self._most:
            raise too_many()
        return composed

    def _read(self, column: Column) -> list[tuple[Upstream | None, int]]:
        """Give the sources of a column that was read.

        :return: pairs: the transformations that made the column from some sources, and the set of
            these sources; if the column is itself a source, also a pair of None and the column
        """
        provenance = self._known[column.dataset]
        made_of = self._sources(column, provenance) if provenance else None
        sets: dict[Transformations, int] = {}
        for source, transformations in (made_of or {}).items():
            sets[transformations] = sets.get(transformations, 0) | self._sets.of(source)
        via = column.field if column.field in self._clear else ""
        found: list[tuple[Upstream | None, int]] = []
        if provenance is None or not provenance.internal or not made_of:
            found.append((None, self._sets.of(column)))
        found += [(self._upstream(ts, via), sources) for ts, sources in sets.items()]
        return found

    def _upstream(self, transformations: Transformations, via: str) -> Upstream:
        # Without texts the name of the column has no effect, so columns share one object.
        has_text = transformations[0].description or any(t.description for t in transformations)
        key = transformations, via if has_text else ""
        if (found := self._upstreams.get(key)) is None:
            found = self._upstreams[key] = Upstream(*key)
        return found

    def _combined(self, these: Transformations, upstream: Upstream) -> tuple[Variant, ...]:
        self._work(1)
        if (found := self._variants.get((these, upstream))) is None:
            self._work(len(these) * len(upstream.transformations))
            found = self._variants[these, upstream] = upstream.variants(these)
        return found

    def _sources(self, column: Column, provenance: Provenance) -> Edges | None:
        """Find the sources of a column, ignoring case as Spark does; None if they are not known.

        :param provenance: the provenance of the data that was read from the column's dataset
        """
        fields = provenance.columns.fields
        if column.field in fields:
            return fields[column.field]
        if (folded := self._folded.get(column.dataset)) is None:
            folded = self._folded[column.dataset] = {name.casefold(): name for name in fields}
        return fields.get(folded.get(column.field.casefold(), ""))


def without_sources_in(lineage: ColumnLineage, datasets: Collection[DatasetName]) -> ColumnLineage:
    """Drop the sources that are columns of the given datasets."""

    def others(edges: Edges) -> Edges:
        if {column.dataset for column in edges}.isdisjoint(datasets):
            return edges
        return {c: t for c, t in edges.items() if c.dataset not in datasets}

    fields = mapped(lineage.fields, others)
    return ColumnLineage({n: e for n, e in fields.items() if e}, others(lineage.dataset))


def sources_of(
    composed: ColumnLineage, known: Mapping[DatasetName, Provenance | None]
) -> frozenset[DatasetName]:
    """List the datasets from outside the application from which a write was made.

    The write may have read them itself, or data that the application had made from them.

    :param composed: the composed columns of the write
    :param known: the provenance of each dataset that the action read
    """
    found = set(composed.datasets)
    for name, provenance in known.items():
        if provenance is None or not provenance.internal:
            found.add(name)
        if provenance is not None:
            found |= provenance.sources
    return frozenset(found)
