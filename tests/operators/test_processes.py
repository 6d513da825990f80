"""What only an interpreter of its own shows: what is imported, and a pipe that closes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import golden

pytestmark = pytest.mark.airflow  # as are the other tests that start processes
STAGING = str(golden("staging_chain"))


def test_reading_a_simple_predicate_does_not_import_the_parser():
    script = (
        "import sys; from airflow_provider_sparklineage.model.predicates import condition\n"
        "condition('((c0 IS NOT NULL) AND (c0 > 1L))'); sys.exit('sqlglot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_no_path_of_the_command_imports_airflow_or_pyspark():
    code = (
        "import sys; from airflow_provider_sparklineage import cli\n"
        f"cli.main(['merge', {STAGING!r}]); cli.main(['show', {STAGING!r}])\n"
        "bad = {m.partition('.')[0] for m in sys.modules} & {'airflow', 'pyspark'}\n"
        "sys.exit(f'imported {bad}' if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m airflow_provider_sparklineage.cli merge {STAGING} | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert "BrokenPipe" not in done.stderr
    assert "Exception ignored" not in done.stderr
