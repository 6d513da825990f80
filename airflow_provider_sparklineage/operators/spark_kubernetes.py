"""SparkKubernetesOperator with lineage."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowOptionalProviderFeatureException

from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

try:
    from airflow.providers.cncf.kubernetes.operators.spark_kubernetes import SparkKubernetesOperator
except ImportError as error:
    msg = (
        "SparkLineageKubernetesOperator needs Airflow's provider for Kubernetes. "
        "Install it: pip install 'airflow-provider-sparklineage[kubernetes]'"
    )
    raise AirflowOptionalProviderFeatureException(msg) from error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context


class SparkKubernetesLineageMixin(LineageMixin):
    """
    Give a SparkKubernetesOperator, or a subclass of it, the lineage of its SparkApplication.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopSparkOperator(SparkKubernetesLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineageKubernetesOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "spark_kubernetes"
    lineage_traced_fields = ("application_file", "template_spec")
    lineage_injected_fields = ("application_file", "template_spec")

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties of the SparkApplication; none if there is no SparkApplication."""
        from airflow_provider_sparklineage.operators.adapters.spark_kubernetes import spec_of

        operator: Any = self
        with suppress(Exception):  # Airflow reports its own reason when the job is about to start
            return spec_of(operator.template_body).get("sparkConf") or {}
        return {}

    def post_complete_action(self, *, pod: Any, context: Context, **kwargs: Any) -> None:
        """Clean up after the driver has ended; note whether an earlier try had submitted it.

        Airflow waits for the driver of an earlier try if it finds one. Then the label of the pod
        has the number of that try.

        :param pod: the driver's pod
        """
        labels = getattr(getattr(pod, "metadata", None), "labels", None) or {}
        submitted_by, own = labels.get("try_number"), str(context["ti"].try_number)
        if submitted_by not in (None, own):
            self.lineage_try.note(is_resumable=True)
        super().post_complete_action(pod=pod, context=context, **kwargs)  # type: ignore[misc]

    def _is_lineage_refused(self) -> bool:
        """Whether Kubernetes took no SparkApplication, and no earlier driver was found."""
        operator: Any = self
        launcher = vars(self).get("launcher")
        return operator.pod is None and not getattr(launcher, "spark_obj_spec", None)


class SparkLineageKubernetesOperator(SparkKubernetesLineageMixin, SparkKubernetesOperator):
    """
    Run a SparkApplication and report the data that it read and wrote as this task's lineage.

    A drop-in for SparkKubernetesOperator: the SparkApplication is not changed, but for the
    OpenLineage listener and the observer, which the driver's pod gets from the capture location. So
    that location has to be a URL that drivers and workers reach. The version of Spark is that of
    ``spec.sparkVersion``.

    .. seealso::
        :class:`~airflow.providers.cncf.kubernetes.operators.spark_kubernetes.SparkKubernetesOperator`
        for all further arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """
