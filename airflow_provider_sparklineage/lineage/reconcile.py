"""Expected against observed partitions, dataset by dataset and side by side.

Statuses, in the order in which they are asked:

================  ==============================================================================
``undeclared``    nothing is expected of the dataset on this side
``unobserved``    something is expected, and which partitions were touched is not known
``unexpected``    partitions were touched that are not expected; others may be missing besides
``missing``       expected partitions were not touched
``matched``       exactly what is expected was touched
================  ==============================================================================

Dates in arguments (inferred) can match, and give nothing else: if they are the first and the last
partition that was touched, they matched. Values are compared in one spelling: times by format,
type and transform (``20240506`` is ``2024-05-06``, and is day 19849 of an Iceberg table), small
numbers without leading zeros, because Spark reads ``month=05`` as 5. An expected partition that
names some of the dimensions only covers all that have them. All partitions are compared, however
few of them the event names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.moments import canonical
from airflow_provider_sparklineage.partitioning import IDENTITY, Dimension, Partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from airflow_provider_sparklineage.lineage.expected import Expected


class Status(StrEnum):
    """How expected and observed compare; from what needs a person to what is well."""

    UNEXPECTED = "unexpected"
    MISSING = "missing"
    UNOBSERVED = "unobserved"
    MATCHED = "matched"
    UNDECLARED = "undeclared"

    @property
    def is_mismatch(self) -> bool:
        """Whether the run touched other partitions than it was meant to."""
        return self in (Status.UNEXPECTED, Status.MISSING)


def worst(statuses: Iterable[Status]) -> Status:
    """Sum statuses up: the one that needs a person most."""
    found = set(statuses)
    return next((status for status in Status if status in found), Status.UNDECLARED)


@dataclass(frozen=True)
class Check:
    """The outcome for one dataset on one side.

    :param missing: expected partitions that were not touched
    :param unexpected: touched partitions that are not expected
    """

    status: Status
    missing: frozenset[Partition] = frozenset()
    unexpected: frozenset[Partition] = frozenset()


@dataclass(frozen=True)
class Seen:
    """Partitions that were touched, the whole of a dataset being all of its partitions."""

    dimensions: tuple[Dimension, ...]
    partitions: frozenset[Partition]


def reconcile(expected: Expected | None, seen: Seen | None) -> Check:
    """Compare what is expected with what was seen; linear in both.

    :param seen: None where it is not known
    """
    if expected is None or (expected.kind is not Kind.INFERRED and _is_empty(expected)):
        return Check(Status.UNDECLARED)
    if expected.kind is Kind.INFERRED:
        return Check(Status.MATCHED if seen and _explained(expected, seen) else Status.UNDECLARED)
    if seen is None or expected.partitions is None:
        return Check(Status.UNOBSERVED)
    spelling = _Spelling(seen.dimensions, expected.dimensions)
    if not spelling.knows(expected.partitions):
        return Check(Status.UNOBSERVED)
    wanted = {spelling.expected(partition): partition for partition in expected.partitions}
    found = {partition: spelling.seen(partition) for partition in seen.partitions}
    covers = _globbed if expected.is_glob else _covering
    covered, touched = covers(wanted, found)
    unexpected = frozenset(found) - covered
    missing = frozenset(p for key, p in wanted.items() if key not in touched)
    if unexpected:
        return Check(Status.UNEXPECTED, missing, unexpected)
    return Check(Status.MISSING if missing else Status.MATCHED, missing)


def _is_empty(expected: Expected) -> bool:
    return expected.partitions is None and not expected.where and not expected.locations


def _explained(expected: Expected, seen: Seen) -> bool:
    """Whether dates of the arguments are the first and the last that was touched."""
    formats = {d.label: d.format for d in seen.dimensions}
    for label in dict.fromkeys(s.dimension for s in expected.sources if s.kind is Kind.INFERRED):
        dates = {canonical(s.value) for s in expected.sources if s.dimension == label}
        values = [
            canonical(p.as_dict().get(label, ""), formats.get(label, "")) or ""
            for p in seen.partitions
        ]
        if values and {min(values), max(values)} <= dates:
            return True
    return False


# --- one spelling ---------------------------------------------------------------------------------

_Key = tuple[tuple[str, str], ...]
_SMALL = re.compile(r"0*(\d{1,2})")
_ORDINAL = re.compile(r"-?\d{1,7}")
# Characters of ISO 8601 that a transform leaves of a time.
_KEPT = {"year": 4, "month": 7, "day": 10, "hour": 13}
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  (Iceberg counts from it, without a zone)


class _Spelling:
    """Partitions in one spelling: labels in lower case, values as :mod:`.moments` spells times."""

    def __init__(self, seen: Iterable[Dimension], expected: Iterable[Dimension]) -> None:
        self._seen = {d.label: d for d in seen}
        self._formats = {d.label: d.format for d in expected}
        self._labels: dict[str, str] = {}
        for dimension in self._seen.values():
            # An author writes ts= of a table that is partitioned by day(ts).
            names = (dimension.label, *(dimension.fields if dimension.transform in _KEPT else ()))
            for name in names:
                self._labels.setdefault(name.casefold(), dimension.label)

    def knows(self, partitions: Iterable[Partition]) -> bool:
        """Whether all labels are dimensions that were seen; nothing seen contradicts no label."""
        labels = {label for p in partitions for label, _ in p.values}
        return not self._seen or all(label.casefold() in self._labels for label in labels)

    def expected(self, partition: Partition) -> _Key:
        """Spell an expected partition by the dimensions that were seen."""
        key = []
        for label, value in partition.values:
            name = self._labels.get(label.casefold(), label)
            dimension = self._seen.get(name)
            form = self._formats.get(label, "") or (dimension.format if dimension else "")
            key.append((name, _spelled(value, form, dimension)))
        return tuple(sorted(key))

    def seen(self, partition: Partition) -> dict[str, str]:
        """Spell a partition that was seen."""
        return {
            label: _spelled(value, self._seen[label].format, self._seen[label])
            if label in self._seen
            else _spelled(value, "", None)
            for label, value in partition.values
        }


def _spelled(value: str, form: str, dimension: Dimension | None) -> str:
    transform = dimension.transform if dimension else IDENTITY
    kept = _KEPT.get(transform)
    moment = canonical(value, form)
    if moment is None and form:
        moment = canonical(value)
    if kept is not None:
        is_year = transform == "year" and len(value) == kept
        if moment is None and _ORDINAL.fullmatch(value) and not is_year:
            moment = _of_ordinal(int(value), transform)
        return (moment or value)[:kept]
    if moment is not None:
        return moment
    small = _SMALL.fullmatch(value)
    return small[1].lstrip("0") or "0" if small else value


def _of_ordinal(number: int, transform: str) -> str | None:
    """Spell what Iceberg counts from 1970 on: years, months, days or hours."""
    try:
        if transform == "year":
            return f"{1970 + number:04d}"
        if transform == "month":
            return f"{1970 + number // 12:04d}-{number % 12 + 1:02d}"
        if transform == "day":
            return (_EPOCH.date() + timedelta(days=number)).isoformat()
        return (_EPOCH + timedelta(hours=number)).isoformat()[:13]
    except OverflowError:
        return None


# --- who covers whom ------------------------------------------------------------------------------


def _covering(
    wanted: Iterable[_Key], found: Mapping[Partition, Mapping[str, str]]
) -> tuple[frozenset[Partition], set[_Key]]:
    """Find the touched partitions that are expected, and the expectations that were met."""
    shapes: dict[tuple[str, ...], set[_Key]] = {}
    for key in wanted:
        shapes.setdefault(tuple(label for label, _ in key), set()).add(key)
    covered, met = set(), set()
    for partition, values in found.items():
        for labels, keys in shapes.items():
            key = tuple((label, values.get(label, "")) for label in labels)
            if key in keys:
                covered.add(partition)
                met.add(key)
    return frozenset(covered), met


def _globbed(
    wanted: Iterable[_Key], found: Mapping[Partition, Mapping[str, str]]
) -> tuple[frozenset[Partition], set[_Key]]:
    """Do the same where values are patterns."""
    covered, met = set(), set()
    keys = list(wanted)
    for partition, values in found.items():
        for key in keys:
            if all(fnmatchcase(values.get(label, ""), pattern) for label, pattern in key):
                covered.add(partition)
                met.add(key)
    return frozenset(covered), met
