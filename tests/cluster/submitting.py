"""Applications that an operator submits as a task would, and the lineage of their tasks."""

from __future__ import annotations

import json
import time
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.providers.common.compat.sdk import AirflowException

from airflow_provider_sparklineage.operators.livy import SparkLineageLivyOperator
from airflow_provider_sparklineage.operators.spark_submit import SparkLineageSubmitOperator
from tests import spark_submit_double
from tests.cluster.daemons import USERS_IN_GROUP
from tests.record_events import APPLICATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from airflow.providers.apache.livy.operators.livy import LivyOperator
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import BaseOperator

T = TypeVar("T")

WORKER_USER, USER = USERS_IN_GROUP
"""Who asks WebHDFS for what jobs deliver, and who submits them, for Hadoop."""

LONGEST_S = 180
"""What is waited for takes some seconds, or is broken."""


def until(happened: Callable[[], T], longest_s: float = LONGEST_S) -> T:
    """Wait for what does happen, and give it."""
    ends = time.monotonic() + longest_s
    while not (found := happened()):
        assert time.monotonic() < ends, "it has not happened"
        time.sleep(0.2)
    return found


class Submitter:
    """Runs applications with the same properties."""

    def __init__(self, conf: Mapping[str, str] = MappingProxyType({})) -> None:
        self._conf = conf

    def __call__(self, application: str, *arguments: str, **options: Any) -> Ran:
        return self.execute(self.operator(application, *arguments, **options))

    def operator(
        self,
        application: str,
        *arguments: str,
        conf: Mapping[str, str] | None = None,
        **options: Any,
    ) -> BaseOperator:
        """Make the operator of an application; it waits for Spark's end in spark-submit."""
        path = application if "/" in application else f"{APPLICATIONS}/{application}.py"
        return SparkLineageSubmitOperator(
            application=path,
            application_args=list(arguments),
            conf={**self._conf, **(conf or {})},
            **{"task_id": "job", "durable": False, **options},
        )

    def execute(self, operator: BaseOperator, context: dict[str, Any] | None = None) -> Ran:
        """Execute it, as the task runner does."""
        try:
            spark_submit_double.execute(operator, context or spark_submit_double.task_context())
        except AirflowException as error:
            return Ran(operator, error)
        return Ran(operator)


class LivySubmitter(Submitter):
    """Posts applications to Livy, which reads those of the tests from this machine."""

    def operator(
        self,
        application: str,
        *arguments: str,
        conf: Mapping[str, str] | None = None,
        kind: type[LivyOperator] = SparkLineageLivyOperator,
        **options: Any,
    ) -> LivyOperator:
        """Make the operator of an application; it asks Livy for the end."""
        path = application if "/" in application else f"file://{APPLICATIONS}/{application}.py"
        return kind(
            file=path,
            args=list(arguments),
            conf=dict(conf or {}),
            **{"task_id": "job", "polling_interval": 1, "durable": False, **options},
        )


class TaskStateStore:
    """What Airflow keeps of a task for its next try, in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def get(self, key: str, default: object = None) -> Any:
        return self._kept().get(key, default)

    def set(self, key: str, value: object) -> None:
        partial = self._file.with_suffix(".part")
        partial.write_text(json.dumps({**self._kept(), key: value}))
        partial.rename(self._file)

    def delete(self, key: str) -> None:
        kept = self._kept()
        kept.pop(key, None)
        self._file.write_text(json.dumps(kept))

    def _kept(self) -> dict[str, Any]:
        return json.loads(self._file.read_text()) if self._file.exists() else {}


class Ran:
    """A task that has ended."""

    def __init__(self, operator: BaseOperator, error: Exception | None = None) -> None:
        self.operator = operator
        self.error = error

    @cached_property
    def lineage(self) -> OperatorLineage:
        extract = "failure" if self.error else "complete"
        return getattr(self.operator, f"get_openlineage_facets_on_{extract}")(None)

    @property
    def inputs(self) -> list[str]:
        return sorted(f"{d.namespace}{d.name}" for d in self.lineage.inputs)

    @property
    def outputs(self) -> list[str]:
        return sorted(f"{d.namespace}{d.name}" for d in self.lineage.outputs)

    @property
    def degradations(self) -> dict[str, str]:
        """What was lost, by code."""
        facet = self.lineage.run_facets["sparkLineage_capture"]
        return {d["code"]: d["message"] for d in facet.degradations}
