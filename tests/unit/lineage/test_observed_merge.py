"""Merging recorded events with observations: what was observed decides before what is assumed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import Access, Scope
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.lineage.application.repairs import repaired
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.lineage.observed.accesses import Observations
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.terms import Witness

STAGING = "/lake/staging/enriched_orders"
DIMENSIONS = (Dimension.of_column("dt"),)


def days(*names):
    return frozenset(Partition.from_values([("dt", n)]) for n in names)


ONE = days("1")


def access(side, name, action, partitions, **more):
    span = action.started, action.ended
    return Access(name, side, *span, Scope(partitions=partitions), dimensions=DIMENSIONS, **more)


@pytest.fixture
def merged(recorded):
    """Merge the staging chain with what the test gives for its staging table."""
    application = repaired(recorded("staging_chain").application)
    write, read = application.actions

    def run(*, mode="whole", written=ONE, then_read=ONE, skip=()):
        staging = next(d.name for d in write.outputs)
        assert staging.name == STAGING
        reads = {
            d.name: (access(Side.READ, d.name, a, days("1")),)
            for a in (write,)
            for d in a.inputs
            if d.name.name not in skip
        }
        reads[staging] = (access(Side.READ, staging, read, then_read),)
        owned = Scope(mode == "whole", written if mode != "append" else None)
        writes = {staging: (access(Side.WRITE, staging, write, written, owned=owned),)}
        return merge(application, Outcome.COMPLETE, observations=Observations(reads, writes))

    return run


def inputs(lineage):
    return {d.name.name: d.subset and d.subset.partitions for d in lineage.inputs}


def codes(lineage, name):
    return [str(d.code) for d in lineage.degradations if d.dataset and d.dataset.name == name]


def test_a_contained_read_is_internal_and_nothing_is_assumed(merged):
    lineage = merged()
    assert STAGING not in inputs(lineage)
    assert "internal_read_assumed" not in codes(lineage, STAGING)


def test_a_read_of_more_than_was_written_stays_an_input_with_the_rest(merged):
    lineage = merged(mode="dynamic", then_read=days("1", "2"))
    assert inputs(lineage)[STAGING] == days("2")


def test_observing_an_append_takes_back_what_the_events_would_have_assumed(merged):
    lineage = merged(mode="append")
    assert inputs(lineage)[STAGING] == days("1")


def test_an_unknown_write_leaves_it_to_the_events(merged):
    lineage = merged(written=None)
    assert STAGING not in inputs(lineage)
    assert codes(lineage, STAGING)[:1] == ["internal_read_assumed"]
    assert "partitions_unknown" in codes(lineage, STAGING)


def test_an_input_whose_reads_were_not_observed_has_no_subset(merged):
    lineage = merged(skip=("/lake/orders",))
    assert inputs(lineage)["/lake/orders"] is None
    assert codes(lineage, "/lake/orders") == ["partitions_inexact"]  # the listener has its location
    assert inputs(lineage)["/lake/customers"] == days("1")


def test_an_output_whose_writes_were_not_observed_is_named(merged):
    assert "partitions_inexact" in codes(merged(), "/lake/revenue")


def test_columns_are_composed_by_what_was_observed(merged):
    def sources(lineage):
        revenue = next(d for d in lineage.outputs if d.name.name == "/lake/revenue")
        return {c.dataset.name for c in revenue.columns.fields["revenue"]}

    assert STAGING not in sources(merged())
    assert STAGING in sources(merged(mode="append"))


def witnesses(datasets):
    return {d.name.name: d.witness for d in datasets}


def test_a_dataset_has_the_witnesses_of_its_side(merged):
    lineage = merged(mode="dynamic", then_read=days("1", "2"), skip=("/lake/orders",))
    assert witnesses(lineage.inputs) == {
        "/lake/orders": Witness.LISTENER,
        "/lake/customers": Witness.BOTH,
        "/lake/rates": Witness.BOTH,
        STAGING: Witness.BOTH,
    }
    assert witnesses(lineage.outputs) == {STAGING: Witness.BOTH, "/lake/revenue": Witness.LISTENER}


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("state", [ActionState.COMPLETE, ActionState.FAILED])
def test_an_action_that_the_observer_alone_saw_is_its_word(recorded, state, outcome):
    application = repaired(recorded("staging_chain").application)
    first, last = application.actions
    last = replace(last, witness=Witness.OBSERVER, state=state)
    lineage = merge(replace(application, actions=(first, last)), outcome)
    expected = {STAGING: Witness.LISTENER}
    if state is ActionState.COMPLETE or outcome is Outcome.FAIL:
        expected["/lake/revenue"] = Witness.OBSERVER
    assert witnesses(lineage.outputs) == expected


def test_what_both_report_is_of_both(recorded):
    application = repaired(recorded("staging_chain").application)
    first, last = application.actions
    again = replace(first, run_id="again", witness=Witness.OBSERVER)
    lineage = merge(replace(application, actions=(first, again, last)), Outcome.COMPLETE)
    assert set(witnesses(lineage.inputs).values()) == {Witness.BOTH}


def test_what_is_declared_alone_is_nobody_elses_word(recorded):
    name = DatasetName("file", "/lake/declared")
    application = recorded("staging_chain").application
    lineage = merge(application, Outcome.COMPLETE, declared_inputs=[name])
    assert witnesses(lineage.inputs)[name.name] is Witness.DECLARED


def test_a_degradation_of_partitions_names_the_side(merged):
    lineage = merged(skip=("/lake/orders",))
    sides = {d.dataset.name: d.side for d in lineage.degradations if d.code == "partitions_inexact"}
    assert sides == {"/lake/orders": Side.READ, "/lake/revenue": Side.WRITE}


@pytest.mark.parametrize(("seen", "known"), [(2, True), (1, False)])
def test_a_write_that_was_not_observed_leaves_it_open_what_was_written(recorded, seen, known):
    application = repaired(recorded("rewritten_staging").application)
    writes = [
        (action, dataset.name)
        for action in application.actions
        for dataset in action.outputs
        if dataset.name.name == "/lake/staging/labels"
    ]
    assert len(writes) == 2
    [labels] = {name for _, name in writes}
    accesses = tuple(
        access(Side.WRITE, labels, action, days(str(number)))
        for number, (action, _) in enumerate(writes[:seen])
    )
    observations = Observations(writes={labels: accesses})
    lineage = merge(application, Outcome.COMPLETE, observations=observations)
    [output] = [d for d in lineage.outputs if d.name == labels]
    assert output.observed == known
    assert (output.subset is not None) == known
    assert ("partitions_unknown" in codes(lineage, labels.name)) != known


@pytest.mark.parametrize(
    ("chosen", "accessed"),
    [
        pytest.param([True], "part", id="files new to a stream"),
        pytest.param([False], "all", id="a read of all"),
        pytest.param([True, False], "all", id="both"),
    ],
)
def test_chosen_files_of_an_unpartitioned_dataset_are_a_part_of_it(recorded, chosen, accessed):
    application = repaired(recorded("staging_chain").application)
    write, *_ = application.actions
    name = write.inputs[0].name
    whole = Scope(partitions=frozenset({Partition()}))
    reads = [
        Access(name, Side.READ, write.started, write.ended, whole, chosen=one) for one in chosen
    ]
    observations = Observations({name: tuple(reads)}, {})
    [found] = [
        d
        for d in merge(application, Outcome.COMPLETE, observations=observations).inputs
        if d.name == name
    ]
    assert found.accessed == accessed
