"""An event with as many columns as may be sent is taken by a real Marquez while its client waits.

``SPARKLINEAGE_TEST_MARQUEZ_URL`` is the URL of its API, e.g. ``http://127.0.0.1:5000``. It should
have nothing else to do meanwhile.
"""

from __future__ import annotations

import json
import uuid

import pytest

from airflow_provider_sparklineage.event.document import Header
from airflow_provider_sparklineage.event.leaving import leaving
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.model.representation import Leaving, Representation
from airflow_provider_sparklineage.spark.capture.reports import ReadReport
from tests.integration.conftest import MARQUEZ_URL, needs_marquez
from tests.integration.marquez_server import MarquezServer
from tests.unit.event.test_columns import counted
from tests.unit.event.test_size import columns_of, dropped_messages, named_in, wide

pytestmark = needs_marquez

CLIENT_TIMEOUT_S = 5
"""After which OpenLineage's client gives up."""


@pytest.fixture
def sent():
    """Make what is sent of a task that joins two of thirty tables into each of ten."""
    run, lake = uuid.uuid4(), uuid.uuid4()
    header = Header(str(run), "tests", f"wide-{lake}", "2026-01-01T00:00:00+00:00")
    lineage = wide(inputs=30, outputs=10, columns=70)
    kept = event_of(lineage, ReadReport(), Representation(backend="marquez"), header=header)
    event = leaving(kept, Leaving(backend="marquez"))
    return json.loads(json.dumps(event).replace("s3://lake", f"s3://{lake}"))


def test_an_event_at_the_bound_is_taken_while_the_client_waits_and_all_of_it_is_drawn(sent):
    assert dropped_messages(sent)
    assert 2700 < counted(sent) <= 3000
    marquez = MarquezServer(MARQUEZ_URL)
    marquez.send(sent, CLIENT_TIMEOUT_S)
    written, read = named_in(sent)
    assert (written, read) == (columns_of(sent, "outputs"), columns_of(sent, "inputs"))
    drawn = [marquez.dataset(d["namespace"], d["name"]).edges for d in sent["outputs"]]
    facets = [d["facets"].get("columnLineage", {"fields": {}}) for d in sent["outputs"]]
    assert drawn == [
        {
            (column, source["name"], source["field"])
            for column, field in facet["fields"].items()
            for source in field["inputFields"]
        }
        for facet in facets
    ]
