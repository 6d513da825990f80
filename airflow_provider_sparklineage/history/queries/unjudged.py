"""What an answer cannot judge: the data and the runs about which the history knows too little.

An empty answer is no proof that all is well. Each question has a function here that says what it
could not see. :mod:`.gaps` and :mod:`.drift` find it themselves, as they compare, and so does
:mod:`.impact`, as it walks.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from airflow_provider_sparklineage.history import bounds
from airflow_provider_sparklineage.history.queries import answers, sql
from airflow_provider_sparklineage.history.queries.answers import Unjudged
from airflow_provider_sparklineage.history.queries.datasets import names_in
from airflow_provider_sparklineage.history.queries.failed_writes import failed_writes
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


# --- stale ----------------------------------------------------------------------------------------


# Of versions that are there: whether a change of their sources would have been seen. A read of a
# dataset as a whole is compared with the last of the writes of unknown parts alone, because both
# can be many; writes that say neither part nor mode are judged by the latest run of each job
# (:mod:`.stale`).
def _of_stale(changes: str, bindings: str, tables: str = "") -> str:
    """Give SQL for the rows of :func:`of_stale`.

    :param changes: the table of the versions that count
    :param bindings: the table of the reads of the datasets that count
    :param tables: the tables that these names need, each with a comma
    """
    return f"""
WITH {tables}there AS (
    SELECT DISTINCT namespace, name, run_id, valid_from FROM {changes}
    WHERE valid_to IS NULL AND mode NOT IN {sql.REMOVING}
), whole AS (
    SELECT b.namespace, b.name, b.extent, b.reader_run_id, b.read_at FROM {bindings} AS b
    SEMI JOIN there AS t ON t.run_id = b.reader_run_id
    WHERE b.extent <> 'partition'
), parts AS (
    SELECT c.namespace, c.name, max_by(c.run_id, (c.valid_from, c.run_id)) AS run_id,
        max(c.valid_from) AS written_at, bool_and({sql.vague("c")}) AS is_vague
    FROM {changes} AS c
    WHERE c.cell IS NULL AND c.extent NOT IN ('all', 'none')
    GROUP BY c.namespace, c.name
)
SELECT 'no_writer' AS reason, b.namespace, b.name
FROM (SELECT DISTINCT namespace, name FROM {bindings}) AS b
ANTI JOIN (SELECT DISTINCT namespace, name FROM {changes}) AS c
    ON c.namespace = b.namespace AND c.name = b.name
UNION ALL
SELECT DISTINCT 'no_reads', t.namespace, t.name FROM there AS t
ANTI JOIN (SELECT DISTINCT reader_run_id FROM bindings) AS b ON b.reader_run_id = t.run_id
UNION ALL
SELECT DISTINCT 'unknown_part', b.namespace, b.name FROM whole AS b JOIN parts AS p
    ON p.namespace = b.namespace AND p.name = b.name
    AND p.written_at > b.read_at AND p.run_id <> b.reader_run_id
    AND NOT (b.extent = 'unknown' AND p.is_vague)
UNION ALL
SELECT DISTINCT 'losses', t.namespace, t.name FROM there AS t
JOIN runs AS r ON r.ended = t.valid_from AND r.run_id = t.run_id WHERE r.degradations > 0
"""


def _named(table: str, *columns: str) -> str:
    names = ", ".join(f"t.{one}" for one in (*sql.DATASET, *columns))
    return (
        f"named_{table} AS (SELECT {names} FROM {table} AS t "
        "SEMI JOIN f ON f.namespace = t.namespace AND f.name = t.name), "
    )


_OF_STALE = _of_stale("changes", "bindings")
_OF_STALE_OF_NAMED = _of_stale(
    "named_changes",
    "named_bindings",
    f"f AS ({sql.table_of(*sql.DATASET)}), "
    + _named("changes", "cell", "extent", "run_id", "mode", "valid_from", "valid_to")
    + _named("bindings", "extent", "reader_run_id", "read_at"),
)
_STALE_TEXTS = {
    "no_writer": "No known run writes {them} that {are} read",
    "no_reads": "No read is known of runs that wrote {them}",
    "unknown_part": "Parts that are not known were written since runs had read {them}",
    "failed_writes": "Writes of {them} failed or have not ended, and were not repeated",
    "losses": "Events of runs that wrote {them} state that something is missing in them",
}
_READ_FOR = f"""
WITH f AS ({sql.table_of(*sql.DATASET)})
SELECT DISTINCT b.namespace, b.name FROM bindings AS b
SEMI JOIN (
    SELECT c.run_id FROM changes AS c
    SEMI JOIN f ON f.namespace = c.namespace AND f.name = c.name
) AS w ON w.run_id = b.reader_run_id
"""
_OF_JOBS = "SELECT DISTINCT namespace, name, side, job FROM accesses"

Unseen = tuple[str, DatasetName]
"""A reason, one of :class:`.Unjudged`, and a dataset that :func:`.stale` cannot judge, or whose
changes it cannot see."""


def of_stale(history: sql.Rows, dataset: DatasetName | None = None) -> list[Unjudged]:
    """List the datasets that :func:`.stale` cannot judge, or whose changes it cannot see.

    :param history: an opened store of the history
    :param dataset: None for all datasets; else only it, and the datasets of which it was made. If
        it takes too long to find these, those count that the jobs read which made it
    """
    unseen = unseen_by_stale(history, dataset)
    return sentences(unseen, names_in(history)) if unseen else []


def unseen_by_stale(history: sql.Rows, dataset: DatasetName | None = None) -> list[Unseen]:
    """Give what :func:`of_stale` lists, one by one."""
    among = None if dataset is None else _sources_by_job(history, dataset)
    if among is None:
        rows = history.rows(_OF_STALE)
    else:
        rows = history.rows(_OF_STALE_OF_NAMED, sql.lists(sql.DATASET, sorted(among)))
    unseen = [(row["reason"], DatasetName(row["namespace"], row["name"])) for row in rows]
    failed = {one.dataset for one in failed_writes(history, among)}
    unseen += [("failed_writes", one) for one in sorted(failed)]
    if dataset is None:
        return unseen
    sources = _among_sources(history, dataset, {one for _, one in unseen})
    return [one for one in unseen if one[1] in sources]


def sentences(unseen: Iterable[Unseen], names: Mapping[DatasetName, str]) -> list[Unjudged]:
    """Give one answer for each reason, with the datasets for which it holds.

    :param names: the names of the store's datasets in sentences
    """
    found = defaultdict(list)
    for reason, dataset in unseen:
        found[reason].append(dataset)
    return [
        Unjudged.of_datasets(reason, text, found[reason], names)
        for reason, text in _STALE_TEXTS.items()
        if reason in found
    ]


def _sources_by_job(history: sql.Rows, dataset: DatasetName) -> set[DatasetName]:
    """Give a dataset and those that jobs read which wrote it, also in several steps.

    These are the datasets of which it was made, and some more: a job may write another dataset in
    each run. One query finds them, whatever the number of runs and steps.
    """
    writers, reads = defaultdict(set), defaultdict(set)
    for row in history.rows(_OF_JOBS):
        name = DatasetName(row["namespace"], row["name"])
        if row["side"] == "write":
            writers[name].add(row["job"])
        else:
            reads[row["job"]].add(name)
    found, new = set(), {dataset}
    while new:
        found |= new
        new = {name for one in new for job in writers[one] for name in reads[job]} - found
    return found


def _among_sources(
    history: sql.Rows, dataset: DatasetName, named: set[DatasetName]
) -> set[DatasetName]:
    """Give those of some datasets that runs read to make a dataset, also in several steps.

    The dataset itself counts, too. After half of the time that is left, all of them are given.
    """
    is_late = bounds.late_at(0.5)
    found: set[DatasetName] = set()
    new = {dataset}
    while new and not named <= found | new:
        if is_late():
            return named
        found |= new
        rows = history.rows(_READ_FOR, sql.lists(sql.DATASET, sorted(new)))
        new = {DatasetName(row["namespace"], row["name"]) for row in rows} - found
    return named & (found | new)


# --- trace and impact -----------------------------------------------------------------------------

_OF_WRITERS = f"""
WITH f AS ({sql.table_of(*sql.RUN)}), reads AS (
    SELECT b.reader_run_id, b.namespace, b.name, b.extent
    FROM bindings_by_run AS b JOIN f ON f.run_id = b.reader_run_id
)
SELECT DISTINCT 'unknown_part' AS reason, namespace, name, CAST(NULL AS VARCHAR) AS run_id
FROM reads WHERE extent IN ('unknown', 'condition')
UNION ALL
SELECT DISTINCT 'no_reads', NULL, NULL, f.run_id
FROM f ANTI JOIN reads AS b ON b.reader_run_id = f.run_id
UNION ALL
SELECT DISTINCT 'losses', NULL, NULL, f.run_id
FROM runs AS r JOIN f ON f.ended = r.ended AND f.run_id = r.run_id WHERE r.degradations > 0
"""
_NO_WRITER = "No run is known that wrote {them}, in the versions that were read"
_IS_WRITTEN = "SELECT 1 FROM changes WHERE namespace = $namespace AND name = $name LIMIT 1"
_UNWRITTEN = "No run is known that wrote {them}"
_TRACE_TEXTS = {
    "no_reads": "No read is known of {them}",
    "losses": "Events of {them} state that something is missing in them",
}
_UNKNOWN_PART = "Conditions or unknown parts of {them} were read, so that all that was there counts"


def of_trace(
    history: sql.Rows, dataset: DatasetName, hops: Sequence[answers.Hop]
) -> list[Unjudged]:
    """List the datasets and the runs beyond which a trace cannot see.

    :param history: an opened store of the history
    :param dataset: the dataset that was asked for
    :param hops: the answer of :func:`.trace`
    """
    if not hops and not history.rows(_IS_WRITTEN, dataset._asdict()):
        return [Unjudged.of_datasets("no_writer", _UNWRITTEN, [dataset], names_in(history))]
    names = names_in(history)
    runs = {one.run.run_id: one.run for one in hops if one.run}
    ended = [(run.run_id, answers.of_tables(run.ended)) for run in runs.values()]
    rows = history.rows(_OF_WRITERS, sql.lists(sql.RUN, ended)) if ended else []
    unjudged = []
    unknown = [one.dataset for one in hops if one.run is None]
    if unwritten := [DatasetName(one.namespace, one.name) for one in unknown]:
        unjudged.append(Unjudged.of_datasets("no_writer", _NO_WRITER, unwritten, names))
    for reason, text in _TRACE_TEXTS.items():
        if ids := [row["run_id"] for row in rows if row["reason"] == reason]:
            jobs = [runs[run_id].job or run_id for run_id in ids]
            unjudged.append(Unjudged.of_runs(reason, text, jobs))
    named = {(one.dataset.namespace, one.dataset.name) for one in hops}
    parts = [
        DatasetName(*key)
        for row in rows
        if row["reason"] == "unknown_part" and (key := (row["namespace"], row["name"])) in named
    ]
    if parts:
        unjudged.append(Unjudged.of_datasets("unknown_part", _UNKNOWN_PART, parts, names))
    return unjudged


READER = ("run_id", "started")
"""The columns by which a run is looked up that read: also by ``started``, the time of its reads."""
_OF_READERS = f"""
WITH f AS ({sql.table_of(*READER)})
SELECT CASE WHEN r.state = 'COMPLETE' THEN 'no_writes' ELSE 'unended' END AS reason,
    COALESCE(r.job, r.run_id) AS job
FROM runs AS r JOIN f ON r.started = f.started AND r.run_id = f.run_id
UNION ALL
SELECT 'losses', COALESCE(job, run_id) FROM runs WHERE degradations > 0
"""
_READER_TEXTS = {
    "no_writes": "No write is known of {them} that read it, or data made of it",
    "unended": "{them} that read it, or data made of it, failed or {have} not ended",
    "losses": "{them} may have read it, too: their events state that something is missing",
}


def of_impact(history: sql.Rows, readers: Iterable[tuple[str, Any]]) -> tuple[Unjudged, ...]:
    """List the runs that may have made something of the data, without a known write.

    :param history: an opened store of the history
    :param readers: run_id and start of each run that read the data and wrote nothing known
    """
    jobs = defaultdict(list)
    for row in history.rows(_OF_READERS, sql.lists(READER, readers)):
        jobs[row["reason"]].append(row["job"])
    return tuple(
        Unjudged.of_runs(reason, text, jobs[reason])
        for reason, text in _READER_TEXTS.items()
        if reason in jobs
    )


_NOT_LOOKED_FOR = (
    "Partitions of {them} that were never written may be missing in the plan: "
    "there was no time to look for them"
)


def not_looked_for(history: sql.Rows, datasets: Sequence[DatasetName]) -> tuple[Unjudged, ...]:
    """Say for which datasets a plan lacks what was never written; nothing if there are none.

    :param history: an opened store of the history
    """
    if not datasets:
        return ()
    return (Unjudged.of_datasets("left_out", _NOT_LOOKED_FOR, datasets, names_in(history)),)
