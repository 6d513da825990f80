"""Partitions in canonical form, in which expected and observed ones are compared.

Made column by column, because all partitions of a dataset nearly always have the same labels.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.model.partitioning import (
    NULL,
    Dimension,
    Partition,
    ValueKind,
    canonical_value,
    kind_of,
)
from airflow_provider_sparklineage.model.timestamps import PRECISION, has_zone

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from airflow_provider_sparklineage.model.budget import Budget

Labels = tuple[str, ...]
Row = tuple[str, ...]
"""The values of a partition in canonical form, in the order of some labels."""


class Rows(NamedTuple):
    """Partitions with the same labels, and the values of each in the order of the labels."""

    partitions: list[Partition]
    values: list[Row]


def by_labels(partitions: Iterable[Partition]) -> dict[Labels, Rows]:
    """Group partitions: nearly always all of a dataset have the same labels."""
    found: dict[Labels, Rows] = {}
    for partition in partitions:
        labels, values = zip(*partition.values, strict=True) if partition.values else ((), ())
        rows = found.get(labels)
        if rows is None:
            rows = found[labels] = Rows([], [])
        rows.partitions.append(partition)
        rows.values.append(values)
    return found


class CanonicalForms:
    """Partitions in canonical form: labels as observed, values as in :mod:`.model.values`.

    :param budget: for all of them
    :ivar texts: labels of the dimensions that are columns of texts
    """

    def __init__(
        self, seen: Iterable[Dimension], expected: Iterable[Dimension], budget: Budget
    ) -> None:
        self._seen = {d.label: d for d in seen}
        self._formats = {d.label: d.format for d in expected}
        self._budget = budget
        self.texts = {d.label for d in self._seen.values() if kind_of(d) is ValueKind.TEXT}
        self._labels: dict[str, str] = {}
        for dimension in self._seen.values():
            self._labels.setdefault(dimension.label.casefold(), dimension.label)
        for dimension in self._seen.values():
            # An author writes ts= of a table that is partitioned by day(ts).
            for name in dimension.fields if dimension.transform in PRECISION else ():
                self._labels.setdefault(name.casefold(), dimension.label)
        self._with_zone: dict[str, set[bool]] = {}

    def know(self, partitions: Iterable[Labels]) -> bool:
        """Whether all labels are dimensions that were seen; nothing seen contradicts no label."""
        labels = set(chain.from_iterable(partitions))
        return not self._seen or all(label.casefold() in self._labels for label in labels)

    def expected(self, partitions: Mapping[Labels, Rows]) -> dict[Labels, Rows]:
        """Give the canonical forms of expected partitions, by the observed dimensions."""

        def form(label: str) -> tuple[str, str]:
            name = self._labels.get(label.casefold(), label)
            dimension = self._seen.get(name)
            return name, self._formats.get(label, "") or (dimension.format if dimension else "")

        return self._rows(partitions, form)

    def seen(self, partitions: Mapping[Labels, Rows]) -> dict[Labels, Rows]:
        """Give the canonical forms of observed partitions."""

        def form(label: str) -> tuple[str, str]:
            return label, self._seen[label].format if label in self._seen else ""

        return self._rows(partitions, form)

    def _rows(
        self,
        partitions: Mapping[Labels, Rows],
        form_of: Callable[[str], tuple[str, str]],
    ) -> dict[Labels, Rows]:
        """Give canonical forms, by their labels.

        :param form_of: gives a label as it was observed, and the format of its values
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
        """Give values in canonical form; one that many partitions have is made once."""
        self._budget.work(len(values))
        dimension = self._seen.get(label)
        distinct = set(values)
        if len(distinct) == len(values):
            canonical = [canonical_value(value, form, dimension) for value in values]
        else:
            known = {value: canonical_value(value, form, dimension) for value in distinct}
            canonical = [known[value] for value in values]
        if label not in self.texts:
            self._with_zone.setdefault(label, set()).update(
                has_zone(value)
                for value in canonical
                if len(value) > PRECISION["day"] and value != NULL
            )
        return canonical

    def are_comparable(self) -> bool:
        """Whether times have zones on both sides, or on neither; of texts that is no matter."""
        return all(len(kinds) <= 1 for kinds in self._with_zone.values())

    def shapes(
        self, labels: Labels, wanted: Mapping[Row, Partition]
    ) -> Mapping[tuple[int | None, ...], Mapping[Row, Partition]]:
        """Group expected partitions by :meth:`shortened_to` of each of their values."""
        dimensions = (self._seen.get(label) for label in labels)
        if not any(d and d.transform in PRECISION for d in dimensions):
            return {(None,) * len(labels): wanted}
        found: dict[tuple[int | None, ...], dict[Row, Partition]] = {}
        for row, partition in wanted.items():
            shape = tuple(map(self.shortened_to, labels, row))
            found.setdefault(shape, {})[row] = partition
        return found

    def shortened_to(self, label: str, value: str) -> int | None:
        """Give how many characters of a dimension's values an expected value has; None: all."""
        dimension = self._seen.get(label)
        kept = PRECISION.get(dimension.transform) if dimension else None
        return len(value) if kept and len(value) < kept and value[:1].isdigit() else None
