"""``airflow sparklineage schedule``: compares schedules on partitioned assets with what runs read.

The DAG files say what a schedule waits for, and the history what the runs read.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from airflow_provider_sparklineage.cli import commands, show
from airflow_provider_sparklineage.cli.adoption_survey import parse_dags
from airflow_provider_sparklineage.cli.history import tables
from airflow_provider_sparklineage.cli.history.store import opened
from airflow_provider_sparklineage.expectations import Kind
from airflow_provider_sparklineage.expectations.schedule import from_schedule
from airflow_provider_sparklineage.history.queries.datasets import names_in
from airflow_provider_sparklineage.history.queries.schedule import (
    Differences,
    Waited,
    against_runs,
    partition_of,
)
from airflow_provider_sparklineage.hooks.schedule import assets_of, fingerprint
from airflow_provider_sparklineage.hooks.sources import configuration
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.partitions.comparison import PartitionStatus, reconcile
from airflow_provider_sparklineage.lineage.partitions.expected import united
from airflow_provider_sparklineage.lineage.partitions.keys import fitted
from airflow_provider_sparklineage.model.exceptions import ScheduleError
from airflow_provider_sparklineage.model.locations import Locator
from airflow_provider_sparklineage.model.partitioning import Dimension
from airflow_provider_sparklineage.operators.attempt.prepare import scheduled_dataset
from airflow_provider_sparklineage.settings import resolution

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from airflow_provider_sparklineage.hooks.schedule import ScheduledAsset
    from airflow_provider_sparklineage.model.datasets import DatasetName
    from airflow_provider_sparklineage.model.partitioning import KeyPattern


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
    schedules = waited_for(timetables, locator)
    with opened(args) as history, commands.progress("Comparing runs", None):
        answer = against_runs(history, schedules.waited)
        names = names_in(history)
    rows: list[tables.Document] = msgspec.to_builtins(answer.mismatches)
    if args.json:
        commands.say_json_lines(rows)
    elif rows:
        tables.print_table(_columns(names), rows, sys.stdout)
    else:
        show.console(sys.stdout).print(_agreement(len(timetables), answer.runs))
    for sentence in (*schedules.problems, *answer.unjudged):
        commands.note(f"note: {sentence}")
    return 1 if rows and args.strict else 0


class Schedules(NamedTuple):
    """The assets that the schedules of DAGs wait for.

    :param waited: by dag_id
    :param problems: sentences about schedules that cannot be read
    """

    waited: dict[str, list[Waited]]
    problems: list[str]


def waited_for(timetables: Mapping[str, Any], locator: Locator) -> Schedules:
    """List the assets that schedules wait for.

    :param timetables: the timetables of DAGs, by dag_id
    :param locator: finds the datasets of assets
    """
    found = Schedules({}, [])
    known: _Known = {}
    for dag_id, timetable in timetables.items():
        try:
            assets = assets_of(timetable)
        except ScheduleError as error:
            found.problems.append(f"{dag_id}: {error}")
            continue
        found.waited[dag_id] = [_waited(asset, locator, known) for asset in assets]
    return found


def _waited(asset: ScheduledAsset, locator: Locator, known: _Known) -> Waited:
    dataset = scheduled_dataset(asset, locator)
    name = asset.name or asset.uri
    if dataset is None:
        return Waited(name, None, asset.text)
    spec = locator.rules.spec(dataset)
    comparison = _Comparison(asset, dataset, spec.key if spec else None, known)
    return Waited(name, dataset, asset.text, comparison.differences)


_Known = dict[tuple[str, "KeyPattern | None", str, tuple[str, ...]], "Differences | str | None"]


class _Comparison:
    """Compares the upstream partitions of an asset with those that runs read.

    DAGs with the same mappers have the same upstream partitions for the same key, and nearly always
    read the same partitions. So each comparison is made once.

    :param pattern: how the asset's keys are written; None if no rule says so
    :param known: the comparisons of all DAGs, by mapper, pattern, key and partitions
    """

    def __init__(
        self,
        asset: ScheduledAsset,
        dataset: DatasetName,
        pattern: KeyPattern | None,
        known: _Known,
    ) -> None:
        self._asset = asset
        self._dataset = dataset
        self._pattern = pattern
        self._known = known
        self._mapper = fingerprint(asset.mapper)

    def differences(
        self, partition_key: str, partitions: tuple[str, ...]
    ) -> Differences | str | None:
        """Compare as :attr:`.Waited.differences` does."""
        case = self._mapper, self._pattern, partition_key, partitions
        if case not in self._known:
            self._known[case] = self._compared(partition_key, partitions)
        return self._known[case]

    def _compared(self, key: str, partitions: tuple[str, ...]) -> Differences | str | None:
        try:
            upstream = self._asset.upstream(key)
        except ScheduleError as error:
            return str(error)
        expected = from_schedule(self._dataset, upstream, self._asset.text, key, self._pattern)
        if upstream is None or not expected.partitions:
            return Differences()
        read = frozenset(map(partition_of, partitions))
        labels = dict.fromkeys(label for partition in read for label, _ in partition.values)
        seen = Subset(tuple(map(Dimension.of_column, labels)), read)
        here = fitted(expected, seen)
        if here is None:
            return None
        # Of all tasks of the run together nothing is left open, as it is of one task.
        check = reconcile(united([replace(here, kind=Kind.DECLARED)]), seen)
        if check.status is PartitionStatus.UNOBSERVED:
            return None
        number = len(here.partitions or ())
        is_enough = here.is_glob or number - len(check.missing) >= upstream.at_least
        return Differences(number, check.unexpected, frozenset() if is_enough else check.missing)


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
