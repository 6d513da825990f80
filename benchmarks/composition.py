"""What wide tables cost, how composing grows with a chain of stagings, and reading wide facets."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.event.pipeline import merged_event
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import FULL, Access, Scope
from airflow_provider_sparklineage.lineage.bundle import task_lineage
from airflow_provider_sparklineage.lineage.columns.composition import Provenance, compose
from airflow_provider_sparklineage.lineage.columns.reported import decode
from airflow_provider_sparklineage.lineage.ledger import Ledgers, ReportedWrites
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from benchmarks import wide_tables
from benchmarks.measuring import Growth, in_turns, peak_mb
from benchmarks.merging import decode as decoded
from benchmarks.results import Curve, Result
from benchmarks.wide_tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_sparklineage.lineage.dataset import TaskLineage

STAGINGS = 200
COLUMNS = 200
DAYS = 4000
RUNS = 4
SIZES = (25, 50, 100, 200)
FAN = 20


def measured() -> Iterator[Result | Curve]:
    """Measure all of it; memory first, see :func:`.peak_mb`."""
    with tempfile.TemporaryDirectory() as name:
        yield from merging(Path(name))
    yield from composing()
    for measure in (chaining, reading, growing, looping):
        yield measure()


# --- wide tables ----------------------------------------------------------------------------------


def merging(folder: Path) -> Iterator[Result]:
    """Merge an application that makes three wide tables to its event, against decoding it."""
    wide_tables.write(folder / "peak", COLUMNS)
    what = f"peak memory, {TABLES} tables of {COLUMNS} columns, each of all"
    yield Result(what, peak_mb(lambda: merge(folder / "peak")), None, "merged", unit=" MB")
    for columns, described, fan, goal in (
        (50, False, None, None),
        (100, False, None, 8),
        (COLUMNS, False, None, 8),
        (50, True, None, 20),
        (COLUMNS, False, FAN, None),
    ):
        made = folder / f"{columns}-{described}-{fan}"
        wide_tables.write(made, columns, described=described, fan=fan)
        lineage = merge(made)
        composed = lineage.outputs[0].columns
        found = [len(edges) for edges in composed.fields.values()] if composed else []
        expected = [fan or columns] * columns
        assert found == expected, found
        merge_s, decode_s = in_turns(partial(merge, made), partial(decoded, made), runs=RUNS)
        texts = ", with descriptions" if described else ""
        what = f"merge {TABLES} tables, {columns} columns, each of {fan or 'all'}{texts} / decode"
        figures = f"{merge_s:.3f} s, decoded in {decode_s:.3f} s"
        yield Result(what, merge_s / decode_s, goal, figures)


def merge(folder: Path) -> TaskLineage:
    """Merge the events in a folder, to the event."""
    bundle = CaptureBundle(folder, Manifest(application_run_id=wide_tables.RUN))
    lineage = task_lineage(bundle)
    merged_event(bundle, lineage)
    return lineage


def composing() -> Iterator[Result | Curve]:
    """Compose three wide tables, with and without descriptions."""
    grown = {}
    for described in (False, True):
        growth = Growth.of(SIZES, partial(composition, described=described))
        texts = ", with descriptions" if described else ""
        what = f"compose {TABLES} tables, {COLUMNS} columns, each of all{texts}"
        goal = None if described else 0.3
        yield Result(what, growth.seconds[-1], goal, "composition alone", unit=" s")
        yield Result(f"exponent of it up to {COLUMNS} columns", growth.exponent, 2.1, str(growth))
        grown["with descriptions" if described else "without descriptions"] = growth
    title = f"Compose {TABLES} tables, each column of all"
    yield Curve("composition", title, "columns of each table", grown)


def composition(columns: int, *, described: bool) -> Callable[[], None]:
    """Give the composition of three tables."""
    lineages = wide_tables.lineages(columns, described=described)

    def run() -> None:
        known: dict[DatasetName, Provenance] = {}
        for number, lineage in enumerate(lineages, 1):
            composed = compose(lineage, known.get)
            known[DatasetName("file", f"/lake/t{number}")] = Provenance(composed, internal=True)
        origin = {column.dataset.name for edges in composed.fields.values() for column in edges}
        assert origin == {"/lake/t0"}, origin
        assert all(len(edges) == columns for edges in composed.fields.values())

    return run


# --- chains, loops and facets ---------------------------------------------------------------------


def chaining() -> Result:
    """Compose a chain of stagings with 200 columns: 400 against 200 of them.

    Each staging makes a column of the column before, with a text of its own, and filters by it.
    """
    once, twice = chain(STAGINGS), chain(2 * STAGINGS)
    once_s, twice_s = in_turns(once, twice, runs=RUNS)
    figures = (
        f"{STAGINGS} stagings of {COLUMNS} columns in {once_s:.2f} s, twice in {twice_s:.2f} s"
    )
    return Result("compose twice the stagings / once", twice_s / once_s, 2.2, figures)


def reading() -> Result:
    """Read a facet in the legacy form, each of 200 columns influenced by 200, into the compact one.

    Against decoding the same bytes to dicts.
    """
    raw = legacy(COLUMNS, COLUMNS)
    ours_s, plain_s = in_turns(
        lambda: decode(raw, lambda name: name), lambda: msgspec.json.decode(raw), runs=RUNS
    )
    compact = decode(raw, lambda name: name)
    found = len(compact.dataset), sum(map(len, compact.fields.values()))
    if found != (COLUMNS, COLUMNS):
        msg = f"expected {COLUMNS} influences and as many columns, found {found}"
        raise ValueError(msg)
    figures = f"{len(raw) / 1e6:.1f} MB: compact in {ours_s:.3f} s, decoded in {plain_s:.3f} s"
    name = f"legacy {COLUMNS}x{COLUMNS} to compact / decode"
    return Result(name, ours_s / plain_s, 5.0, figures)


def growing() -> Result:
    """Read a facet in the legacy form with twice the edges."""
    once, twice = legacy(500, 1000), legacy(1000, 1000)
    once_s, twice_s = in_turns(
        lambda: decode(once, lambda name: name), lambda: decode(twice, lambda name: name), runs=RUNS
    )
    figures = f"500,000 edges in {once_s:.2f} s, 1,000,000 in {twice_s:.2f} s"
    return Result("legacy 1000x1000 to compact / 500x1000", twice_s / once_s, 2.2, figures)


def looping() -> Result:
    """Write a partition, read it back, write the next: 8,000 days against 4,000."""
    once, twice = loop(DAYS), loop(2 * DAYS)
    once_s, twice_s = in_turns(once, twice, runs=RUNS)
    figures = f"{DAYS:,} days in {once_s:.2f} s, twice as many in {twice_s:.2f} s"
    return Result("loop over twice the days / once", twice_s / once_s, 2.2, figures)


def loop(days: int) -> Callable[[], None]:
    """Give the writes of so many partitions, each overwritten, read back and overwritten again."""
    start, table = datetime(2000, 1, 1, tzinfo=UTC), DatasetName("file", "/lake/t")

    def run() -> None:
        writes = ReportedWrites()
        for day in range(days):
            began = start + timedelta(days=day)
            here = Scope(locations=frozenset({f"/lake/t/dt={began:%Y-%m-%d}"}))
            for hours in (1, 2):
                ended = began + timedelta(hours=hours)
                writes.add(Access(table, Side.WRITE, began, ended, here, here))
                writes.provenance(Access(table, Side.READ, ended, ended, here))
        writes.at_the_end()

    return run


def _entry(dataset: str, column: str, kind: str, subtype: str, text: str) -> dict[str, object]:
    transformation = {"type": kind, "subtype": subtype, "description": text, "masking": False}
    return {
        "namespace": "file",
        "name": dataset,
        "field": column,
        "transformations": [transformation],
    }


def legacy(columns: int, influences: int) -> bytes:
    """Give a facet as listeners write it without ``dataset``."""
    rows = [_entry("/b", f"f{n}", "INDIRECT", "JOIN", f"ON (k = f{n})") for n in range(influences)]
    fields = {
        f"x{n}": {"inputFields": [_entry("/a", f"x{n}", "DIRECT", "IDENTITY", f"x{n}"), *rows]}
        for n in range(columns)
    }
    return msgspec.json.encode({"fields": fields})


def chain(stagings: int) -> Callable[[], None]:
    """Give the merge of the column lineage of so many stagings; reading it is not measured."""
    start = datetime(2000, 1, 1, tzinfo=UTC)
    names = [DatasetName("file", f"/staging/{n}") for n in range(stagings + 1)]
    steps = []
    for number in range(stagings):
        fields = {
            f"x{n}": {
                "inputFields": [
                    _entry(
                        names[number].name,
                        f"x{n}",
                        "DIRECT",
                        "TRANSFORMATION",
                        f"(x{n} + {number}) AS x{n}",
                    )
                ]
            }
            for n in range(COLUMNS)
        }
        text = f"WHERE (x0 > {number})"
        rows = [_entry(names[number].name, "x0", "INDIRECT", "FILTER", text)]
        raw = msgspec.json.encode({"fields": fields, "dataset": rows})
        steps.append(decode(raw, lambda name: name))

    def merge() -> None:
        ledgers = Ledgers()
        for number, lineage in enumerate(steps):
            source, target = names[number : number + 2]
            began = start + timedelta(seconds=2 * number)
            ended = began + timedelta(seconds=1)
            found = ledgers.of(source).provenance(Access(source, Side.READ, began, ended))
            composed = compose(lineage, {source: found}.get)
            written = Access(target, Side.WRITE, began, ended, owned=FULL)
            ledgers.of(target).enter_write(written, composed, frozenset())

    return merge
