"""Composition for sets of columns: the same as for each, in any order, and each text once."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from airflow_provider_sparklineage.lineage.columns import composition
from airflow_provider_sparklineage.lineage.columns import composition as of_columns
from airflow_provider_sparklineage.lineage.columns.composition import (
    MAX_VARIANTS,
    Provenance,
    Upstream,
    combine,
    compose,
    in_more_than,
    with_text,
)
from airflow_provider_sparklineage.lineage.columns.edges import (
    Column,
    ColumnLineage,
    Transformation,
)
from airflow_provider_sparklineage.model.datasets import DatasetName

A, TMP, B = (DatasetName("file", f"/{name}") for name in ("a", "tmp", "b"))
LIMIT = 3

NAMES = st.sampled_from(["p", "q", "r", "P", "a b"])
TEXTS = st.sampled_from(
    ["", "p", "(p + 1) AS p", "concat(p, q) AS r", "upper(q) AS q", "`a b` AS p", "f(p, 'q')"]
)
TYPES = st.sampled_from(["DIRECT", "INDIRECT", None])
SUBTYPES = st.sampled_from(["IDENTITY", "TRANSFORMATION", "AGGREGATION", "FILTER", "JOIN", None])
TRANSFORMATIONS = st.builds(Transformation, TYPES, SUBTYPES, TEXTS, st.booleans())
SEVERAL = st.lists(TRANSFORMATIONS, min_size=1, max_size=4, unique=True).map(tuple)


def edges_of(*datasets, smallest=0):
    columns = st.builds(Column, st.sampled_from(datasets), NAMES)
    return st.dictionaries(columns, SEVERAL, min_size=smallest, max_size=5)


def lineages(*datasets):
    fields = st.dictionaries(NAMES, edges_of(*datasets, smallest=1), max_size=4)
    return st.builds(ColumnLineage, fields, edges_of(*datasets))


def every(lineage):
    return [*lineage.fields.values(), lineage.dataset]


def bare(transformations):
    return tuple(dict.fromkeys(t._replace(description="") for t in transformations))


def described(number):
    text = f"concat({', '.join(f'x{n}' for n in range(number))}) AS y"
    return Transformation("DIRECT", "TRANSFORMATION", text)


def made_by_many(number):
    """Give a column of so many columns, each made of the same one by an expression of its own."""
    y = {Column(TMP, f"x{n}"): (described(number),) for n in range(number)}
    x = {
        f"x{n}": {
            Column(A, "p"): (Transformation("DIRECT", "TRANSFORMATION", f"(p + {n}) AS x{n}"),)
        }
        for n in range(number)
    }
    return ColumnLineage({"y": y}), {TMP: Provenance(ColumnLineage(x), internal=True)}


def limited(lineage, provenances, limit):
    before, of_columns.MAX_VARIANTS = of_columns.MAX_VARIANTS, limit
    try:
        return compose(lineage, provenances.get)
    finally:
        of_columns.MAX_VARIANTS = before


# --- each way by itself ---------------------------------------------------------------------------


def one_by_one(lineage, provenances):
    """Compose way by way: slow, and easy to understand."""
    used = set(chain.from_iterable(every(lineage)))
    names = Counter(c.field for c in used)

    def composed(edges):
        found = {}
        for column, these in edges.items():
            provenance = provenances.get(column.dataset)
            fields = provenance.columns.fields if provenance else {}
            folded = {name.casefold(): name for name in fields}
            field = column.field if column.field in fields else folded.get(column.field.casefold())
            sources = fields.get(field, {})
            if not (sources and provenance.internal):
                found.setdefault(column, []).extend(these)
            via = column.field if names[column.field] == 1 else ""
            for source, upstream in sources.items():
                both = [combine(t, u, via) for t in these for u in upstream]
                found.setdefault(source, []).extend(both)
        return found

    everything = composed(lineage.dataset)
    for name in sorted({column.dataset for column in used} & provenances.keys()):
        for column, influences in provenances[name].columns.dataset.items():
            everything.setdefault(column, []).extend(influences)
    fields = {name: composed(edges) for name, edges in lineage.fields.items()}
    unique = [
        {column: tuple(dict.fromkeys(ts)) for column, ts in edges.items()}
        for edges in (*fields.values(), everything)
    ]
    return ColumnLineage(dict(zip(fields, unique, strict=False)), unique[-1])


@given(lineages(A, TMP, B), lineages(A, B), lineages(A, TMP), st.booleans(), st.booleans())
def test_sets_of_columns_are_composed_as_each_of_them(lineage, tmp, b, internal, all_internal):
    provenances = {TMP: Provenance(tmp, internal), B: Provenance(b, all_internal)}
    assert limited(lineage, provenances, 10_000) == one_by_one(lineage, provenances)


@given(SEVERAL, SEVERAL, st.sampled_from(["", "p", "q", "a b"]))
def test_variants_are_the_transformations_in_a_row(these, upstream, via):
    variants = Upstream(upstream, via).variants(these)
    expected = dict.fromkeys(combine(t, u, via) for t in these for u in upstream)
    assert dict.fromkeys(map(with_text, variants)) == expected


def test_what_came_through_a_column_by_the_same_name_is_the_same():
    same = {n: {Column(A, n): (Transformation("DIRECT", "IDENTITY"),)} for n in "pq"}
    lineage = ColumnLineage({"y": {Column(TMP, n): (described(2),) for n in "pq"}})
    composed = compose(lineage, {TMP: Provenance(ColumnLineage(same), internal=True)}.get)
    assert composed == ColumnLineage({"y": {Column(A, n): (described(2),) for n in "pq"}})


# --- too many variants ----------------------------------------------------------------------------


@given(lineages(A, TMP), lineages(A, B))
def test_of_too_many_variants_none_keeps_its_text_and_of_others_all(lineage, tmp):
    provenances = {TMP: Provenance(tmp, internal=True)}
    all_of_it = limited(lineage, provenances, 10_000)
    found = limited(lineage, provenances, LIMIT)
    assume(found is not lineage)  # where nothing is composed, there is no limit
    for given_edges, left in zip(every(all_of_it), every(found), strict=True):
        assert given_edges.keys() == left.keys()
        for column, transformations in given_edges.items():
            assert left[column] in (transformations, bare(transformations))
            if len(transformations) > LIMIT:
                assert left[column] == bare(transformations)


def in_another_order(edges, draw):
    return {
        column: tuple(draw(st.permutations(transformations)))
        for column, transformations in draw(st.permutations(list(edges.items())))
    }


@given(lineages(A, TMP), lineages(A, B), st.data())
def test_which_texts_survive_does_not_depend_on_what_came_first(lineage, tmp, data):
    found = limited(lineage, {TMP: Provenance(tmp, internal=True)}, LIMIT)
    one, other = (
        ColumnLineage(
            {
                name: in_another_order(edges, data.draw)
                for name, edges in data.draw(st.permutations(list(given_lineage.fields.items())))
            },
            in_another_order(given_lineage.dataset, data.draw),
        )
        for given_lineage in (lineage, tmp)
    )
    again = limited(one, {TMP: Provenance(other, internal=True)}, LIMIT)
    for left, right in [
        (found.dataset, again.dataset),
        *((found.fields[name], again.fields[name]) for name in found.fields),
    ]:
        assert {c: set(ts) for c, ts in left.items()} == {c: set(ts) for c, ts in right.items()}


@pytest.mark.parametrize(
    ("number", "has_texts"),
    [
        pytest.param(MAX_VARIANTS, True, id="as many as there may be"),
        pytest.param(MAX_VARIANTS + 1, False, id="one more"),
    ],
)
def test_a_source_that_comes_in_many_variants(number, has_texts):
    lineage, provenances = made_by_many(number)
    found = compose(lineage, provenances.get).fields["y"][Column(A, "p")]
    assert [bool(t.description) for t in found] == ([True] * number if has_texts else [False])


@given(st.lists(st.sets(st.integers(0, 9)), max_size=12), st.integers(0, 6))
def test_sources_of_more_variants_than_a_number_are_counted(sets, limit):
    counted = Counter(chain.from_iterable(sets))
    many = sum(1 << member for member, times in counted.items() if times > limit)
    assert in_more_than(limit, [sum(1 << member for member in each) for each in sets]) == many


# --- what is done, and how often ------------------------------------------------------------------


@pytest.fixture
def texts_made(monkeypatch):
    made = []
    original = composition.composed_description

    def counted(*texts):
        made.append(texts)
        return original(*texts)

    monkeypatch.setattr(composition, "composed_description", counted)
    return made


def test_no_text_is_made_that_is_dropped(texts_made):
    lineage, provenances = made_by_many(MAX_VARIANTS + 1)
    compose(lineage, provenances.get)
    assert texts_made == []


def wide(number, text=""):
    """Give the lineage of so many columns, each of all."""
    made = (Transformation("DIRECT", "TRANSFORMATION", text),)
    return {
        dataset: ColumnLineage(
            {
                f"x{n}": {Column(dataset, f"x{m}"): made for m in range(number)}
                for n in range(number)
            }
        )
        for dataset in (A, TMP)
    }


def test_a_text_is_made_once_for_all_sources_of_a_column(texts_made):
    number = 20
    of = wide(number, "(x1 + 1)")
    compose(of[TMP], {TMP: Provenance(of[A], internal=True)}.get)
    assert len(texts_made) == number


def test_wide_tables_take_the_square_of_their_width_and_not_the_cube(monkeypatch):
    added = Counter()
    settled = of_columns.settled

    def counted(parts):
        added["variants"] += sum(len(variants) for variants, _ in parts)
        return settled(parts)

    monkeypatch.setattr(composition, "settled", counted)
    figures = []
    for number in (10, 20):
        added.clear()
        of = wide(number)
        composed = compose(of[TMP], {TMP: Provenance(of[A], internal=True)}.get)
        assert all(len(edges) == number for edges in composed.fields.values())
        figures.append(added["variants"])
    once, twice = figures
    assert twice <= 4 * once


def test_columns_of_equal_sources_have_the_same_edges():
    of = wide(3)
    composed = compose(of[TMP], {TMP: Provenance(of[A], internal=True)}.get)
    assert len({id(edges) for edges in composed.fields.values()}) == 1
