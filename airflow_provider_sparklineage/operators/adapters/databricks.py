"""DatabricksSubmitRunOperator: Databricks starts the drivers of a run, on a cluster of its own.

Nothing can be added to such a run. Databricks installs ``libraries`` on a cluster whose Spark has
started already, and Spark loads its listeners when it starts: a jar for it has to come from an init
script, which is a file of the user's workspace. The observer, which delivers the reports, is
started by Spark's PythonRunner, and Databricks has another. An existing cluster and serverless
compute take no properties at all. So this adapter tells how the listener comes to the cluster, the
run is submitted as it is, and there is nothing to write.

The run is in ``json``, which Airflow's operator merges with the arguments of the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.spark.submit import releases
from airflow_provider_sparklineage.spark.submit.listener import LISTENER_CLASS, VERSION, artifact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.spark.submit.deploy_mode import Target
    from airflow_provider_sparklineage.spark.submit.submission import Submission

_OWN_LISTENER = "com.databricks.backend.daemon.driver.DBCEventLoggingListener"
"""The listener that writes the event log, without which Spark's pages are lost with the cluster."""


def read(operator: Any, context: Context) -> tuple[list[Submission], Target]:  # noqa: ARG001  (of all adapters)
    """Refuse the run, because nothing can be added to it.

    :raise ListenerError: always; it has the reason, and the lines for a new cluster
    """
    clusters = new_clusters(operator)
    if not clusters:
        problem = (
            "The run has no `new_cluster`, and the properties of an existing cluster or of "
            "serverless compute cannot be set by a run."
        )
        fix = (
            "Set up the listener on a cluster of its own (`new_cluster`). Or declare `reads` and "
            "`writes`."
        )
        raise ListenerError(problem, fix)
    _refuse(clusters[0])


def new_clusters(operator: Any) -> list[Mapping[str, Any]]:
    """Give the new clusters of a run, one for each of its tasks that has one."""
    run = operator._get_merged_json()  # noqa: SLF001  (there is no other way to the merged run)
    tasks = run.get("tasks") or [run]
    clusters = [task.get("new_cluster") for task in tasks if isinstance(task, dict)]
    return [cluster for cluster in clusters if isinstance(cluster, dict)]


def _refuse(cluster: Mapping[str, Any]) -> NoReturn:
    spark = releases.spark_of(releases.DATABRICKS, cluster.get("spark_version"))
    scala = spark[1] if spark else "<Scala>"
    problem = (
        "Databricks installs the libraries of a run after Spark has loaded its listeners, and "
        "starts Python in its own way, so neither the listener nor the observer can be added."
    )
    fix = (
        "For events of the application in your backend, with this task as their parent, let an "
        f"init script copy {artifact(scala)}-{VERSION}.jar to /databricks/jars, and set in "
        f"`spark_conf` of `new_cluster`: spark.extraListeners {_OWN_LISTENER},{LISTENER_CLASS}; "
        "spark.openlineage.transport.type http; spark.openlineage.transport.url <backend>; and "
        "openlineage_inject_parent_job_info=True of the task. For datasets of the task, declare "
        "`reads` and `writes`."
    )
    raise ListenerError(problem, fix)
