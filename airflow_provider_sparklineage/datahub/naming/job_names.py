"""Which flow and which job in it an event is about: a DAG and its task, an application's action.

An event has one name for both. DataHub's own Airflow plugin names the DAG ``(airflow,<dag_id>)``
and the task by its ``task_id``; so do we, that both write to the same entities. The ids of Airflow
may have dots, so that a name is cut where the name of its parent ends: a task's parent is its DAG's
run, and that of an action of Spark is the application.

=================================  =======================  =========  ========================
event of                           its name                 flow       job
=================================  =======================  =========  ========================
a DAG's run (``jobType``: DAG)     ``a.dag``                ``a.dag``  none
a task, parent ``a.dag``           ``a.dag.group.task``     ``a.dag``  ``group.task``
a Spark application (APPLICATION)  ``app``                  ``app``    none
an action of it, parent ``app``    ``app.insert_in.table``  ``app``    ``insert_in.table``
else, as DataHub's converter does  ``flow.job``             ``flow``   ``job``
one without a dot                  ``job``                  ``job``    ``job``
=================================  =======================  =========  ========================
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from airflow_provider_sparklineage.datahub.lenient import at, text
from airflow_provider_sparklineage.datahub.naming import urns
from airflow_provider_sparklineage.event.producer import DISTRIBUTION

if TYPE_CHECKING:
    from airflow_provider_sparklineage.datahub.options import Conversion
    from airflow_provider_sparklineage.event.document import Event

AIRFLOW = "airflow"
_OF_FLOWS = {"DAG", "APPLICATION"}
# Where producers have their source; Airflow's and ours name no integration.
_PRODUCERS = re.compile(
    rf"^urn:(?P<ours>{DISTRIBUTION})|github\.com/apache/(?P<airflow>airflow)\b"
    r"|github\.com/OpenLineage/.*/integration/(?P<integration>\w+)",
    re.IGNORECASE,
)


class JobName(NamedTuple):
    """A flow, and a job in it.

    :param orchestrator: what runs it, as DataHub names that platform: ``airflow``, ``spark``
    :param flow: a ``dag_id``, the name of an application
    :param job: a ``task_id``; empty for an event of the flow itself
    """

    orchestrator: str
    flow: str
    job: str = ""

    def flow_urn(self, how: Conversion) -> str:
        """Give the URN of the DataFlow; with the platform instance, if there are several."""
        name = self.flow or "unknown"
        flow = f"{how.platform_instance}.{name}" if how.platform_instance else name
        return urns.data_flow(flow, how.cluster, self.orchestrator)

    def job_urn(self, how: Conversion) -> str:
        """Give the URN of the DataJob."""
        return urns.data_job(self.flow_urn(how), self.job or self.flow or "unknown")


def job_name(event: Event) -> JobName:
    """Name the flow and the job of an event; with empty names, if it is of none."""
    facets = at(event, "run", "facets")
    name = text(at(event, "job", "name")).strip()
    orchestrator = orchestrator_of(event)
    if text(at(event, "job", "facets", "jobType", "jobType")) in _OF_FLOWS:
        return JobName(orchestrator, name)
    parents = (at(facets, "parent", "job", "name"), at(facets, "airflow", "dag", "dag_id"))
    return within(orchestrator, name, *parents)


def within(orchestrator: str, name: str, *parents: object) -> JobName:
    """Cut the name of a job where the first of its possible parents' ends, else at its first dot.

    :param parents: names; what is none is not looked at
    """
    for parent in map(text, parents):
        if parent and name.startswith(f"{parent}.") and len(name) > len(parent) + 1:
            return JobName(orchestrator, parent, name[len(parent) + 1 :])
    flow, _, job = name.partition(".")
    return JobName(orchestrator, flow, job) if flow and job else JobName(orchestrator, name, name)


def orchestrator_of(event: Event) -> str:
    """Name what runs the job: its integration, its engine, who sent the event; else ``unknown``.

    That is the order of DataHub's converter (``OpenLineagePlatformResolver.getOrchestrator``). This
    package makes events of tasks, and they may have the engine of their application.
    """
    producer = _PRODUCERS.search(text(event.get("producer")))
    if producer and producer["ours"]:
        return AIRFLOW
    known = (
        at(event, "job", "facets", "jobType", "integration"),
        at(event, "run", "facets", "processing_engine", "name"),
        producer and (producer["airflow"] or producer["integration"]),
    )
    found = next(filter(None, (text(one).strip() for one in known)), "unknown")
    return found.lower()
