"""``doctor``: finds the problems that keep lineage from arriving, and says how to fix each of them.

Under ``sparklineage`` it checks this machine's Spark, listener and capture location
(:mod:`.spark`). Under ``airflow sparklineage`` it checks Airflow's half of the set-up and the
lineage backend as well (:mod:`.airflow`), and the places to which drivers in a cluster deliver
(:mod:`.cluster`). With ``--spark-submit`` it runs a small application, on this machine or in the
cluster.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.cli.doctor import spark
from airflow_provider_sparklineage.model import exceptions
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.checks import Check, Status, failed
from airflow_provider_sparklineage.settings.options import OPTIONS, SECTION

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from airflow_provider_sparklineage.settings.resolution import Settings


def check_machine(args: argparse.Namespace) -> int:
    """Print checks of this machine; return 1 if one of them failed, else 0."""
    resolved, checks = machine_settings(os.environ)
    return _say([*checks, *_spark_half(args, resolved, args.spark_binary)], args)


def machine_settings(env: Mapping[str, str]) -> tuple[Settings, list[Check]]:
    """Resolve the settings of a worker with this environment; give a failed check if they cannot.

    :param env: the environment, with Airflow's own names for its configuration
    :return: the settings, which are the defaults if a variable has an impossible value
    """
    prefix = f"AIRFLOW__{SECTION.upper()}__"
    values = {option.name: env.get(prefix + option.name.upper()) for option in OPTIONS}
    try:
        source = resolution.Source(resolution.Origin.CONFIGURATION, values)
        return resolution.resolve(source), []
    except exceptions.SettingsError as error:
        return resolution.resolve(), [failed("settings", error)]


def check_airflow(args: argparse.Namespace) -> int:
    """Print checks of this machine, of Airflow and of the backend; return 1 if one failed."""
    conf = _properties(args.conf)
    with commands.logging_to_stderr():
        from airflow_provider_sparklineage.cli.doctor import airflow

        found = airflow.check(args.conn_id, args.spark_conn_id)
        run = None
        if found.delivers:
            from airflow_provider_sparklineage.cli.doctor import cluster

            def run(machine: spark.Machine) -> Check:
                return cluster.run(machine, args.spark_conn_id, conf, found.settings)

        if conf and not found.delivers:
            commands.note("note: --conf has no effect: the application runs on this machine.")
        checks = [*found.checks, *_spark_half(args, found.settings, found.spark_binary, run)]
    return _say(airflow.for_people(checks, found.connection), args)


def _properties(given: list[str]) -> dict[str, str]:
    wrong = [text for text in given if not re.match(r"spark\.[^=\s]+=", text)]
    if wrong:
        commands.refuse(
            f"--conf {wrong[0]} is no Spark property.",
            "Write it as --conf spark.executor.memory=2g.",
        )
    return dict(text.split("=", 1) for text in given)


def _spark_half(
    args: argparse.Namespace,
    resolved: Settings,
    spark_binary: str,
    in_cluster: Callable[[spark.Machine], Check] | None = None,
) -> list[Check]:
    checks, machine = spark.check(resolved, spark_binary, os.environ)
    if args.spark_submit and machine is not None:
        commands.note(f"Running a Spark application {'in the cluster ' if in_cluster else ''}…")
        run = in_cluster or (lambda machine: spark.run_trial(machine, resolved, os.environ))
        try:
            checks.append(run(machine))
        except exceptions.SparkLineageError as error:
            checks.append(failed(spark.TRIAL, error))
    elif args.spark_submit:
        checks.append(spark.NOT_RUN)
    return checks


def _say(checks: Sequence[Check], args: argparse.Namespace) -> int:
    if args.json:
        commands.say_json(commands.checks_document(checks))
    else:
        commands.print_checks(checks, sys.stdout)
    return 1 if commands.worst_status(checks) is Status.FAILED else 0
