"""``fetch-listener``: fetches the listener jar for this machine's Spark, or for another Spark."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli import commands
from airflow_provider_sparklineage.spark.submit import distribution, listener_selection

if TYPE_CHECKING:
    import argparse


def fetch_listener(args: argparse.Namespace) -> int:
    """Fetch the listener, and print the jar's path; return 0."""
    try:
        declared = distribution.declared(args.spark_version) if args.spark_version else None
    except ValueError as error:
        commands.refuse(f"--spark-version: {error}.")
    if declared is not None and args.source is not None:  # then Spark need not be installed
        if args.spark_binary != "spark-submit":
            fix = "Leave out --spark-binary."
            commands.refuse("With --spark-version and --from no Spark is looked for.", fix)
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
    print(jar)  # not escaped: a script uses the line as a path
    return 0
