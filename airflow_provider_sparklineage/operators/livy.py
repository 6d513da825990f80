"""LivyOperator with lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowOptionalProviderFeatureException

from airflow_provider_sparklineage.operators.lineage_mixin import ResumableLineageMixin

try:
    from airflow.providers.apache.livy.operators.livy import LivyOperator
except ImportError as error:
    msg = (
        "SparkLineageLivyOperator needs Airflow's provider for Livy. "
        "Install it: pip install 'airflow-provider-sparklineage[livy]'"
    )
    raise AirflowOptionalProviderFeatureException(msg) from error

if TYPE_CHECKING:
    from collections.abc import Mapping


class LivyLineageMixin(ResumableLineageMixin):
    """
    Give a LivyOperator, or a subclass of it, the lineage of the batch that it posts.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopLivyOperator(LivyLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineageLivyOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "livy"
    lineage_traced_fields = ("spark_params",)
    lineage_injected_fields = ("spark_params", "openlineage_inject_transport_info")

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties of the batch."""
        operator: Any = self
        return operator.spark_params.get("conf") or {}

    def _is_lineage_refused(self) -> bool:
        """Whether Livy gave no id of a batch, and no batch of an earlier try was resumed."""
        capture, operator = self.lineage_try.capture, self
        is_resumed = capture is not None and capture.is_resumed
        return not is_resumed and getattr(operator, "_batch_id", "unknown") is None


class SparkLineageLivyOperator(LivyLineageMixin, LivyOperator):
    """
    Run a batch in Apache Livy and report the data that it read and wrote as this task's lineage.

    A drop-in for LivyOperator: the batch is not changed, but for the OpenLineage listener and the
    observer, which Livy's Spark gets from the capture location. So that location has to be a URL
    that Livy's drivers and the workers reach, and ``[sparklineage] spark_version`` has to name the
    Spark that Livy runs.

    .. seealso::
        :class:`~airflow.providers.apache.livy.operators.livy.LivyOperator` for all further
        arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """
