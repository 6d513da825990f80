"""Prints a merged RunEvent for people: datasets, columns with their sources, degradations."""

from __future__ import annotations

from itertools import zip_longest
from typing import IO, TYPE_CHECKING

from rich.console import Console
from rich.markup import escape as escape_markup
from rich.padding import Padding
from rich.table import Table

from airflow_provider_sparklineage.event import model
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.columns.edges import DIRECT, INDIRECT
from airflow_provider_sparklineage.lineage.dataset import Accessed
from airflow_provider_sparklineage.model import texts
from airflow_provider_sparklineage.model.datasets import short_names
from airflow_provider_sparklineage.model.subset import Comparison
from airflow_provider_sparklineage.model.texts import size_text, some

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.degradations import DegradationCode

# Output that is not a terminal has no width of its own. With this width a source stays on one line.
_PLAIN_WIDTH = 160
_MAX_LOCATIONS = 3
_MAX_INDIRECT = 8


def console(file: IO[str]) -> Console:
    """Make a console, with colours and the terminal's width only if ``file`` is a terminal."""
    out = Console(file=file, highlight=False, emoji=False)
    if out.is_terminal:
        return out
    return Console(file=file, highlight=False, emoji=False, width=_PLAIN_WIDTH, no_color=True)


def folding_table(columns: int) -> Table:
    """Make a table without lines, whose columns fold long texts."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(columns):
        table.add_column(overflow="fold")
    return table


def print_event(event: model.Event, file: IO[str]) -> None:
    """Print a merged event."""
    out = console(file)
    labels = _labels(event)
    _print_heading(out, event)
    inputs, outputs = event.inputs or [], event.outputs or []
    if inputs or outputs:
        entries = event.accesses
        _print_datasets(out, "Inputs", "read", inputs, labels, entries)
        _print_datasets(out, "Outputs", "write", outputs, labels, entries)
        _print_check(out, event, labels)
    else:
        out.print("\nNothing was read or written.")
    for output in outputs:
        _print_columns(out, output, labels)
    if maintained := event.capture.maintenance:
        out.print("\n[bold]Maintained[/] (neither read nor written)")
        for one in maintained:
            texts_of = (str(one.dataset.dataset_name), one.operation or "")
            out.print(f"  [cyan]{escape(texts_of[0])}[/]  {escape(texts_of[1])}", soft_wrap=True)
    if missing := event.capture.degradations:
        out.print(f"\n[bold]Missing or assumed[/] ({HOW_TO_ASK})")
        for entry in missing:
            code, message = (escape(text or "") for text in (entry.code, entry.message))
            _print_indented(out, f"[yellow]{code}[/]  {message}")
    out.print()


def _print_indented(out: Console, text: str) -> None:
    """Print a text on one line, or in a terminal on as many indented lines as it needs."""
    if out.is_terminal:
        out.print(Padding(text, (0, 0, 0, 2)))
    else:
        out.print(f"  {text}", soft_wrap=True)


HOW_TO_ASK = "`sparklineage show CODE` says what a code means, and what to do"


def print_codes(codes: Iterable[DegradationCode], file: IO[str]) -> None:
    """Print the meaning of codes of degradations, what is missing then, and what to do."""
    out = console(file)
    for code in codes:
        out.print(f"[bold yellow]{code}[/]")
        table = folding_table(2)
        for title, text in (
            ("meaning", code.meaning),
            ("missing", code.missing),
            ("what to do", code.remedy),
        ):
            table.add_row(f"  {title}", escape(text))
        out.print(table)


def _print_heading(out: Console, event: model.Event) -> None:
    fields = (event.eventType, event.eventTime, event.run.runId)
    state, time, run_id = (escape(value or "") for value in fields)
    colour = "green" if state == "COMPLETE" else "red"
    out.rule(f"[bold]{escape(event.job.name or '')}[/]", align="left")
    out.print(f"[{colour}]{state}[/] {time}  run {run_id}")
    if event.capture.attempts:
        out.print(f"The cluster started the driver {event.capture.attempts} times.")


def escape(text: str) -> str:
    """Escape a text for the console: rich's markup, and characters that control a terminal."""
    return escape_markup(texts.escape_control_characters(text))


def _labels(event: model.Event) -> dict[DatasetName, str]:
    sources = (one for dataset in event.datasets for one in dataset.column_lineage.sources)
    return short_names([one.dataset_name for one in (*event.datasets, *sources)])


def _print_datasets(
    out: Console,
    title: str,
    side: str,
    datasets: list[model.Dataset],
    labels: Mapping[DatasetName, str],
    entries: Mapping[tuple[str, DatasetName], model.Seen],
) -> None:
    has_observer = any(entry.witness in ("observer", "both") for entry in entries.values())
    table = folding_table(3)
    for dataset in datasets:
        name = dataset.dataset_name
        facts = _facts(dataset, entries.get((side, name)), has_observer=has_observer)
        label = f"  [cyan]{escape(labels[name])}[/]"
        table.add_row(label, escape(str(name)), escape("; ".join(facts)))
    out.print(f"\n[bold]{title}[/]{'' if datasets else ' none'}")
    if datasets:
        out.print(table)


_FAILED = "was to be written, which failed"
_ACCESSED = {(str(s), str(a)): a.text(s) for s in Side for a in Accessed}
_WITNESSES = {
    "listener": "not seen by the observer",
    "observer": "seen by the observer alone",
    "declared": "declared, not reported",
}


def _facts(
    dataset: model.Dataset, entry: model.Seen | None, *, has_observer: bool
) -> Iterator[str]:
    """Describe an access: yield the accessed part, the number of rows, and the reporter.

    :param entry: the dataset's entry in ``sparkLineage_capture``; None if it has no such entry
    :param has_observer: whether an observer saw any dataset; if not, no dataset is described as
        "not seen by the observer"
    """
    is_removal = entry is not None and entry.accessed == "removed" and not entry.failed
    parts = [] if is_removal else list(_parts(dataset))
    yield from parts
    if entry and not parts and not is_removal and (accessed := _accessed(entry)):
        yield accessed
    if removed := dataset.partitions.removed:
        yield f"removed: {removed.summary}"
    elif is_removal:
        yield "all data removed"
    if entry and entry.planned:
        yield f"{entry.planned} only planned"
    if entry and entry.attempt:
        yield f"last by attempt {entry.attempt}"
    written = dataset.of_side.output_statistics
    is_shown = len(dataset.figures) == 1 and dataset.figures[0].rows is not None
    if written and written.rowCount is not None and not is_shown:
        yield f"{written.rowCount} rows"
    if entry and entry.witness in _WITNESSES and (has_observer or entry.witness != "listener"):
        yield _WITNESSES[entry.witness]


def _accessed(entry: model.Seen) -> str:
    return _FAILED if entry.failed else _ACCESSED.get((entry.side, entry.accessed or ""), "")


def _parts(dataset: model.Dataset) -> Iterator[str]:
    """Describe the accessed part of a dataset, by its facets: yield a text for each description."""
    sides = dataset.of_side
    subset = sides.subset or model.Subset()
    condition = subset.input or subset.output or model.Condition()
    if condition.partitions is not None:
        yield _partitions(dataset, condition.partitions)
    if condition.type in ("compare", "binary"):
        yield _condition(condition)
    if sides.described and sides.described.description:
        yield sides.described.description
    if condition.locations:
        ends = [_below(dataset.name, location) for location in condition.locations]
        yield some(ends, _MAX_LOCATIONS)


def print_run(event: model.Event, file: IO[str]) -> None:
    """Print which partitions a run read and wrote, and which were expected."""
    out = console(file)
    _print_heading(out, event)
    if event.run.facets and event.run.facets.check:
        out.print(escape(event.check.summary or ""), soft_wrap=True)
        _print_check(out, event, _labels(event))
    else:
        out.print("\nNothing was expected of any dataset, and none is known to be partitioned.")
    out.print()


_COLOURS = {
    "matched": "green",
    "unexpected": "bold red",
    "missing": "red",
    "unobserved": "yellow",
    "undeclared": "dim",
}


def _print_check(out: Console, event: model.Event, labels: Mapping[DatasetName, str]) -> None:
    """Print whether partitions are as expected, and which template gave each expected value.

    :param labels: the short names of the datasets
    """
    statuses, origins = folding_table(4), folding_table(4)
    for verb, side in (("read", Side.READ), ("written", Side.WRITE)):
        for entry in event.check.of_side(side):
            status = entry.status or ""
            name = entry.dataset.dataset_name
            label = f"  [cyan]{escape(labels.get(name, str(name)))}[/]"
            statuses.add_row(
                label,
                _how(entry, verb),
                f"[{_COLOURS.get(status, 'default')}]{escape(status)}[/]",
                escape(_difference(entry)),
            )
            for source in entry.sources or ():
                made_by = " ".join(f"{{{{ {e} }}}}" for e in source.expressions or ())
                origins.add_row(
                    label,
                    escape(f"{source.dimension or ''} = {source.value}"),
                    escape(f"from {made_by}" if made_by else "literal"),
                    f"[dim]{escape(source.field)}, {escape(source.kind)}[/]",
                )
    for title, table in (
        ("Expected against observed", statuses),
        ("Where partitions come from", origins),
    ):
        if table.row_count:
            out.print(f"\n[bold]{title}[/]")
            out.print(table)


def _how(entry: model.Checked, verb: str) -> str:
    if entry.failed:
        return "was to be written"
    if entry.unreported:
        return f"{escape(entry.unreported.replace('_', ' '))} to be {verb}"
    return verb


def _difference(entry: model.Checked) -> str:
    """Describe the partitions of a dataset by their kinds: expected, observed, removed, missing."""
    extents = {
        "expected": entry.expected,
        "observed": None if entry.accessed == "removed" else entry.observed,
        "removed": entry.removed,
        "planned": entry.planned,
        "unexpected": entry.unexpected,
        "missing": entry.missing,
    }
    parts = [f"{name} {one.summary}" for name, one in extents.items() if one and one.summary]
    if not entry.expected:
        declared = [source.value for source in entry.sources or () if source.kind == "declared"]
        if declared:
            parts.insert(0, f"expected {' or '.join(declared)}")
    if entry.status == "unobserved" and not entry.observed:
        parts.append("observed: not known")
    return "; ".join(parts)


_SIGNS = {str(comparison): comparison.symbol for comparison in Comparison}


def _condition(condition: model.Condition) -> str:
    """Format a condition as SQL; if it is incomplete or of another type, give its type."""
    left, right = condition.left, condition.right
    if left and right and condition.type == "binary":
        return f"({_condition(left)} {condition.operator} {_condition(right)})"
    if left and right and condition.type == "compare":
        sign = _SIGNS.get(condition.comparison or "", condition.comparison)
        return f"{left.field or left.value} {sign} {right.field or right.value}"
    return str(condition.type)


def _partitions(dataset: model.Dataset, partitions: list[model.NamedPartition]) -> str:
    """Name the partitions of a subset: all if they are few, else first, last and their number."""
    names = [
        p.identifier or "/".join(f"{k}={v}" for k, v in (p.dimensions or {}).items())
        for p in partitions
    ]
    if not names:
        return "no partition"
    figures = dataset.figures
    if len(names) <= _MAX_LOCATIONS:
        texts = [f" ({text})" if (text := _figures([one])) else "" for one in figures]
        return ", ".join(map("".join, zip_longest(names, texts, fillvalue="")))
    summary = dataset.partitions.summary or f"{names[0]} … {names[-1]} ({len(names)} partitions)"
    each = _figures(figures)
    return f"{summary}, each {each}" if each else summary


def _figures(figures: Sequence[model.Figures]) -> str:
    """Describe the rows and bytes of partitions, as far as known; of several the least and most."""
    rows = sorted(one.rows for one in figures if one.rows is not None)
    sizes = sorted(one.size for one in figures if one.size is not None)
    found = [f"{_range([f'{count:,}' for count in rows])} rows"] if rows else []
    return ", ".join([*found, _range(list(map(size_text, sizes)))] if sizes else found)


def _range(ascending: list[str]) -> str:
    return " … ".join(dict.fromkeys((ascending[0], ascending[-1])))


def _below(name: str, location: str) -> str:
    return location.removeprefix(name).lstrip("/") or location


def _print_columns(out: Console, output: model.Dataset, labels: Mapping[DatasetName, str]) -> None:
    lineage = output.column_lineage
    sources = lineage.fields or {}
    types = {column.name: column.type or "" for column in output.columns}
    names = [*types, *(name for name in sources if name not in types)]
    if not names:
        return
    out.print(f"\n[bold]Columns of {escape(labels[output.dataset_name])}[/]")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name in names:
        column = sources.get(name) or model.ColumnSources()
        made_of = [_source(s, labels, _of_all(column)) for s in column.inputFields or ()]
        origin = ", ".join(made_of) or "[yellow]sources unknown[/]"
        table.add_row(f"  {escape(name)}", f"[dim]{escape(types.get(name, ''))}[/]", origin)
    out.print(table)
    everything = [_source(s, labels) for s in lineage.dataset or ()]
    if everything:
        _print_indented(out, f"all of them by {some(everything, _MAX_INDIRECT)}")


def _of_all(column: model.ColumnSources) -> list[model.Transformation]:
    """Give the one transformation that a column has for all its sources; [] if it has none.

    In a large event, a column has this transformation instead of one for each source.
    """
    kind, _, subtype = (column.transformationType or "").partition(":")
    return [model.Transformation(kind, subtype)] if kind in (DIRECT, INDIRECT) else []


def _source(
    source: model.InputField,
    labels: Mapping[DatasetName, str],
    of_all: Sequence[model.Transformation] = (),
) -> str:
    kinds = []
    for t in of_all if source.transformations is None else source.transformations:
        kind = (t.subtype or t.type or "").lower().replace("_", " ")
        kinds.append(f"{kind}, masked" if t.masking else kind)
    how = " + ".join(dict.fromkeys(k for k in kinds if k))
    column = f"[cyan]{escape(labels[source.dataset_name])}[/].{escape(source.field)}"
    return f"{column} ({escape(how)})" if how and how != "identity" else column
