"""Compare expected with observed partitions, for one dataset and *side*: its reads or its writes.

Statuses, in the order in which they are checked:

================  ==============================================================================
``undeclared``    no partitions are expected of the dataset on this side
``unobserved``    partitions are expected, but the accessed partitions are not known, or the two
                  cannot be compared
``unexpected``    partitions were accessed that are not expected; others may be missing too
``missing``       expected partitions were not accessed
``matched``       exactly the expected partitions were accessed
================  ==============================================================================

- A path does not show whether it is read or written. If the dataset was both read and written, a
  partition of a path is missing only if it was accessed on neither side; and a side that accessed
  none of the expected partitions is undeclared if the other side accessed all of them. If the
  partitions of the other side are not known, the missing partitions are not known either.
- The schedule's partitions may be read by several tasks of the run, so those that one task did not
  read are not missing: the status is unobserved.
- Dates in arguments (inferred) can only match: the status is matched if the first and the last
  accessed partition are such dates, else undeclared.
- Values are compared in canonical form (:func:`.partitioning.canonical_value`). A time with a zone
  is not compared with a time without one, because the zone of the data is not known; in a column of
  texts the two are different texts.
- An expected partition that names only some of the dimensions covers all partitions with these
  values; a day covers its hours where the table is partitioned by the hours of a column.
- A predicate matches if all rows of all accessed partitions fulfil it; a partition in which no row
  fulfils it is unexpected. The status is unobserved if only some rows of a partition fulfil the
  predicate, or if the predicate names columns of the data (:class:`.subset.Evaluation`). A
  predicate never gives ``missing``, because it is not known which partitions exist. Partitions that
  are declared next to a predicate are compared as partitions, and the predicate may only make more
  of them unexpected.
- All partitions are compared, even if the event names only a few.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from itertools import chain, compress, product
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.model import globs, timestamps
from airflow_provider_sparklineage.model.partitioning import (
    NULL,
    Dimension,
    Partition,
    ValueKind,
    canonical_value,
    folder_values,
    kind_of,
)
from airflow_provider_sparklineage.model.subset import EVERYTHING
from airflow_provider_sparklineage.model.terms import Frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from airflow_provider_sparklineage.lineage.observed.accesses import Subset
    from airflow_provider_sparklineage.lineage.partitions.expected import Expected
    from airflow_provider_sparklineage.model.allowance import Work


# --- canonical forms ------------------------------------------------------------------------------
#
# They are made label by label, because all partitions of a dataset nearly always have the same
# labels.


Labels = tuple[str, ...]
Row = tuple[str, ...]
"""The values of a partition in canonical form, in the order of the partition's labels."""


class Rows(NamedTuple):
    """Partitions with the same labels, and the values of each in the order of the labels."""

    partitions: list[Partition]
    values: list[Row]


def by_labels(partitions: Iterable[Partition]) -> dict[Labels, Rows]:
    """Group a dataset's partitions by their labels; nearly always that is one group."""
    found: dict[Labels, Rows] = {}
    for partition in partitions:
        labels, values = zip(*partition.values, strict=True) if partition.values else ((), ())
        rows = found.setdefault(labels, Rows([], []))
        rows.partitions.append(partition)
        rows.values.append(values)
    return found


class CanonicalForms:
    """Converts expected and observed partitions to canonical form, so that they can be compared.

    In this form a label is written as it was observed, and a value as
    :func:`.partitioning.canonical_value` gives it.

    :param seen: the observed dimensions
    :param expected: the expected dimensions

    :ivar texts: labels of the dimensions that are columns of texts
    """

    def __init__(self, seen: Iterable[Dimension], expected: Iterable[Dimension]) -> None:
        self._seen = {d.label: d for d in seen}
        self._formats = {d.label: d.format for d in expected}
        self.texts = {d.label for d in self._seen.values() if kind_of(d) is ValueKind.TEXT}
        self._labels: dict[str, str] = {}
        for dimension in self._seen.values():
            self._labels.setdefault(dimension.label.casefold(), dimension.label)
        for dimension in self._seen.values():
            # Authors write ts=… for a table that is partitioned by day(ts).
            for name in dimension.fields if dimension.transform in timestamps.PRECISION else ():
                self._labels.setdefault(name.casefold(), dimension.label)
        self._with_zone: dict[str, set[bool]] = {}

    def know(self, partitions: Iterable[Labels]) -> bool:
        """Whether all labels of partitions are labels of observed dimensions.

        True also if no dimensions were observed, because then there is nothing to compare with.
        """
        labels = set(chain.from_iterable(partitions))
        return not self._seen or all(label.casefold() in self._labels for label in labels)

    def expected(self, partitions: Mapping[Labels, Rows]) -> dict[Labels, Rows]:
        """Convert expected partitions, grouped by labels, to canonical form by observed labels."""

        def form(label: str) -> tuple[str, str]:
            name = self._labels.get(label.casefold(), label)
            dimension = self._seen.get(name)
            return name, self._formats.get(label, "") or (dimension.format if dimension else "")

        return self._rows(partitions, form)

    def seen(self, partitions: Mapping[Labels, Rows]) -> dict[Labels, Rows]:
        """Convert observed partitions, grouped by labels, to canonical form."""
        formats = {label: dimension.format for label, dimension in self._seen.items()}
        return self._rows(partitions, lambda label: (label, formats.get(label, "")))

    def _rows(
        self,
        partitions: Mapping[Labels, Rows],
        form_of: Callable[[str], tuple[str, str]],
    ) -> dict[Labels, Rows]:
        """Convert grouped partitions to canonical form, and group them by their new labels.

        :param form_of: a function that gives, for a label, the label as it was observed, and the
            format of the label's values
        """
        found: dict[Labels, Rows] = {}
        for labels, some in partitions.items():
            columns = []
            for label, values in zip(labels, zip(*some.values, strict=True), strict=True):
                name, form = form_of(label)
                columns.append((name, self._canonical(name, form, values)))
            columns.sort(key=lambda column: column[0])
            rows = found.setdefault(tuple(name for name, _ in columns), Rows([], []))
            rows.partitions.extend(some.partitions)
            canonical = zip(*(column for _, column in columns), strict=True)
            rows.values.extend(canonical if columns else some.values)
        return found

    def _canonical(self, label: str, form: str, values: Sequence[str]) -> list[str]:
        """Convert the values of one label to canonical form, and note whether times have a zone.

        :param label: the label, as it was observed
        :param form: the format of the values, e.g. ``%Y%m%d``; empty if it is not known
        :return: as many values as ``values``, in the same order
        """
        dimension = self._seen.get(label)
        known = {value: canonical_value(value, form, dimension) for value in set(values)}
        if label not in self.texts:
            self._with_zone.setdefault(label, set()).update(
                timestamps.has_zone(value)
                for value in known.values()
                if len(value) > timestamps.PRECISION["day"] and value != NULL
            )
        return [known[value] for value in values]

    def are_comparable(self) -> bool:
        """Whether the times of each label either all have a zone, or all have none.

        Columns of texts do not count.
        """
        return all(len(kinds) <= 1 for kinds in self._with_zone.values())

    def shapes(
        self, labels: Labels, wanted: Mapping[Row, Partition]
    ) -> Mapping[tuple[int | None, ...], Mapping[Row, Partition]]:
        """Group expected partitions by the lengths to which observed values are cut for them.

        :param wanted: canonical values, in the order of ``labels`` -> the expected partition
        :return: the lengths, one for each label (:meth:`shortened_to`) -> the expected partitions
            with these lengths, in the form of ``wanted``
        """
        dimensions = (self._seen.get(label) for label in labels)
        if not any(d and d.transform in timestamps.PRECISION for d in dimensions):
            return {(None,) * len(labels): wanted}
        found: dict[tuple[int | None, ...], dict[Row, Partition]] = {}
        for row, partition in wanted.items():
            shape = tuple(map(self.shortened_to, labels, row))
            found.setdefault(shape, {})[row] = partition
        return found

    def shortened_to(self, label: str, value: str) -> int | None:
        """Give the length to which observed values are cut before they are compared.

        The length is that of an expected time which is shorter than the times of its dimension,
        such as a day where the dimension has hours. None if values are compared in full.

        :param label: the label of the dimension, as it was observed
        :param value: the expected value
        """
        dimension = self._seen.get(label)
        kept = timestamps.PRECISION.get(dimension.transform) if dimension else None
        return len(value) if kept and len(value) < kept and value[:1].isdigit() else None


# --- comparison -----------------------------------------------------------------------------------


class PartitionStatus(StrEnum):
    """The outcome of a comparison; the statuses are in the order in which they need attention."""

    UNEXPECTED = "unexpected"
    MISSING = "missing"
    UNOBSERVED = "unobserved"
    MATCHED = "matched"
    UNDECLARED = "undeclared"

    @property
    def is_mismatch(self) -> bool:
        """Whether the run accessed other partitions than expected."""
        return self in MISMATCHES


MISMATCHES = frozenset({PartitionStatus.UNEXPECTED, PartitionStatus.MISSING})
"""The outcomes of a run that accessed other partitions than expected."""


class Reconciliation(Frozen, frozen=True):
    """The outcome of the comparison for a dataset that was read, or for one that was written.

    :param missing: expected partitions that were not accessed
    :param unexpected: accessed partitions that are not expected
    """

    status: PartitionStatus
    missing: frozenset[Partition] = frozenset()
    unexpected: frozenset[Partition] = frozenset()

    def of_a_part(self) -> Reconciliation:
        """Give the outcome for a try of which only some accesses are known.

        The other accesses may be to the missing partitions, so MISSING becomes UNOBSERVED.
        """
        if self.status is PartitionStatus.MISSING:
            return Reconciliation(PartitionStatus.UNOBSERVED)
        return replace(self, missing=frozenset())


def reconcile(
    expected: Expected | None,
    seen: Subset | None,
    *,
    is_on_both_sides: bool = False,
    other: Subset | None = None,
    work: Work = lambda _: None,
) -> Reconciliation:
    """Compare expected with accessed partitions, in time linear in the number of both.

    :param expected: None if nothing is expected
    :param seen: the accessed partitions; None where they are not known
    :param is_on_both_sides: whether the dataset was read and written
    :param other: if ``seen`` are the read partitions, those that were written, and vice versa; None
        where they are not known
    :param work: counts units of work, and raises :exc:`SpentError` if there is no time left
    :raise SpentError: if there is no time left
    """
    if expected is None or (expected.kind is not Kind.INFERRED and _is_empty(expected)):
        return Reconciliation(PartitionStatus.UNDECLARED)
    if expected.kind is Kind.INFERRED:
        is_explained = seen is not None and _explained(expected, seen)
        return Reconciliation(
            PartitionStatus.MATCHED if is_explained else PartitionStatus.UNDECLARED
        )
    if seen is None:
        return Reconciliation(PartitionStatus.UNOBSERVED)
    comparison = _Comparison(expected, seen, work)
    if expected.choices:
        return comparison.by_predicates()
    if expected.kind is Kind.PATH and is_on_both_sides:
        return comparison.by_paths_of_no_side(other)
    found = comparison.by_partitions()
    return found.of_a_part() if expected.kind is Kind.SCHEDULE else found


def _is_empty(expected: Expected) -> bool:
    return expected.partitions is None and not expected.choices and not expected.locations


def _explained(expected: Expected, seen: Subset) -> bool:
    """Whether the first and the last accessed date of some label are dates of the arguments."""
    formats = {d.label: d.format for d in seen.dimensions}
    for label in dict.fromkeys(s.dimension for s in expected.sources if s.kind is Kind.INFERRED):
        values = (s.value for s in expected.sources if s.dimension == label)
        dates = set(map(timestamps.canonical_time, values))
        found = [_date_of(p, label, formats.get(label, "")) for p in seen.partitions]
        if found and {min(found), max(found)} <= dates:
            return True
    return False


def _date_of(partition: Partition, label: str, form: str) -> str:
    """Give the date of a partition in canonical form; empty if it has none.

    :param label: label of a dimension; or all labels joined by ``/``, if only together they make a
        date: year/month/day
    :param form: the format of the label's values; empty if it is not known
    """
    values = partition.as_dict()
    if label in values:
        return timestamps.canonical_time(values[label], form) or ""
    return (timestamps.date_of_columns(partition.values) or "") if label == "/".join(values) else ""


def _differing(missing: frozenset[Partition], unexpected: frozenset[Partition]) -> Reconciliation:
    if unexpected:
        return Reconciliation(PartitionStatus.UNEXPECTED, missing, unexpected)
    return Reconciliation(PartitionStatus.MISSING if missing else PartitionStatus.MATCHED, missing)


# --- the comparison -------------------------------------------------------------------------------


_Wanted = Mapping[Labels, Mapping[Row, Partition]]
_Covered = tuple[set[Partition], set[Partition]]
"""The accessed partitions that are expected, and the expected partitions that were accessed."""


class _Comparison:
    """Compares the expected partitions of one dataset with those that were read, or written."""

    def __init__(self, expected: Expected, seen: Subset, work: Work) -> None:
        self._expected = expected
        self._seen = seen
        self._work = work
        self._forms = CanonicalForms(seen.dimensions, expected.dimensions)

    def by_partitions(self) -> Reconciliation:
        """Compare accessed with expected partitions, where no expectation has a predicate."""
        found = self.differences()
        return _differing(*found) if found else Reconciliation(PartitionStatus.UNOBSERVED)

    def by_paths_of_no_side(self, other: Subset | None) -> Reconciliation:
        """Compare partitions of paths, of which it is not known whether they are read or written.

        :param other: if the read partitions are compared, those that were written, and vice versa;
            None where they are not known
        """
        found = self.differences()
        there = _Comparison(self._expected, other, self._work).differences() if other else None
        if found is None:
            return Reconciliation(PartitionStatus.UNOBSERVED)
        missing, unexpected = found
        is_of_this_side = len(unexpected) < len(self._seen.partitions)
        if there is None:
            if unexpected and is_of_this_side:
                return Reconciliation(PartitionStatus.UNEXPECTED, frozenset(), unexpected)
            return Reconciliation(
                PartitionStatus.UNOBSERVED if missing or unexpected else PartitionStatus.MATCHED
            )
        if not there[0] and not is_of_this_side:
            return Reconciliation(PartitionStatus.UNDECLARED)
        return _differing(missing & there[0], unexpected)

    def by_predicates(self) -> Reconciliation:
        """Compare partitions if at least one expectation has a predicate."""
        # Imported here, because few tasks declare a predicate, and each START waits for imports.
        from airflow_provider_sparklineage.model import predicates
        from airflow_provider_sparklineage.model.subset import Evaluation, either

        seen = self._seen
        evaluation = Evaluation(seen.dimensions)
        verdicts: dict[Partition, list[bool | None]] = {p: [] for p in seen.partitions}
        missing: set[Partition] = set()
        for partitions, where in self._expected.choices:
            condition = predicates.condition(where) if where else EVERYTHING
            covered: frozenset[Partition] | None = None
            if partitions is not None:
                alone = replace(self._expected, partitions=partitions, choices=())
                check = _Comparison(alone, seen, self._work).by_partitions()
                if check.status is PartitionStatus.UNOBSERVED:
                    return check
                missing |= check.missing
                covered = seen.partitions - check.unexpected
            for partition, found in verdicts.items():
                self._work(1)
                is_covered = covered is None or partition in covered
                holds = evaluation.selects(condition, partition) if is_covered else False
                found.append(True if holds is None and covered is not None else holds)
        outcomes = {partition: either(found) for partition, found in verdicts.items()}
        unexpected = frozenset(p for p, fulfils in outcomes.items() if fulfils is False)
        if unexpected:
            return Reconciliation(PartitionStatus.UNEXPECTED, frozenset(missing), unexpected)
        if missing:
            return Reconciliation(PartitionStatus.MISSING, frozenset(missing))
        is_known = outcomes and None not in outcomes.values()
        return Reconciliation(PartitionStatus.MATCHED if is_known else PartitionStatus.UNOBSERVED)

    def differences(self) -> tuple[frozenset[Partition], frozenset[Partition]] | None:
        """Give the missing and the unexpected partitions; None if nothing can be compared."""
        expected, forms = self._expected, self._forms
        if expected.partitions is None:
            return None
        asked = by_labels(expected.partitions)
        if not forms.know(asked):
            return None
        self._work(len(expected.partitions))
        wanted = {
            labels: dict(zip(rows.values, rows.partitions, strict=True))
            for labels, rows in forms.expected(asked).items()
        }
        self._work(len(self._seen.partitions))
        found = forms.seen(by_labels(self._seen.partitions))
        if not forms.are_comparable():
            return None
        covers = self._globbed if expected.is_glob else self._covering
        covered, met = covers(wanted, found)
        missing = frozenset().union(*(rows.values() for rows in wanted.values())) - met
        return missing, self._seen.partitions - covered

    def _covering(self, wanted: _Wanted, found: Mapping[Labels, Rows]) -> _Covered:
        """Find the accessed partitions that are expected, and the expected ones that were accessed.

        :param wanted: labels -> values in canonical form -> the expected partition with them
        :param found: the accessed partitions, in canonical form and grouped by labels
        :return: the accessed partitions that were found, and the expected ones
        """
        covered: set[Partition] = set()
        met: set[Partition] = set()
        for labels, every in wanted.items():
            shapes = self._forms.shapes(labels, every)
            for (shape, of_shape), (accessed, rows) in product(shapes.items(), found.items()):
                self._work(len(rows.values))
                # Most expectations have full values of all labels, so nothing has to be cut.
                is_full = accessed == labels and not any(shape)
                keys = rows.values if is_full else _shortened(rows.values, accessed, labels, shape)
                by_row = list(map(of_shape.get, keys))
                covered.update(compress(rows.partitions, by_row))
                met.update(partition for partition in by_row if partition)
        return covered, met

    def _globbed(self, wanted: _Wanted, found: Mapping[Labels, Rows]) -> _Covered:
        """Do the same as :meth:`_covering` where values in ``wanted`` may be patterns."""
        patterns = []
        plain: dict[Labels, dict[Row, Partition]] = {}
        for labels, every in wanted.items():
            for row, partition in every.items():
                if any(map(globs.is_glob, row)):
                    parts = [*zip(labels, map(globs.compiled, row), row, strict=True)]
                    patterns.append((partition, parts))
                else:
                    plain.setdefault(labels, {})[row] = partition
        covered, met = self._covering(plain, found)
        if not patterns:
            return covered, met
        for labels, rows in found.items():
            for partition, row in zip(*rows, strict=True):
                self._work(len(patterns))
                seen, values = partition.as_dict(), dict(zip(labels, row, strict=True))
                texts = {
                    label: folder_values(seen[label], value, is_text=label in self._forms.texts)
                    for label, value in values.items()
                }
                for of, parts in patterns:
                    if all(
                        any(map(pattern.fullmatch, texts.get(label, ())))
                        or values.get(label, "")[: self._forms.shortened_to(label, value)] == value
                        for label, pattern, value in parts
                    ):
                        covered.add(partition)
                        met.add(of)
        return covered, met


def _shortened(
    rows: Iterable[Row], accessed: Labels, labels: Labels, shape: Iterable[int | None]
) -> Iterator[Row]:
    """Cut the values of each row to given lengths, so that they equal expected values.

    :param accessed: the labels of the rows
    :param labels: the labels of the results; the value of a label that the rows lack is ""
    :param shape: for each label, the length of its values; None keeps them in full
    """
    places = {label: place for place, label in enumerate(accessed)}
    parts = [(places.get(label), length) for label, length in zip(labels, shape, strict=True)]
    for row in rows:
        yield tuple(["" if place is None else row[place][:length] for place, length in parts])
