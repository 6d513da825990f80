"""The example with stock operators, and one environment variable, next to the one with ours.

That one has two backends: what is written for DataHub is what DataHub would show.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from airflow_provider_sparklineage.settings.connection import DATAHUB_TRANSPORT
from tests.adoption.adopting import STOCK_CLASS
from tests.adoption.comparing import without_run
from tests.unit.datahub.sdk import require_sdk

pytestmark = pytest.mark.long

EXAMPLES = Path(__file__).parents[2] / "dags_examples"
OURS, STOCK = "example_report_flight_delays", "example_adopt_operators"
DAY = "2013-01-07"
TASKS = ["prepare_flights", "daily_delays", "weekly_report"]
DESCRIPTION = 300
TIMEOUT_S = 600  # of three Sparks on a machine that has other work


@pytest.fixture(scope="module")
def homes(airflow_home, listener):
    """Run both, each in an Airflow of its own; gives its home."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    homes = {dag_id: airflow_home(dag_id) for dag_id in (OURS, STOCK)}

    def start(dag_id, **more):
        home = homes[dag_id]
        environment = home.environment | {
            "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLES),
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[1]"}),
            "AIRFLOW__SPARKLINEAGE__LISTENER_JAR": str(listener),
            "PATH": path,
        }
        run = json.dumps({"lake": str(home.folder / "lake")})
        command = [sys.executable, "-m", "airflow", "dags", "test", dag_id, DAY, "--conf", run]
        with home.log.open("w") as log:
            return subprocess.Popen(command, env=environment | more, stdout=log, stderr=log)

    running = [
        start(OURS, AIRFLOW__OPENLINEAGE__TRANSPORT=json.dumps(to_datahub_too(homes[OURS]))),
        start(STOCK, AIRFLOW__SPARKLINEAGE__ADOPT="all"),
    ]
    try:
        ended = [process.wait(TIMEOUT_S) for process in running]
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert ended == [0, 0], [home.log.read_text()[-3000:] for home in homes.values()]
    return homes


def to_datahub_too(home):
    file = json.loads(home.environment["AIRFLOW__OPENLINEAGE__TRANSPORT"])
    datahub = {"type": DATAHUB_TRANSPORT, "folder": str(home.folder / "datahub")}
    return {"type": "composite", "transports": {"events": file, "datahub": datahub}}


@pytest.fixture(scope="module")
def events(homes):
    """Give the events of the tasks of each."""
    return {dag_id: of_tasks(home, dag_id) for dag_id, home in homes.items()}


def of_tasks(home, dag_id):
    """Give the events of tasks, by task and type, without what is of a run."""
    doc = ast.get_docstring(ast.parse((EXAMPLES / f"{dag_id}.py").read_text()), clean=False)
    texts = {json.dumps(doc)[1:-1]: "DOC", str(home.folder): "/home", dag_id: "DAG"}
    every = [json.loads(line) for line in without_run(home.events, texts).splitlines()]
    found = {}
    for event in every:
        _, _, task = event["job"]["name"].partition(".")
        if task:
            found[task, event["eventType"]] = event
    return found


@pytest.mark.parametrize("kind", ["START", "COMPLETE"])
@pytest.mark.parametrize("task", TASKS)
def test_the_events_of_a_task_are_the_same(events, task, kind):
    ours, stock = events[OURS][task, kind], events[STOCK][task, kind]
    assert stock["inputs"] or kind == "START"
    assert of_airflow(stock)["task"]["operator_class_path"] == STOCK_CLASS
    for event in (ours, stock):
        # What the two files say of themselves, which is neither of the tasks nor of their jobs.
        del of_airflow(event)["dag"]
        task_facet = of_airflow(event)["task"]
        for name in ("operator_class", "operator_class_path", "operator_provider_version"):
            task_facet.pop(name, None)
        # Of what Spark's listener wrote, which has the names of the home and the DAG.
        event["run"]["facets"].get("sparkLineage_capture", {}).pop("bytes", None)
        # Long texts were truncated when these names were in them.
        for dataset in (*event["inputs"], *event["outputs"]):
            if text := dataset["facets"].get("documentation"):
                text["description"] = text["description"][:DESCRIPTION]
    assert stock == ours


def of_airflow(event):
    """Give the facet of what Airflow knows of the task."""
    return event["run"]["facets"]["airflow"]


# --- DataHub --------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """What DataHub would have of the run.

    :param folder: of files as `datahub ingest` reads them
    :param lake: as the names of datasets begin in DataHub
    :param documents: of all files, in their order
    """

    folder: Path
    lake: str
    documents: list

    def aspects(self, name, urn_part=""):
        """Give aspects of entities with that in their URN; patches as their operations."""
        found = (d for d in self.documents if d["aspectName"] == name)
        return [aspect_of(d) for d in found if urn_part in d["entityUrn"]]

    def table(self, name):
        return f"urn:li:dataset:(urn:li:dataPlatform:file,{self.lake}/{name},PROD)"

    def name_of(self, urn):
        """Give the table of a dataset's URN, and with a dot the column of a field's."""
        dataset = urn.removeprefix("urn:li:schemaField:(")
        name, _, field = dataset.partition(",PROD)")
        column = field.removeprefix(",").removesuffix(")")
        table = name.removeprefix(f"urn:li:dataset:(urn:li:dataPlatform:file,{self.lake}/")
        return f"{table}.{column}" if column else table


def aspect_of(document):
    aspect = document["aspect"]
    if "json" in aspect:
        return aspect["json"]
    patch = json.loads(aspect["value"])
    return patch["patch"] if isinstance(patch, dict) else patch


def added(operation):
    """Give what an operation is on, part by part."""
    parts = operation["path"].split("/")[1:]
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


@pytest.fixture(scope="module")
def shown(homes):
    home = homes[OURS].folder
    files = sorted((home / "datahub").glob("*.json"))
    every = [document for file in files for document in json.loads(file.read_text())]
    return Shown(home / "datahub", f"{home}/lake".removeprefix("/"), every)


def test_datahub_takes_all_that_is_written_for_it(shown):
    require_sdk()
    from datahub.ingestion.api.common import PipelineContext
    from datahub.ingestion.source.file import FileSourceConfig, GenericFileSource

    config = FileSourceConfig(path=str(shown.folder))
    source = GenericFileSource(PipelineContext("test"), config)
    units = list(source.get_workunits_internal())
    assert not source.get_report().failures
    assert len(units) == len(shown.documents)
    assert all(unit.metadata.validate() for unit in units)


def test_in_datahub_visibility_comes_from_the_weather(shown):
    edges = columns_in_datahub(shown)
    of_visibility = {edge for edge in edges if edge[0] == "daily_delays.avg_visibility"}
    assert of_visibility == {("daily_delays.avg_visibility", "weather.visib", "DIRECT:AGGREGATION")}


def test_datahub_has_each_source_of_each_column_that_marquez_has(shown, events):
    wanted = {
        edge
        for (_, kind), event in events[OURS].items()
        if kind == "COMPLETE"
        for edge in columns_in_marquez(event)
    }
    assert columns_in_datahub(shown) == wanted
    assert len(wanted) > 50


def columns_in_datahub(shown):
    """Give column, source and transformation of each edge between two columns."""
    found = set()
    for operations in shown.aspects("upstreamLineage"):
        for operation in operations:
            kind, *rest = added(operation)
            if kind == "fineGrainedLineages":
                transformation, *urns = "/".join(rest).split("/urn:li:schemaField:(")
                column, source = (shown.name_of(urn.removesuffix("/NONE")) for urn in urns)
                found.add((column, source, transformation))
    return found


def columns_in_marquez(event):
    for dataset in event["outputs"]:
        for column, facet in dataset["facets"]["columnLineage"]["fields"].items():
            for source in facet["inputFields"]:
                yield (
                    f"{table_of(dataset)}.{column}",
                    f"{table_of(source)}.{source['field']}",
                    ",".join(sorted(map(kind_of, source["transformations"]))),
                )


def table_of(dataset):
    return dataset["name"].removeprefix("/home/lake/")


def kind_of(transformation):
    masking = ":MASKING" if transformation.get("masking") else ""
    return f"{transformation['type']}:{transformation['subtype']}{masking}"


def test_datahub_has_the_tables_that_each_task_read_and_wrote(shown, events):
    for task in TASKS:
        [sides] = shown.aspects("dataJobInputOutput", f",{task})")
        event = events[OURS][task, "COMPLETE"]
        for key, side in (("inputDatasetEdges", "inputs"), ("outputDatasetEdges", "outputs")):
            tables = sorted(shown.name_of(edge["destinationUrn"]) for edge in sides[key])
            assert tables == sorted(map(table_of, event[side])), (task, side)


def test_datahub_has_the_columns_of_each_table_that_was_written(shown, events):
    partitioned = {}
    for (_, kind), event in events[OURS].items():
        for dataset in event["outputs"] if kind == "COMPLETE" else ():
            table = table_of(dataset)
            schema, *_ = shown.aspects("schemaMetadata", shown.table(table))
            named = {field["fieldPath"].rpartition(".")[2]: field for field in schema["fields"]}
            assert list(named) == [f["name"] for f in dataset["facets"]["schema"]["fields"]]
            keys = {name for name, field in named.items() if field.get("isPartitioningKey")}
            partitioned |= {table: keys} if keys else {}
    # Of the others the job has the partition in the path, and no column of it.
    assert partitioned == {"flights": {"flight_date"}, "weather": {"observed_date"}}


def test_datahub_has_the_day_that_was_written_and_that_it_was_the_expected_one(shown):
    table = shown.table("daily_delays")
    [written] = shown.aspects("operation", table)
    assert written["partitionSpec"] == {"partition": f"flight_date={DAY}", "type": "PARTITION"}
    assert written["numAffectedRows"] > 0
    runs = [run for run in shown.aspects("assertionRunEvent") if run["asserteeUrn"] == table]
    assert {run["result"]["type"] for run in runs} == {"SUCCESS"}


def test_datahub_has_the_outcome_of_each_try_and_what_it_read(shown):
    ended = [run for run in shown.aspects("dataProcessInstanceRunEvent") if "result" in run]
    assert [run["result"]["type"] for run in ended] == ["SUCCESS"] * (len(TASKS) + 1)
    properties = [run["customProperties"] for run in shown.aspects("dataProcessInstanceProperties")]
    [delays] = [p for p in properties if p.get("task_id") == "daily_delays" and "lineage" in p]
    assert delays["lineage"] == "complete"
    assert delays["read weather"] == f"observed_date={DAY}"
