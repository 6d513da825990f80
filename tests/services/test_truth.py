"""The same jobs have the same lineage by spark-submit and by each service, but for paths."""

from __future__ import annotations

import pytest

from tests.cluster.documents import differences, document
from tests.conftest import long_after
from tests.services.jobs import JOBS

pytestmark = [pytest.mark.spark, pytest.mark.airflow]

SERVICES = (
    "spark_kubernetes",
    "emr_steps",
    "emr_serverless",
    "emr_containers",
    "glue",
    "dataproc_job",
    "dataproc_batch",
    "dataproc_workflow",
    "livy",  # also in tests/cluster, where it is a real one
    "synapse",
)


@pytest.fixture(scope="module")
def known():
    """Keep what jobs report by spark-submit: it is the same for all services."""
    return {}


@pytest.mark.parametrize("job", long_after(1, JOBS))
@pytest.mark.parametrize("service", long_after(1, SERVICES))
def test_a_job_has_the_lineage_of_spark_submit(
    service, job, submit_by, submit_here, location, lakes, known
):
    def run(submit, root):
        ran = submit(job, root, conf={"spark.sql.warehouse.dir": f"{root}/warehouse"})
        return ran.error is None, document(ran, {f"file:{root}": "/lake", root: "/lake"})

    theirs, ours = lakes
    if job not in known:
        known[job] = run(submit_here, theirs)
    succeeded, by_service = run(submit_by(service), ours)
    expected, by_spark_submit = known[job]
    assert succeeded == expected
    assert by_service["inputs"]
    assert differences(by_service, by_spark_submit) == []
    assert bool([*location.glob("*-try*")]) is not succeeded  # what is left of a failed try is kept
