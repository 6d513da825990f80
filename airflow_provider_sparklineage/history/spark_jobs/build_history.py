"""Builds a history on Spark: ``spark-submit build_history.py SOURCE… --store URL``.

Each SOURCE is a file of events or a folder of such files, e.g. an archive, that Spark can read. The
store is one that ``sparklineage history build`` builds too (``--format parquet``); or a namespace
of an Iceberg catalog that the session knows (``--format iceberg --store lake.history``); or a
folder or schema of Delta tables (``--format delta --store s3a://lake/history``).
"""

from __future__ import annotations

import argparse
import sys
import uuid
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.history.engines.layouts import Sizes
from airflow_provider_sparklineage.history.engines.spark.building import Counts, build
from airflow_provider_sparklineage.history.engines.spark.files import Parquet
from airflow_provider_sparklineage.history.engines.spark.lakehouse import Delta, Iceberg
from airflow_provider_sparklineage.history.engines.spark.reading import facts
from airflow_provider_sparklineage.history.engines.spark.sql import session_of
from airflow_provider_sparklineage.history.sources import MAX_DELIVERED, Delivered
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.model.exceptions import SparkLineageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

LAKEHOUSES = {one.format: one for one in (Iceberg, Delta)}


def built(
    session: SparkSession,
    sources: Sequence[str],
    store: str,
    format_: str,
    sizes: Sizes = Sizes(),  # noqa: B008 - it is frozen
) -> Counts:
    """Add the events of sources to a store, and merge them into the store's tables.

    The events that tasks have delivered to the store are added, too.

    :param store: URL of the store, the namespace of an Iceberg catalog, or the folder or schema of
        Delta tables
    :param format_: ``parquet``, or one of :data:`LAKEHOUSES`
    :param sizes: how the tables of a store are divided among files
    :raise HistoryError: if another build runs, or a newer version of the package wrote the store
    """
    own = session_of(session)
    if format_ in LAKEHOUSES:
        return build(own, facts(own, sources), LAKEHOUSES[format_](own, store, uuid.uuid4().hex))
    with Store(store).building() as building:
        target, delivered = Parquet(own, building, sizes), Delivered(building.store, MAX_DELIVERED)
        counts = build(own, facts(own, sources, delivered), target)
        target.publish(counts.rows, counts.skipped)
        delivered.remove()
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the job; return the exit code, which is 1 if the job has published no new history.

    :param arguments: the arguments of the command line; None for those of this process
    """
    from pyspark.sql import SparkSession

    parser = argparse.ArgumentParser(prog="build_history.py", description=__doc__)
    parser.add_argument("sources", metavar="SOURCE", nargs="+")
    parser.add_argument("--store", required=True)
    parser.add_argument("--format", choices=("parquet", *LAKEHOUSES), default="parquet")
    asked = parser.parse_args(arguments)
    session = SparkSession.builder.appName("sparklineage history").getOrCreate()
    try:
        counts = built(session, asked.sources, asked.store, asked.format)
    except SparkLineageError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    finally:
        session.stop()
    skipped = "".join(f", {count} {reason}" for reason, count in sorted(counts.skipped.items()))
    sys.stdout.write(f"{counts.events} events, {counts.new} of them new{skipped}.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
