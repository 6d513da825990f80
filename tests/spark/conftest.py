"""The Spark that the tests start."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import record_events


@pytest.fixture(scope="session")
def spark():
    """Find the Spark of this environment."""
    return record_events.Spark.of(Path(sys.executable).with_name("spark-submit"))


@pytest.fixture(scope="session")
def orders_lake(spark, tmp_path_factory):
    """Prepare the lake of the recorded cases; copy it before writing to it."""
    return record_events.prepare_lake(spark, tmp_path_factory.mktemp("prepared"))
