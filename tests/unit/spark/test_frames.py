"""Plans of checkpoints and of batches of streams, in later plans; the driver's JVM is doubled."""

import json
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files
from tests.unit.spark.test_write_commands import Leaf, Sequence, answers

PACKAGE = "org.apache.spark.sql.catalyst.plans.logical"
KIND = "InsertIntoHadoopFsRelationCommand"


@pytest.fixture
def commands(monkeypatch):
    """Give the observer's module as the driver has it."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    from sparklineage_observer import commands

    return commands


class Rows(SimpleNamespace):
    """A leaf that reads an RDD."""

    def __init__(self, rdd, *ids):
        columns = ", ".join(f"c{number}#{number}" for number in ids)
        super().__init__(text=f"LogicalRDD [{columns}], false", json=rdd_node(*ids))
        self.rdd = lambda: answers(id=rdd)

    def __str__(self):
        return self.text


def rdd_node(*ids):
    output = [[{"class": "a.AttributeReference", "exprId": {"id": number}}] for number in ids]
    return {"class": f"{PACKAGE}.LogicalRDD", "num-children": 0, "output": output}


def frame_plan(nodes, leaves, *ids, text=""):
    """Make the plan of a frame with columns of these ids."""
    return answers(
        toJSON=json.dumps(nodes),
        toString=text,
        collectLeaves=Sequence(*leaves),
        subqueriesAll=Sequence(),
        output=Sequence(*(f"c{number}#{number}" for number in ids)),
        schema=answers(json=json.dumps({"fields": []})),
    )


def write(*leaves):
    """Make a write of files, of a union of leaves."""
    nodes = [{"class": KIND, "num-children": 1}, {"class": "Union", "num-children": len(leaves)}]
    plan = frame_plan([*nodes, *(leaf.json for leaf in leaves)], leaves)
    plan.query = lambda: plan
    plan.outputPath = lambda: answers(toString="file:/lake/out")
    plan.outputColumnNames = lambda: Sequence("c")
    plan.catalogTable = lambda: answers(isDefined=False)
    return answers(analyzed=plan)


def observed(watching, execution, limits=""):
    from sparklineage_observer.records import Budget, Limits

    return watching.observe(KIND, execution, lambda: True, Budget(Limits(limits)))


def keeping(commands, *kept, limits=""):
    from sparklineage_observer.records import Budget, Limits

    watching = commands.Commands(Limits(limits))
    for plan in kept:
        watching.keep_frame(plan, Budget(Limits(limits)))
    return watching


def orders():
    return frame_plan([{"class": "a.Relation", "num-children": 0}], [Leaf("file:/lake/in")], 1, 2)


def names(record):
    return [node["class"].rpartition(".")[2] for node in record["plan"]]


def test_a_checkpoint_is_a_common_table_of_the_plan_that_reads_it(commands):
    record = observed(keeping(commands, orders()), write(Rows(7, 1, 2)))
    expected = ["WithCTE", "CTERelationDef", "Relation", KIND, "Union", "CTERelationRef"]
    assert names(record) == expected
    assert record["plan"][0]["num-children"] == 2
    assert record["plan"][-1]["cteId"] == record["plan"][1]["id"]
    assert record["relations"] == [{"path": "file:/lake/in", "table": None, "ids": [1, 2]}]


def test_a_second_leaf_with_new_ids_is_the_checkpoint_of_the_same_rdd(commands):
    watching = keeping(commands, orders())
    record = observed(watching, write(Rows(7, 8, 9), Rows(7, 1, 2), Rows(6, 3)))
    assert names(record)[-3:] == ["CTERelationRef", "CTERelationRef", "LogicalRDD"]
    assert names(record).count("CTERelationDef") == 1


def test_a_checkpoint_of_a_checkpoint_comes_after_it(commands):
    second = frame_plan([rdd_node(1, 2)], [Rows(7, 1, 2)], 3)
    record = observed(keeping(commands, orders(), second), write(Rows(8, 3), Rows(7, 1, 2)))
    definitions = [n["id"] for n in record["plan"] if n["class"].endswith("CTERelationDef")]
    assert definitions == ["frame-0", "frame-1"]
    assert names(record)[:5] == [
        "WithCTE",
        "CTERelationDef",
        "Relation",
        "CTERelationDef",
        "CTERelationRef",
    ]


def test_the_plan_of_a_running_stream_is_asked_for_by_its_ids(commands):
    watching = keeping(commands)
    asked = []

    def plan_of_batch(ids):
        asked.append(ids)
        return orders() if ids == (1, 2) else None

    watching.frames.plan_of_batch = plan_of_batch
    for _ in range(2):
        record = observed(watching, write(Rows(7, 1, 2)))
        assert names(record)[1] == "CTERelationDef"
    assert asked == [(1, 2)]


def test_rows_of_the_job_itself_stay_rows_of_an_rdd(commands):
    record = observed(keeping(commands), write(Rows(7, 1)))
    assert (names(record), record["relations"]) == ([KIND, "Union", "LogicalRDD"], [])


def test_a_checkpoint_with_too_large_a_plan_is_a_reference_to_nothing_with_the_reason(commands):
    watching = keeping(commands, orders(), limits="plan_bytes=5")
    watching._room = commands._Room(keeping(commands)._limits)
    record = observed(watching, write(Rows(7, 1, 2)))
    assert names(record) == [KIND, "Union", "CTERelationRef"]
    assert "is left out" in record["cut"]


def test_checkpoints_take_nothing_from_the_room_for_the_plans_of_writes(commands):
    watching = keeping(commands, orders(), limits="plans_bytes=45")
    before = watching._room._bytes
    assert before == 0
    assert watching._room_for_frames._bytes > 0
