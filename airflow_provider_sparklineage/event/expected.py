"""What is expected of a try while its job runs, as an XCom of its own: the tab shows it until then.

Its ``entries`` have the form of those of the partition check (:mod:`.partition_facets`), without
what was observed, and with a ``side``: ``read``, ``write``, or ``either`` for a path among the
arguments, which has none. An entry without a dataset is of any output, or of the dates among the
arguments.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.event.partition_facets import MAX_SOURCES, source_entry
from airflow_provider_sparklineage.event.steps.credentials import without_credentials
from airflow_provider_sparklineage.event.steps.secrets import masked
from airflow_provider_sparklineage.event.steps.short_texts import with_short_templates
from airflow_provider_sparklineage.event.xcom import is_storable
from airflow_provider_sparklineage.expectations import Kind, Side
from airflow_provider_sparklineage.lineage.partitions.expected import united
from airflow_provider_sparklineage.lineage.partitions.selection import wanted
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from airflow_provider_sparklineage.expectations import Expectation

KEY = "sparklineage_expected"
"""Key of the XCom."""

EITHER = "either"
MAX_ENTRIES = 200
"""The job waits for them, and nobody reads more."""


def document(
    try_number: int,
    inputs: Iterable[DatasetName],
    outputs: Iterable[DatasetName],
    expectations: Sequence[Expectation],
    mask: Callable[[str], str],
) -> dict[str, Any]:
    """Describe what a try is expected to access.

    :param inputs: datasets that are declared, with what is expected of them or without
    :param mask: hides the secrets in a text
    """
    entries = [*_entries(expectations)]
    known = {(e["side"], *e["dataset"].values()) for e in entries if "dataset" in e}
    for side, names in ((Side.READ, inputs), (Side.WRITE, outputs)):
        for name in names:
            if (str(side), *name) not in known:
                entries.append(_entry(str(side), name))
    clean = masked(without_credentials(entries[:MAX_ENTRIES]), mask)
    return {
        "try_number": try_number,
        "entries": [with_short_templates(entry) for entry in clean],
        "unlisted": max(0, len(entries) - MAX_ENTRIES),
    }


def fitted(document: dict[str, Any], max_bytes: int) -> dict[str, Any] | None:
    """Leave out entries until the document has at most so many bytes of JSON.

    :return: None if none would be left, or a database could refuse it
    """
    entries = document["entries"]
    kept = len(entries)
    while kept:
        unlisted = document["unlisted"] + len(entries) - kept
        smaller = {**document, "entries": entries[:kept], "unlisted": unlisted}
        text = json.dumps(smaller).encode()
        if len(text) <= max_bytes:
            return smaller if is_storable(text) else None
        kept //= 2
    return None


def _entries(expectations: Sequence[Expectation]) -> Iterator[dict[str, Any]]:
    """Give an entry for each dataset and side, and one for all dates among the arguments."""
    declared = {_about(e) for e in expectations if e.kind is Kind.DECLARED}
    statements: dict[tuple[Kind, str, DatasetName], list[Expectation]] = {}
    for expectation in expectations:
        # A path that is also declared has a side.
        is_known = expectation.kind is Kind.PATH and _about(expectation) in declared
        if expectation.kind is not Kind.INFERRED and not is_known:
            side = str(expectation.side or EITHER)
            key = expectation.kind, side, _about(expectation)
            statements.setdefault(key, []).append(expectation)
    for (_, side, name), of_dataset in statements.items():
        yield _entry(side, name, of_dataset)
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
        entry["from"] = [source_entry(source) for source in expected.sources[:MAX_SOURCES]]
    return entry
