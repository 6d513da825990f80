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

from airflow_provider_sparklineage.event.document import is_surely_within
from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.event.steps import fitting
from airflow_provider_sparklineage.event.steps.fitting import MeasuredEvent
from airflow_provider_sparklineage.event.steps.size import ever_smaller, fitted, reduced
from airflow_provider_sparklineage.lineage.columns.edges import (
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
from airflow_provider_sparklineage.model.terms import Witness
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
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
    schema += [{"name": f"made_of_nothing{n}", "type": "string"} for n in range(columns)]
    return LineageDataset(
        DatasetName("s3://lake", name),
        facets={
            "schema": raw({"fields": schema}),
            "storage": raw({"storageLayer": "delta", "fileFormat": "p" * 40 * columns}),
        },
        side_facets={"outputStatistics": raw({"rowCount": 5, "notes": "n" * 100 * columns})},
        columns=ColumnLineage(edges, everything),
        witness=Witness.BOTH,
    )


def columns_called(*names):
    return [{"name": f"{name}{n}", "type": "string"} for name in names for n in range(50)]


LARGE = TaskLineage(
    Outcome.COMPLETE,
    (
        LineageDataset(
            SOURCE,
            facets={"schema": raw({"fields": columns_called("s", "f", "unused")})},
            side_facets={"inputStatistics": raw({"rowCount": 1})},
        ),
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
    "without columns of inputs that no edge names",
    "without descriptions",
    "without transformations of INDIRECT",
    "without transformations of DIRECT",
    "without statistics",
    "without comments of schemas",
    "without INDIRECT",
    "without columns that only INDIRECT names",
    "without who saw which dataset",
    "without columns of the larger output that have no lineage",
    "without those of both",
    "without the column lineage of the largest output",
    "without its columns",
    "without the column lineage of both",
    "without columns",
]


def lineage_of(document, output):
    return document["outputs"][output]["facets"].get("columnLineage")


def edges(document):
    for number in range(2):
        facet = lineage_of(document, number) or {"fields": {}}
        for field in facet["fields"].values():
            yield from field["inputFields"]


def transformations(document):
    for source in edges(document):
        yield from source.get("transformations", ())


def schema_of(dataset):
    return dataset["facets"].get("schema", {"fields": []})["fields"]


def names_of(dataset):
    return [field["name"] for field in schema_of(dataset)]


def has(document):
    """Give the kinds of detail that an event has, by looking at it."""
    outputs = document["outputs"]
    columns = [c for n in range(2) if (c := lineage_of(document, n))]
    indirect = [t for t in transformations(document) if t["type"] == "INDIRECT"]
    schema = schema_of(outputs[0])
    inner = schema[0].get("fields", []) if schema else []
    read = names_of(next(d for d in document["inputs"] if d["name"] == SOURCE.name))
    return {
        "unused columns": "unused1" in read,
        "descriptions": any(t.get("description") for t in transformations(document)),
        "subtypes of INDIRECT": any("subtype" in t for t in indirect),
        "transformations of datasets": any(
            e.get("transformations") for c in columns for e in c["dataset"]
        ),
        "kinds that the column names": any(
            [t["type"] for t in e.get("transformations", ())] == ["DIRECT"] for e in edges(document)
        ),
        "statistics": "outputStatistics" in outputs[0]["outputFacets"],
        "comments": any("description" in f for f in [*schema, *inner]),
        "INDIRECT": bool(indirect) or any(c["dataset"] for c in columns),
        "columns of filters": "f1" in read,
        "columns without sources": "made_of_nothing1" in names_of(outputs[0]),
        "larger output's columns without sources": "made_of_nothing1" in names_of(outputs[1]),
        "smaller output's lineage": lineage_of(document, 0) is not None,
        "larger output's lineage": lineage_of(document, 1) is not None,
        "smaller output's columns": "c1" in names_of(outputs[0]),
        "larger output's columns": "c1" in names_of(outputs[1]),
        "columns that are read": "s1" in read,
        "who saw which dataset": "datasets" in document["run"]["facets"]["sparkLineage_capture"],
    }


GOES = [
    set(),
    {"unused columns"},
    {"descriptions"},
    {"subtypes of INDIRECT", "transformations of datasets"},
    {"kinds that the column names"},
    {"statistics"},
    {"comments"},
    {"INDIRECT"},
    {"columns of filters"},
    {"who saw which dataset"},
    {"larger output's columns without sources"},
    {"columns without sources"},
    {"larger output's lineage"},
    {"larger output's columns"},
    {"smaller output's lineage"},
    {"smaller output's columns", "columns that are read"},
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


COLUMNS_GONE = [
    *[(0, 0), *[(96, 0)] * 7, *[(146, 0)] * 2],
    *[(146, 50), *[(146, 80)] * 2, *[(146, 130)] * 2, (150, 160)],
]
"""Of inputs and outputs, after each step; they are counted in one sentence each."""
SENTENCES = [*range(8), 7, 8, 9, 9, 10, 10, 11, 11]


@pytest.mark.parametrize("step", range(len(NAMES)), ids=NAMES)
def test_every_step_reports_what_went_and_how_much(step):
    read, written = COLUMNS_GONE[step]
    expected = [
        f"{read} columns of inputs that no column lineage names",
        "724 descriptions of column lineage",
        "324 transformations of INDIRECT lineage",
        "160 transformations of DIRECT lineage",
        "3 statistics",
        "82 comments of schemas",
        "242 INDIRECT edges of column lineage",
        "22 entries on who saw a dataset",
        f"{written} columns of outputs without lineage",
        "The column lineage of s3://lake/larger",
        "The column lineage of s3://lake/large",
    ][: SENTENCES[step]]
    messages = dropped_messages(STEPS[step])
    assert [m.partition(" was left")[0].partition(" were left")[0] for m in messages] == expected
    assert all(m.endswith("than the limit of a kept event allows.") for m in messages)


@pytest.mark.parametrize("step", range(len(NAMES)), ids=NAMES)
def test_what_is_left_is_valid_openlineage(step):
    validate_event(STEPS[step])


def test_what_was_dropped_is_reported_before_what_is_missing_otherwise():
    capture = STEPS[2]["run"]["facets"]["sparkLineage_capture"]
    codes = [d["code"] for d in capture["degradations"]]
    assert codes == ["detail_dropped", "detail_dropped", "column_incomplete"]


def test_an_indirect_edge_never_turns_into_a_direct_one():
    field = lineage_of(STEPS[4], 0)["fields"]["only_indirect"]
    [source] = field["inputFields"]
    assert [t["type"] for t in source["transformations"]] == ["INDIRECT"]
    assert "only_indirect" not in lineage_of(STEPS[7], 0)["fields"]


def test_after_column_lineage_other_facets_go_the_largest_first_and_names_stay():
    without_columns = STEPS[len(NAMES) - 1]
    document = event(LARGE, size(without_columns) - 1)
    assert "storage of s3://lake/larger" in dropped_messages(document)[-1]
    assert "storage" not in document["outputs"][1]["facets"]
    assert "storage" in document["outputs"][0]["facets"]
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
    assert [sorted(d["facets"]) for d in start["outputs"]] == [
        ["columnLineage", "schema", "storage"]
    ] * 2


# --- columns and their edges ----------------------------------------------------------------------


def wide(inputs=30, outputs=10, columns=20):
    """Make a task that joins two inputs into each output: a third of the inputs is in no edge."""

    def table(kind, number):
        return DatasetName("s3://lake", f"{kind}{number:02}")

    schema = {
        "schema": raw({"fields": [{"name": f"c{n}", "type": "string"} for n in range(columns)]})
    }
    sums = (
        Transformation(DIRECT, "TRANSFORMATION", "(left_side.c + right_side.c)", masking=False),
    )
    return TaskLineage(
        Outcome.COMPLETE,
        tuple(LineageDataset(table("in", n), facets=schema) for n in range(inputs)),
        tuple(
            LineageDataset(
                table("out", n),
                facets=schema,
                columns=ColumnLineage(
                    {
                        f"c{c}": {Column(table("in", 2 * n + m), f"c{c}"): sums for m in range(2)}
                        for c in range(columns)
                    }
                ),
            )
            for n in range(outputs)
        ),
    )


def columns_of(document, side):
    return {(d["name"], field) for d in document[side] for field in names_of(d)}


def named_in(document):
    """Give the columns that edges lead to, and those that they come from."""
    facets = {o["name"]: o["facets"].get("columnLineage") for o in document["outputs"]}
    written = {(name, column) for name, f in facets.items() if f for column in f["fields"]}
    entries = [
        entry
        for facet in facets.values()
        if facet
        for entry in (
            *facet["dataset"],
            *(s for f in facet["fields"].values() for s in f["inputFields"]),
        )
    ]
    return written, {(entry["name"], entry["field"]) for entry in entries}


def test_columns_go_so_that_as_much_column_lineage_as_possible_stays():
    full = event(wide(), UNLIMITED)
    for share, outputs in ((0.75, 10), (0.5, 10), (0.35, 6), (0.2, 3)):
        less = event(wide(), int(size(full) * share))
        assert sum("columnLineage" in o["facets"] for o in less["outputs"]) == outputs
        written, read = named_in(less)
        # Only of the last that went the columns may be left, because nothing else has to go.
        assert len({name for name, _ in columns_of(less, "outputs") - written}) <= 1
        assert len({name for name, _ in columns_of(less, "inputs") - read}) <= 2


def test_the_columns_of_a_nested_value_are_those_of_the_column_that_it_is_in():
    nested = LineageDataset(
        DatasetName("s3://lake", "out"),
        facets={
            "schema": raw({"fields": [{"name": "id"}, {"name": "unused", "type": "i" * 4096}]})
        },
        columns=ColumnLineage({"id": {Column(SOURCE, "item.id"): (Transformation(DIRECT),)}}),
    )
    read = {"schema": raw({"fields": [{"name": "item"}, {"name": "price"}]})}
    lineage = TaskLineage(Outcome.COMPLETE, (LineageDataset(SOURCE, facets=read),), (nested,))
    less = event(lineage, size(event(lineage, UNLIMITED)) - 1)
    assert [names_of(d) for d in less["inputs"] + less["outputs"]] == [["item"], ["id"]]


# --- whoever has a bound --------------------------------------------------------------------------


def full_event(lineage=LARGE, degradations=()):
    return event(replace(lineage, degradations=degradations), UNLIMITED)


def test_an_event_is_fitted_into_any_bound_and_names_the_option_that_set_it():
    full = full_event()
    less = fitted(full, 48 * 1024, "[sparklineage] max_event_bytes")
    assert size(less) <= 48 * 1024
    assert dropped_messages(less)
    assert all(
        "than [sparklineage] max_event_bytes allows; raise it" in m for m in dropped_messages(less)
    )
    assert less["run"]["runId"] == full["run"]["runId"]


def test_a_sentence_does_not_advise_to_raise_a_bound_that_is_no_option():
    messages = dropped_messages(fitted(full_event(), 48 * 1024, "an XCom of 48 KiB"))
    assert messages
    assert all(m.endswith("than an XCom of 48 KiB allows.") for m in messages)


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


def test_outputs_without_column_lineage_are_named_while_they_are_few():
    def sentences(share):
        less = event(wide(), int(size(event(wide(), UNLIMITED)) * share))
        capture = less["run"]["facets"]["sparkLineage_capture"]
        return [d for d in capture["degradations"] if "The column lineage" in d["message"]]

    assert [d["dataset"]["name"] for d in sentences(0.35)] == ["out00", "out01", "out02", "out03"]
    [of_many] = sentences(0.2)
    assert of_many["message"].startswith(
        "The column lineage of 7 outputs (s3://lake/out00, s3://lake/out01, s3://lake/out02, "
        "s3://lake/out03, s3://lake/out04 and 2 more) were left out: they are more than "
    )
    assert "dataset" not in of_many


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
        def __init__(self, event, cost):
            measured.append(event)
            super().__init__(event, cost)

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
    assert real <= MeasuredEvent(full).size <= real + SLACK
    assert not is_surely_within(full, real - 1)
    assert is_surely_within(full, 7 * real + SLACK)


@few
@given(st.integers(0, 30_000))
def test_an_edge_keeps_its_columns_and_they_stand_in_the_place_of_no_edge(limit):
    full, document = event(LARGE, UNLIMITED), event(LARGE, limit)
    written, read = named_in(document)
    assert written & columns_of(full, "outputs") <= columns_of(document, "outputs")
    assert read & columns_of(full, "inputs") <= columns_of(document, "inputs")
    if sum(lineage_of(document, n) is None for n in range(2)) == 1:  # the other's edges had no room
        assert columns_of(document, "inputs") <= columns_of(full, "inputs") - {(SOURCE.name, "f1")}


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
