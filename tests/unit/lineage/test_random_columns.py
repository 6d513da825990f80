"""Random actions on each other's outputs: the plan's own lineage against the one of the events."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.applications.random_columns import SOURCES, plan
from tests.conftest import SPARKS
from tests.lineage_text import short

# Of two values in a row the stronger statement stays.
STRENGTH = ("AGGREGATION", "TRANSFORMATION", "IDENTITY")


def in_a_row(first, second):
    return min(first, second, key=STRENGTH.index)


def direct_sources():
    """Give the columns of each output at the end: source column -> the subtypes of its ways."""
    known = {
        source: {column: {(source, column): {"IDENTITY"}} for column in columns}
        for source, columns in SOURCES.items()
    }
    for step in plan():
        made = defaultdict(lambda: defaultdict(set))
        for branch in step.branches:
            for position, column in enumerate(branch):
                name = step.branches[0][position].name
                for dataset, of in column.of:
                    for source, subtypes in known[dataset].get(of, {}).items():
                        ways = {in_a_row(column.subtype, subtype) for subtype in subtypes}
                        made[name][source] |= ways
        known[step.output] = made
    return {name: known[name] for name in known.keys() - SOURCES.keys()}


def influences():
    """Give what joins and groups the rows of each output at the end, through all steps."""
    known = {source: set() for source in SOURCES}
    columns = {
        source: {column: {(source, column)} for column in columns}
        for source, columns in SOURCES.items()
    }
    for step in plan():
        rows = {
            (source, subtype)
            for dataset, column, subtype in step.influences
            for source in columns[dataset][column]
        }
        known[step.output] = rows.union(*(known[dataset] for dataset in step.reads))
        columns[step.output] = {
            first.name: {
                source
                for branch in step.branches
                for dataset, of in branch[position].of
                for source in columns[dataset][of]
            }
            for position, first in enumerate(step.branches[0])
        }
    return {name: known[name] for name in known.keys() - SOURCES.keys()}


def outputs(recorded, spark):
    lineage = recorded("random_columns", spark).lineage
    return {short(d.name).removeprefix("random/"): d.columns for d in lineage.outputs}


@pytest.mark.parametrize("spark", SPARKS)
def test_columns_have_the_sources_of_the_plan(recorded, spark):
    found = {
        name: {
            column: {
                (short(source.dataset), source.field): {t.subtype for t in transformations}
                for source, transformations in edges.items()
            }
            for column, edges in lineage.fields.items()
        }
        for name, lineage in outputs(recorded, spark).items()
    }
    assert found == direct_sources()


@pytest.mark.parametrize("spark", SPARKS)
def test_rows_are_influenced_by_what_the_plan_joins_and_groups_by(recorded, spark):
    found = {
        name: {
            ((short(source.dataset), source.field), t.subtype)
            for source, transformations in lineage.dataset.items()
            for t in transformations
        }
        for name, lineage in outputs(recorded, spark).items()
    }
    # Spark filters nulls out of what it joins by.
    filters = {
        name: {(of, "FILTER") for of, kind in rows if kind == "JOIN"}
        for name, rows in influences().items()
    }
    for name, rows in influences().items():
        assert rows <= found[name] <= rows | filters[name], name


def test_the_plan_rewrites_outputs_that_were_read():
    steps = plan()
    written = [step.output for step in steps]
    assert any(written.count(output) > 1 for output in written)
    assert any(output in step.reads for output in written for step in steps)
