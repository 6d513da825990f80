"""The kept event and the one that is made of it for a backend: what each has, and what is equal."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from airflow_provider_sparklineage.event.backends import marquez
from airflow_provider_sparklineage.event.model import CAPTURE_KEY, CHECK_KEY, name_of
from airflow_provider_sparklineage.event.pipeline import (
    adapted,
    event_of,
    events_of,
    ready_to_send,
    sent_of,
)
from airflow_provider_sparklineage.lineage.dataset import LineageDataset
from airflow_provider_sparklineage.lineage.merge import Outcome, TaskLineage
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.representation import Adaptation, Representation
from airflow_provider_sparklineage.spark.capture.lines import ReadReport
from tests.conftest import HEADER, OF_ONE_SPARK
from tests.openlineage_spec import validate_event
from tests.unit.event.test_glance import dataset, task
from tests.unit.event.test_rename import HELD, LINEAGE, TWO_HOSTS
from tests.unit.event.test_size import columns_of, dropped_messages, named_in, wide

MARQUEZ = Adaptation("marquez")


def both(lineage, how=MARQUEZ, **representation):
    given = Representation(max_event_bytes=how.max_event_bytes, **representation)
    return events_of(lineage, how, ReadReport(), given, header=HEADER)


def stored(event):
    """Give an event as it comes back from where it was kept."""
    return json.loads(json.dumps(event))


def codes(event):
    return {d["code"] for d in event["run"]["facets"][CAPTURE_KEY]["degradations"]}


def test_what_is_kept_has_the_real_names_and_what_is_sent_those_of_the_backend():
    made = both(LINEAGE)
    assert TWO_HOSTS in map(name_of, made.kept["inputs"])
    assert [name_of(d) for d in made.adapted["inputs"]] == [HELD]
    assert "backend_repaired" in codes(made.adapted) - codes(made.kept)
    assert made.kept == event_of(LINEAGE, ReadReport(), header=HEADER)


@pytest.mark.parametrize("backend", ["datahub", "generic"])
def test_for_another_backend_both_are_the_same_object(backend):
    made = both(LINEAGE, Adaptation(backend))
    assert made.adapted is made.kept


@pytest.mark.parametrize(("spark", "case"), OF_ONE_SPARK)
def test_an_event_that_was_kept_as_a_backend_has_it_is_sent_as_it_is(recorded, spark, case):
    kept = stored(both(recorded(case, spark).lineage).adapted)
    assert adapted(kept, MARQUEZ) is kept


def test_repairs_of_an_event_that_has_them_change_nothing():
    old = stored(both(LINEAGE, explicit_lineage=True).adapted)
    assert adapted(old, MARQUEZ) is old


@pytest.mark.parametrize("explicit", [True, False])
def test_an_event_is_sent_again_as_it_was_at_first(explicit):
    made = both(LINEAGE, explicit_lineage=explicit)
    assert sent_of(stored(made.kept), MARQUEZ) == ready_to_send(made.adapted, MARQUEZ)


@pytest.mark.parametrize("limit", [2000, 3000, 4000, 6000])
def test_an_event_that_was_kept_in_part_can_be_sent_again(limit):
    source = DatasetName("s3://lake~eu", "in")
    lineage = wide(inputs=2, outputs=1, columns=3)
    renamed = replace(lineage.inputs[0], name=source)
    lineage = replace(lineage, inputs=(renamed, *lineage.inputs[1:]))
    kept = stored(both(lineage, replace(MARQUEZ, max_event_bytes=limit)).kept)
    sent = sent_of(kept, MARQUEZ)
    validate_event(sent)
    assert {d["namespace"] for d in sent["inputs"]} == {"s3://lake_eu", "s3://lake"}
    for before, after in zip(kept["outputs"], sent["outputs"], strict=True):
        types = [
            {name: f["transformationType"] for name, f in facet["fields"].items()}
            for facet in (d["facets"].get("columnLineage", {"fields": {}}) for d in (before, after))
        ]
        assert types[0] == types[1]


def test_a_page_that_would_be_slow_loses_detail_before_the_event_is_measured(monkeypatch):
    monkeypatch.setattr(marquez, "MAX_OUTPUT_BYTES", 2000)
    lineage = wide()
    kept, sent = both(lineage, Adaptation("marquez", max_event_bytes=60_000))
    assert dropped_messages(kept)
    assert not dropped_messages(sent)
    assert len(columns_of(sent, "inputs")) > len(columns_of(kept, "inputs"))
    assert named_in(kept)[0]


def test_lines_of_the_partition_check_have_the_names_that_are_sent():
    lineage = task([], [dataset("t", "1", "kafka://a,b"), dataset("t", "2", "kafka://a,c")])
    made = both(lineage)

    def lines(event):
        return [key for key in event["run"]["facets"][CHECK_KEY] if " " in key]

    assert lines(made.kept) == ["wrote a,b/t", "wrote a,c/t"]
    assert lines(made.adapted) == ["wrote a_b/t", "wrote a_c/t"]
    assert lines(sent_of(stored(made.kept), MARQUEZ)) == ["wrote a_b/t", "wrote a_c/t"]


def test_a_dataset_that_a_backend_can_have_no_name_of_is_kept():
    lineage = TaskLineage(Outcome.COMPLETE, (LineageDataset(DatasetName("file", "")),), ())
    made = both(lineage)
    assert [len(event["inputs"]) for event in made] == [1, 0]
