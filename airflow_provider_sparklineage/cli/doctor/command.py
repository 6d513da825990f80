"""``doctor``: says what keeps lineage from arriving; under Airflow, Airflow's half as well."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.commands import Argument, Command
from airflow_provider_sparklineage.cli.output import logging_to_stderr, note, say_json

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from airflow_provider_sparklineage.settings.checks import Check
    from airflow_provider_sparklineage.settings.resolution import Settings


def _doctor_of_machine(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli.doctor import spark
    from airflow_provider_sparklineage.model.exceptions import SettingsError
    from airflow_provider_sparklineage.settings import resolution
    from airflow_provider_sparklineage.settings.options import OPTIONS, SECTION

    # Airflow's own names for its configuration: what is tried here is what a worker would have.
    prefix = f"AIRFLOW__{SECTION.upper()}__"
    values = {option.name: os.environ.get(prefix + option.name.upper()) for option in OPTIONS}
    checks: list[Check] = []
    try:
        resolved = resolution.resolve(resolution.Source(resolution.Origin.CONFIGURATION, values))
    except SettingsError as error:
        checks.append(spark.failed("settings", error))
        resolved = resolution.resolve()
    return _say([*checks, *_spark_half(args, resolved, args.spark_binary)], args)


def _doctor_of_airflow(args: argparse.Namespace) -> int:
    with logging_to_stderr():
        from airflow_provider_sparklineage.cli.doctor import airflow

        found = airflow.check(args.conn_id, args.spark_conn_id)
        checks = [*found.checks, *_spark_half(args, found.settings, found.spark_binary)]
    return _say(airflow.for_people(checks, found.connection), args)


def _spark_half(args: argparse.Namespace, resolved: Settings, spark_binary: str) -> list[Check]:
    from airflow_provider_sparklineage.cli.doctor import spark, trial

    checks, machine = spark.check(resolved, spark_binary, os.environ)
    if args.spark_submit and machine is not None:
        note("Running a Spark application …")
        checks.append(trial.run(machine, resolved, os.environ))
    elif args.spark_submit:
        checks.append(trial.NOT_RUN)
    return checks


def _say(checks: Sequence[Check], args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.cli.doctor import report
    from airflow_provider_sparklineage.settings.checks import Status

    if args.json:
        say_json(report.document(checks))
    else:
        report.print_checks(checks, sys.stdout)
    return 1 if report.worst(checks) is Status.FAILED else 0


_COMMON = (
    Argument(
        ("--spark-submit",),
        {"action": "store_true", "help": "run a small Spark application and look at its lineage"},
    ),
    Argument(("--json",), {"action": "store_true", "help": "print the checks as JSON"}),
)

OF_MACHINE = Command(
    "doctor",
    "Check Java, Spark, the listener and the place for captures, and say what to fix",
    _doctor_of_machine,
    (
        *_COMMON,
        Argument(
            ("--spark-binary",),
            {"default": "spark-submit", "metavar": "NAME", "help": "as in the Spark connection"},
        ),
    ),
)
OF_AIRFLOW = Command(
    "doctor",
    "Check all that lineage needs, from Spark to the lineage backend, and say what to fix",
    _doctor_of_airflow,
    (
        *_COMMON,
        Argument(
            ("--conn-id",),
            {
                "default": "sparklineage_default",
                "metavar": "ID",
                "help": "the operator's lineage_conn_id",
            },
        ),
        Argument(
            ("--spark-conn-id",),
            {"default": "spark_default", "metavar": "ID", "help": "the operator's conn_id"},
        ),
    ),
)
