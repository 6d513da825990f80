"""Random histories on Spark: one build makes the tables of all worlds as DuckDB makes them.

Then each world is asked what :mod:`.test_truth` asks, of the tables that Spark wrote; of some,
Spark itself is asked. Of 200 worlds a quick run takes all for the tables, and asks a dozen.
"""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.history.engines.duckdb import History, create_view
from airflow_provider_sparklineage.history.store import Store
from airflow_provider_sparklineage.history.tables import TABLES
from tests.history.answers import answers
from tests.history.questions import questions
from tests.history.test_spark import built_by_duckdb
from tests.history.test_truth import (  # noqa: F401 — asked here of other tables
    EXACT,
    SEEDS,
    World,
    days_of,
    test_a_plan_runs_what_is_stale_again_and_what_is_read_before_what_reads_it,
    test_a_read_is_bound_to_what_the_oracle_found_for_it,
    test_a_trace_is_what_the_oracle_answers,
    test_an_impact_is_what_the_oracle_answers,
    test_changes_are_the_writes_that_count,
    test_patterns_are_the_rules_of_the_tasks_and_exceptions_the_runs_that_broke_them,
    test_runs_and_columns_are_those_that_were,
    test_versions_that_were_not_replaced_are_what_is_there,
    test_what_is_stale_is_what_the_oracle_answers,
)
from tests.history.worlds_on_spark import Named, Part
from tests.spark import submissions

# Of 200 worlds; `test_spark` has one.
pytestmark = [pytest.mark.spark, pytest.mark.long]
pytest.importorskip("duckdb")

ALL = range(200)


@pytest.fixture(scope="module")
def worlds():
    """Make all worlds, each under names of its own."""
    random_ones = {f"random{seed}": Named(f"random{seed}", seed, days_of(seed)) for seed in ALL}
    exact = {f"exact{seed}": Named(f"exact{seed}", seed, 40, is_exact=True) for seed in EXACT}
    return random_ones | exact


@pytest.fixture(scope="module")
def work(spark, worlds, tmp_path_factory):
    """Build them by Spark as one store."""
    work = tmp_path_factory.mktemp("worlds")
    (work / "events").mkdir()
    for each in worlds.values():
        each.write(work / "events")
    asked = {"store": str(work / "store"), "sources": [str(work / "events")], "format_": "parquet"}
    (work / "builds.json").write_text(json.dumps([asked]))
    questions = {"store": asked["store"], "questions": [*_questions(worlds)]}
    (work / "questions.json").write_text(json.dumps(questions))
    conf = {"spark.sql.shuffle.partitions": "4"}
    submissions.run_without_lineage(spark, "build_histories.py", work, conf)
    return work


def _questions(worlds):
    """Ask one of each kind, and about two worlds what their own questions ask."""
    yield {"what": "stale"}
    named = worlds["exact0"]
    yield {"what": "drift", "task": next(run.job for run in named.ledger.runs)}
    for what in ("patterns", "gaps"):
        yield {"what": what, "dataset": (named.lake, named.ledger.tables[-1].name)}
    for named in (worlds["random3"], worlds["random4"]):
        for number, one in enumerate(questions(named.ledger, named.seed, 4)):
            yield {
                "what": "impact" if number % 2 else "trace",
                "dataset": (named.lake, one.table.name),
                "partition": one.partition,
                "column": one.column,
                "as_of": one.as_of and one.as_of.isoformat(),
            }


def test_spark_answers_as_duckdb_does(work):
    asked = json.loads((work / "questions.json").read_text())
    found = json.loads((work / "answers.json").read_text())
    with History(Store.open(asked["store"])) as history:
        expected = json.loads(json.dumps(answers(history, asked["questions"])))
    assert len(found) == len(expected)
    for question, one, other in zip(asked["questions"], found, expected, strict=True):
        assert one == other, question
    assert sum(bool(one) and not isinstance(one, str) for one in found) > len(found) // 2


@pytest.fixture(scope="module")
def tables(work, tmp_path_factory):
    """Give the tables that DuckDB makes, and next to them, as ``spark_…``, those of Spark."""
    reading, connection = built_by_duckdb(tmp_path_factory.mktemp("facts"), [work / "events"])
    assert reading.skipped == {}
    kept = Store.open(str(work / "store"))
    for table in TABLES:
        files = kept.local(kept.manifest.tables[table.name])
        create_view(connection, table, files, f"spark_{table.name}")
    yield connection
    connection.close()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_of_all_worlds_is_the_same_on_both_engines_row_by_row(tables, table):
    names = ", ".join(f'"{column.name}"' for column in table.columns)
    by_duckdb, by_spark = (f"SELECT {names} FROM {of}{table.name}" for of in ("", "spark_"))
    for one, other in ((by_duckdb, by_spark), (by_spark, by_duckdb)):
        assert tables.sql(f"{one} EXCEPT ALL {other}").fetchall() == []
    [[rows]] = tables.sql(f"SELECT count(*) FROM ({by_spark})").fetchall()
    assert rows > len(ALL)


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed {seed}")
def random_world(request, worlds, tables):
    yield from _asked(worlds[f"random{request.param}"], tables)


@pytest.fixture(params=EXACT, ids=lambda seed: f"seed {seed}")
def exact_world(request, worlds, tables):
    yield from _asked(worlds[f"exact{request.param}"], tables)


def _asked(named, tables):
    part = Part(tables, named)
    yield World(named.seed, named.ledger, part)
    part.close()
