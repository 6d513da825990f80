"""What Airflow's OpenLineage provider asks an operator, and what decides the answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.hooks import sources
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.model.exceptions import SettingsError
from airflow_provider_sparklineage.settings import resolution
from airflow_provider_sparklineage.settings.connection import source_of
from airflow_provider_sparklineage.settings.options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_sparklineage.event.event_parts import OpenLineageParts
    from airflow_provider_sparklineage.expectations.declared import Declared
    from airflow_provider_sparklineage.model.rules import PartitionRules
    from airflow_provider_sparklineage.operators.reporting import Prepared
    from airflow_provider_sparklineage.templates import TracedText

log = logger(__name__)


class OpenLineageHooks:
    """The hooks of an operator whose lineage is collected while it executes."""

    lineage: bool
    strict: bool | None
    lineage_conn_id: str
    _traces: tuple[TracedText, ...] | None
    _unrendered: tuple[str, ...]
    _sources: tuple[resolution.Source, resolution.Source] | None
    _prepared: Prepared | None
    _collected: OpenLineageParts | None
    _ended_as: str | None

    # Airflow takes its default extractor for every operator that has one of these as a callable.
    # They are properties so that they are none where lineage is switched off: then the task's
    # events are the stock ones.

    @property
    def get_openlineage_facets_on_start(self) -> Callable[[], OperatorLineage[Any, Any]] | None:
        """Hook of Airflow's OpenLineage provider: datasets known before the job runs."""
        return self._facets_on_start if self._has_lineage() else None

    @property
    def get_openlineage_facets_on_complete(
        self,
    ) -> Callable[[Any], OperatorLineage[Any, Any]] | None:
        """Hook of Airflow's OpenLineage provider: the merged lineage of the try."""
        return self._facets_at_end if self._has_lineage() else None

    @property
    def get_openlineage_facets_on_failure(
        self,
    ) -> Callable[[Any], OperatorLineage[Any, Any]] | None:
        """Hook of Airflow's OpenLineage provider: what had been done until the try failed."""
        return self._facets_on_failure if self._has_lineage() else None

    def _facets_on_start(self) -> OperatorLineage[Any, Any]:
        from airflow_provider_sparklineage.operators import reporting

        return reporting.operator_lineage(self._expected())

    def _facets_at_end(self, _task_instance: Any) -> OperatorLineage[Any, Any]:
        from airflow_provider_sparklineage.operators import reporting

        if self._collected is None:  # execute() did not get as far as submitting
            return reporting.operator_lineage(self._expected(has_ended=True))
        return reporting.operator_lineage(self._collected)

    def _facets_on_failure(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        from airflow_provider_sparklineage.operators import reporting

        if self._ended_as is not None:
            msg = f"Airflow has ended this try as {self._ended_as}, and sent its event."
            raise reporting.TryEndedError(msg)
        return self._facets_at_end(task_instance)

    def _expected(self, *, has_ended: bool = False) -> OpenLineageParts:
        """Say what the try reads and writes, as far as that is known without its job."""
        from airflow_provider_sparklineage.operators import reporting

        prepared = self._prepared or reporting.prepared(self._settings, {})
        declared = self._declared(prepared.settings.partitioning)
        return reporting.expected(declared, prepared, has_ended=has_ended)

    # --- what is known before the job runs --------------------------------------------------------

    def _declared(
        self,
        rules: PartitionRules,
        partition_key: str | None = None,
        spark_properties: Mapping[str, str] | None = None,
    ) -> Declared:
        """Tell what is known of the task's datasets before the job runs; never raises."""
        from airflow_provider_sparklineage.expectations.declared import Declared
        from airflow_provider_sparklineage.operators.declared import declared

        try:
            found = declared(self, self._traces or (), rules, partition_key, spark_properties)
        except Exception as error:
            log.debug("Declarations cannot be understood.", exc_info=True)
            found = Declared(problems=(f"{type(error).__name__}: {error}",))
        return replace(found, problems=(*self._unrendered, *found.problems))

    def _settings(self) -> resolution.Settings:
        arguments = {o.name: getattr(self, o.name) for o in OPTIONS if o.in_operator}
        asked = self._sources or self._ask_airflow()
        return resolution.resolve(resolution.Source(resolution.Origin.ARGUMENT, arguments), *asked)

    def _ask_airflow(self) -> tuple[resolution.Source, resolution.Source]:
        """Look up what the connection and the configuration say.

        :raise SettingsError: if the connection cannot be meant so
        """
        connection = sources.connection(self.lineage_conn_id)
        return source_of(connection), sources.configuration()

    def _has_lineage(self) -> bool:
        """Whether lineage is on; a wrong setting is said in the event, it switches nothing off."""
        if not self.lineage:
            return False
        try:
            return not resolution.value("disabled", sources.configuration("disabled"))
        except Exception:
            return True

    def _is_sent(self) -> bool:
        """Whether lineage goes anywhere: to where Airflow sends it, or to the archive.

        If not, say so, once for each try. An XCom alone is not worth a listener in every job.

        :raise SettingsError: if it goes nowhere and the task is strict
        """
        reason = sources.why_not_sent()
        if reason is None:
            return True
        try:
            resolved = self._settings()
            strict = resolved.strict
            if resolved.archive_url:
                return True
        except Exception:
            strict = bool(self.strict)
        if strict:
            raise SettingsError(reason)
        log.warning("%s The job runs without lineage.", reason)
        return False
