"""Choose the condition that describes the part of a dataset that was read, or was written.

The partitioning proposal of OpenLineage (from which the ``subset`` facet came) defines the form of
a subset: partitions, else physical locations, else logical conditions, else a description. A form
that would name more than a maximum is skipped. The proposal does not say where the partitions come
from; the sources here are, in this order:

1. Observed partitions. If the full dataset was observed to be read or written, partitions that a
   path or a declaration names are not reported.
2. Without observations, declared partitions, else those of templated paths. If Spark reports
   locations, only the partitions of paths at these locations count; if it reports none and the
   dataset was both read and written, no partition of a path counts.
3. Reported locations, if ``column=value`` folders or a rule turn each of them into a partition;
   or the static partitions of the statements that wrote the dataset.
4. Reported locations as they are, if the accesses were not observed.
5. Logical conditions: a gap-free run of dates; else the filters of all observed reads, or of the
   statements that read the dataset; else the declared ``where``.
6. A description.

A maximum limits the partitions that the event names, never those that are compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.model import subset
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.model.timestamps import common_format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_sparklineage.lineage.observed.accesses import Subset
    from airflow_provider_sparklineage.lineage.partitions.expected import Expected
    from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
    from airflow_provider_sparklineage.model.representation import Limits
    from airflow_provider_sparklineage.model.subset import Condition


MAX_COMPARISONS = 100
"""The most comparisons that a condition may have: an IN list of thousands helps no reader."""


class Evidence(Frozen, frozen=True):
    """The evidence for the part of a dataset that was read, or was written.

    :param observed: whether the accesses were observed; if so, a ``subset`` of None stands for all
        of a dataset that is not partitioned
    :param subset: the observed partitions
    :param expected: the part that templates and declarations name; None if they name none
    :param locations: names that the listener reported, with the folders of partitions; None stands
        for the full dataset, or for unknown locations
    :param filters: condition that holds for all rows that were read or written
    :param static: static partitions of all the statements that wrote the dataset
    :param located: a function that gives the partition of a name in ``locations``; None if the name
        is not that of a partition
    :param is_on_both_sides: whether the dataset was read and written
    """

    observed: bool = False
    subset: Subset | None = None
    locations: frozenset[str] | None = None
    filters: Condition | None = None
    expected: Expected | None = None
    located: Callable[[str], Partition | None] = lambda _: None
    static: frozenset[Partition] | None = None
    is_on_both_sides: bool = False


class Selected(Frozen, frozen=True):
    """A part of a dataset, and its description.

    :param partitions: all partitions of the part; None where the partitions are not known
    :param condition: the description, in the first possible form (the module's docstring has their
        order); None for the full dataset, or an unknown part
    :param skipped: the number of partitions or locations if they were too many to be named, else 0
    :param what: ``partitions`` or ``locations``: the kind that ``skipped`` counts
    :param removed: the removed partitions that the event may name; empty if they are too many
    """

    condition: Condition | None = None
    partitions: frozenset[Partition] | None = None
    skipped: int = 0
    what: str = "partitions"
    removed: frozenset[Partition] = frozenset()

    @property
    def summary(self) -> str:
        """Describe the part in a few words; empty for the full dataset, or an unknown part."""
        if self.partitions is not None:
            return subset.extent(self.partitions).summary
        return subset.to_text(self.condition) if self.condition else ""


def selected(evidence: Evidence, limits: Limits) -> Selected:
    """Choose the condition that describes the accessed part of a dataset.

    :param limits: how many partitions or locations a condition may name
    """
    expected = evidence.expected
    partitions = _partitions(evidence)
    skipped = 0
    if partitions is not None:
        if len(partitions) <= limits.partitions and limits.partitions:
            return Selected(subset.Partitions(partitions), partitions)
        skipped = len(partitions)
        if run := _run(partitions, evidence):
            return Selected(run, partitions, skipped)
    elif evidence.locations is not None and not evidence.observed:
        if len(evidence.locations) <= limits.partitions and limits.partitions:
            return Selected(subset.Locations(evidence.locations))
        skipped = len(evidence.locations)
    if (filters := _filters(evidence)) is not None:
        what = "partitions" if partitions is not None else "locations"
        return Selected(filters, partitions, skipped, what)
    if partitions is not None:
        return Selected(subset.Description(subset.extent(partitions).summary), partitions, skipped)
    if skipped and evidence.locations:
        first, last = min(evidence.locations), max(evidence.locations)
        text = f"{first} … {last} ({skipped} locations)"
        return Selected(subset.Description(text), None, skipped, "locations")
    if expected is not None and not evidence.observed and expected.is_glob:
        locations = ", ".join(sorted(expected.locations))
        return Selected(subset.Description(_globs(expected) if expected.partitions else locations))
    return Selected()


def _size(condition: Condition) -> int:
    waiting, leaves = [condition], 0
    while waiting:
        term = waiting.pop()
        if isinstance(term, subset.Binary):
            waiting += (term.left, term.right)
        else:
            leaves += len(term.partitions) if isinstance(term, subset.Partitions) else 1
    return leaves


def _filters(evidence: Evidence) -> Condition | None:
    expected, filters = evidence.expected, evidence.filters
    if filters is None and not evidence.observed and expected is not None and expected.where:
        from airflow_provider_sparklineage.model import predicates

        filters = subset.disjunction(predicates.condition(where) for where in expected.where)
    if filters is None or filters == subset.EVERYTHING:
        return None
    if _size(filters) <= MAX_COMPARISONS:
        return filters
    return subset.Description(subset.to_text(filters))


def _partitions(evidence: Evidence) -> frozenset[Partition] | None:
    if evidence.observed:
        seen = evidence.subset
        return seen.partitions if seen and not seen.full else None
    found = located(evidence)
    expected = evidence.expected
    if expected is None or expected.partitions is None or expected.is_glob:
        return found
    if expected.kind is Kind.DECLARED:
        return expected.partitions
    if evidence.locations is None:
        # A path has no side. If yesterday's path is read and today's is written, only locations
        # show the side of each.
        return found if evidence.is_on_both_sides else expected.partitions
    return expected.partitions & (found or frozenset()) or found


def located(evidence: Evidence) -> frozenset[Partition] | None:
    """Give the partitions at the reported locations; None unless each location is a partition.

    If no locations are known, give the static partitions of the SQL statements.
    """
    if evidence.locations is None:
        return evidence.static
    found = {evidence.located(location) for location in evidence.locations}
    return None if None in found else frozenset(p for p in found if p is not None)


def _run(partitions: frozenset[Partition], evidence: Evidence) -> Condition | None:
    """Describe partitions as a gap-free run of times: as a range of the one value that varies.

    :param evidence: has the dimensions of the partitions, and so the format of the times
    :return: None if more or less than one value varies, or the partitions are not such a run
    """
    dimensions: Iterable[Dimension] = ()
    if evidence.subset is not None:
        dimensions = evidence.subset.dimensions
    elif evidence.expected is not None:
        dimensions = evidence.expected.dimensions
    formats = {d.label: d.format for d in dimensions}
    ends = subset.extent(partitions)
    first, last = ends.first, ends.last
    if first is None or last is None or [k for k, _ in first.values] != [k for k, _ in last.values]:
        return None
    varying = [
        (label, one, other)
        for (label, one), (_, other) in zip(first.values, last.values, strict=True)
        if one != other
    ]
    if len(varying) != 1:
        return None
    label, one, other = varying[0]
    form = formats.get(label) or common_format(one, other)
    return subset.date_range(partitions, form) if form else None


def wanted(expected: Expected) -> str:
    """Describe the expected part in a few words: partitions, patterns, predicates or locations."""
    if expected.choices:
        texts = []
        for partitions, where in expected.choices:
            parts = [subset.extent(partitions).summary] if partitions is not None else []
            texts.append(" and ".join([*parts, *([where] if where else [])]))
        return " or ".join(dict.fromkeys(texts))
    if expected.is_glob:
        return _globs(expected)
    if expected.partitions is None and expected.locations:
        return ", ".join(sorted(expected.locations))
    return subset.extent(expected.partitions or ()).summary


def _globs(expected: Expected) -> str:
    return ", ".join(
        "/".join(f"{label}={value}" for label, value in partition.values)
        for partition in sorted(expected.partitions or ())
    )
