"""Commands on bundles where drivers in a cluster delivered them."""

import json
import shutil
import tempfile
from pathlib import Path

import pytest

from airflow_provider_sparklineage.cli import main
from airflow_provider_sparklineage.spark.capture.bundle import CaptureBundle, Manifest
from tests.conftest import golden
from tests.local_store import URL, LocalStore
from tests.remote_driver import RemoteDriver

NAME = "task.2024-05-01.1"
BUNDLE = f"{URL}/{NAME}"


@pytest.fixture
def bundles(tmp_path, monkeypatch):
    """Have the same bundle on this machine and, delivered in parts, in a store; give the first."""
    here, store = tmp_path / "here", tmp_path / "store"
    events = golden("staging_chain").read_text().splitlines(keepends=True)
    manifest = Manifest(application_run_id=json.loads(events[0])["run"]["runId"])
    for folder in (here, store / NAME):
        folder.mkdir(parents=True)
        CaptureBundle(folder, manifest).save()
    shutil.copy(golden("staging_chain"), here / "events.ndjson")
    driver = RemoteDriver(store / NAME, manifest.application_run_id).starts()
    driver.delivers("events", "".join(events[:3]), "".join(events[3:])).ends()
    LocalStore(store).install(monkeypatch)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield str(here)
    assert list(temporary.iterdir()) == []


COMMANDS = [
    ["show", "{}"],
    ["merge", "{}", "--strict"],
    ["trace", "revenue", "--column", "revenue", "--events", "{}"],
    ["explain", "--run", "{}"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("url", [BUNDLE, f"{BUNDLE}/"], ids=["folder", "slash"])
def test_a_bundle_is_the_same_wherever_it_is(bundles, capsys, command, url):
    def printed(bundle):
        code = main([argument.format(bundle) for argument in command])
        return code, *capsys.readouterr()

    assert printed(url) == printed(bundles)


def test_bundles_here_and_there_are_shown_together(bundles, capsys):
    assert main(["show", bundles, BUNDLE]) == 0
    both = capsys.readouterr().out
    assert main(["show", bundles]) == 0
    assert both == capsys.readouterr().out * 2


@pytest.mark.usefixtures("bundles")
def test_a_driver_that_the_cluster_started_again_is_a_second_attempt(capsys, tmp_path):
    run = json.loads(golden("staging_chain").read_text().splitlines()[0])["run"]["runId"]
    RemoteDriver(tmp_path / "store" / NAME, run, number=2).starts().ends()
    assert main(["merge", BUNDLE]) == 0
    event = json.loads(capsys.readouterr().out)
    assert event["run"]["facets"]["sparkLineage_capture"].get("attempts") == 2


def test_what_is_missing_is_noted(bundles, capsys):
    [end] = (Path(bundles).parent / "store" / NAME).glob("*/end.json")
    end.unlink()
    assert main(["merge", BUNDLE, "--strict"]) == 1
    assert "note: delivery_incomplete:" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_where_no_bundle_is_says_so(bundles, capsys, monkeypatch, command):
    monkeypatch.delenv("_AIRFLOW_PROCESS_CONTEXT", raising=False)  # Airflow's own tests have set it
    code = main([argument.format(f"{URL}/nothing") for argument in command])
    done = capsys.readouterr()
    assert (code, done.out) == (2, "")
    assert "There is no capture bundle at store://lake/lineage/nothing" in done.err
    assert "`airflow sparklineage` with the same arguments knows all of Airflow's." in done.err


def test_airflow_s_command_does_not_name_itself(bundles, capsys, monkeypatch):
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "server")
    assert main(["show", f"{URL}/nothing"]) == 2
    assert "`airflow sparklineage`" not in capsys.readouterr().err
