"""Events of any shape: nothing raises, a wrong part costs that part only, and DuckDB reads all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_sparklineage.event.model import (
    ColumnLineage,
    Event,
    Schema,
    _Fitting,
    decoder,
)
from airflow_provider_sparklineage.history import tables
from airflow_provider_sparklineage.history.facts import Line, Reason, facts_of
from tests.unit.history.facts.events import dataset, event, ours, part
from tests.unit.history.facts.test_runs import AIRFLOW

GOLDEN = Path(__file__).parents[3] / "golden"
EDGE = {
    "namespace": "file",
    "name": "/lake/orders",
    "field": "amount",
    "transformations": [{"type": "DIRECT", "subtype": "IDENTITY", "masking": False}],
}
CONDITION = {
    "type": "binary",
    "operator": "AND",
    "left": {"type": "location", "locations": ["/lake/orders/dt=1"]},
    "right": {
        "type": "compare",
        "left": {"type": "field", "field": "a"},
        "comparison": "EQUAL",
        "right": {"type": "literal", "value": "1"},
    },
}
COUNTED = {"count": 3, "first": "dt=1", "last": "dt=3"}


def full() -> dict[str, Any]:
    """Give an event that has all that is read."""
    inputs = dataset(inputFacets={**part({"dt": "1"}), "inputStatistics": {"rowCount": 1}})
    filtered = dataset("/lake/x", inputFacets={"subset": {"inputCondition": CONDITION}})
    output = dataset(
        "/lake/report",
        facets={
            "lifecycleStateChange": {"lifecycleStateChange": "OVERWRITE"},
            "sparkLineage_partitions": COUNTED,
            "columnLineage": {"fields": {"a": {"inputFields": [EDGE]}}, "dataset": [EDGE]},
            "dataSource": {"_producer": "x", "name": "file"},
        },
        outputFacets={"outputStatistics": {"rowCount": 1, "size": 2}},
    )
    entry = {"witness": "both", "accessed": "part", "writes": 2, "failed": False}
    checked = {"dataset": {"namespace": "file", "name": "/lake/x"}, "observed": COUNTED}
    document = ours(
        reads=[(inputs, entry), (filtered, entry)],
        writes=[(output, entry)],
        check={"status": "matched", "reads": [checked], "writes": []},
        sending={"started": "2024-10-15T00:00:00Z", "runFacets": {"airflow": AIRFLOW}},
    )
    document["run"]["facets"]["parent"] = {"run": {"runId": "p"}, "root": {"run": {"runId": "r"}}}
    document["run"]["facets"]["nominalTime"] = {"nominalStartTime": "2024-10-15T00:00:00Z"}
    return document


def paths(value: Any, path: tuple = ()) -> list[tuple]:
    """Give the paths of all parts of a document."""
    parts = value.items() if isinstance(value, dict) else ()
    parts = enumerate(value) if isinstance(value, list) else parts
    return [path] * bool(path) + [p for key, one in parts for p in paths(one, (*path, key))]


def with_other(document: Any, path: tuple, other: Any) -> Any:
    copy = json.loads(json.dumps(document))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = other
    return copy


PATHS = paths(full())
NEEDED = {
    ("run",),
    ("job",),
    ("run", "runId"),
    ("job", "name"),
    ("job", "namespace"),
    ("eventTime",),
}
WRONG = [None, 7, -0.5, True, "text", [], {}, [None, 7, "x", {}, []], {"a": None}, 2**70, "x" * 99]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: ".".join(map(str, path)))
def test_one_wrong_part_costs_no_more_than_itself(path):
    for wrong in WRONG:
        found = facts_of(json.dumps(with_other(full(), path, wrong)).encode(), "")
        if isinstance(found, Reason):
            assert path in NEEDED
            continue
        line = json.loads(found.text)
        assert line["run_id"]
        if path[0] != "outputs":
            assert line["columns"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(PATHS), JSON), max_size=4))
def test_nothing_raises_whatever_is_where(changes):
    document = full()
    for path, other in changes:
        try:
            document = with_other(document, path, other)
        except (KeyError, IndexError, TypeError):  # what is above was changed before
            continue
    found = facts_of(json.dumps(document).encode(), "source")
    assert isinstance(found, Line | Reason)
    if isinstance(found, Line):
        assert json.loads(found.text)["source"] == "source"


@settings(deadline=None)
@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_nothing_raises_whatever_the_text_is(text):
    assert isinstance(facts_of(text, ""), Line | Reason)


class _PartByPart(_Fitting):
    """Tries nothing in one go that has parts."""

    def to(self, value, of):
        has_parts = isinstance(value, dict | list)
        return self._of_parts(value, of) if has_parts else super().to(value, of)


def _decoded(text):
    return msgspec.json.decode(text or b"{}")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(full()).encode(),
        json.dumps(event()).encode(),
        *sorted((GOLDEN / "spark-4.0").glob("*.ndjson"))[0].read_bytes().splitlines()[:20],
    ],
)
def test_an_event_is_the_same_whether_it_is_read_in_one_go_or_part_by_part(text):
    fitting = _PartByPart()
    whole = decoder(Event).decode(text)
    found = fitting.to(json.loads(text), Event)
    for output, expected in zip(found.outputs or (), whole.outputs or (), strict=True):
        columns = fitting.to(_decoded(output.facets.column_lineage), ColumnLineage)
        assert columns == expected.column_lineage
        output.facets.column_lineage = expected.facets.column_lineage
    for one, expected in zip(found.datasets, whole.datasets, strict=True):
        if one.facets:
            schema = fitting.to(_decoded(one.facets.schema), Schema)
            assert (schema.fields or []) == expected.columns
            one.facets.schema = expected.facets.schema
    assert found == whole
    assert fitting.left_out == 0


def test_parts_that_were_left_out_are_counted():
    document = full()
    document["inputs"].append("orders")
    document["outputs"][0]["facets"]["columnLineage"]["fields"]["a"]["inputFields"].append(7)
    assert facts_of(json.dumps(document).encode(), "").left_out == 2


def test_what_pythons_own_json_writes_is_read():
    document = event(outputs=[dataset("half \ud83d of a pair", facets={"x": float("nan")})])
    line = json.loads(facts_of(json.dumps(document).encode(), "").text)
    assert line["accesses"][0]["name"] == "half ? of a pair"


def test_events_of_datasets_and_of_jobs_are_no_run_events():
    for kept in ("dataset", "job"):
        document = {"eventTime": "2024-10-15T00:00:00Z", kept: {"namespace": "n", "name": "x"}}
        assert isinstance(facts_of(json.dumps(document).encode(), ""), Reason)


def test_a_deep_condition_costs_its_event_and_nothing_else():
    condition: dict[str, Any] = {"type": "compare"}
    for _ in range(400):
        condition = {
            "type": "binary",
            "operator": "AND",
            "left": condition,
            "right": condition | {},
        }
        condition["right"] = {"type": "compare"}
    document = event(inputs=[dataset(inputFacets={"subset": {"inputCondition": condition}})])
    assert isinstance(facts_of(json.dumps(document).encode(), ""), Line)


def test_a_hundred_thousand_partitions_are_as_many_accesses():
    days = [{"dt": str(number), "h": "0"} for number in range(100_000)]
    found = facts_of(json.dumps(event(inputs=[dataset(inputFacets=part(*days))])).encode(), "")
    assert found.text.count(b'"cell"') == 100_000


AWKWARD = ["nul \0", "line\nbreak", "quote \" ' \\", "ü 😀 \u2028", "%2F=/", "", " ", "{}", "null"]


def test_duckdb_reads_every_line_by_the_columns_of_the_tables(tmp_path):
    documents = [full(), event()] + [
        event(
            job={"namespace": text, "name": f"job {text}"},
            inputs=[dataset(f"/lake/{text}", inputFacets=part({"c": text, text or "d": None}))],
        )
        for text in AWKWARD
    ]
    lines = [facts_of(json.dumps(document).encode(), "a\tb").text for document in documents]
    (tmp_path / "facts.ndjson").write_bytes(b"".join(lines))
    columns = {column.name: column.type for column in tables.FACTS.columns}
    found = duckdb.execute(
        "FROM read_json(?, format='newline_delimited', columns=?)",
        [str(tmp_path / "facts.ndjson"), columns],
    )
    names = [column[0] for column in found.description]
    rows = [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    for row, line in zip(rows, map(json.loads, lines), strict=True):
        assert row["job"] == line["job"]
        assert row["event_time"].isoformat(timespec="microseconds") == line["event_time"]
        for access, written in zip(row["accesses"], line["accesses"], strict=True):
            assert {key: value for key, value in access.items() if value is not None} == written
