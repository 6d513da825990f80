"""The partitions of a dataset and the state of each, in few bytes: there may be 50,000.

A state is one letter, the first that is true of

=======  =========================================================================================
``s``    stale: made of something that has been written again since
``m``    mismatched: its run read or wrote other partitions than expected of it
``f``    fresh: it is there, and nothing is known against it
``x``    missing: it was there, and has been removed
``u``    it was read, and the history knows of nobody who wrote it
``n``    never written, though a run of its task was due
=======  =========================================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.lineage.partitions.comparison import PartitionStatus
from airflow_provider_sparklineage.plugins.history import runs
from airflow_provider_sparklineage.plugins.history.texts import cell_of, partition_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
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


def of(dataset: tuple[str, str], history: Asked, visibility: Visibility) -> dict[str, Any]:
    """List the partitions of a dataset, by name.

    :return: ``partitions``, of which ``names``, ``states``, ``written`` (seconds since the epoch)
        and ``runs`` (index into ``runs``, which the user may see) are equally long; ``causes`` of
        those that are stale, by name
    """
    named = {"namespace": dataset[0], "name": dataset[1]}
    written = {row["cell"]: row for row in history.rows(_WRITTEN, named)}
    known = runs.of({row["run_id"] for row in written.values()}, history)
    causes = {cell_of(one["partition"]): one for one in history.stale(dataset)}
    rows = sorted(
        [
            *_there(written, known, causes),
            *_unwritten(history.rows(_READ, named), history.gaps(dataset), written),
        ]
    )
    return {
        **_columns(rows, visible := runs.seen(known, visibility)),
        "runs": list(visible.values()),
        "causes": _causes(causes.values(), visibility, history),
    }


Row = tuple[str, str, "datetime | None", str]
"""Name, state, when it was written, and the id of the run; empty if there is none."""


def _there(
    written: dict[str | None, dict[str, Any]],
    known: dict[str, dict[str, Any]],
    stale: dict[str | None, dict[str, Any]],
) -> Iterator[Row]:
    whole = written.get(None)
    for cell, row in written.items():
        if cell is None and len(written) > 1 and not row["is_there"]:
            continue  # nothing of it is left but what is written to its partitions
        # A write of all of it replaced this one, and has what was there.
        is_again = whole is not None and whole["is_there"] and whole["written"] >= row["written"]
        is_stale = cell in stale or (is_again and None in stale)
        state = _state(row["is_there"] or is_again, known.get(row["run_id"], {}), is_stale)
        yield row["partition"] or "", state, row["written"], row["run_id"]


def _state(is_there: bool, run: dict[str, Any], is_stale: bool) -> str:
    if not is_there:
        return "x"
    if is_stale:
        return "s"
    return "m" if run.get("check_status") in _MISMATCHES else "f"


def _unwritten(
    read: list[dict[str, Any]], gaps: list[dict[str, Any]], written: Iterable[str | None]
) -> Iterator[Row]:
    due = {cell_of(gap["partition"]): partition_of(gap["partition"]) for gap in gaps}
    seen = {row["cell"]: row["partition"] for row in read}
    for cell in (due.keys() | seen.keys()) - set(written):
        name = due.get(cell) or seen.get(cell) or ""
        yield name, "n" if cell in due else "u", None, ""


def _columns(rows: list[Row], visible: dict[str, dict[str, Any]]) -> dict[str, Any]:
    index = {run_id: n for n, run_id in enumerate(visible)}
    return {
        "partitions": {
            "names": [name for name, *_ in rows],
            "states": "".join(state for _, state, *_ in rows),
            "written": [runs.seconds(at) for _, _, at, _ in rows],
            "runs": [index.get(run_id) for *_, run_id in rows],
        }
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
