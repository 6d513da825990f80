"""Laws of lineage in DataHub, for jobs that are made up at random."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_sparklineage.datahub.lineage import lineage
from airflow_provider_sparklineage.datahub.proposals import Proposal
from tests.unit.datahub.events import column_lineage, dataset, source, subject
from tests.unit.datahub.patching import Stored
from tests.unit.datahub.sdk import checked

ASPECT = "upstreamLineage"
KINDS = ("DIRECT:IDENTITY", "DIRECT:AGGREGATION", "INDIRECT:FILTER", "INDIRECT:JOIN", "DIRECT")
NAMES = st.sampled_from(["a", "b", "A", "a/b", "a~1b", "c,d", "sum(a)", "ü␟", "", "a.b", "%2C"])

sources = st.builds(
    lambda name, field, kinds, masking: source(name, field, *kinds, masking=masking),
    NAMES.filter(bool),
    NAMES,
    st.lists(st.sampled_from(KINDS), max_size=3),
    st.booleans(),
)
column_lineages = st.builds(
    lambda conditions, fields: column_lineage(*conditions, **fields),
    st.lists(sources, max_size=3),
    st.dictionaries(NAMES, st.lists(sources, max_size=4), max_size=4),
)
jobs = st.builds(
    lambda job, facet, sql: subject(
        inputs=(dataset("a"),),
        outputs=(dataset("out/put", columnLineage=facet),),
        job=job,
        sql={"query": sql},
    ),
    st.sampled_from(["shop.one", "shop.other"]),
    column_lineages,
    st.sampled_from(["", "SELECT 1"]),
)


def patches(of):
    return [one for one in checked(lineage(of)) if one.aspect_name == ASPECT]


def stored(*every):
    aspects = Stored().take(one for of in every for one in patches(of))
    checked([Proposal(urn, name, aspect) for (urn, name), aspect in aspects.items()])
    return aspects


def edges(aspects):
    """Give each pair of columns with all that is stored of it."""
    return {
        (one.get("query"), one["transformOperation"], *one["downstreams"], upstream)
        for aspect in aspects.values()
        for one in aspect.get("fineGrainedLineages", ())
        for upstream in one["upstreams"]
    }


def tables(aspects):
    return {one["dataset"] for aspect in aspects.values() for one in aspect["upstreams"]}


@given(jobs)
def test_the_same_run_again_changes_nothing(job):
    assert stored(job, job) == stored(job)


@given(jobs, jobs)
def test_two_jobs_have_together_what_each_of_them_has_in_any_order(one, other):
    both = stored(one, other)

    assert edges(both) == edges(stored(other, one)) == edges(stored(one)) | edges(stored(other))
    assert tables(both) == tables(stored(one)) | tables(stored(other))


@given(jobs)
def test_what_is_done_to_one_column_in_one_way_is_one_edge(job):
    for aspect in stored(job).values():
        groups = [
            (one["transformOperation"], *one["downstreams"])
            for one in aspect.get("fineGrainedLineages", ())
        ]
        assert len(groups) == len(set(groups))


@given(jobs)
def test_the_job_has_every_edge_of_its_dataset(job):
    [aspect] = [one.aspect for one in lineage(job) if one.aspect_name == "dataJobInputOutput"]
    of_job = {
        (one.get("transformOperation", "NONE"), downstream, upstream)
        for one in aspect["fineGrainedLineages"]
        for downstream in one["downstreams"]
        for upstream in one["upstreams"]
    }

    assert {edge[1:] for edge in edges(stored(job))} <= of_job
