"""The model of Marquez does what a real one was seen to do with each sequence of events."""

from __future__ import annotations

import pytest

from tests.marquez_model import Job, MarquezModel, PoisonedError


def dataset(name, *columns, **facets):
    if columns:
        facets["schema"] = {"fields": [{"name": c, "type": "int"} for c in columns]}
    return {"namespace": "file", "name": name, "facets": facets}


IN, OUT = [dataset("/in", "a")], [dataset("/out", "x")]


def event(kind, inputs=(), outputs=(), run="2"):
    return {
        "eventType": kind,
        "run": {"runId": run},
        "job": {"namespace": "n", "name": "j"},
        "inputs": list(inputs),
        "outputs": list(outputs),
    }


@pytest.fixture
def marquez():
    """One that has seen a good run."""
    model = MarquezModel()
    model.receive(event("COMPLETE", IN, OUT, run="1"))
    return model


BOTH, BLANK = (["/in"], ["/out"]), ([], [])


@pytest.mark.parametrize(
    ("events", "shown"),
    [
        pytest.param([event("START")], [BLANK], id="START empty"),
        pytest.param([event("START", IN)], [(["/in"], [])], id="START in only"),
        pytest.param([event("START", IN, OUT)], [BOTH], id="START in and out"),
        pytest.param(
            [event("START", IN, OUT), event("RUNNING"), event("COMPLETE")],
            [BOTH, BLANK, BOTH],
            id="RUNNING empty",
        ),
        pytest.param([event("START"), event("FAIL")], [BLANK, BLANK], id="FAIL empty"),
        pytest.param(
            [event("START", IN, OUT), event("FAIL")], [BOTH, BOTH], id="FAIL empty after START"
        ),
        pytest.param(
            [event("START"), event("FAIL", IN, OUT)], [BLANK, BOTH], id="FAIL with last known"
        ),
        pytest.param(
            [event("COMPLETE", IN, OUT), event("COMPLETE")], [BOTH, BOTH], id="COMPLETE twice"
        ),
        pytest.param(
            [event("START", [dataset("/declared")], OUT), event("COMPLETE", IN, OUT)],
            [BOTH, (["/declared", "/in"], ["/out"])],
            id="START with another name",
        ),
    ],
)
def test_graph_after_each_event(marquez, events, shown):
    found = []
    for sent in events:
        marquez.receive(sent)
        found.append(marquez.job("n", "j")[:2])
    assert found == shown


def test_a_late_start_makes_the_run_run_again(marquez):
    marquez.receive(event("START", IN, OUT, run="1"))
    assert marquez.job("n", "j") == Job(["/in"], ["/out"], "RUNNING")


def test_versions_by_schema_and_only_complete_makes_them_current(marquez):
    marquez.receive(event("START", IN, [dataset("/out")]))
    assert (marquez.dataset("file", "/out").columns, marquez.dataset("file", "/out").versions) == (
        ["x"],
        2,
    )
    marquez.receive(event("COMPLETE", IN, [dataset("/out", "x", "y")]))
    assert (marquez.dataset("file", "/out").columns, marquez.dataset("file", "/out").versions) == (
        ["x", "y"],
        3,
    )


def test_facets_are_of_a_version(marquez):
    output = dataset("/out", "x", sparkLineage_partitions={"summary": "dt=1"})
    marquez.receive(event("COMPLETE", IN, [output]))
    assert marquez.dataset("file", "/out").partitions == "dt=1"
    marquez.receive(event("COMPLETE", IN, OUT, run="3"))
    assert marquez.dataset("file", "/out").partitions is None


def test_edges_of_columns_need_schemas_and_stay(marquez):
    def of(*sources):
        inputs = [{"namespace": "file", "name": "/in", "field": s} for s in sources]
        return [dataset("/out", "x", columnLineage={"fields": {"x": {"inputFields": inputs}}})]

    marquez.receive(event("COMPLETE", IN, of("a", "not in the schema")))
    assert marquez.dataset("file", "/out").edges == {("x", "/in", "a")}
    marquez.receive(event("COMPLETE", [dataset("/in", "b")], of("b"), run="3"))
    assert marquez.dataset("file", "/out").edges == {("x", "/in", "a"), ("x", "/in", "b")}


def test_a_symlink_leads_to_the_dataset(marquez):
    links = {"identifiers": [{"namespace": "hive://h", "name": "db.t", "type": "TABLE"}]}
    marquez.receive(event("COMPLETE", IN, [dataset("/out", "x", symlinks=links)]))
    assert marquez.dataset("hive://h", "db.t") == marquez.dataset("file", "/out")


@pytest.mark.parametrize("namespace", ["kafka://a,b", "s3://ü", "a b", ""])
def test_a_namespace_that_it_cannot_read_breaks_it_for_good(marquez, namespace):
    marquez.receive(event("START", [{"namespace": namespace, "name": "t"}]))
    marquez.receive(event("COMPLETE", IN, OUT))
    with pytest.raises(PoisonedError):
        marquez.job("n", "j")
