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
