"""A workflow of two jobs has one event, with what both read and wrote."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.airflow]


def test_a_workflow_of_two_jobs_has_the_outputs_of_both(submit_by, location, lakes):
    lake, _ = lakes
    conf = {"spark.sql.warehouse.dir": f"{lake}/warehouse"}
    submit = submit_by("dataproc_workflow")
    ran = submit("staging_chain", lake, conf=conf, more=("union_diamond",))
    assert ran.error is None
    assert ran.degradations == {}
    outputs = [name.rpartition("/")[2] for name in ran.outputs]
    assert {"revenue", "audience"} <= {*outputs}
    assert not [*location.glob("*-try*")]
