"""The line of facts: its keys are the columns of :data:`.tables.FACTS`; null values are left out.

Column lineage is most of a line, and nearly always the same in all runs of a job. So a line has its
column lineage as a text of its own, with a checksum: a reader of many lines can then parse each
different text only once.

Credentials that a producer left in the names and texts of an event are removed.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from msgspec import Struct

from airflow_provider_sparklineage.model.credentials import scrub, scrub_name
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.texts import truncated


class Access(Struct, omit_defaults=True, gc=False, frozen=True):
    """An access: a part of a dataset that was read or written; see :data:`.tables.ACCESS`."""

    side: str
    namespace: str
    name: str
    extent: str
    is_failed: bool
    partition: str | None = None
    cell: str | None = None
    dims: str | None = None
    first_partition: str | None = None
    last_partition: str | None = None
    partition_count: int | None = None
    condition: str | None = None
    evidence: str | None = None
    mode: str | None = None
    row_count: int | None = None
    byte_count: int | None = None


class Edge(Struct, omit_defaults=True, gc=False, frozen=True):
    """A column of an output, and one of the column's source columns: :data:`.tables.EDGE`."""

    out_namespace: str
    out_name: str
    in_namespace: str
    in_name: str
    in_column: str
    out_column: str | None = None
    type: str | None = None
    subtype: str | None = None
    masking: bool | None = None
    description: str | None = None


class Facts(Struct, omit_defaults=True, gc=False, frozen=True):
    """The facts of one event, without its column lineage, its id and its source."""

    run_id: str
    namespace: str
    job: str
    event_type: str
    event_time: str
    is_ours: bool
    degradations: int
    accesses: list[Access]
    dag_id: str | None = None
    task_id: str | None = None
    dag_run_id: str | None = None
    map_index: int | None = None
    try_number: int | None = None
    logical_date: str | None = None
    data_interval_start: str | None = None
    data_interval_end: str | None = None
    partition_key: str | None = None
    started: str | None = None
    producer: str | None = None
    parent_run_id: str | None = None
    root_run_id: str | None = None
    check_status: str | None = None


class Columns(NamedTuple):
    """The column lineage of an event.

    :param text: a JSON array of :class:`Edge`
    :param checksum: checksum of the text, in hexadecimal digits
    """

    text: bytes
    checksum: bytes

    @classmethod
    def of(cls, edges: list[Edge]) -> Columns:
        """Encode edges as a JSON array, and compute its checksum."""
        text = _ENCODER.encode(edges)
        return cls(text, _checksum(text))


class Line(NamedTuple):
    """The line of facts of one event.

    :param head: a JSON object with all columns of :data:`.tables.FACTS` except ``columns``, without
        the closing brace
    :param left_out: number of parts of the event that do not match their schema and are left out
    """

    head: bytes
    columns: Columns
    left_out: int = 0

    @classmethod
    def of(cls, facts: Facts, columns: Columns, source: str, left_out: int) -> Line:
        """Encode facts as a line.

        The event's id is a checksum of the facts without their source. So if two files have the
        same event, it is counted only once.

        :param source: name of the event's file in the tables
        :param left_out: number of parts of the event that do not match their schema
        """
        body = _ENCODER.encode(facts)[1:-1]
        event_id = _checksum(body + columns.checksum)
        head = b'{"event_id":"%b","source":%b,%b' % (event_id, _ENCODER.encode(source), body)
        return cls(head, columns, left_out)

    @property
    def text(self) -> bytes:
        """The whole line as JSON, with a newline at the end: a row of :data:`.tables.FACTS`."""
        return b'%b,"columns":%b}\n' % (self.head, self.columns.text)


_ENCODER = msgspec.json.Encoder()
_ID_BYTES = 16


def _checksum(text: bytes) -> bytes:
    return blake2b(text, digest_size=_ID_BYTES).hexdigest().encode()


MAX_TEXT = 1000
"""Greatest length, in characters, of the text of an expression or a description."""


@lru_cache(maxsize=50_000)  # a few datasets are in all events
def dataset_name(namespace: str, name: str) -> DatasetName:
    """Remove credentials that the producer left in a dataset's namespace and name."""
    return DatasetName(scrub_name(namespace), scrub_name(name))


@lru_cache(maxsize=50_000)  # the expressions of a job are the same in each of its runs
def short(text: str | None) -> str | None:
    """Cut a text that is too long, and remove credentials from it; None if there is no text."""
    return truncated(scrub(text), MAX_TEXT) if text else None
