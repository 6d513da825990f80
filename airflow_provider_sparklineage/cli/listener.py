"""``fetch-listener``: fetches the listener jar for this machine's Spark, or for another Spark."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.model.exceptions import UnusableInputError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def _fetch_listener(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.spark.submit import distribution, listener_selection

    declared = None
    try:
        if args.spark_version:
            declared = distribution.declared(args.spark_version)
    except ValueError as error:
        msg = f"--spark-version: {error}."
        raise UnusableInputError(msg) from error
    if declared is not None and args.source is not None:  # then Spark need not be installed
        spark = distribution.SparkDistribution(None, *declared)
    else:
        spark = listener_selection.spark_of(args.spark_binary, os.environ, declared)
    jar = listener_selection.fetch_for(
        spark,
        args.spark_binary,
        location=args.source,
        repositories=args.repositories,
        progress=commands.note,
    )
    _add_observer(jar.parent)
    print(jar)  # not escaped: a script uses the line as a path
    return 0


def _add_observer(cache: Path) -> None:
    """Put the observer's zip next to the jar, because an image for drivers needs both files."""
    from airflow_provider_sparklineage.spark.submit import submitted_files

    observer = cache / submitted_files.OBSERVER_ZIP
    try:
        observer.write_bytes(submitted_files.observer_zip())
        observer.chmod(0o644)
    except OSError as error:
        commands.note(
            f"{observer}, which images for drivers need, cannot be written: {error.strerror}."
        )


COMMAND = commands.Command(
    "fetch-listener",
    "Fetch the OpenLineage listener jar for a Spark into the cache and print its path",
    _fetch_listener,
    (
        commands.Argument(
            ("--spark-version",),
            {
                "metavar": "VERSION",
                "help": (
                    "version of Spark, e.g. 4.0.1 or 3.5.6-scala2.13; by default that of "
                    "spark-submit"
                ),
            },
        ),
        commands.Argument(
            ("--from",),
            {
                "dest": "source",
                "metavar": "URL_OR_FILE",
                "help": "take the jar from there, and ask no repository",
            },
        ),
        commands.Argument(
            ("--repositories",),
            {
                "metavar": "URLS",
                "help": "further Maven repositories, with commas between, as for spark-submit",
            },
        ),
        commands.Argument(
            ("--spark-binary",),
            {
                "default": "spark-submit",
                "metavar": "NAME",
                "help": "as in the Spark connection",
            },
        ),
    ),
)
