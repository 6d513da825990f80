"""The operators for Dataproc, with lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowOptionalProviderFeatureException

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

try:
    from airflow.providers.google.cloud.hooks.dataproc import DataprocHook
    from airflow.providers.google.cloud.operators.dataproc import DataprocSubmitJobOperator
except ImportError as error:
    msg = (
        "The operators for Dataproc need Airflow's provider for Google. "
        "Install it: pip install 'airflow-provider-sparklineage[google]'"
    )
    raise AirflowOptionalProviderFeatureException(msg) from error

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logger(__name__)

_ASK_S = 10.0  # the job waits


class DataprocSubmitLineageMixin(LineageMixin):
    """
    Give a DataprocSubmitJobOperator, or a subclass of it, the lineage of the job that it submits.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopJobOperator(DataprocSubmitLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineageDataprocSubmitOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "dataproc"
    lineage_traced_fields = ("job",)
    lineage_injected_fields = ("job", "openlineage_inject_transport_info")

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties of the job."""
        from airflow_provider_sparklineage.operators.adapters import dataproc

        operator: Any = self
        return dataproc.properties_of(operator.job)

    def _is_lineage_refused(self) -> bool:
        """Whether Dataproc gave no id of a job."""
        return getattr(self, "job_id", "unknown") is None

    def lineage_cluster(self, name: str) -> Any:
        """Ask Dataproc for a cluster.

        :param name: the cluster's name
        :return: None if the connection may not see the cluster, or there is no answer in time
        """
        from airflow_provider_sparklineage.storage.bounded import within

        operator: Any = self

        def ask() -> Any:
            return hook.get_cluster(
                project_id=operator.project_id,
                region=operator.region,
                cluster_name=name,
                retry=None,
                timeout=_ASK_S,
            )

        try:
            hook = DataprocHook(
                gcp_conn_id=operator.gcp_conn_id, impersonation_chain=operator.impersonation_chain
            )
            return within(_ASK_S, ask, "sparklineage-dataproc")
        except Exception:
            log.debug("The image of the cluster %s is not known.", name, exc_info=True)
            return None


class SparkLineageDataprocSubmitOperator(DataprocSubmitLineageMixin, DataprocSubmitJobOperator):
    """
    Run a Spark job on a Dataproc cluster and report the data that it read and wrote as lineage.

    A drop-in for DataprocSubmitJobOperator: the job is not changed, but for the OpenLineage
    listener and the observer, which the cluster gets from the capture location. So that location
    has to be a URL that the cluster and the workers reach, such as ``gs://bucket/lineage``. The
    version of Spark follows from the cluster's image; where the connection may not see the cluster,
    ``[sparklineage] spark_version`` has to name it.

    .. seealso::
        :class:`~airflow.providers.google.cloud.operators.dataproc.DataprocSubmitJobOperator` for
        all further arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """
