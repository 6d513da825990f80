"""The comparator of full documents: it must see what matters and pass over what does not."""

from __future__ import annotations

import copy
import json

import pytest

from tests.dag_runs.documents import FOLDER, normalised

EVENT = json.loads((FOLDER / "complete.json").read_text())


def changed(change):
    event = copy.deepcopy(EVENT)
    change(event)
    return event


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda e: e["inputs"].pop(), id="an input less"),
        pytest.param(lambda e: e["outputs"][0].update(name="/lake/other"), id="another output"),
        pytest.param(lambda e: e.update(eventType="FAIL"), id="another state"),
        pytest.param(
            lambda e: e["outputs"][0]["facets"]["columnLineage"]["fields"].popitem(),
            id="a column less",
        ),
        pytest.param(
            lambda e: next(iter(e["outputs"][0]["facets"]["columnLineage"]["fields"].values()))[
                "inputFields"
            ][0].update(field="x"),
            id="another source",
        ),
        pytest.param(
            lambda e: e["inputs"][0]["facets"]["schema"]["fields"][0].update(type="x"),
            id="another type",
        ),
        pytest.param(
            lambda e: e["run"]["facets"]["sparkLineage_capture"]["degradations"].append(
                {"code": "x"}
            ),
            id="one more degradation",
        ),
        pytest.param(lambda e: e["run"]["facets"].pop("parent"), id="no parent"),
    ],
)
def test_a_difference_that_matters_is_seen(change):
    assert normalised(changed(change), "/x") != normalised(EVENT, "/x")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda e: e["run"].update(runId="01234567-89ab-cdef-0123-456789abcdef"), id="run id"
        ),
        pytest.param(lambda e: e.update(eventTime="2026-01-01T00:00:00.1Z"), id="time"),
        pytest.param(
            lambda e: e["run"]["facets"]["sparkLineage_capture"].update(events=99),
            id="events counted",
        ),
    ],
)
def test_what_differs_from_run_to_run_is_passed_over(change):
    event = copy.deepcopy(EVENT)
    event["run"]["runId"] = "fedcba98-89ab-cdef-0123-456789abcdef"
    event["eventTime"] = "2025-01-01T00:00:00Z"
    other = copy.deepcopy(event)
    change(other)
    assert normalised(other, "/x") == normalised(event, "/x")
