"""Tables that the listener names where metadata, a branch or files to rewrite were accessed."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.lineage.application.accumulation import SparkApplication
from airflow_provider_sparklineage.lineage.columns.edges import Column
from airflow_provider_sparklineage.lineage.merge import merge
from airflow_provider_sparklineage.lineage.observed.binding import Observed
from airflow_provider_sparklineage.lineage.observed.corrections import corrected
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.terms import Outcome
from tests.unit.lineage.test_observed_actions import (
    command,
    commit,
    commits,
    decoded,
    put,
    query,
    raw,
    reported,
    scan,
)

ABOUT = scan("file:/lake/t", not_data=True, layouts=None)
BRANCH = "file:/lake/t.branch_b"


def read_of_branch(path=BRANCH):
    return scan(path, branch="b", table="cat.db.t.branch_b")


def write_of_branch(path=BRANCH):
    layout = {"base": path, "dimensions": [], "partitions": [[]]}
    return put(path, "append", branch="b", table="cat.db.t.branch_b", layouts=[layout])


def lineage(actions, records):
    application = SparkApplication("run", "ns", "app", tuple(actions))
    seen = corrected(Observed.of(application, decoded(records)))
    return merge(seen.application, Outcome.COMPLETE, observations=seen.observations())


def names(datasets):
    return {d.name.name.removeprefix("/lake/") for d in datasets}


@pytest.mark.parametrize(
    ("records", "inputs"),
    [
        pytest.param([query(1, 2, ABOUT)], set(), id="of metadata"),
        pytest.param([query(1, 2, ABOUT, "t")], {"t"}, id="of metadata and data"),
        pytest.param([query(1, 2, read_of_branch())], {"t.branch_b"}, id="of a branch"),
        pytest.param(
            [query(1, 2, read_of_branch(), "t")], {"t", "t.branch_b"}, id="of branch and table"
        ),
        pytest.param([query(5, 6, ABOUT)], {"t"}, id="of metadata, at another time"),
        pytest.param(
            [query(1, 2, maintenance=[{"path": "file:/lake/t", "operation": "OPTIMIZE"}])],
            set(),
            id="of files that are rewritten",
        ),
    ],
)
def test_an_input_is_of_what_was_read(records, inputs):
    assert names(lineage([reported(1, 2, ["t"])], records).inputs) == inputs


def test_a_read_of_changes_is_one_of_the_table():
    changes = scan("file:/lake/t", scan="SparkChangelogScan", chosen=True)
    found = lineage([reported(1, 2, ["t/changes"], ["out"])], [query(1, 2, changes)])
    assert names(found.inputs) == {"t"}


def test_a_write_to_a_branch_is_none_to_the_table():
    written = query(1, 2, writes=[write_of_branch()])
    found = lineage([reported(1, 2, outputs=["t"])], [written])
    assert names(found.outputs) == {"t.branch_b"}


def test_the_table_is_an_output_if_it_was_written_too():
    records = [query(1, 2, writes=[write_of_branch()]), query(1, 2, writes=["t"])]
    found = lineage([reported(1, 2, outputs=["t"])], records)
    assert names(found.outputs) == {"t", "t.branch_b"}


def test_a_branch_has_no_symlink_of_its_table():
    links = {"symlinks": raw(identifiers=[{"namespace": "n", "name": "db.t", "type": "TABLE"}])}
    written = query(1, 2, writes=[write_of_branch()])
    found = lineage([reported(1, 2, outputs=["t"], facets=links)], [written])
    assert [d.symlinks for d in found.outputs] == [frozenset()]


def test_files_that_are_rewritten_are_maintenance_and_no_write():
    step = query(
        1,
        2,
        maintenance=[{"path": "file:/lake/t", "table": None, "operation": "rewrite_data_files"}],
    )
    found = lineage([reported(1, 2, ["t"], ["t"])], [step])
    assert (found.inputs, found.outputs) == ((), ())
    assert found.maintenance == ((DatasetName("file", "/lake/t"), "rewrite_data_files"),)
    assert "nothing_written" not in {d.code for d in found.degradations}


def test_a_clone_reads_its_source():
    copied = commit("copy", 1, "create")
    found = lineage([], [commits(copied) | {"reads": [scan("file:/lake/t")]}])
    assert (names(found.inputs), names(found.outputs)) == ({"t"}, {"copy"})


def test_the_plan_of_a_write_to_a_branch_belongs_to_the_branch():
    written = query(1, 2, writes=[write_of_branch()], command=command("t.branch_b", "AppendData"))
    found = lineage([reported(1, 2, outputs=["t"])], [written])
    assert names(found.outputs) == {"t.branch_b"}


def test_a_clone_has_the_columns_of_its_source():
    copied = commit("copy", 1, "create")
    columns = {"fields": [{"name": "id", "type": "long"}]}
    source = scan("file:/lake/t", copied=True, schema=columns)
    [output] = lineage([], [commits(copied) | {"reads": [source]}]).outputs
    assert output.column_names == ("id",)
    assert set(output.columns.fields["id"]) == {Column(DatasetName("file", "/lake/t"), "id")}


def test_a_move_to_another_version_lacks_no_columns():
    moved = commit("t", 1, "rows", operation="RESTORE")
    found = lineage([], [commits(moved)])
    assert names(found.outputs) == {"t"}
    assert found.degradations == ()


def test_a_read_for_a_command_of_maintenance_is_a_step_of_it():
    step = query(1.1, 1.2, scan("file:/lake/t", index="TahoeBatchFileIndex"))
    done = query(1, 2, maintenance=[{"path": "file:/lake/t", "operation": "CONVERT TO DELTA"}])
    assert names(lineage([], [step, done]).inputs) == set()
    assert names(lineage([], [query(1.1, 1.2, "t"), done]).inputs) == {"t"}


def test_an_action_that_is_reported_by_its_end_alone_wrote_the_branch():
    branch = write_of_branch() | {"time": 1500}
    written = query(1, 2, writes=[branch], function="append")
    assert names(lineage([reported(2, 2, outputs=["t"])], [written]).outputs) == {"t.branch_b"}
