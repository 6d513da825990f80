"""Several steps of a task: its one event has the lineage of all of them."""

from __future__ import annotations

import pytest

from tests.services.emr_steps import step

pytestmark = [pytest.mark.spark, pytest.mark.airflow, pytest.mark.long]


def test_the_event_has_the_outputs_of_both_steps(submit_by, lakes, location):
    submit, [one, two] = submit_by("emr_steps"), lakes
    steps = [
        step("staging_chain", one, conf={"spark.sql.warehouse.dir": f"{one}/warehouse"}),
        step("union_diamond", two, conf={"spark.sql.warehouse.dir": f"{two}/warehouse"}),
    ]
    ran = submit.execute(submit.of_steps(*steps))
    assert ran.error is None
    outputs = [dataset.name for dataset in ran.lineage.outputs]
    assert any(name.startswith(one) for name in outputs)
    assert any(name.startswith(two) for name in outputs)
    [capture] = [
        facet for key, facet in ran.lineage.run_facets.items() if key == "sparkLineage_capture"
    ]
    assert capture.degradations == []
    assert not [*location.glob("*-try*")]
