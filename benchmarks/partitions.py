"""What observed partitions cost on their way to the event, and comparing and describing them."""

from __future__ import annotations

import json
import tempfile
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.expectations import Expectation, Kind, Side
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.lineage.observed.accesses import Subset
from airflow_provider_sparklineage.lineage.partitions.comparison import PartitionStatus, reconcile
from airflow_provider_sparklineage.lineage.partitions.expected import Expected
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.subset import date_range
from airflow_provider_sparklineage.model.terms import EVENTS, OBSERVATIONS
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from benchmarks.amplification import amplified, run_id
from benchmarks.measuring import Growth, in_turns, peak_mb
from benchmarks.merging import decode
from benchmarks.results import Curve, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


QUERIES = 5
READ, WRITTEN = ("orders", "clicks"), "sales"
LISTS = QUERIES * len((*READ, WRITTEN))
SIZES = (1_000, 10_000, 30_000, 100_000)
SHOWN = (1_000, 10_000, 100_000)
GROWING = (25_000, 50_000, 100_000, 200_000)
RUNS = 2


def measured() -> Iterator[Result | Curve]:
    """Measure all of it; memory first, see :func:`.peak_mb`."""
    with tempfile.TemporaryDirectory() as folder:
        yield remembering(Path(folder, "peak"))
        same, other = (
            {size: bundle(Path(folder, f"{size}-{each}"), size, same=each) for size in SIZES}
            for each in (True, False)
        )
        yield from observing(same, f"{LISTS} lists of {{:,}} partitions")
        yield from observing(other, f"{{:,}} partitions in {LISTS} lists", goal=None)
    yield from growing("range", Growth.of(GROWING, description, runs=RUNS))
    yield from growing("reconcile", Growth.of(GROWING, comparison, runs=RUNS))


# --- from the bundle to the event -----------------------------------------------------------------


def remembering(folder: Path) -> Result:
    """Merge the largest bundle; the peak of resident memory, with what its manifest declares."""
    size = SIZES[-1]
    peak_mb(lambda: write(folder, size, same=True))  # in its own process: here it leaves memory
    peak = peak_mb(lambda: merge(CaptureBundle(folder, manifest(size))))
    what = f"peak memory, {LISTS} lists of {size:,} partitions"
    return Result(what, peak, 200, "merged to the event", unit=" MB")


def observing(
    bundles: Mapping[int, CaptureBundle], what: str, goal: float | None = 12
) -> Iterator[Result | Curve]:
    """Merge bundles to events, against decoding what was observed; by their sizes.

    :param what: with a place for the size
    :param goal: none where no partition is in two lists: then each is made for three of them, where
        decoding costs as little as three for each
    """
    actions: list[Callable[[], object]] = []
    for made in bundles.values():
        assert made.path is not None
        actions += (partial(merge, made), partial(decode, made.path, OBSERVATIONS))
    seconds = in_turns(*actions, runs=RUNS)
    merging, decoding = Growth(SIZES, tuple(seconds[::2])), Growth(SIZES, tuple(seconds[1::2]))
    for size, merge_s, decode_s in zip(SIZES, merging.seconds, decoding.seconds, strict=True):
        if size in SHOWN:
            figures = f"{merge_s:.3f} s, decoded in {decode_s:.3f} s"
            yield Result(f"merge {what.format(size)} / decode", merge_s / decode_s, goal, figures)
    of = what.format(SIZES[-1])
    yield Result(f"exponent up to {of}", merging.exponent, 1.1, str(merging))
    if goal:
        lines = {"merging": merging, "decoding": decoding}
        yield Curve("partitions", f"{LISTS} lists of partitions", "partitions of each list", lines)


def bundle(folder: Path, size: int, *, same: bool) -> CaptureBundle:
    """Make a bundle, and require that all that was observed is merged."""
    write(folder, size, same=same)
    made = CaptureBundle(folder, manifest(size))
    lineage = task_lineage(made)
    found = {d.name.name: d for d in (*lineage.inputs, *lineage.outputs)}
    for table in (*READ, WRITTEN):
        subset = found[f"/lake/{table}"].subset
        assert subset, table
        assert len(subset.partitions) >= (size if same else size // LISTS * QUERIES), table
    status = found[f"/lake/{WRITTEN}"].check.status
    assert status is (PartitionStatus.MATCHED if same else PartitionStatus.MISSING), status
    return made


def write(folder: Path, size: int, *, same: bool) -> None:
    """Write the files of five queries that read two tables and write a third one.

    :param same: whether each of the 15 lists has all partitions of its table; else each has a
        fifteenth of the size, and no two have one in common
    """
    folder.mkdir()
    with (folder / EVENTS).open("wb") as file:
        file.writelines(amplified(1))
    values = [[value for _, value in hour.values] for hour in hours(size)]
    with (folder / OBSERVATIONS).open("w") as file:
        for number in range(QUERIES):
            lists = iter(
                [values if same else values[3 * number + n :: LISTS] for n in range(LISTS)]
            )
            record = query(number, {table: next(lists) for table in (*READ, WRITTEN)})
            file.write(json.dumps(record, separators=(",", ":")) + "\n")


def manifest(size: int) -> Manifest:
    """Declare what is written."""
    expected = Expectation(
        Kind.DECLARED,
        Side.WRITE,
        DatasetName("file", f"/lake/{WRITTEN}"),
        partitions=tuple(hours(size)),
        dimensions=(Dimension.of_column("hour"), Dimension.of_column("region")),
    )
    return Manifest(application_run_id=run_id(), expectations=(expected,))


def query(number: int, lists: dict[str, list[list[str]]]) -> dict[str, Any]:
    """Give the observer's record of a query; see ``schemas/observation.json``."""
    started = 1_800_000_000_000 + number * 100_000
    dimensions = [
        {"field": field, "transform": "identity", "type": "string"} for field in ("hour", "region")
    ]
    layouts = {
        table: [{"base": f"file:/lake/{table}", "dimensions": dimensions, "partitions": listed}]
        for table, listed in lists.items()
    }
    written = {"node": "InsertIntoHadoopFsRelationCommand", "mode": "dynamic", "how": "exact"}
    return {
        "kind": "query",
        "version": 1,
        "query": number,
        "function": "command",
        "started": started,
        "ended": started + 60_000,
        "reads": [
            {
                "node": "FileSourceScanExec",
                "roots": [f"file:/lake/{table}"],
                "layouts": layouts[table],
            }
            for table in READ
        ],
        "writes": [{**written, "path": f"file:/lake/{WRITTEN}", "layouts": layouts[WRITTEN]}],
    }


def merge(bundle: CaptureBundle) -> None:
    """Merge a bundle, to the event."""
    merged_event(bundle, task_lineage(bundle))


# --- parts of it ----------------------------------------------------------------------------------


def hours(count: int) -> list[Partition]:
    """Give a gap-free run of hours, as the partitions of one region."""
    start = datetime(2000, 1, 1, tzinfo=UTC)
    return [
        Partition((("hour", f"{start + timedelta(hours=n):%Y-%m-%d-%H}"), ("region", "eu")))
        for n in range(count)
    ]


def description(count: int) -> Callable[[], object]:
    """Give the description of a gap-free run of hours by its first and last."""
    partitions = frozenset(hours(count))

    def describe() -> None:
        assert date_range(partitions, "%Y-%m-%d-%H") is not None

    return describe


def growing(what: str, growth: Growth) -> Iterator[Result]:
    """Give the ratio of the last two sizes, and how all of them grow."""
    ratio = growth.seconds[-1] / growth.seconds[-2]
    yield Result(f"{what} twice the partitions / once", ratio, 2.2, str(growth))
    yield Result(f"exponent of {what}", growth.exponent, 1.1, "of the same")


def comparison(count: int) -> Callable[[], None]:
    """Give the comparison of so many days; making them is not measured."""
    days = [(date.min + timedelta(days=n)).isoformat() for n in range(count)]
    expected, seen = (
        frozenset(Partition((("dt", day),)) for day in written)
        for written in (days, [day.replace("-", "") for day in days])
    )
    dimensions = (Dimension.of_column("dt"),)

    def compare() -> None:
        found = reconcile(Expected(Kind.DECLARED, expected, dimensions), Subset(dimensions, seen))
        assert found.status is PartitionStatus.MATCHED

    return compare
