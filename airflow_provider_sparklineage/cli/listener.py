"""``fetch-listener``: the listener jar for this machine's Spark."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.cli.commands import Argument, Command

if TYPE_CHECKING:
    import argparse


def _fetch_listener(args: argparse.Namespace) -> int:
    from airflow_provider_sparklineage.exceptions import ListenerError
    from airflow_provider_sparklineage.spark import distribution, listener

    found = distribution.find(args.spark_binary, os.environ)
    if found is None:
        msg = f"No Spark is found for {args.spark_binary}; put it on PATH, or set SPARK_HOME."
        raise ListenerError(msg)
    if not listener.cached(found.scala).is_file():
        name = listener.artifact(found.scala)
        print(f"Fetching {name} {listener.VERSION} for Spark {found.version} …", file=sys.stderr)
    print(listener.fetch(found))
    return 0


COMMAND = Command(
    "fetch-listener",
    "Bring the OpenLineage listener jar for this machine's Spark into the cache and print its path",
    _fetch_listener,
    (
        Argument(
            ("--spark-binary",),
            {
                "default": "spark-submit",
                "metavar": "NAME",
                "help": "as in the Spark connection",
            },
        ),
    ),
)
