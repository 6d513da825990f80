"""What was done to datasets, as DataHub's ``operation``: one for each partition that was written.

GMS stores an operation below its time, dataset, ``messageId`` and partition
(``TimeseriesAspectTransformer.getDocId``): the run's id makes two runs of one millisecond two, and
an event that is sent again the same.

=========================================  ======================================================
the statement, where the event has one     ``INSERT``, ``UPDATE``, ``DELETE``, ``CREATE`` …; MERGE
                                           is ``UPDATE``, TRUNCATE ``DELETE``, COPY ``INSERT``
``lifecycleStateChange``                   ``CREATE``, ``DROP``, ``ALTER``; OVERWRITE is
                                           ``INSERT``, RENAME ``ALTER``, TRUNCATE ``DELETE``
neither, and rows or files were written    ``INSERT``
nothing of it                              ``UNKNOWN``
=========================================  ======================================================

They are the types by which DataHub's connectors for Databricks, Snowflake and BigQuery name these
statements; an overwrite is an ``INSERT`` there too, and here says so in a custom property.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from airflow_provider_sparklineage.datahub import lenient
from airflow_provider_sparklineage.datahub.partitions.accesses import (
    MAX_PARTITIONS,
    Access,
    Part,
    accesses,
)
from airflow_provider_sparklineage.datahub.proposals import Json, Proposal
from airflow_provider_sparklineage.model.terms import Side

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_sparklineage.datahub.subject import Subject

MAX_OPERATIONS = 1000
"""Operations of one run, shared out to its outputs: each is one more thing to be sent in time."""
_OF_STATEMENTS = {
    "INSERT": "INSERT",
    "COPY": "INSERT",
    "UPDATE": "UPDATE",
    "MERGE": "UPDATE",
    "DELETE": "DELETE",
    "TRUNCATE": "DELETE",
    "CREATE": "CREATE",
    "REPLACE": "CREATE",
    "ALTER": "ALTER",
    "DROP": "DROP",
}
_OF_CHANGES = {
    "CREATE": "CREATE",
    "OVERWRITE": "INSERT",
    "TRUNCATE": "DELETE",
    "DROP": "DROP",
    "ALTER": "ALTER",
    "RENAME": "ALTER",
}
_COMMENT = re.compile(r"\s*(--[^\n]*\n|/\*.*?\*/)", re.DOTALL)
_WORD = re.compile(r"\s*([A-Za-z]+)\b")


def operations(subject: Subject) -> Iterator[Proposal]:
    """Give the operations of a run that has ended; none of a part of a task, which are the task's.

    Spark's own events of the jobs below a task come before the task's, which has all of them.
    """
    if not can_be_stamped(subject) or is_below_a_task(subject):
        return
    statement = _statement(subject)
    done: set[tuple[str, Part]] = set()
    most = min(MAX_PARTITIONS, MAX_OPERATIONS // max(1, len(subject.outputs)))
    for access in accesses(subject, Side.WRITE):
        parts = access.parts(most) if access.is_of_this_run else []
        for part in parts:
            if (access.dataset.urn, part) not in done:
                done.add((access.dataset.urn, part))
                aspect = _operation(subject, access, part, statement, is_all=len(parts) == 1)
                yield Proposal(access.dataset.urn, "operation", aspect)


def can_be_stamped(subject: Subject) -> bool:
    """Whether the event is the end of a run of a job, and has a time."""
    return subject.has_ended and subject.has_run and subject.has_job


def is_below_a_task(subject: Subject) -> bool:
    """Whether the event is Spark's own, of what a task of Airflow had it do."""
    engine = lenient.text(lenient.at(subject.run_facets, "processing_engine", "name"))
    return engine == "spark" and "sparkLineage_capture" not in subject.run_facets


def stamped(subject: Subject, part: Part) -> Json:
    """Give what all aspects with a time have: when, of which part, and as whose message."""
    return {
        "timestampMillis": subject.time,
        "partitionSpec": part.spec(),
        "messageId": lenient.text(lenient.at(subject.event, "run", "runId")),
    }


def _operation(
    subject: Subject, access: Access, part: Part, statement: str, *, is_all: bool
) -> Json:
    """Describe an operation.

    :param is_all: whether it is all that the run wrote to the dataset: what rows are counted of
    """
    rows = lenient.number(access.statistics.get("rowCount"))
    properties = {
        "job": subject.job if subject.has_job else "",
        "run": subject.run if subject.has_run else "",
        "lifecycle": access.lifecycle,
    }
    if rows is not None and not is_all:
        properties["rows of all partitions"] = str(rows)
    return {
        **stamped(subject, part),
        "lastUpdatedTimestamp": subject.time,
        "operationType": statement or _type(access),
        "sourceType": "DATA_PROCESS",
        "customProperties": {key: value for key, value in properties.items() if value},
        **({"numAffectedRows": rows} if rows is not None and is_all else {}),
    }


def _type(access: Access) -> str:
    is_data = any(map(lenient.number, access.statistics.values()))
    return _OF_CHANGES.get(access.lifecycle, "INSERT" if is_data or access.seen else "UNKNOWN")


def _statement(subject: Subject) -> str:
    """Give what the run's only statement does to its only output; empty where there are more."""
    query = lenient.at(subject.job_facets, "sql", "query")
    if not isinstance(query, str) or len(subject.outputs) != 1:
        return ""
    start = 0
    while comment := _COMMENT.match(query, start):
        start = comment.end()
    word = _WORD.match(query, start)
    is_single = ";" not in query.rstrip().rstrip(";")
    return _OF_STATEMENTS.get(word[1].upper(), "") if word and is_single else ""
