"""Prints a merged RunEvent for people: datasets, columns with their sources, degradations."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.markup import escape as escape_markup
from rich.table import Table

from airflow_provider_sparklineage.event.model import accesses, degradations, partition_check
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.columns.edges import DIRECT, INDIRECT
from airflow_provider_sparklineage.lineage.dataset import Accessed
from airflow_provider_sparklineage.model import texts
from airflow_provider_sparklineage.model.datasets import DatasetName, short_names
from airflow_provider_sparklineage.model.subset import Comparison
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# Output that is no terminal has no width of its own. With this width a source stays on one line.
_PLAIN_WIDTH = 160
_MAX_LOCATIONS = 3
_MAX_INDIRECT = 8


def console(file: IO[str]) -> Console:
    """Make a console, with colours and the terminal's width only if ``file`` is a terminal."""
    made = Console(file=file, highlight=False, emoji=False)
    if made.is_terminal:
        return made
    return Console(file=file, highlight=False, emoji=False, width=_PLAIN_WIDTH, no_color=True)


def folding_table(columns: int) -> Table:
    """Make a table without lines, whose columns fold long texts."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(columns):
        table.add_column(overflow="fold")
    return table


def print_event(event: Mapping[str, Any], file: IO[str]) -> None:
    """Print a merged event."""
    out = console(file)
    labels = _labels(event)
    _print_heading(out, event)
    inputs, outputs = event.get("inputs") or [], event.get("outputs") or []
    if inputs or outputs:
        marks = _marks(event)
        _print_datasets(out, "Inputs", "read", inputs, labels, marks)
        _print_datasets(out, "Outputs", "write", outputs, labels, marks)
        _print_check(out, event, labels)
    else:
        out.print("\nNothing was read or written.")
    for output in outputs:
        _print_columns(out, output, labels)
    missing = degradations(event)
    if missing:
        out.print("\n[bold]Missing or assumed[/]")
        for entry in missing:
            code, message = (escape(str(entry.get(key) or "")) for key in ("code", "message"))
            out.print(f"  [yellow]{code}[/]  {message}", soft_wrap=not out.is_terminal)
    out.print()


def _print_heading(out: Console, event: Mapping[str, Any]) -> None:
    run = event["run"]
    fields = (event.get("eventType"), event.get("eventTime"), run.get("runId"))
    state, time, run_id = (escape(str(value or "")) for value in fields)
    colour = "green" if state == "COMPLETE" else "red"
    out.rule(f"[bold]{escape(event['job']['name'])}[/]", align="left")
    out.print(f"[{colour}]{state}[/] {time}  run {run_id}")


def escape(text: str) -> str:
    """Escape a text for the console: rich's markup, and characters that control a terminal."""
    return escape_markup(texts.escape_control_characters(text))


def _labels(event: Mapping[str, Any]) -> dict[DatasetName, str]:
    datasets = [*(event.get("inputs") or []), *(event.get("outputs") or [])]
    return short_names([*map(_name, datasets), *_sources(datasets)])


def _sources(datasets: Iterable[Mapping[str, Any]]) -> Iterable[DatasetName]:
    for dataset in datasets:
        lineage = (dataset.get("facets") or {}).get("columnLineage") or {}
        for field in (lineage.get("fields") or {}).values():
            yield from (_name(source) for source in field.get("inputFields") or ())
        yield from (_name(source) for source in lineage.get("dataset") or ())


def _name(dataset: Mapping[str, Any]) -> DatasetName:
    return DatasetName(dataset["namespace"], dataset["name"])


def _print_datasets(
    out: Console,
    title: str,
    side: str,
    datasets: list[Mapping[str, Any]],
    labels: Mapping[DatasetName, str],
    marks: Mapping[tuple[str, DatasetName], _Marks],
) -> None:
    table = folding_table(3)
    for dataset in datasets:
        name = _name(dataset)
        table.add_row(
            f"  [cyan]{escape(labels[name])}[/]",
            escape(str(name)),
            escape(_facts(dataset, marks.get((side, name), _NO_MARKS))),
        )
    out.print(f"\n[bold]{title}[/]{'' if datasets else ' none'}")
    if datasets:
        out.print(table)


class _Marks(NamedTuple):
    """Remarks on a dataset; each is empty if there is nothing to remark.

    :param accessed: how much was accessed; shown if no facet describes the accessed part
    :param planned: how many partitions were only planned, and not read for certain
    :param witness: which witness alone reported it
    """

    accessed: str = ""
    planned: str = ""
    witness: str = ""


_NO_MARKS = _Marks()
_FAILED = "was to be written, which failed"
_ACCESSED = {(str(s), str(a)): a.text(s) for s in Side for a in Accessed}
_WITNESSES = {
    "listener": "not seen by the observer",
    "observer": "seen by the observer alone",
    "declared": "declared, not reported",
}


def _marks(event: Mapping[str, Any]) -> dict[tuple[str, DatasetName], _Marks]:
    entries = accesses(event)
    has_observer = any(entry["witness"] in ("observer", "both") for entry in entries.values())
    marks = {}
    for key, entry in entries.items():
        is_alone = has_observer or entry["witness"] != "listener"
        witness = _WITNESSES.get(entry["witness"], "") if is_alone else ""
        accessed = _ACCESSED.get((entry["side"], entry["accessed"]), "")
        accessed = _FAILED if entry.get("failed") else accessed
        planned = f"{entry['planned']} only planned" if entry.get("planned") else ""
        marks[key] = _Marks(accessed, planned, witness)
    return marks


def _facts(dataset: Mapping[str, Any], marks: _Marks) -> str:
    """Describe the part of a dataset that was accessed, its rows and witness, in a few words."""
    sides = dataset.get("inputFacets") or dataset.get("outputFacets") or {}
    facts = []
    subset = sides.get("subset") or {}
    condition = subset.get("inputCondition") or subset.get("outputCondition") or {}
    partitions = condition.get("partitions")
    if partitions is not None:
        facts.append(_partitions(dataset, partitions))
    if condition.get("type") in ("compare", "binary"):
        facts.append(_condition(condition))
    described = sides.get("sparkLineage_subsetDescription") or {}
    if described.get("description"):
        facts.append(str(described["description"]))
    locations = [str(location) for location in condition.get("locations") or ()]
    if locations:
        ends = [_below(dataset["name"], location) for location in locations]
        facts.append(some(ends, _MAX_LOCATIONS))
    if not facts and marks.accessed:
        facts.append(marks.accessed)
    if marks.planned:
        facts.append(marks.planned)
    statistics = sides.get("outputStatistics") or {}
    if statistics.get("rowCount") is not None:
        facts.append(f"{statistics['rowCount']} rows")
    if marks.witness:
        facts.append(marks.witness)
    return "; ".join(facts)


def print_run(event: Mapping[str, Any], file: IO[str]) -> None:
    """Print which partitions a run read and wrote, and which were expected."""
    out = console(file)
    _print_heading(out, event)
    check = partition_check(event)
    if check:
        out.print(escape(str(check.get("summary") or "")), soft_wrap=True)
        _print_check(out, event, _labels(event))
    else:
        out.print("\nNothing was expected of any dataset, and none is known to be partitioned.")
    out.print()


def _print_check(out: Console, event: Mapping[str, Any], labels: Mapping[DatasetName, str]) -> None:
    """Print whether partitions are as expected, and which template gave each expected value."""
    check = partition_check(event)
    _print_statuses(out, check, labels)
    table = folding_table(4)
    for entry in (*(check.get("reads") or ()), *(check.get("writes") or ())):
        name = _name(entry["dataset"])
        for source in entry.get("from") or ():
            made_by = " ".join(f"{{{{ {e} }}}}" for e in source.get("expressions") or ())
            table.add_row(
                f"  [cyan]{escape(labels.get(name, str(name)))}[/]",
                escape(f"{source.get('dimension') or ''} = {source['value']}"),
                escape(f"from {made_by}" if made_by else "literal"),
                f"[dim]{escape(source['field'])}, {escape(source['kind'])}[/]",
            )
    if table.row_count:
        out.print("\n[bold]Where partitions come from[/]")
        out.print(table)


_COLOURS = {
    "matched": "green",
    "unexpected": "bold red",
    "missing": "red",
    "unobserved": "yellow",
    "undeclared": "dim",
}


def _print_statuses(
    out: Console, check: Mapping[str, Any], labels: Mapping[DatasetName, str]
) -> None:
    table = folding_table(4)
    for verb, side in (("read", "reads"), ("written", "writes")):
        for entry in check.get(side) or ():
            status = str(entry.get("status") or "")
            name = _name(entry["dataset"])
            table.add_row(
                f"  [cyan]{escape(labels.get(name, str(name)))}[/]",
                _how(entry, verb),
                f"[{_COLOURS.get(status, 'default')}]{escape(status)}[/]",
                escape(_difference(entry)),
            )
    if table.row_count:
        out.print("\n[bold]Expected against observed[/]")
        out.print(table)


def _how(entry: Mapping[str, Any], verb: str) -> str:
    if entry.get("failed"):
        return "was to be written"
    if unreported := entry.get("unreported"):
        return f"{escape(unreported.replace('_', ' '))} to be {verb}"
    return verb


def _difference(entry: Mapping[str, Any]) -> str:
    """Describe expected, observed and planned partitions, then unexpected and missing ones."""
    names = ("expected", "observed", "planned", "unexpected", "missing")
    parts = [f"{name} {entry[name]['summary']}" for name in names if entry.get(name)]
    if not entry.get("expected"):
        declared = [s for s in entry.get("from") or () if s.get("kind") == "declared"]
        if declared:
            parts.insert(0, f"expected {' or '.join(s['value'] for s in declared)}")
    if entry.get("status") == "unobserved" and not entry.get("observed"):
        parts.append("observed: not known")
    return "; ".join(parts)


_SIGNS = {str(comparison): comparison.symbol for comparison in Comparison}


def _condition(condition: Mapping[str, Any]) -> str:
    """Write a condition as SQL does; for a type that is not known, write the type's name."""
    if condition.get("type") == "binary":
        left, right = (_condition(condition[side]) for side in ("left", "right"))
        return f"({left} {condition['operator']} {right})"
    if condition.get("type") == "compare":
        left, right = (
            condition[s].get("field") or condition[s].get("value") for s in ("left", "right")
        )
        sign = _SIGNS.get(condition["comparison"], condition["comparison"])
        return f"{left} {sign} {right}"
    return str(condition.get("type"))


def _partitions(dataset: Mapping[str, Any], partitions: list[Mapping[str, Any]]) -> str:
    """Name the partitions of a subset: all if they are few, else first, last and their number."""
    names = [
        str(p.get("identifier") or "/".join(f"{k}={v}" for k, v in _values(p).items()))
        for p in partitions
    ]
    if not names:
        return "no partition"
    if len(names) <= _MAX_LOCATIONS:
        return ", ".join(names)
    written = (dataset.get("facets") or {}).get("sparkLineage_partitions") or {}
    return str(written.get("summary") or f"{names[0]} … {names[-1]} ({len(names)} partitions)")


def _values(partition: Mapping[str, Any]) -> Mapping[str, Any]:
    return partition.get("dimensions") or {}


def _below(name: str, location: str) -> str:
    return location.removeprefix(name).lstrip("/") or location


def _print_columns(
    out: Console, output: Mapping[str, Any], labels: Mapping[DatasetName, str]
) -> None:
    facets = output.get("facets") or {}
    fields = (facets.get("schema") or {}).get("fields") or []
    lineage = facets.get("columnLineage") or {}
    sources = lineage.get("fields") or {}
    types = {f["name"]: f.get("type") or "" for f in fields}
    names = [*types, *(name for name in sources if name not in types)]
    if not names:
        return
    out.print(f"\n[bold]Columns of {escape(labels[_name(output)])}[/]")
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name in names:
        field = sources.get(name) or {}
        made_of = [_source(s, labels, _of_all(field)) for s in field.get("inputFields") or ()]
        origin = ", ".join(made_of) or "[yellow]sources unknown[/]"
        table.add_row(f"  {escape(name)}", f"[dim]{escape(types.get(name, ''))}[/]", origin)
    out.print(table)
    everything = [_source(s, labels) for s in lineage.get("dataset") or ()]
    if everything:
        out.print(
            f"  all of them by {some(everything, _MAX_INDIRECT)}",
            soft_wrap=not out.is_terminal,
        )


def _of_all(field: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the transformation of all sources of a column; [] if the event does not have it.

    A large event has this one instead of the transformations of each source.
    """
    kind, _, subtype = (field.get("transformationType") or "").partition(":")
    return [{"type": kind, "subtype": subtype}] if kind in (DIRECT, INDIRECT) else []


def _source(
    source: Mapping[str, Any],
    labels: Mapping[DatasetName, str],
    of_all: Sequence[Mapping[str, Any]] = (),
) -> str:
    kinds = []
    for t in source.get("transformations", of_all) or ():
        kind = (t.get("subtype") or t.get("type") or "").lower().replace("_", " ")
        kinds.append(f"{kind}, masked" if t.get("masking") else kind)
    how = " + ".join(dict.fromkeys(k for k in kinds if k))
    column = f"[cyan]{escape(labels[_name(source)])}[/].{escape(source['field'])}"
    return f"{column} ({escape(how)})" if how and how != "identity" else column
