"""Adoption and the versions that Airflow keeps of a DAG."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select

from tests.operators.adoption.conftest import adopt, parse, policies
from tests.operators.adoption.test_serialised_dags import FILE

__all__ = ["adopt", "parse", "policies"]  # fixtures

pytestmark = [
    pytest.mark.airflow,
    # Airflow's database connections outlive a test.
    pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning"),
]

DAG_FILE = FILE.replace('    "shop",\n', '    "versions_shop",\n')


def written(dag, number):
    """Store a DAG and a run of it, as for the version that a run is of; give how many there are."""
    from airflow.models.dag_version import DagVersion
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.serialization.definitions.dag import SerializedDAG
    from airflow.serialization.serialized_objects import LazyDeserializedDAG
    from airflow.utils.session import create_session
    from airflow.utils.state import DagRunState
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    lazy = LazyDeserializedDAG.from_dag(dag)
    SerializedDAG.bulk_write_to_db("dags-folder", None, [lazy])
    SerializedDagModel.write_dag(lazy, bundle_name="dags-folder")
    day = datetime(2024, 5, 6, tzinfo=UTC) + timedelta(days=number)
    SerializedDagModel.get_dag("versions_shop").create_dagrun(
        run_id=f"run_{number}",
        logical_date=day,
        data_interval=(day, day),
        run_after=day,
        run_type=DagRunType.MANUAL,
        triggered_by=DagRunTriggeredByType.TEST,
        state=DagRunState.SUCCESS,
    )
    with create_session() as session:
        of_the_dag = select(func.count()).where(DagVersion.dag_id == "versions_shop")
        return session.scalar(of_the_dag)


def test_turning_adoption_on_makes_one_version_of_a_dag_and_turning_it_off_one(airflow_db, parse):
    values = [None, "off", "off", "all", "all", '[{"tags": "spark"}]', "off", None]
    versions = [written(parse(DAG_FILE, value), n) for n, value in enumerate(values)]
    assert versions == [1, 1, 1, 2, 2, 2, 3, 3]
