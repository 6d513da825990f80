"""What the listener reports wrongly of a table made by a query, on actions made by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import Raw, json
from msgspec.structs import replace

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import Access, ActionDataset, Scope
from airflow_provider_sparklineage.lineage.application.accumulation import (
    Action,
    ActionState,
    SparkApplication,
)
from airflow_provider_sparklineage.lineage.application.repairs import (
    input_names,
    repaired,
    saved_models,
    with_canonical_names,
)
from airflow_provider_sparklineage.lineage.merge import Outcome, merge
from airflow_provider_sparklineage.lineage.observed.accesses import Observations
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR
from airflow_provider_sparklineage.model.partitioning import Dimension, Partition

START = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS, OTHER, TABLE = (DatasetName("file", name) for name in ("/orders", "/other", "/table"))


def at(seconds):
    return START + timedelta(seconds=seconds)


def action(name, started, ended, read=ORDERS, written=None):
    inputs = (ActionDataset(read, {}, {}),)
    outputs = (ActionDataset(written, {}, {}),) if written else ()
    times = at(started), at(ended)
    return Action(name, f"app.{name}.t", "SQL_JOB", *times, ActionState.COMPLETE, inputs, outputs)


# As it was with Delta 4.0.0 and its extension on Spark 4.0: of the inner execution of `saveAsTable`
# in overwrite mode there is no START, and its COMPLETE comes a tenth of a second before its query
# begins; of the one that reads a table to be copied, COMPLETE comes when the query is over.
OUTER = action("atomic_replace_table_as_select", 0, 9, written=TABLE)
END = action("overwrite_by_expression_exec_v1", 3, 3)
SAVE = action("execute_save_into_data_source_command", 0, 9, written=TABLE)
SCAN = action("columnar_to_row", 8.1, 8.1, written=ORDERS)


def application(*actions):
    return SparkApplication("run", "ns", "app", actions)


@pytest.mark.parametrize("actions", [(OUTER, END), (SAVE, SCAN)], ids=["too early", "too late"])
def test_what_a_write_of_delta_reads_is_known_whenever_its_inner_execution_is_reported(actions):
    partitions = frozenset({Partition.from_values([("dt", "1")])})
    dimensions = (Dimension.of_column("dt"),)
    read = Access(
        ORDERS, Side.READ, at(3.1), at(8), Scope(partitions=partitions), dimensions=dimensions
    )
    lineage = merge(
        application(*actions),
        Outcome.COMPLETE,
        observations=Observations({ORDERS: (read,)}),
    )
    [orders] = lineage.inputs
    assert [d.name for d in lineage.outputs] == [TABLE]
    assert orders.subset is not None
    assert orders.subset.partitions == partitions


def test_a_table_that_is_read_as_it_is_is_not_written():
    [alone] = repaired(application(SCAN)).actions
    assert (alone.inputs, alone.outputs) == (SCAN.inputs, ())


@pytest.mark.parametrize("name", ["columnar_to_row", "scan_parquet", "scan_csv"])
def test_a_scan_has_no_output_that_it_only_reads(name):
    [alone] = repaired(application(action(name, 8, 9, written=ORDERS))).actions
    assert (alone.inputs, alone.outputs) == (SCAN.inputs, ())


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(action("columnar_to_row", 8, 9, written=TABLE), id="another table"),
        pytest.param(
            replace(action("columnar_to_row", 8, 9, written=ORDERS), is_stream=True),
            id="the table that it reads",
        ),
    ],
)
def test_a_batch_of_a_stream_into_a_table_of_delta_is_a_write(batch):
    assert repaired(application(batch)).actions == (batch,)


def test_what_only_the_end_of_the_write_names_is_read_by_it():
    end = replace(END, inputs=(*END.inputs, ActionDataset(OTHER, {}, {})))
    [joined] = repaired(application(OUTER, end)).actions
    assert joined == replace(OUTER, inputs=joined.inputs)
    assert [d.name for d in joined.inputs] == [ORDERS, OTHER]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(action("overwrite_by_expression_exec_v1", 3, 3, OTHER), id="other data"),
        pytest.param(action("columnar_to_row", 10, 10), id="after the write"),
        pytest.param(action("columnar_to_row", 3, 10), id="longer than the write"),
        pytest.param(action("collect_limit", 3, 3), id="another node"),
    ],
)
def test_an_action_that_is_not_of_the_write_stays(other):
    assert repaired(application(OUTER, other)).actions == (OUTER, other)


def test_an_insert_into_a_directory_is_the_one_write_inside_of_it():
    """Or the outer execution, of which no columns are reported, would replace what was written."""
    around = action("execute_insert_into_data_source_dir_command", 0, 4, written=TABLE)
    inner = action("execute_insert_into_hadoop_fs_relation_command", 1, 3, written=TABLE)
    facets = {"columnLineage": b"{}"}
    [dataset] = inner.outputs
    inner = replace(inner, outputs=(replace(dataset, facets=facets),))
    [found] = repaired(SparkApplication("run", "ns", "app", (around, inner))).actions
    [output] = found.outputs
    assert output.facets == facets


# --- names ----------------------------------------------------------------------------------------


def lake(*names, columns=(), **more):
    schema = Raw(json.encode({"fields": [{"name": name} for name in columns]}))
    facets = {"schema": schema} if columns else {}
    named = (DatasetName("file", f"/lake/{name}") for name in names)
    return tuple(ActionDataset(name, facets, {}, **more) for name in named)


def batch(inputs, *, is_stream=True):
    read = action("columnar_to_row", 0, 1, written=TABLE)
    return replace(read, inputs=inputs, is_stream=is_stream)


def named(*actions, locator=DEFAULT_LOCATOR):
    found = application(*actions)
    locator = replace(locator, models=saved_models(found))
    return with_canonical_names(found, locator).actions


def short(datasets):
    return [dataset.name.name.removeprefix("/lake/") for dataset in datasets]


def test_new_files_of_a_stream_are_a_part_of_the_folder_that_it_reads():
    sizes = {"inputStatistics": Raw(b'{"size": 5, "fileCount": 1}')}
    files = lake("days/part-1.json", "days/part-2.json", "users")
    files = tuple(replace(file, side_facets=sizes) for file in files)
    [done] = named(batch(files))
    assert short(done.inputs) == ["days", "users"]
    assert [d.locations for d in done.inputs] == [None, None]
    assert [d.size_found for d in done.inputs] == [None, 5]  # a file has not the folder's size
    assert input_names(done)(files[0].name) == done.inputs[0].name


def test_a_file_that_the_user_named_stays_a_dataset():
    alone = batch(lake("days/part-1.json"), is_stream=False)
    assert named(alone) == (alone,)


def test_a_wildcard_of_files_is_a_part_of_their_folder():
    read = replace(batch(lake("days/*.txt"), is_stream=False), job_type="RDD_JOB")
    assert short(named(read)[0].inputs) == ["days"]


SAVED = "models/churn"
PIPELINE = (f"{SAVED}/metadata", f"{SAVED}/stages/0_StringIndexer_b659f843265e/metadata")
STAGE_DATA = f"{SAVED}/stages/0_StringIndexer_b659f843265e/data"


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        pytest.param(lake(*PIPELINE, STAGE_DATA), [SAVED], id="a pipeline, as Spark 3.5 saves it"),
        pytest.param(
            lake(*PIPELINE, columns=["_1"]) + lake(STAGE_DATA, columns=["labels"]),
            [SAVED],
            id="a pipeline",
        ),
        pytest.param(
            lake("m/metadata", columns=["_1"]) + lake("m/data", columns=["coefficients"]),
            ["m"],
            id="a model",
        ),
        pytest.param(lake("m/metadata", columns=["_1"]), ["m"], id="a model without data"),
        pytest.param(
            lake("m/metadata", "m/bestModel/metadata", columns=["_1"])
            + lake("m/bestModel/data", "m/bestModel/stages/1_LR_0123456789ab/data"),
            ["m"],
            id="a model of models",
        ),
        pytest.param(
            lake("m/metadata", columns=["value"]) + lake("m/data", columns=["coefficients"]),
            ["m"],
            id="a model that is loaded",
        ),
        pytest.param(
            lake("m/metadata", "m/stages/0_first/metadata", "m/stages/0_first/data"),
            ["m"],
            id="a pipeline whose stages have names of the job's own",
        ),
        pytest.param(
            lake("m/metadata", "m/stages/0_first/metadata", columns=["value"]),
            ["m"],
            id="the same that is loaded, of a stage without data",
        ),
        pytest.param(
            lake("m/metadata", "m/bestModel/metadata", "m/bestModel/data", "m/evaluator/metadata"),
            ["m"],
            id="a model of models, as Spark 3.5 saves it",
        ),
        pytest.param(
            lake("m/metadata", "m/classifier/metadata", "m/model_0/metadata", "m/model_0/data"),
            ["m"],
            id="a model for each class, as Spark 3.5 saves it",
        ),
        pytest.param(
            lake("m/metadata", "m/old/metadata"),
            ["m/metadata", "m/old/metadata"],
            id="texts, one below the folder of the other",
        ),
        pytest.param(lake("m/metadata", "m/other"), ["m/metadata", "m/other"], id="only a text"),
        pytest.param(
            lake("m/metadata", columns=["a", "b"]) + lake("m/data"),
            ["m/data", "m/metadata"],
            id="a table of that name",
        ),
        pytest.param(lake("m/stages/1_first/data"), ["m/stages/1_first/data"], id="no stage"),
    ],
)
def test_a_saved_model_is_one_dataset(saved, expected):
    [done] = named(replace(OUTER, outputs=saved))
    assert sorted(short(done.outputs)) == expected
    [read] = named(replace(OUTER, inputs=saved, outputs=()))
    assert sorted(short(read.inputs)) == expected


def test_a_model_has_neither_columns_nor_the_size_of_a_part():
    saved = lake(*PIPELINE, columns=["_1"])
    saved = tuple(replace(d, side_facets={"inputStatistics": Raw(b'{"size": 5}')}) for d in saved)
    [[model]] = [done.inputs for done in named(replace(OUTER, inputs=saved))]
    assert (model.facets, model.side_facets, model.locations) == ({}, {}, None)


def test_a_model_in_a_folder_of_a_day_is_a_part_of_the_models():
    [done] = named(replace(OUTER, outputs=lake("m/dt=2024-05-06/metadata", columns=["_1"])))
    [model] = done.outputs
    assert short([model]) == ["m"]
    assert model.locations == {"/lake/m/dt=2024-05-06"}


def test_values_in_the_job_are_no_folder():
    values = (ActionDataset(DatasetName("file", "/"), {}, {}),)
    read = replace(batch(values + lake("days"), is_stream=False), job_type="RDD_JOB")
    assert short(named(read)[0].inputs) == ["days"]
