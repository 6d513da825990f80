"""The transport as OpenLineage's client uses it: by its class path, alone and among others."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import (
    DatasetEvent,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
    StaticDataset,
)
from openlineage.client.facet_v2 import schema_dataset
from openlineage.client.serde import Serde
from openlineage.client.uuid import generate_new_uuid

from airflow_provider_sparklineage.datahub import conversion
from airflow_provider_sparklineage.datahub.proposals import Proposal
from airflow_provider_sparklineage.event.openlineage import with_neutral
from airflow_provider_sparklineage.model.exceptions import DeliveryError, SettingsError
from tests.unit.datahub.gms import TOKEN, Scripted, gms

TABLE = "urn:li:dataset:(urn:li:dataPlatform:hive,db.a,PROD)"
PARTS = conversion._PARTS
CLASS_PATH = "airflow_provider_sparklineage.datahub.DataHubTransport"


@pytest.fixture(autouse=True)
def _parts(monkeypatch):
    """Convert to one proposal for each output, whatever else the conversion makes."""

    def outputs(subject):
        for dataset in subject.outputs:
            yield Proposal(dataset.urn, "status", {"removed": False})

    monkeypatch.setattr(conversion, "_PARTS", (outputs,))


def event(*outputs):
    return RunEvent(
        eventTime=datetime.now(UTC).isoformat(),
        run=Run(str(generate_new_uuid())),
        job=Job("default", "dag.task"),
        producer="https://example.com",
        eventType=RunState.COMPLETE,
        outputs=[OutputDataset("hive://host", name) for name in outputs],
    )


def client(transport):
    return OpenLineageClient(config={"transport": transport})


def to(server, **given):
    return {"type": CLASS_PATH, "server": server.url, "token": TOKEN, **given}


def names(server):
    return [proposal["entityUrn"].split(",")[1] for proposal in server.stored]


def test_the_client_sends_by_it():
    with gms() as server:
        client(to(server)).emit(event("db.a", "db.b"))

    assert len(server.stored) == 2


def test_it_is_a_child_of_composite(tmp_path):
    with gms() as server:
        file = {"type": "file", "log_file_path": str(tmp_path / "events")}
        children = {"marquez": file, "datahub": to(server)}
        client({"type": "composite", "transports": children}).emit(event("db.a"))

    assert len(server.stored) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_it_raises_what_was_not_stored():
    with (
        gms(always=Scripted(401)) as server,
        pytest.raises(DeliveryError, match="stored nothing"),
    ):
        client(to(server)).emit(event("db.a"))


def test_its_time_is_the_one_that_is_configured():
    with gms(always=Scripted(503)) as server, pytest.raises(DeliveryError, match="503"):
        client(to(server, timeout=1.5)).emit(event("db.a"))


def test_it_writes_to_a_folder(tmp_path):
    client({"type": CLASS_PATH, "folder": str(tmp_path / "datahub")}).emit(event("db.a"))

    (file,) = (tmp_path / "datahub").iterdir()
    assert [proposal["aspectName"] for proposal in json.loads(file.read_text())] == ["status"]


def test_facets_are_read_as_objects_and_as_json():
    """As Airflow's are, and those of events that were kept."""
    from airflow_provider_sparklineage.datahub.transport import _as_json

    given = event("db.a")
    fields = [schema_dataset.SchemaDatasetFacetFields("a", "array", None, [])]
    given.outputs[0].facets["schema"] = schema_dataset.SchemaDatasetFacet(fields)
    given.job.facets = {"jobType": {"jobType": "TASK", "since": datetime(2024, 5, 6, tzinfo=UTC)}}
    given.run.facets = {"x": {"y": [1, None]}, "deleted": None}
    found, theirs = _as_json(given), Serde.to_dict(given)

    assert found["run"]["facets"] == {"x": {"y": [1, None]}}
    assert found["job"]["facets"]["jobType"]["since"] == "2024-05-06T00:00:00Z"
    assert {key: found[key] for key in found.keys() - {"run", "job"}} == {
        key: theirs.get(key) for key in found.keys() - {"run", "job"}
    }


def test_it_sends_what_no_other_backend_has_had_changed(monkeypatch):
    def names(subject):
        yield Proposal(TABLE, "datasetProperties", {"name": subject.event.outputs[0].name})

    monkeypatch.setattr(conversion, "_PARTS", (names,))
    kept = {
        "run": {"facets": {"sparkLineage_capture": {}}},
        "job": {"facets": {}},
        "inputs": [],
        "outputs": [{"namespace": "hive://host", "name": "as it is"}],
    }
    given = event("as Marquez shows it")
    given.run.facets = with_neutral({"sparkLineage_capture": {"_producer": "p"}}, kept)
    with gms() as server:
        client(to(server)).emit(given)

    assert json.loads(server.stored[0]["aspect"]["value"])["name"] == "as it is"


def test_an_event_of_a_dataset_alone_is_converted_too(tmp_path, monkeypatch):
    monkeypatch.setattr(conversion, "_PARTS", PARTS)
    dataset = StaticDataset("hive://host", "db.a")
    client({"type": CLASS_PATH, "folder": str(tmp_path)}).emit(
        DatasetEvent(eventTime="2024-05-06T00:00:00Z", producer="https://e", dataset=dataset)
    )

    [file] = tmp_path.iterdir()
    assert file.name.startswith("20240506T000000Z-")
    assert isinstance(json.loads(file.read_text()), list)


def test_a_wrong_configuration_is_named():
    with pytest.raises(SettingsError, match="Did you mean server"):
        client({"type": CLASS_PATH, "sever": "http://gms:8080"})


def test_no_token_is_in_its_representations():
    with gms() as server:
        transport = client(to(server)).transport

    assert TOKEN not in f"{transport} {transport!r} {vars(transport)}"


def test_environment_variables_configure_it(monkeypatch):
    with gms() as server:
        for key, value in to(server, platform_instance="eu").items():
            monkeypatch.setenv(f"OPENLINEAGE__TRANSPORT__{key.upper()}", value)
        OpenLineageClient().emit(event("db.a"))

    assert len(server.stored) == 1


_SENDING = f"""
import sys
from openlineage.client import OpenLineageClient
sys.addaudithook(lambda name, args: name == "socket.connect" and asked.append(args[1]))
asked = []
transport = {{"type": {CLASS_PATH!r}, "server": sys.argv[1]}}
client = OpenLineageClient(config={{"transport": transport}})
exec(sys.argv[2])
assert {{tuple(address) for address in asked}} == {{("127.0.0.1", int(sys.argv[3]))}}, asked
wrong = [m for m in sys.modules if m.split(".")[0] in ("datahub", "mixpanel", "sentry_sdk")]
assert not wrong, wrong
"""

_EMIT = """
from openlineage.client.event_v2 import Job, OutputDataset, Run, RunEvent, RunState
outputs = [OutputDataset("hive://host", "db.a")]
run = Run("01890a5d-ac96-774b-bcce-b302099a8057")
job = Job("default", "dag.task")
time = "2024-01-02T03:04:05Z"
client.emit(RunEvent(eventTime=time, producer="https://e", run=run, job=job,
                     eventType=RunState.COMPLETE, outputs=outputs))
"""


def test_it_talks_to_the_server_and_to_nobody_else():
    """DataHub's SDK, which would report to its makers, is not even imported."""
    with gms(token=None) as server:
        subprocess.run(
            [sys.executable, "-c", _SENDING, server.url, _EMIT, str(server.server_port)],
            check=True,
            timeout=60,
        )


def test_the_package_is_cheap_to_import():
    loaded = "[m for m in ('requests', 'openlineage.client') if m in sys.modules]"
    wanted = f"import airflow_provider_sparklineage.datahub.conversion, sys; print({loaded})"
    found = subprocess.run(
        [sys.executable, "-c", wanted], check=True, timeout=60, capture_output=True, text=True
    )

    assert found.stdout == "[]\n"


def test_a_name_that_is_not_there_is_none():
    from airflow_provider_sparklineage import datahub

    assert not hasattr(datahub, "DatahubTransport")
