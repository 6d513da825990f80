"""URNs of DataHub's entities: plain text, as its SDK makes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_sparklineage.model.datasets import DatasetName

_RESERVED = {",": "%2C", "(": "%28", ")": "%29", "␟": "%E2%90%9F"}


def encoded(text: str) -> str:
    """Encode what has a meaning in a URN."""
    return "".join(_RESERVED.get(char, char) for char in text)


def dataset(platform: str, name: str, env: str) -> str:
    """Give the URN of a dataset."""
    return f"urn:li:dataset:(urn:li:dataPlatform:{platform},{encoded(name)},{env})"


def schema_field(dataset_urn: str, path: str) -> str:
    """Give the URN of a field of a dataset."""
    return f"urn:li:schemaField:({dataset_urn},{encoded(path)})"


def data_flow(flow_id: str, cluster: str, orchestrator: str = "airflow") -> str:
    """Give the URN of a DAG."""
    return f"urn:li:dataFlow:({orchestrator},{encoded(flow_id)},{cluster})"


def data_job(flow: str, job_id: str) -> str:
    """Give the URN of a task."""
    return f"urn:li:dataJob:({flow},{encoded(job_id)})"


def process_instance(run_id: str) -> str:
    """Give the URN of a run."""
    return f"urn:li:dataProcessInstance:{run_id}"


def platform_and_name(name: DatasetName) -> tuple[str, str]:
    """Give the platform of a dataset by its namespace, and its name there."""
    platform, _, rest = name.namespace.partition("://")
    return platform or "unknown", "/".join(filter(None, (rest, name.name.strip("/"))))
