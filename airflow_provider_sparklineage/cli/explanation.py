"""Renders templates for a run that does not take place, and explains the expected partitions.

A template is a text of the command line, or a field of a DAG's task; it is rendered as Airflow's
task runner would render it. The explanation has the rendered texts, the expected datasets and
partitions, and the template that made each value. It is a document (``schemas/explanation.json``),
or lines for people.
"""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.sdk.definitions._internal.templater import create_template_env
from airflow.sdk.execution_time import context as accessors
from airflow.sdk.log import redact  # type: ignore[attr-defined]  # exported without saying so
from jinja2 import UndefinedError
from msgspec import to_builtins
from msgspec.structs import replace
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.cli.commands import quietly, refuse, say_json
from airflow_provider_sparklineage.cli.show import console, escape, folding_table
from airflow_provider_sparklineage.event.facets import subset_facets
from airflow_provider_sparklineage.expectations import Expectation, Kind, Side, Source
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.partitions.expected import united
from airflow_provider_sparklineage.lineage.partitions.selection import Evidence, selected
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.operators.masking import masked_message
from airflow_provider_sparklineage.templates import TracedText, Tracer

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from airflow_provider_sparklineage.expectations.declared import Declared
    from airflow_provider_sparklineage.model.representation import Limits
    from airflow_provider_sparklineage.model.rules import PartitionRules


class DryRun(Frozen, frozen=True):
    """The run for which templates are rendered; its times have a zone.

    :param logical_date: None for a run with a partition key, or for a run that is started by hand
        without a date
    :param interval: data interval; if None, the DAG's timetable gives the interval for the logical
        date, and without a timetable the interval begins and ends at the logical date
    """

    logical_date: datetime | None = None
    interval: tuple[datetime, datetime] | None = None
    partition_key: str | None = None
    partition_date: datetime | None = None
    map_index: int = -1

    def context(self, **known: Any) -> dict[str, Any]:
        """Make the template context, without the variables that such a run does not have.

        :param known: further variables of the context, e.g. ``task``
        """
        start, end = self.interval or (self.logical_date, self.logical_date)
        dates = {
            "logical_date": self.logical_date,
            "data_interval_start": start,
            "data_interval_end": end,
        }
        partition = {"partition_key": self.partition_key, "partition_date": self.partition_date}
        run_after = self.logical_date or self.partition_date or pendulum.datetime(1970, 1, 1)
        run_id = f"explained__{run_after.isoformat()}"
        dag_run = SimpleNamespace(
            run_id=run_id, run_after=run_after, run_type="manual", conf={}, **dates, **partition
        )
        ti = SimpleNamespace(dag_run=dag_run, run_id=run_id, map_index=self.map_index, try_number=1)
        if (task := known.get("task")) is not None:
            ti.dag_id, ti.task_id = task.dag_id, task.task_id
        context: dict[str, Any] = {
            "run_id": run_id,
            "dag_run": dag_run,
            "macros": accessors.MacrosAccessor(),
            "params": {},
            "var": {
                "json": accessors.VariableAccessor(deserialize_json=True),
                "value": accessors.VariableAccessor(deserialize_json=False),
            },
            "conn": accessors.ConnectionAccessor(),
            **partition,
            **known,
            "ti": ti,
            "task_instance": ti,
        }
        if self.logical_date is not None:
            ts = self.logical_date.isoformat()
            ds = ts[:10]
            context |= {
                **dates,
                "ds": ds,
                "ds_nodash": ds.replace("-", ""),
                "ts": ts,
                "ts_nodash": self.logical_date.strftime("%Y%m%dT%H%M%S"),
                "ts_nodash_with_tz": ts.replace("-", "").replace(":", ""),
            }
        return context


def run_of(args: argparse.Namespace) -> DryRun:
    """Read the run that the command line describes.

    :raise UnusableInputError: if the arguments describe no run
    """
    ends = [args.data_interval_start, args.data_interval_end]
    if not args.logical_date and not args.partition_key:
        refuse("Give --logical-date, or --partition-key for the run of a partition.")
    interval = tuple(timestamp(end) for end in ends) if all(ends) else None
    return DryRun(
        timestamp(args.logical_date) if args.logical_date else None,
        interval,  # type: ignore[arg-type]  # two of them
        args.partition_key,
        timestamp(args.partition_date) if args.partition_date else None,
        getattr(args, "map_index", -1),
    )


def timestamp(text: str) -> datetime:
    """Read a date or time of the command line; it is in UTC if it names no zone.

    :raise UnusableInputError: if the text is not a date or time, or is a span of time
    """
    try:
        parsed: object = pendulum.parse(text, tz="UTC", exact=False)
        if isinstance(parsed, datetime):
            parsed.utcoffset()  # raises an error if the text has a zone that cannot be
    except (ValueError, TypeError, OverflowError):
        refuse(
            f"{text!r} is no date or time.", "Write it as 2024-05-06 or 2024-05-06T03:00:00+00:00."
        )
    if not isinstance(parsed, datetime):
        refuse(f"{text!r} is a span of time, and a single time is needed.")
    return parsed


def trace_text(text: str, number: int, run: DryRun) -> list[TracedText]:
    """Render a template of the command line for a run, and trace where its values come from.

    :param number: place of the template among the arguments, from 0
    :return: a list with the rendered text and its sources; [] if it cannot be traced
    :raise UnusableInputError: if the template cannot be rendered; if a variable is missing, the
        message names the variables that a run can have
    """
    environment = create_template_env()
    context = run.context()
    try:
        rendered = environment.from_string(text).render(context)
    except Exception as error:
        refuse(f"{text!r} cannot be rendered: {error}.", _hint(error))
    return Tracer(environment, context).trace_all(f"text[{number}]", text, rendered)


_HINT = (
    " A run with a logical date has ds, ts, logical_date and data_interval_start/_end; a run of a "
    "partition has partition_key and partition_date; give --logical-date or --partition-key."
)


def _hint(error: Exception) -> str:
    return _HINT if isinstance(error, UndefinedError) else ""


class ExplainedTask(Frozen, frozen=True):
    """A task that was rendered and not run.

    :param subject: the task, as ``dag_id.task_id``; a mapped task has its index after it, in
        brackets
    :param texts: the rendered texts that differ from their templates
    """

    subject: str
    texts: tuple[TracedText, ...]
    declared: Declared


def explain_task(dag_id: str, task_id: str, run: DryRun, rules: PartitionRules) -> ExplainedTask:
    """Render a task as the task runner would, and give the task's texts and expectations.

    :param run: the run for which the templates are rendered
    :param rules: the organisation's rules for partitions
    :raise UnusableInputError: if Airflow cannot find the DAG or the task, or the task has no
        lineage or cannot be rendered
    """
    from airflow.providers.common.compat.sdk import AirflowException
    from airflow.utils.cli import get_bagged_dag
    from sqlalchemy.exc import SQLAlchemyError

    from airflow_provider_sparklineage.operators.adoption.adopting import has_lineage

    try:
        dag = quietly(lambda: get_bagged_dag(None, dag_id))
    except AirflowException as error:
        refuse(str(error), "`airflow dags list-import-errors` says why one failed.")
    except SQLAlchemyError as error:  # its text, which can have the database's URL, is not shown
        refuse(
            "Airflow's database, by which it finds the DAG of an id, cannot be used "
            f"({type(error).__name__}).",
            "`airflow db check` says why.",
        )
    task = task_of(dag, task_id)
    operator_class: Any = getattr(task, "operator_class", type(task))
    if not has_lineage(operator_class):
        refuse(f"{dag_id}.{task_id} is a {operator_class.__name__}, which has no Spark lineage.")
    run = _with_interval(run, dag)
    context = rendered(dag, task, run)
    operator: Any = context["task"]
    current = operator.lineage_try
    texts = tuple(_masked(t) for t in current.rendered.texts or () if t.template != t.value)
    mapped = operator_class is not type(task)
    subject = f"{dag_id}.{task_id}" + (f"[{context['ti'].map_index}]" if mapped else "")
    declared = current.declared(operator, rules, run.partition_key)
    return ExplainedTask(subject, texts, declared)


def task_of(dag: Any, task_id: str) -> Any:
    """Give a task of a DAG.

    :raise UnusableInputError: if the DAG has no such task
    """
    if task_id not in dag.task_ids:
        known = ", ".join(sorted(dag.task_ids))
        refuse(f"There is no task {task_id} in {dag.dag_id}.", f"There are: {known}.")
    return dag.get_task(task_id)


def rendered(dag: Any, task: Any, run: DryRun) -> dict[str, Any]:
    """Render a task as the task runner would; give the context, which has the operator as ``task``.

    :param run: the run for which the templates are rendered; of a mapped task, the first instance
        is rendered unless the run names another
    :raise UnusableInputError: if the task cannot be rendered
    """
    mapped = hasattr(task, "operator_class")
    if mapped and run.map_index < 0:
        run = replace(run, map_index=0)
    params = {name: dag.params[name] for name in dag.params} | dict(getattr(task, "params", {}))
    copy: Any = task.prepare_for_execution()
    context = run.context(dag=dag, task=copy, params=params, inlets=[], outlets=[])
    try:
        quietly(lambda: copy.render_template_fields(context))
    except Exception as error:
        name = f"{dag.dag_id}.{task.task_id}"
        refuse(f"The fields of {name} cannot be rendered: {error}.", _hint(error))
    return context


_EXPRESSION = re.compile(r"\s*\{\{[^{}]*\}\}\s*")
"""A template that is a single expression, with no text around it."""


def _masked(text: TracedText) -> TracedText:
    """Hide secrets in a text: those that Airflow knows, and credentials.

    If the name of the field is that of a secret (``password``), the whole value is hidden.
    """

    def masked(shown: str) -> str:
        return masked_message(str(redact(shown, text.field)))

    value = masked(text.value)
    template = text.template if _EXPRESSION.fullmatch(text.template) else masked(text.template)
    spans = text.spans if value == text.value else ()
    return replace(text, value=value, template=template, spans=spans)


def _with_interval(run: DryRun, dag: Any) -> DryRun:
    """Give a run the data interval that the DAG's timetable has for its logical date.

    The run stays as it is if it has an interval or has no logical date, or if the timetable has no
    interval for the date.
    """
    from airflow.models.dag import infer_automated_data_interval
    from airflow.serialization.serialized_objects import DagSerialization

    if run.interval is not None or run.logical_date is None:
        return run
    timetable = DagSerialization.from_dict(DagSerialization.to_dict(dag)).timetable
    try:
        interval = infer_automated_data_interval(timetable, run.logical_date)
    except (ValueError, TypeError, NotImplementedError):
        return run  # a timetable that makes no intervals of dates
    return replace(run, interval=(interval.start, interval.end))


# --- the explanation ------------------------------------------------------------------------------


def explanation(
    subject: str,
    texts: Iterable[TracedText],
    expectations: Iterable[Expectation],
    limits: Limits,
    problems: Sequence[str] = (),
) -> dict[str, Any]:
    """Make the document that ``--json`` prints; its schema is ``schemas/explanation.json``.

    :param subject: the DAG's task that is explained; empty for texts of the command line
    :param texts: the traced texts; the document has only those that differ from their templates
    :param expectations: the expected reads and writes. Those of the kind ``INFERRED`` are not under
        the key ``expectations``: the document has their sources under the key ``dates``
    :param limits: limits of each condition that describes the partitions of one expectation
    :param problems: sentences, each on a part that could not be explained
    """
    expected = list(expectations)
    return {
        "subject": subject,
        "rendered": [_rendered_document(t) for t in texts if t.template != t.value],
        "expectations": [
            _expected_document(e, limits) for e in expected if e.kind is not Kind.INFERRED
        ],
        "dates": [
            _source_document(s) for e in expected if e.kind is Kind.INFERRED for s in e.sources
        ],
        "problems": list(problems),
    }


def _rendered_document(text: TracedText) -> dict[str, Any]:
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


def _expected_document(expectation: Expectation, limits: Limits) -> dict[str, Any]:
    name = expectation.dataset or DatasetName("", expectation.table)
    expected = united([expectation])
    part = selected(Evidence(expected=expected), limits)
    facets = subset_facets(LineageDataset(name, expected=expected, selected=part), Side.READ)
    return {
        "kind": str(expectation.kind),
        "side": str(expectation.side) if expectation.side else "either",
        "dataset": {"namespace": name.namespace, "name": name.name} if name != ("", "") else None,
        "summary": part.summary or "no partition is named",
        "from": [_source_document(source) for source in expectation.sources],
        "facets": {key: _without_envelope(Serde.to_dict(facet)) for key, facet in facets.items()},
    }


def _without_envelope(facet: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facet.items() if not key.startswith("_")}


def _source_document(source: Source) -> dict[str, Any]:
    return {key: value for key, value in to_builtins(source).items() if key != "kind"}


# --- for people -----------------------------------------------------------------------------------


def answer(document: dict[str, Any], *, as_json: bool) -> int:
    """Print an explanation; return 1 if it has problems, else 0."""
    if as_json:
        say_json(document)
    else:
        _print_explanation(console(sys.stdout), document)
    return 1 if document["problems"] else 0


def _print_explanation(out: Console, document: dict[str, Any]) -> None:
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
