"""The lineage of a task that fails: by its job, or by a partition check after its job."""

from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Expectation, Kind
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition

DT = (Dimension.of_column("dt"),)


def test_what_only_failed_actions_wrote_is_a_bare_name(recorded):
    application = recorded("caught_failure").application
    complete, failed = (merge(application, outcome) for outcome in Outcome)
    strict = DatasetName("file", "/lake/strict_orders")
    assert strict not in [d.name for d in complete.outputs]
    [bare] = [d for d in failed.outputs if d.name == strict]
    assert (bare.facets, bare.columns) == ({}, None)
    assert failed.outcome is Outcome.FAIL


def test_an_input_that_was_to_be_written_may_miss_nothing(recorded):
    """A path's day that was not read may be the one that was to be written."""
    application = recorded("staging_chain").application
    [name, *_] = [d.name for d in application.actions[0].inputs]
    last = application.actions[-1]
    [output, *_] = last.outputs
    again = replace(last, state=ActionState.FAILED, outputs=(replace(output, name=name),))
    application = replace(application, actions=(*application.actions[:-1], again))
    other_day = Partition.from_values([("dt", "2024-05-07")])
    expectations = [Expectation(Kind.PATH, None, name, partitions=(other_day,), dimensions=DT)]
    both = [merge(application, outcome, expectations=expectations) for outcome in Outcome]
    complete, failed = (next(d for d in of.inputs if d.name == name) for of in both)
    assert (complete.check.missing, failed.check.missing) == ({other_day}, frozenset())
