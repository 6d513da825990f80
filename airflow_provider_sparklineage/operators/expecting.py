"""What a try leaves in Airflow when it begins: what is expected of it, for the tab to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_sparklineage.event import xcom
from airflow_provider_sparklineage.model.credentials import logger
from airflow_provider_sparklineage.operators.masking import masked

if TYPE_CHECKING:
    from airflow.providers.common.compat.sdk import Context

    from airflow_provider_sparklineage.operators.try_capture import TryCapture

log = logger(__name__)


def push(capture: TryCapture, context: Context) -> None:
    """Push what is expected of a try, if XComs are wanted; never raises."""
    try:
        manifest, max_bytes = capture.bundle.manifest, capture.settings.xcom_max_bytes
        if not max_bytes or manifest.task is None:
            return
        document = xcom.expected_document(
            manifest.task.try_number,
            manifest.declared_inputs,
            manifest.declared_outputs,
            manifest.expectations,
            masked,
        )
        if (value := xcom.fitted_document(document, max_bytes)) is not None:
            context["ti"].xcom_push(key=xcom.EXPECTED_KEY, value=value)
    except Exception:
        log.debug("What is expected is shown when the task has ended.", exc_info=True)
