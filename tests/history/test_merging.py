"""Events that come in builds of any sizes and orders give the tables of one build of all of them.

Of 200 worlds `make test-all` takes all, and a quick run one. Buckets and pieces are tiny, so
that each world has many of them, and they are cut.
"""

from __future__ import annotations

import json
import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise

import duckdb
import pytest
from hypothesis import settings

from airflow_provider_sparklineage.history.engines import building
from airflow_provider_sparklineage.history.engines.duckdb import History
from airflow_provider_sparklineage.history.engines.layouts import Sizes
from airflow_provider_sparklineage.history.facts import facts_of
from airflow_provider_sparklineage.history.store import GENERATIONS, GRACE, LOCK, Piece, Store
from airflow_provider_sparklineage.history.tables import TABLES
from tests.history.built import sent
from tests.history.messy.worlds import world as messy
from tests.history.simulation import world
from tests.unit.history.worlds import add_facts, at, event, kill_at, lines, read, write

SEEDS = [
    pytest.param(seed, marks=[pytest.mark.long] if seed > 0 else [])
    for seed in range(settings.default.max_examples if settings.default else 1)
]
CHANGING = ("write", "put", "remove")


def contents(rows):
    """Give the rows of each table, in one order."""
    found = {}
    for table in TABLES:
        names = ", ".join(f'"{one.name}"' for one in table.columns)
        found[table.name] = rows.rows(f"SELECT {names} FROM {table.name} ORDER BY ALL")
    return found


def of_store(store):
    with History(Store.open(store.url)) as history:
        return contents(history)


def changed(event, chance):
    """Give another event of the same run: at another time, of another kind, without an access."""
    other = json.loads(json.dumps(event))
    match chance.choice(("time", "type", "inputs", "outputs")):
        case "time":
            time = datetime.fromisoformat(other["eventTime"])
            other["eventTime"] = (time + timedelta(minutes=chance.randint(-90, 90))).isoformat()
        case "type":
            other["eventType"] = chance.choice(("START", "RUNNING", "COMPLETE", "FAIL"))
        case side if other[side]:
            other[side].pop(chance.randrange(len(other[side])))
    return other


def chunks_of(seed):
    """Give the events of a world as lines of facts, in chunks, of which some overlap."""
    chance = random.Random(seed)
    ledger = messy(seed) if seed % 2 else world(seed, 2 + seed % 6)
    events = [*sent(ledger, is_sent=seed % 3 == 0)]
    events += [changed(one, chance) for one in chance.sample(events, len(events) // 8)]
    events = chance.sample(events, len(events) * 9 // 10)  # the ends of some runs never come
    if seed % 4 == 0:
        events.sort(key=lambda one: datetime.fromisoformat(one["eventTime"]))
    if seed % 4 == 1:  # most tables are there, and single events come late
        sizes = [len(events) * 3 // 4, *[1] * 6]
    else:
        sizes = [chance.choice((1, 2, 3, 8, 30, 90)) for _ in range(12)]
    found = [facts_of(json.dumps(one), "world") for one in events]
    chunks, place = [], 0
    for size in [*sizes, len(found)]:
        again = chance.sample(found[:place], min(2, place))
        chunks.append([*found[place : place + size], *again])
        place += size
    return chunks


def end_of(line):
    """Give the time of an event."""
    return datetime.fromisoformat(json.loads(line.text)["event_time"]).replace(tzinfo=UTC)


@pytest.mark.parametrize("seed", SEEDS)
def test_merging_gives_the_tables_of_one_build(seed, tmp_path, monkeypatch):
    chunks, chance = chunks_of(seed), random.Random(-seed)
    rounds = chance.choice((7, 50, 10_000))
    sizes = Sizes(chance.choice((20, 60, 10_000)), 8, chance.choice((3, 11, 40)), rounds)
    monkeypatch.setattr(building, "MAX_PARTS", chance.choice((2, 4, 32)))
    now, ends = datetime(2100, 1, 1, tzinfo=UTC), sorted(map(end_of, chain(*chunks)))
    ages = [now - chance.choice(ends[: len(ends) // 2]) for _ in range(3)]
    store, keep = Store(str(tmp_path / "store"), lambda: now), None
    for chunk in chunks:
        if chance.random() < 0.2:
            with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
                killed = Store(store.url)
                kill_at(killed, patch, chance.randint(1, 40), CHANGING)
                add_facts(killed, chunk, sizes=sizes)
            (store.files.root / LOCK).unlink(missing_ok=True)  # as its process is gone
        if seed % 3 == 0 and chance.random() < 0.3:
            keep = min(keep or timedelta.max, chance.choice(ages))
        add_facts(store, chunk, sizes=sizes, keep=keep)
    whole = Store(str(tmp_path / "whole"), lambda: now)
    add_facts(whole, [line for chunk in chunks for line in chunk], keep=keep)
    expected = of_store(whole)
    for name, rows in of_store(store).items():
        assert rows == expected[name], name
    assert store.manifest.rows == whole.manifest.rows
    check_layout(store)


def check_layout(store):
    """Check that each piece has the rows that the manifest says, in the order of the table."""
    layout, outside = store.manifest.layout, {}
    retired = {one.name for one in store.manifest.retired}
    for file in (store.files.root / GENERATIONS).rglob("*.parquet"):
        name = file.relative_to(store.files.root)
        kept = layout.files() | retired
        assert not kept.isdisjoint(map(str, (name, *name.parents))), "a file is left"
    for table in TABLES:
        pieces = layout.pieces[table.name]
        assert [piece.file for piece in pieces] == store.manifest.tables[table.name]
        for piece, after in pairwise([*pieces, Piece("", 0, "", -1)]):
            time = f"coalesce({table.time}, 'infinity'::TIMESTAMP)"
            outside[piece.file] = f"{time} < '{piece.start}'"
            if after.bucket == piece.bucket:
                outside[piece.file] += f" OR {time} >= '{after.start}'"
        for piece in pieces:
            [file] = store.local([piece.file])
            rows = duckdb.sql(f"FROM '{file}'")
            assert len(rows) == piece.rows
            found = rows.project(", ".join(table.sorted_by)).fetchall()
            assert found == sorted(found, key=lambda row: [(one is None, one) for one in row])
            assert not rows.filter(outside[piece.file]).fetchall()


# --- what a new event changes of others -----------------------------------------------------------

WHOLE, DAY, PART = None, "dt=1", "dt=1/region=eu"


@pytest.mark.parametrize(
    ("there", "new"),
    [
        pytest.param([write(WHOLE)], [read(DAY)], id="a write of all, then a read of a day"),
        pytest.param([write(PART)], [read(DAY)], id="a write of a part, then a read of a day"),
        pytest.param([read(DAY)], [write(PART)], id="a read of a day, then a write of a part"),
        pytest.param([read(DAY)], [write(WHOLE)], id="a read of a day, then a write of all"),
        pytest.param([write(PART)], [write(DAY)], id="a write of a part, then one of the day"),
        pytest.param([write(DAY), read("dt=2")], [write(DAY)], id="a write of a day again"),
        pytest.param([read(WHOLE)], [write(DAY)], id="a read of all, then a write of a day"),
    ],
)
@pytest.mark.parametrize("minute", [2, 6], ids=["late", "in order"])
def test_what_a_new_event_changes_of_others_is_merged(there, new, minute, made, tmp_path):
    events = [event(f"e{n}", at(4, n), one, started=at(3)) for n, one in enumerate(there)]
    events += [event(f"f{n}", at(5, n), one, started=at(3)) for n, one in enumerate(there)]
    added = [event(f"new{n}", at(minute), one, started=at(minute - 1)) for n, one in enumerate(new)]
    store, whole = (Store(str(tmp_path / name)) for name in ("store", "whole"))
    add_facts(store, lines(events))
    add_facts(store, lines(added))
    add_facts(whole, lines(events + added))
    assert made == [1, 1]
    assert of_store(store) == of_store(whole)


@pytest.mark.parametrize("cells", [[DAY, "dt=2"], [PART, "dt=1/region=us"], [DAY, PART]])
@pytest.mark.parametrize("gone", [WHOLE, DAY, PART])
def test_a_write_that_a_later_event_takes_back_is_taken_back(cells, gone, tmp_path):
    events = [
        *(event(f"w{n}", at(2, n), write(one), started=at(1)) for n, one in enumerate(cells)),
        event("overwriter", at(4), write(gone), started=at(3)),
        *(event(f"r{n}", at(6, n), read(one), started=at(5)) for n, one in enumerate(cells)),
        event("all", at(6), read(WHOLE), started=at(5)),
    ]
    later = event("overwriter", at(4, 30), write(DAY, name="other"), started=at(3))
    store, whole = (Store(str(tmp_path / name)) for name in ("store", "whole"))
    add_facts(store, lines(events))
    add_facts(store, lines([later]))
    add_facts(whole, lines([*events, later]))
    assert of_store(store) == of_store(whole)


# --- what is rewritten ----------------------------------------------------------------------------

NAMES = [f"table_{number:02}" for number in range(16)]
SMALL = Sizes(bucket=20, piece=40)


def day_of(number, names=NAMES):
    """Give the events of a day: each writes its day of a table, and reads that of the next."""
    cell = f"dt={number:02}"
    return [
        event(
            f"{name}@{number}",
            at(number),
            write(cell, name=name),
            read(cell, name=following),
            started=at(number, 30),
        )
        for name, following in zip(names, [*names[1:], names[0]], strict=True)
    ]


@pytest.fixture
def days(tmp_path):
    """Build a store of six days of sixteen tables."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    store = Store(str(tmp_path / "store"), lambda: now[0])
    events = [one for number in range(6) for one in day_of(number)]
    add_facts(store, lines(events), sizes=SMALL)
    return store, now


@pytest.fixture
def made(monkeypatch):
    """Count the builds that make the tables anew."""
    calls, make = [], building.make
    monkeypatch.setattr(building, "make", lambda *args: calls.append(1) or make(*args))
    return calls


def test_one_event_rewrites_few_files(days, made):
    store, _ = days
    before = store.manifest
    [one, *_] = day_of(6)
    add_facts(store, lines([one]), sizes=SMALL)
    assert made == []
    new = store.manifest.files() - before.files()
    assert len(before.files()) > 50
    # Facts; runs; the accesses of two datasets; a change and a binding, in either order. A piece
    # may have been cut.
    assert 6 <= len(new) <= 12


def test_an_event_without_datasets_changes_runs_alone(days, made):
    store, _ = days
    before = store.manifest.tables
    add_facts(store, lines([event("new", at(20))]), sizes=SMALL)
    assert made == []
    found = store.manifest.tables
    assert {name for name, files in found.items() if files != before[name]} == {"runs"}


def test_a_read_of_a_partition_does_not_rewrite_other_reads_of_its_dataset(days):
    store, _ = days
    readers = [event(f"r{n}", at(20, n), read("dt=01", name=NAMES[0])) for n in range(59)]
    add_facts(store, lines(readers), sizes=SMALL)
    before = store.manifest.layout.pieces["bindings"]
    last = event("last", at(30), read("dt=01", name=NAMES[0]), started=at(29))
    add_facts(store, lines([last]), sizes=SMALL)
    after = store.manifest.layout.pieces["bindings"]
    assert len({one.file for one in after} - {one.file for one in before}) == 1


def test_files_are_removed_an_hour_after_they_were_replaced(days):
    store, now = days
    replaced = set()
    for number in range(20, 26):
        before = store.manifest.files()
        add_facts(store, lines([event(f"new{number}", at(number))]), sizes=SMALL)
        replaced |= before - store.manifest.files()
        assert all((store.files.root / name).exists() for name in replaced)
        now[0] += GRACE / 8
    now[0] += GRACE
    add_facts(store, lines([event("last", at(50))]), sizes=SMALL)
    assert not [name for name in replaced if (store.files.root / name).exists()]
    manifest, root = store.manifest, store.files.root
    found = {file.relative_to(root).as_posix() for file in root.glob("[fg]*/*/*.parquet")}
    retired = {one.name for one in manifest.retired}
    assert {name for name in found if not {name, name.rpartition("/")[0]} & retired} == (
        manifest.files()
    )


def test_a_reader_has_its_files_while_others_merge(days):
    store, _ = days
    with History(Store.open(store.url)) as history:
        before = contents(history)
        for number in range(20, 24):
            add_facts(store, lines(day_of(number)), sizes=SMALL)
        assert contents(history) == before


# --- when the tables are divided or made anew -----------------------------------------------------


def test_many_more_events_than_there_were_need_other_buckets(made, tmp_path):
    store, whole = (Store(str(tmp_path / name)) for name in ("store", "whole"))
    add_facts(store, lines(day_of(0)), sizes=SMALL)
    buckets = store.manifest.layout.buckets
    add_facts(store, lines([one for number in range(1, 34) for one in day_of(number)]), sizes=SMALL)
    assert made == [1]
    assert len(store.manifest.layout.buckets) > 2 * len(buckets)
    add_facts(store, lines(day_of(56)), sizes=SMALL)
    check_layout(store)
    add_facts(whole, lines([one for number in (*range(34), 56) for one in day_of(number)]))
    assert of_store(store) == of_store(whole)


@pytest.mark.long
def test_the_tables_of_many_events_are_made_in_rounds(made, tmp_path):
    few, whole = (Store(str(tmp_path / name)) for name in ("few", "whole"))
    events = [one for number in range(10) for one in day_of(number)]
    heard = []
    add_facts(few, lines(events), sizes=Sizes(bucket=20, piece=40, round=30), say=heard.append)
    add_facts(whole, lines(events), say=heard.append)
    assert made == [1, 1]
    assert heard[0] == f"Bringing the events into the tables: part 1 of {len(heard)}."
    assert len(heard) == len({*heard}) > 5
    check_layout(few)
    assert of_store(few) == of_store(whole)


def test_the_facts_of_several_builds_are_made_anew_in_rounds(made, tmp_path):
    """The files of each build have the same names, and each is divided among several rounds."""
    store = Store(str(tmp_path / "store"))
    for number in range(3):
        add_facts(store, lines(day_of(number)))
    before = of_store(store)
    found = json.loads(store.files.read("manifest.json"))
    del found["layout"]
    store.files.write("manifest.json", json.dumps(found).encode())
    add_facts(store, lines([event("new", at(50))]), sizes=Sizes(bucket=20, piece=40, round=5))
    assert made == [1, 1]
    after = of_store(store)
    assert len(after["runs"]) == len(before["runs"]) + 1
    assert after["accesses"] == before["accesses"]


def test_a_store_whose_files_are_not_known_is_made_anew(days, made):
    store, _ = days
    found = json.loads(store.files.read("manifest.json"))
    del found["layout"]
    store.files.write("manifest.json", json.dumps(found).encode())
    before = of_store(store)
    add_facts(store, lines([event("new", at(50))]), sizes=SMALL)
    assert made == [1]
    assert len(of_store(store)["runs"]) == len(before["runs"]) + 1


def test_to_forget_nothing_rewrites_nothing(days, made):
    store, now = days
    before = store.manifest
    add_facts(store, [], keep=now[0] - datetime(2024, 1, 1, tzinfo=UTC), sizes=SMALL)
    assert made == []
    assert store.manifest.tables == before.tables
    assert store.manifest.since is not None


def test_what_is_merged_after_forgetting_is_not_what_was_forgotten(days, made, tmp_path):
    store, now = days
    keep = now[0] - datetime(2024, 10, 15, 0, 5, tzinfo=UTC)
    add_facts(store, [], keep=keep, sizes=SMALL)
    assert made == [1]
    again = [*day_of(3), *day_of(10)]
    assert add_facts(store, lines(again), sizes=SMALL).new == len(NAMES)
    assert made == [1]
    whole = Store(str(tmp_path / "whole"))
    add_facts(whole, lines(one for n in (5, 10) for one in day_of(n)))
    assert of_store(store) == of_store(whole)


@pytest.fixture
def aging(tmp_path):
    """Build a store of forty days; gives a build that forgets all but so many of them."""
    store = Store(str(tmp_path / "store"), lambda: datetime(2024, 10, 15, 0, 40, tzinfo=UTC))
    add_facts(store, lines(one for number in range(40) for one in day_of(number)), sizes=SMALL)

    def keep(days, new=()):
        return add_facts(store, lines(new), keep=timedelta(minutes=days, seconds=30), sizes=SMALL)

    return store, keep


def test_what_is_forgotten_is_taken_out_of_a_few_files(aging, made, tmp_path):
    store, keep = aging
    before = store.manifest
    keep(39)
    assert made == []
    new = store.manifest.files() - before.files()
    assert len(before.files()) > 140
    assert len(new) < 60
    assert store.manifest.facts == before.facts
    whole = Store(str(tmp_path / "whole"))
    add_facts(whole, lines(one for number in range(1, 40) for one in day_of(number)))
    assert of_store(store) == of_store(whole)
    assert store.manifest.rows == whole.manifest.rows
    rewritten = store.manifest
    keep(39)
    assert (store.manifest.files(), made) == (rewritten.files(), [1])  # 1: that of `whole`


def test_facts_are_taken_out_of_a_file_when_a_tenth_of_it_is_forgotten(aging):
    store, keep = aging
    [before] = store.manifest.facts.values()
    keep(37)
    assert [*store.manifest.facts.values()] == [before]
    keep(36, day_of(40))
    [after] = store.manifest.facts.values()
    assert after != before
    facts = duckdb.read_parquet(store.local(after))
    assert len(facts) == store.manifest.rows["events"] == 37 * len(NAMES)


def test_much_that_is_forgotten_at_once_is_made_anew(aging, made):
    store, keep = aging
    keep(20)
    assert made == [1]
    keep(0)
    assert made == [1, 1]
    assert store.manifest.facts == {}
    assert set(store.manifest.rows.values()) == {0}
    keep(0)
    keep(10, day_of(40))
    assert store.manifest.rows["events"] == len(NAMES)


# --- the facts ------------------------------------------------------------------------------------


def test_a_large_part_of_the_facts_is_not_written_again(days, monkeypatch):
    store, _ = days
    [large] = store.manifest.facts.values()
    monkeypatch.setattr(building, "MAX_PARTS", 3)
    for number in range(10, 18):
        add_facts(store, lines([event(f"new{number}", at(number))]), sizes=SMALL)
        assert large in store.manifest.facts.values()
        assert len(store.manifest.facts) <= 3
