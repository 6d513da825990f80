"""The algebra of transformations: the listener's own rules for what follows upon what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_sparklineage.expectations import Side
from airflow_provider_sparklineage.lineage.application.accesses import Access, Scope
from airflow_provider_sparklineage.lineage.columns.composition import (
    MAX_DESCRIPTION,
    MAX_VARIANTS,
    Provenance,
    combine,
    compose,
    composed_description,
)
from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Transformation,
    compact,
    expand,
    union,
)
from airflow_provider_sparklineage.lineage.ledger import Ledgers
from airflow_provider_sparklineage.model.datasets import DatasetName

UNKNOWN = Transformation()
IDENTITY = Transformation("DIRECT", "IDENTITY")
TRANSFORMED = Transformation("DIRECT", "TRANSFORMATION")
AGGREGATED = Transformation("DIRECT", "AGGREGATION")
FILTERED = Transformation("INDIRECT", "FILTER")
JOINED = Transformation("INDIRECT", "JOIN")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
A, TMP, B = (DatasetName("file", f"/{name}") for name in ("a", "tmp", "b"))


def same(name):
    return name


@pytest.mark.parametrize(
    ("this", "upstream", "expected"),
    [
        pytest.param(FILTERED, AGGREGATED, FILTERED, id="INDIRECT stays"),
        pytest.param(FILTERED, JOINED, FILTERED, id="INDIRECT after INDIRECT"),
        pytest.param(FILTERED, UNKNOWN, FILTERED, id="INDIRECT after unknown"),
        pytest.param(IDENTITY, UNKNOWN, UNKNOWN, id="DIRECT after unknown is unknown"),
        pytest.param(UNKNOWN, IDENTITY, UNKNOWN, id="unknown stays"),
        pytest.param(AGGREGATED, JOINED, JOINED, id="DIRECT after INDIRECT takes the other"),
        pytest.param(IDENTITY, IDENTITY, IDENTITY, id="identity of identity"),
        pytest.param(IDENTITY, AGGREGATED, AGGREGATED, id="aggregation first"),
        pytest.param(AGGREGATED, TRANSFORMED, AGGREGATED, id="aggregation first, other side"),
        pytest.param(TRANSFORMED, IDENTITY, TRANSFORMED, id="transformation before identity"),
    ],
)
def test_two_in_a_row(this, upstream, expected):
    assert combine(this, upstream)[:2] == expected[:2]


@pytest.mark.parametrize("this", [IDENTITY, FILTERED, UNKNOWN])
def test_masking_anywhere_masks(this):
    assert combine(this, IDENTITY._replace(masking=True)).masking
    assert combine(this._replace(masking=True), IDENTITY).masking


TRANSFORMATIONS = st.sampled_from([UNKNOWN, IDENTITY, TRANSFORMED, AGGREGATED, FILTERED, JOINED])


@given(TRANSFORMATIONS, TRANSFORMATIONS, TRANSFORMATIONS)
def test_combining_is_associative(first, second, third):
    left = combine(combine(first, second), third)
    right = combine(first, combine(second, third))
    assert left[:2] == right[:2]


def test_columns_of_an_intermediate_are_replaced_by_theirs():
    tmp = ColumnLineage(
        {"x": {Column(A, "p"): (TRANSFORMED,), Column(A, "q"): (IDENTITY,)}},
        {Column(A, "f"): (FILTERED,)},
    )
    b = ColumnLineage({"y": {Column(TMP, "x"): (AGGREGATED,)}})
    composed = compose(b, lambda name: Provenance(tmp, internal=True) if name == TMP else None)
    assert composed == ColumnLineage(
        {"y": {Column(A, "p"): (AGGREGATED,), Column(A, "q"): (AGGREGATED,)}},
        {Column(A, "f"): (FILTERED,)},
    )


def test_a_column_of_an_intermediate_without_sources_stays():
    b = ColumnLineage({"y": {Column(TMP, "literal"): (IDENTITY,)}})
    assert compose(b, lambda _: Provenance(ColumnLineage(), internal=True)) == b


def test_a_dataset_that_is_also_an_input_keeps_its_own_columns():
    tmp = ColumnLineage({"x": {Column(A, "p"): (IDENTITY,)}})
    b = ColumnLineage({"y": {Column(TMP, "x"): (IDENTITY,)}})
    composed = compose(b, lambda name: Provenance(tmp, internal=False) if name == TMP else None)
    assert set(composed.fields["y"]) == {Column(A, "p"), Column(TMP, "x")}


def test_uniting_keeps_every_edge_once():
    one = {Column(A, "p"): (IDENTITY, TRANSFORMED)}
    two = {Column(A, "p"): (IDENTITY,), Column(B, "q"): (IDENTITY,)}
    assert union(one, two) == {Column(A, "p"): (IDENTITY, TRANSFORMED), Column(B, "q"): (IDENTITY,)}


def test_no_origin_changes_nothing():
    b = ColumnLineage({"y": {Column(TMP, "x"): (IDENTITY,)}}, {Column(TMP, "f"): (FILTERED,)})
    assert compose(b, lambda _: None) == b


def test_what_influences_all_of_b_is_resolved_through_the_columns_of_the_intermediate():
    tmp = ColumnLineage({"x": {Column(A, "p"): (AGGREGATED,)}})
    b = ColumnLineage({}, {Column(TMP, "x"): (JOINED,)})
    composed = compose(b, lambda name: Provenance(tmp, internal=True) if name == TMP else None)
    assert composed == ColumnLineage({}, {Column(A, "p"): (JOINED,)})


def test_what_influenced_an_intermediate_that_was_not_used_does_not_count():
    tmp = ColumnLineage({"x": {Column(A, "p"): (IDENTITY,)}}, {Column(A, "f"): (FILTERED,)})
    b = ColumnLineage({"y": {Column(A, "p"): (IDENTITY,)}})
    assert compose(b, lambda name: Provenance(tmp, internal=True) if name == TMP else None) == b


def test_several_ways_between_two_columns_stay_a_list():
    tmp = ColumnLineage({"x": {Column(A, "p"): (IDENTITY, JOINED)}})
    b = ColumnLineage({"y": {Column(TMP, "x"): (IDENTITY, AGGREGATED)}})
    composed = compose(b, lambda name: Provenance(tmp, internal=True) if name == TMP else None)
    assert composed.fields["y"] == {Column(A, "p"): (IDENTITY, JOINED, AGGREGATED)}


# --- laws -----------------------------------------------------------------------------------------

NAMES = st.sampled_from("pqr")
MASKED = st.builds(lambda t, m: t._replace(masking=m), TRANSFORMATIONS, st.booleans())
INFLUENCES = st.sampled_from([FILTERED, JOINED])


def edges_into(dataset, transformations=MASKED, smallest=0):
    columns = st.builds(Column, st.just(dataset), NAMES)
    several = st.lists(transformations, min_size=1, max_size=3, unique=True).map(tuple)
    return st.dictionaries(columns, several, min_size=smallest, max_size=3)


def lineages(dataset):
    some = st.dictionaries(NAMES, edges_into(dataset, smallest=1), max_size=3)
    return st.builds(ColumnLineage, some, edges_into(dataset, INFLUENCES))


def through(dataset, lineage):
    return lambda name: Provenance(lineage, internal=True) if name == dataset else None


def unordered(edges):
    return {column: set(transformations) for column, transformations in edges.items()}


@given(MASKED, MASKED, MASKED)
def test_masking_is_or(first, second, third):
    combined = combine(combine(first, second), third)
    assert combined.masking == (first.masking or second.masking or third.masking)


@given(TRANSFORMATIONS)
def test_combining_with_itself_changes_nothing(transformation):
    assert combine(transformation, transformation) == transformation


@given(TRANSFORMATIONS)
def test_identity_of_something_is_that_unless_it_is_nobody_knows_what(transformation):
    assert combine(IDENTITY, transformation)[:2] == transformation[:2]


@given(edges_into(A), edges_into(A), edges_into(A))
def test_uniting_is_associative_commutative_and_idempotent(first, second, third):
    left, right = union(union(first, second), third), union(first, union(second, third))
    assert left == right
    assert unordered(union(first, second)) == unordered(union(second, first))
    assert union(first, first) == first


C = DatasetName("file", "/c")


@given(lineages(TMP), lineages(B), lineages(A))
def test_composing_is_associative_up_to_order(d, tmp, b):
    """A→B→TMP→D from either end.

    Of the influences on all columns, composing from D backwards may find less: what D does not use
    of TMP is gone by then. Applications are composed forwards.
    """
    backwards = compose(compose(d, through(TMP, tmp)), through(B, b))
    forwards = compose(d, through(TMP, compose(tmp, through(B, b))))
    assert {n: unordered(e) for n, e in backwards.fields.items()} == {
        n: unordered(e) for n, e in forwards.fields.items()
    }
    found, all_of_it = unordered(backwards.dataset), unordered(forwards.dataset)
    assert all(found[column] <= all_of_it.get(column, set()) for column in found)


SQL = st.sampled_from(["(p + 1) AS p", "concat(p, p) AS p", "upper(q) AS q", "(p + q) AS r", "p"])
DESCRIBED = st.builds(lambda t, text: t._replace(description=text), TRANSFORMATIONS, SQL)


def written(dataset):
    sources = st.builds(Column, st.sampled_from([A, TMP, B]), NAMES)
    edges = st.dictionaries(sources, st.tuples(DESCRIBED), min_size=1, max_size=3)
    lineage = st.builds(ColumnLineage, st.dictionaries(NAMES, edges, max_size=3))
    return st.tuples(st.just(dataset), lineage)


@settings(deadline=None, max_examples=12)  # each is an application of 40 actions
@given(
    st.lists(st.one_of(written(A), written(TMP), written(B)), min_size=1, max_size=6),
    st.booleans(),
)
def test_applications_that_go_in_circles_end_and_stay_small(loop, full):
    ledgers = Ledgers()
    for number in range(40):
        dataset, lineage = loop[number % len(loop)]
        at = EPOCH + timedelta(seconds=number)
        written = Access(dataset, Side.WRITE, at, at, owned=Scope(full=full))

        def provenance(name, at=at):
            return ledgers.of(name).provenance(Access(name, Side.READ, at, None))

        composed = compose(lineage, provenance)
        edges = [*composed.fields.values(), composed.dataset]
        assert all(len(e) <= 9 for e in edges)
        assert all(len(ts) <= MAX_VARIANTS for e in edges for ts in e.values())
        descriptions = [t.description for e in edges for ts in e.values() for t in ts]
        assert all(len(text) <= MAX_DESCRIPTION for text in descriptions)
        ledgers.of(dataset).enter_write(written, composed, frozenset())


# --- descriptions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("outer", "column", "inner", "expected"),
    [
        pytest.param(
            "sum(amount_eur) AS revenue",
            "amount_eur",
            "(amount * rate) AS amount_eur",
            "sum((amount * rate)) AS revenue",
            id="expression",
        ),
        pytest.param("sum(label) AS n", "label", "region AS label", "sum(region) AS n", id="name"),
        pytest.param("sum(c.x) AS n", "x", "upper(y) AS x", "sum(upper(y)) AS n", id="qualified"),
        pytest.param(
            "WHERE (`a b` > 1)", "a b", "max(c) AS `a b`", "WHERE (max(c) > 1)", id="quoted"
        ),
        pytest.param("(x + x) AS x", "x", "(x + 1) AS x", "((x + 1) + (x + 1)) AS x", id="twice"),
        pytest.param(
            "if((x = 'x'), x, \"x\")", "x", "y AS x", "if((y = 'x'), y, \"x\")", id="text in quotes"
        ),
        pytest.param("max(y) AS n", "x", "z AS x", "max(y) AS n", id="not named"),
        pytest.param("max(xx) AS n", "x", "z AS x", "max(xx) AS n", id="another name"),
        pytest.param("x(y) AS n", "x", "z AS x", "x(y) AS n", id="a function of that name"),
        pytest.param("max(x.y) AS n", "x", "z AS x", "max(x.y) AS n", id="a field of it"),
        pytest.param(
            "CAST(y AS double)", "double", "z AS double", "CAST(y AS double)", id="a type"
        ),
        pytest.param("sum(x) AS n", "x", "", "sum(x) AS n", id="no text"),
        pytest.param("sum(x) AS n", "x", "x", "sum(x) AS n", id="unchanged"),
        pytest.param("", "x", "z AS x", "", id="nothing to put it into"),
    ],
)
def test_what_an_intermediate_was_made_of_is_put_into_the_text(outer, column, inner, expected):
    assert composed_description(outer, column, inner) == expected


def test_a_text_that_would_be_too_long_shows_that_something_is_left_out():
    inner = f"concat({'y' * (MAX_DESCRIPTION - 20)}) AS x"
    assert composed_description("sum(x) AS n", "x", inner).startswith("sum(concat(y")
    assert composed_description("(x + x) AS n", "x", inner) == "(… + …) AS n"


def test_a_text_that_is_too_long_by_itself_is_truncated():
    text = composed_description("z" * 2000, "x", "y AS x")
    assert (len(text), text[-1]) == (MAX_DESCRIPTION, "…")


def test_a_name_that_two_datasets_have_is_not_replaced():
    renamed = TRANSFORMED._replace(description="cust AS id")
    tmp = ColumnLineage({"id": {Column(A, "cust"): (renamed,)}})
    join = JOINED._replace(description="INNER JOIN ON (id = id)")
    b = ColumnLineage({}, {Column(TMP, "id"): (join,), Column(B, "id"): (join,)})
    composed = compose(b, through(TMP, tmp))
    assert composed.dataset[Column(A, "cust")] == (join,)


def test_an_influence_that_is_taken_over_is_described_as_it_was():
    join = JOINED._replace(description="INNER JOIN ON (a = b)")
    total = AGGREGATED._replace(description="sum(x) AS total")
    assert combine(total, join, "x") == join
    assert combine(total, JOINED, "x") == JOINED._replace(description="sum(x) AS total")


# --- compact and legacy ---------------------------------------------------------------------------


@given(st.dictionaries(NAMES, edges_into(A), max_size=3))
def test_compacting_finds_exactly_what_influences_every_column(fields):
    legacy = ColumnLineage(fields)
    found = compact(legacy)
    influences = [
        {(c, t) for c, ts in edges.items() for t in ts if t.type == "INDIRECT"}
        for edges in fields.values()
    ]
    everywhere = set.intersection(*influences) if influences else set()
    assert {(c, t) for c, ts in found.dataset.items() for t in ts} == everywhere
    for name, edges in fields.items():
        left = {(c, t) for c, ts in found.fields[name].items() for t in ts}
        assert left == {(c, t) for c, ts in edges.items() for t in ts} - everywhere


@given(st.dictionaries(NAMES, edges_into(A), max_size=3))
def test_expanding_what_was_compacted_gives_it_back_up_to_order(fields):
    back = expand(compact(ColumnLineage(fields)))
    assert {n: unordered(e) for n, e in back.fields.items()} == {
        n: unordered(e) for n, e in fields.items()
    }
    assert back.dataset == {}


@given(lineages(A))
def test_compacting_what_was_expanded_gives_it_back_up_to_order(lineage):
    once = compact(lineage)
    again = compact(expand(once))
    assert {n: unordered(e) for n, e in again.fields.items()} == {
        n: unordered(e) for n, e in once.fields.items()
    }
    assert unordered(again.dataset) == unordered(once.dataset)


def test_without_columns_there_is_nothing_to_expand_into():
    lineage = ColumnLineage({}, {Column(A, "p"): (FILTERED,)})
    assert expand(lineage) == lineage
