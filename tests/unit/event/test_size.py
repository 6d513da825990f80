"""The size policy: what an event that would be too large goes without, and that it reports it."""

from __future__ import annotations

import json
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from openlineage.client.serde import Serde

from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.event.steps.size import ever_smaller, fitted, fitting, reduced
from airflow_provider_sparklineage.event.steps.size.measured_event import (
    MeasuredEvent,
    is_surely_within,
)
from airflow_provider_sparklineage.lineage.columns import (
    DIRECT,
    INDIRECT,
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.representation import Representation
from airflow_provider_sparklineage.model.witness import Witness
from airflow_provider_sparklineage.spark.capture.reports import ReadReport
from tests.conftest import HEADER
from tests.openlineage_spec import validate_event

SOURCE = DatasetName("s3://lake", "orders")
UNLIMITED = 10**12
SLACK = 2048
"""How much smaller than the limit an event may be that has to do with less all the same."""


def raw(facet):
    header = {"_producer": "https://spark", "_schemaURL": "https://openlineage.io/spec/x.json"}
    return msgspec.Raw(json.dumps(header | facet).encode())


def output(name, columns, *, text="a description of what was done", sources=4):
    """Make an output that has detail of every kind."""
    direct = Transformation(DIRECT, "IDENTITY", text)
    indirect = Transformation(INDIRECT, "CONDITIONAL", text)
    edges = {
        f"c{n}": {
            Column(SOURCE, f"s{m}"): (direct, indirect) if m % 2 else (direct,)
            for m in range(sources)
        }
        for n in range(columns)
    }
    edges["only_indirect"] = {Column(SOURCE, "s0"): (indirect, Transformation(INDIRECT, "SORT"))}
    everything = {
        Column(SOURCE, f"f{n}"): (
            Transformation(INDIRECT, "FILTER", text),
            Transformation(INDIRECT, "JOIN", text),
        )
        for n in range(columns)
    }
    schema = [
        {"name": f"c{n}", "type": "string", "description": "a comment of the column", "fields": []}
        for n in range(columns)
    ]
    schema[0]["fields"] = [{"name": "inner", "type": "int", "description": "a nested comment"}]
    return LineageDataset(
        DatasetName("s3://lake", name),
        facets={"schema": raw({"fields": schema})},
        side_facets={"outputStatistics": raw({"rowCount": 5, "notes": "n" * 100 * columns})},
        columns=ColumnLineage(edges, everything),
        witness=Witness.BOTH,
    )


LARGE = TaskLineage(
    Outcome.COMPLETE,
    (
        LineageDataset(SOURCE, side_facets={"inputStatistics": raw({"rowCount": 1})}),
        *(
            LineageDataset(DatasetName("s3://lake", f"in{n}"), witness=Witness.BOTH)
            for n in range(20)
        ),
    ),
    (output("large", 30), output("larger", 50)),
    degradations=(Degradation(DegradationCode.COLUMN_INCOMPLETE, "a Python UDF"),),
)


def event(lineage, limit):
    return event_of(lineage, ReadReport(), Representation(max_event_bytes=limit), header=HEADER)


def size(document):
    return len(Serde.to_json(document))


def dropped_messages(document):
    """Messages of what was dropped, in the order of dropping."""
    capture = document["run"]["facets"]["sparkLineage_capture"]
    return [d["message"] for d in capture["degradations"] if d["code"] == "detail_dropped"]


def steps(lineage):
    """Make the event as it is without limit, and after each step of dropping."""
    found = [event(lineage, UNLIMITED)]
    while True:
        less = event(lineage, size(found[-1]) - 1)
        if "Even the names" in dropped_messages(less)[-1]:
            return found
        found.append(less)


STEPS = steps(LARGE)
NAMES = [
    "all of it",
    "without descriptions",
    "without transformations of INDIRECT",
    "without statistics",
    "without comments of schemas",
    "without INDIRECT",
    "without who saw which dataset",
    "without the column lineage of the largest output",
    "without the column lineage of both",
]


def lineage_of(document, output):
    return document["outputs"][output]["facets"].get("columnLineage")


def transformations(document):
    for number in range(2):
        facet = lineage_of(document, number) or {"fields": {}}
        for field in facet["fields"].values():
            for source in field["inputFields"]:
                yield from source["transformations"]


def has(document):
    """Give the kinds of detail that an event has, by looking at it."""
    outputs = document["outputs"]
    columns = [c for n in range(2) if (c := lineage_of(document, n))]
    indirect = [t for t in transformations(document) if t["type"] == "INDIRECT"]
    schema = outputs[0]["facets"].get("schema", {"fields": []})["fields"]
    inner = schema[0]["fields"] if schema else []
    return {
        "descriptions": any(t.get("description") for t in transformations(document)),
        "subtypes of INDIRECT": any("subtype" in t for t in indirect),
        "transformations of datasets": any(
            e.get("transformations") for c in columns for e in c["dataset"]
        ),
        "statistics": "outputStatistics" in outputs[0]["outputFacets"],
        "comments": any("description" in f for f in [*schema, *inner]),
        "INDIRECT": bool(indirect) or any(c["dataset"] for c in columns),
        "smaller output's columns": lineage_of(document, 0) is not None,
        "larger output's columns": lineage_of(document, 1) is not None,
        "schema": bool(schema),
        "who saw which dataset": "datasets" in document["run"]["facets"]["sparkLineage_capture"],
    }


GOES = [
    set(),
    {"descriptions"},
    {"subtypes of INDIRECT", "transformations of datasets"},
    {"statistics"},
    {"comments"},
    {"INDIRECT"},
    {"who saw which dataset"},
    {"larger output's columns"},
    {"smaller output's columns"},
]


@pytest.mark.parametrize("step", range(len(NAMES)), ids=NAMES)
def test_each_step_takes_its_kind_of_detail_and_nothing_else(step):
    gone = set().union(*GOES[: step + 1])
    assert {kind for kind, there in has(STEPS[step]).items() if not there} == gone


@pytest.mark.parametrize("step", range(len(NAMES)), ids=NAMES)
@pytest.mark.parametrize(
    ("limit", "further"),
    [
        pytest.param(lambda size, _: size + SLACK, 0, id="just below the limit"),
        pytest.param(lambda size, _: size - 1, 1, id="just above the limit"),
        pytest.param(lambda _, after: after + SLACK, 1, id="far above the limit"),
    ],
)
def test_a_step_is_taken_only_when_the_one_before_it_is_not_enough(step, limit, further):
    after = STEPS[min(step + 1, len(STEPS) - 1)]
    document = event(LARGE, limit(size(STEPS[step]), size(after)))
    assert document == STEPS[min(step + further, len(STEPS) - 1)]


@pytest.mark.parametrize("step", range(len(NAMES)), ids=NAMES)
def test_every_step_reports_what_went_and_how_much(step):
    expected = [
        "724 descriptions of column lineage",
        "324 transformations of INDIRECT lineage",
        "3 statistics",
        "82 comments of schemas",
        "242 INDIRECT edges of column lineage",
        "22 entries on who saw a dataset",
        "The column lineage of s3://lake/larger",
        "The column lineage of s3://lake/large",
    ][:step]
    messages = dropped_messages(STEPS[step])
    assert [m.partition(" was left")[0].partition(" were left")[0] for m in messages] == expected
    assert all("[sparklineage] max_event_bytes" in m for m in messages)


@pytest.mark.parametrize("step", range(len(NAMES)), ids=NAMES)
def test_what_is_left_is_valid_openlineage(step):
    validate_event(STEPS[step])


def test_what_was_dropped_is_reported_before_what_is_missing_otherwise():
    capture = STEPS[2]["run"]["facets"]["sparkLineage_capture"]
    codes = [d["code"] for d in capture["degradations"]]
    assert codes == ["detail_dropped", "detail_dropped", "column_incomplete"]


def test_an_indirect_edge_never_turns_into_a_direct_one():
    field = lineage_of(STEPS[2], 0)["fields"]["only_indirect"]
    [source] = field["inputFields"]
    assert [t["type"] for t in source["transformations"]] == ["INDIRECT"]
    assert "only_indirect" not in lineage_of(STEPS[5], 0)["fields"]


def test_after_column_lineage_other_facets_go_the_largest_first_and_names_stay():
    without_columns = STEPS[len(NAMES) - 1]
    document = event(LARGE, size(without_columns) - 1)
    assert "schema of s3://lake/larger" in dropped_messages(document)[-1]
    assert "schema" not in document["outputs"][1]["facets"]
    assert "schema" in document["outputs"][0]["facets"]
    least = event(LARGE, 0)
    assert [d["name"] for d in least["outputs"]] == ["large", "larger"]
    assert not any(d["facets"] for d in least["outputs"])
    assert "Even the names" in dropped_messages(least)[-1]


def test_the_lineage_that_is_fitted_is_not_changed():
    before = event(LARGE, UNLIMITED)
    event(LARGE, 0)
    assert event(LARGE, UNLIMITED) == before


def test_a_start_event_has_no_facet_to_report_it_and_so_loses_nothing():
    start = event_of(LARGE, representation=Representation(max_event_bytes=0))
    assert [sorted(d["facets"]) for d in start["outputs"]] == [["columnLineage", "schema"]] * 2


# --- whoever has a bound --------------------------------------------------------------------------


def full_event(lineage=LARGE, degradations=()):
    return event(replace(lineage, degradations=degradations), UNLIMITED)


def test_an_event_is_fitted_into_any_bound_and_names_the_option_that_set_it():
    full = full_event()
    less = fitted(full, 48 * 1024, "[sparklineage] xcom_max_bytes")
    assert size(less) <= 48 * 1024
    assert dropped_messages(less)
    assert all("than [sparklineage] xcom_max_bytes allows" in m for m in dropped_messages(less))
    assert less["run"]["runId"] == full["run"]["runId"]


def test_an_event_that_fits_stays_the_object_that_it_was():
    full = full_event()
    assert fitted(full, UNLIMITED, "x") is full
    assert fitted(full, size(full) + SLACK, "x") is full


def test_what_was_dropped_is_returned_where_no_facet_can_have_it():
    bare = full_event()
    bare["run"]["facets"].clear()
    less, dropped = reduced(bare, 0, "x")
    assert dropped
    assert not less["run"]["facets"]
    assert fitted(bare, 0, "x") is bare


def test_what_was_dropped_is_counted_with_what_was_reported_already():
    entries = [Degradation(DegradationCode.COLUMN_INCOMPLETE, f"{n}") for n in range(150)]
    less, dropped = reduced(full_event(degradations=entries), 64 * 1024, "x")
    capture = less["run"]["facets"]["sparkLineage_capture"]
    assert len(capture["degradations"]) == 100
    assert capture["degradationCounts"] == {
        "column_incomplete": 150,
        "detail_dropped": len(dropped),
    }
    messages = [d["message"] for d in capture["degradations"][: len(dropped)]]
    assert messages == [d.message for d in dropped]


# --- properties -----------------------------------------------------------------------------------

outputs = st.builds(
    output,
    st.sampled_from(["a", "b", "ü", "\N{GRINNING FACE}" * 5]),
    st.integers(1, 6),
    text=st.sampled_from(["", "x", "WHERE name = 'żółw'", "a, b: c" * 40]),
    sources=st.integers(1, 3),
)
lineages = st.lists(outputs, max_size=4, unique_by=lambda o: o.name).map(
    lambda found: TaskLineage(Outcome.COMPLETE, (), tuple(found))
)
few = settings(max_examples=10, deadline=None)


@few
@given(lineages, st.integers(0, 30_000))
def test_an_event_is_never_larger_than_the_limit(lineage, limit):
    document = event(lineage, limit)
    assert size(document) <= limit or document == event(lineage, 0)


@few
@given(lineages, st.lists(st.integers(0, 20_000), min_size=2, max_size=5))
def test_an_event_that_is_fitted_into_ever_fewer_bytes_is_as_if_each_had_been_the_first(
    lineage, limits
):
    full = full_event(lineage)
    within = ever_smaller(full, "x")
    for limit in sorted(limits, reverse=True):
        assert within(limit) == fitted(full, limit, "x")


def test_what_is_fitted_into_ever_fewer_bytes_is_measured_once(monkeypatch):
    measured = []

    class Counted(MeasuredEvent):
        def __init__(self, event):
            measured.append(event)
            super().__init__(event)

    monkeypatch.setattr(fitting, "MeasuredEvent", Counted)
    full = full_event()
    within = ever_smaller(full, "x")
    sizes = [size(within(limit)) for limit in (UNLIMITED, size(full) - 1, 20_000, 0)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == len(sizes)
    assert measured == [full]


@few
@given(lineages)
def test_nothing_is_dropped_of_what_fits(lineage):
    full = event(lineage, UNLIMITED)
    assert event(lineage, size(full) + SLACK) == full
    assert dropped_messages(full) == []


@few
@given(lineages, st.floats(allow_nan=False), st.text())
def test_what_is_measured_is_the_size_that_the_client_sends(lineage, number, text):
    full = full_event(lineage)
    for dataset in full["outputs"]:
        dataset["facets"]["other"] = {"number": number, text: [text, True, 1e16, {"a": text}]}
    real = size(full)
    assert real <= MeasuredEvent(full).bytes <= real + SLACK
    assert not is_surely_within(full, real - 1)
    assert is_surely_within(full, 7 * real + SLACK)


@few
@given(lineages, st.lists(st.integers(0, 30_000), min_size=2, max_size=5))
def test_a_lower_limit_never_keeps_what_a_higher_one_drops(lineage, limits):
    kept = [_leaves(event(lineage, limit)) for limit in sorted(limits)]
    assert all(less <= more for less, more in pairwise(kept))


@few
@given(lineages, st.integers(0, 30_000))
def test_whatever_is_missing_is_reported(lineage, limit):
    document, full = event(lineage, limit), event(lineage, UNLIMITED)
    is_full = _leaves(document) == _leaves(full)
    assert is_full == (not [m for m in dropped_messages(document) if "Even the names" not in m])


def _leaves(document):
    """Every text and number of the datasets, by its path; sources by their names."""

    def walk(path, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield from walk((*path, key), inner)
        elif isinstance(value, list):
            for inner in value:
                named = isinstance(inner, dict) and (inner.get("field") or inner.get("name"))
                kind = isinstance(inner, dict) and inner.get("type")
                yield from walk((*path, named or kind), inner)
        elif value:
            yield (path, value)

    return set(walk((), document["outputs"]))
