"""The commands on the history where something that they need is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_provider_sparklineage import cli
from airflow_provider_sparklineage.history.store import Store

MONTH = Path(__file__).parents[1] / "golden" / "history" / "flights_month.ndjson.gz"
_WITHOUT = """
import sys
sys.modules["duckdb"] = None  # as if it were not installed
from airflow_provider_sparklineage.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("history"))
    assert cli.main(["history", "build", str(MONTH), "--store", folder]) == 0
    return folder


@pytest.mark.parametrize(
    "argv",
    [
        ("history", "build", str(MONTH)),
        ("history", "show"),
        ("trace", "daily_delays"),
        ("impact", "daily_delays"),
        ("stale",),
        ("gaps", "daily_delays"),
        ("drift", "daily_delays"),
        ("patterns", "daily_delays"),
    ],
    ids=" ".join,
)
def test_without_duckdb_each_command_names_the_line_that_installs_it(store, tmp_path, argv):
    at = str(tmp_path / "new") if "build" in argv else store
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, *argv, "--store", at],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "pip install 'airflow-provider-sparklineage[history]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("question", ["trace", "impact"])
def test_without_duckdb_events_are_answered_by_the_line_that_installs_it(question):
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, question, "daily_delays", "--events", str(MONTH)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stderr == (
        "sparklineage: The history needs DuckDB. Install it: "
        "pip install 'airflow-provider-sparklineage[history]'.\n"
    )
    assert (done.returncode, done.stdout) == (2, "")


def test_help_needs_no_duckdb(tmp_path):
    argv = [sys.executable, "-c", _WITHOUT, "trace", "--help"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True, env=env)
    assert "--column COLUMN" in done.stdout


def test_a_build_while_another_one_runs_names_it_and_changes_nothing(store, capsys):
    before = Store.open(store).manifest
    with Store.open(store).building():
        code = cli.main(["history", "build", str(MONTH), "--store", store])
        assert f"by process {os.getpid()} on " in capsys.readouterr().err
        assert cli.main(["history", "show", "--store", store]) == 0
    assert code == 2
    assert Store.open(store).manifest == before


_LISTED = """
import sys
from airflow_provider_sparklineage.cli import main
code = main(sys.argv[1:])
found = [one for one in sys.modules if one.partition(".")[0] == "airflow"]
sys.exit(f"imported: {found}" if found else code)
"""


@pytest.mark.parametrize("place", ["option", "variable"])
@pytest.mark.parametrize(
    "argv",
    [
        ("history", "show"),
        ("trace", "daily_delays", "--column", "avg_visibility"),
        ("impact", "flights", "--plan"),
        ("stale",),
        ("gaps", "daily_delays"),
        ("drift", "daily_delays"),
        ("patterns", "daily_delays"),
        ("history", "build", str(MONTH)),
    ],
    ids=" ".join,
)
def test_no_question_imports_airflow_where_the_store_is_named(store, argv, place):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if place == "variable":
        env["AIRFLOW__SPARKLINEAGE__HISTORY_URL"] = Path(store).as_uri()
    else:
        argv = (*argv, "--store", store)
    done = subprocess.run(
        [sys.executable, "-c", _LISTED, *argv],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=env,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_a_variable_that_airflow_would_expand_is_read_by_airflow(store, monkeypatch, capsys):
    monkeypatch.setenv("PLACE", store)
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__HISTORY_URL", "file://$PLACE")
    pytest.importorskip("airflow", reason="it reads the variable")
    assert cli.main(["history", "show"]) == 0
    assert "daily_delays" in capsys.readouterr().out


def test_a_variable_that_is_no_url_is_reported(monkeypatch, capsys):
    monkeypatch.setenv("AIRFLOW__SPARKLINEAGE__HISTORY_URL", "no url")
    assert cli.main(["stale"]) == 1
    assert "history_url is 'no url'. It must be a URL such as" in capsys.readouterr().err
