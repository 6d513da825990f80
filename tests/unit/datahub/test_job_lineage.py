"""The lineage of a job in DataHub: datasets, columns, conditions, the SQL that it ran."""

from __future__ import annotations

import pytest

from airflow_provider_sparklineage.datahub.configuration import Conversion
from airflow_provider_sparklineage.datahub.lineage import lineage
from airflow_provider_sparklineage.event.model import PlainEvent, PlainJob, fitted
from tests.conftest import OF_ONE_SPARK
from tests.unit.datahub.events import column_lineage, dataset, event, schema, source, subject
from tests.unit.datahub.patching import Stored
from tests.unit.datahub.sdk import checked
from tests.unit.datahub.test_upstreams import ORDERS, RATES, REVENUE, short

ASPECT = "dataJobInputOutput"


def proposal(of, name=ASPECT):
    [found] = [one for one in checked(lineage(of)) if one.aspect_name == name]
    return found


def in_short(lineages):
    return [
        (
            one["transformOperation"],
            [short(urn) for urn in one["upstreams"]],
            one["downstreamType"],
            [short(urn) for urn in one["downstreams"]],
        )
        for one in lineages
    ]


def destinations(edges):
    return [short(one["destinationUrn"]) for one in edges]


@pytest.fixture
def revenue():
    return subject(inputs=(ORDERS, RATES), outputs=(REVENUE,))


def test_a_job_has_its_datasets_and_columns(revenue):
    found = proposal(revenue)

    assert not found.is_patch
    assert destinations(found.aspect["inputDatasetEdges"]) == ["orders", "rates"]
    assert destinations(found.aspect["outputDatasetEdges"]) == ["revenue"]
    assert [*map(short, found.aspect["outputDatasetFields"])] == ["revenue.region", "revenue.total"]
    assert [*map(short, found.aspect["inputDatasetFields"])] == [
        *("orders.status", "orders.day", "rates.currency"),
        *("orders.region", "orders.amount", "rates.rate"),
    ]


def test_each_condition_of_an_output_is_there_once_for_all_of_its_columns(revenue):
    both = ["revenue.region", "revenue.total"]

    assert in_short(proposal(revenue).aspect["fineGrainedLineages"]) == [
        ("INDIRECT:FILTER", ["orders.status", "orders.day"], "FIELD_SET", both),
        ("INDIRECT:JOIN", ["orders.status", "rates.currency"], "FIELD_SET", both),
        ("DIRECT:IDENTITY", ["orders.region"], "FIELD", ["revenue.region"]),
        ("DIRECT:AGGREGATION", ["orders.amount", "rates.rate"], "FIELD", ["revenue.total"]),
    ]


def test_conditions_are_of_columns_of_which_nothing_else_is_known():
    of = subject(
        outputs=(
            dataset(
                "counts",
                schema=schema("n"),
                columnLineage=column_lineage(source("orders", "day", "INDIRECT:FILTER")),
            ),
        )
    )

    assert in_short(proposal(of).aspect["fineGrainedLineages"]) == [
        ("INDIRECT:FILTER", ["orders.day"], "FIELD_SET", ["counts.n"])
    ]


def test_indirect_lineage_can_be_left_out():
    of = subject(Conversion(indirect=False), inputs=(ORDERS,), outputs=(REVENUE,))

    operations = {one[0] for one in in_short(proposal(of).aspect["fineGrainedLineages"])}
    assert operations == {"DIRECT:IDENTITY", "DIRECT:AGGREGATION"}


def test_a_column_is_not_made_of_itself_but_of_others_of_its_dataset():
    merged = column_lineage(
        total=[source("t", "total", "DIRECT:IDENTITY"), source("t", "more", "DIRECT:AGGREGATION")]
    )
    of = subject(outputs=(dataset("t", columnLineage=merged),))

    assert in_short(proposal(of).aspect["fineGrainedLineages"]) == [
        ("DIRECT:AGGREGATION", ["t.more"], "FIELD", ["t.total"])
    ]


def test_a_dataset_that_is_there_twice_is_one_edge():
    found = proposal(subject(inputs=(ORDERS, ORDERS), outputs=(REVENUE, REVENUE)))

    assert destinations(found.aspect["inputDatasetEdges"]) == ["orders"]
    assert destinations(found.aspect["outputDatasetEdges"]) == ["revenue"]
    assert len(found.aspect["fineGrainedLineages"]) == 4


def test_a_run_that_failed_adds_its_datasets_to_what_is_known(revenue):
    failed = subject(inputs=(dataset("late"),), outputs=(dataset("other"),), state="FAIL")
    before = proposal(revenue)

    stored = Stored().take([before, proposal(failed)])

    assert proposal(failed).is_patch
    [aspect] = stored.values()
    assert destinations(aspect["inputDatasetEdges"]) == ["orders", "rates", "late"]
    assert destinations(aspect["outputDatasetEdges"]) == ["revenue", "other"]
    assert aspect["fineGrainedLineages"] == before.aspect["fineGrainedLineages"]


def test_a_run_that_failed_can_be_the_first_one():
    failed = proposal(subject(inputs=(ORDERS,), state="ABORT"))
    stored = Stored().take([failed])

    checked([failed._replace(aspect=stored[(failed.urn, ASPECT)], is_patch=False)])


def test_a_job_comes_after_others_whether_it_has_datasets_or_not():
    first = subject(inputs=(ORDERS,), outputs=(REVENUE,), after=("extract", "old"))
    without = subject(after=("extract", "new"))

    assert tasks(proposal(first).aspect) == ["extract", "old"]

    [aspect] = Stored().take([proposal(first), proposal(without)]).values()
    assert tasks(aspect) == ["extract", "new"]
    assert aspect["fineGrainedLineages"] == proposal(first).aspect["fineGrainedLineages"]

    alone = proposal(without)
    [aspect] = Stored().take([alone]).values()
    checked([alone._replace(aspect=aspect, is_patch=False)])


def tasks(aspect):
    urns = [one["destinationUrn"] for one in aspect["inputDatajobEdges"]]
    return [urn.rpartition(",")[2].rstrip(")") for urn in urns]


def test_an_event_of_no_job_has_the_lineage_of_its_datasets_alone():
    of = subject(inputs=(ORDERS,), outputs=(REVENUE,), sql=SQL)
    of.event.job = PlainJob()

    assert {one.entity_type for one in checked(lineage(of))} == {"dataset"}


@pytest.mark.parametrize("state", ["COMPLETE", "FAIL"])
def test_a_run_of_which_nothing_is_known_leaves_what_is(state):
    assert checked(lineage(subject(state=state))) == []


@pytest.mark.parametrize("state", ["START", "RUNNING", "OTHER"])
def test_a_run_that_has_not_ended_has_no_lineage(state):
    of = subject(inputs=(ORDERS,), outputs=(REVENUE,), state=state, sql={"query": "SELECT 1"})

    assert checked(lineage(of)) == []


def test_columns_that_are_too_many_for_one_message_are_on_their_datasets_alone():
    columns = {f"c{n}": [source("orders", f"c{n}", "DIRECT:IDENTITY")] for n in range(6000)}
    facet = column_lineage(source("orders", "day", "INDIRECT:FILTER"), **columns)
    small = column_lineage(a=[source("orders", "a", "DIRECT:IDENTITY")])
    of = subject(
        outputs=(dataset("wide", columnLineage=facet), dataset("small", columnLineage=small))
    )

    found = proposal(of)

    assert [one[0] for one in in_short(found.aspect["fineGrainedLineages"])] == [
        "INDIRECT:FILTER",
        "DIRECT:IDENTITY",
    ]
    wide_edge, small_edge = found.aspect["outputDatasetEdges"]
    assert "On the dataset" in wide_edge["properties"]["columnLineage"]
    assert "properties" not in small_edge
    assert len(found.text()) < 2_500_000


def test_conditions_take_as_much_as_columns_and_conditions_together():
    def size(width):
        columns = {f"c{n}": [source("wide", f"c{n}", "DIRECT:IDENTITY")] for n in range(width)}
        conditions = [source("wide", f"c{n}", "INDIRECT:JOIN") for n in range(width)]
        of = dataset("too", columnLineage=column_lineage(*conditions, **columns))
        return sum(len(one.text()) for one in lineage(subject(outputs=(of,))))

    assert size(800) < 2.2 * size(400)


# --- SQL ------------------------------------------------------------------------------------------

SQL = {"query": "INSERT INTO revenue SELECT region, sum(amount) FROM orders GROUP BY 1"}


def test_the_sql_of_a_job_is_its_query_which_its_lineage_names():
    of = subject(inputs=(ORDERS,), outputs=(REVENUE,), sql=SQL)
    properties, subjects = proposal(of, "queryProperties"), proposal(of, "querySubjects")

    assert properties.aspect["statement"] == {"value": SQL["query"], "language": "SQL"}
    assert properties.aspect["origin"] == of.job
    assert [short(one["entity"]) for one in subjects.aspect["subjects"]] == ["orders", "revenue"]

    stored = Stored().take(one for one in lineage(of) if one.aspect_name == "upstreamLineage")
    [aspect] = stored.values()
    every = (*aspect["upstreams"], *aspect["fineGrainedLineages"])
    assert {one["query"] for one in every} == {properties.urn}


def test_another_text_of_the_same_job_is_the_same_query_so_that_lineage_does_not_pile_up():
    every = [
        subject(
            outputs=(REVENUE,), sql={"query": f"SELECT * FROM orders WHERE dt = '2026-01-{day}'"}
        )
        for day in range(10, 20)
    ]
    aspects = [one for of in every for one in lineage(of) if one.aspect_name == "upstreamLineage"]
    once = [one for one in lineage(every[-1]) if one.aspect_name == "upstreamLineage"]

    assert Stored().take(aspects) == Stored().take(once)
    assert len({proposal(of, "queryProperties").urn for of in every}) == 1


def test_jobs_have_queries_of_their_own():
    one, other = (subject(outputs=(REVENUE,), sql=SQL, job=job) for job in ("shop.a", "shop.b"))

    assert proposal(one, "queryProperties").urn != proposal(other, "queryProperties").urn


@pytest.mark.parametrize(
    "sql",
    [None, {}, {"query": None}, {"query": ["SELECT 1"]}, {"query": " \n"}, "SELECT 1"],
    ids=str,
)
def test_what_is_no_sql_makes_no_query(sql):
    made = checked(lineage(subject(outputs=(REVENUE,), sql=sql)))

    assert not any(one.entity_type == "query" for one in made)


def test_a_statement_of_any_length_fits():
    of = subject(sql={"query": "SELECT " + "a, " * 1_000_000})

    assert len(proposal(of, "queryProperties").text()) < 110_000


# --- recorded -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("spark", "case"), OF_ONE_SPARK, ids=lambda value: value)
def test_each_recorded_application_has_its_conditions_once(recorded, spark, case):
    merged = recorded(case, spark).event
    of = subject()
    of.event = fitted(event(tuple(merged["inputs"]), tuple(merged["outputs"])), PlainEvent)

    made = {one.aspect_name: one for one in checked(lineage(of))}

    lineages = made[ASPECT].aspect["fineGrainedLineages"] if ASPECT in made else []
    several = [one for one in lineages if one["downstreamType"] == "FIELD_SET"]
    assert len(several) == sum(map(kinds_of_conditions, merged["outputs"]))


def kinds_of_conditions(output):
    """Count the different subtypes among an output's conditions."""
    conditions = output["facets"].get("columnLineage", {}).get("dataset", [])
    return len({t["subtype"] for one in conditions for t in one["transformations"]})
