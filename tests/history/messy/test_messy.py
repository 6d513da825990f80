"""Random messy worlds: the engine answers as the rules say, and wrong answers are noticed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import msgspec
import pytest
from hypothesis import settings

from airflow_provider_sparklineage.history.queries import answers
from airflow_provider_sparklineage.history.queries.impact import impact
from airflow_provider_sparklineage.history.queries.stale import _DIRECT, plan_of, stale
from airflow_provider_sparklineage.history.queries.trace import trace
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import TooManyError
from tests.conftest import long_after
from tests.history import events
from tests.history.built import Tables
from tests.history.ledger import meet
from tests.history.messy.comparing import (
    Difference,
    Question,
    differences,
    of_impact,
    of_stale,
    of_trace,
    questions,
)
from tests.history.messy.oracle import Oracle
from tests.history.messy.shrinking import explained, least, listed
from tests.history.messy.small import table_of, world_of
from tests.history.messy.worlds import AIRFLOWS, is_exact, world
from tests.openlineage_spec import validate_event

_MANY = 100
"""From so many examples on, a profile is thorough: then it is 300 worlds."""
EXAMPLES = settings.default.max_examples if settings.default else 1
SEEDS = range(EXAMPLES if EXAMPLES < _MANY else 300)


@pytest.mark.parametrize("seed", long_after(4, SEEDS))
def test_the_engine_answers_as_the_rules_say(seed, tmp_path):
    ledger = world(seed)
    tables = Tables(ledger, tmp_path, seed)
    asked = questions(ledger, seed)
    found = differences(ledger, tables, asked, is_exact=is_exact(seed))
    tables.close()
    if found:
        pytest.fail(f"{len(found)} differences; the first:\n{explained(seed, found[0])}")


class TooManyStale:
    """Tables of a history in which too many runs are stale to list them all."""

    def __init__(self, tables):
        self._tables = tables

    def rows(self, sql, parameters=None):
        if sql.startswith(_DIRECT):
            msg = "More than 300,000 runs are stale."
            raise TooManyError(msg, "")
        return self._tables.rows(sql, parameters)


@pytest.mark.parametrize("seed", long_after(2, SEEDS))
def test_of_one_dataset_the_answer_is_the_same_if_too_many_runs_are_stale(seed, tmp_path):
    ledger = world(seed)
    tables = Tables(ledger, tmp_path, seed)
    for table in ledger.tables:
        dataset = DatasetName(table.namespace, table.name)
        assert stale(TooManyStale(tables), dataset) == stale(tables, dataset), dataset
    with pytest.raises(TooManyError):
        stale(TooManyStale(tables))
    tables.close()


# --- the worlds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_events_are_valid_and_so_are_their_facets(seed):
    for run in world(seed).runs:
        for event in events.events(run):
            validate_event(event)


def test_the_same_seed_makes_the_same_world():
    one, other = world(7), world(7)
    assert (one.tables, one.runs, one.fed) == (other.tables, other.runs, other.fed)


def test_all_that_can_go_wrong_happens_in_some_world():
    worlds = [world(seed) for seed in range(60)]
    happened = Counter(what for one in worlds for what in set(_happened(one)))
    rare = {what: happened[what] for what in _ALL if happened[what] < 3}
    assert rare == {}


_ALL = (
    *("overwrite", "create", "append", "unknown", "drop", "truncate", "removed"),
    *("written again", "cleared", "index cleared alone", "index failed alone", "backfilled"),
    *("in no time", "at one time", "a second early", "overlapping", "two writers", "fan-in"),
    *("yesterday", "snapshot", "two Airflows", "shared table", "same instance", "other columns"),
    *("chain of others", "written and removed", "coarse"),
)


def _happened(ledger):
    complete = [run for run in ledger.runs if run.state == "COMPLETE"]
    yield from (access.mode for run in complete for access in run.writes)
    yield from _of_tries(ledger.runs)
    yield from (what for run in complete for what in _of_run(run))
    for one, other in product(complete, complete):
        if one is not other:
            yield from _of_two(one, other)
    columns = {edge.out_column for run in complete for edge in run.edges}
    yield from ["other columns"] * (len(columns) > 2)


def _of_tries(runs):
    tries = Counter((run.namespace, run.instance) for run in runs if run.instance)
    done = {(run.namespace, run.instance) for run in runs if run.state == "COMPLETE"}
    for namespace, instance in tries:
        other = replace(instance, map_index=1 - instance.map_index)
        is_mapped = instance.map_index >= 0 and (namespace, other) in tries
        yield from ["cleared"] * (tries[namespace, instance] > 1)
        if is_mapped and tries[namespace, instance] != tries[namespace, other]:
            yield "index cleared alone"
        if is_mapped and (namespace, instance) not in done and (namespace, other) in done:
            yield "index failed alone"
        if (AIRFLOWS[1], instance) in tries and namespace == AIRFLOWS[0]:
            yield "same instance"
    yield from ["two Airflows"] * (len({namespace for namespace, _ in tries}) > 1)


def _of_run(run):
    yield from ["in no time"] * (run.started == run.ended)
    cells = [cell for access in run.writes for cell in access.cells]
    yield from ["backfilled"] * (len({dict(cell).get("dt") for cell in cells} - {None}) > 1)
    modes = {access.mode for access in run.writes}
    yield from ["written and removed"] * ({"overwrite", "removed"} <= modes)
    written = {access.table: access for access in run.writes}
    for access in run.reads:
        if any(len(cell) < len(access.table.dims) for cell in access.cells):
            yield "coarse"
            yield from ["fan-in"] * ("region" in access.table.dims)
        if access.table in written:
            yield "snapshot" if access.extent == "all" else "yesterday"


def _of_two(one, other):
    """Say what is true of two runs of which the other reads or writes what the one wrote."""
    written = {access.table for access in one.writes}
    read = {access.table for access in other.reads}
    if written & read:
        yield from ["a second early"] * (0 < (one.ended - other.started).total_seconds() <= 1)
        yield from ["at one time"] * (one.ended == other.started)
        yield from ["overlapping"] * (one.started < other.started < one.ended)
        yield from ["shared table"] * (one.namespace != other.namespace)
        if one.instance is None and other.instance is None and one.job != other.job:
            yield "chain of others"
    if written & {access.table for access in other.writes} and one.job != other.job:
        yield "two writers"
    for removed, again in product(one.writes, other.writes):
        if removed.mode == "removed" and removed.table == again.table and one.ended < other.ended:
            pairs = product(removed.cells, again.cells)
            yield from ["written again"] * any(meet(*pair) for pair in pairs)


# --- the comparison -------------------------------------------------------------------------------

_CHAIN = world_of(
    """
    a 1-2 | overwrite d1 dt=1
    b 3-4 | read d1 dt=1 | overwrite d2 dt=1
    c 5-6 | read d2 dt=1 | overwrite d3 dt=1
    d 7-8 other | read d3 unknown | unknown p1 unknown
    e 9-10 | overwrite d1 dt=1
    """
)
_D1 = table_of("d1")
_NAME = DatasetName(_D1.namespace, _D1.name)


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    tables = Tables(_CHAIN, tmp_path_factory.mktemp("chain"), 0)
    yield tables
    tables.close()


@pytest.fixture
def stale_ones(chain):
    return stale(chain)


def wrong_stale(versions, plan):
    found = of_stale(Oracle(_CHAIN), versions, plan, Question("stale"), is_exact=True)
    return [one.kind for one in found]


def wrong_impact(answer):
    return [one.kind for one in of_impact(Oracle(_CHAIN), answer, Question("impact", _D1))]


def test_right_answers_do_not_differ(chain, stale_ones):
    assert len(stale_ones) == 3
    assert wrong_stale(stale_ones, plan_of(chain, stale_ones)) == []
    assert wrong_impact(impact(chain, _NAME)) == []


@pytest.mark.parametrize("place", range(3))
def test_a_stale_version_that_is_lost_is_noticed(chain, stale_ones, place):
    plan = plan_of(chain, stale_ones)
    del stale_ones[place]
    assert "versions: lost" in wrong_stale(stale_ones, plan)


def test_a_stale_version_that_is_none_is_noticed(chain, stale_ones):
    plan = plan_of(chain, stale_ones)
    run = answers.Run("a", "dag.a")
    added = msgspec.structs.replace(stale_ones[0], run=run)
    assert wrong_stale([*stale_ones, added], plan) == ["versions: added"]


@pytest.mark.parametrize("name", ["is_direct", "is_certain"])
def test_a_wrong_flag_is_noticed(chain, stale_ones, name):
    [direct] = [one for one in stale_ones if one.is_direct]
    wrong = msgspec.structs.replace(direct, **{name: not getattr(direct, name)})
    versions = [wrong if one is direct else one for one in stale_ones]
    assert f"wrong {name}" in wrong_stale(versions, plan_of(chain, stale_ones))


def test_a_lost_step_is_noticed(chain, stale_ones):
    plan = plan_of(chain, stale_ones)
    for place in range(len(plan.steps)):
        steps = plan.steps[:place] + plan.steps[place + 1 :]
        wrong = msgspec.structs.replace(plan, steps=steps)
        assert wrong_stale(stale_ones, wrong) == ["steps: lost"]
        assert wrong_impact(answers.Impact(impact(chain, _NAME).hops, wrong)) == ["steps: lost"]


@pytest.mark.parametrize("name", ["namespace", "dag_id", "task_id", "dag_run_id", "map_index"])
def test_another_task_instance_is_noticed(chain, stale_ones, name):
    plan = plan_of(chain, stale_ones)
    other = 7 if name == "map_index" else "other"
    step = msgspec.structs.replace(plan.steps[0], **{name: other})
    wrong = msgspec.structs.replace(plan, steps=(step, *plan.steps[1:]))
    assert wrong_stale(stale_ones, wrong) == ["steps: lost", "steps: added"]


def test_a_step_that_is_there_twice_is_noticed(chain, stale_ones):
    plan = plan_of(chain, stale_ones)
    wrong = msgspec.structs.replace(plan, steps=(*plan.steps, plan.steps[0]))
    assert wrong_stale(stale_ones, wrong) == ["steps: twice"]


def test_a_step_of_what_is_due_may_be_there_in_an_impact_alone(chain, stale_ones):
    plan = plan_of(chain, stale_ones)
    reason = answers.Reason(answers.Dataset(*_NAME), None, text="d2 dt=2 is not there")
    due = msgspec.structs.replace(plan.steps[0], dag_run_id="2", reasons=(reason,))
    more = msgspec.structs.replace(plan, steps=(*plan.steps, due))
    assert wrong_impact(answers.Impact(impact(chain, _NAME).hops, more)) == []
    assert wrong_stale(stale_ones, more) == ["steps: added"]


def test_steps_in_a_wrong_order_are_noticed(chain, stale_ones):
    plan = plan_of(chain, stale_ones)
    steps = tuple(msgspec.structs.replace(step, wave=0) for step in plan.steps)
    wrong = msgspec.structs.replace(plan, steps=steps)
    assert wrong_stale(stale_ones, wrong) == ["order of steps"]


def test_runs_by_hand_that_are_lost_are_noticed(chain, stale_ones):
    wrong = msgspec.structs.replace(plan_of(chain, stale_ones), by_hand=())
    assert wrong_stale(stale_ones, wrong) == ["by_hand: lost"]


def test_a_step_that_is_less_certain_than_its_versions_is_noticed(chain, stale_ones):
    plan = plan_of(chain, stale_ones)
    steps = tuple(msgspec.structs.replace(step, is_certain=False) for step in plan.steps)
    wrong = msgspec.structs.replace(plan, steps=steps)
    assert "wrong is_certain of steps" in wrong_stale(stale_ones, wrong)


def test_a_lost_version_of_an_impact_is_noticed(chain):
    answer = impact(chain, _NAME)
    for place in range(len(answer.hops)):
        hops = answer.hops[:place] + answer.hops[place + 1 :]
        assert wrong_impact(answers.Impact(hops, answer.plan)) == ["versions: lost"]


def test_hops_that_are_lost_or_too_deep_are_noticed(chain):
    table = table_of("p1")
    asked = Question("trace", table)
    hops = trace(chain, DatasetName(table.namespace, table.name))
    assert len(hops) == 4
    for place, hop in enumerate(hops):
        deep = msgspec.structs.replace(hop, depth=hop.depth + 1)
        rest = hops[:place] + hops[place + 1 :]
        for given, kinds in (
            (rest, {"hops: lost"}),
            ([*rest, deep], {"hops: lost", "hops: added"}),
        ):
            assert {one.kind for one in of_trace(Oracle(_CHAIN), given, asked)} == kinds


def test_a_difference_is_shown_in_the_least_world(monkeypatch):
    """Break the oracle so that nothing is ever stale: then a reader and one change remain."""
    monkeypatch.setattr(Oracle, "stale", lambda _: set())
    difference = Difference(Question("stale"), "versions: added", "")
    left = least(_CHAIN, difference, is_exact=True)
    assert [line.split()[0] for line in listed(left)] == ["b", "e"]
