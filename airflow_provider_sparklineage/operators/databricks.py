"""DatabricksSubmitRunOperator with the lineage that is declared, as nothing can be collected."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowOptionalProviderFeatureException

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.lineage_mixin import ResumableLineageMixin

try:
    from airflow.providers.databricks.operators.databricks import DatabricksSubmitRunOperator
except ImportError as error:
    msg = (
        "SparkLineageDatabricksOperator needs Airflow's provider for Databricks. "
        "Install it: pip install 'airflow-provider-sparklineage[databricks]'"
    )
    raise AirflowOptionalProviderFeatureException(msg) from error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.operators.attempt.submit import Capture


class DatabricksLineageMixin(ResumableLineageMixin):
    """
    Give a DatabricksSubmitRunOperator, or a subclass of it, the lineage that is declared.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopRunOperator(DatabricksLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineageDatabricksOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "databricks"
    lineage_traced_fields = (
        "json",
        "tasks",
        "notebook_task",
        "spark_jar_task",
        "spark_python_task",
        "spark_submit_task",
        "dbt_task",
        "new_cluster",
    )

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties of all new clusters; none if the run cannot be read."""
        from airflow_provider_sparklineage.operators.adapters.databricks import new_clusters

        with suppress(Exception):  # Airflow reports its own reason when the run is about to start
            properties = [cluster.get("spark_conf") or {} for cluster in new_clusters(self)]
            return {key: value for each in properties for key, value in each.items()}
        return {}

    def _inject_lineage(self, capture: Capture, context: Context) -> Capture:
        """Note in the capture why the run gets no listener."""
        from airflow_provider_sparklineage.operators.attempt.submit import refused

        try:
            return super()._inject_lineage(capture, context)
        except ListenerError as error:
            return refused(capture, error)


class SparkLineageDatabricksOperator(DatabricksLineageMixin, DatabricksSubmitRunOperator):
    """
    Submit a run to Databricks, and report as this task's lineage the datasets that are declared.

    A drop-in for DatabricksSubmitRunOperator. The run is not changed, and nothing of it is
    collected: Databricks takes the OpenLineage listener from an init script alone. The event says
    so, with the lines that a new cluster needs, and has the datasets and partitions of ``reads``
    and ``writes``.

    .. seealso::
        :class:`~airflow.providers.databricks.operators.databricks.DatabricksSubmitRunOperator` for
        all further arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """
