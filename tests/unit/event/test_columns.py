"""How many columns are sent to a backend that pays for each, and which ones go first."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.event.pipeline import Others, adapted, event_of, ready_to_send
from airflow_provider_sparklineage.event.steps.size import with_few_columns
from airflow_provider_sparklineage.event.stored import last_run
from airflow_provider_sparklineage.lineage.declared_and_last_known import declared_lineage
from airflow_provider_sparklineage.model.representation import (
    DEFAULT_LIMITS,
    Adaptation,
)
from airflow_provider_sparklineage.model.rules import NO_RULES
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER
from tests.marquez_model import MarquezModel
from tests.openlineage_spec import validate_event
from tests.unit.event.test_size import (
    LARGE,
    columns_of,
    dropped_messages,
    few,
    has,
    lineages,
    named_in,
    wide,
)

MARQUEZ = Adaptation(backend="marquez")


def kept(lineage):
    return adapted(event_of(lineage, ReadReport(), header=HEADER), MARQUEZ)


def counted(event):
    """Count what an event has of columns, in columns."""
    edges = 0
    for dataset in (*event["inputs"], *event["outputs"]):
        edges += 4 * len(dataset["facets"].get("schema", {"fields": ()})["fields"])
        facet = dataset["facets"].get("columnLineage", {"fields": {}, "dataset": ()})
        edges += 4 * len(facet["fields"]) + len(facet["dataset"])
        edges += sum(len(field["inputFields"]) for field in facet["fields"].values())
    return edges / 4


# Thirty inputs and ten outputs of twenty columns, each of which is a sum of two: 800 columns of
# schemas, 200 with column lineage, 400 edges.
WIDE = kept(wide())


@pytest.mark.parametrize(
    ("max_columns", "inputs", "outputs", "lineages"),
    [
        pytest.param(1100, 600, 200, 10, id="all of it"),
        pytest.param(1099, 580, 200, 10, id="not an input that no edge names"),
        pytest.param(900, 400, 200, 10, id="only columns that edges name"),
        pytest.param(899, 400, 200, 9, id="not the edges of an output"),
        pytest.param(840, 360, 180, 9, id="nor its columns, and those that it is made of"),
        pytest.param(90, 40, 20, 1, id="an output"),
        pytest.param(89, 40, 20, 0, id="the columns of an output without its edges"),
        pytest.param(0, 0, 0, 0, id="names"),
    ],
)
def test_columns_go_that_no_edge_names_and_then_the_edges_of_one_output_after_the_other(
    max_columns, inputs, outputs, lineages
):
    less = with_few_columns(WIDE, max_columns)
    assert counted(less) <= max_columns
    assert (len(columns_of(less, "inputs")), len(columns_of(less, "outputs"))) == (inputs, outputs)
    assert sum("columnLineage" in d["facets"] for d in less["outputs"]) == lineages
    assert [d["name"] for d in less["outputs"]] == [d["name"] for d in WIDE["outputs"]]
    validate_event(less)


def test_text_stays_because_no_backend_pays_for_it():
    less = with_few_columns(kept(LARGE), 340)
    assert {kind for kind, there in has(less).items() if not there} == {
        "unused columns",
        "columns of filters",
        "INDIRECT",
        "subtypes of INDIRECT",
        "transformations of datasets",
    }


def test_what_went_is_declared_in_what_is_sent_and_only_there():
    before = copy.deepcopy(WIDE)
    sent = ready_to_send(WIDE, Adaptation(backend="marquez", max_columns=850))
    assert before == WIDE
    assert not dropped_messages(WIDE)
    assert dropped_messages(sent) == [
        "240 columns of inputs that no column lineage names were left out: they are more than "
        "[sparklineage] max_columns allows; raise it if what receives the event takes more.",
        "The column lineage of s3://lake/out00 was left out: it is more than "
        "[sparklineage] max_columns allows; raise it if what receives the event takes more.",
        "20 columns of outputs without lineage were left out: they are more than "
        "[sparklineage] max_columns allows; raise it if what receives the event takes more.",
    ]


def test_an_event_with_few_columns_and_one_for_another_backend_stay_the_objects_that_they_were():
    assert with_few_columns(WIDE, 1100) is WIDE
    assert ready_to_send(WIDE, Adaptation(backend="generic", max_columns=0)) is WIDE


@few
@given(lineages, st.integers(0, 100))
def test_an_event_never_has_more_columns_than_it_may_and_edges_keep_theirs(lineage, max_columns):
    full = kept(lineage)
    less = with_few_columns(full, max_columns)
    assert counted(less) <= max_columns
    written, read = named_in(less)
    assert written & columns_of(full, "outputs") <= columns_of(less, "outputs")
    assert read & columns_of(full, "inputs") <= columns_of(less, "inputs")
    assert (less is full) == (counted(full) <= max_columns)


# --- before the job has run -----------------------------------------------------------------------


def start(last):
    known = declared_lineage((), (), (), NO_RULES, DEFAULT_LIMITS, last_run(last))
    return adapted(event_of(known), MARQUEZ)


@pytest.mark.parametrize("describe", [True, False])
def test_start_has_the_columns_that_the_end_of_the_last_run_was_sent_with(describe):
    how = Adaptation("marquez", describe, max_columns=850)
    end, begin = ready_to_send(WIDE, how), ready_to_send(start(WIDE), how, Others(WIDE))
    for side in ("inputs", "outputs"):
        assert columns_of(begin, side) == columns_of(end, side)
    assert len(columns_of(begin, "outputs")) == 180


def test_a_run_makes_one_version_of_each_output_also_where_columns_are_left_out():
    how = Adaptation("marquez", max_columns=850)
    marquez = MarquezModel()
    marquez.receive(ready_to_send(WIDE, how))
    of_run = {"run": {"runId": "second", "facets": {}}, "job": WIDE["job"], "eventType": "START"}
    marquez.receive(ready_to_send(start(WIDE), how, Others(WIDE)) | of_run)
    marquez.receive({**ready_to_send(WIDE, how), "run": of_run["run"]})
    versions = {marquez.dataset(d["namespace"], d["name"]).versions for d in WIDE["outputs"]}
    assert versions == {2}


def test_start_stays_as_it_is_where_nothing_is_known_or_nothing_was_left_out():
    begin = start(WIDE)
    assert with_few_columns(begin, 10) is begin
    assert with_few_columns(begin, 1100, WIDE) is begin
