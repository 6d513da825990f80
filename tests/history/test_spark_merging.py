"""Merged on Spark, and by Spark and DuckDB in turns, events give the tables of one build of all."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.sources import source_of
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.history.tables import TABLES
from tests.history.built import sent
from tests.history.messy.worlds import world as messy
from tests.history.simulation import world
from tests.history.test_merging import changed, check_layout, of_store
from tests.spark import submissions

pytestmark = [pytest.mark.spark, pytest.mark.long]
duckdb = pytest.importorskip("duckdb")

STORES = [
    (["spark"], (20, 8, 11)),
    (["spark"], (60, 8, 40)),
    (["spark", "duckdb"], (20, 8, 3)),
    (["duckdb", "spark"], (10_000, 8, 11)),
]
"""The engines that build in turns, and the sizes of buckets and pieces, which are tiny."""
SEEDS = range(len(STORES))
CHUNKS = 4
LAKEHOUSES = {"iceberg": "lakehouse.history", "delta": "{work}/delta history"}
MESSY, TURNS = 1, ("spark", "killed", "spark", "spark")


def chunks_of(seed):
    """Give the events of a world in chunks, of which some overlap, and some events are changed."""
    chance = random.Random(seed)
    ledger = messy(seed) if seed % 2 else world(seed, 3)
    events = [*sent(ledger, is_sent=seed % 3 == 0)]
    events += [changed(one, chance) for one in chance.sample(events, len(events) // 8)]
    chance.shuffle(events)
    places = sorted(chance.sample(range(1, len(events)), CHUNKS - 1))
    chunks = [events[a:b] for a, b in zip([0, *places], [*places, None], strict=True)]
    return [chunk + chance.sample(events[:5], 2) for chunk in chunks]


def write(folder, chunks):
    """Write each chunk to a file; give the files."""
    folder.mkdir()
    files = []
    for number, chunk in enumerate(chunks):
        files.append(folder / f"{number}.ndjson")
        files[-1].write_text("".join(f"{json.dumps(event)}\n" for event in chunk))
    return files


def submit(spark, work, merges, connectors=()):
    (work / "merges.json").write_text(json.dumps(merges))
    conf = {"spark.sql.shuffle.partitions": "2"} | submissions.NO_CODEGEN
    submissions.run_without_lineage(spark, "merge_histories.py", work, conf, connectors)


@pytest.fixture(scope="module")
def work(spark, tmp_path_factory):
    """Build all stores of this module in one application."""
    work = tmp_path_factory.mktemp("merges")
    merges = []
    for seed in SEEDS:
        files = write(work / f"events-{seed}", chunks_of(seed))
        engines, sizes = STORES[seed]
        turns = [engines[number % len(engines)] for number in range(CHUNKS)]
        merges.append(
            {
                "store": str(work / f"store-{seed}"),
                "format": "parquet",
                "sizes": sizes,
                "chunks": [(engine, str(file)) for engine, file in zip(turns, files, strict=True)],
            }
        )
    connectors = submissions.available(spark)
    for format_ in connectors:
        files = write(work / f"events-{format_}", chunks_of(MESSY))
        merges.append(
            {
                "store": LAKEHOUSES[format_].format(work=work),
                "format": format_,
                "sizes": (),
                "chunks": [(one, str(file)) for one, file in zip(TURNS, files, strict=True)],
            }
        )
    submit(spark, work, merges, connectors)
    return work


def named(rows):
    """Give rows in no order, without the name of the file that an event was read from."""
    texts = (json.dumps({**row, "source": None}, default=str) for row in rows)
    return Counter(texts)


@pytest.mark.parametrize("seed", SEEDS)
def test_merging_on_spark_gives_the_tables_of_one_build(seed, work, tmp_path):
    store, whole = Store.open(str(work / f"store-{seed}")), Store(str(tmp_path / "whole"))
    files = sorted((work / f"events-{seed}").iterdir())
    build(whole, [source_of(str(file)) for file in files])
    expected = of_store(whole)
    for name, rows in of_store(store).items():
        assert named(rows) == named(expected[name]), name
    assert store.manifest.rows == whole.manifest.rows
    assert {table.name for table in TABLES} == set(store.manifest.layout.pieces)
    check_layout(store)


# --- Iceberg and Delta ----------------------------------------------------------------------------


@pytest.fixture(params=LAKEHOUSES)
def format_(request, spark):
    submissions.require(spark, request.param)
    return request.param


def test_tables_of_a_format_have_the_rows_of_one_build_also_after_one_that_was_killed(
    format_, work, tmp_path
):
    whole = Store(str(tmp_path / "whole"))
    files = sorted((work / f"events-{format_}").iterdir())
    build(whole, [source_of(str(file)) for file in files])
    for name, rows in of_store(whole).items():
        found = duckdb.read_parquet(str(work / f"rows-{format_}" / name / "*.parquet"))
        names = [column[0] for column in found.description]
        found = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
        assert named(found) == named(rows), name


def test_tables_of_a_format_name_one_build_unless_it_was_killed(format_, work):
    first, killed, anew, merged = json.loads((work / "named.json").read_text())[format_]
    for one in (first, anew, merged):
        assert len({*one.values()} - {None}) == 1
        assert all(one.values())
    assert len({one["runs"] for one in (first, anew, merged)}) == 3
    assert len({*killed.values()}) == 2
    assert killed["facts"] == killed["runs"] != killed["changes"]


def test_small_files_are_joined(format_, work):
    """A build writes two, and the facts are joined before new ones come."""
    left = json.loads((work / "files.json").read_text())[format_]
    assert {name: count for name, count in left.items() if count > 2 + (name == "facts")} == {}
