"""What is expected of templates before anything runs: ``sparklineage explain``."""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any

from openlineage.client.serde import Serde

from airflow_provider_sparklineage.cli.show import console, escape, folding_table
from airflow_provider_sparklineage.event import partition_facets
from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.partitions.expected import united
from airflow_provider_sparklineage.lineage.partitions.selection import Evidence, selected
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from airflow_provider_sparklineage.expectations import Expectation, Source
    from airflow_provider_sparklineage.model.representation import Limits
    from airflow_provider_sparklineage.templates import TracedText


def explanation(
    subject: str,
    texts: Iterable[TracedText],
    expectations: Iterable[Expectation],
    limits: Limits,
    problems: Sequence[str] = (),
) -> dict[str, Any]:
    """Make the document that ``--json`` prints; its schema is ``schemas/explanation.json``.

    :param subject: what is explained: a DAG's task, or nothing for texts
    :param texts: the traced texts, with what was made by templates
    """
    expected = list(expectations)
    return {
        "subject": subject,
        "rendered": [_rendered(t) for t in texts if t.template != t.value],
        "expectations": [_expected(e, limits) for e in expected if e.kind is not Kind.INFERRED],
        "dates": [_source(s) for e in expected if e.kind is Kind.INFERRED for s in e.sources],
        "problems": list(problems),
    }


def _rendered(text: TracedText) -> dict[str, Any]:
    return {
        "field": text.field,
        "template": text.template,
        "value": text.value,
        "variables": list(text.variables),
        "spans": [
            {
                "start": span.start,
                "end": span.end,
                "value": text.value[span.start : span.end],
                "expression": span.expression,
                "variables": list(span.dates),
            }
            for span in text.spans
        ],
    }


def _expected(expectation: Expectation, limits: Limits) -> dict[str, Any]:
    name = expectation.dataset or DatasetName("", expectation.table)
    expected = united([expectation])
    part = selected(Evidence(expected=expected), limits)
    facets = partition_facets.input_facets(LineageDataset(name, expected=expected, selected=part))
    return {
        "kind": str(expectation.kind),
        "side": str(expectation.side) if expectation.side else "either",
        "dataset": {"namespace": name.namespace, "name": name.name} if name != ("", "") else None,
        "summary": part.summary or "no partition is named",
        "from": [_source(source) for source in expectation.sources],
        "facets": {key: _without_envelope(Serde.to_dict(facet)) for key, facet in facets.items()},
    }


def _without_envelope(facet: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facet.items() if not key.startswith("_")}


def _source(source: Source) -> dict[str, Any]:
    return {
        "field": source.field,
        "template": source.template,
        "value": source.value,
        "dimension": source.dimension,
        "expressions": list(source.expressions),
        "variables": list(source.variables),
    }


# --- for people -----------------------------------------------------------------------------------


def print_explanation(document: dict[str, Any], file: IO[str]) -> None:
    """Print an explanation; colours only where ``file`` is a terminal."""
    out = console(file)
    if document["subject"]:
        out.rule(f"[bold]{escape(document['subject'])}[/]", align="left")
    for entry in document["expectations"]:
        _print_expectation(out, entry)
    if not document["expectations"]:
        out.print("No path, table or declaration in it names data.")
    if document["dates"]:
        out.print(
            "\n[bold]Dates among the arguments[/], which explain partitions that Spark reports"
        )
        _print_sources(out, document["dates"])
    for problem in document["problems"]:
        out.print(f"[yellow]problem[/]  {escape(problem)}", soft_wrap=True)
    out.print()


_SIDES = {"read": "is read", "write": "is written", "either": "is read or written"}


def _print_expectation(out: Console, entry: dict[str, Any]) -> None:
    dataset = entry["dataset"]
    name = "any output" if dataset is None else str(DatasetName(**dataset)) or dataset["name"]
    out.print(
        f"\n[cyan]{escape(name)}[/]  [bold]{escape(entry['summary'])}[/]  "
        f"[dim]{entry['kind']}, {_SIDES[entry['side']]}[/]",
        soft_wrap=True,
    )
    _print_sources(out, entry["from"])
    for key, facet in entry["facets"].items():
        out.print(
            f"  [dim]{key}[/] {escape(json.dumps(facet, ensure_ascii=False))}", soft_wrap=True
        )


def _print_sources(out: Console, sources: Iterable[dict[str, Any]]) -> None:
    table = folding_table(3)
    for source in sources:
        label = f"{source['dimension']} = " if source["dimension"] else ""
        made_by = ", ".join(f"{{{{ {e} }}}}" for e in source["expressions"])
        dates = f" of {', '.join(source['variables'])}" if source["variables"] else ""
        table.add_row(
            escape(f"  {label}{source['value']}"),
            escape(f"from {made_by}{dates}" if made_by else "literal"),
            f"[dim]{escape(source['field'])}[/]",
        )
    if table.row_count:
        out.print(table)
