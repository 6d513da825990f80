"""Declarations that a DAG's author writes in ``reads=`` and ``writes=``, and their partitions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.model.exceptions import DeclarationError
from airflow_provider_sparklineage.model.partitioning import NULL, Partition
from airflow_provider_sparklineage.model.timestamps import common_format, parsed, written

if TYPE_CHECKING:
    from pendulum import DateTime, Duration


MAX_PARTITIONS = 100_000
"""The most partitions of one declaration, as many as 11 years have hours."""


@dataclass(frozen=True)
class PartitionRange:
    """
    All partitions of one dimension from a start to an end.

    :param dimension: the partition column.
    :param start: first value, e.g. ``"{{ macros.ds_add(ds, -6) }}"``. (templated)
    :param end: the exclusive end: the value after the last value, as in a data interval.
        (templated)
    :param step: the time from a value to the next, as an ISO 8601 duration: ``P1D``, ``PT1H``,
        ``P1M`` …
    """

    dimension: str
    start: str
    end: str
    step: str = "P1D"

    def values(self) -> list[str]:
        """List the values, in the format of ``start``.

        :raise DeclarationError: if start, end or step is invalid, or if there would be more than
            :data:`MAX_PARTITIONS` values
        """
        import pendulum

        form = common_format(self.start, self.end)
        start, end = (parsed(text, form) if form else None for text in (self.start, self.end))
        if form is None or start is None or end is None:
            msg = (
                f"{self}: start and end must be dates or times in one format, such as "
                "2024-05-01 and 2024-06-01."
            )
            raise DeclarationError(msg)
        step = self._step()
        first, stop = (pendulum.instance(at) for at in (start, end))  # in UTC, as none has a zone
        if _plus(first, step * MAX_PARTITIONS) < stop:
            problem = f"{self} has more than {MAX_PARTITIONS} values."
            raise DeclarationError(problem, "Choose a larger step.")
        times = itertools.takewhile(
            # Each value is computed from the start. If it were computed from the value before it,
            # a step of a month would lead from January 31st to February 28th, and to March 28th.
            lambda at: at < stop,
            (_plus(first, step * number) for number in itertools.count()),
        )
        values = [written(at, form) for at in times]
        if len(set(values)) < len(values):
            msg = f"{self}: the step {self.step} is finer than the format of the values."
            raise DeclarationError(msg)
        return values

    def _step(self) -> Duration:
        import pendulum

        try:
            step = pendulum.parse(self.step)
        except (ValueError, TypeError, AttributeError):
            step = None
        epoch = pendulum.datetime(1970, 1, 1)
        if not isinstance(step, pendulum.Duration) or epoch + step <= epoch:
            msg = f"{self}: the step must be an ISO 8601 duration such as P1D, PT1H or P1M."
            raise DeclarationError(msg)
        return step

    def __str__(self) -> str:
        return f"PartitionRange({self.dimension!r}, {self.start!r}, {self.end!r}, {self.step!r})"


def _plus(at: DateTime, step: Duration) -> DateTime:
    import pendulum

    try:
        return at + step
    except (ValueError, OverflowError):  # later than any date
        return pendulum.DateTime.max


def listed(value: object) -> list[Any]:
    """List the declarations in ``reads`` or ``writes``; [] for None, [value] for a single one."""
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


@dataclass(frozen=True)
class DatasetSubset:
    """
    A dataset that a task reads or writes, or a part of a dataset; for ``reads=`` and ``writes=``.

    .. code-block:: python

        reads=[
            DatasetSubset("s3://lake/orders", {"dt": "{{ ds }}"}),
            DatasetSubset("analytics.rates", PartitionRange("dt", "{{ ds[:7] }}-01", "{{ ds }}")),
        ]

    :param dataset: URI, absolute path, table identifier or asset. (templated)
    :param partitions: a mapping of dimensions to values, where a dimension may have a list of
        values; a list of such mappings; or a :class:`PartitionRange`. (templated)
    :param where: SQL predicate for a part of the dataset that partitions cannot express.
        (templated)
    """

    dataset: Any
    partitions: Any = None
    where: str | None = None
    template: DatasetSubset | None = field(default=None, repr=False, compare=False)
    """The declaration before rendering, which :meth:`resolve` sets; None before that."""

    def resolve(self, context: Mapping[str, Any]) -> DatasetSubset:
        """Give the declaration rendered for one run; Airflow calls this to render template fields.

        The result is a new object, because all copies of a task share this one.
        """
        render = context["task"].render_template

        def rendered(value: Any) -> Any:
            if isinstance(value, PartitionRange):
                texts = [str(render(t, context)) for t in (value.start, value.end, value.step)]
                return PartitionRange(value.dimension, *texts)
            if isinstance(value, str) and "{" not in value:
                return value  # native rendering would turn the text 1.10 into the number 1.1
            return render(value, context)

        dataset = self.dataset
        return DatasetSubset(
            render(dataset, context) if isinstance(dataset, str) else dataset,
            _with_leaves(rendered, self.partitions),
            _with_leaves(rendered, self.where),
            template=self,
        )

    def serialize(self) -> dict[str, Any]:
        """Give the form that Airflow stores in the serialized DAG.

        Equal declarations have equal forms in each process. Otherwise Airflow would store a new
        version of the DAG each time.
        """

        def plain(value: Any) -> Any:
            if isinstance(value, PartitionRange):
                return str(value)
            if isinstance(value, (set, frozenset)):  # a set's own order differs by process
                return sorted((_with_leaves(plain, item) for item in value), key=str)
            return value

        dataset = self.dataset
        return {
            "dataset": dataset if isinstance(dataset, str) else str(getattr(dataset, "uri", "")),
            "partitions": _with_leaves(plain, self.partitions),
            "where": self.where,
        }

    def __str__(self) -> str:
        """Give the same text in each process, because Airflow stores it for mapped tasks."""
        arguments = ", ".join(f"{key}={value!r}" for key, value in self.serialize().items())
        return f"DatasetSubset({arguments})"


def _with_leaves(changed: Callable[[Any], Any], value: Any) -> Any:
    """Copy nested mappings, lists and tuples, with ``changed(…)`` in place of each value in them.

    The copies are dicts and lists. Any other value counts as a single value.
    """
    if isinstance(value, Mapping):
        return {str(key): _with_leaves(changed, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_leaves(changed, item) for item in value]
    return changed(value)


# --- the partitions of a declaration, from each form in which the author may write them -----------


def declared_partitions(entry: DatasetSubset) -> tuple[Partition, ...] | None:
    """List the partitions of the declaration ``entry``; None for the full dataset.

    :raise DeclarationError: if the partitions are invalid, or more than :data:`MAX_PARTITIONS`
    """
    declared = entry.partitions
    if declared is None:
        return None
    parts = declared if isinstance(declared, (list, tuple)) else [declared]
    partitions: dict[Partition, None] = {}
    for part in parts:
        if isinstance(part, PartitionRange):
            label = _label(entry, part.dimension)
            partitions |= {Partition.from_values([(label, v)]): None for v in part.values()}
        elif isinstance(part, Mapping):
            partitions |= dict.fromkeys(_product(entry, part))
        else:
            problem = f"The partitions of {entry.dataset} hold {part!r}."
            fix = (
                "Each must be a mapping of "
                'dimensions to values, such as {"dt": "2024-05-06"}, or a PartitionRange.'
            )
            raise DeclarationError(problem, fix)
    # A partition without any value is the full dataset.
    return None if Partition() in partitions else tuple(sorted(partitions))


def _product(entry: DatasetSubset, part: Mapping[Any, Any]) -> Iterable[Partition]:
    labels = [_label(entry, label) for label in part]
    if len({label.casefold() for label in labels}) < len(labels):
        msg = f"The partitions of {entry.dataset} name a column twice: {', '.join(labels)}."
        raise DeclarationError(msg)
    choices = [_choices(entry, *one) for one in zip(labels, part.values(), strict=True)]
    size = math.prod(map(len, choices))
    if size > MAX_PARTITIONS:
        problem = (
            f"The partitions of {entry.dataset} are {size}, more than the {MAX_PARTITIONS} that a "
            "declaration may stand for."
        )
        raise DeclarationError(problem, "Use where= instead.")
    return (Partition.from_values(values) for values in itertools.product(*choices))


def _label(entry: DatasetSubset, label: object) -> str:
    if isinstance(label, str) and label:
        return label
    problem = f"A dimension in the partitions of {entry.dataset} is {label!r}."
    fix = "It must be a column."
    raise DeclarationError(problem, fix)


def _choices(entry: DatasetSubset, label: str, value: object) -> list[tuple[str, str | None]]:
    if isinstance(value, PartitionRange):
        return [(label, v) for v in replace(value, dimension=label).values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [(label, _text(entry, label, v)) for v in value]
    return [(label, _text(entry, label, value))]


def _text(entry: DatasetSubset, label: str, value: object) -> str | None:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    problem = f"The value of {label} in the partitions of {entry.dataset} is {value!r}."
    fix = "It must be a text, a number, a date, None for null, or a list of such."
    raise DeclarationError(problem, fix)
