"""The operators for Spark on Amazon EMR with lineage."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowOptionalProviderFeatureException

from airflow_provider_sparklineage.model.exceptions import ListenerError
from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

try:
    from airflow.providers.amazon.aws.operators.emr import (
        EmrAddStepsOperator,
        EmrContainerOperator,
        EmrServerlessStartJobOperator,
    )
except ImportError as error:
    msg = (
        "The operators for EMR with lineage need Airflow's provider for Amazon. "
        "Install it: pip install 'airflow-provider-sparklineage[amazon]'"
    )
    raise AirflowOptionalProviderFeatureException(msg) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_provider_sparklineage.spark.submit.submission import Submission


def _properties(read: Callable[[], Sequence[Submission]]) -> Mapping[str, Any]:
    """Give the properties of a task's submissions; {} if it starts no Spark."""
    with suppress(ListenerError):
        return {key: value for each in read() for key, value in each.conf.items()}
    return {}


class EmrServerlessLineageMixin(LineageMixin):
    """
    Give an EmrServerlessStartJobOperator, or a subclass of it, the lineage of its job run.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopEmrOperator(EmrServerlessLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineageEmrServerlessOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "emr_serverless"
    lineage_traced_fields = ("job_driver", "configuration_overrides")
    lineage_injected_fields = (
        "job_driver",
        "configuration_overrides",
        "openlineage_inject_transport_info",
    )

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties of the job run."""
        from airflow_provider_sparklineage.operators.adapters import emr_serverless

        return _properties(lambda: [emr_serverless.job_run(self, emr_serverless.DRIVER)])

    def _is_lineage_refused(self) -> bool:
        """Whether EMR gave no id of a job run."""
        return getattr(self, "job_id", "unknown") is None


class SparkLineageEmrServerlessOperator(EmrServerlessLineageMixin, EmrServerlessStartJobOperator):
    """
    Run a Spark job in EMR Serverless and report the data that it read and wrote as its lineage.

    A drop-in for EmrServerlessStartJobOperator: the job run is not changed, but for the OpenLineage
    listener and the observer, which its Spark gets from the capture location. So that location has
    to be a URL that the job's role and the workers reach. The version of Spark follows from the
    application's release label, or else from ``[sparklineage] spark_version``.

    .. seealso::
        :class:`~airflow.providers.amazon.aws.operators.emr.EmrServerlessStartJobOperator` for all
        further arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """


class EmrContainerLineageMixin(EmrServerlessLineageMixin):
    """
    Give an EmrContainerOperator, or a subclass of it, the lineage of its job run.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopEmrOperator(EmrContainerLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineageEmrContainerOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "emr_containers"

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties of the job run."""
        from airflow_provider_sparklineage.operators.adapters import emr_containers, emr_serverless

        return _properties(lambda: [emr_serverless.job_run(self, emr_containers.DRIVER)])


class SparkLineageEmrContainerOperator(EmrContainerLineageMixin, EmrContainerOperator):
    """
    Run a Spark job in EMR on EKS and report the data that it read and wrote as its lineage.

    A drop-in for EmrContainerOperator: the job run is not changed, but for the OpenLineage listener
    and the observer, which its Spark gets from the capture location. So that location has to be a
    URL that the job's role and the workers reach. The version of Spark follows from
    ``release_label``, or else from ``[sparklineage] spark_version``.

    .. seealso::
        :class:`~airflow.providers.amazon.aws.operators.emr.EmrContainerOperator` for all further
        arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """


class EmrStepsLineageMixin(LineageMixin):
    """
    Give an EmrAddStepsOperator, or a subclass of it, the lineage of its steps that start Spark.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopEmrOperator(EmrStepsLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineageEmrStepsOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "emr_steps"
    lineage_traced_fields = ("steps",)
    lineage_injected_fields = ("steps",)

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties of all steps; if several set one, that of the last."""
        from airflow_provider_sparklineage.operators.adapters import emr_steps

        return _properties(lambda: emr_steps.spark_steps(self))


class SparkLineageEmrStepsOperator(EmrStepsLineageMixin, EmrAddStepsOperator):
    """
    Run steps on a cluster of Amazon EMR and report the data that they read and wrote as lineage.

    A drop-in for EmrAddStepsOperator: steps that are a spark-submit get the OpenLineage listener
    and the observer, from the capture location; all others stay as they are. The task's event has
    the lineage of all of them. The capture location has to be a URL that the cluster and the
    workers reach, and the task has to wait for its steps. The version of Spark follows from the
    cluster's release label, or else from ``[sparklineage] spark_version``.

    .. seealso::
        :class:`~airflow.providers.amazon.aws.operators.emr.EmrAddStepsOperator` for all further
        arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """
