"""Adopt a task that is about to run, and that the cluster policy has not seen.

``dag.test()`` runs tasks without asking the policy, and a policy of the user's own can replace a
task by another one. When a task is about to run, Airflow has already rendered its fields, and has
serialised the DAG without the links to lineage. The templates of the fields are read from the DAG's
own task, of which Airflow runs a copy; for a mapped task, they are read from the constructor's
arguments, which Airflow keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import hookimpl

from airflow_provider_sparklineage.operators.adoption import kinds, policy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_sparklineage.operators.adoption.kinds import Kind
    from airflow_provider_sparklineage.templates import Tracer


@hookimpl(tryfirst=True)  # before Airflow's OpenLineage listener, which asks the task for START
def on_task_instance_running(task_instance: Any) -> None:
    """Adopt the task if the rules choose it and it has no lineage yet; never raises."""
    try:
        _, kind = kinds.kind_of(task_instance.task)
        if kind is not None:
            _adopt(task_instance, kind)
    except BaseException as error:  # also a SystemExit of the code of the user's class
        task_id = getattr(task_instance, "task_id", None)
        policy.warn(f"{task_id!r} runs without lineage ({kinds.described(error)}).")


def _adopt(task_instance: Any, kind: Kind) -> None:
    task = task_instance.task
    rules = policy.configured()
    if rules is None:
        return
    from airflow_provider_sparklineage.operators.adoption import adopting
    from airflow_provider_sparklineage.templates import Tracer

    if adopting.has_lineage(type(task)) or not adopting.decide(task, rules).adopts:
        return
    ours: Any = adopting.lineage_class(kind)
    context = task_instance.get_template_context()
    environment = task.dag.get_template_env()
    templates, problem = _templates(task, ours.lineage_traced_fields, Tracer(environment, context))
    adopting.adopt(task)
    task.follow_rendering(templates, context, environment, problem)


def _templates(
    task: Any, fields: Sequence[str], tracer: Tracer
) -> tuple[Mapping[str, object], str]:
    """Give the templates of fields, by field name, and a sentence on the unknown templates.

    The sentence is empty if all templates are known.

    :param task: the task that is about to run, with its fields rendered
    :param fields: names of the fields
    :param tracer: traces the task's values back to templates
    """
    original = task.dag.task_dict[task.task_id]
    if not original.is_mapped:
        return {name: getattr(original, name, None) for name in fields}, ""
    arguments = task._BaseOperator__init_kwargs  # noqa: SLF001  (nothing else keeps it)
    rendered = {name: getattr(task, name, None) for name in fields}
    templates = {
        name: arguments[name]
        for name, value in rendered.items()
        if name in arguments and _gives(tracer, arguments[name], value)
    }
    unknown = ", ".join(name for name, value in rendered.items() if value and name not in templates)
    problem = (
        f"The task was adopted when its fields were rendered, and its class makes {unknown} of "
        "other arguments, so no dates are known in there."
    )
    return templates, problem if unknown else ""


def _gives(tracer: Tracer, template: object, rendered: object) -> bool:
    """Whether a rendered value can be the result of a template.

    The value is not the result if the task's class has made the field from other arguments.

    :param tracer: traces the task's values back to templates
    """
    texts = tracer.trace_all("", template, rendered)
    if any(text.template != text.value and not text.spans for text in texts):
        return False
    return any(text.spans for text in texts) or texts == tracer.trace_all("", template, template)
