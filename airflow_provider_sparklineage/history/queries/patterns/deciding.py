"""Deciding what the axes of partitions are: lines of times, of whole numbers, or of texts.

==================================  ================================================================
``dt=2024-10-15``, ``20241015``     times in a format that nearly all values are in; its finest
                                    directive is the unit (``2024-05`` is a month, ``2024-W20`` a
                                    week); timestamps all at midnight are days
``year=2024/month=5/day=6``         one axis of days, of several dimensions
``ts_day=19849``                    a number; also, where that explains more, days (months, hours)
                                    from 1970 on, as Iceberg counts them
``region=eu``, anything else        texts
==================================  ================================================================

Which it is, the values of a dataset decide together: ``202405`` alone may be any number.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import islice, permutations
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.queries.patterns.axes import (
    WHOLE_NUMBER,
    Axes,
    Axis,
    Columns,
    Counts,
    Numbers,
    Times,
    values_of,
)
from airflow_provider_sparklineage.history.queries.patterns.units import (
    NUMBER,
    UNITS,
    number_of,
    start_of,
)
from airflow_provider_sparklineage.model.timestamps import date_of_columns, parsed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

_FORMATS = {
    "%Y-%m-%d": "day",
    "%Y%m%d": "day",
    "%Y/%m/%d": "day",
    "%Y-%m": "month",
    "%Y%m": "month",
    "%G-W%V": "week",
    "%GW%V": "week",
    "%Y-%m-%dT%H": "hour",
    "%Y-%m-%d %H": "hour",
    "%Y-%m-%d-%H": "hour",
    "%Y-%m-%d_%H": "hour",
    "%Y%m%d%H": "hour",
    "%Y%m%dT%H": "hour",
    "%Y-%m-%dT%H:%M:%S": "minute",
    "%Y-%m-%d %H:%M:%S": "minute",
    "%Y-%m-%dT%H:%M": "minute",
    "%Y-%m-%d %H:%M": "minute",
    "%Y%m%d%H%M": "minute",
    "%Y": "year",
}
_YEARS = range(1900, 2201)  # of digits without separators, which may be any number
_SAMPLE = 200
_MOST = 0.9  # of the values decide; a folder may have a stray one
# Plausible counts from 1970 on: about 1990 to 2100. Smaller ones are hours, days of months, ids.
_EPOCHS = {
    "day": range(7_300, 47_500),
    "hour": range(175_000, 1_140_000),
    "month": range(240, 1_560),
}
_PARTS = (
    ("month", ("2001", "2"), "2001-02"),
    ("day", ("2001", "2", "3"), "2001-02-03"),
    ("hour", ("2001", "2", "3", "4"), "2001-02-03T04"),
)


def axes_of(cells: Collection[str]) -> Axes:
    """Decide what the axes of cells are, by the dimensions that most of them have."""
    sample = [values_of(cell) for cell in _spread(cells)]
    labels = Counter(frozenset(values) for values in sample)
    if not labels:
        return Axes(frozenset(), ())
    chosen = labels.most_common(1)[0][0]
    rows = [values for values in sample if values.keys() == chosen]
    columns = _columns(rows)
    rest = sorted(chosen - set(columns.labels if columns else ()))
    single = (_single(label, [row[label] for row in rows]) for label in rest)
    return Axes(chosen, (*((columns,) if columns else ()), *single))


def counted(axis: Axis, values: Sequence[int]) -> list[Axis]:
    """List what else an axis of numbers may be: periods since 1970."""
    return [
        Counts(axis.labels, unit)
        for unit, plausible in _EPOCHS.items()
        if values and all(value in plausible for value in values)
    ]


def _spread(cells: Collection[str]) -> Iterable[str]:
    """Take some thousand from all over, whatever their number."""
    step = max(1, len(cells) // (_SAMPLE * 5))
    return islice(cells, 0, None, step)


def _single(label: str, values: Sequence[str]) -> Axis:
    distinct = list(dict.fromkeys(values))[:_SAMPLE]
    for form, unit in _FORMATS.items():
        times = [at for v in distinct if (at := parsed(v, form)) and _is_plausible(at, form)]
        if times and len(times) >= _MOST * len(distinct):
            return Times((label,), _coarsest(times, unit), form)
    whole = [value for value in distinct if WHOLE_NUMBER.fullmatch(value)]
    if whole and len(whole) >= _MOST * len(distinct):
        padded = any(len(value) > 1 and value.startswith("0") for value in whole)
        return Numbers((label,), NUMBER, max(map(len, whole)) if padded else 0)
    return Axis((label,))


def _is_plausible(at: datetime, form: str) -> bool:
    return at.year in _YEARS or "-" in form


def _coarsest(times: Iterable[datetime], unit: str) -> str:
    """Timestamps of a table by day are all at midnight."""
    if unit != "minute":
        return unit
    units = UNITS[: UNITS.index("day") + 1]
    return max(
        (one for one in units if all(start_of(one, number_of(one, at)) == at for at in times)),
        key=units.index,
        default="minute",
    )


def _columns(rows: Sequence[Mapping[str, str]]) -> Columns | None:
    found = _parts(tuple(sorted(rows[0])))
    if found is None:
        return None
    unit, labels = found
    axis = Columns(labels, unit, tuple(_width(rows, label) for label in labels))
    good = sum(axis.read(row) is not None for row in rows)
    return axis if good >= _MOST * len(rows) else None


def _width(rows: Sequence[Mapping[str, str]], label: str) -> int:
    padded = any(len(row[label]) > 1 and row[label].startswith("0") for row in rows)
    return max(len(row[label]) for row in rows) if padded else 1


@lru_cache(maxsize=256)
def _parts(labels: tuple[str, ...]) -> tuple[str, tuple[str, ...]] | None:
    """Find which dimensions are year, month, … by trying what they would be together."""
    if len(labels) > 6:  # all orders of more would be many, and nobody has them
        return None
    for unit, probe, result in reversed(_PARTS):
        for order in permutations(labels, len(probe)):
            if date_of_columns(zip(order, probe, strict=True)) == result:
                return unit, order
    return None
