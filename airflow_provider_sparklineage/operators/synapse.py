"""AzureSynapseRunSparkBatchOperator with lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowOptionalProviderFeatureException

from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

try:
    # The provider brings fifty packages, so who checks types may not have it.
    from airflow.providers.microsoft.azure.operators.synapse import (  # type: ignore[import-not-found, unused-ignore]
        AzureSynapseRunSparkBatchOperator,
    )
except ImportError as error:
    msg = (
        "SparkLineageSynapseOperator needs Airflow's provider for Microsoft Azure. "
        "Install it: pip install 'airflow-provider-sparklineage[synapse]'"
    )
    raise AirflowOptionalProviderFeatureException(msg) from error

if TYPE_CHECKING:
    from collections.abc import Mapping


class SynapseLineageMixin(LineageMixin):
    """
    Give an AzureSynapseRunSparkBatchOperator, or a subclass of it, the lineage of its batch.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopBatchOperator(SynapseLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineageSynapseOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "synapse"
    lineage_injected_fields = ("payload",)

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties of the batch."""
        from airflow_provider_sparklineage.operators.adapters.synapse import properties_of

        operator: Any = self
        return properties_of(operator.payload)

    def _is_lineage_refused(self) -> bool:
        """Whether Synapse gave no id of a batch."""
        return getattr(self, "job_id", "unknown") is None


class SparkLineageSynapseOperator(SynapseLineageMixin, AzureSynapseRunSparkBatchOperator):  # type: ignore[misc, unused-ignore]
    """
    Run a batch in a Spark pool of Azure Synapse and report its data as this task's lineage.

    A drop-in for AzureSynapseRunSparkBatchOperator: the batch is not changed, but for the
    OpenLineage listener and the observer, which the pool gets from the capture location. So that
    location has to be a URL that drivers and workers reach, and ``[sparklineage] spark_version``
    has to name the Spark of the pool.

    .. seealso::
        :class:`~airflow.providers.microsoft.azure.operators.synapse.AzureSynapseRunSparkBatchOperator`
        for all further arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """
