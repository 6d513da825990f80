"""XComs of a try: its merged event, and the expected accesses while its job runs.

The tab shows the merged event, and the next run reads it. The value is the event itself if it fits,
so that people can read it; else it is the compressed event. An event that is too large even then
loses detail, which it declares.

Until there is an event, the tab shows the expected accesses, which have an XCom of their own. Its
``entries`` have the form of those of the partition check (:mod:`.facets`), without the
observed partitions, and with a ``side``: ``read``, ``write``, or ``either`` for a path among the
arguments, whose side is not known. A path without a partition states nothing that can be compared,
so the status of its entry is ``named``; if it is the folder of other datasets, as in
``--lake /lake``, it has no entry. An entry without a dataset applies to any output; if its status
is ``inferred``, it has the dates among the arguments instead.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import zlib
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.document import Written
from airflow_provider_sparklineage.event.facets import source_entries
from airflow_provider_sparklineage.event.steps.texts import (
    masked,
    with_short_templates,
    without_credentials,
)
from airflow_provider_sparklineage.event.stored import stored, validate
from airflow_provider_sparklineage.expectations import Kind, Side
from airflow_provider_sparklineage.lineage.partitions.expected import united
from airflow_provider_sparklineage.lineage.partitions.selection import wanted
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import DocumentError
from airflow_provider_sparklineage.model.representation import MAX_KEPT_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from airflow_provider_sparklineage.event.document import Event
    from airflow_provider_sparklineage.expectations import Expectation


# --- the merged event -----------------------------------------------------------------------------


KEY = "sparklineage"
"""Key of the XCom of the merged event."""

MAX_BYTES = 48 * 1024
"""XComs are rows of the metadata database; some databases hold at most 64 KiB in a field."""
BOUND = "an XCom of 48 KiB"
"""The name of this limit in messages."""

_ENCODING = "zlib+base64"
_ROUNDS = 8
_STALLED = 2
"""Rounds without a smaller text after which no more detail can be dropped."""
# PostgreSQL refuses JSON with NUL or with half of a surrogate pair. This also finds whole pairs,
# which it takes: they are too rare to be worth a better search.
_UNSTORABLE = re.compile(rb"\\u(?:0000|d[89a-f])")


def encode(
    written: Written, max_bytes: int, smaller: Callable[[int], Event]
) -> dict[str, Any] | None:
    """Make the XCom of an event: at most ``max_bytes`` of JSON, as Airflow writes it.

    :param written: the event, with its JSON
    :param smaller: gives the event with less detail, in about the given number of bytes of JSON; it
        is called with ever smaller numbers
    :return: the event itself or, under the key ``event``, compressed; None if not even the names
        fit
    """
    allowed = before = stalled = 0
    for _ in range(_ROUNDS):
        text = written.text
        if len(text) <= max_bytes and is_storable(text):
            return written.event
        packed = {
            "encoding": _ENCODING,
            "event": base64.b64encode(zlib.compress(text)).decode(),
        }
        size = len(json.dumps(packed))
        if size <= max_bytes:
            return packed
        stalled += bool(before) and len(text) >= before
        if stalled == _STALLED:
            return None
        # The smaller event compresses about as well as the larger one, or a little worse.
        allowed = min(allowed or len(text), int(len(text) * max_bytes / size * 0.9))
        before, written = len(text), Written(smaller(allowed))
        allowed = int(allowed * 0.7)
    return None


def is_storable(text: bytes) -> bool:
    """Whether each of Airflow's databases can hold this JSON unchanged."""
    return not _UNSTORABLE.search(text)


def decode(value: object) -> dict[str, Any]:
    """Give the event of an XCom.

    :param value: the XCom's value, as :func:`encode` makes it
    :raise DocumentError: if the XCom has no event that can be read; the error says why
    """
    if not isinstance(value, dict) or "encoding" not in value:
        return validate(value)
    if value["encoding"] != _ENCODING:
        problem = (
            f"This lineage is stored as {str(value['encoding'])[:40]!r}, which a newer "
            "airflow-provider-sparklineage does."
        )
        fix = "Update the package where it is to be shown."
        raise DocumentError(problem, fix)
    try:
        packed = base64.b64decode(str(value.get("event")), validate=True)
        text = zlib.decompressobj().decompress(packed, MAX_KEPT_BYTES)
    except (binascii.Error, zlib.error, ValueError) as error:
        msg = f"The stored lineage is damaged and cannot be read ({error})."
        raise DocumentError(msg) from error
    return stored(text)


# --- the expected accesses ------------------------------------------------------------------------


EXPECTED_KEY = "sparklineage_expected"
"""Key of the XCom of the expected accesses."""

EITHER = "either"
MAX_ENTRIES = 200
"""Limit of the entries, because the job waits for them, and people do not read more."""


def expected_document(
    try_number: int,
    inputs: Iterable[DatasetName],
    outputs: Iterable[DatasetName],
    expectations: Sequence[Expectation],
    mask: Callable[[str], str],
    others: Iterable[DatasetName] = (),
) -> dict[str, Any]:
    """Describe the accesses that are expected of a try.

    :param inputs: declared inputs, with or without expectations
    :param outputs: declared outputs, with or without expectations
    :param mask: hides the secrets in a text
    :param others: datasets that the task accessed before: a folder of them is no dataset
    :return: ``try_number``, ``entries``, and ``unlisted``: the number of entries beyond
        ``MAX_ENTRIES``
    """
    inputs, outputs = tuple(inputs), tuple(outputs)
    entries = [*_entries(expectations, _roots((*inputs, *outputs, *others), expectations))]
    with_expectations = {(e["side"], *e["dataset"].values()) for e in entries if "dataset" in e}
    for side, names in ((Side.READ, inputs), (Side.WRITE, outputs)):
        for name in names:
            if (str(side), *name) not in with_expectations:
                entries.append(_entry(str(side), name))
    clean = masked(without_credentials(entries[:MAX_ENTRIES]), mask)
    return {
        "try_number": try_number,
        "entries": [with_short_templates(entry) for entry in clean],
        "unlisted": max(0, len(entries) - MAX_ENTRIES),
    }


def fitted_document(document: dict[str, Any], max_bytes: int) -> dict[str, Any] | None:
    """Leave out entries until the document has at most ``max_bytes`` of JSON.

    :param document: the expected accesses, as :func:`expected_document` gives them
    :return: None if no entry would be left, or a database could refuse the document
    """
    entries = document["entries"]
    count = len(entries)
    while count:
        unlisted = document["unlisted"] + len(entries) - count
        smaller = {**document, "entries": entries[:count], "unlisted": unlisted}
        text = json.dumps(smaller).encode()
        if len(text) <= max_bytes:
            return smaller if is_storable(text) else None
        count //= 2
    return None


def _roots(
    datasets: Iterable[DatasetName], expectations: Iterable[Expectation]
) -> set[DatasetName]:
    """Give the folders, of any depth, that are above datasets."""
    every = {*datasets, *(e.dataset for e in expectations if e.dataset)}
    roots = set()
    for namespace, name in every - {DatasetName(e.namespace, "/") for e in every}:
        roots.add(DatasetName(namespace, "/"))
        folders = name.split("/")
        roots.update(
            DatasetName(namespace, "/".join(folders[:depth])) for depth in range(1, len(folders))
        )
    return roots


def _entries(
    expectations: Sequence[Expectation], roots: Collection[DatasetName]
) -> Iterator[dict[str, Any]]:
    """Yield one entry for each kind, side and dataset of expectations, and one for all dates.

    The dates are those among the job's arguments. A path among the arguments has no entry if it is
    also declared, or if it is the folder of other datasets.

    :param roots: the folders of other datasets
    """
    declared = {_about(e) for e in expectations if e.kind is Kind.DECLARED}
    statements: dict[tuple[Kind, str, DatasetName], list[Expectation]] = {}
    for expectation in expectations:
        # A path among the arguments is left out if it is also declared, because that has a side.
        is_known = expectation.kind is Kind.PATH and _about(expectation) in declared
        if expectation.kind is not Kind.INFERRED and not is_known:
            side = str(expectation.side or EITHER)
            key = expectation.kind, side, _about(expectation)
            statements.setdefault(key, []).append(expectation)
    for (kind, side, name), of_dataset in statements.items():
        entry = _entry(side, name, of_dataset)
        if kind is not Kind.PATH or "expected" in entry:
            yield entry
        elif name not in roots:
            yield {**entry, "status": "named"}
    if dates := [e for e in expectations if e.kind is Kind.INFERRED]:
        yield {**_entry(EITHER, DatasetName("", ""), dates), "status": "inferred"}


def _about(expectation: Expectation) -> DatasetName:
    return expectation.dataset or DatasetName("", expectation.table)


def _entry(side: str, name: DatasetName, statements: Sequence[Expectation] = ()) -> dict[str, Any]:
    entry: dict[str, Any] = {"side": side, "status": "expected"}
    if name.name:
        entry["dataset"] = name._asdict()
    expected = united(statements)
    if expected.partitions is not None or expected.choices or expected.locations:
        entry["expected"] = {"summary": wanted(expected)}
    if expected.sources:
        entry["from"] = source_entries(expected)
    return entry
