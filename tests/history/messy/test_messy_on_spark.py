"""Messy worlds that Spark builds and answers: as the rules say, and as DuckDB does (test_messy).

A release asks about 50 worlds, other runs about a few.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import settings

from tests.spark import submissions

pytestmark = [pytest.mark.spark, pytest.mark.long]
pytest.importorskip("duckdb")

_MANY = 100
"""From so many examples on, a profile is thorough."""
EXAMPLES = settings.default.max_examples if settings.default else 1
SEEDS = range(3 if EXAMPLES < _MANY else 50)
QUESTIONS = 2
"""Of each kind that are asked about a world, as each takes seconds."""
AT_ONCE = 10
"""So many worlds are one store, which is built and asked before an application has to end."""


@pytest.fixture(scope="module")
def found(spark, tmp_path_factory):
    """Build and ask about all worlds, some in one application."""
    found = {}
    for first in range(0, len(SEEDS), AT_ONCE):
        seeds = [*SEEDS][first : first + AT_ONCE]
        found |= _asked(spark, tmp_path_factory.mktemp("messy-worlds"), seeds)
    return found


def _asked(spark, work, seeds):
    (work / "worlds.json").write_text(json.dumps({"seeds": seeds, "questions": QUESTIONS}))
    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.enabled": "false"}
    conf |= submissions.NO_CODEGEN
    submissions.run_without_lineage(spark, "ask_messy_worlds.py", work, conf)
    return json.loads((work / "found.json").read_text())


@pytest.mark.parametrize("seed", SEEDS)
def test_spark_answers_as_the_rules_say(seed, found):
    assert found[str(seed)] == []
