"""Which write commands come with a plan, and what bounds the plans; the driver's JVM is doubled."""

import json
from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage.spark.submit import submitted_files

RELATION = "Relation [id#1L,name#2] parquet\n"
JOIN = f"""\
InsertIntoHadoopFsRelationCommand file:/lake/out, false, Parquet, [path=/lake/out], Append
+- Project [id#1L, upper(name#2) AS name#5]
   +- {RELATION}"""


@pytest.fixture
def commands(monkeypatch):
    """Give the observer's module as the driver has it."""
    monkeypatch.syspath_prepend(str(submitted_files.DRIVER))
    from sparklineage_observer import commands

    return commands


class Sequence:
    """A Scala Seq."""

    def __init__(self, *elements):
        self.elements = elements

    def size(self):
        return len(self.elements)

    def apply(self, position):
        return self.elements[position]

    def mkString(self, separator):  # noqa: N802  (Scala's name)
        return separator.join(map(str, self.elements))


def answers(**values):
    """Make an object whose methods give these values."""
    return SimpleNamespace(**{name: lambda value=value: value for name, value in values.items()})


class Leaf(SimpleNamespace):
    """A relation of files below some roots."""

    def __init__(self, *roots, text=RELATION, streams=False):
        index = answers(getSimpleName="InMemoryFileIndex")
        location = answers(rootPaths=Sequence(*roots), getClass=index)
        relation = answers(location=location)
        super().__init__(text=text, relation=lambda: relation, isStreaming=lambda: streams)

    def __str__(self):
        return self.text


NOT_THERE = answers(isDefined=False)
SCHEMA = {"type": "struct", "fields": [{"name": "upper(name)", "type": "string"}]}
JSON = '[{"class":"a.B","exprId":{"id":1,"jvmId":"0-1"},"analyzedQuery":[{"class":"a.C"}]}]'


LEAVES = (Leaf("file:/lake/in"),)


class Plan(SimpleNamespace):
    """A write of files that counts how often Spark was asked for its JSON."""

    def __init__(self, text=JOIN, leaves=LEAVES, json=JSON):
        self.asked = 0
        self.text, self.json, self.leaves = text, json, leaves
        self.query = lambda: answers(schema=answers(json=json_of(SCHEMA)))
        self.outputPath = lambda: answers(toString="file:/lake/out")
        self.outputColumnNames = lambda: Sequence("name")
        self.catalogTable = lambda: NOT_THERE

    def toString(self):  # noqa: N802  (Java's name)
        return self.text

    def toJSON(self):  # noqa: N802  (Spark's name)
        self.asked += 1
        return self.json

    def collectLeaves(self):  # noqa: N802  (Spark's name)
        return Sequence(*self.leaves)

    def subqueriesAll(self):  # noqa: N802  (Spark's name)
        return Sequence()


def json_of(value):
    return json.dumps(value)


def observed(commands, plan, limits="", *, hidden=False, times=1):
    from sparklineage_observer.records import Budget, Limits

    bounds = Limits(limits)
    observer = commands.Commands(bounds)
    kind = "InsertIntoHadoopFsRelationCommand"
    for _ in range(times):
        record = observer.observe(kind, answers(analyzed=plan), lambda: hidden, Budget(bounds))
    return record


COPY = f"""\
InsertIntoHadoopFsRelationCommand file:/lake/out, false, Parquet, [path=/lake/out], Append
+- Project [id#1L, name#2]
   +- {RELATION}"""


def test_a_write_of_files_that_copies_columns_has_no_command(commands):
    plan = Plan(COPY)
    assert observed(commands, plan) is None
    assert plan.asked == 0


@pytest.mark.parametrize(
    ("limits", "hidden"), [("plans=all", False), ("", True)], ids=["all are wanted", "is hidden"]
)
def test_a_command_has_its_plan_and_what_it_reads(commands, limits, hidden):
    leaves = (
        Leaf("file:/lake/in/dt=1", "file:/lake/in/dt=2"),
        Leaf("file:/lake/in/dt=1", "file:/lake/in/dt=2"),  # in a subquery as well
        Leaf("file:/lake/users/", text="Relation [user_id#7L] csv\n"),
        Leaf(text="Range (0, 3, step=1)\n"),
    )
    assert observed(commands, Plan(leaves=leaves), limits, hidden=hidden) == {
        "node": "InsertIntoHadoopFsRelationCommand",
        "target": {"path": "file:/lake/out", "table": None},
        "schema": {"type": "struct", "fields": [{"name": "name", "type": "string"}]},
        "columns": ["name"],
        "plan": [{"class": "a.B", "exprId": {"id": 1}}],
        "relations": [
            {"path": "file:/lake/in", "table": None, "ids": [1, 2]},
            {"path": "file:/lake/users", "table": None, "ids": [7]},
        ],
    }


@pytest.mark.parametrize(
    "line",
    [
        "Project [id#1L, up(name#2)#4 AS z#5]",
        "MapInPandas f(id#1L), [id#9L], false",
        "Expand [[id#1L, 0], [null, 1]], [id#3L, spark_grouping_id#4L]",
        "Except All true",
        "Project [id#1L, scalar-subquery#7 [] AS w#8]",
        "Aggregate [sum(id#1L) FILTER (WHERE (id#1L > 5)) AS s#4L]",
        "Aggregate [user_id#1L], [user_id#1L, count(1) AS n#4L]",
        "Project [id#1L, 2024-05-05 AS dt#3]",
        "LogicalRDD [id#1L], false",
        "Generate explode(array(1, 2)), false, [x#3]",
        "Project [a#1, b#2, ... 5 more fields]",
    ],
)
def test_a_plan_is_taken_where_the_listener_loses_columns(commands, line):
    assert observed(commands, Plan(f"{JOIN}\n+- {line}"))["plan"]


@pytest.mark.parametrize(
    "line",
    [
        "Project [id#1L, upper(name#2) AS z#5]",
        "Aggregate [user_id#1L], [user_id#1L, sum(id#2L) AS n#4L]",
        "Filter (id#1L > 5)",
        "Join Inner, (user_id#1L = user_id#2L)",
    ],
)
def test_a_plan_that_only_describes_columns_is_taken_if_there_is_room(commands, line):
    """If there is none, the record is not cut: the listener has all columns."""
    text = f"{COPY}\n+- {line}"
    record = observed(commands, Plan(text))
    assert (bool(record["plan"]), record["describes"]) == (True, True)
    assert observed(commands, Plan(text), "plan_bytes=50") is None
    assert observed(commands, Plan(text), "plans_bytes=400") is None


def test_a_plan_that_shows_that_a_partition_column_is_no_expression_is_taken(commands):
    assert observed(commands, Plan(COPY.replace("Parquet", "[name#2], Parquet")))["describes"]


@pytest.mark.parametrize("line", ["Generate explode(tags#2), false, [x#3]", "Sort [id#1L ASC]"])
def test_a_plan_is_left_where_it_tells_nothing_that_the_listener_does_not(commands, line):
    assert observed(commands, Plan(f"{COPY}\n+- {line}")) is None


def test_a_plan_that_reads_a_database_is_left_to_the_listener_which_names_it(commands):
    database = Leaf(text="Relation [id#7] JDBCRelation(people) [numPartitions=1]\n")
    database.relation = refuse
    assert observed(commands, Plan(leaves=[*LEAVES, database]), "plans=all") is None


def test_a_relation_that_a_plan_reads_many_times_counts_once(commands):
    record = observed(commands, Plan(leaves=LEAVES * 300), "leaves=1", hidden=True)
    assert ("plan" in record, len(record["relations"]), "cut" in record) == (True, 1, False)


@pytest.mark.parametrize(
    ("plan", "limits", "times", "cut", "asked"),
    [
        (
            Plan(leaves=[Leaf("file:/in", text=f"Relation [id#{n}L] csv\n") for n in range(3)]),
            "leaves=2",
            1,
            "a plan that reads 3 relations is left out, for more than 2",
            0,
        ),
        (
            Plan(JOIN + "Project [a#1, ... 100000 more fields]"),
            "",
            1,
            "a plan of 40002400 bytes or so is left out, for more than 1048576",
            0,
        ),
        (
            Plan(json="[" + " " * 6000 + "]"),
            "plan_bytes=5000",
            1,
            "a plan of 6002 bytes or so is left out, for more than 5000",
            1,
        ),
        (
            Plan(json="[{" + " " * 997 + "}]"),
            "plans_bytes=3900",
            20,
            "all plans together exceed 3900 bytes",
            2,
        ),
    ],
    ids=["reads", "columns", "bytes", "a loop"],
)
def test_a_plan_that_is_too_much_is_left_out_and_reported(
    commands, plan, limits, times, cut, asked
):
    record = observed(commands, plan, f"plans=all,{limits}", times=times)
    assert record == {
        "node": "InsertIntoHadoopFsRelationCommand",
        "target": {"path": "file:/lake/out", "table": None},
        "cut": cut,
    }
    assert plan.asked == asked


def test_a_stream_reads_files_of_a_folder(commands):
    from sparklineage_observer.records import Budget, Limits

    files = ("file:/lake/in/dt=1/r=a/part-0", "file:/lake/in/dt=2/r=a/part-1")
    plan = Plan(leaves=[Leaf(*files, streams=True)])
    plan.schema = answers(schema=answers(json=json_of(SCHEMA))).schema
    bounds = Limits("")
    record = commands.Commands(bounds).of_batch({"node": "FileSink"}, plan, Budget(bounds))
    assert record["relations"] == [{"path": "file:/lake/in", "table": None, "ids": [1, 2]}]
    assert (record["columns"], record["schema"]) == (["upper(name)"], SCHEMA)
    assert record["plan"]


def test_the_columns_of_a_relation_are_described_once(commands):
    from sparklineage_observer.scans import Schemas

    asked = []
    struct = SimpleNamespace(json=lambda: asked.append(1) or json_of(SCHEMA))
    scan = answers(relation=answers(schema=struct))
    schemas = Schemas()
    first, again, other = ({"roots": [r], "table": None} for r in ("/a", "/a", "/b"))
    for read in (first, again, other):
        schemas.describe(read, "FileSourceScanExec", scan)
    assert [read.get("schema") for read in (first, again, other)] == [SCHEMA, None, SCHEMA]
    assert len(asked) == 2


class Named(SimpleNamespace):
    """An object of a Java class."""

    def getClass(self):  # noqa: N802  (Java's name)
        return answers(getSimpleName=self.java_class)


PATH = answers(toString="file:/t")


def refuse(_name=None):
    message = "no such table"
    raise LookupError(message)


def observed_write(commands, plan):
    from sparklineage_observer.records import Budget, Limits

    execution = answers(analyzed=plan)
    return commands.Commands(Limits()).observe(None, execution, bool, Budget(Limits()))


@pytest.mark.parametrize(
    ("loaded", "path"),
    [
        (lambda _: Named(java_class="T", path=lambda: PATH, name=str), "file:/t"),
        (lambda _: Named(java_class="T", path=lambda: PATH, name=refuse), "file:/t"),
        (refuse, ""),
    ],
    ids=["is there", "its session was stopped", "was dropped since"],
)
def test_a_table_that_is_created_from_a_query_has_the_catalogs_name(commands, loaded, path):
    catalog = SimpleNamespace(name=lambda: "shop", loadTable=loaded)
    query = Plan()
    query.schema = lambda: answers(json=json_of(SCHEMA))
    query.output = lambda: Sequence("name#5")
    name = answers(catalog=catalog, identifier=answers(toString="s.t"))
    plan = Named(java_class="ReplaceTableAsSelect", query=lambda: query, name=lambda: name)
    plan.toString, plan.toJSON = lambda: "", lambda: JSON
    record = observed_write(commands, plan)
    assert record["target"] == {"path": path, "table": "shop.s.t"}
    assert record["columns"] == ["name"]


@pytest.mark.parametrize(
    ("table", "name", "target"),
    [
        ("DeltaTableV2", lambda: "t", {"path": "file:/t", "table": "t"}),
        ("DeltaTableV2", refuse, {"path": "file:/t", "table": None}),
        ("StagedDeltaTableV2", lambda: "t", None),
        ("NoopTable$", lambda: "t", None),
    ],
    ids=["a table", "whose session was stopped", "of a table that is created", "nothing"],
)
def test_a_write_of_a_table_has_its_target_even_without_a_plan(commands, table, name, target):
    written = Named(java_class=table, path=lambda: PATH, name=name)
    plan = Plan("AppendData RelationV2[id#1L] t")
    plan.table = lambda: answers(table=written)
    plan.getClass = lambda: answers(getSimpleName="AppendData")
    record = observed_write(commands, plan)
    assert record == (target and {"node": "AppendData", "target": target})
    assert plan.asked == 0


@pytest.mark.parametrize("evolves", [True, False])
def test_the_schema_of_a_merge_is_that_of_the_table_after_it(commands, evolves):
    before, after = answers(json='{"fields": [1]}'), answers(json='{"fields": [1, 2]}')
    plan = answers(
        target=answers(schema=before),
        migratedSchema=answers(isDefined=evolves, get=after),
    )
    schema = commands._Write("MergeIntoCommand", plan, None).schema([])
    assert schema == {"fields": [1, 2] if evolves else [1]}


def test_an_update_leaves_the_schema_as_it_is(commands):
    plan = answers(target=answers(schema=answers(json='{"fields": []}')))
    assert commands._Write("UpdateCommand", plan, None).schema([]) == {"fields": []}


# --- CREATE TABLE AS SELECT, and writes that failed -----------------------------------------------

TABLE_AS_SELECT = "CreateDataSourceTableAsSelectCommand"


def session_with(**tables):
    """Make a session with tables at some locations."""

    def table(identifier):
        name = identifier.unquotedString()
        full_name = answers(unquotedString=f"spark_catalog.default.{name}")
        return answers(location=answers(toString=tables[name]), identifier=full_name)

    return answers(sessionState=answers(catalog=SimpleNamespace(getTableMetadata=table)))


def made(commands, name, **tables):
    from sparklineage_observer.records import Budget, Limits

    plan = answers(table=answers(identifier=answers(unquotedString=name)))
    execution = answers(analyzed=plan, sparkSession=session_with(**tables))
    observer = commands.Commands(Limits(""))
    return observer.observe(TABLE_AS_SELECT, execution, lambda: False, Budget(Limits("")))


def test_a_table_that_is_made_by_select_has_a_target_alone(commands):
    assert made(commands, "t", t="file:/lake/t") == {
        "node": TABLE_AS_SELECT,
        "target": {"path": "file:/lake/t", "table": "spark_catalog.default.t"},
    }


def test_a_table_that_was_not_made_has_its_name(commands):
    assert made(commands, "t")["target"] == {"path": "", "table": "t"}


@pytest.mark.parametrize(
    ("write", "is_skipped"),
    [
        pytest.param(None, True, id="nothing was written"),
        pytest.param(5, True, id="written before"),
        pytest.param(15, False, id="written below it"),
    ],
)
def test_a_table_that_was_there_already_is_skipped(commands, tmp_path, write, is_skipped):
    from sparklineage_observer.observer import Observer

    observer = Observer(str(tmp_path / "observations.ndjson"), "tag")
    if write is not None:
        observer._last_writes["file:/lake/t"] = write
    record = {"writes": [], "command": {"target": {"path": "file:/lake/t", "table": "t"}}}
    command = answers(mode=answers(toString="Ignore"))
    observer._write(record, TABLE_AS_SELECT, command, None, 10, None)
    assert [w["skipped"] for w in record["writes"]] == [True] * is_skipped


def test_a_command_of_a_multi_insert_is_the_one_at_its_position(commands):
    from sparklineage_observer.records import Budget, Limits

    kind, limits = "InsertIntoHadoopFsRelationCommand", Limits()
    other = Plan()
    other.outputPath = lambda: answers(toString="file:/lake/second")
    execution = answers(analyzed=answers(children=Sequence(Plan(), other)))
    record = commands.Commands(limits).observe(kind, execution, lambda: True, Budget(limits), 1)
    assert record["target"] == {"path": "file:/lake/second", "table": None}
    assert (record["plan"], record["columns"]) == (
        [{"class": "a.B", "exprId": {"id": 1}}],
        ["name"],
    )
    assert commands.Commands.target_of(kind, execution, 1)["target"] == record["target"]


def test_a_failed_write_has_its_target_and_no_plan(commands):
    plan = Plan()
    kind = "InsertIntoHadoopFsRelationCommand"
    assert commands.Commands.target_of(kind, answers(analyzed=plan)) == {
        "node": kind,
        "target": {"path": "file:/lake/out", "table": None},
    }
    assert plan.asked == 0
