"""How composing columns grows with a chain of stagings, and what reading wide facets costs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.access.ledger import Ledgers
from airflow_provider_sparklineage.lineage.access.reported import ReportedWrites
from airflow_provider_sparklineage.lineage.application.accesses import FULL, Access, Scope
from airflow_provider_sparklineage.lineage.columns import compose, decode
from airflow_provider_sparklineage.model.datasets import DatasetName
from benchmarks.measuring import in_turns
from benchmarks.results import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


STAGINGS = 200
COLUMNS = 200
DAYS = 4000
RUNS = 6


def measured() -> Iterator[Result]:
    """Measure all of it."""
    for measure in (chaining, reading, growing, looping):
        yield measure()


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
