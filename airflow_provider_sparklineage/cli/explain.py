"""The two ``explain`` commands: of templates on the command line, and of the task of a DAG.

The first is a command of ``sparklineage``, the second of ``airflow sparklineage``. With ``--run``,
both print the expected and the observed partitions of a run that has ended. Without ``--run``, the
templates are rendered for a run that does not take place, and Airflow is imported for their macros
(:mod:`.explanation`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.cli import commands, show
from airflow_provider_sparklineage.cli.events import events_of
from airflow_provider_sparklineage.event.model import CHECK_KEY
from airflow_provider_sparklineage.expectations import declared
from airflow_provider_sparklineage.model import rules
from airflow_provider_sparklineage.model.degradations import DegradationCode
from airflow_provider_sparklineage.model.locations import Locator
from airflow_provider_sparklineage.model.representation import DEFAULT_LIMITS
from airflow_provider_sparklineage.settings import resolution

if TYPE_CHECKING:
    import argparse

    from airflow_provider_sparklineage.event.stored import Stored


def _explain_run(args: argparse.Namespace, job: str = "") -> int:
    """Print the expected and the observed partitions of the runs in a bundle or a file of events.

    :param job: name of the job to which all the runs must belong (``dag_id.task_id``); empty for
        any
    :raise UnusableInputError: if a run is of another job
    """
    events = events_of([args.of_run])
    if job and (others := {e.event.job.name or "" for e in events} - {job}):
        commands.refuse(
            f"{args.of_run} holds a run of {', '.join(sorted(others))}, and one of {job} is asked "
            "for.",
            f"`sparklineage explain --run {args.of_run}` shows the former.",
        )
    if args.json:
        commands.say_json([_document_of(one) for one in events])
    else:
        for one in events:
            show.print_run(one.event, sys.stdout)
    return 0


def _document_of(of: Stored) -> dict[str, Any]:
    facets = of.document["run"].get("facets") or {}
    check = facets.get(CHECK_KEY) or {}
    return {
        "subject": of.event.job.name,
        "outcome": of.event.eventType or "",
        **{key: value for key, value in check.items() if not key.startswith("_")},
    }


def explain_templates(args: argparse.Namespace) -> int:
    """Print the partitions that templates name, or with ``--run`` those of a run that has ended.

    :return: the exit code
    """
    if args.of_run:
        return _explain_run(args)
    if not args.text:
        commands.refuse(
            "Give a template such as 's3a://lake/revenue/dt={{ ds }}', or --run BUNDLE."
        )
    if code := next((text for text in args.text if text in [*DegradationCode]), ""):
        fix = f"See its meaning: sparklineage show {code}"
        commands.refuse(f"{code} is no template, but the code of a degradation.", fix)
    known = rules.load_partition_rules(args.rules) if args.rules else rules.NO_RULES
    with commands.logging_to_stderr():
        from airflow_provider_sparklineage.cli import explanation

        run = explanation.run_of(args)
        texts = [
            traced
            for number, text in enumerate(args.text)
            for traced in explanation.trace_text(text, number, run)
        ]
    expectations = declared.from_arguments(texts, Locator(rules=known))
    document = explanation.explanation("", texts, expectations, DEFAULT_LIMITS)
    return explanation.answer(document, as_json=args.json)


def explain_task(args: argparse.Namespace) -> int:
    """Print the partitions that a task is expected to access; return the exit code."""
    if args.of_run:
        return _explain_run(args, f"{args.dag_id}.{args.task_id}")
    with commands.logging_to_stderr():
        from airflow_provider_sparklineage.cli import explanation
        from airflow_provider_sparklineage.hooks.sources import configuration

        resolved = resolution.resolve(configuration())
        known = rules.load_partition_rules(args.rules) if args.rules else resolved.partitioning
        task = explanation.explain_task(args.dag_id, args.task_id, explanation.run_of(args), known)
    document = explanation.explanation(
        task.subject,
        task.texts,
        task.declared.expectations,
        resolved.limits,
        task.declared.problems,
    )
    return explanation.answer(document, as_json=args.json)
