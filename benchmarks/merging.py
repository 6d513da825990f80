"""What merging costs: against decoding the same bytes, as it grows, and in memory."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.model.allowance import garbage_collector_paused
from airflow_provider_sparklineage.model.terms import EVENTS
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from benchmarks.amplification import ACTIONS, amplified, run_id
from benchmarks.measuring import Growth, in_turns, peak_mb
from benchmarks.results import Curve, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.lineage.dataset import TaskLineage

RUNS = 5
FEW = 20
MANY = 1000
SIZES = (500, 1000, 2000, 4000)
MEGABYTES = 200
LAKES = 100
_IN_PYTHON = (
    "reading and joining the events takes as long as to decode them; the rest is Python's time for "
    "each write (its columns) and for each dataset of its own (its facets, and the steps of the "
    "event, most of all to fit into max_event_bytes)"
)
_TOO_LARGE = (
    "the event of 500 actions fits into max_event_bytes, and of the larger ones ever more is made "
    "and measured to be left out"
)


def measured() -> Iterator[Result | Curve]:
    """Measure all of it; memory first, see :func:`.peak_mb`."""
    yield remembering()
    yield against_decoding(FEW, LAKES, goal=None)  # the fixed costs of merging dominate
    yield against_decoding(MANY, LAKES, goal=1.3)
    yield against_decoding(MANY, None, goal=1.5)
    yield against_decoding(2 * MANY, None, goal=2.5)
    yield from growing()


def merge(folder: Path) -> tuple[TaskLineage, Event]:
    """Merge the events in a folder, to the event."""
    bundle = CaptureBundle(folder, Manifest(application_run_id=run_id()))
    lineage = task_lineage(bundle)
    return lineage, merged_event(bundle, lineage)


@garbage_collector_paused()
def decode(folder: Path, file: str = EVENTS) -> list[object]:
    """Read a file of a bundle and decode its lines to plain objects, which then are all there.

    That is what merging is compared with. It decodes facets too, of which merging forwards most as
    they are; it makes nothing of them. With the collector of garbage it takes three times as long,
    for all the objects that are gone through; merging pauses it by itself.
    """
    with (folder / file).open("rb") as lines:
        return [msgspec.json.decode(line) for line in lines]


@contextmanager
def events(actions: int, lakes: int | None) -> Iterator[Path]:
    """Give a folder with the events of so many SQL actions of one application.

    :param lakes: they read and write three datasets in each of these; None: each repetition of the
        recorded application has three of its own
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / EVENTS).open("wb") as file:
            file.writelines(amplified(actions // ACTIONS, lakes))
        lineage, _ = merge(folder)
        found = len(lineage.application.actions) if lineage.application else 0
        if found != actions or not lineage.outputs:
            msg = f"of {actions} actions {found} were merged, to {len(lineage.outputs)} outputs"
            raise AssertionError(msg)
        yield folder


def _datasets(actions: int, lakes: int | None) -> int:
    return 3 * min(actions // ACTIONS, lakes or actions)


def against_decoding(actions: int, lakes: int | None, goal: float | None) -> Result:
    """Merge events, against decoding them."""
    with events(actions, lakes) as folder:
        merge_s, decode_s = in_turns(lambda: merge(folder), lambda: decode(folder), runs=RUNS)
        size = (folder / EVENTS).stat().st_size / 1e6
    name = f"merge {actions:,} actions on {_datasets(actions, lakes):,} datasets / decode"
    figures = f"{size:.1f} MB in {merge_s:.3f} s, decoded in {decode_s:.3f} s"
    return Result(name, merge_s / decode_s, goal, figures, missed=_IN_PYTHON)


def growing() -> Iterator[Result | Curve]:
    """Merge ever more actions, on the same datasets and on ever more."""
    shared = _growth(merge, LAKES)
    own, decoding = _growth(merge, None), _growth(decode, None)
    for growth, what in ((shared, "the same datasets"), (own, "datasets of their own")):
        name = f"merge ever more actions on {what}, exponent"
        yield Result(name, growth.exponent, 1.05, str(growth), missed=_TOO_LARGE)
        once, twice = growth.seconds[1:3]
        figures = f"{once:.3f} s, twice as many in {twice:.3f} s"
        name = f"merge twice the actions on {what} / once"
        yield Result(name, twice / once, 2.05, figures, missed=_TOO_LARGE)
    lines = {
        "on 300 datasets": shared,
        "on datasets of their own": own,
        "decoding the events": decoding,
    }
    yield Curve("merging", "Merging the actions of an application", "actions", lines)


def _growth(action: Callable[[Path], object], lakes: int | None) -> Growth:
    with ExitStack() as kept:
        folders = {size: kept.enter_context(events(size, lakes)) for size in SIZES}
        return Growth.of(SIZES, lambda size: lambda: action(folders[size]))


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
