"""What Airflow's OpenLineage provider asks an operator; its try has the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.operators.task_try import Try

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow.providers.openlineage.extractors import OperatorLineage

    from airflow_provider_sparklineage.event.pipeline import Made


class OpenLineageHooks:
    """The hooks of an operator whose lineage is collected while it executes."""

    __slots__ = ()

    _try: Try | None = None

    @property
    def lineage_try(self) -> Try:
        """The try that this operator is run for; each rendering of its fields begins another.

        Not made with the operator: Airflow runs a shallow copy, which would share it.
        """
        current = self._try
        if current is None:
            current = Try(self)
            self._set_try(current)
        current.take_arguments(self)
        return current

    def _set_try(self, current: Try | None) -> None:
        # Not as Airflow or an operator's own class has it: that may refuse what it does not know.
        object.__setattr__(self, "_try", current)

    @property
    def doc(self) -> str | None:
        """The task's text for people; once its job has ended, what it did comes first.

        Airflow's provider makes the job's facet ``documentation`` of it, over any that an operator
        gives, and of the DAG's text for a task without one. It asks before it asks the hooks.
        """
        own: str | None = vars(self).get("doc")
        current = self._try
        return own if current is None else current.documentation(self, own)

    @doc.setter
    def doc(self, text: str | None) -> None:
        vars(self)["doc"] = text

    # Airflow takes its default extractor for every operator that has one of these as a callable.
    # They are properties so that they are none where lineage is switched off: then the task's
    # events are the stock ones.

    @property
    def get_openlineage_facets_on_start(self) -> Callable[[], OperatorLineage[Any, Any]] | None:
        """Hook of Airflow's OpenLineage provider: datasets known before the job runs."""
        return self._facets_on_start if self.lineage_try.is_on else None

    @property
    def get_openlineage_facets_on_complete(
        self,
    ) -> Callable[[Any], OperatorLineage[Any, Any]] | None:
        """Hook of Airflow's OpenLineage provider: the merged lineage of the try."""
        return self._facets_at_end if self.lineage_try.is_on else None

    @property
    def get_openlineage_facets_on_failure(
        self,
    ) -> Callable[[Any], OperatorLineage[Any, Any]] | None:
        """Hook of Airflow's OpenLineage provider: what had been done until the try failed."""
        return self._facets_on_failure if self.lineage_try.is_on else None

    def _facets_on_start(self) -> OperatorLineage[Any, Any]:
        return self._operator_lineage(self.lineage_try.at_start(self))

    def _facets_at_end(self, _task_instance: Any) -> OperatorLineage[Any, Any]:
        made = self.lineage_try.made
        if made is None:  # execute() did not get as far as submitting
            made = self.lineage_try.expected(self, has_ended=True)
        lineage = self._operator_lineage(made)
        self.lineage_try.watch_delivery()
        return lineage

    def _operator_lineage(self, made: Made) -> OperatorLineage[Any, Any]:
        from airflow_provider_sparklineage.operators import reporting

        current = self.lineage_try
        return reporting.operator_lineage(made, current.leaving, current.prepared, self)

    def _facets_on_failure(self, task_instance: Any) -> OperatorLineage[Any, Any]:
        from airflow_provider_sparklineage.operators import reporting

        ended_as = self.lineage_try.ended_as
        if ended_as is not None:
            msg = f"Airflow has ended this try as {ended_as}, and sent its event."
            raise reporting.TryEndedError(msg)
        return self._facets_at_end(task_instance)
