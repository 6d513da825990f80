"""What a task is meant to read and write: declarations and templated paths to expectations.

====================  ==========================================================================
*declared*            the DAG's author says it: ``reads=``, ``writes=``, the run's partition key
*path*                a partition in a path among the task's arguments; it has no side, because an
                      argument does not say whether the job reads or writes there
*inferred*            a date among the arguments; it says where a value comes from, if it is one
====================  ==========================================================================

What may be made of each kind is decided where it meets a dataset: :mod:`.lineage.expected`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.datasets import DatasetName
from airflow_provider_sparklineage.exceptions import DeclarationError
from airflow_provider_sparklineage.moments import canonical, form_of
from airflow_provider_sparklineage.partitioning import NULL, Dimension, Partition
from airflow_provider_sparklineage.references import Reference, references
from airflow_provider_sparklineage.times import digits_in, spelling

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datasets import Naming
    from airflow_provider_sparklineage.rules import PartitionRules
    from airflow_provider_sparklineage.templates import Span, TracedText

_FULL = "%Y-%m-%dT%H:%M:%S"

MAX_PARTITIONS = 100_000
"""Partitions that one declaration may stand for: 11 years of hours."""


# --- what a DAG's author writes -------------------------------------------------------------------


@dataclass(frozen=True)
class PartitionRange:
    """
    All partitions of one dimension from a start to an end.

    :param dimension: the partition column.
    :param start: first value, e.g. ``"{{ macros.ds_add(ds, -6) }}"``. (templated)
    :param end: the value after the last one: the end is exclusive, as that of a data interval.
        (templated)
    :param step: from one value to the next, as an ISO 8601 duration: ``P1D``, ``PT1H``, ``P1M`` …
    """

    dimension: str
    start: str
    end: str
    step: str = "P1D"

    def values(self) -> list[str]:
        """List the values, spelled as ``start`` is.

        :raise DeclarationError: if start, end or step cannot be understood, or if the values would
            be more than :data:`MAX_PARTITIONS`
        """
        import pendulum

        try:
            step = pendulum.parse(self.step)
        except (ValueError, TypeError, AttributeError):
            step = None
        if not isinstance(step, pendulum.Duration) or pendulum.datetime(1, 1, 1) + step == (
            pendulum.datetime(1, 1, 1)
        ):
            msg = f"{self}: the step must be an ISO 8601 duration such as P1D, PT1H or P1M."
            raise DeclarationError(msg)
        form = form_of(self.start, self.end)
        if form is None:
            msg = (
                f"{self}: start and end must be dates or times that are spelled alike, such as "
                "2024-05-01 and 2024-06-01."
            )
            raise DeclarationError(msg)
        values: list[str] = []
        first, end = (
            pendulum.instance(datetime.fromisoformat(spelling(digits_in(form, text) or {}, _FULL)))
            for text in (self.start, self.end)
        )
        for number in itertools.count():
            # From the first one each time: a month after January 31st is not two after December's.
            moment = first + step * number
            if moment >= end:
                return values
            if number == MAX_PARTITIONS:
                msg = f"{self} has more than {MAX_PARTITIONS} values; choose a larger step."
                raise DeclarationError(msg)
            text = spelling(digits_in(_FULL, moment.isoformat()[:19]) or {}, form)
            if values and values[-1] == text:
                msg = f"{self}: the step {self.step} is finer than the values are spelled."
                raise DeclarationError(msg)
            values.append(text)
        return values

    def __str__(self) -> str:
        return f"PartitionRange({self.dimension!r}, {self.start!r}, {self.end!r}, {self.step!r})"


@dataclass(frozen=True)
class DatasetSubset:
    """
    A dataset that a task reads or writes, and which part of it; for ``reads=`` and ``writes=``.

    .. code-block:: python

        reads=[
            DatasetSubset("s3://lake/orders", {"dt": "{{ ds }}"}),
            DatasetSubset("analytics.rates", PartitionRange("dt", "{{ ds }}", "{{ next_ds }}")),
        ]

    :param dataset: URI, absolute path, table identifier or asset. (templated)
    :param partitions: values by dimension, where a list of values stands for each of them; a list
        of such; or a :class:`PartitionRange`. (templated)
    :param where: SQL predicate for what partitions cannot say. (templated)
    """

    dataset: Any
    partitions: Any = None
    where: str | None = None
    template: DatasetSubset | None = field(default=None, repr=False, compare=False)
    """What this was rendered from; set by :meth:`resolve`."""

    def resolve(self, context: Mapping[str, Any]) -> DatasetSubset:
        """Render for one run; Airflow calls this instead of rendering in place.

        All copies of a task share this object, so a run gets a new one.
        """
        render = context["task"].render_template

        def rendered(value: Any) -> Any:
            if isinstance(value, PartitionRange):
                texts = [str(render(t, context)) for t in (value.start, value.end, value.step)]
                return PartitionRange(value.dimension, *texts)
            if isinstance(value, Mapping):
                return {str(key): rendered(item) for key, item in value.items()}
            if isinstance(value, (list, tuple)):
                return [rendered(item) for item in value]
            return render(value, context)

        dataset = self.dataset
        return DatasetSubset(
            render(dataset, context) if isinstance(dataset, str) else dataset,
            rendered(self.partitions),
            rendered(self.where),
            template=self,
        )

    def serialize(self) -> dict[str, Any]:
        """Give what Airflow stores in the serialized DAG: the same for the same declaration."""

        def plain(value: Any) -> Any:
            if isinstance(value, PartitionRange):
                return str(value)
            if isinstance(value, Mapping):
                return {str(key): plain(item) for key, item in value.items()}
            if isinstance(value, (list, tuple)):
                return [plain(item) for item in value]
            return value

        dataset = self.dataset
        return {
            "dataset": dataset if isinstance(dataset, str) else str(getattr(dataset, "uri", "")),
            "partitions": plain(self.partitions),
            "where": self.where,
        }


# --- what is made of it ---------------------------------------------------------------------------


class Kind(StrEnum):
    """Who says what is expected; the order is that of precedence."""

    DECLARED = "declared"
    PATH = "path"
    INFERRED = "inferred"


class Side(StrEnum):
    """Whether a dataset is read or written."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True)
class Source:
    """Where a value comes from.

    :param kind: of the statement that it belongs to
    :param field: of the operator, e.g. ``application_args[5]``
    :param template: the field's text before rendering
    :param value: the value, e.g. ``2024-05-06``
    :param dimension: which it is of; empty where that is not known
    :param expressions: of the template that made it; none if it is literal
    :param variables: execution dates that it was made from, e.g. ``ds``; where no expressions are
        known, those that the template uses
    """

    kind: Kind
    field: str
    template: str
    value: str
    dimension: str = ""
    expressions: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class Expectation:
    """One statement of what is read or written.

    :param side: None for what is said of either side
    :param dataset: None for a table, and for what is said of any dataset with these dimensions
    :param table: identifier as the author wrote it, e.g. ``analytics.revenue``
    :param partitions: with some or all of the dimensions; None for the whole dataset
    :param location: untrimmed name, where a path ends in folders that are no named partition
    :param where: SQL predicate
    :param is_glob: whether values of partitions, or the location, are glob patterns
    """

    kind: Kind
    side: Side | None = None
    dataset: DatasetName | None = None
    table: str = ""
    partitions: tuple[Partition, ...] | None = None
    location: str = ""
    where: str = ""
    is_glob: bool = False
    dimensions: tuple[Dimension, ...] = ()
    sources: tuple[Source, ...] = ()


def from_arguments(
    texts: Iterable[TracedText], naming: Naming, rules: PartitionRules
) -> list[Expectation]:
    """Find partitions in paths, and dates, in what a job is given."""
    found: list[Expectation] = []
    for text in texts:
        named = references(text.value, naming, rules)
        found += [_path(text, reference, rules) for reference in named]
        for span in text.spans:
            value = text.value[span.start : span.end]
            inside = any(r.start < span.end and span.start < r.end for r in named)
            if not inside and span.dates and canonical(value):
                source = _source(Kind.INFERRED, text, [span], value)
                found.append(Expectation(Kind.INFERRED, sources=(source,)))
    return found


def _path(text: TracedText, reference: Reference, rules: PartitionRules) -> Expectation:
    return Expectation(
        Kind.PATH,
        dataset=reference.dataset,
        partitions=(reference.partition,) if reference.partition.values else None,
        location=reference.location or "",
        is_glob=reference.is_glob,
        dimensions=dimensions_of(reference.dataset, reference.partition, rules),
        sources=_path_sources(Kind.PATH, text, reference),
    )


def _path_sources(kind: Kind, text: TracedText, reference: Reference) -> tuple[Source, ...]:
    values = reference.partition.as_dict()
    sources = []
    for label, value in values.items():
        ranges = [(v.start, v.end) for v in reference.values if v.label == label]
        spans = [s for s in text.spans if any(s.start < e and b < s.end for b, e in ranges)]
        sources.append(_source(kind, text, spans, value, label))
    if not values:
        spans = [s for s in text.spans if s.start < reference.end and reference.start < s.end]
        dated = [s for s in spans if s.dates]
        if dated or reference.location:
            sources.append(_source(kind, text, dated, reference.uri))
    return tuple(sources)


def _source(
    kind: Kind, text: TracedText, spans: Sequence[Span], value: str, dimension: str = ""
) -> Source:
    return Source(
        kind,
        text.field,
        text.template,
        value,
        dimension,
        tuple(dict.fromkeys(span.expression for span in spans)),
        tuple(sorted({variable for span in spans for variable in span.dates}))
        if text.spans
        else text.variables,
    )


def dimensions_of(
    dataset: DatasetName, partition: Partition, rules: PartitionRules
) -> tuple[Dimension, ...]:
    """Give the dimensions of a partition: those of the rule for the dataset, else its columns."""
    spec = rules.spec(dataset)
    known = {d.label: d for d in spec.dimensions} if spec else {}
    return tuple(known.get(label) or Dimension.of(label) for label, _ in partition.values)


def declared(
    side: Side,
    identity: DatasetName | str,
    entry: DatasetSubset,
    texts: Iterable[TracedText],
    rules: PartitionRules,
    reference: Reference | None = None,
) -> Expectation:
    """Make an expectation of a declaration.

    :param identity: dataset or table identifier that ``entry.dataset`` stands for
    :param texts: the traced texts of the declaration
    :param reference: what a URI or path names; its partition counts if the entry has none
    :raise DeclarationError: if it cannot be understood
    """
    dataset = identity if isinstance(identity, DatasetName) else None
    partitions = _declared_partitions(entry)
    if partitions is None and reference is not None and reference.partition.values:
        partitions = (reference.partition,)
    labels = dict.fromkeys(label for p in partitions or () for label, _ in p.values)
    return Expectation(
        Kind.DECLARED,
        side,
        dataset,
        table="" if isinstance(identity, DatasetName) else identity,
        partitions=partitions,
        location=(reference.location if reference else None) or "",
        where=entry.where or "",
        is_glob=reference is not None and reference.is_glob,
        dimensions=dimensions_of(
            dataset or DatasetName("", ""), Partition(tuple((label, "") for label in labels)), rules
        ),
        sources=tuple(_declared_sources(entry, list(texts), reference)),
    )


def _declared_sources(
    entry: DatasetSubset, texts: Sequence[TracedText], reference: Reference | None
) -> Iterable[Source]:
    for text in texts:
        if ".partitions" in text.field and not text.field.endswith(".step"):
            dimension = _dimension_in(text.field, entry.partitions)
            yield _source(Kind.DECLARED, text, text.spans, text.value, dimension)
        elif text.field.endswith(".where"):
            yield _source(Kind.DECLARED, text, text.spans, text.value)
        elif reference is not None and text.value == entry.dataset:
            yield from _path_sources(Kind.DECLARED, text, reference)


def _dimension_in(field: str, partitions: object) -> str:
    """``dt`` of ``reads[0].partitions[dt]`` and of ``reads[0].partitions.start``."""
    below = field.partition(".partitions")[2]
    keys: list[str] = re.findall(r"\[([^\[\]]+)\]", below)
    named = [key for key in keys if not key.isdigit()]
    if named:
        return named[-1]
    if below.startswith(".") and isinstance(partitions, PartitionRange):
        return partitions.dimension
    return ""


def _declared_partitions(entry: DatasetSubset) -> tuple[Partition, ...] | None:
    said = entry.partitions
    if said is None:
        return None
    parts = said if isinstance(said, (list, tuple)) else [said]
    found: dict[Partition, None] = {}
    for part in parts:
        if isinstance(part, PartitionRange):
            found |= {Partition.of([(part.dimension, v)]): None for v in part.values()}
        elif isinstance(part, Mapping):
            found |= dict.fromkeys(_product(entry, part))
        else:
            msg = (
                f"The partitions of {entry.dataset} hold {part!r}; each must be a mapping of "
                'dimensions to values, such as {"dt": "2024-05-06"}, or a PartitionRange.'
            )
            raise DeclarationError(msg)
    return tuple(sorted(found))


def _product(entry: DatasetSubset, part: Mapping[Any, Any]) -> Iterable[Partition]:
    choices = [_choices(entry, str(label), value) for label, value in part.items()]
    size = 1
    for choice in choices:
        size *= len(choice)
    if size > MAX_PARTITIONS:
        msg = (
            f"The partitions of {entry.dataset} are {size}, more than the {MAX_PARTITIONS} that a "
            "declaration may stand for; say them with where=."
        )
        raise DeclarationError(msg)
    return (Partition.of(values) for values in itertools.product(*choices))


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
    msg = (
        f"The value of {label} in the partitions of {entry.dataset} is {value!r}; it must be a "
        "text, a number, a date, None for null, or a list of such."
    )
    raise DeclarationError(msg)


# --- the run's partition key ----------------------------------------------------------------------


def from_partition_key(key: str, dimensions: str | Sequence[str]) -> list[Expectation]:
    """Make expectations of the partition key of a run.

    The key says which partition the run is to make: it is declared of every output that has the
    dimensions, and inferred of inputs.

    :param key: ``2024-05-06|PL``
    :param dimensions: ``["dt"]``, several for a key with ``|`` between values, or a pattern such
        as ``"{dt}|{region}"``
    :raise DeclarationError: if the key does not fit
    """
    values = _key_values(key, dimensions)
    template = (
        dimensions if isinstance(dimensions, str) else "|".join(f"{{{d}}}" for d in dimensions)
    )

    def source(kind: Kind, label: str, value: str) -> Source:
        key = ("partition_key",)
        return Source(kind, "partition_key_dimensions", template, value, label, key, key)

    return [
        Expectation(
            Kind.DECLARED,
            Side.WRITE,
            partitions=(Partition.of(values),),
            dimensions=tuple(Dimension.of(label) for label, _ in values),
            sources=tuple(source(Kind.DECLARED, *value) for value in values),
        ),
        *(
            Expectation(Kind.INFERRED, Side.READ, sources=(source(Kind.INFERRED, label, value),))
            for label, value in values
        ),
    ]


def _key_values(key: str, dimensions: str | Sequence[str]) -> list[tuple[str, str]]:
    if isinstance(dimensions, str):
        parts = re.split(r"\{(\w+)\}", dimensions)
        labels = parts[1::2]
    else:
        labels = [str(d) for d in dimensions]
        between = [part for label in labels for part in (label, "|")]
        parts = ["", *between[:-1], ""]
    if not labels or len(set(labels)) != len(labels):
        msg = (
            f"partition_key_dimensions is {dimensions!r}; it must name each dimension once, as "
            'in ["dt"] or "{dt}|{region}".'
        )
        raise DeclarationError(msg)
    pattern = "".join(
        re.escape(part) if number % 2 == 0 else "(.+?)" for number, part in enumerate(parts)
    )
    match = re.fullmatch(pattern, key, re.DOTALL)
    if match is None:
        msg = f"The partition key {key!r} does not fit partition_key_dimensions={dimensions!r}."
        raise DeclarationError(msg)
    return list(zip(labels, match.groups(), strict=True))
