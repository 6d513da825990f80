"""The operators for Dataproc, with lineage."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowOptionalProviderFeatureException

from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

# The provider is not among those that this package is developed with.
try:
    from airflow.providers.google.cloud.hooks.dataproc import (  # type: ignore[import-not-found, unused-ignore]
        DataprocHook,
    )
    from airflow.providers.google.cloud.operators.dataproc import (  # type: ignore[import-not-found, unused-ignore]
        DataprocCreateBatchOperator,
        DataprocInstantiateInlineWorkflowTemplateOperator,
        DataprocSubmitJobOperator,
    )
    from google.api_core.exceptions import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
        AlreadyExists,
    )
except ImportError as error:
    msg = (
        "The operators for Dataproc need Airflow's provider for Google. "
        "Install it: pip install 'airflow-provider-sparklineage[google]'"
    )
    raise AirflowOptionalProviderFeatureException(msg) from error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from airflow.providers.common.compat.sdk import Context

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


class SparkLineageDataprocSubmitOperator(
    DataprocSubmitLineageMixin,
    DataprocSubmitJobOperator,  # type: ignore[misc, unused-ignore]
):
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


class DataprocBatchLineageMixin(LineageMixin):
    """
    Give a DataprocCreateBatchOperator, or a subclass of it, the lineage of the batch it creates.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopBatchOperator(DataprocBatchLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineageDataprocBatchOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "dataproc_batch"
    lineage_traced_fields = ("batch",)
    lineage_injected_fields = ("batch", "openlineage_inject_transport_info")

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties of the batch."""
        from airflow_provider_sparklineage.operators.adapters import dataproc_batch

        operator: Any = self
        return dataproc_batch.properties_of(operator.batch)

    @contextmanager
    def _lineage_running(self, context: Context) -> Iterator[None]:
        """Let the hook note whether this try creates the batch, or one of its id is there already.

        The stock operator waits for a batch that is there as if the batch were its own.
        """
        capture, operator = self.lineage_try.capture, self
        if capture is not None and not capture.is_taken_up:
            with suppress(Exception):  # which the stock operator is about to raise
                hook: Any = getattr(operator, "hook")  # noqa: B009  (of the stock operator)
                hook.create_batch = self._noting_lineage(hook.create_batch)
        with super()._lineage_running(context):
            yield

    def _noting_lineage(self, create: Any) -> Any:
        def create_batch(**arguments: Any) -> Any:
            try:
                operation = create(**arguments)
            except AlreadyExists:
                self._note_earlier_lineage(str(arguments.get("batch_id")))
                raise
            # No later try can find a batch by an id that Dataproc has made.
            self.lineage_try.note(is_submitted=bool(arguments.get("batch_id")))
            return operation

        return create_batch

    def _note_earlier_lineage(self, batch: str) -> None:
        """Note that a batch of this id is there: its driver does not deliver to this try.

        The process that resumes a deferred task reads this in the manifest at the location.
        """
        from airflow_provider_sparklineage.model.degradations import DegradationCode
        from airflow_provider_sparklineage.operators.attempt import submit

        self.lineage_try.note(is_resumable=True, resumed_id=batch)
        capture, operator = self.lineage_try.capture, self
        if capture is not None and getattr(operator, "deferrable", False):
            problem = (
                f"The batch {batch} was there already, so what it read and wrote was captured by "
                "the try that created it, if by any."
            )
            noted = capture.noted((DegradationCode.SUBMISSION_RESUMED, problem), remote="")
            with suppress(Exception):  # then the event says that nothing was delivered
                submit.announced(noted)

    def _is_lineage_refused(self) -> bool:
        """Whether this try created no batch, and there was none of its id."""
        capture = self.lineage_try.capture
        is_resumed = capture is not None and capture.is_resumed
        return not is_resumed and getattr(self, "operation", "unknown") is None


class SparkLineageDataprocBatchOperator(
    DataprocBatchLineageMixin,
    DataprocCreateBatchOperator,  # type: ignore[misc, unused-ignore]
):
    """
    Run a batch of Serverless for Apache Spark and report the data that it read and wrote.

    A drop-in for DataprocCreateBatchOperator: the batch is not changed, but for the OpenLineage
    listener and the observer, which its driver gets from the capture location. So that location has
    to be a URL that batches and workers reach, such as ``gs://bucket/lineage``. The version of
    Spark follows from ``runtime_config["version"]``; for a batch without a version,
    ``[sparklineage] spark_version`` has to name it.

    .. seealso::
        :class:`~airflow.providers.google.cloud.operators.dataproc.DataprocCreateBatchOperator` for
        all further arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """


class DataprocWorkflowLineageMixin(LineageMixin):
    """
    Give a workflow of Dataproc the lineage of all its jobs that start Spark.

    It is for a DataprocInstantiateInlineWorkflowTemplateOperator, or a subclass of it. In the bases
    of a class, the mixin comes before the operator:
    ``class ShopWorkflowOperator(DataprocWorkflowLineageMixin, ShopOperator)``.

    .. seealso::
        :class:`SparkLineageDataprocWorkflowOperator` for a description.
    """

    __slots__ = ()

    lineage_adapter = "dataproc_workflow"
    lineage_traced_fields = ("template",)
    lineage_injected_fields = ("template", "openlineage_inject_transport_info")

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties of all jobs; of a property that several jobs have, the last one's."""
        from airflow_provider_sparklineage.operators.adapters import dataproc_workflow

        operator: Any = self
        return dataproc_workflow.properties_of(operator.template)

    def _is_lineage_refused(self) -> bool:
        """Whether Dataproc gave no name of an operation."""
        return getattr(self, "operation_name", "unknown") is None


class SparkLineageDataprocWorkflowOperator(
    DataprocWorkflowLineageMixin,
    DataprocInstantiateInlineWorkflowTemplateOperator,  # type: ignore[misc, unused-ignore]
):
    """
    Run a workflow on Dataproc and report the data that its Spark jobs read and wrote, together.

    A drop-in for DataprocInstantiateInlineWorkflowTemplateOperator: the template is not changed,
    but for the OpenLineage listener and the observer in each job that starts Spark, which the
    cluster gets from the capture location. So that location has to be a URL that the cluster and
    the workers reach, such as ``gs://bucket/lineage``. The version of Spark follows from the image
    of the managed cluster; for another cluster, ``[sparklineage] spark_version`` has to name it.

    .. seealso::
        :class:`~airflow.providers.google.cloud.operators.dataproc.DataprocInstantiateInlineWorkflowTemplateOperator`
        for all further arguments, and
        :class:`~airflow_provider_sparklineage.operators.spark_submit.SparkLineageSubmitOperator`
        for those of lineage, which are the same.
    """
