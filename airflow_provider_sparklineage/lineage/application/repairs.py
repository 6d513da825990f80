"""Repair the listener's mistakes in names and actions, before anything else uses them.

Names of datasets (:func:`with_canonical_names`):

- The listener trims the folders of a path that it takes for partitions. A rule with a layout can
  recognise more partition folders: ``/lake/clicks/2024-05-06/10`` is hour 10 of ``/lake/clicks``.
  Then the dataset is renamed among inputs, among outputs and in column lineage, and its former name
  is kept as a location.
- A table of a database has one name, even if actions read it by URLs with different settings.
- Column lineage can name a single file where the inputs name its folder (:func:`input_names`).
- A file that a batch of a stream reads is one of those that were new. The dataset is the file's
  folder, of which the stream reads an unknown part. So is the folder of a wildcard of files, which
  the listener reports as it is for RDD code.
- A model of Spark's ML library is one dataset (:func:`saved_models`).
- An RDD that is made of values in the job has no input.

Actions (:func:`repaired`):

- RDD runs without an end and without outputs are dropped. They are schema inference and file
  listing, and name one arbitrary partition as if it were read. A run of Python code over files,
  such as ``foreach`` starts, is not dropped: it counts as complete, because the listener reports no
  end of such a run.
- Completed RDD runs without outputs that read no more than SQL runs did are not actions either.
- The log of a Delta table is not a dataset, and an execution that only accesses the log is not an
  action; a stream that reads the table has the log among its inputs and outputs.
- A CREATE TABLE AS SELECT, ``saveAsTable`` or INSERT OVERWRITE DIRECTORY is reported as two
  executions of one write, an outer and an inner one. The two become one action, with the lineage,
  lifecycle and statistics of the inner execution and the identity of the outer execution.
- Inside of a write of Delta, the listener reports the reads of the query as a separate execution,
  often only by the end of that execution, at a time before the query begins or after it ends. If a
  table is copied as it is, that execution even has the copied table as an output. The execution is
  not an action, and writes nothing. A batch of a stream into a Delta table has the same name, and
  its output is another table than its input, or the listener reports it as a batch of a stream.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import filterfalse
from typing import TYPE_CHECKING

from msgspec.structs import replace

from airflow_provider_sparklineage.lineage.application.accesses import united_locations
from airflow_provider_sparklineage.lineage.application.accumulation import ActionState
from airflow_provider_sparklineage.model.datasets import DatasetName, is_files, looks_like_file
from airflow_provider_sparklineage.model.globs import is_glob
from airflow_provider_sparklineage.model.locations import DEFAULT_LOCATOR

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from airflow_provider_sparklineage.lineage.application.accesses import ActionDataset
    from airflow_provider_sparklineage.lineage.application.accumulation import (
        Action,
        SparkApplication,
    )
    from airflow_provider_sparklineage.model.locations import Locator


# --- names ----------------------------------------------------------------------------------------


# With Spark 3.5 the listener names this as the input of an RDD that is made of values in the job.
_ROOT = DatasetName("file", "/")


def with_canonical_names(application: SparkApplication, locator: Locator) -> SparkApplication:
    """Rename the datasets of an application; return the same application if no name changes.

    :param locator: gives the canonical name of a dataset
    """
    names = {d.name for a in application.actions for d in (*a.inputs, *a.outputs)}
    renamed = {name: locator.renamed(name) for name in names}
    of_all = {name: known for name, known in renamed.items() if known != name}
    actions = []
    for action in application.actions:
        if action.job_type == "RDD_JOB" and any(d.name == _ROOT for d in action.inputs):
            inputs = tuple(d for d in action.inputs if d.name != _ROOT)
            action = replace(action, inputs=inputs)
        folders = dict(_folders_of_files(action, locator))
        if moved := {**of_all, **folders}:
            action = replace(
                action,
                inputs=_renamed_datasets(action.inputs, moved, locator, folders),
                outputs=_renamed_datasets(action.outputs, of_all, locator),
                moved={**action.moved, **moved},
            )
        actions.append(action)
    return replace(application, actions=tuple(actions))


def _folders_of_files(
    action: Action, locator: Locator
) -> Iterator[tuple[DatasetName, DatasetName]]:
    """Give (input, its folder) for each input of an action that is a part of a dataset.

    These are the new files that a batch of a stream reads, and wildcards.
    """
    for name in (d.name for d in action.inputs if is_files(d.name)):
        folder, _, last = name.name.rpartition("/")
        is_wildcard = action.job_type == "RDD_JOB" and is_glob(last)
        if folder and (is_wildcard or (action.is_stream and looks_like_file(last))):
            yield name, locator.locate_name(name._replace(name=folder)).dataset


def _renamed_datasets(
    datasets: Iterable[ActionDataset],
    moved: Mapping[DatasetName, DatasetName],
    locator: Locator,
    of_parts: Container[DatasetName] = (),
) -> tuple[ActionDataset, ...]:
    """Rename datasets, and join the datasets that have the same name after that.

    :param moved: old name -> new name; every other name stays
    :param of_parts: old names that are those of an unknown part of the dataset
    """
    found: dict[DatasetName, ActionDataset] = {}
    for dataset in datasets:
        name = moved.get(dataset.name, dataset.name)
        if name != dataset.name:
            dataset = _renamed_dataset(dataset, name, locator, dataset.name in of_parts)
        known = found.get(name)
        if known is not None:
            dataset = replace(
                known,
                facets={**known.facets, **dataset.facets},
                side_facets={**known.side_facets, **dataset.side_facets},
                locations=united_locations(known.locations, dataset.locations),
                left_out=known.left_out | dataset.left_out,
            )
        found[name] = dataset
    return tuple(found[name] for name in sorted(found))


def _renamed_dataset(
    dataset: ActionDataset, name: DatasetName, locator: Locator, is_part: bool
) -> ActionDataset:
    """Rename one dataset; leave out the facets that are not those of the dataset of the new name.

    :param is_part: whether the old name is that of an unknown part of the dataset
    """
    facets, sides, locations = dataset.facets, dataset.side_facets, dataset.locations
    is_stage = locator.model_around(dataset.name) is not None
    if is_stage:
        facets = {k: v for k, v in facets.items() if k not in ("schema", "columnLineage")}
    if is_stage or is_part:
        sides = {k: v for k, v in sides.items() if k != "inputStatistics"}
    if not is_part and is_files(name):
        location = locator.locate_name(dataset.name)
        locations = locations or (frozenset({location.folder.name}) if location.below else None)
    return replace(
        dataset,
        name=name,
        facets=facets,
        side_facets=sides,
        locations=locations,
        is_model=is_stage,
    )


# The folders of models in that of a pipeline, a CrossValidatorModel or a OneVsRestModel. The folder
# of a stage has its uid in its name, which a job may choose.
_INNER_MODEL = re.compile(
    r"/(?:stages/\d+_[^/]+|bestModel|estimator|evaluator|classifier|model_\d+)\Z"
)


def saved_models(application: SparkApplication) -> frozenset[DatasetName]:
    """Find the folders of models that Spark's ML library saved or loaded.

    Such a folder has the folder ``metadata``, a text of one row, and mostly ``data`` or other
    models, such as the stages of a pipeline, next to it. To save a model, Spark 4 makes a frame of
    that row, whose column is ``_1``, and Spark 3 an RDD, of which no columns are known. Another
    text is taken for a model's only if the application accessed one of these, too.

    :param application: the application, with the listener's names
    """
    texts: dict[DatasetName, set[tuple[str, ...]]] = defaultdict(set)
    with_data: set[DatasetName] = set()
    for action in application.actions:
        for dataset in (*action.inputs, *action.outputs):
            folder, _, last = dataset.name.name.rpartition("/")
            model = dataset.name._replace(name=folder)
            if last == "metadata" and is_files(model) and folder:
                texts[model].add(dataset.column_names)
            elif last == "data":
                with_data.add(model)
            if (pipeline := DEFAULT_LOCATOR.model_around(dataset.name)) is not None:
                with_data.add(pipeline)
    for model in texts:
        if inner := _INNER_MODEL.search(model.name):
            with_data.add(model._replace(name=model.name[: inner.start()]))
    return frozenset(
        model
        for model, columns in texts.items()
        if ("_1",) in columns or (model in with_data and columns <= {("_1",), ("value",), ()})
    )


def input_names(action: Action) -> Callable[[DatasetName], DatasetName]:
    """Give a function from a name in column lineage to the input that the name stands for.

    The name of a single file that is not an input stands for the deepest input folder above it;
    every other name stands for itself.

    :param action: the action that has the inputs, and an output with the column lineage
    """
    names = {d.name for d in action.inputs}

    def input_name(reported: DatasetName) -> DatasetName:
        name = action.moved.get(reported, reported)
        if name in names or not looks_like_file(name.name):
            return name
        above = [
            n
            for n in names
            if n.namespace == name.namespace and name.name.startswith(n.name.rstrip("/") + "/")
        ]
        return max(above, key=lambda n: len(n.name), default=name)

    return input_name


# --- actions --------------------------------------------------------------------------------------


def repaired(application: SparkApplication) -> SparkApplication:
    """Repair the actions of an application.

    File listings and accesses to Delta's logs are left out, and several executions of one write
    become one action.
    """
    actions = _without_listings(_without_delta_logs(application.actions))
    actions = _join_nested_writes(_join_inner_reads(actions))
    return replace(application, actions=tuple(actions))


def _without_delta_logs(actions: Sequence[Action]) -> list[Action]:
    """Leave out the logs of Delta tables, and actions that accessed only such logs."""
    found = []
    for action in actions:
        if not any(map(_is_delta_log, (*action.inputs, *action.outputs))):
            found.append(action)
            continue
        sides = (action.inputs, action.outputs)
        inputs, outputs = (tuple(filterfalse(_is_delta_log, side)) for side in sides)
        if inputs or outputs:
            found.append(replace(action, inputs=inputs, outputs=outputs))
    return found


def _is_delta_log(dataset: ActionDataset) -> bool:
    return "_delta_log" in dataset.name.name.split("/")  # a log of one file has the file's name


def _without_listings(actions: Sequence[Action]) -> list[Action]:
    """Leave out RDD runs that only list files or infer a schema."""
    read_by_sql: dict[DatasetName, set[frozenset[str] | None]] = defaultdict(set)
    for action in actions:
        if action.job_type != "RDD_JOB":
            for dataset in action.inputs:
                read_by_sql[dataset.name].add(dataset.locations)

    def is_covered(dataset: ActionDataset) -> bool:
        """Whether an SQL run read the same dataset, and at least the same locations."""
        ours, by = dataset.locations, read_by_sql.get(dataset.name, set())
        return None in by or (
            ours is not None and (ours in by or any(ours <= theirs for theirs in by if theirs))
        )

    def is_listing(action: Action) -> bool:
        if action.job_type != "RDD_JOB" or action.outputs or _runs_python(action):
            return False
        return action.ended is None or all(map(is_covered, action.inputs))

    return [_completed_python(action) for action in actions if not is_listing(action)]


_PYTHON_OVER_FILES = re.compile(r"[._]python_\w*file_scan")


def _runs_python(action: Action) -> bool:
    """Whether an RDD run without outputs is Python code over the files of its inputs."""
    is_rdd = action.job_type == "RDD_JOB" and not action.outputs
    return is_rdd and _PYTHON_OVER_FILES.search(action.job_name) is not None


def _completed_python(action: Action) -> Action:
    if action.ended is not None or not _runs_python(action):
        return action
    return replace(action, ended=action.started, state=ActionState.COMPLETE)


# Executions that run inside of a write of Delta, as the listener names them.
_SCAN = re.compile(r"[._](columnar_to_row|scan_\w+)(?=[._]|$)")
_V1_WRITE = re.compile(r"[._](append_data|overwrite_by_expression)_exec_v1(?=[._]|$)")


def _join_inner_reads(actions: Sequence[Action]) -> list[Action]:
    """Join each write with the reads that are reported inside of it as executions of their own.

    :param actions: the actions, in the order of their start
    """
    actions = list(map(_without_copied_table, actions))
    inner = [a for a in actions if _is_bare(a)]
    started = [action.started for action in inner]
    found: list[Action] = []
    taken: set[str] = set()
    for action in actions:
        outer = action
        if action.outputs or wraps_a_write(action):
            for bare in _within(action, inner, started):
                if bare.run_id not in taken and _reads_for(bare, outer):
                    taken.add(bare.run_id)
                    outer = replace(outer, inputs=_united_inputs(outer, bare))
        found.append(outer)
    return [action for action in found if action.run_id not in taken]


def _without_copied_table(action: Action) -> Action:
    """Leave out the false output of a scan: the table that it reads.

    A stream can write the table that it reads.
    """
    if action.is_stream or not action.outputs or not _SCAN.search(action.job_name):
        return action
    read = {dataset.name for dataset in action.inputs}
    return replace(action, outputs=tuple(d for d in action.outputs if d.name not in read))


def _within(
    outer: Action, actions: Sequence[Action], started: Sequence[datetime]
) -> Iterator[Action]:
    """Give the actions that began and ended within the time of the action ``outer``.

    :param started: the times at which the actions started, in ascending order
    """
    if outer.ended is None:
        return iter(actions[bisect_left(started, outer.started) :])
    begun = actions[bisect_left(started, outer.started) : bisect_right(started, outer.ended)]
    return (a for a in begun if a.ended is not None and a.ended <= outer.ended)


def _is_bare(action: Action) -> bool:
    name = action.job_name
    return not action.outputs and bool(_SCAN.search(name) or _V1_WRITE.search(name))


def _reads_for(inner: Action, outer: Action) -> bool:
    """Whether ``inner``, an action within the time of the write ``outer``, reads for that write.

    One of the two can have more inputs than the other: inputs that only a subquery reads.
    """
    ours, theirs = ({d.name for d in action.inputs} for action in (inner, outer))
    return ours <= theirs or ours >= theirs


def _united_inputs(outer: Action, inner: Action) -> tuple[ActionDataset, ...]:
    inputs = {d.name: d for d in (*outer.inputs, *inner.inputs)}
    return tuple(inputs[name] for name in sorted(inputs))


# Nodes that run a second SQL execution for the write itself (Spark's class names, snake-cased).
_V1_WRAPPERS = re.compile(
    r"[._]execute_(create_\w*table_as_select|save_as_v1_table|optimized_create_hive_table"
    r"|insert_into_data_source_dir)\w*"
)
_V2_TABLE_AS_SELECT = re.compile(r"[._](atomic_)?(create|replace)_table_as_select(?=[._]|$)")


def _join_nested_writes(actions: Sequence[Action]) -> list[Action]:
    """Make one action of the two executions, outer and inner, of a CTAS, ``saveAsTable`` and so on.

    :param actions: the actions, in the order of their start
    """
    joined: list[Action] = []
    taken: set[str] = set()
    started = [action.started for action in actions]
    for outer in actions:
        if outer.run_id in taken:
            continue
        inner = None
        if wraps_a_write(outer):
            within = _within(outer, actions, started)
            others = [a for a in within if a.run_id not in taken and _is_inner_write(a, outer)]
            # An outer execution without outputs (Spark 4.1 has one around saveAsTable) could be
            # joined with the write of another thread, so there must be only one candidate.
            if outer.outputs or len(others) == 1:
                inner = next(iter(others), None)
        if inner is None:
            joined.append(outer)
        else:
            taken.add(inner.run_id)
            joined.append(_joined_write(outer, inner))
    return [a for a in joined if a.run_id not in taken]


def _is_inner_write(inner: Action, outer: Action) -> bool:
    """Whether ``inner``, an action within the time of ``outer``, is its inner write."""
    if inner.run_id == outer.run_id or inner.witness is not outer.witness:
        return False
    outputs = {d.name for d in inner.outputs}
    if outer.outputs:
        return outputs == {d.name for d in outer.outputs}
    return bool(outputs) and {d.name for d in inner.inputs} <= {d.name for d in outer.inputs}


def wraps_a_write(action: Action) -> bool:
    """Whether an action runs a second execution for its write.

    Such actions are CREATE or REPLACE TABLE AS SELECT, saveAsTable and INSERT OVERWRITE DIRECTORY.
    """
    return bool(_V1_WRAPPERS.search(action.job_name) or _V2_TABLE_AS_SELECT.search(action.job_name))


def replaces_v2_table(action: Action) -> bool:
    """Whether an action created or replaced a full table of a DataSource V2 catalog."""
    return bool(_V2_TABLE_AS_SELECT.search(action.job_name))


# CREATE TABLE, ALTER TABLE, MSCK REPAIR: commands that write no data. A rename is not one of them,
# because it moves the data of a table that Spark manages.
_DEFINITION = re.compile(
    r"(execute_)?(create_(data_source_)?table(_like)?|alter_table(?!_rename)\w*|repair_table)"
    r"(_command)?"
)


def only_defines(action: Action) -> bool:
    """Whether an action defined a table or its partitions, and put no data there."""
    return not action.inputs and bool(_DEFINITION.fullmatch(action.label))


MOVES = frozenset(
    {
        "restore",
        "rollback_to_snapshot",
        "rollback_to_timestamp",
        "set_current_snapshot",
        "cherrypick_snapshot",
        "publish_changes",
        "rename_partition",
    }
)
"""Commands that move a table to another version, or rows to another partition: they write rows that
were there before, and no columns."""


def moves_table(action: Action) -> bool:
    """Whether an action moved a table or a partition: its rows were there before."""
    return action.label in MOVES


def _joined_write(outer: Action, inner: Action) -> Action:
    of_outer = {d.name: d for d in outer.outputs}
    outputs = []
    for dataset in inner.outputs:
        wrapper = of_outer.get(dataset.name)
        if wrapper is None:
            outputs.append(dataset)
            continue
        around = dict(wrapper.facets)
        if not replaces_v2_table(outer):
            # The outer execution reports CREATE also of an append: the inner one's lifecycle holds.
            around.pop("lifecycleStateChange", None)
        facets = {**around, **dataset.facets}
        if "symlinks" in around:
            facets["symlinks"] = around["symlinks"]
        sides = {**wrapper.side_facets, **dataset.side_facets}
        outputs.append(replace(dataset, facets=facets, side_facets=sides))
    failed = ActionState.FAILED in (outer.state, inner.state)
    return replace(
        outer,
        state=ActionState.FAILED if failed else outer.state,
        inputs=_united_inputs(outer, inner),
        outputs=tuple(outputs),
        sql=outer.sql or inner.sql,
        properties=inner.properties,
        error=outer.error or inner.error,
    )
