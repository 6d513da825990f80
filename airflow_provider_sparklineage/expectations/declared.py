"""The datasets of a task that are known before its job runs: their names and expected subsets."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import msgspec
from msgspec import field

from airflow_provider_sparklineage.expectations import Expectation, Kind, Source
from airflow_provider_sparklineage.expectations.declarations import (
    DatasetSubset,
    PartitionRange,
    declared_partitions,
    listed,
)
from airflow_provider_sparklineage.expectations.references import Reference, references
from airflow_provider_sparklineage.model.credentials import scrub_name
from airflow_provider_sparklineage.model.datasets import DatasetName, Naming
from airflow_provider_sparklineage.model.exceptions import DeclarationError
from airflow_provider_sparklineage.model.partitioning import Dimension, KeyPattern, Partition
from airflow_provider_sparklineage.model.terms import Frozen, Side
from airflow_provider_sparklineage.model.timestamps import canonical_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.model.locations import Locator
    from airflow_provider_sparklineage.model.rules import PartitionRules
    from airflow_provider_sparklineage.templates import Span, TracedText


class Declared(Frozen, frozen=True):
    """The datasets and expectations of a task that are known before its job runs.

    :param problems: sentences about invalid declarations
    :param naming: the Spark properties that change how the listener names datasets
    """

    inputs: tuple[DatasetName, ...] = ()
    outputs: tuple[DatasetName, ...] = ()
    expectations: tuple[Expectation, ...] = ()
    problems: tuple[str, ...] = ()
    naming: Mapping[str, str] = field(default_factory=dict)


class TaskFields(Frozen, frozen=True):
    """The rendered fields of a task that name datasets.

    :param texts: the rendered texts, each with its template
    :param inlets: the datasets of the task's ``inlets``; an inlet is always a full dataset
    :param outlets: the datasets of the task's ``outlets``
    :param reads: the value that the author gave: one declaration, or a collection of declarations;
        the same holds for ``writes``
    :param partition_key: the partition key of the run; None if it has none
    :param partition_key_dimensions: the dimensions of the key, as for :func:`from_partition_key`;
        None if the author gave none
    """

    texts: Sequence[TracedText] = ()
    inlets: Sequence[DatasetName] = ()
    outlets: Sequence[DatasetName] = ()
    reads: object = None
    writes: object = None
    partition_key: str | None = None
    partition_key_dimensions: str | Sequence[str] | None = None


def declared(
    task: TaskFields, locator: Locator, named: Callable[[object], DatasetName | None]
) -> Declared:
    """Find the datasets that a task names, and the expectations that the task gives.

    :param locator: finds the dataset and the partition of a path
    :param named: a function that gives the dataset of an object, such as an asset, or None if it is
        not known
    :return: the datasets and expectations, and a problem for each invalid declaration; no error is
        raised for these
    """
    datasets = {Side.READ: [*task.inlets], Side.WRITE: [*task.outlets]}
    expectations: list[Expectation] = []
    problems = _naming_problems(locator.naming)
    for side, name, entries in (
        (Side.READ, "reads", task.reads),
        (Side.WRITE, "writes", task.writes),
    ):
        for field_name, subset in _subsets(name, entries):
            texts = [t for t in task.texts if t.field.startswith(field_name)]
            try:
                expectation = from_declaration(side, subset, texts, locator, named)
            except DeclarationError as error:
                problems.append(f"{field_name}: {error}")
                continue
            expectations.append(expectation)
            if expectation.dataset is not None:  # the dataset of a table is not known yet
                datasets[side].append(expectation.dataset)
    arguments = [t for t in task.texts if not t.field.startswith(("reads", "writes"))]
    expectations += from_arguments(arguments, locator)
    if task.partition_key and task.partition_key_dimensions:
        try:
            expectations += from_partition_key(task.partition_key, task.partition_key_dimensions)
        except DeclarationError as error:
            problems.append(str(error))
    return Declared(
        tuple(dict.fromkeys(datasets[Side.READ])),
        tuple(dict.fromkeys(datasets[Side.WRITE])),
        tuple(expectations),
        tuple(problems),
    )


def _naming_problems(naming: Naming) -> list[str]:
    unmirrored = [*naming.unknown_trimmers, *filter(None, [naming.unusable_pattern])]
    if not unmirrored:
        return []
    return [
        "Datasets cannot be named here as the listener names them, because of "
        f"{', '.join(unmirrored)}; expected partitions may not meet their datasets."
    ]


def _subsets(name: str, entries: object) -> Iterator[tuple[str, DatasetSubset]]:
    """Yield the declarations of ``reads`` or ``writes``, each with its place, as in ``reads[0]``.

    A declaration whose template could not be rendered is left out, because it names no dataset.

    :param name: ``reads`` or ``writes``
    :param entries: the value of that argument, as in :class:`TaskFields`
    """
    for number, entry in enumerate(listed(entries)):
        subset = entry if isinstance(entry, DatasetSubset) else DatasetSubset(entry)
        if subset.template or not any(begin in repr(subset) for begin in ("{{", "{%")):
            yield f"{name}[{number}]", subset


def from_declaration(
    side: Side,
    subset: DatasetSubset,
    texts: Sequence[TracedText],
    locator: Locator,
    named: Callable[[object], DatasetName | None],
) -> Expectation:
    """Make the expectation of a declaration.

    If the declaration has no partitions, the partition in its URI or path is expected.

    :param side: READ for a declaration of ``reads``, WRITE for one of ``writes``
    :param subset: the declaration, rendered
    :param texts: the traced texts of the declaration
    :param locator: as for :func:`declared`
    :param named: as for :func:`declared`
    :raise DeclarationError: if the declaration is invalid, or cannot be written as JSON, which
        manifest and event need
    """
    dataset, table, reference = None, "", None
    if not isinstance(subset.dataset, str):
        dataset = named(subset.dataset)
        if dataset is None:
            msg = f"No OpenLineage dataset is known for {subset.dataset!r}."
            raise DeclarationError(msg)
    elif paths := references(subset.dataset, locator):
        reference = paths[0]
        dataset = reference.dataset
    else:
        table = _table(subset.dataset)
    where: object = subset.where  # a template may render to any type
    if not isinstance(where, (str, type(None))):
        problem = f"where= of {subset.dataset} is {where!r}."
        fix = "It must be a text, a SQL predicate."
        raise DeclarationError(problem, fix)
    partitions = declared_partitions(subset)
    if partitions is None and reference is not None and reference.partition.values:
        partitions = (reference.partition,)
    labels = dict.fromkeys(label for p in partitions or () for label, _ in p.values)
    expectation = Expectation(
        Kind.DECLARED,
        side,
        dataset,
        table,
        partitions,
        location=(reference and reference.location) or "",
        where=where or "",
        is_glob=reference is not None and reference.is_glob,
        dimensions=_dimensions(dataset or DatasetName("", ""), labels, locator.rules),
        sources=tuple(_declared_sources(subset, texts, reference)),
    )
    try:
        msgspec.json.encode(expectation)
    except (TypeError, ValueError) as error:  # half of a surrogate pair is the latter
        msg = f"it cannot be written as JSON ({error})."
        raise DeclarationError(msg) from error
    return expectation


# catalog.namespace.table, with or without backquotes
_TABLE = re.compile(r"(`[^`]+`|[\w-]+)(\.(`[^`]+`|[\w-]+)){0,3}")


def _table(text: str) -> str:
    if scrub_name(text) != text:
        msg = "a URI must not have a user's name and password in it."
        raise DeclarationError(msg)
    if not _TABLE.fullmatch(text.strip()):
        problem = f"{text!r} names no dataset."
        fix = (
            "It must be a URI that Spark reads (s3a://…, file:///…), an absolute path, a table "
            "(schema.table) or an asset."
        )
        raise DeclarationError(problem, fix)
    return text.strip()


# --- from arguments -------------------------------------------------------------------------------


LONGEST_ARGUMENT = 128 * 1024
"""The most characters of an argument that is read; Linux refuses processes with longer ones."""

_EMPTY_VALUE = re.compile("=(/|$)")
_SURROGATE = re.compile("[\ud800-\udfff]")  # half of a pair, which JSON and Java cannot have


def from_arguments(texts: Iterable[TracedText], locator: Locator) -> list[Expectation]:
    """Find dates, and partitions in paths, in a job's arguments, in time linear to their length.

    :param texts: the traced texts of the arguments
    :param locator: as for :func:`declared`
    """
    return [
        expectation
        for text in texts
        if len(text.value) <= LONGEST_ARGUMENT and not _SURROGATE.search(text.value)
        for expectation in _from_argument(text, locator)
    ]


def _from_argument(text: TracedText, locator: Locator) -> Iterable[Expectation]:
    paths = references(text.value, locator)
    inside: set[Span] = set()
    for reference in paths:
        inside |= set(_within(text.spans, reference.start, reference.end))
        yield _path(text, reference, locator.rules)
    for span in text.spans:
        value = text.value[span.start : span.end]
        if span not in inside and span.dates and canonical_time(value):
            template = _template(text, span.start, span.end)
            source = _source(Kind.INFERRED, text, [span], value, template=template)
            yield Expectation(Kind.INFERRED, sources=(source,))


def _within(spans: Sequence[Span], start: int, end: int) -> Sequence[Span]:
    """Give the spans with characters in ``[start, end)``; they are in order, without overlap."""
    first = bisect_right(spans, start, key=lambda span: span.end)
    return spans[first : bisect_left(spans, end, key=lambda span: span.start)]


def _template(text: TracedText, start: int, end: int) -> str:
    """Give the part of the template that was rendered to the characters ``[start, end)`` of a text.

    The rest of the template is left out, because it does not name data: it may be a token, and may
    be long.
    """
    if not text.spans and (start, end) == (0, len(text.value)):
        return text.template  # its parts cannot be matched with parts of the text
    parts: list[str] = []
    for span in _within(text.spans, start, end):
        parts += [text.value[start : span.start], f"{{{{ {span.expression} }}}}"]
        start = span.end
    return "".join([*parts, text.value[start:end]])


def _path(text: TracedText, reference: Reference, rules: PartitionRules) -> Expectation:
    # An empty variable leaves dt= without a value, which does not stand for null.
    is_partition = reference.partition.values and not _EMPTY_VALUE.search(reference.uri)
    return Expectation(
        Kind.PATH,
        dataset=reference.dataset,
        partitions=(reference.partition,) if is_partition else None,
        location=reference.location or "",
        is_glob=reference.is_glob,
        dimensions=_dimensions(reference.dataset, reference.partition.as_dict(), rules),
        sources=_path_sources(Kind.PATH, text, reference),
    )


def _path_sources(kind: Kind, text: TracedText, reference: Reference) -> tuple[Source, ...]:
    values = reference.partition.as_dict()
    template = _template(text, reference.start, reference.end)
    sources = []
    for label, value in values.items():
        own = [
            span
            for v in reference.values
            if v.label == label
            for span in _within(text.spans, v.start, v.end)
        ]
        sources.append(_source(kind, text, own, value, label, template))
    if not values:
        within = _within(text.spans, reference.start, reference.end)
        dated = [span for span in within if span.dates]
        if dated or reference.location:
            sources.append(_source(kind, text, dated, reference.uri, template=template))
    return tuple(sources)


def _source(
    kind: Kind,
    text: TracedText,
    spans: Sequence[Span],
    value: str,
    dimension: str = "",
    template: str | None = None,
) -> Source:
    """Make the :class:`Source` of a value, such as that of a partition, or a predicate.

    :param kind: the kind of the expectation that has the value
    :param text: the text that has the value
    :param spans: the spans of the text that gave the value
    :param dimension: the value's dimension; empty if it is not known, or there is none
    :param template: the part of the field's template that gave the value; None for the whole
        template
    """
    return Source(
        kind,
        text.field,
        text.template if template is None else template,
        value,
        dimension,
        tuple(dict.fromkeys(span.expression for span in spans)),
        tuple(sorted({variable for span in spans for variable in span.dates}))
        if text.spans
        else text.variables,
    )


def _dimensions(
    dataset: DatasetName, labels: Iterable[str], rules: PartitionRules
) -> tuple[Dimension, ...]:
    """Give each label's dimension from the rule for a dataset; a label not in it names a column."""
    ruled = rules.dimensions(dataset)
    return tuple(ruled.get(label) or Dimension.of_column(label) for label in labels)


# --- the sources of a declaration -----------------------------------------------------------------


def _declared_sources(
    entry: DatasetSubset, texts: Sequence[TracedText], reference: Reference | None
) -> Iterable[Source]:
    for text in texts:
        if ".partitions" in text.field and not text.field.endswith((".step", ".dimension")):
            dimension = _dimension_in(text.field, entry.partitions)
            yield _source(Kind.DECLARED, text, text.spans, text.value, dimension)
        elif text.field.endswith(".where"):
            yield _source(Kind.DECLARED, text, text.spans, text.value)
        elif reference is not None and text.value == entry.dataset:
            yield from _path_sources(Kind.DECLARED, text, reference)


def _dimension_in(field: str, partitions: object) -> str:
    """Give the dimension whose value a field of a declaration has; empty if it is not known.

    ``reads[0].partitions[dt]`` has a value of ``dt``, and ``reads[0].partitions.start`` has a value
    of the dimension of the :class:`~.declarations.PartitionRange`.
    """
    below = field.partition(".partitions")[2]
    keys: list[str] = re.findall(r"\[([^\[\]]+)\]", below)
    named = [key for key in keys if not key.isdigit()]
    if named:
        return named[-1]
    if below.startswith("."):
        return partitions.dimension if isinstance(partitions, PartitionRange) else ""
    return ""


# --- from the partition key of a run --------------------------------------------------------------


def from_partition_key(key: str, dimensions: str | Sequence[str]) -> list[Expectation]:
    """Make expectations of the partition key of a run.

    The key is the partition that the run has to write. It gives a declared expectation for every
    output that has the key's dimensions, and an inferred expectation for inputs.

    :param key: e.g. ``2024-05-06|PL``
    :param dimensions: the dimensions of the key, such as ``["dt"]``, or several if the key has
        ``|`` between values; or a pattern such as ``"{dt}|{region}"``
    :raise DeclarationError: if the key does not fit the dimensions, or these are invalid
    """
    template = (
        dimensions
        if isinstance(dimensions, str)
        else "|".join(f"{{{dimension}}}" for dimension in dimensions)
    )
    try:
        pattern = KeyPattern.parse(template)
    except ValueError as error:
        problem = f"partition_key_dimensions is {dimensions!r}."
        fix = 'It must name each dimension once, as in ["dt"] or "{dt}|{region}".'
        raise DeclarationError(problem, fix) from error
    values = pattern.values(key)
    if values is None:
        msg = f"The partition key {key!r} does not fit partition_key_dimensions={dimensions!r}."
        raise DeclarationError(msg)

    def source(kind: Kind, label: str, value: str) -> Source:
        key = ("partition_key",)
        return Source(kind, "partition_key_dimensions", template, value, label, key, key)

    return [
        Expectation(
            Kind.DECLARED,
            Side.WRITE,
            partitions=(Partition.from_values(values),),
            dimensions=tuple(Dimension.of_column(label) for label, _ in values),
            sources=tuple(source(Kind.DECLARED, *value) for value in values),
        ),
        *(
            Expectation(Kind.INFERRED, Side.READ, sources=(source(Kind.INFERRED, label, value),))
            for label, value in values
        ),
    ]
