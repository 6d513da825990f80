"""The model of Marquez against a real one: any events, in any order, and both show the same."""

from __future__ import annotations

import uuid

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.conftest import MARQUEZ_URL, needs_marquez
from tests.integration.marquez_server import MarquezServer
from tests.marquez_model import MarquezModel

pytestmark = needs_marquez

FACET = {"_producer": "p", "_schemaURL": "u"}
RUNS = [str(uuid.UUID(int=n)) for n in range(1, 5)]
NAMES = ["/lake/a", "/lake/b", "/lake/c"]
COLUMNS = st.lists(st.sampled_from("xyz"), max_size=3, unique=True)
SOURCES = st.builds(
    lambda name, field: {"namespace": "file", "name": name, "field": field},
    st.sampled_from(NAMES),
    st.sampled_from("xyz"),
)


TEXTS = st.sampled_from(["", "one text", "another"])


def described(name, columns, text="", column_text="", **facets):
    facets["dataSource"] = {"name": "file", "uri": "file"}
    if text:
        facets["documentation"] = {"description": text}
    if columns:
        more = {"description": column_text} if column_text else {}
        facets["schema"] = {"fields": [{"name": c, "type": "int", **more} for c in columns]}
    return {"namespace": "file", "name": name, "facets": {k: FACET | f for k, f in facets.items()}}


@st.composite
def histories(draw):
    """Make events of two jobs with two runs each, which read and write the same tables."""
    # A run describes a table that it writes in one way: of several versions by one run, the
    # database decides which becomes current.
    looks = {
        (run, name): (draw(COLUMNS), draw(TEXTS), draw(st.booleans()))
        for run in RUNS
        for name in NAMES
    }
    events = []
    for second in range(draw(st.integers(1, 6))):
        number = draw(st.integers(0, 3))
        run = RUNS[number]
        inputs, outputs = (
            draw(st.lists(st.sampled_from(NAMES), max_size=2, unique=True)) for _ in "12"
        )
        events.append(
            {
                "eventType": draw(st.sampled_from(["START", "RUNNING", "COMPLETE", "FAIL"])),
                "eventTime": f"2024-05-06T00:00:0{second}Z",
                "run": {"runId": run},
                "job": {"namespace": "tests", "name": f"job_{number // 2}", **job(draw(TEXTS))},
                "inputs": [
                    described(name, draw(COLUMNS), draw(TEXTS), draw(TEXTS)) for name in inputs
                ],
                "outputs": [output(draw, name, *looks[run, name]) for name in outputs],
                "producer": "p",
                "schemaURL": "u",
            }
        )
    return events


def job(text):
    return {"facets": {"documentation": FACET | {"description": text}}} if text else {}


def output(draw, name, columns, column_text, overwrites):
    facets = {}
    if overwrites:
        facets["lifecycleStateChange"] = {"lifecycleStateChange": "OVERWRITE"}
    if day := draw(st.sampled_from(["", "dt=1", "dt=2"])):
        facets["sparkLineage_partitions"] = {"summary": day}
    made_of = draw(st.dictionaries(st.sampled_from("xyz"), SOURCES, max_size=2))
    if made_of:
        fields = {column: {"inputFields": [source]} for column, source in made_of.items()}
        facets["columnLineage"] = {"fields": fields}
    return described(name, columns, draw(TEXTS), column_text, **facets)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(histories())
def test_both_show_the_same_after_each_event(events):
    model, server = MarquezModel(), MarquezServer(MARQUEZ_URL)
    jobs, names = set(), set()
    for event in events:
        model.receive(event)
        server.receive(event)
        jobs.add(event["job"]["name"])
        names |= {d["name"] for d in (*event["inputs"], *event["outputs"])}
        for shown in sorted(jobs):
            assert server.job("tests", shown) == model.job("tests", shown)
            assert server.job_text("tests", shown) == model.job_text("tests", shown)
        for name in sorted(names):
            assert server.dataset("file", name) == model.dataset("file", name)
            assert server.texts("file", name) == model.texts("file", name)
