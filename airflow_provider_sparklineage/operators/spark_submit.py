"""SparkSubmitOperator with lineage, also if it resumes the job that an earlier try submitted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.providers.common.compat.openlineage.utils.spark import (
    inject_transport_information_into_spark_properties,
)

from airflow_provider_sparklineage.operators.lineage_mixin import LineageMixin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.operators.attempt.submit import Capture

# Attributes of Airflow's hook with the ids that it has read in spark-submit's output. YARN's is
# there before the application is submitted: the paths of uploaded files have it.
_ID_OF_YARN = "_yarn_application_id"
_IDS_OF_DRIVERS = ("_driver_id", "_kubernetes_application_id", "_kubernetes_driver_pod")
_SUBMITTED = re.compile(r"Submitted application|Application report for|finished with")


class SparkLineageMixin(LineageMixin):
    """
    Give a SparkSubmitOperator, or a subclass of it, the lineage of the job that it runs.

    In the bases of a class, the mixin comes before the operator:
    ``class ShopSubmitOperator(SparkLineageMixin, ShopSparkSubmitOperator)``.

    .. seealso::
        :class:`SparkLineageSubmitOperator` for a description, and for the arguments.
    """

    __slots__ = ()

    lineage_traced_fields = ("application_args", "conf", "env_vars")
    lineage_injected_fields = (
        *("conf", "jars", "py_files", "env_vars", "properties_file"),
        "_openlineage_inject_transport_info",  # the operator's own way, as an argument
    )

    @property
    def lineage_properties(self) -> Mapping[str, Any]:
        """The properties that the operator passes to spark-submit by ``--conf``."""
        operator: Any = self
        return operator.conf or {}

    def submit_job(self, context: Context) -> Any:
        """Submit the job, and note that this try submits it: there is no earlier job to resume."""
        self.lineage_try.note(is_submitted=True)
        return super().submit_job(context)  # type: ignore[misc]

    def execute_resumable(self, context: Context) -> Any:
        """Submit the job, or wait for the end of the job that an earlier try submitted."""
        self.lineage_try.note(is_resumable=True)
        return super().execute_resumable(context)  # type: ignore[misc]

    def get_job_status(self, external_id: Any, context: Context) -> str:
        """Give the state of the job that an earlier try submitted, and note the job's id.

        Airflow resumes the job if it still runs.

        :param external_id: the id by which Airflow knows the job
        """
        self.lineage_try.note(resumed_id=str(external_id))
        status: str = super().get_job_status(external_id, context)  # type: ignore[misc]
        return status

    def _arguments_before_lineage(self) -> dict[str, Any]:
        """Give the arguments that injection changes, by name; ``conf`` is ``{}`` and never None.

        The stock ``execute()`` replaces a ``conf`` of None by ``{}``, too.
        """
        own = super()._arguments_before_lineage()
        # The stock execute() begins with this line, and the user's code may rely on a dict here.
        return own | {"conf": own.get("conf") or {}}

    def _is_lineage_refused(self) -> bool:
        """Whether Airflow never started spark-submit, and resumed no job of an earlier try.

        It is False if this is not known.
        """
        capture, hook = self.lineage_try.capture, getattr(self, "_hook", None)
        is_resumed = capture is not None and capture.is_resumed
        return not is_resumed and getattr(hook, "_submit_sp", "unknown") is None

    def _failed_lineage_submission(self) -> Mapping[str, Any]:
        """Give the changes of the capture if spark-submit failed and the driver is in a cluster.

        Spark-submit may fail before or after it has started an application. Its output tells which,
        unless somebody has configured its log to be silent.
        """
        capture, hook = self.lineage_try.capture, getattr(self, "_hook", None)
        code = getattr(getattr(hook, "_submit_sp", None), "returncode", None) or 0
        if capture is None or capture.is_resumed or code <= 0:  # below 0 a signal ended it
            return {}
        if capture.is_awaited and not capture.bundle.manifest.remote:  # the driver was here
            return {}
        failed = f"spark-submit failed (exit code {code})"
        known = [getattr(hook, name, None) for name in _IDS_OF_DRIVERS]
        if _SUBMITTED.search("\n".join(getattr(hook, "_last_submit_log_lines", ()))):
            known.append(getattr(hook, _ID_OF_YARN, None))
        application = next(filter(None, known), None)
        if application is None:
            text = (
                f"{failed}, and its output names no application that was submitted, so none is "
                "known to have started. The log of the task has that output."
            )
            return {"unsubmitted": text, "is_awaited": True}
        text = f"{failed} after it had submitted {application}, of whose end nothing is known."
        return {} if capture.is_awaited else {"unsubmitted": text}

    def _inject_lineage(self, capture: Capture, context: Context) -> Capture:
        """Put the listener into this operator's own submission."""
        from airflow_provider_sparklineage.operators.attempt.submit import submittable
        from airflow_provider_sparklineage.spark.submit.deploy_mode import SubmitTarget
        from airflow_provider_sparklineage.spark.submit.submission import Submission

        operator: Any = self
        # Private, but only these members of Airflow's know the master, the deploy mode, and whether
        # Airflow asks the cluster for the end of the application.
        hook = operator._get_hook()  # noqa: SLF001
        connection = hook._connection  # noqa: SLF001
        target = SubmitTarget(
            connection["spark_binary"],
            connection["master"],
            connection["deploy_mode"],
            operator.properties_file,
            airflow_transport_properties(operator, context),
            is_polled=hook._should_track_driver_status  # noqa: SLF001
            or hook._should_track_driver_via_k8s_api()  # noqa: SLF001
            or hook._should_track_yarn_application_via_rm_api(),  # noqa: SLF001
        )
        submission = Submission(
            conf=dict(operator.conf or {}),
            jars=operator.jars,
            packages=operator.packages,
            driver_class_path=operator.driver_class_path,
            py_files=operator.py_files,
            application=operator.application or "",
            env_vars=dict(operator.env_vars or {}),
        )
        capture, after, properties_file = submittable(capture, submission, target, context)
        if after is submission:
            return capture
        operator._hook = None  # noqa: SLF001  (an earlier execution's has that one's arguments)
        operator.conf = dict(after.conf)
        operator.jars = after.jars
        operator.py_files = after.py_files
        operator.env_vars = dict(after.env_vars) or operator.env_vars
        operator.properties_file = properties_file or operator.properties_file
        return capture


class SparkLineageSubmitOperator(SparkLineageMixin, SparkSubmitOperator):
    """
    Run spark-submit and report the data that the job read and wrote as the lineage of this task.

    A drop-in for SparkSubmitOperator: the job is not changed. The OpenLineage listener is added to
    the submission, its events are collected on the worker, and when the job has ended they are
    merged into one lineage (datasets, schemas, column lineage composed across the job's actions),
    which Airflow's OpenLineage provider sends with the task's own event. A problem with lineage
    does not fail the task, unless ``strict`` is on; the event (run facet ``sparkLineage_capture``)
    and one warning name the parts that could not be collected.

    .. seealso::
        :class:`~airflow.providers.apache.spark.operators.spark_submit.SparkSubmitOperator` for all
        further arguments.

    :param lineage: False gives exactly the stock SparkSubmitOperator.
    :param reads: The data that the job is expected to read: URIs, paths, tables, assets, or a
        :class:`~airflow_provider_sparklineage.expectations.DatasetSubset` of one. (templated)
    :param writes: The data that the job is expected to write, in the same forms. (templated)
    :param partition_key_dimensions: Partition columns that the run's partition key stands for:
        ``["dt"]``, or a pattern such as ``"{dt}|{region}"``.
    :param on_partition_mismatch: The consequence if the job accessed other partitions than
        expected: ``warn``, ``ignore``, or ``fail`` the task without a retry when the job has ended.
    :param check_partitions_of: The datasets whose partitions are checked: ``reads``, ``writes``,
        globs; all if None.
    :param on_partition_mismatch_callback: Called with the list of mismatches.
    :param record_asset_partitions: Record, on the outlet asset for each output, the partitions that
        the job wrote; a text is the format of the keys, e.g. ``"{dt}|{region}"``.
    :param observe: Observe in the PySpark driver which partitions are really read and written;
        ``[sparklineage] observe`` if None.
    :param strict: Fail before submitting when lineage cannot be collected;
        ``[sparklineage] strict`` if None.
    :param listener_extensions: Jars on the worker that extend the OpenLineage listener;
        ``[sparklineage] listener_extensions`` if None.
    :param lineage_conn_id: Connection of type ``sparklineage`` with settings; the default
        connection need not exist.
    :param relay_spark_events: Send Spark's own events as well, through Airflow's transport;
        ``[sparklineage] relay_spark_events`` if None.
    """


# If `openlineage_inject_transport_info` asks for it, Spark gets Airflow's own transport. The stock
# operator would pass the transport by `--conf`, where every user of the machine can read its key.
# So the functions below take the transport from the provider and correct it; it is then passed on
# like a transport of the user's.


_TRANSPORT_FLAG = "_openlineage_inject_transport_info"


def airflow_transport_properties(operator: Any, context: Context) -> dict[str, str]:
    """Give the Spark properties of Airflow's transport, and keep the operator from injecting them.

    :param operator: a SparkSubmitOperator; its flag ``openlineage_inject_transport_info`` is
        switched off until its execution has ended
    :return: the properties; ``{}`` if the flag was off already
    """
    if not getattr(operator, _TRANSPORT_FLAG, False):
        return {}
    setattr(operator, _TRANSPORT_FLAG, False)
    provided: Mapping[str, Any] = inject_transport_information_into_spark_properties({}, context)
    return corrected_transport(provided)


def corrected_transport(properties: Mapping[str, Any]) -> dict[str, str]:
    """Correct those properties which Airflow's provider makes and the listener would misread.

    The listener puts ``Bearer`` before a key itself, so that prefix is removed. The provider
    truncates a timeout below a second to 0, which the listener takes as no time at all, so a
    timeout of 0 is left out.

    :return: all properties as texts, except those without a value
    """
    corrected = {}
    for key, value in properties.items():
        if value is None or (key.endswith(".timeoutInMillis") and str(value) == "0"):
            continue
        corrected[key] = str(value)
        if key.endswith(".auth.apiKey"):
            corrected[key] = corrected[key].removeprefix("Bearer ")
    return corrected
