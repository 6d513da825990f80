"""A merged event in texts: of its run, its datasets and their columns, short and true."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.event import descriptions
from airflow_provider_sparklineage.event.descriptions import (
    MAX_OF_COLUMN,
    MAX_OF_DATASET,
    MAX_OF_RUN,
    Descriptions,
)
from airflow_provider_sparklineage.event.model import name_of
from airflow_provider_sparklineage.event.pipeline import event_of, merged_event
from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.representation import Representation
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER, OBSERVED, RECORDED

DAY = "flight_date=2013-01-08"
DAILY = DatasetName("file", "/lake/daily_delays")


def source(table, field, description="", kind="DIRECT", subtype="IDENTITY"):
    made = {"type": kind, "subtype": subtype, "description": description}
    return {
        "namespace": "file",
        "name": f"/lake/{table}",
        "field": field,
        "transformations": [made],
    }


def computed(description, *fields, table="weather", **kind):
    return [source(table, f, description, subtype="AGGREGATION", **kind) for f in fields]


def entry(name, part="", **more):
    dataset = {"namespace": "file", "name": f"/lake/{name}"}
    accessed = {"dataset": dataset, "accessed": "part" if part else "all", **more}
    return {**accessed, "summary": f"{name} {part or 'all of it'}", "status": "matched"}


def event(columns=None, *, reads=(), writes=(), dimensions=(), **header):
    """Make an event of one output, ``daily_delays``, or of the datasets of a partition check."""
    seen = [("read", e) for e in reads] + [("write", e) for e in writes]
    names = [{**e["dataset"], "facets": {}} for _, e in seen]
    fields = {c: {"inputFields": of} for c, of in (columns or {}).items() if of is not None}
    output = {
        **DAILY._asdict(),
        "facets": {
            "schema": {"fields": [{"name": c, "type": "int"} for c in columns or ()]},
            "columnLineage": {"fields": fields, "dataset": []},
            "sparkLineage_partitions": {"dimensions": list(dimensions)},
        },
    }
    capture = {
        "datasets": [
            {"dataset": e["dataset"], "side": side, "witness": "both", **_marks(e)}
            for side, e in (*seen, *([] if writes else [("write", {"dataset": DAILY._asdict()})]))
        ]
    }
    check = {"reads": list(reads), "writes": list(writes)}
    return {
        "eventType": "COMPLETE",
        "eventTime": "2026-11-23T04:14:59.5+01:00",
        "job": {"name": "flights.daily_delays", "facets": {}},
        "run": {"facets": {"sparkLineage_capture": capture, "sparkLineage_partitionCheck": check}},
        "inputs": names[: len(reads)],
        "outputs": [output, *(n for n in names[len(reads) :] if n["name"] != DAILY.name)],
        **header,
    }


def _marks(e):
    return {key: e[key] for key in ("failed", "witness") if key in e}


def column_text(sources, **more):
    [text] = (
        Descriptions(event({"x": sources}, **more)).of_datasets()[Side.WRITE, DAILY][1].values()
    )
    return text


@pytest.mark.parametrize(
    ("sources", "text"),
    [
        ([source("flights", "carrier", "carrier")], "from flights.carrier"),
        ([source("flights", "carrier", "carrier AS x")], "from flights.carrier"),
        (
            computed("round(avg(visib), 1) AS avg_visibility", "visib"),
            "= round(avg(visib), 1), from weather.visib",
        ),
        (
            computed("a + b AS _groupingexpression AS `x y`", "a", "b"),
            "= a + b, from weather.a, weather.b",
        ),
        (
            [*computed("sum(a)", "a"), *computed("sum(b)", "b", table="flights")],
            "= sum(a); sum(b), from weather.a, flights.b",
        ),
        (
            [*computed("if(a, b, 0)", "b"), *computed("if(a, b, 0)", "a", kind="INDIRECT")],
            "= if(a, b, 0), from weather.b",
        ),
        (computed("RANK()", "a", kind="INDIRECT"), "= RANK(), depends on weather.a"),
        (computed("", "a"), "from weather.a"),
        (
            computed("greatest(*)", *"abcdef"),
            "= greatest(*), from weather.a, weather.b, weather.c, weather.d and 2 more",
        ),
    ],
    ids=[
        "a copy",
        "a copy by another name",
        "made of one",
        "aliases go",
        "made in two actions",
        "what only decides is no source",
        "only what decides",
        "no expression is known",
        "many sources",
    ],
)
def test_a_column_says_what_it_is_made_of(sources, text):
    assert column_text(sources) == text


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        ("date_add('2013-01-08', n)", "date_add(…, n)"),
        ("date_add(2013-01-08 00:00:00, n)", "date_add(…, n)"),
        ("concat(n, '-20130108T05')", "concat(n, …)"),
        ("n + 1700000000", "n + …"),
        ("round(n * 1.19, 2)", "round(n * 1.19, 2)"),
        ("date_format(n, 'yyyy-MM-dd')", "date_format(n, 'yyyy-MM-dd')"),
        ("if(n > 2013, 'it''s', n)", "if(n > 2013, 'it''s', n)"),
    ],
)
def test_a_columns_text_is_the_same_in_each_run(expression, shown):
    assert column_text(computed(expression, "n")) == f"= {shown}, from weather.n"


def test_a_partition_column_says_so_and_not_of_which_literal_it_is():
    dimension = {"fields": ["x"], "transform": "identity"}
    made = computed("CAST('05' AS int)", "hour")
    assert column_text(made, dimensions=[dimension]) == "partition column, from weather.hour"
    assert column_text(None, dimensions=[dimension]) == "partition column"
    by_day = {"fields": ["x"], "transform": "day"}
    assert column_text(None, dimensions=[by_day]) == "partition column by day"


def test_a_column_of_which_nothing_is_known_has_no_text():
    described = Descriptions(event({"x": None})).of_datasets()
    assert described[Side.WRITE, DAILY].columns == {}


WHOLE = event(
    {"visib": computed("avg(visib)", "visib"), "n": [source("flights", "n")]},
    reads=[entry("flights", DAY), entry("weather", f"{DAY} … (2 partitions)"), entry("ports")],
    writes=[entry("daily_delays", DAY), entry("staging")],
)


def test_datasets_say_which_part_was_accessed_and_by_whom():
    texts = {(s, n.name): t.text for (s, n), t in Descriptions(WHOLE).of_datasets().items()}
    by = "by flights.daily_delays, 2026-11-23 03:14 UTC"
    assert texts == {
        ("read", "/lake/flights"): f"{DAY} read {by}",
        ("read", "/lake/weather"): f"{DAY} … (2 partitions) read {by}",
        ("read", "/lake/ports"): f"Read {by}",
        ("write", "/lake/daily_delays"): f"{DAY} written {by}; from flights {DAY}, weather {DAY} … "
        "(2 partitions)",
        ("write", "/lake/staging"): f"Written {by}",
    }


def test_a_run_says_what_it_wrote_and_read_and_what_columns_are_made_of():
    assert Descriptions(WHOLE).of_run() == (
        f"2026-11-23 03:14 UTC: wrote daily_delays {DAY}, staging; "
        f"read flights {DAY}, weather {DAY} … (2 partitions), ports. "
        "In daily_delays: visib = avg(visib), from weather.visib · n from flights.n."
    )


def test_a_run_says_what_was_not_expected_and_what_is_missing():
    other = {"summary": "flight_date=2013-01-07", "count": 1}
    failed = event(writes=[entry("daily_delays", DAY, missing=other)], eventType="FAIL")
    assert Descriptions(failed).of_run() == (
        f"2026-11-23 03:14 UTC (the run failed): wrote daily_delays {DAY}; "
        "missing: daily_delays flight_date=2013-01-07."
    )


def test_the_lines_of_a_log_name_what_was_read_written_and_mismatched():
    assert Descriptions(WHOLE).of_log() == [
        f"read: flights {DAY}, weather {DAY} … (2 partitions), ports",
        f"wrote: daily_delays {DAY}, staging",
        "mismatched: nothing was compared",
    ]
    nothing = {**event(), "outputs": []}
    assert Descriptions(nothing).of_log()[:2] == ["read: nothing seen", "wrote: nothing seen"]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ("matched", "none"),
        ("undeclared", "none, as no partitions were expected"),
        ("unobserved", "not known, as not all accesses were seen"),
    ],
)
def test_the_line_on_mismatches_says_why_there_is_none(status, text):
    checked = event(writes=[entry("daily_delays", DAY)])
    checked["run"]["facets"]["sparkLineage_partitionCheck"]["status"] = status
    assert Descriptions(checked).of_log()[2] == f"mismatched: {text}"


def test_the_line_on_mismatches_names_partitions():
    other = {"summary": "flight_date=2013-01-07", "count": 1}
    wrong = event(writes=[entry("daily_delays", DAY, missing=other, unexpected=other)])
    assert Descriptions(wrong).of_log()[2] == (
        "mismatched: unexpected daily_delays flight_date=2013-01-07; "
        "missing daily_delays flight_date=2013-01-07"
    )


def test_a_run_of_which_nobody_saw_anything_claims_nothing():
    nothing = {**event(), "outputs": []}
    assert Descriptions(nothing).of_run() == "2026-11-23 03:14 UTC: no read or write was seen."


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("torn_event", "; there may be more (sparkLineage_capture has the reason)."),
        ("columns_of_tomorrow", "."),
        ("column_incomplete", "."),
    ],
    ids=["the set-up", "of another version", "a note"],
)
def test_a_run_says_that_it_may_have_done_more(code, hint):
    of_run = event(writes=[entry("daily_delays", DAY)])
    capture = of_run["run"]["facets"]["sparkLineage_capture"]
    capture["degradations"] = [{"code": code, "message": "Why."}]
    assert Descriptions(of_run).of_run() == f"2026-11-23 03:14 UTC: wrote daily_delays {DAY}{hint}"


@pytest.mark.parametrize(
    "marks", [{"failed": True}, {"witness": "declared"}], ids=["failed", "only declared"]
)
def test_what_was_not_written_is_not_described(marks):
    unwritten = event({"x": [source("flights", "x")]}, writes=[entry("daily_delays", DAY, **marks)])
    assert Descriptions(unwritten).of_datasets() == {}


def test_before_the_job_has_run_nothing_is_described():
    start = {
        "run": {"facets": {}},
        "job": {"facets": {}},
        "inputs": [],
        "outputs": [{**DAILY._asdict()}],
    }
    assert Descriptions(start).of_datasets() == {}


@pytest.mark.parametrize(
    ("spark", "case", "observed"),
    [
        pytest.param(s, case, seen, marks=[] if s == "4.0" else [pytest.mark.long])
        for cases, seen in ((RECORDED, False), (OBSERVED, True))
        for s, case in cases
    ],
)
def test_texts_of_recorded_runs_are_short_and_each_in_one_line(recorded, spark, case, observed):
    of_case = recorded(case, spark)
    bundle = of_case.bundle(is_observed=observed)
    made = merged_event(bundle, of_case.observed if observed else of_case.lineage)
    descriptions = Descriptions(made)
    assert len(descriptions.of_run()) <= MAX_OF_RUN
    for described in descriptions.of_datasets().values():
        assert 0 < len(described.text) <= MAX_OF_DATASET
        assert "\n" not in described.text
        for text in described.columns.values():
            assert 0 < len(text) <= MAX_OF_COLUMN


def test_hidden_literals_stay_hidden(recorded):
    redacted = Representation(redact_literals=True)
    lineage = recorded("frame_queries").lineage
    hidden = event_of(lineage, ReadReport(), redacted, header=HEADER)
    texts = str(Descriptions(hidden).of_datasets())
    assert "coalesce(segment, ?)" in texts
    assert "'none'" not in texts


def test_each_dataset_is_looked_at_as_often_in_an_event_of_many(monkeypatch):
    def looks(count):
        seen = []
        monkeypatch.setattr(descriptions, "name_of", lambda d: seen.append(d) or name_of(d))
        entries = [entry(f"t{n}") for n in range(count)]
        assert len(Descriptions(event(reads=entries, writes=entries)).of_datasets()) == 2 * count
        return len(seen) / count

    assert looks(60) <= looks(20)
