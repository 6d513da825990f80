"""The lineage of a task that fails after its job is what merging as failed would give."""

from collections import Counter

import msgspec
import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Expectation, Kind, Side
from airflow_provider_sparklineage.lineage import bundle as bundles
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState, accumulate
from airflow_provider_sparklineage.lineage.merge import Outcome, as_failed, merge
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition
from airflow_provider_sparklineage.model.representation import DEFAULT_LIMITS
from tests.conftest import OBSERVED, RECORDED

DAY = Partition.of([("dt", "2024-05-06")])
DT = (Dimension.of("dt"),)


@pytest.fixture
def merged(recorded):
    """Merge a recorded case, whose actions may be changed, as one that ended in some way."""

    def run(case, spark, outcome, change=lambda application: application, *, is_observed=False):
        bundle = recorded(case, spark).bundle(is_observed=is_observed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bundles, "accumulate", lambda *args: change(accumulate(*args)))
            application = change(recorded(case, spark).application)
            manifest = msgspec.structs.replace(
                bundle.manifest,
                outcome=str(outcome),
                expectations=tuple(paths_to_all_of(application)),
            )
            bundle = replace(bundle, manifest=manifest)
            return bundles.task_lineage(bundle), manifest

    return run


def paths_to_all_of(application):
    """Expect one day of every dataset by a path, and a table that is declared."""
    names = {d.name for action in application.actions for d in (*action.inputs, *action.outputs)}
    for name in sorted(names):
        yield Expectation(Kind.PATH, None, name, partitions=(DAY,), dimensions=DT)
    for table in ("default.region_totals", "lake.shop.orders", "no.such.table"):
        yield Expectation(Kind.DECLARED, Side.WRITE, None, table=table)


def with_failed(*numbers):
    """Let some of an application's actions have failed."""

    def change(application):
        actions = list(application.actions)
        for number in numbers if actions else ():
            actions[number] = replace(actions[number], state=ActionState.FAILED)
        return replace(application, actions=tuple(actions))

    return change


def assert_derived(merged, case, spark, change=lambda application: application, **how):
    complete, manifest = merged(case, spark, Outcome.COMPLETE, change, **how)
    expected, _ = merged(case, spark, Outcome.FAIL, change, **how)
    derived = bundles.failed_lineage(complete, manifest)
    # The order of degradations has no meaning.
    assert Counter(derived.degradations) == Counter(expected.degradations)
    assert replace(derived, degradations=()) == replace(expected, degradations=())
    return complete, derived


@pytest.mark.parametrize(("spark", "case"), RECORDED)
def test_a_recorded_job_gives_the_same(merged, spark, case):
    assert_derived(merged, case, spark)


@pytest.mark.parametrize(("spark", "case"), OBSERVED)
def test_a_recorded_job_that_was_observed_gives_the_same(merged, spark, case):
    assert_derived(merged, case, spark, is_observed=True)


@pytest.mark.parametrize("number", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize(("spark", "case"), [key for key in RECORDED if key[0] == "4.0"])
def test_a_job_that_caught_the_failure_of_an_action_gives_the_same(merged, spark, case, number):
    is_observed = (spark, case) in OBSERVED
    assert_derived(merged, case, spark, with_failed(number), is_observed=is_observed)


def test_what_only_failed_actions_wrote_is_a_bare_name(recorded):
    application = recorded("caught_failure").application
    complete = merge(application, Outcome.COMPLETE)
    derived = as_failed(complete, (), DEFAULT_LOCATOR, DEFAULT_LIMITS)
    strict = DatasetName("file", "/lake/strict_orders")
    assert strict not in [d.name for d in complete.outputs]
    [bare] = [d for d in derived.outputs if d.name == strict]
    assert (bare.facets, bare.columns) == ({}, None)
    assert derived.outcome is Outcome.FAIL


def test_an_input_that_was_to_be_written_may_miss_nothing(recorded):
    """A path's day that was not read may be the one that was to be written."""
    application = recorded("staging_chain").application
    [name, *_] = [d.name for d in application.actions[0].inputs]
    last = application.actions[-1]
    [output, *_] = last.outputs
    again = replace(last, state=ActionState.FAILED, outputs=(replace(output, name=name),))
    application = replace(application, actions=(*application.actions[:-1], again))
    other_day = Partition.of([("dt", "2024-05-07")])
    expectations = [Expectation(Kind.PATH, None, name, partitions=(other_day,), dimensions=DT)]
    complete = merge(application, Outcome.COMPLETE, expectations=expectations)
    derived = as_failed(complete, expectations, DEFAULT_LOCATOR, DEFAULT_LIMITS)
    before, after = (next(d for d in x.inputs if d.name == name) for x in (complete, derived))
    assert (before.check.missing, after.check.missing) == ({other_day}, frozenset())
    expected = merge(application, Outcome.FAIL, expectations=expectations)
    assert derived.inputs == expected.inputs
