"""``airflow sparklineage adoption``: which tasks have lineage without asking for it, and why."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.commands import (
    Argument,
    Command,
    logging_to_stderr,
    note,
    progress,
    say_json,
)
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse


def _adoption(args: argparse.Namespace) -> int:
    with logging_to_stderr():
        from msgspec.structs import replace

        from airflow_provider_sparklineage.cli import adoption_survey
        from airflow_provider_sparklineage.hooks.sources import configuration
        from airflow_provider_sparklineage.settings import resolution
        from airflow_provider_sparklineage.settings.checks import Status

        source = configuration("adopt", "declarations")
        adopt, declared = (resolution.value(name, source) for name in ("adopt", "declarations"))
        rules = adoption_survey.Rules.of(args.adopt or adopt, declared)
        with progress("Parsing DAG files", None) as done:
            parsed = adoption_survey.parse_dags(args.dags_folder, done)
        if args.dag_id and args.dag_id not in {dag.dag_id for dag in parsed.dags}:
            problem = f"No DAG file that can be imported has a DAG {args.dag_id}."
            raise UnusableInputError(problem)
        found = adoption_survey.survey(parsed.dags, rules)
        problems = [*rules.problems, *found.problems, *parsed.problems]
        rows = [row for row in found.rows if args.dag_id in (None, row.dag_id)]
        found = replace(found, rows=rows, problems=problems)
    if args.output == "json":
        say_json(adoption_survey.survey_document(found))
    else:
        adoption_survey.print_survey(found, sys.stdout)
        if adopt in ("", "off") and not args.adopt:
            note("Adoption is off. What it would do: airflow sparklineage adoption --adopt all")
    return 1 if any(check.status is Status.FAILED for check in found.problems) else 0


COMMAND = Command(
    "adoption",
    "List the tasks of Spark operators: which get lineage without a change of their DAG, which do "
    "not and why, and what is wrong with the rules",
    _adoption,
    (
        Argument(
            ("--adopt",),
            {
                "metavar": "RULES",
                "help": "instead of [sparklineage] adopt: off, all, a YAML file, or rules",
            },
        ),
        Argument(
            ("--dags-folder",),
            {
                "metavar": "PATH",
                "help": "a folder of DAG files, or one file, instead of Airflow's own",
            },
        ),
        Argument(("--dag-id",), {"metavar": "DAG", "help": "list the tasks of that DAG alone"}),
        Argument(
            ("--output",),
            {"choices": ("table", "json"), "default": "table", "help": "table by default"},
        ),
    ),
)
