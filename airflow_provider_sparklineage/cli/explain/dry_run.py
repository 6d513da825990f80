"""Templates rendered for a run that does not take place: what ``explain`` needs of Airflow."""

from __future__ import annotations

import re
from datetime import datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.sdk.definitions._internal.templater import create_template_env
from airflow.sdk.execution_time.context import (
    ConnectionAccessor,
    MacrosAccessor,
    VariableAccessor,
)
from airflow.sdk.log import redact  # type: ignore[attr-defined]  # exported without saying so
from jinja2 import UndefinedError
from msgspec.structs import replace

from airflow_provider_sparklineage.cli.output import quietly
from airflow_provider_sparklineage.model.exceptions import UnusableInputError
from airflow_provider_sparklineage.model.terms import Frozen
from airflow_provider_sparklineage.operators.masking import masked_message
from airflow_provider_sparklineage.templates import TracedText, trace_all

if TYPE_CHECKING:
    from airflow_provider_sparklineage.expectations.declared import Declared
    from airflow_provider_sparklineage.model.rules import PartitionRules


class DryRun(Frozen, frozen=True):
    """The run that templates are rendered for; times are aware.

    :param logical_date: None for a run of a partition, or one started by hand without a date
    :param interval: data interval; None: that of the DAG's timetable, else the logical date
    """

    logical_date: datetime | None = None
    interval: tuple[datetime, datetime] | None = None
    partition_key: str | None = None
    partition_date: datetime | None = None
    map_index: int = -1

    def context(self, **known: Any) -> dict[str, Any]:
        """Make the template context; variables that such a run has not are not in it."""
        start, end = self.interval or (self.logical_date, self.logical_date)
        run_after = self.logical_date or self.partition_date or pendulum.datetime(1970, 1, 1)
        run_id = f"explained__{run_after.isoformat()}"
        dag_run = SimpleNamespace(
            run_id=run_id,
            run_after=run_after,
            run_type="manual",
            logical_date=self.logical_date,
            data_interval_start=start,
            data_interval_end=end,
            partition_key=self.partition_key,
            partition_date=self.partition_date,
            conf={},
        )
        context: dict[str, Any] = {
            "run_id": run_id,
            "dag_run": dag_run,
            "macros": MacrosAccessor(),
            "params": {},
            "var": {
                "json": VariableAccessor(deserialize_json=True),
                "value": VariableAccessor(deserialize_json=False),
            },
            "conn": ConnectionAccessor(),
            "partition_key": self.partition_key,
            "partition_date": self.partition_date,
            **known,
        }
        ti = SimpleNamespace(
            run_id=run_id, map_index=self.map_index, try_number=1, dag_run=dag_run, **_names(known)
        )
        context |= {"ti": ti, "task_instance": ti}
        if self.logical_date is not None:
            ts = self.logical_date.isoformat()
            ds = ts[:10]
            context |= {
                "logical_date": self.logical_date,
                "ds": ds,
                "ds_nodash": ds.replace("-", ""),
                "ts": ts,
                "ts_nodash": self.logical_date.strftime("%Y%m%dT%H%M%S"),
                "ts_nodash_with_tz": ts.replace("-", "").replace(":", ""),
                "data_interval_start": start,
                "data_interval_end": end,
            }
        return context


def _names(known: dict[str, Any]) -> dict[str, str]:
    task = known.get("task")
    return {"dag_id": task.dag_id, "task_id": task.task_id} if task is not None else {}


def timestamp(text: str) -> datetime:
    """Read a date or time of the command line, in UTC if it names no zone.

    :raise UnusableInputError: if it is none
    """
    try:
        parsed: object = pendulum.parse(text, tz="UTC", exact=False)
    except (ValueError, TypeError) as error:
        problem = f"{text!r} is no date or time."
        fix = "Write it as 2024-05-06 or 2024-05-06T03:00:00+00:00."
        raise UnusableInputError(problem, fix) from error
    if not isinstance(parsed, datetime):
        msg = f"{text!r} is a span of time, and a single time is needed."
        raise UnusableInputError(msg)
    return parsed


def trace_text(text: str, number: int, run: DryRun) -> list[TracedText]:
    """Render a template for a run and trace it.

    :raise UnusableInputError: if it cannot be rendered, naming what such a run has not
    """
    environment = create_template_env()
    context = run.context()
    try:
        rendered = environment.from_string(text).render(context)
    except Exception as error:
        problem = f"{text!r} cannot be rendered: {error}."
        raise UnusableInputError(problem, _hint(error)) from error
    return trace_all(f"text[{number}]", text, rendered, environment, context)


_HINT = (
    " A run with a logical date has ds, ts, logical_date and data_interval_start/_end; a run of a "
    "partition has partition_key and partition_date; give --logical-date or --partition-key."
)


def _hint(error: Exception) -> str:
    return _HINT if isinstance(error, UndefinedError) else ""


class ExplainedTask(Frozen, frozen=True):
    """A task of a DAG, rendered and not run.

    :param texts: what templates made
    """

    subject: str
    texts: tuple[TracedText, ...]
    declared: Declared


def explain_task(dag_id: str, task_id: str, run: DryRun, rules: PartitionRules) -> ExplainedTask:
    """Render a task as the task runner would, and give what it expects.

    :raise UnusableInputError: if there is no such task, it has no lineage, or cannot be rendered
    """
    from airflow.sdk.exceptions import AirflowException
    from airflow.utils.cli import get_bagged_dag
    from sqlalchemy.exc import SQLAlchemyError

    from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

    try:
        dag = quietly(lambda: get_bagged_dag(None, dag_id))
    except AirflowException as error:
        problem = str(error)
        fix = "`airflow dags list-import-errors` says why one failed."
        raise UnusableInputError(problem, fix) from error
    except SQLAlchemyError as error:  # whose text may hold its URL
        problem = (
            "Airflow's database, by which it finds the DAG of an id, cannot be used "
            f"({type(error).__name__})."
        )
        fix = "`airflow db check` says why."
        raise UnusableInputError(problem, fix) from error
    try:
        task = dag.get_task(task_id)
    except AirflowException as error:
        known = ", ".join(sorted(dag.task_ids))
        problem = f"There is no task {task_id} in {dag_id}."
        fix = f"There are: {known}."
        raise UnusableInputError(problem, fix) from error
    operator_class: Any = getattr(task, "operator_class", type(task))
    if not issubclass(operator_class, LineageMixin):
        msg = f"{dag_id}.{task_id} is a {operator_class.__name__}, which has no Spark lineage."
        raise UnusableInputError(msg)
    run = _with_interval(run, dag)
    mapped = operator_class is not type(task)
    if mapped and run.map_index < 0:
        run = replace(run, map_index=0)
    params = {name: dag.params[name] for name in dag.params} | dict(getattr(task, "params", {}))
    copy: Any = task.prepare_for_execution()
    context = run.context(dag=dag, task=copy, params=params, inlets=[], outlets=[])
    try:
        quietly(lambda: copy.render_template_fields(context))
    except Exception as error:
        problem = f"The fields of {dag_id}.{task_id} cannot be rendered: {error}."
        raise UnusableInputError(problem, _hint(error)) from error
    operator: Any = context["task"]
    current = operator.lineage_try
    texts = tuple(_masked(t) for t in current.traces or () if t.template != t.value)
    subject = f"{dag_id}.{task_id}" + (f"[{run.map_index}]" if mapped else "")
    declared = current.declared(operator, rules, run.partition_key)
    return ExplainedTask(subject, texts, declared)


_EXPRESSION = re.compile(r"\s*\{\{[^{}]*\}\}\s*")
"""A template that has no text of its own."""


def _masked(text: TracedText) -> TracedText:
    """Hide what Airflow knows for a secret, credentials, and all in a field that is called so."""

    def masked(shown: str) -> str:
        return masked_message(str(redact(shown, text.field)))

    value = masked(text.value)
    template = text.template if _EXPRESSION.fullmatch(text.template) else masked(text.template)
    spans = text.spans if value == text.value else ()
    return replace(text, value=value, template=template, spans=spans)


def _with_interval(run: DryRun, dag: Any) -> DryRun:
    """Take the data interval that the DAG's timetable has for the logical date."""
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
