"""Spark and DuckDB make the same tables of the same events, row by row."""

from __future__ import annotations

import gzip
import json
import shutil

import pytest

from airflow_provider_sparklineage.history import incoming
from airflow_provider_sparklineage.history.engines.building import build
from airflow_provider_sparklineage.history.sources import Reading, source_of, try_of
from airflow_provider_sparklineage.history.steps import STEPS
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.history.tables import FACTS, TABLES, VERSION
from tests.conftest import GOLDEN
from tests.history import events, simulation
from tests.spark import submissions

pytestmark = [pytest.mark.spark, pytest.mark.long]
duckdb = pytest.importorskip("duckdb")

TORN = '{"eventType": "COMPLETE", "run": {"runId"'
LAKEHOUSE = "lakehouse.history"
AWKWARD = "lake with blanks/100%25 ünicode"


def build_by_spark(spark, work, builds, connectors=()):
    """Build histories in one application.

    :param work: folder of the application, to which the counts go
    :param builds: (store, sources, format) of each build, with sources in the folder or elsewhere
    """
    asked = [
        {"store": store, "sources": [str(work / one) for one in sources], "format_": format_}
        for store, sources, format_ in builds
    ]
    (work / "builds.json").write_text(json.dumps(asked))
    conf = {"spark.sql.shuffle.partitions": "2"}
    submissions.run_without_lineage(spark, "build_histories.py", work, conf, connectors)


@pytest.fixture(scope="module")
def work(spark, prepared, tmp_path_factory):
    """Write two small worlds in every form that sources have, and build them, one after another."""
    work = tmp_path_factory.mktemp("histories")
    first, second = simulation.world(7, 12), simulation.world(8, 12)
    events.write_archive(first, work / "archive")
    (work / AWKWARD).mkdir(parents=True)
    events.write_stream(second, work / AWKWARD / "stream.ndjson", seed=1)
    with gzip.open(work / AWKWARD / "again.jsonl.gz", "wt") as file:
        file.write((work / AWKWARD / "stream.ndjson").read_text())
    (work / AWKWARD / "torn.json").write_text(TORN)
    bundle = work / "captures" / "task"
    bundle.mkdir(parents=True)
    (bundle / "manifest.json").write_text("{}")
    (bundle / "events.ndjson").touch()
    (work / "refused.json").write_text(json.dumps([str(work / "captures")]))
    store = str(work / "worlds")
    builds = [(store, ["archive"], "parquet"), (store, ["archive", AWKWARD], "parquet")]
    build_by_spark(spark, work, builds)
    return work


@pytest.fixture(scope="module")
def more(spark, work, tmp_path_factory):
    """Build by Spark the recorded events, a store that DuckDB has begun, and tables of Iceberg."""
    more = tmp_path_factory.mktemp("more-histories")
    shutil.copytree(GOLDEN / "spark-4.0", more / "recorded")
    build(Store(str(more / "begun")), [source_of(str(work / AWKWARD))])
    shutil.copytree(work / "archive", more / "archive")
    deliver_one(more / "archive", more / "begun")
    builds = [
        (str(more / "of_recorded"), ["recorded"], "parquet"),
        (str(more / "begun"), ["archive"], "parquet"),
    ]
    connectors = [one for one in submissions.available(spark) if one == "iceberg"]
    for sources in (["archive"], ["archive", AWKWARD]) if connectors else ():
        builds.append((LAKEHOUSE, [work / one for one in sources], "iceberg"))
    build_by_spark(spark, more, builds, connectors)
    return more


def deliver_one(archive, store):
    """Deliver an event of an archive to a store, and take it out of the archive."""
    file = min(archive.rglob("*.json"))
    of = try_of(str(file))
    sender = incoming.Sender(*of[:5], str(file))
    assert incoming.deliver(store.as_uri(), sender, file.read_bytes(), 5)
    file.unlink()


def built_by_duckdb(folder, sources):
    """Make the tables of sources in memory."""
    reading = Reading()
    lines = reading.lines([source_of(str(one)) for one in sources])
    file = folder / "facts.ndjson"
    file.write_bytes(b"".join(line.text for line in lines))
    connection = duckdb.connect()
    columns = {column.name: column.type for column in FACTS.columns}
    connection.execute(
        "CREATE TABLE facts AS SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY event_id "
        f"ORDER BY source) AS place FROM read_json('{file}', format = 'newline_delimited', "
        f"columns = {columns})) WHERE place = 1"
    )
    for step in STEPS:
        connection.execute(f"CREATE TABLE {step.name} AS {step.sql}")
    return reading, connection


def rows_of(connection, table, source):
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    return connection.execute(f"SELECT {names} FROM {source} ORDER BY ALL").fetchall()


def assert_same_tables(folder, store, sources):
    """Check that a store's tables are those that DuckDB makes of the same sources."""
    _, expected = built_by_duckdb(folder, sources)
    kept = Store.open(str(store))
    for table in TABLES:
        files = kept.local(kept.manifest.tables[table.name])
        found = rows_of(expected, table, f"read_parquet({files})")
        assert found == rows_of(expected, table, table.name), table.name
        assert kept.manifest.rows[table.name] == len(found)


def test_both_engines_make_the_same_tables_row_by_row(work, tmp_path):
    assert_same_tables(tmp_path, work / "worlds", [work / "archive", work / AWKWARD])


def test_both_engines_make_the_same_tables_of_recorded_events(more, tmp_path):
    assert_same_tables(tmp_path, more / "of_recorded", [more / "recorded"])


def test_tables_of_iceberg_have_the_same_rows_and_are_of_one_build(spark, work, more):
    submissions.require(spark, "iceberg")
    tables = json.loads((more / "iceberg.json").read_text())
    kept = Store.open(str(work / "worlds"))
    connection = duckdb.connect()
    for table in TABLES:
        files, _ = tables[table.name]
        found = rows_of(
            connection, table, f"read_parquet({[one.removeprefix('file:') for one in files]})"
        )
        expected = kept.local(kept.manifest.tables[table.name])
        assert found == rows_of(connection, table, f"read_parquet({expected})"), table.name
    assert len({properties["sparklineage.build"] for _, properties in tables.values()}) == 1
    assert {properties["sparklineage.version"] for _, properties in tables.values()} == {
        str(VERSION)
    }


def test_an_event_that_is_there_already_is_not_new(work):
    counts = json.loads((work / "counts.json").read_text())
    assert counts[0]["new"] == counts[0]["events"]
    manifest = Store.open(str(work / "worlds")).manifest
    assert counts[0]["new"] + counts[1]["new"] == manifest.rows["events"]
    assert manifest.generation == 2


def test_a_capture_bundle_is_refused_with_what_to_do(work):
    text = (work / "refused.txt").read_text()
    assert text.startswith("Spark merges no capture bundles: ")
    assert str(work / "captures" / "task") in text
    assert "sparklineage history build" in text


def test_what_is_no_event_is_counted_as_duckdb_counts_it(work, tmp_path):
    expected, _ = built_by_duckdb(tmp_path, [work / "archive", work / AWKWARD])
    counts = json.loads((work / "counts.json").read_text())[1]
    assert counts["skipped"] == expected.skipped
    assert counts["events"] == expected.events


def test_tables_lie_in_their_order(work):
    kept = Store.open(str(work / "worlds"))
    for table in TABLES:
        files = kept.local(kept.manifest.tables[table.name])
        keys = ", ".join(table.sorted_by)
        read = duckdb.connect().sql(f"SELECT {keys} FROM read_parquet({files})")
        found = read.fetchall()
        assert found == sorted(found, key=lambda row: [(v is None, v) for v in row])
        assert found


def test_each_engine_goes_on_from_what_the_other_has_built(work, more):
    by_both = Store.open(str(more / "begun"))
    by_spark = Store.open(str(work / "worlds"))
    assert incoming.waiting(by_both).names == []
    assert by_both.manifest.rows == by_spark.manifest.rows
    again = build(by_spark, [source_of(str(work / "archive")), source_of(str(work / AWKWARD))])
    assert again.new == 0
    added = build(by_spark, [source_of(str(more / "recorded"))])
    assert added.new > 0
    assert added.rows["events"] == by_both.manifest.rows["events"] + added.new
