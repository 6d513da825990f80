"""Events that tasks deliver to a store when they end; the next build of the store merges them.

::

    <store>/incoming/<UTC time>-<random>.json

The first line of a file has the try and the place of the event in the archive (:class:`Sender`).
All that follows is the event as the archive has it, so that an event which is read from both counts
once; a large event is compressed. A task takes no lock: each file has a name of its own, and
appears complete or not at all. A build removes a file after it has published the tables with its
event.

A task delivers only to a store that exists or is being built. So nothing collects in a place that
nobody reads.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from airflow_provider_sparklineage.history.store import INCOMING, LOCK, MANIFEST
from airflow_provider_sparklineage.model.exceptions import HistoryError
from airflow_provider_sparklineage.storage.bounded import reason, remedy, within
from airflow_provider_sparklineage.storage.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.history.store import Store

_SUFFIX = ".json"
_TIME = "%Y%m%dT%H%M%S.%f"


class Sender(Struct, frozen=True):
    """The first line of a delivered file: the try of the event.

    :param source: URL of the event's file in the archive; empty if there is no archive
    """

    dag_id: str
    task_id: str
    run_id: str
    map_index: int
    try_number: int
    source: str = ""


def deliver(url: str, sender: Sender, event: bytes, timeout_s: float) -> bool:
    """Write the event of a try to a store, if the store exists or is being built.

    :param url: URL of the store
    :param event: the content of the event's file in the archive
    :param timeout_s: time limit for all of it, in seconds
    :return: whether the event was written
    :raise HistoryError: if the store did not take the event in time
    """
    store = Objects(url, is_for_group=True)
    now = datetime.now(UTC).strftime(_TIME)
    name = f"{INCOMING}/{now}-{uuid.uuid4().hex}{_SUFFIX}"

    def write() -> bool:
        if not {MANIFEST, LOCK}.intersection(store.names("")):
            return False
        store.write(name, b"%b\n%b" % (msgspec.json.encode(sender), event))
        return True

    try:
        return within(timeout_s, write, "sparklineage-history")
    except Exception as error:  # each store's library raises errors of its own
        problem = f"The history at {url} did not take the event ({reason(error, timeout_s)})."
        raise HistoryError(problem, remedy(error)) from error


def parsed(content: bytes) -> tuple[Sender, bytes] | None:
    """Read a delivered file; None if a task has not written it, or a newer version of this package.

    :return: its first line, and the event, which may be compressed
    """
    first, _, event = content.partition(b"\n")
    try:
        return msgspec.json.decode(first, type=Sender), event
    except msgspec.MsgspecError:
        return None


class Waiting(NamedTuple):
    """The delivered events that no build has merged yet.

    :param since: when the first one was delivered; None if there are none
    """

    names: Sequence[str]
    since: datetime | None


def waiting(store: Store) -> Waiting:
    """List the files of a store's delivered events by name, the oldest ones first.

    :raise HistoryError: if they cannot be listed
    """
    try:
        there = store.files.names(INCOMING)
    except OSError as error:
        problem = f"The events delivered to {store.url} cannot be listed ({reason(error)})."
        raise HistoryError(problem, remedy(error)) from error
    names = sorted(name for name in there if name.endswith(_SUFFIX))
    return Waiting(names, next(filter(None, map(_time_of, names)), None))


def _time_of(name: str) -> datetime | None:
    try:
        return datetime.strptime(name.partition("-")[0], _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
