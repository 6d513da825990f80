"""The line of facts: its keys are the columns of :data:`.tables.FACTS`; what is null is absent."""

from __future__ import annotations

from hashlib import blake2b

import msgspec
from msgspec import Struct


class Access(Struct, omit_defaults=True, gc=False, frozen=True):
    """A part of a dataset that was read or written: :data:`.tables.ACCESS`."""

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
    """A column that was made of another one: :data:`.tables.EDGE`."""

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
    """All that is known by one event, but for where it was read."""

    run_id: str
    namespace: str
    job: str
    event_type: str
    event_time: str
    is_ours: bool
    degradations: int
    accesses: list[Access]
    columns: list[Edge]
    dag_id: str | None = None
    task_id: str | None = None
    dag_run_id: str | None = None
    map_index: int | None = None
    try_number: int | None = None
    logical_date: str | None = None
    data_interval_start: str | None = None
    data_interval_end: str | None = None
    started: str | None = None
    producer: str | None = None
    parent_run_id: str | None = None
    root_run_id: str | None = None
    check_status: str | None = None


_ENCODER = msgspec.json.Encoder()
_ID_BYTES = 16


def line(facts: Facts, source: str) -> bytes:
    """Write facts as a line of JSON, with a newline.

    The id is a checksum of the facts without their source, so that one event in two files is one.
    """
    body = _ENCODER.encode(facts)
    event_id = blake2b(body, digest_size=_ID_BYTES).hexdigest().encode()
    return b'{"event_id":"%b","source":%b,%b\n' % (event_id, _ENCODER.encode(source), body[1:])
