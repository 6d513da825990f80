"""Addresses of Airflow's pages: a task instance's event has that of its log, and so of the others.

Airflow's provider sends no other, and none with the events of a DAG's run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow_provider_sparklineage.datahub.lenient import at
from airflow_provider_sparklineage.model.credentials import scrub

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.subject import Subject

_MAX = 2000
_SCHEMES = ("http://", "https://")


def dag(subject: Subject) -> str:
    """Give the page of a DAG; empty if nobody knows it."""
    base, found, _ = task_instance(subject).partition("/dags/")
    return f"{base}/dags/{quote(subject.names.flow, safe='')}" if found else ""


def task(subject: Subject) -> str:
    """Give the page of a task, with all its runs; empty if nobody knows it."""
    page = dag(subject)
    return f"{page}/tasks/{quote(subject.names.job, safe='')}" if page else ""


def task_instance(subject: Subject) -> str:
    """Give the page of a try; empty if nobody knows it."""
    return page(at(subject.airflow, "taskInstance", "log_url"))


def page(value: object) -> str:
    """Give an address that a browser opens, without credentials; empty for anything else."""
    found = value if isinstance(value, str) else ""
    return scrub(found) if found.startswith(_SCHEMES) and len(found) <= _MAX else ""
