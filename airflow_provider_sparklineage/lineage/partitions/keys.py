"""Fit the partition keys that a schedule names to the partitions of a dataset.

A key such as ``2024-05-06`` or ``2024-05-06|PL`` has no names of columns, and its times may be more
or less precise than the dataset's partitions. The columns are found in this order:

1. a rule names them (``partition_key`` of a partitioning rule)
2. the dataset has as many dimensions as the key has values, and at most one of them is no time; the
   order is that of the dimensions
3. the key is one time, and the dataset has columns for year, month and day, or one column of times

Then a time is cut to the precision of the column: the partition of a day has all of its hours. If
it is less precise it stands for all partitions in it: ``2024-05`` for all days of May.

Texts may be written in another way than in the dataset, so that without a rule they fit only if the
job accessed partitions with these very texts.

Keys that cannot be fitted are left as they are. Then nothing is compared
(:class:`~.comparison.PartitionStatus` ``unobserved``): a wrong guess would be a false alarm.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from airflow_provider_sparklineage.expectations.schedule import KEY
from airflow_provider_sparklineage.model import timestamps
from airflow_provider_sparklineage.model.partitioning import (
    NULL,
    Dimension,
    Partition,
    ValueKind,
    canonical_value,
    kind_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sparklineage.expectations import Expectation
    from airflow_provider_sparklineage.lineage.observed.accesses import Subset

_DELIMITER = "|"
_SAMPLE = 100
"""Most partitions that are looked at to learn how a column writes its times: all do it alike."""
_GLOB = "*"
_YEAR = re.compile(r"\d{4}", re.ASCII)
_WEEK = re.compile(r"(\d{4}-\d\d-\d\d) \(W\d\d\)", re.ASCII)
"""A week as Airflow's ``StartOfWeekMapper`` writes it: its Monday, and its number."""
_PARTS = {"%Y": slice(0, 4), "%m": slice(5, 7), "%d": slice(8, 10), "%H": slice(11, 13)}
"""The place of each part of a time in ISO 8601."""

_Pairs = list[tuple[str, str]]
"""Pairs of label and value, as a partition has them."""


def fitted(expectation: Expectation, seen: Subset) -> Expectation | None:
    """Give an expectation of a schedule the columns, and the precision, of its dataset.

    :param expectation: an expectation of the kind SCHEDULE
    :param seen: the observed partitions
    :return: None if the dataset is not partitioned, so that its reads have no partitions to
        compare; the expectation itself if its keys do not fit
    """
    if not seen.dimensions:
        return None
    columns = {d.label: _Column.of(d, seen) for d in seen.dimensions}
    fits = [_fit(p.values, columns) for p in expectation.partitions or ()]
    partitions = [Partition(tuple(pairs)) for pairs in fits if pairs]
    if len(partitions) < len(fits):
        return expectation
    labels = {label for partition in partitions for label, _ in partition.values}
    return replace(
        expectation,
        partitions=tuple(sorted(set(partitions))),
        is_glob=any(value.endswith(_GLOB) for p in partitions for _, value in p.values),
        dimensions=tuple(d for d in seen.dimensions if d.label in labels),
    )


def _fit(values: Sequence[tuple[str, str]], columns: Mapping[str, _Column]) -> _Pairs | None:
    """Give the values of a key with their columns; None if the key does not fit."""
    if not values[0][0].startswith(KEY) or values[0][0] in columns:
        by_name = {label.casefold(): column for label, column in columns.items()}
        named = [(by_name.get(label.casefold()), value) for label, value in values]
        fits = [(column.label, column.fit(value)) for column, value in named if column]
        return _all_known(fits) if len(fits) == len(named) else None
    texts = [text for _, value in values for text in value.split(_DELIMITER)]
    if len(texts) == 1 and len(columns) > 1:
        return _fit_time(texts[0], columns)
    if len(texts) != len(columns) or sum(not one.precision for one in columns.values()) > 1:
        return None
    pairs = zip(columns.values(), texts, strict=True)
    return _all_known([(column.label, column.fit_unruled(text)) for column, text in pairs])


def _all_known(fits: Sequence[tuple[str, str | None]]) -> _Pairs | None:
    pairs = [(label, value) for label, value in fits if value is not None]
    return pairs if len(pairs) == len(fits) else None


def _fit_time(text: str, columns: Mapping[str, _Column]) -> _Pairs | None:
    """Give a time as values of the columns of a date, or of the one column of times."""
    time = _time(text)
    if time is None:
        return None
    of_parts = {timestamps.directive_of_column(label): label for label in columns}
    if {"%Y", "%m"} <= of_parts.keys():
        parts = [(of_parts[part], time[at]) for part, at in _PARTS.items() if part in of_parts]
        return [(label, columns[label].padded(digits)) for label, digits in parts if digits]
    of_times = [column for column in columns.values() if column.precision]
    if len(of_times) != 1:
        return None
    value = of_times[0].fit(text)
    return None if value is None else [(of_times[0].label, value)]


class _Column(NamedTuple):
    """A dimension of the dataset, and how it writes its values.

    :param precision: how many characters of ISO 8601 its times have; 0 if its values are no times;
        None if that is not known
    :param is_padded: whether ``5`` is written as ``05``
    :param texts: the values that were accessed, if they are no times
    """

    label: str
    precision: int | None
    is_padded: bool = True
    texts: frozenset[str] = frozenset()

    @classmethod
    def of(cls, dimension: Dimension, seen: Subset) -> _Column:
        some = (p.as_dict().get(dimension.label, NULL) for p in islice(seen.partitions, _SAMPLE))
        values = [value for value in some if value != NULL]
        is_padded = not any(len(value) == 1 for value in values)
        if dimension.transform in timestamps.PRECISION:
            return cls(dimension.label, timestamps.PRECISION[dimension.transform], is_padded)
        if kind_of(dimension) is ValueKind.DATE:
            return cls(dimension.label, timestamps.PRECISION["day"], is_padded)
        canonical = [canonical_value(value, dimension.format, dimension) for value in values]
        is_year = timestamps.directive_of_column(dimension.label) == "%Y"
        if canonical and is_year and all(map(_YEAR.fullmatch, canonical)):
            return cls(dimension.label, timestamps.PRECISION["year"], is_padded)
        lengths = {len(text) if timestamps.may_be_date(text) else 0 for text in canonical}
        precision = max(lengths, default=None)
        if precision and not any(map(timestamps.has_zone, canonical)):
            return cls(dimension.label, precision, is_padded)
        texts = frozenset(p.as_dict().get(dimension.label, NULL) for p in seen.partitions)
        return cls(dimension.label, precision and 0, is_padded, texts)

    def fit(self, text: str) -> str | None:
        """Give a value of a key as the column has it; None if one is a time and the other is not.

        :param text: the value; with a ``*`` at its end it stands for all times that begin so
        """
        time = _time(text)
        if self.precision is None:
            return text
        if not self.precision or time is None:
            is_text = not self.precision and timestamps.canonical_time(text) is None
            return text if is_text and not text.endswith(_GLOB) else None
        return time[: self.precision] if len(time) >= self.precision else f"{time}{_GLOB}"

    def fit_unruled(self, text: str) -> str | None:
        """Do as :meth:`fit` where no rule says how the column's values are written in keys."""
        is_time = self.precision != 0
        return self.fit(text) if is_time or text in self.texts else None

    def padded(self, digits: str) -> str:
        """Give a part of a date as the column writes it."""
        return digits if self.is_padded else digits.lstrip("0") or "0"


def _time(text: str) -> str | None:
    """Give the time of a key in ISO 8601, without a zone; None if it is no time, or has a zone."""
    begin = text.removesuffix(_GLOB)
    if _YEAR.fullmatch(begin):
        return begin
    if week := _WEEK.fullmatch(begin):
        return week[1]
    time = timestamps.canonical_time(begin)
    return None if time is None or timestamps.has_zone(timestamps.in_utc(time)) else time
