"""An event with as many columns as may be sent is taken by a real Marquez, and drawn.

``SPARKLINEAGE_TEST_MARQUEZ_URL`` is the URL of its API, e.g. ``http://127.0.0.1:5000``. How long it
takes is measured in ``docs/backends.md``; here it has ten times that, since machines are busy.
"""

from __future__ import annotations

import json
import uuid

import pytest

from airflow_provider_sparklineage.event.document import Header
from airflow_provider_sparklineage.event.pipeline import Others, events_of, ready_to_send
from airflow_provider_sparklineage.model.representation import Adaptation
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.integration.conftest import MARQUEZ_URL, needs_marquez
from tests.integration.marquez_server import MarquezServer
from tests.unit.event.test_columns import counted, start
from tests.unit.event.test_size import columns_of, dropped_messages, named_in, wide

pytestmark = needs_marquez


@pytest.fixture
def kept():
    """Make the event of a task that joins two of thirty tables into each of ten."""

    def made(columns):
        lake = uuid.uuid4()
        header = Header(str(lake), "tests", f"wide-{lake}", "2026-01-01T00:00:00+00:00")
        lineage = wide(inputs=30, outputs=10, columns=columns)
        event = events_of(lineage, Adaptation("marquez"), ReadReport(), header=header).adapted
        return json.loads(json.dumps(event).replace("s3://lake", f"s3://{lake}"))

    return made


def test_an_event_at_the_bound_is_taken_and_all_of_it_is_drawn(kept):
    sent = ready_to_send(kept(70), Adaptation(backend="marquez"))
    assert dropped_messages(sent)
    assert 2700 < counted(sent) <= 3000
    marquez = MarquezServer(MARQUEZ_URL)
    marquez.send(sent)
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


def test_a_run_makes_one_version_of_each_output_also_where_columns_are_left_out(kept):
    how = Adaptation(backend="marquez", max_columns=60)
    end, marquez = kept(3), MarquezServer(MARQUEZ_URL)
    begin = ready_to_send(start(end), how, Others(end))
    sent = ready_to_send(end, how)
    assert columns_of(sent, "outputs") == columns_of(begin, "outputs") != columns_of(end, "outputs")
    marquez.send(sent)
    run = {"runId": str(uuid.uuid4()), "facets": {}}
    marquez.send({**sent, **begin, "eventType": "START", "job": end["job"], "run": run})
    marquez.send({**sent, "run": run})
    pages = [marquez.dataset(d["namespace"], d["name"]) for d in end["outputs"]]
    assert [page.versions for page in pages] == [2] * 10
    assert {
        (d["name"], c) for d, p in zip(end["outputs"], pages, strict=True) for c in p.columns
    } == (columns_of(sent, "outputs"))
