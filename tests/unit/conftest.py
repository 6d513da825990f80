"""What unit tests share."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage import cli


@pytest.fixture
def run(capsys):
    def run(*argv):
        code = cli.main(argv)
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return run
