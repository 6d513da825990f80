"""What only the observer saw is an action too; what it saw to be skipped is none."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
from airflow_provider_sparklineage.lineage.application.accumulation import (
    Action,
    ActionState,
    SparkApplication,
)
from airflow_provider_sparklineage.lineage.observed.binding import Observed
from airflow_provider_sparklineage.lineage.observed.corrections import (
    corrected,
    without_inferred_files,
)
from airflow_provider_sparklineage.lineage.observed.unreported_actions import (
    with_unreported_actions,
)
from airflow_provider_sparklineage.model.allowance import Limit, SpentError
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Witness
from airflow_provider_sparklineage.spark.capture.observations import (
    ObservationReport,
    read_observations,
)
from tests.allowances import lasting

COMPLETE, FAILED = ActionState.COMPLETE, ActionState.FAILED
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def raw(**facet):
    return msgspec.Raw(json.dumps(facet).encode())


def at(seconds):
    return EPOCH + timedelta(seconds=seconds)


def reported(started, ended, inputs=(), outputs=(), *, facets=None, job_type="SQL_JOB", **more):
    """Give an action of the listener; datasets by their names below ``/lake``."""

    def datasets(names):
        return tuple(
            ActionDataset(DatasetName("file", f"/lake/{n}"), facets or {}, {}) for n in names
        )

    return Action(
        run_id=f"run-{started}",
        job_name="app.node",
        job_type=job_type,
        started=at(started),
        ended=None if ended is None else at(ended),
        state=more.pop("state", COMPLETE),
        inputs=datasets(inputs),
        outputs=datasets(outputs),
        **more,
    )


def scan(path, **more):
    layout = {"base": path, "dimensions": [], "partitions": [[]]}
    return {"node": "FileSourceScanExec", "roots": [path], "layouts": [layout]} | more


def put(path, mode="whole", **more):
    return {"node": "x", "path": path, "mode": mode, "how": "exact"} | more


def query(started, ended, *reads, writes=(), function="count", **more):
    span = {"kind": "query", "started": round(started * 1000), "ended": round(ended * 1000)}
    scans = [scan(f"file:/lake/{r}") if isinstance(r, str) else r for r in reads]
    found = [put(f"file:/lake/{w}") if isinstance(w, str) else w for w in writes]
    return span | {"reads": scans, "writes": found, "function": function} | more


def commits(*writes):
    return {"kind": "commits", "writes": list(writes)}


def commit(path, time, mode="append", **more):
    layout = {"base": f"file:/lake/{path}", "dimensions": [], "partitions": [[]]}
    return put(f"file:/lake/{path}", mode, time=round(time * 1000), layouts=[layout]) | more


def command(path, node="UpdateCommand", **more):
    return {"node": node, "target": {"path": f"file:/lake/{path}"}} | more


def decoded(records):
    lines = [json.dumps(record).encode() + b"\n" for record in records]
    return list(read_observations(lines, ObservationReport()))


def witnessed(actions, records):
    """Give an application with what was observed next to it."""
    application = SparkApplication("run", "ns", "app", tuple(actions))
    return corrected(Observed.of(application, decoded(records))).application


def names(datasets):
    return " ".join(d.name.name.removeprefix("/lake/") for d in datasets)


def of(application, witness=Witness.OBSERVER):
    """Give (begin, end, inputs, outputs) of the actions of a witness."""
    return [
        (
            (a.started - EPOCH).total_seconds(),
            (a.ended - EPOCH).total_seconds(),
            names(a.inputs),
            names(a.outputs),
        )
        for a in application.actions
        if a.witness is witness
    ]


@pytest.mark.parametrize(
    ("actions", "records", "expected"),
    [
        pytest.param([], [query(1, 2, "rates")], [(1, 2, "rates", "")], id="a count"),
        pytest.param([reported(1, 2, ["rates"])], [query(1, 2, "rates")], [], id="reported"),
        pytest.param(
            [reported(3, 4, ["rates"])],
            [query(1, 2, "rates")],
            [(1, 2, "rates", "")],
            id="reported at another time",
        ),
        pytest.param(
            [reported(1, 2, ["orders"], ["out"])],
            [query(1, 2, "orders", "calendar", writes=["out"])],
            [(1, 2, "calendar", "")],
            id="a table that only a subquery reads",
        ),
        pytest.param(
            [reported(1, 2, (), ["state"])],
            [query(1, 2, "state", writes=["state"])],
            [(1, 2, "state", "")],
            id="the old content of what is written",
        ),
        pytest.param(
            [reported(1, None, ["rates"], job_type="RDD_JOB")],
            [query(1, 2, "rates")],
            [(1, 2, "rates", "")],
            id="an RDD job that lists files",
        ),
        pytest.param(
            [],
            [query(1, 2, "a", writes=["out"])],
            [(1, 2, "a", "out")],
            id="a hidden write of files",
        ),
        pytest.param(
            [reported(1, 2, ["a"], ["out"])],
            [query(1, 2, "a", writes=["out"]), query(2.01, 3, "b", writes=["out"])],
            [(2.01, 3, "b", "out")],
            id="a hidden write right after one that is reported",
        ),
        pytest.param(
            [reported(1, 2, ["a"], ["out"])],
            [query(2.01, 3, "a", writes=["out"])],
            [],
            id="clocks that differ by some ms",
        ),
        pytest.param(
            [],
            [
                query(1, 4, function="command", command=command("t")),
                query(2, 3, "t", function="collect"),
                commits(commit("t", 3.5)),
            ],
            [(1, 4, "", "t"), (2, 3, "t", "")],
            id="an update of Delta",
        ),
        pytest.param(
            [],
            [query(1, 4, command=command("t")), commits(commit("t", 9))],
            [(1, 4, "", ""), (9, 9, "", "t")][1:],
            id="an update of Delta that changed nothing",
        ),
        pytest.param(
            [],
            [
                query(1, 4, command=command("t", "CreateDataSourceTableAsSelectCommand")),
                query(2, 3, "a", writes=["t"]),
            ],
            [(1, 4, "a", "t")],
            id="a table as select, a command in a command",
        ),
        pytest.param(
            [],
            [commits(commit("t", 1), commit("t", 2), commit("t", 2.01))],
            [(1, 1, "", "t"), (2, 2, "", "t")],
            id="commits of no event",
        ),
        pytest.param(
            [reported(1, 4, ["s"], ["t"])], [commits(commit("t", 3))], [], id="a commit of an event"
        ),
        pytest.param([], [commits(commit("t", 3))], [(3, 3, "", "t")], id="a commit of no event"),
        pytest.param(
            [], [commits(commit("t", 3, "create", layouts=[]))], [], id="an empty table is made"
        ),
        pytest.param(
            [],
            [
                query(
                    1,
                    2,
                    "a",
                    writes=["out"],
                    command=command("out", relations=[{"path": "file:/lake/b", "ids": [1]}]),
                )
            ],
            [(1, 2, "a", "out")],
            id="what a plan names and nobody read or reported is no dataset",
        ),
        pytest.param(
            [reported(7, 8, ["b"])],
            [
                query(
                    1,
                    2,
                    "a",
                    writes=["out"],
                    command=command("out", relations=[{"path": "file:/lake/b", "ids": [1]}]),
                )
            ],
            [(1, 2, "a b", "out")],
            id="what the leaves of a plan read",
        ),
    ],
)
def test_what_no_action_has_becomes_one(actions, records, expected):
    assert of(witnessed(actions, records)) == expected


FILES = put("file:/lake/t", "append", node="InsertIntoHadoopFsRelationCommand")


@pytest.mark.parametrize(
    ("began", "took", "hidden"),
    [
        pytest.param(10.02, 4, [(10, 13, "b", "t")], id="took as long as the action"),
        pytest.param(10.02, 4.005, [(10, 13, "b", "t")], id="took as long by another clock"),
        pytest.param(10.02, 4.009, [(10, 13, "b", "t")], id="a clock was corrected meanwhile"),
        pytest.param(9, 5, [(10, 13, "b", "t")], id="ended with the action"),
        pytest.param(10.02, 3.9, [(10, 13, "b", "")], id="neither"),
    ],
)
def test_the_action_of_one_write_does_not_cover_another_at_the_same_time(began, took, hidden):
    shown = query(began, began + took, "a", writes=[FILES], duration=round(took * 1000))
    other = query(10, 13, "b", writes=[FILES], duration=3000)
    found = witnessed([reported(10, 14, ["a"], ["t"])], [other, shown])
    assert of(found) == hidden


@pytest.mark.parametrize(
    ("node", "hidden"),
    [
        ("create_table", [(10.01, 12, "a", "t")]),
        ("execute_create_data_source_table_command", [(10.01, 12, "a", "t")]),
        ("append_data", [(10.01, 12, "a", "")]),
    ],
)
def test_the_action_that_created_a_table_does_not_cover_the_write_right_after_it(node, hidden):
    before = replace(reported(9, 10, outputs=["t"]), job_name=f"app.{node}")
    assert of(witnessed([before], [query(10.01, 12, "a", writes=["t"])])) == hidden


@pytest.mark.parametrize(
    ("action", "record", "started"),
    [
        pytest.param(
            reported(3, 3, ["a"], ["t"]), query(1, 2.999, command=command("t")), 1, id="a command"
        ),
        pytest.param(reported(3, 3, ["a"]), query(1, 2.999, "a"), 1, id="a read"),
        pytest.param(
            reported(3, 3, ["a"], ["t"]), query(1, 2.999, command=command("x")), 3, id="another's"
        ),
        pytest.param(reported(3, 3, ["a"]), query(1, 2.9, "a"), 3, id="one that ended before"),
        pytest.param(reported(3, 3, ["a"]), query(1, 5, command=command("t")), 1, id="a step"),
        pytest.param(reported(2, 3, ["a"]), query(1, 3, "a"), 2, id="an action with a begin"),
    ],
)
def test_an_action_that_is_reported_by_its_end_has_the_begin_of_its_query(action, record, started):
    found = of(witnessed([action], [record, commits(commit("t", 2))]), Witness.LISTENER)
    assert [(begin, end) for begin, end, *_ in found] == [(started, 3)]


@pytest.mark.parametrize(("is_stream", "started"), [(True, 1), (False, 2.5)])
def test_a_step_of_a_batch_that_is_reported_by_its_end_begins_with_the_batch(is_stream, started):
    """Or a commit between the begin of the batch and the end of the step is of no action."""
    action = reported(2.5, 2.5, ["a"], ["b"], is_stream=is_stream)
    batch = query(1, 3, "a", function="stream", command=command("b", "DeltaSink"))
    [done] = witnessed([action], [batch]).actions
    assert done.started == at(started)


def saved(started, ended, path="out"):
    return query(started, ended, writes=[put(f"file:/lake/{path}", "create", node="RDD")])


def test_what_rdd_code_saves_is_made_of_what_its_jobs_read():
    """The listener reports the start of such a job, and neither its output nor its end."""
    jobs = [
        reported(1.5, None, ["before"], job_type="RDD_JOB"),
        reported(2.1, None, ["text"], job_type="RDD_JOB"),
        reported(3.5, None, ["after"], job_type="RDD_JOB"),
        reported(2.2, 2.5, ["other"]),
    ]
    done = witnessed(jobs, [saved(2, 3)])
    [made] = [action for action in done.actions if action.witness is Witness.OBSERVER]
    assert (names(made.inputs), names(made.outputs)) == ("text", "out")


def test_what_rdd_code_saves_is_the_job_of_the_listener_that_reports_it():
    job = reported(2.1, 2.9, ["text"], ["out"], job_type="RDD_JOB")
    assert witnessed([job], [saved(2, 3)]).actions == (job,)


def test_an_application_of_which_all_is_reported_stays_the_same():
    application = SparkApplication("run", "ns", "app", (reported(1, 2, ["rates"]),))
    seen = Observed.of(application, decoded([query(1, 2, "rates")]))
    assert corrected(seen) is seen


@pytest.mark.parametrize(
    ("read", "name", "locations"),
    [
        pytest.param(scan("file:/lake/orders"), ("file", "/lake/orders"), None, id="folder"),
        pytest.param(
            scan("file:/lake/orders/dt=1"),
            ("file", "/lake/orders"),
            {"/lake/orders/dt=1"},
            id="partition",
        ),
        pytest.param(scan("s3a://b/t"), ("s3://b", "t"), None, id="object store"),
        pytest.param(scan("hdfs://nn:8020/t"), ("hdfs://nn:8020", "/t"), None, id="hdfs"),
        pytest.param(
            scan("file:/lake/t", table="spark_catalog.default.t"),
            ("file", "/lake/t"),
            None,
            id="table of a catalog",
        ),
        pytest.param(
            {"node": "x", "roots": ["file:/lake/orders"], "cut": "too many"},
            ("file", "/lake/orders"),
            None,
            id="partitions not known",
        ),
        pytest.param(
            scan("file:/lake/orders/part-0-x.parquet"), ("file", "/lake/orders"), None, id="a file"
        ),
        pytest.param(
            scan("file:/lake/orders.parquet"), ("file", "/lake/orders.parquet"), None, id="a dot"
        ),
    ],
)
def test_a_dataset_has_the_name_that_the_listener_would_give_it(read, name, locations):
    [action] = witnessed([], [query(1, 2, read)]).actions
    [dataset] = action.inputs
    assert (tuple(dataset.name), dataset.locations) == (name, locations)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("file:/lake/orders/_delta_log/00.json", id="a log of Delta"),
        pytest.param("file:/lake/orders/_spark_metadata", id="a log of a stream"),
        pytest.param("", id="nothing"),
        pytest.param("no path", id="no path"),
    ],
)
def test_what_is_no_data_of_the_user_is_no_dataset(path):
    application = witnessed([reported(9, 10, ["orders"])], [query(1, 2, scan(path))])
    assert of(application) == []


@pytest.mark.parametrize(
    ("path", "locations"),
    [
        pytest.param("file:/lake/known/dt=1/a.csv", {"/lake/known/dt=1"}, id="in a partition"),
        pytest.param("file:/lake/known/a.csv", None, id="in the folder"),
    ],
)
def test_a_file_of_a_dataset_is_a_part_of_it(path, locations):
    application = witnessed([reported(9, 10, ["known"])], [query(1, 2, scan(path))])
    [action] = [a for a in application.actions if a.witness is Witness.OBSERVER]
    [dataset] = action.inputs
    assert (dataset.name.name, dataset.locations) == ("/lake/known", locations)


def test_a_file_is_inside_of_a_folder_that_only_the_observer_saw():
    application = witnessed([], [query(1, 2, scan("file:/lake/t/a.csv")), query(3, 4, "t")])
    assert of(application) == [(1, 4, "t", "")]


def test_text_that_was_read_for_the_columns_alone_is_no_input():
    look_up = {"node": "x", "roots": ["file:/lake/t/a.csv"], "inference": True}
    assert of(witnessed([], [query(1, 2, look_up)])) == []


@pytest.mark.parametrize(
    ("actions", "state"),
    [
        pytest.param([], FAILED, id="that nobody reports"),
        pytest.param([reported(1, 2, ["a"], state=FAILED)], COMPLETE, id="that is reported"),
    ],
)
def test_a_query_that_failed_has_read_what_it_read(actions, state):
    """That it failed is not reported twice."""
    every = witnessed(actions, [query(1, 2, "rates", failed=True)]).actions
    [action] = [a for a in every if a.witness is Witness.OBSERVER]
    assert (names(action.inputs), action.state, action.label) == ("rates", state, "count")


@pytest.mark.parametrize("is_failed", [False, True])
def test_a_failure_right_after_an_action_that_read_the_same_is_not_that_action(is_failed):
    record = query(2.011, 3, "a", failed=is_failed)
    found = of(witnessed([reported(1, 2, ["a"])], [record]))
    assert found == ([(2.011, 3, "a", "")] if is_failed else [])


def test_a_hidden_write_that_failed_is_a_failed_action():
    record = query(1, 2, "a", command=command("out"), failed=True)
    [action] = witnessed([], [record]).actions
    assert (names(action.inputs), names(action.outputs), action.state) == ("a", "out", FAILED)


# --- facets ---------------------------------------------------------------------------------------

STRUCT = {"type": "struct", "fields": [{"name": "x", "type": "double"}]}
COLUMNS = [
    {"name": "id", "type": "long"},
    {"name": "at", "type": STRUCT},
    {"name": "tags", "type": {"type": "array", "elementType": "string"}},
    {"name": "more", "type": {"type": "map", "keyType": "string", "valueType": STRUCT}},
]


def facets(dataset):
    return {key: msgspec.json.decode(raw) for key, raw in dataset.facets.items()}


def test_facets_are_what_the_listener_would_give():
    [action] = witnessed([], [query(1, 2, scan("s3://b/t", schema={"fields": COLUMNS}))]).actions
    found = facets(action.inputs[0])
    nested = [{"name": "x", "type": "double"}]
    assert {k: found["dataSource"][k] for k in ("name", "uri")} == {
        "name": "s3://b",
        "uri": "s3://b",
    }
    assert found["schema"]["fields"] == [
        {"name": "id", "type": "long"},
        {"name": "at", "type": "struct", "fields": nested},
        {"name": "tags", "type": "array", "fields": [{"name": "_element", "type": "string"}]},
        {
            "name": "more",
            "type": "map",
            "fields": [
                {"name": "key", "type": "string"},
                {"name": "value", "type": "struct", "fields": nested},
            ],
        },
    ]


@pytest.mark.parametrize(
    ("write", "node", "change"),
    [
        (put("file:/lake/out", "whole"), "InsertIntoHadoopFsRelationCommand", "OVERWRITE"),
        (put("file:/lake/out", "append"), "InsertIntoHadoopFsRelationCommand", None),
        (put("file:/lake/out", "create"), "InsertIntoHadoopFsRelationCommand", None),
        (put("file:/lake/out", "create"), "CreateTableAsSelect", "CREATE"),
        (put("file:/lake/out", "rows"), "AtomicReplaceTableAsSelect", "OVERWRITE"),
        (put("file:/lake/out", "rows"), "ReplaceData", None),
    ],
)
def test_what_a_write_did_is_named_as_the_listener_names_it(write, node, change):
    record = query(1, 2, writes=[write], command=command("out", node))
    [action] = witnessed([], [record]).actions
    lifecycle = facets(action.outputs[0]).get("lifecycleStateChange", {})
    assert lifecycle.get("lifecycleStateChange") == change


def test_what_the_listener_reports_of_a_dataset_elsewhere_is_given_again():
    known = {"dataSource": raw(name="x"), "symlinks": raw(identifiers=[]), "version": raw(v=1)}
    actions = [reported(7, 8, ["t"], facets=known)]
    schema = {"fields": COLUMNS[:1]}
    first = witnessed(actions, [query(1, 2, scan("file:/lake/t", schema=schema))]).actions[0]
    found = facets(first.inputs[0])
    assert found.keys() == {"dataSource", "symlinks", "schema"}
    assert found["dataSource"] == {"name": "x"}


def test_the_schema_of_a_write_is_its_commands():
    known = {"schema": raw(fields=[{"name": "old"}])}
    record = query(1, 2, writes=["t"], command=command("t", schema={"fields": COLUMNS[:1]}))
    first = witnessed([reported(7, 8, ["t"], facets=known)], [record]).actions[0]
    assert first.outputs[0].column_names == ("id",)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(None, id="null"),
        pytest.param({}, id="empty"),
        pytest.param({"type": "struct", "fields": 7}, id="no fields"),
        pytest.param({"type": "struct", "fields": [1, {}]}, id="no names"),
        pytest.param({"type": "array"}, id="no element"),
        pytest.param({"type": ["a"]}, id="a list"),
    ],
)
def test_odd_types_are_texts(kind):
    schema = {"fields": [{"name": "a", "type": kind}, {"name": "b", "type": "long"}]}
    [action] = witnessed([], [query(1, 2, scan("file:/lake/t", schema=schema))]).actions
    assert action.inputs[0].column_names == ("a", "b")


# --- in masses ------------------------------------------------------------------------------------


def test_reads_without_a_write_between_them_are_one_action():
    loop = [query(n, n + 0.5, scan(f"file:/lake/orders/dt={n}")) for n in range(2000)]
    application = witnessed([reported(999.6, 999.9, (), ["orders"])], loop)
    assert of(application) == [(0, 999.5, "orders", ""), (1000, 1999.5, "orders", "")]
    first = next(a for a in application.actions if a.witness is Witness.OBSERVER)
    assert len(first.inputs[0].locations) == 1000


def test_a_thousand_reads_of_two_datasets_in_turn_are_two_actions():
    loop = [query(n, n + 0.5, "ab"[n % 2]) for n in range(1000)]
    assert [entry[2:] for entry in of(witnessed([], loop))] == [("a", ""), ("b", "")]


def test_facets_are_kept_once():
    loop = [query(n, n + 0.5, "a", writes=["out"]) for n in range(3)]
    one, two, _ = witnessed([], loop).actions
    assert one.outputs[0].facets["dataSource"] is two.outputs[0].facets["dataSource"]


def test_what_there_is_no_room_for_is_counted(monkeypatch):
    monkeypatch.setattr(Limit, "DATASETS", 3)
    loop = [query(n, n + 0.5, f"t{n}") for n in range(5)]
    application = witnessed([reported(9, 10, ["known"])], loop)
    assert len(application.actions) == 3
    assert application.left_out == {"observed action(s)": 3}


def test_there_is_an_end_to_it_when_the_time_is_up():
    application = SparkApplication("run", "ns", "app", ())
    records = decoded([query(n, n + 0.5, "a") for n in range(1000)])
    seen = Observed.of(application, records)._replace(allowance=lasting(0))
    with pytest.raises(SpentError):
        with_unreported_actions(seen)


def test_there_is_an_end_to_binding_when_the_time_is_up():
    application = SparkApplication("run", "ns", "app", ())
    with pytest.raises(SpentError):
        Observed.of(application, decoded([query(1, 2, "a")]), allowance=lasting(0))


# --- skipped writes -------------------------------------------------------------------------------

SKIPPED = {"skipped": True}


@pytest.mark.parametrize(
    ("actions", "records", "left"),
    [
        pytest.param(
            [reported(1, 2, ["a"], ["out"]), reported(2, 3, ["b"], ["out"])],
            [
                query(1, 2, "a", writes=["out"]),
                query(2.001, 2.9, writes=[put("file:/lake/out", "create", **SKIPPED)]),
            ],
            [(1, 2, "a", "out")],
            id="the second write of one folder",
        ),
        pytest.param(
            [reported(1, 2, ["b"], ["out"])],
            [query(1, 2, writes=[put("file:/lake/out", "create", **SKIPPED)])],
            [],
            id="the only one",
        ),
        pytest.param(
            [reported(1, 3, ["a", "b"], ["out", "more"])],
            [
                query(1, 2, "a", writes=[put("file:/lake/out", "create", **SKIPPED)]),
                query(2, 3, "b", writes=["more"]),
            ],
            [(1, 3, "a b", "more")],
            id="one of two outputs",
        ),
        pytest.param(
            [reported(1, 3, ["a"], ["out"])],
            [
                query(1, 1.5, writes=[put("file:/lake/out", "create", **SKIPPED)]),
                query(2, 3, "a", writes=["out"]),
            ],
            [(1, 3, "a", "out")],
            id="written after all",
        ),
        pytest.param(
            [reported(1, 2, ["b"], ["t"])],
            [
                query(1, 2, command=command("t")),
                commits(commit("t", 1, "create", layouts=[], **SKIPPED)),
            ],
            [],
            id="a table of Delta",
        ),
        pytest.param(
            [reported(2.007, 2.007, ["b"], ["t"])],
            [
                query(2, 2.006, command=command("t")),
                commits(commit("t", 2, "create", layouts=[], **SKIPPED)),
            ],
            [],
            id="reported by its end alone",
        ),
    ],
)
def test_a_write_that_was_skipped_is_none_and_its_plan_has_read_nothing(actions, records, left):
    application = witnessed(actions, records)
    assert of(application, Witness.LISTENER) == left
    assert of(application) == []


def test_a_hidden_change_of_no_row_has_read_and_written_nothing():
    change = query(1, 2, command=command("out"))
    none = commits(commit("out", 1, "create", **SKIPPED))
    assert not witnessed([], [change, none]).actions
    assert witnessed([], [change]).actions


def test_what_was_opened_before_a_write_was_skipped_has_been_read():
    skipped = query(1, 2, "b", writes=[put("file:/lake/out", "create", **SKIPPED)])
    application = witnessed([reported(1, 2, ["a", "b"], ["out"])], [skipped])
    assert of(application) == [(1, 2, "b", "")]


# --- writes that failed though the listener reports success ---------------------------------------


def test_a_write_is_failed_if_its_query_is_and_has_read_what_was_observed():
    before = query(1, 2, "a", failed=True, command=command("out", "SaveIntoDataSourceCommand"))
    application = witnessed([reported(1, 2, ["a", "b"], ["out"])], [before])
    [action] = application.actions
    assert (action.state, names(action.inputs)) == (FAILED, "a")


def test_a_write_that_is_tried_again_at_once_is_complete():
    records = [
        query(1, 2.003, failed=True, command=command("out", "InsertIntoHadoopFsRelationCommand")),
        query(2.001, 3, "a", writes=["out"]),
    ]
    actions = [reported(1, 2, ["a"], ["out"]), reported(2.001, 3, ["a"], ["out"])]
    application = witnessed(actions, records)
    assert [a.state for a in application.actions] == [FAILED, COMPLETE]


# --- files that were looked at for columns --------------------------------------------------------

PART = "users/part-0.csv"


@pytest.mark.parametrize(
    ("reads", "inputs"),
    [
        pytest.param([scan("file:/lake/users")], "users", id="the only file of a folder"),
        pytest.param([scan("file:/lake/other")], PART, id="a file of no dataset"),
        pytest.param(
            [scan("file:/lake/users"), scan(f"file:/lake/{PART}")],
            f"users {PART}",
            id="a file that was read as well",
        ),
    ],
)
def test_a_file_that_was_looked_at_for_columns_is_no_input(reads, inputs):
    folders = [r["roots"][0].removeprefix("file:/lake/") for r in reads]
    actions = [reported(1, 2, [PART]), reported(2, 3, [f for f in folders if f != "other"])]
    looked = scan(f"file:/lake/{PART}", inference=True)
    looked.pop("layouts")
    records = decoded([query(1, 2, looked), query(2, 3, *reads)])
    application = SparkApplication("run", "ns", "app", tuple(actions))
    done = without_inferred_files(Observed.of(application, records)).application
    found = sorted({d.name.name for a in done.actions for d in a.inputs})
    assert " ".join(n.removeprefix("/lake/") for n in found) == inputs


# --- writes that were replaced before the observer looked -----------------------------------------


def days_written(days, **more):
    dimensions = [{"field": "dt", "transform": "identity", "type": "string"}]
    layout = {"base": "file:/lake/out", "dimensions": dimensions, "partitions": [[d] for d in days]}
    parts = {"layouts": [layout], "numParts": len(days)}
    return put("file:/lake/out", "dynamic", **(parts | more))


def days_found(*records):
    """Give the days of each write, or None if they are not known."""
    application = SparkApplication("run", "ns", "app", (reported(0, 9, outputs=["out"]),))
    seen = corrected(Observed.of(application, decoded(records)))
    partitions = [a.scope.partitions for q in seen.queries for w in q.writes for a in w.accesses]
    return [p and sorted(day for one in p for _, day in one.values) for p in partitions]


OVERWRITTEN = days_written([], how="unknown", numParts=1)


def test_a_write_of_which_nothing_is_left_has_the_partitions_of_the_write_that_replaced_it():
    first = query(1, 2, "events", writes=[OVERWRITTEN])
    second = query(3, 4, "more", writes=[days_written(["1", "2"])])
    assert days_found(first, second) == [["1", "2"], ["1", "2"]]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"numParts": 3}, {}, id="too few were replaced"),
        pytest.param({"cut": "not looked for"}, {}, id="it was not looked for"),
        pytest.param({"table": "db.out"}, {}, id="a table of a catalog"),
        pytest.param({"path": "file:/lake/other"}, {}, id="another folder"),
        pytest.param({}, {"how": "listing"}, id="the later write is not certain"),
        pytest.param({}, {"mode": "append"}, id="the later write replaced nothing"),
        pytest.param({}, {"mode": "whole"}, id="the later write emptied all others, too"),
    ],
)
def test_else_its_partitions_stay_unknown(first, second):
    records = [
        query(1, 2, "events", writes=[OVERWRITTEN | first]),
        query(3, 4, "more", writes=[days_written(["1", "2"]) | second]),
    ]
    assert days_found(*records)[0] is None


def test_nor_is_it_known_which_of_them_were_read_in_between():
    first = query(1, 2, "events", writes=[OVERWRITTEN])
    between = query(2.2, 2.4, "out")
    second = query(3, 4, "more", writes=[days_written(["1", "2"])])
    assert days_found(first, between, second)[0] is None


EMPTIED = days_written([]) | {"mode": "static", "emptied": days_written(["2"])["layouts"]}


@pytest.mark.parametrize(
    ("first", "later", "found"),
    [
        pytest.param({}, [EMPTIED], ["1", "2", "3"], id="one was emptied"),
        pytest.param({}, [days_written(["2"])], ["1", "2", "3"], id="one was replaced"),
        pytest.param(
            {"numParts": 4}, [EMPTIED, days_written(["4"])], ["1", "2", "3", "4"], id="two were"
        ),
        pytest.param({"numParts": 4}, [EMPTIED], ["1", "3"], id="another one is missing"),
        pytest.param({}, [days_written(["2", "4"])], ["1", "3"], id="it is one of two"),
        pytest.param({}, [days_written(["2"], how="listing")], ["1", "3"], id="not certain"),
        pytest.param(
            {}, [days_written(["2"]) | {"mode": "append"}], ["1", "3"], id="none was replaced"
        ),
    ],
)
def test_a_write_of_which_partitions_are_missing_has_those_that_later_ones_took(
    first, later, found
):
    partly = days_written(["1", "3"], how="listing", numParts=3) | {"mode": "append"} | first
    records = [query(1, 2, "events", writes=[partly])]
    records += [query(n, n + 0.5, "more", writes=[one]) for n, one in enumerate(later, 3)]
    assert days_found(*records)[0] == found


def test_a_write_replaces_no_later_one():
    first = query(1, 2, "more", writes=[days_written(["1", "2"])])
    second = query(3, 4, "events", writes=[OVERWRITTEN])
    assert days_found(first, second) == [["1", "2"], None]


# --- queries that ran some time after their plan was made -----------------------------------------


def ran(*records, actions):
    """Give the time of each query in seconds, and the actions that were made of queries."""
    application = SparkApplication("run", "ns", "app", tuple(actions))
    seen = corrected(Observed.of(application, decoded(records)))
    spans = [tuple((t - EPOCH).total_seconds() for t in q.span) for q in seen.queries]
    return spans, of(seen.application)


def planned(record, duration, *, at=None, seen=None):
    """Add to a record how long its query took, when its plan was made, and when it was seen."""
    times = {"duration": duration, "planned": at, "seen": seen}
    return record | {key: round(t * 1000) for key, t in times.items() if t is not None}


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(reported(20, 22, ["a"]), id="that took as long"),
        pytest.param(reported(22, 22, ["a"]), id="of which only the end is reported"),
    ],
)
def test_a_query_of_a_frame_that_was_explained_before_ran_when_its_action_did(action):
    record = planned(query(1, 3, "a"), 2, seen=22.3)
    assert ran(record, actions=[action]) == ([(20, 22)], [])


def test_each_query_of_a_frame_has_an_action_of_its_own():
    first = planned(query(1, 3, "a"), 2, seen=3.1)
    second = planned(query(21, 23, "a"), 2, at=1)
    actions = [reported(1, 3, ["a"]), reported(10, 12, ["a"])]
    assert ran(first, second, actions=actions) == ([(1, 3), (10, 12)], [])


@pytest.mark.parametrize(
    "action",
    [
        pytest.param(reported(20, 22, ["b"]), id="reads another dataset"),
        pytest.param(reported(20, 22.5, ["a"]), id="took longer"),
        pytest.param(reported(30, 32, ["a"]), id="came after the query was seen"),
    ],
)
def test_an_action_that_cannot_be_of_the_query_is_left_alone(action):
    record = planned(query(1, 3, "a"), 2, seen=22.3)
    assert ran(record, actions=[action])[0] == [(1, 3)]
