"""Links to a task's lineage for templates and callbacks: ``macros.sparklineage.…``.

Every Airflow process imports this; what it needs is imported when it is called.
"""

from __future__ import annotations

from typing import Any


def lineage_job_url(task_instance: Any) -> str:
    """Give the page of a task's job in the lineage backend, or an empty text.

    :param task_instance: ``ti`` of the context, of a task with Spark lineage
    """
    from airflow_provider_sparklineage.links.pages import job_page

    return job_page(task_instance.task, task_instance)


def output_columns_url(task_instance: Any, output: str | None = None) -> str:
    """Give the page of the columns of one of a task's outputs, or an empty text.

    :param task_instance: ``ti`` of the context, of a task with Spark lineage
    :param output: name of the dataset; without it, the first by name
    """
    from airflow_provider_sparklineage.links.pages import columns_page

    return columns_page(task_instance.task, output)
