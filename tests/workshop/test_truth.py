"""The oracles of `make truth` are right about small cases, and a wrong event is found out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.truth import jobs, opened, running_jobs, verdict
from tests.truth.columns import sources
from tests.truth.job import Job
from tests.truth.queries import load
from tests.truth.reported import Accessed, Reported
from tests.truth.values import Files


def test_each_query_names_its_tables_and_partitions():
    query = next(q for q in load() if q.name == "q13")
    assert query.tables == ("customer", "orders")
    assert query.partitioned_by == ("c_count",)
    assert query.may == {"customer": "c_mktsegment = ' ' or c_mktsegment is null"}


def test_there_are_all_queries_and_what_is_known_of_them_is_of_their_tables():
    queries = load()
    assert len(queries) == 22
    for query in queries:
        assert {*query.may, *query.must} <= set(query.tables), query.name


def test_a_column_is_made_of_what_its_value_depends_on():
    sql = "with c as (select a + 1 as x, b from t) select case when b > 0 then x end as y from c"
    assert sources(sql, {"t": ["a", "b"]}) == {"y": frozenset({("t", "a"), ("t", "b")})}


def test_files_are_those_that_were_opened_while_a_query_ran(tmp_path):
    log = tmp_path / "opened.log"
    log.write_text(
        '1 openat(AT_FDCWD, "/lake/q01/t/schema", O_RDONLY) = 3\n'
        '1 openat(AT_FDCWD, "/lake/begun", O_WRONLY|O_APPEND) = 3\n'
        '2 openat(AT_FDCWD, "/lake/q01/t/c=z\\303\\274rich/a", O_RDONLY) = 3\n'
        '2 openat(AT_FDCWD, "/lake/q01/t/missing", O_RDONLY) = -1 ENOENT (No such file)\n'
        '2 openat(AT_FDCWD, "/elsewhere", O_RDONLY <unfinished ...>\n'
        '2 openat(AT_FDCWD, "/lake/out/q01/b", O_WRONLY|O_CREAT, 0666) = 4\n'
        '1 openat(AT_FDCWD, "/lake/ended", O_WRONLY|O_APPEND) = 3\n'
        '2 openat(AT_FDCWD, "/lake/q01/t/later", O_RDONLY) = 3\n'
    )
    found = opened.during_queries(log, Path("/lake"), ["q01"])
    assert found == {"q01": {Path("/lake/q01/t/c=zürich/a")}}


@pytest.mark.parametrize(
    ("kind", "file", "partition"),
    [
        ("parquet", "a=x%2Fy/b=__HIVE_DEFAULT_PARTITION__/f.parquet", ("x/y", None)),
        ("parquet", "a= /b=50%252F/f.parquet", (" ", "50%2F")),
        ("iceberg", "data/a=/b=null/f.parquet", ("", None)),
        ("iceberg", "data/a=x+y/b=%252F/f.parquet", ("x y", "%2F")),
    ],
)
def test_a_file_is_of_the_partition_that_its_folders_name(tmp_path, kind, file, partition):
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).touch()
    (tmp_path / file).with_name(".f.parquet.crc").touch()
    assert Files(tmp_path, kind).partitions() == {partition}


def test_a_file_of_delta_is_of_the_partition_that_the_log_names(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    actions = [
        {"metaData": {"partitionColumns": ["a"]}},
        {"add": {"path": "a=x%2520y/f.parquet", "partitionValues": {"a": "x y"}}},
    ]
    log = tmp_path / "_delta_log" / "0.json"
    log.write_text("\n".join(map(json.dumps, actions)))
    assert Files(tmp_path, "delta").partition(tmp_path / "a=x%20y/f.parquet") == ("x y",)


def an_input(name, accessed, **facets):
    """Make an event of one application with one input."""
    dataset = {"namespace": "file", "name": name}
    entry = {"dataset": dataset, "side": "read", "witness": "both", "accessed": accessed}
    capture = {"degradations": [], "datasets": [entry]}
    return {
        "run": {"facets": {"sparkLineage_capture": capture}},
        "inputs": [{**dataset, "inputFacets": facets}],
        "outputs": [],
    }


def test_partitions_are_read_off_an_event_as_its_readers_see_them():
    values = [{"dimensions": {"a": "x", "b": "__HIVE_DEFAULT_PARTITION__"}}]
    subset = {"inputCondition": {"type": "partition", "partitions": values}}
    reported = Reported(an_input("/lake/q01/orders", "part", subset=subset))
    assert reported.inputs == {("q01", "orders"): Accessed("part", {("x", None)})}


def test_a_condition_on_rows_is_read_as_sql():
    name = {"left": {"field": "n"}, "right": {"value": "it's"}, "comparison": "EQUAL"}
    year = {"left": {"field": "y"}, "right": {"value": "1"}, "comparison": "LESS_THAN"}
    both = {"left": name | {"type": "compare"}, "right": year | {"type": "compare"}}
    subset = {"inputCondition": both | {"type": "binary", "operator": "OR"}}
    reported = Reported(an_input("/lake/q01/orders", "part", subset=subset))
    assert reported.inputs["q01", "orders"].rows == "(n = 'it''s' OR y < '1')"


A, B = ("a",), (None,)


@pytest.mark.parametrize(
    ("accessed", "partitions", "true", "problem"),
    [
        (Accessed("part", {A}), {A}, {A}, None),
        (Accessed("part", {A}), {A}, None, None),
        (Accessed("unknown"), None, {A}, "reported is unknown, and true is ['a']"),
        (Accessed("part", {A, B}), {A, B}, {A}, "too many [null], missing []"),
        (Accessed("part", {A}), {A}, {A, B}, "too many [], missing [null]"),
        (Accessed("all"), {A, B}, {A}, "all of it is reported, too many [null], missing []"),
    ],
)
def test_what_is_reported_and_not_true_is_found(accessed, partitions, true, problem):
    assert verdict._compared(accessed, partitions, true) == problem


@pytest.mark.parametrize(
    ("partitions", "problem"),
    [
        ({A}, None),
        ({A, B}, "what cannot matter: [null]"),
        (set(), "not what matters: ['a']"),
    ],
)
def test_partitions_are_those_that_matter(partitions, problem):
    assert verdict._bounds(partitions, may={A}, must={A}) == problem


def test_each_job_runs_under_a_name_of_its_own(monkeypatch):
    """Of two with the same name, one would never run."""

    class OneDay(Job):
        """A job of another module that has the name of a job."""

    one = jobs.load(["oneday"])["oneday"]
    monkeypatch.setattr(OneDay, "__module__", f"{jobs.__name__}.other")
    monkeypatch.setattr(jobs, "_all", lambda _: [type(one), OneDay])
    with pytest.raises(ValueError, match="have a job oneday"):
        jobs.load()


class Kept(Job):
    reads = {"events": ["1"]}  # noqa: RUF012
    writes = {"out": ["1"]}  # noqa: RUF012
    columns = {"out": {"a": {"events.a"}}}  # noqa: RUF012
    declared = {"column_without_sources out a": "nobody knows"}  # noqa: RUF012


def judged(**parts):
    """Judge an event that is right of ``Kept`` but for these parts; give its outcomes."""
    right = {
        "inputs": {"events": Accessed("part", {("1",)})},
        "outputs": {"out": Accessed("part", {("1",)})},
        "columns": {"out": {"a": frozenset({("events", "a")})}},
        "degradations": ["column_without_sources out a"],
    }
    found = running_jobs.JobsVerdict("parquet")
    running_jobs._Judge(found, "kept", Kept(), running_jobs._Report(**right | parts)).judge()
    del found.checks["right"]
    return dict(found.checks)


def test_of_a_job_all_is_right():
    assert judged() == {}


@pytest.mark.parametrize(
    ("parts", "outcomes"),
    [
        ({"inputs": {}}, {"silent": 1}),
        ({"inputs": {"events": Accessed("unknown")}}, {"silent": 1}),
        ({"inputs": {"events": Accessed("all")}}, {"false": 1}),
        ({"inputs": {"events": Accessed("part", set())}}, {"silent": 1}),
        ({"inputs": {"events": Accessed("part", {("1",), ("2",)})}}, {"false": 1}),
        ({"outputs": {"out": Accessed("part", {("2",)})}}, {"false": 1}),
        ({"columns": {"out": {"a": frozenset()}}}, {"declared": 1}),
        ({"columns": {"out": {"a": frozenset({("events", "b")})}}}, {"false": 1}),
        ({"degradations": []}, {"false": 1}),
        ({"degradations": ["partitions_unknown out", *Kept.declared]}, {"false": 1}),
    ],
)
def test_of_a_job_what_is_wrong_is_found(parts, outcomes):
    assert judged(**parts) == outcomes


def test_a_job_that_this_spark_cannot_run_is_named_with_the_reason():
    found = running_jobs.JobsVerdict("delta", left_out={"converted": "Delta does not fit"})
    assert str(found).endswith("\n  left out (Delta does not fit): converted")
    assert found.as_dict()["left_out"] == {"converted": "Delta does not fit"}


def test_an_output_of_no_truth_is_false():
    out = Accessed("part", {("1",)})
    assert judged(outputs={"out": out, "out/part-0.parquet": out}) == {"false": 1}


def test_a_dataset_is_of_the_job_whose_folder_it_is_in():
    lake = Path("/t/lake")
    assert running_jobs._place("/t/lake/kept/out/x", lake, ["kept"]) == ("kept", "out/x")
    assert running_jobs._place("/t/lake/iceberg/kept/out", lake, ["kept"]) == ("kept", "out")
    assert running_jobs._place("/t/lake/kept2/out", lake, ["kept"])[0] == ""
