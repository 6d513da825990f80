"""What merging costs: against decoding the same bytes, as it grows, and in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.event.from_bundle import merged_event, task_lineage
from airflow_provider_sparklineage.spark.capture.bundle import EVENTS, CaptureBundle, Manifest
from benchmarks.amplification import ACTIONS, amplified, run_id
from benchmarks.measuring import in_turns, peak_mb
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNS = 5
MANY = 1000
MEGABYTES = 200
LAKES = 100


def measured() -> Iterator[Result]:
    """Measure all of it; memory first, see :func:`.peak_mb`."""
    yield remembering()
    yield from merging(20)
    yield from merging(MANY)
    yield from merging(MANY, None)


def merge(folder: Path) -> None:
    """Merge the events in a folder, to the event."""
    bundle = CaptureBundle(folder, Manifest(application_run_id=run_id()))
    merged_event(bundle, task_lineage(bundle))


def decode(events: Path) -> list[object]:
    """Read a file and decode all that is in its lines to plain objects, which then are all there.

    That is what merging is compared with. It decodes facets too, of which merging forwards most as
    they are; it makes nothing of them.
    """
    with events.open("rb") as lines:
        return [msgspec.json.decode(line) for line in lines]


def merging(actions: int, lakes: int | None = LAKES) -> Iterator[Result]:
    """Merge so many SQL actions of one application, and twice as many.

    :param lakes: they read and write three datasets in each of these; None: each repetition of the
        recorded application has three of its own
    """
    with tempfile.TemporaryDirectory() as name:
        once, twice = Path(name, "once"), Path(name, "twice")
        for folder, count in ((once, actions), (twice, 2 * actions)):
            folder.mkdir()
            with (folder / EVENTS).open("wb") as file:
                file.writelines(amplified(count // ACTIONS, lakes))
        merge_s, decode_s, twice_s = in_turns(
            lambda: merge(once), lambda: decode(once / EVENTS), lambda: merge(twice), runs=RUNS
        )
        size = (once / EVENTS).stat().st_size / 1e6
    datasets = 3 * min(actions // ACTIONS, lakes or actions)
    what = f"merge {actions} actions on {datasets} datasets"
    figures = f"{size:.1f} MB in {merge_s:.3f} s, decoded in {decode_s:.3f} s"
    # With few actions the fixed costs of merging dominate; for them there is no goal.
    goal = 3.0 if actions == MANY else None
    yield Result(f"{what} / decode", merge_s / decode_s, goal, figures)
    figures = f"{merge_s:.3f} s, twice as many in {twice_s:.3f} s"
    yield Result(f"{what}, twice / once", twice_s / merge_s, 2.2, figures)


def remembering() -> Result:
    """Merge a file of 200 MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, EVENTS)
        of_two, of_one = (sum(map(len, amplified(copies))) for copies in (2, 1))
        copies = MEGABYTES * 1_000_000 // (of_two - of_one) + 1
        with path.open("wb") as file:
            file.writelines(amplified(copies, LAKES))
        size = path.stat().st_size / 1e6
        rise = peak_mb(lambda: merge(Path(folder)))
    figures = f"{size:.0f} MB of events"
    return Result("peak memory of merging 200 MB", rise, 150, figures, unit=" MB")
