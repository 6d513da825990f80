"""A→tmp and tmp→B to A→B: columns of what the application wrote, replaced by their sources.

The rule for two transformations in a row is the listener's own
(``io.openlineage.client.utils.TransformationInfo.merge``), so that lineage through a staging table
reads like lineage within one query. So do the descriptions: ``sum(amount_eur) AS revenue`` of an
intermediate whose ``amount_eur`` was ``(amount * rate) AS amount_eur`` reads ``sum((amount * rate))
AS revenue``, of the columns that are named as sources.

Where each of 200 columns is made of 200 that are made of 200, there are 8 million ways, and only
40,000 edges. What is the same of many sources is done once, for the set of them
(:class:`ColumnSets`). How many edges may be in memory is bounded (:class:`ColumnRoom`).
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
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
    count_all,
    each_once,
    mapped,
)
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget, SpentError
from airflow_provider_sparklineage.model.texts import truncated

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.model.datasets import DatasetName


# --- the SQL of the two, as one short text --------------------------------------------------------


MAX_DESCRIPTION = 1000
"""Characters of a composed description; in one that would be longer, … is what a column was."""

_ALIAS = re.compile(r"(?P<text>.*\S)\s+AS\s+(?:`[^`]+`|\w+)", re.DOTALL | re.IGNORECASE)


@lru_cache(maxsize=4096)  # many columns have the same few texts
def composed_description(outer: str, column: str, inner: str) -> str:
    """Put what a column was made of into a text about that column.

    :param outer: the later action's text
    :param column: the intermediate's column
    :param inner: the earlier action's text, which made the column
    :return: ``outer`` where it does not name the column
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
    """Shorten a text that is too long by itself."""
    return truncated(text, MAX_DESCRIPTION)


@lru_cache(maxsize=4096)
def _column_reference(column: str) -> re.Pattern[str]:
    """Match texts in quotes (group 1), and a column's name outside of them, qualified or not."""
    name = re.escape(column)
    return re.compile(
        r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
        rf"|(?<![\w.`])(?<!\bAS )(?:(?:\w+|`[^`]+`)\.)*(?:`{name}`|{name})(?![\w`.(])",
        re.DOTALL,
    )


# --- two transformations in a row, as one ---------------------------------------------------------


def combine(this: Transformation, upstream: Transformation, via: str = "") -> Transformation:
    """Combine two transformations in a row: ``this`` is the one nearer to the output.

    INDIRECT here stays; DIRECT after an unknown is unknown; DIRECT after INDIRECT is that INDIRECT;
    DIRECT after DIRECT is the first of AGGREGATION, TRANSFORMATION, IDENTITY. Masking anywhere
    masks. The description is this one's with the upstream one's text put into it, within
    :data:`MAX_DESCRIPTION` characters; it is the upstream one's where this one
    adds nothing.

    :param via: the column between the two, as this one's description names it; empty where a text
        could mean another column by that name
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
        return None  # how is not known of one of the two, and the other changes nothing
    for subtype in DIRECT_SUBTYPES:
        if subtype in (first, second):
            return subtype
    return first or second


class Way(NamedTuple):
    """Two transformations in a row, the text of one still to be put into that of the other.

    That takes most of the time, and texts may be dropped before.
    """

    this: Transformation
    upstream: Transformation
    via: str


Variant = Transformation | Way


class Upstream:
    """The transformations by which some sources make a column that is read again.

    :param via: the column, as :func:`combine` takes it
    """

    def __init__(self, transformations: Transformations, via: str) -> None:
        self.transformations = transformations
        self._via = via
        self._plain: Transformations | None = None

    def variants(self, these: Transformations) -> tuple[Variant, ...]:
        """Combine what is done with the column with what made it."""
        found = [variant for this in these for variant in self._variants(this)]
        return tuple(dict.fromkeys(found)) if len(found) > 1 else tuple(found)

    def _variants(self, this: Transformation) -> list[Variant]:
        if this[:2] == _IDENTITY:
            return [combine(this, t) for t in self.transformations]
        if self._via and self._via in this.description:
            return [_variant_of_two(this, t, self._via) for t in self.transformations]
        return [combine(this, t) for t in self._without_texts()]

    def _without_texts(self) -> Transformations:
        """Leave out the texts that would have to be put into others, but are not."""
        if self._plain is None:
            plain = (t if t.type == INDIRECT else without_text(t) for t in self.transformations)
            self._plain = tuple(dict.fromkeys(plain))
        return self._plain


_IDENTITY = (DIRECT, "IDENTITY")


def _variant_of_two(this: Transformation, upstream: Transformation, via: str) -> Variant:
    if upstream.description and not _adds_no_text(this, upstream):
        return Way(this, upstream, via)
    return combine(this, upstream)


def with_text(variant: Variant) -> Transformation:
    """Give the transformation that a variant is."""
    return combine(*variant) if isinstance(variant, Way) else variant


def without_text(variant: Variant) -> Transformation:
    """Give the transformation that a variant is, without its description."""
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
"""Between two columns; where composing makes more, none of them keeps its description."""


def settled(
    parts: Sequence[tuple[Sequence[Variant], int]], budget: Budget
) -> list[tuple[Transformation, int]]:
    """Put texts into each other, but of sources that have too many variants.

    How many there are is found out before. It does not depend on what came first, and texts that
    nobody will see are not made.

    :param parts: variants, and a set of sources that have all of them
    :return: transformations with their sources, in the order in which each source has them
    :raise SpentError: if there is no time left
    """
    if len(parts) == 1 and len(parts[0][0]) == 1:  # most columns are made of one
        [((variant,), sources)] = parts
        return [(with_text(variant), sources)]
    variants = each_variant_once(parts)
    budget.work(len(variants))
    many = in_more_than(MAX_VARIANTS, [sources for _, sources in variants])
    made: list[tuple[tuple[Transformation], int]] = []
    for variant, sources in variants:
        if few := sources & ~many:
            made.append(((with_text(variant),), few))
        if sources & many:
            made.append(((without_text(variant),), sources & many))
    return each_variant_once(made)  # some are the same by now


def each_variant_once(parts: Sequence[tuple[Sequence[V], int]]) -> list[tuple[V, int]]:
    """Give each variant with the sources that have not had it yet."""
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
    """Find the members that more than so many sets have: the sets are added up, digit by digit."""
    if len(sets) <= limit:
        return 0
    digits: list[int] = []  # of all sums at once, the lowest first; each is a set
    for members in sets:
        carried = members
        for place, digit in enumerate(digits):
            digits[place], carried = digit ^ carried, digit & carried
            if not carried:
                break
        if carried:
            digits.append(carried)
    more, equal = 0, -1
    for place in reversed(range(max(len(digits), limit.bit_length()))):
        digit = digits[place] if place < len(digits) else 0
        if limit >> place & 1:
            equal &= digit
        else:
            more |= equal & digit
            equal &= ~digit
    return more


class ColumnSets:
    """Columns as bits, so that a set of them is a number; and the edges that are the same."""

    def __init__(self) -> None:
        self._columns: list[Column] = []
        self._bits: dict[Column, int] = {}
        self._members: dict[int, tuple[Column, ...]] = {}
        self._edges: dict[tuple[tuple[Transformation, int], ...], Edges] = {}
        self._lists: dict[Transformations, Transformations] = {}

    def of(self, column: Column) -> int:
        """Give the set that has one column."""
        bit = self._bits.get(column)
        if bit is None:
            bit = self._bits[column] = 1 << len(self._columns)
            self._columns.append(column)
        return bit

    def edges(self, added: Sequence[tuple[Transformation, int]]) -> Edges:
        """Make edges of what :func:`settled` gives; equal ones are one object."""
        key = tuple(added)
        edges = self._edges.get(key)
        if edges is None:
            edges = self._edges[key] = self._made(key)
        return edges

    def _made(self, added: Sequence[tuple[Transformation, int]]) -> Edges:
        if len(added) == 1 or len({sources for _, sources in added}) == 1:
            return dict.fromkeys(self._listed(added[0][1]), tuple(t for t, _ in added))
        lists: dict[Column, list[Transformation]] = {}
        for transformation, sources in added:
            for column in self._listed(sources):
                lists.setdefault(column, []).append(transformation)
        return {column: self._same(tuple(found)) for column, found in lists.items()}

    def _same(self, transformations: Transformations) -> Transformations:
        return self._lists.setdefault(transformations, transformations)

    def _listed(self, columns: int) -> tuple[Column, ...]:
        found = self._members.get(columns)
        if found is None:
            found = self._members[columns] = tuple(self._each(columns))
        return found

    def _each(self, columns: int) -> Iterator[Column]:
        while columns:
            lowest = columns & -columns
            yield self._columns[lowest.bit_length() - 1]
            columns ^= lowest


# --- memory: edges of all writes of an application, as reported and composed ----------------------


MAX_TRANSFORMATIONS = 1_000_000
"""Each takes some 400 bytes. An event has room for a tenth of them."""


class ColumnRoom:
    """Counts what is kept; the same bound with and without a deadline.

    :param budget: the time for columns
    """

    def __init__(self, budget: Budget = UNLIMITED) -> None:
        self.budget = budget
        self._left = MAX_TRANSFORMATIONS

    def require(self, transformations: int) -> None:
        """Look whether there is room.

        :raise SpentError: if there is not
        """
        if transformations > self._left:
            msg = f"the job has more than {MAX_TRANSFORMATIONS} transformations of columns"
            raise SpentError(msg)

    def kept(self, lineage: ColumnLineage, *known: ColumnLineage | None) -> ColumnLineage:
        """Count the column lineage of a write, and give it back.

        :param known: what has been counted; one that is the same is given back in its place, as a
            loop writes a table with the same columns a thousand times
        :raise SpentError: if there is no room for it, or no time left
        """
        for same in known:
            if lineage is same or lineage == same:
                return same
        transformations = count_all(lineage)
        self.require(transformations)
        self._left -= transformations
        self.budget.work(transformations)
        return lineage


# --- composing: what an action reads, by its sources ----------------------------------------------


class Provenance(NamedTuple):
    """Where the data came from that an action read of a dataset.

    :param columns: what this application had made the columns of
    :param internal: nothing but its own data was read, so that the dataset itself is no source
    :param grade: of the evidence that the read is internal, or is not
    :param sources: datasets from outside that the application made it of
    """

    columns: ColumnLineage
    internal: bool
    grade: Grade = Grade.LIFECYCLE
    sources: frozenset[DatasetName] = frozenset()


def compose(
    lineage: ColumnLineage,
    provenance_of: Callable[[DatasetName], Provenance | None],
    room: ColumnRoom | None = None,
) -> ColumnLineage:
    """Replace the columns of datasets that the application wrote itself by what those were made of.

    A column whose own sources are not known stays as it is: it is true, and more is not known. What
    influences all of an intermediate influences everything made of it. One step is enough,
    and it ends whatever is made of what: columns are composed when they are written.

    A source that a column has in more than :data:`MAX_VARIANTS` variants has all of them
    without their descriptions: what loops of reads and writes make stays small.

    :return: edges that are equal are one object
    :raise SpentError: if there is no time left, or no room for the edges
    """
    used = {column for edges in each_once(lineage) for column in edges}
    known = {dataset: provenance_of(dataset) for dataset in sorted({c.dataset for c in used})}
    if not any(known.values()):
        return lineage
    names = Counter(c.field for c in used)
    clear = {name for name, number in names.items() if number == 1}
    composing = _Composing(known, clear, room or ColumnRoom())
    fields = mapped(lineage.fields, composing.edges)
    found = (p.columns.dataset for p in known.values() if p is not None)
    return ColumnLineage(fields, composing.edges(lineage.dataset, *found))


class _Read(NamedTuple):
    """A column that an action read.

    :param itself: the set of it, if it is a source; else the empty one
    :param upstream: what it was made of: sets of sources
    """

    itself: int
    upstream: list[tuple[Upstream, int]]


class _Composing:
    """One action's edges, with what is known of the datasets that it read.

    :param clear: names of columns that only one of those datasets has, so that a text means it
    """

    def __init__(
        self,
        known: Mapping[DatasetName, Provenance | None],
        clear: Collection[str],
        room: ColumnRoom,
    ) -> None:
        self._known = known
        self._clear = clear
        self._room = room
        self._made = 0
        self._folded: dict[DatasetName, dict[str, str]] = {}
        self._sets = ColumnSets()
        self._reads: dict[Column, _Read] = {}
        self._upstreams: dict[tuple[Transformations, str], Upstream] = {}
        self._variants: dict[tuple[Transformations, Upstream], tuple[Variant, ...]] = {}

    def edges(self, edges: Edges, *others: Edges) -> Edges:
        """Compose the edges of one column.

        :param others: more edges that it has, composed already
        """
        parts: list[tuple[Sequence[Variant], int]] = []
        for column, transformations in edges.items():
            read = self._reads.get(column)
            if read is None:
                read = self._reads[column] = self._read(column)
            if read.itself:
                parts.append((transformations, read.itself))
            for upstream, sources in read.upstream:
                parts.append((self._combined(transformations, upstream), sources))
        for column, transformations in chain.from_iterable(e.items() for e in others):
            parts.append((transformations, self._sets.of(column)))
        composed = self._sets.edges(settled(parts, self._room.budget))
        self._made += count(composed)
        self._room.require(self._made)
        return composed

    def _read(self, column: Column) -> _Read:
        provenance = self._known[column.dataset]
        made_of = self._sources(column, provenance) if provenance else None
        sets: dict[Transformations, int] = {}
        for source, transformations in (made_of or {}).items():
            sets[transformations] = sets.get(transformations, 0) | self._sets.of(source)
        via = column.field if column.field in self._clear else ""
        is_source = provenance is None or not provenance.internal or not made_of
        return _Read(
            self._sets.of(column) if is_source else 0,
            [(self._upstream(ts, via), sources) for ts, sources in sets.items()],
        )

    def _upstream(self, transformations: Transformations, via: str) -> Upstream:
        # Without texts, what was made of any column is the same.
        has_text = transformations[0].description or any(t.description for t in transformations)
        key = transformations, via if has_text else ""
        found = self._upstreams.get(key)
        if found is None:
            found = self._upstreams[key] = Upstream(*key)
        return found

    def _combined(self, these: Transformations, upstream: Upstream) -> tuple[Variant, ...]:
        self._room.budget.work()
        found = self._variants.get((these, upstream))
        if found is None:
            self._room.budget.work(len(these) * len(upstream.transformations))
            found = self._variants[these, upstream] = upstream.variants(these)
        return found

    def _sources(self, column: Column, provenance: Provenance) -> Edges | None:
        """Find what a column was made of; Spark finds columns in any case of their letters."""
        fields = provenance.columns.fields
        if column.field in fields:
            return fields[column.field]
        folded = self._folded.get(column.dataset)
        if folded is None:
            folded = self._folded[column.dataset] = {name.casefold(): name for name in fields}
        return fields.get(folded.get(column.field.casefold(), ""))


def without_sources_in(lineage: ColumnLineage, datasets: Collection[DatasetName]) -> ColumnLineage:
    """Drop the sources that are columns of some datasets."""

    def others(edges: Edges) -> Edges:
        if {column.dataset for column in edges}.isdisjoint(datasets):
            return edges
        return {c: t for c, t in edges.items() if c.dataset not in datasets}

    fields = mapped(lineage.fields, others)
    return ColumnLineage({n: e for n, e in fields.items() if e}, others(lineage.dataset))


def sources_of(
    composed: ColumnLineage, known: Mapping[DatasetName, Provenance | None]
) -> frozenset[DatasetName]:
    """Name the datasets from outside that a write was made of, through what was read back."""
    found = {column.dataset for edges in each_once(composed) for column in edges}
    for name, provenance in known.items():
        if provenance is None or not provenance.internal:
            found.add(name)
        if provenance is not None:
            found |= provenance.sources
    return frozenset(found)
