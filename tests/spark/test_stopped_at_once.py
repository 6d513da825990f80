"""A job that stops its SparkContext while the listeners still work comes to its end."""

from __future__ import annotations

import pytest

from tests import record_events
from tests.spark import submissions

pytestmark = [pytest.mark.spark, pytest.mark.long]


def test_a_job_that_reads_delta_and_stops_at_once_ends(spark, tmp_path):
    """Without the wait before the stop, every second such job hung (Spark 3.5.9, 30 reads)."""
    submissions.require(spark, "delta")
    application = record_events.APPLICATIONS / "stops_at_once.py"
    submissions.submit(spark, application, tmp_path, listener=spark.listener, connectors=["delta"])
    assert '"kind":"end"' in (tmp_path / "observations.ndjson").read_text()
