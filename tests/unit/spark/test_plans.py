"""What is looked for in a physical plan, by its text; the driver's JVM is doubled."""

import json
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files
from tests.unit.spark.test_write_commands import Sequence, answers

FILES = (
    "*(1) Filter (id#0L > 3)\n+- *(1) ColumnarToRow\n   +- FileScan parquet [id#0L] Batched: true\n"
)
WRITE = "Execute InsertIntoHadoopFsRelationCommand file:/lake/out, false, Parquet, Append, [id]\n"
RANGE = "*(1) Project [id#0L]\n+- *(1) Range (0, 20, step=1, splits=2)\n"
ROWS = "LocalTableScan [count(1)#7L]\n"
ADAPTIVE = (
    "AdaptiveSparkPlan isFinalPlan=true\n+- == Final Plan ==\n   {}+- == Initial Plan ==\n   {}"
)


@pytest.fixture
def plans(monkeypatch):
    """Give the observer's module as the driver has it."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    from sparklineage_observer import plans

    return plans


class Node:
    """A node of a physical plan that counts what it is asked."""

    def __init__(self, kind, text, *leaves, **others):
        self.asked = []
        self._answers = {
            "toString": text,
            "productPrefix": kind,
            "collectLeaves": Sequence(*leaves),
            "children": Sequence(*leaves),
            **others,
        }

    def __getattr__(self, name):
        if name not in self._answers:
            raise AttributeError(name)
        self.asked.append(name)
        return lambda: self._answers[name]


def scan(kind="FileSourceScanExec"):
    return Node(kind, "FileScan parquet [id#0L]\n")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(RANGE, id="rows that are made up"),
        pytest.param(ADAPTIVE.format(RANGE, RANGE), id="with stages"),
        pytest.param("*(1) Scan ExistingRDD[a#0L,b#1]\n", id="rows of the job"),
        pytest.param("LocalTableScan <empty>, [a#0]\n", id="no rows"),
        pytest.param(f"CommandResult [x#0]\n   +- {WRITE}", id="what a command gave"),
        pytest.param("Execute SetCommand\n   +- SetCommand (a,Some(b))\n", id="SET"),
        pytest.param("Execute ShowTablesCommand\n   +- ShowTablesCommand\n", id="SHOW"),
        pytest.param("Execute DescribeQueryCommand\n", id="DESCRIBE"),
        pytest.param("Execute CreateViewCommand\n   +- Relation [a#1] parquet\n", id="a view"),
        pytest.param("Execute DropTableCommand\n", id="DROP"),
        pytest.param("Execute CreateDatabaseCommand\n", id="a database"),
        pytest.param("ShowTables [namespace#0]\n", id="of a catalog"),
    ],
)
def test_the_nodes_of_a_plan_without_data_are_not_walked(plans, text):
    plan = Node("SomeExec", text)
    [parts] = plans.parts_of(plan, id)
    assert not parts.has_data()
    assert plan.asked == ["toString"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(FILES, id="files"),
        pytest.param(ADAPTIVE.format(RANGE, FILES), id="files that a stage made superfluous"),
        pytest.param("Scan hive default.t [a#0]\n", id="a Hive table"),
        pytest.param("BatchScan lakehouse.t[id#1L] lakehouse.t [filters=]\n", id="a table"),
        pytest.param(f"InMemoryTableScan [id#0L]\n   +- InMemoryRelation\n  {FILES}", id="a cache"),
        pytest.param("*(1) Ran\n... 70 more characters", id="a text that is cut"),
        pytest.param("Truncated plan of 1000 characters", id="a text that is left out"),
    ],
)
def test_the_leaves_of_a_plan_with_data_are_looked_at(plans, text):
    found = scan()
    plan = Node("ProjectExec", text, found, subqueriesAll=Sequence())
    [parts] = plans.parts_of(plan, id)
    assert [part.node for part in parts.scans] == [found]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param("AppendDataExecV1", "AppendDataExecV1 DeltaTableV2\n", id="of version 1"),
        pytest.param("AppendDataExec", "AppendData IcebergWrite\n", id="of version 2"),
        pytest.param("DeleteFromTableExec", "DeleteFromTable lakehouse.t\n", id="a delete"),
        pytest.param("TruncateTableExec", "TruncateTable lakehouse.t\n", id="a truncate"),
        pytest.param("InsertOnlyMergeExec", "InsertOnlyMerge IcebergWrite\n", id="of Spark 4.2"),
    ],
)
def test_a_write_of_a_table_is_found(plans, kind, text):
    plan = Node(kind, text + RANGE)
    [parts] = plans.parts_of(plan, id)
    assert parts.v2_writes == [(kind, plan)]


@pytest.mark.parametrize(
    ("stage", "unread"),
    [
        pytest.param(None, ["b"], id="left out"),
        pytest.param(True, [], id="the stage of it was run"),
        pytest.param(False, [], id="the stage of it was interrupted"),
    ],
)
def test_a_scan_that_an_adaptive_plan_left_out_has_read_nothing(plans, stage, unread):
    def scan_of(relation):
        return Node("FileSourceScanExec", "FileScan", relation=relation)

    begun = Node("ShuffleExchangeExec", "", scan_of("b"), subqueriesAll=Sequence())
    query_stage = Node("ShuffleQueryStageExec", "", isMaterialized=stage, plan=begun)
    stages = [query_stage] if stage is not None else []
    read = Node("BroadcastQueryStageExec", "", isMaterialized=True, plan=scan_of("a"))
    stages = answers(values=answers(toSeq=Sequence(read, *stages)))
    text = f"{FILES}{ROWS[:15]}<empty>, [a#1]\n"
    plan = Node(
        *("AdaptiveSparkPlanExec", ADAPTIVE.format(text, FILES)),
        executedPlan=Node("LocalTableScanExec", "LocalTableScan <empty>, [a#1]\n"),
        context=answers(stageCache=stages),
        initialPlan=Node("BroadcastHashJoinExec", "", scan_of("a"), scan_of("b")),
    )
    begun._answers["collectLeaves"] = Sequence(scan_of("b"))
    read._answers["plan"] = Node("ProjectExec", "", scan_of("a"), subqueriesAll=Sequence())
    [parts] = plans.parts_of(plan, lambda node: node if isinstance(node, str) else id(node))
    assert [s.node.relation() for s in parts.scans if s.is_unread] == unread
    assert [s.node.relation() for s in parts.scans if not s.is_unread] == ["a", "b"][
        : 1 + bool(stage)
    ]


def test_a_cursor_that_a_script_opens_reads_out_of_sight(plans):
    [parts] = plans.parts_of(Node("OpenCursorExec", "OpenCursor cursorreference(c)\n"), id)
    assert "cursor" in parts.unseen
    assert parts.has_data()


def insert(name, leaf):
    """Make an insert into a table of files, which reads one leaf."""
    command = Node(name, "")
    return Node("DataWritingCommandExec", "", leaf, cmd=command, subqueriesAll=Sequence())


@pytest.mark.parametrize("is_adaptive", [False, True])
def test_each_command_of_a_multi_insert_has_its_own_parts(plans, is_adaptive):
    shared = Node("ReusedExchangeExec", "", child=Node("ShuffleExchangeExec", "", scan()))
    append = Node("AppendDataExec", "", scan())
    text = f"Union\n:- {WRITE}{FILES}+- AppendData IcebergWrite\n{FILES}"
    union = Node("UnionExec", text, insert("First", scan()), insert("Second", shared), append)
    plan = union
    if is_adaptive:
        stage = Node("ResultQueryStageExec", "", plan=union)
        stages = answers(values=answers(toSeq=Sequence()))
        context = answers(stageCache=stages)
        text = ADAPTIVE.format(text, text)
        plan = Node("AdaptiveSparkPlanExec", text, executedPlan=stage, context=context)
    found = plans.parts_of(plan, id)
    assert [[name for name, _ in parts.commands] for parts in found] == [["First"], ["Second"], []]
    assert [[kind for kind, _ in parts.v2_writes] for parts in found] == [
        [],
        [],
        ["AppendDataExec"],
    ]
    assert [(parts.position, len(parts.scans)) for parts in found] == [(0, 1), (1, 1), (2, 1)]
    assert len({parts.kind for parts in found}) == 1


def test_a_union_of_queries_below_a_command_is_no_multi_insert(plans):
    union = Node("UnionExec", "", scan(), scan(), subqueriesAll=Sequence())
    stage = Node("ResultQueryStageExec", "", plan=union)
    command = Node("Insert", "")
    text = f"{WRITE}+- Union\n{FILES}"
    plan = Node("DataWritingCommandExec", text, stage, cmd=command, subqueriesAll=Sequence())
    [parts] = plans.parts_of(plan, id)
    assert (parts.position, len(parts.scans), parts.commands) == (None, 2, [("Insert", command)])


@pytest.mark.parametrize(
    "name", ["InsertIntoHadoopFsRelationCommand", "OptimizeTableCommand", "MergeIntoCommand"]
)
def test_of_a_command_without_scans_no_leaves_are_looked_at(plans, name):
    command = Node(name, "")
    plan = Node("DataWritingCommandExec", f"Execute {name} x\n+- {RANGE}", cmd=command)
    [parts] = plans.parts_of(plan, id)
    assert parts.commands == [(name, command)]
    assert (parts.kind, parts.scans) == ("DataWritingCommandExec", [])
    assert plan.asked == ["toString", "productPrefix", "cmd"]


@pytest.mark.parametrize("is_about_tables", [True, False])
def test_rows_are_looked_at_where_the_query_is_about_tables(plans, is_about_tables):
    rows = Node("LocalTableScanExec", ROWS)
    plan = Node("LocalTableScanExec", ROWS, rows)
    [parts] = plans.parts_of(plan, id, lambda _: is_about_tables)
    assert parts.rows == [rows] * is_about_tables


@pytest.mark.parametrize("is_about_tables", [True, False])
def test_a_write_of_what_was_answered_from_statistics_has_the_rows(plans, is_about_tables):
    rows = Node("LocalTableScanExec", ROWS)
    plan = Node("AppendDataExec", f"AppendData t\n+- {ROWS}", rows)
    asked = []

    def is_about(is_write):
        asked.append(is_write)
        return is_about_tables

    [parts] = plans.parts_of(plan, id, is_about)
    assert (parts.rows, asked) == ([rows] * is_about_tables, [True])
    assert [kind for kind, _ in parts.v2_writes] == ["AppendDataExec"]


def test_the_rows_of_a_write_are_left_out_where_nobody_asks_what_it_is_about(plans):
    plan = Node("AppendDataExec", f"AppendData t\n+- {ROWS}", Node("LocalTableScanExec", ROWS))
    [parts] = plans.parts_of(plan, id)
    assert parts.rows == []
    assert [kind for kind, _ in parts.v2_writes] == ["AppendDataExec"]


def test_a_limit_anywhere_in_a_plan_is_looked_for_in_each_plan_of_it(plans):
    limited = Node("CollectLimitExec", f"CollectLimit 3\n+- {FILES}", scan())
    stage = Node("ShuffleQueryStageExec", "", plan=limited)
    plan = Node("SortExec", f"Sort [id#0L]\n+- CollectLimit 3\n{FILES}", scan(), stage)
    [parts] = plans.parts_of(plan, id)
    assert [part.is_limited for part in parts.scans] == [False, True]


def test_a_query_without_data_costs_three_calls(plans, tmp_path):
    """Of the driver: for its number, for its plan, and for the plan's text."""
    from sparklineage_observer.observer import Observer

    class Classes:
        identity = staticmethod(id)

    file = tmp_path / "observations.ndjson"
    observer = Observer(str(file), "tag")
    observer.classes = Classes()
    plan = Node("ProjectExec", RANGE)
    execution = Node("QueryExecution", "", id=1, executedPlan=plan)
    observer.finished("collect", execution, 1)
    assert (execution.asked, plan.asked) == (["id", "executedPlan"], ["toString"])
    assert not file.exists()


def test_a_frame_that_is_collected_again_is_looked_at_again(plans, tmp_path, monkeypatch):
    """A cloned session reports a query once more, with the same duration."""
    from sparklineage_observer import scans
    from sparklineage_observer.observer import Observer

    def observe(kind, _node, _classes, _budget, is_again):
        return {"node": kind, "not_data": True, "again": is_again}

    monkeypatch.setattr(scans, "observe", observe)
    observer = Observer(str(tmp_path / "observations.ndjson"), "tag")
    observer.classes = SimpleNamespace(identity=id)
    phases = "Map(optimization -> PhaseSummary(1000, 1010))"
    tracker = Node("QueryPlanningTracker", "", phases=Node("Map", phases))
    plan = Node("WholeStageCodegenExec", FILES, scan())
    execution = Node("QueryExecution", "", id=1, executedPlan=plan, tracker=tracker)
    for milliseconds in (70, 70, 90):
        observer.finished("collect", execution, milliseconds * 1_000_000)
    first, second = map(json.loads, (tmp_path / "observations.ndjson").read_text().splitlines())
    assert (first["started"], first["ended"], first["seen"] > 1070) == (1000, 1070, True)
    assert (second["planned"], second["ended"] - second["started"]) == (1000, 90)
    assert [read["again"] for one in (first, second) for read in one["reads"]] == [False, True]


def test_the_metrics_of_a_plan_are_read_in_one_call(plans):
    from sparklineage_observer.jvm import metrics

    texts = [
        "numFiles -> SQLMetric(id: 7, name: Some(number of files, value: 9), value: 3)",
        "filesSize -> SQLMetric(id: 8, name: None, value: 0)",
        "unknown -> SQLMetric(id: 9, name: Some(x), value: -1)",
    ]
    known = SimpleNamespace(mkString=lambda separator: separator.join(texts))
    found = metrics(known, "numFiles", "filesSize", "unknown", "numParts")
    assert found == {"numFiles": 3, "filesSize": 0, "unknown": -1}


def test_the_columns_of_partitions_are_described_in_two_calls(plans):
    from sparklineage_observer.jvm import attributes

    texts = ("a b#1", "p,q:r#22L", "tricky#5#3", "d#4")
    struct = "struct<a b:int,p,q:r:bigint,tricky#5:decimal(10,2),d:string collate UNICODE>"
    classes = SimpleNamespace(struct_of=lambda _: answers(catalogString=struct))
    found = [(d["field"], d["type"]) for d in attributes(classes, Sequence(*texts))]
    types = ["int", "bigint", "decimal(10,2)", "string collate UNICODE"]
    assert found == list(zip(["a b", "p,q:r", "tricky#5", "d"], types, strict=True))
    assert attributes(None, Sequence()) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Aggregate [count(1)]\n+- Relation spark_catalog.t[id#0L] parquet\n", True),
        ("RelationV2[id#0L] lakehouse.t\n", True),
        ("HiveTableRelation [`spark_catalog`.`default`.`t`]\n", True),
        ("LocalRelation [a#0]\n", False),
        ("Project [a#0]\n... 70 more characters", True),
    ],
)
def test_what_a_query_is_about_is_in_the_text_of_its_analysed_plan(plans, text, names):
    from sparklineage_observer.relations import names_tables

    execution = answers(analyzed=answers(toString=text))
    assert names_tables(execution, is_write=False) is names
    execution = answers(analyzed=answers(toString=f"AppendData RelationV2[a#0] t\n+- {text}"))
    assert names_tables(execution, is_write=True) is names
