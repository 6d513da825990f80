"""Expected against observed partitions, dataset by dataset and side by side.

Statuses, in the order in which they are asked:

================  ==============================================================================
``undeclared``    nothing is expected of the dataset on this side
``unobserved``    something is expected, and which partitions were accessed is not known, or it
                  cannot be compared with what was accessed
``unexpected``    partitions were accessed that are not expected; others may be missing too
``missing``       expected partitions were not accessed
``matched``       exactly what is expected was accessed
================  ==============================================================================

- A path has no side. Of a dataset that was read and written, a partition of a path is missing only
  if it was accessed on neither side; and a side that accessed none of them is undeclared if the
  other one accessed them all. What the other side accessed may be unknown: then so is what is
  missing.
- Dates in arguments (inferred) can match, and give nothing else: if they are the first and the last
  partition that was accessed, they matched.
- Values are compared in canonical form (:mod:`.model.values`). A time with a zone and one without
  are not compared, because which zone the data are in is not known; as texts they are two.
- An expected partition that names some of the dimensions only covers all that have them; so does a
  day where the table is partitioned by the hours of a column.
- A predicate matches if all rows of all accessed partitions fulfil it; a partition of which no row
  does is unexpected; a partition with some such rows, or columns of the data in the predicate,
  leave it unobserved (:mod:`.subset.evaluation`). It never gives ``missing``, for nobody knows
  which partitions there are. Partitions that are declared next to a predicate are compared as such,
  and the predicate may only make more of them unexpected.
- All partitions are compared, however few of them the event names.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.model import globs
from airflow_provider_sparklineage.model.budget import UNLIMITED, Budget
from airflow_provider_sparklineage.model.frozen import Frozen
from airflow_provider_sparklineage.model.partitioning import NULL, Dimension, Partition
from airflow_provider_sparklineage.model.subset import EVERYTHING
from airflow_provider_sparklineage.model.timestamps import (
    PRECISION,
    canonical_time,
    date_of_columns,
    has_zone,
)
from airflow_provider_sparklineage.model.values import (
    ValueKind,
    canonical_value,
    folder_values,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.lineage.partitions.expected import Expected


class PartitionStatus(StrEnum):
    """How expected and observed compare; from what needs a person to what is well."""

    UNEXPECTED = "unexpected"
    MISSING = "missing"
    UNOBSERVED = "unobserved"
    MATCHED = "matched"
    UNDECLARED = "undeclared"

    @property
    def is_mismatch(self) -> bool:
        """Whether the run accessed other partitions than expected."""
        return self in (PartitionStatus.UNEXPECTED, PartitionStatus.MISSING)


def worst(statuses: Iterable[PartitionStatus]) -> PartitionStatus:
    """Sum statuses up: the one that needs a person most."""
    found = set(statuses)
    return next(
        (status for status in PartitionStatus if status in found), PartitionStatus.UNDECLARED
    )


class Reconciliation(Frozen, frozen=True):
    """The outcome for one dataset on one side.

    :param missing: expected partitions that were not accessed
    :param unexpected: accessed partitions that are not expected
    """

    status: PartitionStatus
    missing: frozenset[Partition] = frozenset()
    unexpected: frozenset[Partition] = frozenset()


class Seen(Frozen, frozen=True):
    """Partitions that were accessed; of a full dataset all of its partitions."""

    dimensions: tuple[Dimension, ...]
    partitions: frozenset[Partition]


def reconcile(
    expected: Expected | None,
    seen: Seen | None,
    *,
    is_on_both_sides: bool = False,
    other: Seen | None = None,
    budget: Budget = UNLIMITED,
) -> Reconciliation:
    """Compare what is expected with what was seen; linear in both.

    :param seen: None where it is not known
    :param is_on_both_sides: whether the dataset was read and written
    :param other: what was seen on the other side; None where it is not known
    :raise SpentError: if there is no time left
    """
    if expected is None or (expected.kind is not Kind.INFERRED and _is_empty(expected)):
        return Reconciliation(PartitionStatus.UNDECLARED)
    if expected.kind is Kind.INFERRED:
        return Reconciliation(
            PartitionStatus.MATCHED
            if seen and _explained(expected, seen)
            else PartitionStatus.UNDECLARED
        )
    if seen is None:
        return Reconciliation(PartitionStatus.UNOBSERVED)
    if expected.choices:
        return _by_predicates(expected, seen, budget)
    if expected.kind is Kind.PATH and is_on_both_sides:
        return _by_paths_of_no_side(expected, seen, other, budget)
    return _by_partitions(expected, seen, budget)


def _by_partitions(expected: Expected, seen: Seen, budget: Budget) -> Reconciliation:
    found = _compared(expected, seen, budget)
    if found is None:
        return Reconciliation(PartitionStatus.UNOBSERVED)
    return _differing(*found)


def _by_paths_of_no_side(
    expected: Expected, seen: Seen, other: Seen | None, budget: Budget
) -> Reconciliation:
    """Compare where a path may be of the other side: yesterday's is read and today's is written."""
    found = _compared(expected, seen, budget)
    there = _compared(expected, other, budget) if other else None
    if found is None:
        return Reconciliation(PartitionStatus.UNOBSERVED)
    missing, unexpected = found
    is_of_this_side = len(unexpected) < len(seen.partitions)
    if there is None:
        if unexpected and is_of_this_side:
            return Reconciliation(PartitionStatus.UNEXPECTED, frozenset(), unexpected)
        return Reconciliation(
            PartitionStatus.UNOBSERVED if missing or unexpected else PartitionStatus.MATCHED
        )
    if not there[0] and not is_of_this_side:
        return Reconciliation(PartitionStatus.UNDECLARED)
    return _differing(missing & there[0], unexpected)


def _differing(missing: frozenset[Partition], unexpected: frozenset[Partition]) -> Reconciliation:
    if unexpected:
        return Reconciliation(PartitionStatus.UNEXPECTED, missing, unexpected)
    return Reconciliation(PartitionStatus.MISSING if missing else PartitionStatus.MATCHED, missing)


def _compared(
    expected: Expected, seen: Seen, budget: Budget
) -> tuple[frozenset[Partition], frozenset[Partition]] | None:
    """Give what is missing and what is unexpected; None if the two cannot be compared."""
    forms = _CanonicalForms(seen.dimensions, expected.dimensions)
    if expected.partitions is None or not forms.knows(expected.partitions):
        return None
    wanted = {forms.expected(partition): partition for partition in expected.partitions}
    found = {partition: forms.seen(partition) for partition in seen.partitions}
    if not forms.is_comparable(wanted, found.values()):
        return None
    covers = _globbed if expected.is_glob else _covering
    covered, accessed = covers(wanted, found, forms, budget)
    missing = frozenset(p for key, p in wanted.items() if key not in accessed)
    return missing, frozenset(found) - covered


def _is_empty(expected: Expected) -> bool:
    return expected.partitions is None and not expected.choices and not expected.locations


def _explained(expected: Expected, seen: Seen) -> bool:
    """Whether dates of the arguments are the first and the last that was accessed."""
    formats = {d.label: d.format for d in seen.dimensions}
    for label in dict.fromkeys(s.dimension for s in expected.sources if s.kind is Kind.INFERRED):
        dates = {canonical_time(s.value) for s in expected.sources if s.dimension == label}
        values = [_date_of(p, label, formats.get(label, "")) for p in seen.partitions]
        if values and {min(values), max(values)} <= dates:
            return True
    return False


def _date_of(partition: Partition, label: str, form: str) -> str:
    """Give the date of a partition in canonical form; empty if it has none.

    :param label: a dimension; or all of them, where they are a date only together: year/month/day
    """
    values = partition.as_dict()
    if label in values:
        return canonical_time(values[label], form) or ""
    return (date_of_columns(partition.values) or "") if label == "/".join(values) else ""


# --- canonical form -------------------------------------------------------------------------------

# Label, and value in canonical form.
_Key = tuple[tuple[str, str], ...]
_Values = dict[str, str]


class _CanonicalForms:
    """Partitions in canonical form: labels as observed, values as in :mod:`.model.values`.

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
            # An author writes ts= of a table that is partitioned by day(ts).
            for name in dimension.fields if dimension.transform in PRECISION else ():
                self._labels.setdefault(name.casefold(), dimension.label)

    def knows(self, partitions: Iterable[Partition]) -> bool:
        """Whether all labels are dimensions that were seen; nothing seen contradicts no label."""
        labels = {label for p in partitions for label, _ in p.values}
        return not self._seen or all(label.casefold() in self._labels for label in labels)

    def expected(self, partition: Partition) -> _Key:
        """Give the canonical form of an expected partition, by the observed dimensions."""
        key = []
        for label, value in partition.values:
            name = self._labels.get(label.casefold(), label)
            dimension = self._seen.get(name)
            form = self._formats.get(label, "") or (dimension.format if dimension else "")
            key.append((name, canonical_value(value, form, dimension)))
        return tuple(sorted(key))

    def seen(self, partition: Partition) -> _Values:
        """Give the canonical form of an observed partition."""
        return {
            label: canonical_value(value, self._seen[label].format, self._seen[label])
            if label in self._seen
            else canonical_value(value, "", None)
            for label, value in partition.values
        }

    def is_comparable(self, wanted: Iterable[_Key], found: Iterable[_Values]) -> bool:
        """Whether times have zones on both sides, or on neither; of texts that is no matter."""
        with_zone: dict[str, set[bool]] = {}
        for side in (chain.from_iterable(wanted), chain.from_iterable(v.items() for v in found)):
            for label, value in side:
                if len(value) > PRECISION["day"] and label not in self.texts and value != NULL:
                    with_zone.setdefault(label, set()).add(has_zone(value))
        return all(len(kinds) == 1 for kinds in with_zone.values())

    def shortened_to(self, label: str, value: str) -> int | None:
        """Give how many characters of a dimension's values an expected value has; None: all."""
        dimension = self._seen.get(label)
        kept = PRECISION.get(dimension.transform) if dimension else None
        return len(value) if kept and len(value) < kept and value[:1].isdigit() else None


# --- who covers whom ------------------------------------------------------------------------------


def _covering(
    wanted: Iterable[_Key],
    found: Mapping[Partition, _Values],
    forms: _CanonicalForms,
    budget: Budget,
) -> tuple[frozenset[Partition], set[_Key]]:
    """Find the accessed partitions that are expected, and the expectations that were met."""
    shapes: dict[tuple[tuple[str, int | None], ...], set[_Key]] = {}
    for key in wanted:
        shape = tuple((label, forms.shortened_to(label, value)) for label, value in key)
        shapes.setdefault(shape, set()).add(key)
    covered, met = set(), set()
    for partition, values in found.items():
        budget.work(len(shapes))
        full = tuple(sorted(values.items()))
        for shape, keys in shapes.items():
            key = full
            if key not in keys:  # all values are given in most expectations
                key = tuple((label, values.get(label, "")[:length]) for label, length in shape)
            if key in keys:
                covered.add(partition)
                met.add(key)
    return frozenset(covered), met


def _globbed(
    wanted: Iterable[_Key],
    found: Mapping[Partition, _Values],
    forms: _CanonicalForms,
    budget: Budget,
) -> tuple[frozenset[Partition], set[_Key]]:
    """Do the same where some values are patterns."""
    patterns = [
        (key, [(label, globs.compiled(value), value) for label, value in key])
        for key in wanted
        if any(globs.is_glob(value) for _, value in key)
    ]
    covered, met = _covering(
        set(wanted).difference(key for key, _ in patterns), found, forms, budget
    )
    also = set()
    for partition, values in found.items() if patterns else ():
        budget.work(len(patterns))
        seen = partition.as_dict()
        texts = {
            label: folder_values(seen[label], value, is_text=label in forms.texts)
            for label, value in values.items()
        }
        for key, parts in patterns:
            if all(
                any(map(pattern.fullmatch, texts.get(label, ())))
                or values.get(label, "")[: forms.shortened_to(label, value)] == value
                for label, pattern, value in parts
            ):
                also.add(partition)
                met.add(key)
    return covered | also, met


# --- predicates -----------------------------------------------------------------------------------


def _by_predicates(expected: Expected, seen: Seen, budget: Budget) -> Reconciliation:
    """Compare where at least one of the statements has a predicate."""
    # Few declare one, and each START waits for imports.
    from airflow_provider_sparklineage.model import predicates
    from airflow_provider_sparklineage.model.subset.evaluation import Evaluation, either

    evaluation = Evaluation(seen.dimensions)
    verdicts: dict[Partition, list[bool | None]] = {p: [] for p in seen.partitions}
    missing: set[Partition] = set()
    for partitions, where in expected.choices:
        condition = predicates.condition(where) if where else EVERYTHING
        covered: frozenset[Partition] | None = None
        if partitions is not None:
            alone = replace(expected, partitions=partitions, choices=())
            check = _by_partitions(alone, seen, budget)
            if check.status is PartitionStatus.UNOBSERVED:
                return check
            missing |= check.missing
            covered = seen.partitions - check.unexpected
        for partition, found in verdicts.items():
            budget.work()
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
