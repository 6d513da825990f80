"""The lineage of an output in DataHub: what its server makes of our patches and others' edges."""

from __future__ import annotations

import json

import pytest

from airflow_provider_sparklineage.datahub.configuration import Conversion
from airflow_provider_sparklineage.datahub.lineage import lineage
from airflow_provider_sparklineage.datahub.proposals import Proposal, with_stored
from airflow_provider_sparklineage.event.model import PlainEvent, fitted
from tests.conftest import OF_ONE_SPARK
from tests.unit.datahub.events import column_lineage, dataset, event, schema, source, subject
from tests.unit.datahub.patching import RefusedError, Stored, patched
from tests.unit.datahub.sdk import checked, require_sdk

ASPECT = "upstreamLineage"
IDENTITY, AGGREGATION = "DIRECT:IDENTITY", "DIRECT:AGGREGATION"
FILTER, JOIN = "INDIRECT:FILTER", "INDIRECT:JOIN"


def upstream_patches(of):
    return [one for one in checked(lineage(of)) if one.aspect_name == ASPECT]


def stored(*subjects):
    """Give what the server has of the only output of several events, one after another."""
    patches = [one for of in subjects for one in upstream_patches(of)]
    [aspect] = Stored().take(patches).values()
    [output] = {one.urn for one in patches}
    checked([Proposal(output, ASPECT, aspect)])
    return aspect


def column_edges(aspect):
    """Give the edges between columns of a stored aspect, in short."""
    return {
        (one["transformOperation"], *map(short, one["downstreams"])): {
            *map(short, one["upstreams"])
        }
        for one in aspect["fineGrainedLineages"]
    }


def table_edges(aspect):
    return {short(one["dataset"]): one["type"] for one in aspect["upstreams"]}


def short(urn):
    """`…,lake/orders,PROD),amount)` as `orders.amount`."""
    name, _, rest = urn.rpartition(",PROD)")
    return name.rpartition("lake/")[2] + rest.replace(",", ".").rstrip(")")


ORDERS, RATES = dataset("orders"), dataset("rates")
REVENUE = dataset(
    "revenue",
    schema=schema("region", "total"),
    columnLineage=column_lineage(
        source("orders", "status", FILTER, JOIN),
        source("orders", "day", FILTER),
        source("rates", "currency", JOIN),
        region=[source("orders", "region", IDENTITY)],
        total=[source("orders", "amount", AGGREGATION), source("rates", "rate", AGGREGATION)],
    ),
)


@pytest.fixture
def revenue():
    return subject(inputs=(ORDERS, RATES), outputs=(REVENUE,))


def test_columns_of_one_transformation_are_one_edge(revenue):
    assert column_edges(stored(revenue)) == {
        (IDENTITY, "revenue.region"): {"orders.region"},
        (AGGREGATION, "revenue.total"): {"orders.amount", "rates.rate"},
    }


def test_conditions_are_a_property_of_the_edge_between_the_tables(revenue):
    aspect = stored(revenue)

    assert {short(one["dataset"]): one["properties"] for one in aspect["upstreams"]} == {
        "orders": {"conditions": "INDIRECT:FILTER status, day; INDIRECT:JOIN status"},
        "rates": {"conditions": "INDIRECT:JOIN currency"},
    }
    assert table_edges(aspect) == {"orders": "TRANSFORMED", "rates": "TRANSFORMED"}


def test_conditions_that_are_gone_are_no_property_any_more(revenue):
    facet = column_lineage(total=[source("orders", "amount", AGGREGATION)])
    now = subject(inputs=(ORDERS,), outputs=(dataset("revenue", columnLineage=facet),))

    orders, _ = stored(revenue, now)["upstreams"]

    assert orders["properties"] == {}


def test_an_edge_that_a_person_has_drawn_stays_marked_as_theirs(revenue):
    tables, _ = upstream_patches(revenue)
    orders, _ = patched(None, tables)["upstreams"]
    drawn = {
        "dataset": orders["dataset"],
        "type": "TRANSFORMED",
        "auditStamp": {"time": 1, "actor": "urn:li:corpuser:jane"},
        "created": {"time": 1, "actor": "urn:li:corpuser:jane"},
        "properties": {"source": "UI"},
    }

    now, _ = patched({"upstreams": [drawn]}, tables)["upstreams"]

    assert now["created"] == drawn["created"]
    assert now["properties"] == orders["properties"] | {"source": "UI"}


@pytest.mark.parametrize(
    "stamps",
    [
        {"type": "VIEW", "auditStamp": {"time": 1, "actor": "urn:li:corpuser:jane"}},
        {"type": "VIEW", "auditStamp": {"time": 1, "actor": "urn:li:corpuser:datahub"}},
        {"type": "TRANSFORMED", "auditStamp": {"time": 1, "actor": "urn:li:corpuser:jane"}},
        {
            "type": "TRANSFORMED",
            "auditStamp": {"time": 1, "actor": "urn:li:corpuser:datahub"},
            "created": {"time": 1, "actor": "urn:li:corpuser:jane"},
        },
    ],
    ids=["a view", "a connector's view", "of somebody", "drawn by somebody"],
)
def test_of_an_edge_of_others_only_the_conditions_change(revenue, stamps):
    tables, _ = upstream_patches(revenue)
    orders, rates = patched(None, tables)["upstreams"]
    theirs = {"dataset": orders["dataset"], "query": "urn:li:query:theirs", **stamps}

    now = patched({"upstreams": [theirs]}, with_stored(tables, {"upstreams": [theirs]}))

    assert now["upstreams"] == [{**theirs, "properties": orders["properties"]}, rates]


def test_an_edge_of_ours_is_changed(revenue):
    tables, _ = upstream_patches(revenue)
    aspect = patched(None, tables)
    was = {"upstreams": [{**one, "type": "COPY"} for one in aspect["upstreams"]]}

    assert patched(was, with_stored(tables, was)) == aspect


@pytest.mark.parametrize("aspect", [{}, {"upstreams": None}, {"upstreams": [None, 5, {}]}])
def test_of_what_is_stored_in_another_form_nothing_is_kept(revenue, aspect):
    tables, _ = upstream_patches(revenue)
    assert with_stored(tables, aspect) == tables


def test_the_same_again_changes_nothing(revenue):
    assert stored(revenue, revenue) == stored(revenue)


def test_what_another_job_has_stored_survives(revenue):
    others = {
        "upstreams": [
            {
                "dataset": "urn:li:dataset:(urn:li:dataPlatform:hive,shop.refunds,PROD)",
                "type": "VIEW",
                "auditStamp": {"time": 1, "actor": "urn:li:corpuser:jane"},
            }
        ],
        "fineGrainedLineages": [
            {
                "upstreamType": "FIELD_SET",
                "upstreams": [field("hive", "shop.refunds", "amount")],
                "downstreamType": "FIELD",
                "downstreams": [field("s3", "lake/revenue", "total")],
                "transformOperation": AGGREGATION,
                "query": "urn:li:query:theirs",
                "confidenceScore": 0.5,
            }
        ],
    }
    patches = upstream_patches(revenue)
    aspect = Stored({(patches[0].urn, ASPECT): others}).take(patches)[(patches[0].urn, ASPECT)]

    checked([Proposal(patches[0].urn, ASPECT, aspect)])
    assert others["upstreams"][0] in aspect["upstreams"]
    assert others["fineGrainedLineages"][0] in aspect["fineGrainedLineages"]
    assert len(aspect["upstreams"]) == 3
    assert len(aspect["fineGrainedLineages"]) == 3


def test_two_of_our_jobs_leave_each_other_alone(revenue):
    other = subject(
        inputs=(dataset("refunds"),),
        outputs=(
            dataset(
                "revenue",
                columnLineage=column_lineage(
                    total=[source("refunds", "amount", "DIRECT:TRANSFORMATION")]
                ),
            ),
        ),
        job="shop.refunds",
    )

    both = stored(revenue, other)

    assert table_edges(both).keys() == {"orders", "rates", "refunds"}
    assert column_edges(both) == column_edges(stored(revenue)) | column_edges(stored(other))


def test_an_aspect_that_the_server_cannot_patch_by_columns_still_gets_the_edges_of_tables(revenue):
    several = {
        "upstreamType": "FIELD_SET",
        "downstreamType": "FIELD_SET",
        "upstreams": [field("s3", "lake/orders", "id")],
        "downstreams": [field("s3", "lake/revenue", name) for name in ("region", "total")],
        "confidenceScore": 1.0,
    }
    tables, columns = upstream_patches(revenue)

    kept = patched({"upstreams": [], "fineGrainedLineages": [several]}, tables)

    assert table_edges(kept).keys() == {"orders", "rates"}
    assert kept["fineGrainedLineages"] == [several]
    with pytest.raises(RefusedError):
        patched(kept, columns)


def test_our_patches_are_those_that_the_sdk_makes():
    require_sdk()
    from datahub.metadata.schema_classes import FineGrainedLineageClass
    from datahub.specific.dataset import DatasetPatchBuilder

    of = subject(
        outputs=(
            dataset("odd/a~b", columnLineage=column_lineage(a=[source("c/d", "e~f/g", IDENTITY)])),
        )
    )
    _, ours = upstream_patches(of)
    builder = DatasetPatchBuilder(ours.urn)
    builder.add_fine_grained_lineage(
        FineGrainedLineageClass(
            "FIELD_SET",
            "FIELD",
            [field("s3", "lake/c/d", "e~f/g")],
            [field("s3", "lake/odd/a~b", "a")],
            IDENTITY,
            1.0,
        )
    )

    [theirs] = builder.build()

    assert ours.aspect == json.loads(theirs.aspect.value)


@pytest.mark.long
def test_a_patch_has_so_many_operations_that_one_message_holds_it():
    fields = {f"c{n}": [source("wide", f"c{n}", IDENTITY)] for n in range(2500)}
    of = subject(outputs=(dataset("wide_too", columnLineage=column_lineage(**fields)),))

    patches = upstream_patches(of)

    assert [len(one.aspect) for one in patches[1:]] == [1000, 1000, 500]
    assert max(len(one.text()) for one in patches) < 1_000_000
    assert len(stored(of)["fineGrainedLineages"]) == 2500


# --- the edges of tables --------------------------------------------------------------------------

ALIKE = column_lineage(
    a=[source("orders", "a", IDENTITY)],
    b=[source("orders", "c", IDENTITY)],
)


@pytest.mark.parametrize(
    ("facets", "expected"),
    [
        ({"columnLineage": ALIKE, "schema": schema("a", "b")}, "COPY"),
        ({"columnLineage": ALIKE}, "COPY"),
        ({"columnLineage": ALIKE, "schema": schema("a", "b", "made_up")}, "TRANSFORMED"),
        ({"columnLineage": ALIKE | {"dataset": [source("orders", "a", FILTER)]}}, "TRANSFORMED"),
        ({"columnLineage": column_lineage(a=[source("orders", "a", AGGREGATION)])}, "TRANSFORMED"),
        (
            {"columnLineage": column_lineage(a=[source("orders", "a", IDENTITY, masking=True)])},
            "TRANSFORMED",
        ),
        ({"columnLineage": column_lineage(a=[source("orders", "a")])}, "TRANSFORMED"),
        ({}, "TRANSFORMED"),
    ],
    ids=[
        "all",
        "no-schema",
        "another-column",
        "filtered",
        "summed",
        "masked",
        "unknown",
        "nothing",
    ],
)
def test_a_copy_is_one_only_where_all_of_it_is_identity(facets, expected):
    of = subject(inputs=(ORDERS,), outputs=(dataset("copy", **facets),))

    assert table_edges(stored(of)) == {"orders": expected}


def test_a_union_of_two_tables_is_no_copy():
    united = column_lineage(a=[source("orders", "a", IDENTITY), source("rates", "a", IDENTITY)])
    of = subject(inputs=(ORDERS, RATES), outputs=(dataset("both", columnLineage=united),))

    assert set(table_edges(stored(of)).values()) == {"TRANSFORMED"}


def entry(name, *sources):
    inputs = [{"namespace": "s3://lake", "name": one, "type": "DATASET"} for one in sources]
    return {"namespace": "s3://lake", "name": name, "type": "DATASET", "inputs": inputs}


def all_table_edges(of):
    """Give who feeds whom: by output."""
    aspects = Stored().take(upstream_patches(of)).items()
    return {short(urn): set(table_edges(aspect)) for (urn, _), aspect in aspects}


TWO_BY_TWO = {"inputs": (ORDERS, RATES), "outputs": (dataset("c"), dataset("d"))}


@pytest.mark.parametrize(
    ("of_event", "expected"),
    [
        (TWO_BY_TWO, {}),
        (
            TWO_BY_TWO | {"lineage": {"entries": [entry("c", "orders"), entry("d", "rates")]}},
            {"c": {"orders"}, "d": {"rates"}},
        ),
        (
            {"inputs": (ORDERS,), "outputs": (dataset("c"), dataset("d"))},
            {"c": {"orders"}, "d": {"orders"}},
        ),
        ({"inputs": (ORDERS, RATES), "outputs": (dataset("c"),)}, {"c": {"orders", "rates"}}),
        (
            {
                "inputs": (ORDERS, RATES),
                "outputs": (dataset("c"),),
                "lineage": {"entries": [entry("c")]},
            },
            {},
        ),
        (
            TWO_BY_TWO | {"outputs": (dataset("c"), dataset("d", lineage=entry("d", "rates")))},
            {"d": {"rates"}},
        ),
        ({"inputs": (ORDERS,), "outputs": (ORDERS,)}, {}),
        ({"inputs": (ORDERS,), "outputs": (dataset("c"),), "state": "FAIL"}, {}),
        (
            {"inputs": (ORDERS,), "outputs": (REVENUE,), "state": "FAIL"},
            {"revenue": {"orders", "rates"}},
        ),
        ({"inputs": (ORDERS,), "outputs": (REVENUE,), "state": "START"}, {}),
        (
            TWO_BY_TWO
            | {"lineage": {"entries": [None, {"type": "JOB"}, {"type": "DATASET", "name": []}]}},
            {},
        ),
    ],
    ids=[
        "nobody-knows",
        "stated",
        "one-input",
        "one-output",
        "stated-to-have-none",
        "stated-of-the-dataset",
        "itself",
        "failed",
        "failed-with-columns",
        "started",
        "malformed",
    ],
)
def test_who_feeds_whom_is_what_is_known_and_no_more(of_event, expected):
    assert all_table_edges(subject(**of_event)) == expected


def test_a_column_that_is_updated_in_place_is_no_edge_of_the_dataset():
    merged = column_lineage(
        total=[source("revenue", "total", IDENTITY), source("orders", "amount", AGGREGATION)]
    )
    of = subject(inputs=(ORDERS,), outputs=(dataset("revenue", columnLineage=merged),))

    aspect = stored(of)

    assert table_edges(aspect).keys() == {"orders"}
    assert column_edges(aspect) == {(AGGREGATION, "revenue.total"): {"orders.amount"}}


def test_without_indirect_lineage_columns_are_of_values_alone_and_conditions_stay_properties():
    of = subject(Conversion(indirect=False), inputs=(ORDERS,), outputs=(REVENUE,))

    aspect = stored(of)

    assert {operation for operation, _ in column_edges(aspect)} == {IDENTITY, AGGREGATION}
    assert "INDIRECT:FILTER status" in aspect["upstreams"][0]["properties"]["conditions"]


@pytest.mark.parametrize(("spark", "case"), OF_ONE_SPARK, ids=lambda value: value)
def test_each_recorded_application_is_patched_in_as_it_was_observed(recorded, spark, case):
    merged = recorded(case, spark).event
    of = subject()
    again = event(tuple(merged["inputs"]), tuple(merged["outputs"]), **merged["job"]["facets"])
    of.event = fitted(again, PlainEvent)

    aspects = Stored().take(upstream_patches(of))

    checked([Proposal(urn, name, aspect) for (urn, name), aspect in aspects.items()])
    assert sum(map(edges_of, merged["outputs"])) == sum(
        len(one["upstreams"])
        for aspect in aspects.values()
        for one in aspect.get("fineGrainedLineages", ())
    )


def edges_of(output):
    """Count the pairs of columns of an output, without those of the output itself."""
    fields = output["facets"].get("columnLineage", {}).get("fields", {})
    pairs = [one for field in fields.values() for one in field["inputFields"]]
    return sum(
        (one["namespace"], one["name"]) != (output["namespace"], output["name"]) for one in pairs
    )


def field(platform, name, path):
    return (
        f"urn:li:schemaField:(urn:li:dataset:(urn:li:dataPlatform:{platform},{name},PROD),{path})"
    )
