"""Whatever a secret looks like and wherever it stands, it is hidden; names never are."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_sparklineage.event.pipeline import event_of
from airflow_provider_sparklineage.event.steps.texts import masked
from airflow_provider_sparklineage.expectations import Kind, Source
from airflow_provider_sparklineage.lineage.columns.edges import (
    DIRECT,
    INDIRECT,
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.lineage.partitions.expected import Expected
from airflow_provider_sparklineage.lineage.partitions.selection import Selected
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.degradations import Degradation, DegradationCode
from airflow_provider_sparklineage.model.partitioning import Partition
from airflow_provider_sparklineage.model.subset import (
    Binary,
    Compare,
    Description,
    Locations,
    Partitions,
)
from airflow_provider_sparklineage.spark.capture.lines import ReadReport

NAMES = ("password", "token_count", "api_key", "secret", "authorization", "passwd", "private_key")
ORDERS = DatasetName("s3a://lake", "/orders")
few = settings(max_examples=20, deadline=None)

# Long enough that no name or word of the specification has it by chance; whatever JSON escapes.
ODD = st.sampled_from("#\"\\\n\t/żż\N{TURTLE}\x7f\x01'{}[],:x9")
secrets = st.text(ODD, min_size=6, max_size=30).map(lambda text: f"<{text}>")
arounds = st.tuples(*[st.text(st.sampled_from("ab '\"\\\n\N{TURTLE}"), max_size=8)] * 2)


def in_columns(text):
    transformations = (
        Transformation(DIRECT, "TRANSFORMATION", text),
        Transformation(INDIRECT, "FILTER", text),
    )
    return {"columns": ColumnLineage({n: {Column(ORDERS, n): transformations} for n in NAMES}, {})}


def in_condition(text):
    compare = Compare("token_count", "EQUAL", text)
    return {"selected": Selected(Binary("AND", compare, Description(text)))}


def in_locations(text):
    return {"selected": Selected(Locations(frozenset({f"s3a://lake/orders/{text}"})))}


def in_partitions(text):
    found = frozenset({Partition.from_values([("password", text)])})
    return {"selected": Selected(Partitions(found), found)}


def in_templates(text):
    source = Source(Kind.PATH, "conf", f"--key={text} {{{{ ds }}}}", text, "dt")
    return {"expected": Expected(Kind.PATH, sources=(source,))}


def in_facets_of_spark(text):
    facet = {"sql": text, "list": [{"deep": [text, None]}], "_producer": "p", "_schemaURL": "s"}
    return {"facets": {"sql": msgspec.Raw(msgspec.json.encode(facet))}}


PLACES = (
    in_columns,
    in_condition,
    in_locations,
    in_partitions,
    in_templates,
    in_facets_of_spark,
)


def event_with(secret, around, place, mask):
    text = secret.join(around)
    degradations = (Degradation(DegradationCode.ACTION_FAILED, f"It failed ({text}).", ORDERS),)
    outputs = (LineageDataset(ORDERS, **place(text)),)
    lineage = TaskLineage(Outcome.FAIL, outputs, outputs, degradations=degradations)
    return event_of(lineage, ReadReport(), mask=mask)


def leaves(event):
    """Give every text of an event, without the keys."""

    def walk(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            for inner in value.values():
                yield from walk(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                yield from walk(inner)

    return list(walk(event))


@pytest.mark.parametrize("place", PLACES)
@few
@given(secrets, arounds)
def test_no_secret_is_left_anywhere(place, secret, around):
    def mask(text):
        return text.replace(secret, "***")

    texts = leaves(event_with(secret, around, place, mask))
    assert not [text for text in texts if secret in text]
    assert [text for text in texts if "***" in text]


@few
@given(st.sampled_from(PLACES), secrets, arounds)
def test_the_quick_look_decides_as_the_thorough_one(place, secret, around):
    def mask(text):
        return text.replace(secret, "***")

    event = event_with(secret, around, place, str)
    quick, thorough = masked(event, mask), masked(with_an_escape(event), mask)
    assert leaves(quick) == leaves(thorough)[: len(leaves(quick))]


def with_an_escape(event):
    """Add what makes the thorough look necessary, at the end of all."""
    return {**event, "z": {"x": "\\"}}


@few
@given(st.lists(st.sampled_from(NAMES), min_size=1, unique=True), st.text(max_size=20))
def test_columns_are_never_eaten_whatever_they_are_called(names, text):
    transformations = (Transformation(DIRECT, "IDENTITY", text),)
    lineage = ColumnLineage({n: {Column(ORDERS, n): transformations} for n in names}, {})
    outputs = (LineageDataset(ORDERS, columns=lineage),)

    def blind(_):
        return "***"

    event = event_of(TaskLineage(Outcome.COMPLETE, (), outputs), ReadReport(), mask=blind)
    [output] = event["outputs"]
    found = output["facets"]["columnLineage"]["fields"]
    assert sorted(found) == sorted(names)
    assert all(f["inputFields"][0]["field"] == name for name, f in found.items())
