"""``airflow sparklineage schedule``: compares schedules on partitioned assets with what runs read.

The DAG files say what a schedule waits for, and the history what the runs read.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from airflow_provider_sparklineage.cli import commands, show
from airflow_provider_sparklineage.cli.adoption_survey import parse_dags
from airflow_provider_sparklineage.cli.history import tables
from airflow_provider_sparklineage.cli.history.store import opened
from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.history.queries.datasets import names_in
from airflow_provider_sparklineage.history.queries.schedule import (
    Differences,
    Waited,
    against_runs,
)
from airflow_provider_sparklineage.hooks.schedule import upstream_of_run
from airflow_provider_sparklineage.hooks.sources import configuration
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.partitions.comparison import PartitionStatus, reconcile
from airflow_provider_sparklineage.lineage.partitions.expected import united
from airflow_provider_sparklineage.lineage.partitions.keys import fitted
from airflow_provider_sparklineage.model.locations import Locator
from airflow_provider_sparklineage.model.partitioning import Dimension
from airflow_provider_sparklineage.operators.attempt.prepare import scheduled
from airflow_provider_sparklineage.settings import resolution

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from airflow_provider_sparklineage.expectations import Expectation
    from airflow_provider_sparklineage.hooks.schedule import AssetUpstream
    from airflow_provider_sparklineage.model.partitioning import Partition


def show_schedule(args: argparse.Namespace) -> int:
    """Print in what the schedules of DAGs differ from the reads of their runs.

    :return: 1 if there is a difference and ``--strict`` is given, else 0
    """
    with commands.logging_to_stderr():
        with commands.progress("Parsing DAG files", None) as done:
            parsed = parse_dags(args.dags_folder, done)
        timetables = {
            dag.dag_id: dag.timetable
            for dag in parsed.dags
            if hasattr(dag.timetable, "partition_mapper_config")
            and args.dag_id in (None, dag.dag_id)
        }
        if args.dag_id and args.dag_id not in timetables:
            commands.refuse(
                f"No DAG file that can be imported has a DAG {args.dag_id} with the schedule "
                "PartitionedAssetTimetable."
            )
        source = configuration("partitioning")
        locator = Locator(rules=resolution.value("partitioning", source))
    schedules = Schedules(timetables, locator)
    with opened(args) as history, commands.progress("Comparing runs", None):
        answer = against_runs(history, timetables, schedules.waited)
        names = names_in(history)
    rows: list[tables.Document] = msgspec.to_builtins(answer.mismatches)
    if args.json:
        for row in rows:
            print(msgspec.json.encode(row).decode())
    elif rows:
        tables.print_table(_columns(names), rows, sys.stdout)
    else:
        show.console(sys.stdout).print(_agreement(len(timetables), answer.runs))
    for sentence in answer.unjudged:
        commands.note(f"note: {sentence}")
    return 1 if rows and args.strict else 0


class Schedules:
    """What schedules wait for before their runs.

    :param timetables: the timetables of DAGs on partitioned assets, by dag_id
    :param locator: finds the datasets of assets
    """

    def __init__(self, timetables: Mapping[str, Any], locator: Locator) -> None:
        self._timetables = timetables
        self._locator = locator
        self._known: dict[tuple[str, str], list[Waited]] = {}

    def waited(self, dag_id: str, partition_key: str) -> Sequence[Waited]:
        """Say what a schedule waits for before the run with a partition key."""
        found = self._known.get((dag_id, partition_key))
        if found is None:
            try:
                assets = upstream_of_run(self._timetables[dag_id], partition_key)
                found = [self._of_asset(asset, partition_key) for asset in assets]
            except Exception as error:
                problem = f"The partition mappers of the schedule cannot be read: {error}"
                found = [Waited("", None, problem=problem)]
            self._known[dag_id, partition_key] = found
        return found

    def _of_asset(self, asset: AssetUpstream, partition_key: str) -> Waited:
        expected = scheduled(asset, partition_key, self._locator)
        if expected is None or asset.problem or not expected.partitions:
            return Waited(
                asset.name or asset.uri,
                expected.dataset if expected else None,
                asset.mapper,
                problem=asset.problem,
            )
        at_least = asset.upstream.at_least if asset.upstream else 1
        return Waited(
            asset.name or asset.uri,
            expected.dataset,
            asset.mapper,
            lru_cache(maxsize=None)(_Comparison(expected, at_least)),
            len(expected.partitions),
        )


class _Comparison:
    """Compares upstream partitions with those that a run read.

    :param expected: the upstream partitions
    :param at_least: how many of them Airflow waits for
    """

    def __init__(self, expected: Expectation, at_least: int) -> None:
        self._expected = expected
        self._at_least = at_least

    def __call__(self, partitions: frozenset[Partition]) -> Differences | None:
        labels = dict.fromkeys(label for p in partitions for label, _ in p.values)
        seen = Subset(tuple(map(Dimension.of_column, labels)), partitions)
        here = fitted(self._expected, seen)
        if here is None:
            return None
        # Of all tasks of the run together nothing is left open, as it is of one task.
        certain = msgspec.structs.replace(here, kind=Kind.DECLARED)
        check = reconcile(united([certain]), seen)
        if check.status is PartitionStatus.UNOBSERVED:
            return None
        is_enough = len(here.partitions or ()) - len(check.missing) >= self._at_least
        missing = frozenset() if is_enough or here.is_glob else check.missing
        return Differences(check.unexpected, missing)


def _columns(names: tables.Names) -> Sequence[tables.Column]:
    return (
        tables.Column(
            "DAG",
            lambda row: row["dag_id"],
            heading=lambda row: row["dag_id"],
            below_heading=lambda _: "",
        ),
        tables.Column("what", lambda row: row["kind"].replace("_", " "), "yellow"),
        tables.Column("dataset", lambda row: tables.dataset_text(row["dataset"], names), "cyan"),
        tables.Column("difference", lambda row: row["text"], detail=1),
        tables.Column("runs", lambda row: f"{row['runs']} of {row['judged']}"),
        tables.Column("latest run", lambda row: row["partition_key"]),
        tables.Column("partitions", _partitions, detail=1),
    )


def _partitions(row: tables.Document) -> str:
    return tables.ends_text(row["partitions"])


def _agreement(dags: int, runs: int) -> str:
    if not dags:
        return "No DAG is scheduled on partitioned assets (PartitionedAssetTimetable)."
    if not runs:
        return "No run of a partition is known of these DAGs."
    return f"What {runs} runs read is what their schedules wait for."
