"""What unit tests share."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_provider_sparklineage import cli
from tests.unit import wheels


@pytest.fixture
def run(capsys):
    def run(*argv):
        code = cli.main(argv)
        captured = capsys.readouterr()
        return SimpleNamespace(code=code, out=captured.out, err=captured.err)

    return run


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """Build a wheel, once for all tests."""
    return wheels.build(tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("wheel"))
