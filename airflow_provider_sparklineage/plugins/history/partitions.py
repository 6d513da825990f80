"""The partitions of a dataset and the state of each, in few bytes: there may be 50,000.

A state is one letter, the first that is true of

=======  =========================================================================================
``s``    stale: made of something that has been written again since
``m``    mismatched: its run read or wrote other partitions than expected of it
``f``    fresh: it is there, and nothing is known against it
``x``    missing: it was there, and has been removed
``u``    it was read, and the history knows of nobody who wrote it
``n``    never written, though a run of its task was due
``c``    it is there, and what may be known against it is not worked out yet
=======  =========================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.lineage.partitions.comparison import PartitionStatus
from airflow_provider_sparklineage.plugins.history import naming, runs
from airflow_provider_sparklineage.plugins.history.texts import cell_of, partition_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime

    from airflow_provider_sparklineage.plugins.history.opened import Asked
    from airflow_provider_sparklineage.plugins.history.visibility import Visibility

# The last write of each cell; of all of the dataset as one cell, null.
_WRITTEN = """
SELECT cell, max(partition) AS partition, max_by(run_id, valid_from) AS run_id,
       max(valid_from) AS written, bool_or(valid_to IS NULL) AS is_there
FROM changes
WHERE namespace = $namespace AND name = $name
GROUP BY cell
"""
_READ = """
SELECT DISTINCT cell, partition FROM accesses
WHERE namespace = $namespace AND name = $name AND side = 'read' AND extent = 'partition'
"""
_MISMATCHES = frozenset(status for status in PartitionStatus if status.is_mismatch)


def of(
    dataset: tuple[str, str], history: Asked, visibility: Visibility, *, is_quick: bool = False
) -> dict[str, Any]:
    """List the partitions of a dataset that a user may see, by name.

    :param is_quick: without what may take seconds to work out: which of them are stale or due
    :return: ``partitions``, of which ``names``, ``states``, ``written`` (seconds since the epoch)
        and ``runs`` (index into ``runs``, which the user may see) are equally long; ``causes`` of
        those that are stale, by name
    """
    named = {"namespace": dataset[0], "name": dataset[1]}
    shown = naming.of(dataset, history, visibility)
    written = {row["cell"]: row for row in history.rows(_WRITTEN, named)}
    known = runs.of({row["run_id"] for row in written.values()}, history)
    stale, gaps = ((), ()) if is_quick else (history.stale(dataset), history.gaps(dataset))
    causes = {cell: one for one in stale if shown.has(cell := cell_of(one["partition"]))}
    due = {
        cell: partition_of(one["partition"])
        for one in gaps
        if shown.has(cell := cell_of(one["partition"])) or _is_of_seen(one, visibility)
    }
    read = {r["cell"]: r["partition"] for r in history.rows(_READ, named) if shown.has(r["cell"])}
    there = _there(written, known, causes, "c" if is_quick else "f")
    rows = [*(row for row in there if shown.has(row.cell)), *_unwritten(read, due, written)]
    visible = runs.seen(known, visibility)
    return {
        "partitions": _columns(sorted(rows, key=lambda row: row.name), visible),
        "runs": list(visible.values()),
        "causes": _causes(causes.values(), visibility, history),
    }


def _is_of_seen(gap: dict[str, Any], visibility: Visibility) -> bool:
    """Whether a task is known that should have written it, and may be seen."""
    return bool(gap.get("job")) and visibility.sees(gap)


class _Row(NamedTuple):
    """A partition.

    :param written: when it was written last; None if it never was
    :param run_id: who wrote it; empty if nobody did
    """

    name: str
    state: str
    cell: str | None
    written: datetime | None = None
    run_id: str = ""


def _there(
    written: dict[str | None, dict[str, Any]],
    known: dict[str, dict[str, Any]],
    stale: Collection[str | None],
    fresh: str,
) -> Iterator[_Row]:
    whole = written.get(None)
    for cell, row in written.items():
        if cell is None and len(written) > 1 and not row["is_there"]:
            continue  # nothing of it is left but what is written to its partitions
        # A write of all of it replaced this one, and has what was there.
        is_again = whole is not None and whole["is_there"] and whole["written"] >= row["written"]
        is_stale = cell in stale or (is_again and None in stale)
        is_there = row["is_there"] or is_again
        state = _state(is_there, known.get(row["run_id"], {}), is_stale) or fresh
        yield _Row(row["partition"] or "", state, cell, row["written"], row["run_id"])


def _state(is_there: bool, run: dict[str, Any], is_stale: bool) -> str:
    if not is_there:
        return "x"
    if is_stale:
        return "s"
    return "m" if run.get("check_status") in _MISMATCHES else ""


def _unwritten(
    read: dict[str, str], due: dict[str | None, str], written: Collection[str | None]
) -> Iterator[_Row]:
    for cell in (due.keys() | read.keys()).difference(written):
        name = due.get(cell) or read.get(cell or "") or ""
        yield _Row(name, "n" if cell in due else "u", cell)


def _columns(rows: list[_Row], visible: dict[str, dict[str, Any]]) -> dict[str, Any]:
    index = {run_id: n for n, run_id in enumerate(visible)}
    return {
        "names": [row.name for row in rows],
        "states": "".join(row.state for row in rows),
        "written": [runs.seconds(row.written) for row in rows],
        "runs": [index.get(row.run_id) for row in rows],
    }


def _causes(
    stale: Iterable[dict[str, Any]], visibility: Visibility, history: Asked
) -> dict[str, Any]:
    """Give what made each partition stale, without those of runs that the user may not see."""
    listed = list(stale)
    causes = [one.get("cause") or {} for one in listed]
    known = runs.of({runs.id_of(cause) for cause in causes} - {""}, history)
    return {
        partition_of(one["partition"]): {
            "dataset": cause.get("dataset"),
            "partition": partition_of(cause.get("partition")),
            "at": cause.get("at"),
            "how": cause.get("how"),
            "run": run,
        }
        for one, cause in zip(listed, causes, strict=True)
        if (run := known.get(runs.id_of(cause))) and visibility.sees(run)
    }
