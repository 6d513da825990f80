"""``doctor``: finds the problems that keep lineage from arriving, and says how to fix each of them.

Under ``sparklineage`` it checks this machine's Spark, listener and capture location
(:mod:`.spark`). Under ``airflow sparklineage`` it checks Airflow's half of the set-up and the
lineage backend as well (:mod:`.airflow`), and the places to which drivers in a cluster deliver
(:mod:`.cluster`), and one task with the service that starts its driver (:mod:`.task`). With
``--spark-submit`` it runs a small application, on this machine, in the cluster or in the service.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from functools import partial
from importlib import metadata
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.cli.doctor import spark
from airflow_provider_sparklineage.model import exceptions
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.checks import Check, Status, failed, warning
from airflow_provider_sparklineage.settings.options import OPTIONS, SECTION

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence

    from airflow_provider_sparklineage.cli.doctor.airflow import AirflowChecks
    from airflow_provider_sparklineage.settings.resolution import Settings


def check_machine(args: argparse.Namespace) -> int:
    """Print checks of this machine; return 1 if one of them failed, else 0."""
    resolved, checks = machine_settings(os.environ)
    checks += [*old_airflow(), *_of_machine(args, resolved, args.spark_binary)]
    return _say(checks, args)


AIRFLOW = "Airflow"
_SINCE = {
    (3, 1): "pages and tabs of plugins",
    (
        3,
        2,
    ): "commands under `airflow`, such as `airflow sparklineage doctor`, and partitions of assets",
    (3, 3): "`record_asset_partitions`",
}
"""Parts of Airflow that lineage uses, by the version that brought them."""


def old_airflow(version: str = "") -> list[Check]:
    """Name the parts that this machine's Airflow lacks; [] if it has all, or there is none.

    :param version: the version of Airflow; empty for that of this machine
    """
    with suppress(metadata.PackageNotFoundError):
        version = version or metadata.version("apache-airflow-core")
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    missing = [what for since, what in _SINCE.items() if numbers < since]
    if not version or not missing:
        return []
    text = f"Airflow {version} does without {'; '.join(missing)}. Events of tasks are the same."
    return [
        warning(AIRFLOW, text, "Nothing has to be done, unless you need these: update Airflow.")
    ]


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
    """Print checks of this machine, of Airflow and of the backend; return 1 if one failed.

    With a task, the service that starts the task's driver is checked, and the machine only if the
    worker starts it.
    """
    conf = _properties(args.conf)
    with commands.logging_to_stderr():
        from airflow_provider_sparklineage.cli.doctor import airflow

        if args.dag_id:
            from airflow_provider_sparklineage.cli.doctor import task as tasks

            task = tasks.find(args.dag_id, args.task_id)
            found = airflow.check(task.operator.lineage_conn_id, task.spark_conn_id)
            if task.spark_conn_id is not None:
                conf = {**task.conf, **conf} if found.delivers else conf
                checks = _of_spark_submit(args, found, task.spark_conn_id, conf, task.untried)
            else:
                if conf:
                    commands.note("note: --conf has no effect: the task's own properties are used.")
                checks, machine = tasks.check(task)
                run = partial(tasks.run_trial, task)
                checks += _trial(args, machine, run, "as the task's own job ", task.untried)
            checks = [task.adoption, *found.checks, *checks]
        else:
            found = airflow.check(args.conn_id, args.spark_conn_id)
            checks = [*found.checks, *_of_spark_submit(args, found, args.spark_conn_id, conf)]
        checks = [*old_airflow(), *checks]
    return _say(airflow.for_people(checks, found.connection), args)


def _properties(given: list[str]) -> dict[str, str]:
    wrong = [text for text in given if not re.match(r"spark\.[^=\s]+=", text)]
    if wrong:
        commands.refuse(
            f"--conf {wrong[0]} is no Spark property.",
            "Write it as --conf spark.executor.memory=2g.",
        )
    return dict(text.split("=", 1) for text in given)


def _of_spark_submit(
    args: argparse.Namespace,
    found: AirflowChecks,
    conn_id: str,
    conf: Mapping[str, str],
    untried: Check | None = None,
) -> list[Check]:
    """Check the machine; a trial runs on it, or in the cluster if drivers there deliver.

    :param conn_id: the id of the Spark connection
    :param conf: Spark properties for a trial in the cluster
    :param untried: the check that takes the place of a trial; None if there is one
    """
    if untried is not None:
        return _of_machine(args, found.settings, found.spark_binary, untried=untried)
    if found.delivers:
        from airflow_provider_sparklineage.cli.doctor import cluster

        def run(machine: spark.Machine) -> Check:
            return cluster.run(machine, conn_id, conf, found.settings)

        return _of_machine(args, found.settings, found.spark_binary, run, "in the cluster ")
    if conf:
        commands.note("note: --conf has no effect: the application runs on this machine.")
    return _of_machine(args, found.settings, found.spark_binary)


def _of_machine(
    args: argparse.Namespace,
    resolved: Settings,
    spark_binary: str,
    run: Callable[[spark.Machine], Check] | None = None,
    where: str = "",
    untried: Check | None = None,
) -> list[Check]:
    checks, machine = spark.check(resolved, spark_binary, os.environ)
    run = run or (lambda machine: spark.run_trial(machine, resolved, os.environ))
    return [*checks, *_trial(args, machine, run, where, untried)]


def _trial(
    args: argparse.Namespace,
    machine: spark.Machine | None,
    run: Callable[[spark.Machine], Check],
    where: str = "",
    untried: Check | None = None,
) -> list[Check]:
    """Run the trial's application, if the command line asks for it.

    :param machine: the Spark that runs it; None if it would have no listener
    :param where: the place for a note, with a space at its end; empty for this machine
    :param untried: the check that takes the place of a trial; None if there is one
    """
    if not args.spark_submit:
        return []
    if untried is not None:
        return [untried]
    if machine is None:
        return [spark.NOT_RUN]
    commands.note(f"Running a Spark application {where}…")
    try:
        return [run(machine)]
    except exceptions.SparkLineageError as error:
        return [failed(spark.TRIAL, error)]


def _say(checks: Sequence[Check], args: argparse.Namespace) -> int:
    if args.json:
        commands.say_json(commands.checks_document(checks))
    else:
        commands.print_checks(checks, sys.stdout)
    return 1 if commands.worst_status(checks) is Status.FAILED else 0
