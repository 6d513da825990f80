"""Stale versions: they still exist, but data from which they were made has changed since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history.queries import answers, sql
from airflow_provider_sparklineage.history.queries.plan import plan_for
from airflow_provider_sparklineage.history.queries.walk import runs_of
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.exceptions import TooManyError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

_IGNORED = ("ignored_namespace", "ignored_name")
_ID = "asked_id"


class _Runs(NamedTuple):
    """The runs that a query may find, in SQL.

    :param tables: the tables that the query needs for that, each with a comma
    :param bindings: the table of the reads of these runs
    """

    tables: str
    bindings: str


_ALL = _Runs("", "bindings")
_ASKED = _Runs(
    f"asked AS ({sql.table_of(_ID)}), asked_bindings AS ("
    f"SELECT b.* FROM bindings AS b SEMI JOIN asked AS a ON a.{_ID} = b.reader_run_id), ",
    "asked_bindings",
)


# Most cells are written once and read only after that: `cells` leaves such reads out before any
# join. `cells` is materialized, because the optimizer would take the join of `cells` with all
# changes for the smaller side. `parts` has all changes of the few datasets that are read whole: a
# hash table of the changes of all datasets would cost more than the rest of the query. Cells with
# other dimensions are joined by the part that both have, which `projected`, `reads` and `writes`
# have; in the latter two, all cells of a run with the same part are one row, because each of a
# thousand days meets each of a thousand regions. A row of `missed` is a read and a change that came
# after the read. A change that ended before the reading run ended is not certain: nobody knows
# whether the run read before or after it. Nor is it certain that a part of a dataset that nobody
# names was read: such reads and writes (dbt, SQL) are compared for the latest run of a job only,
# because each of its runs makes all of the output anew, or adds to it, and nobody says which.
def _direct(runs: _Runs) -> str:
    return f"""
WITH {runs.tables}ignored AS ({sql.table_of(*_IGNORED)}), shapes AS (
    SELECT DISTINCT namespace, name, dims FROM changes
), coarse AS (
    SELECT * FROM changes WHERE cell IS NULL
), extended AS (
    SELECT DISTINCT namespace, name, cell FROM changes
    WHERE cell IS NOT NULL AND mode NOT IN {sql.REPLACING}
), cells AS MATERIALIZED (
    SELECT namespace, name, cell, reader_run_id, read_at, is_certain FROM {runs.bindings}
    WHERE extent = 'partition' AND (valid_to IS NOT NULL OR version_run_id IS NULL
        OR version_cell IS DISTINCT FROM cell)
    UNION ALL
    SELECT b.namespace, b.name, b.cell, b.reader_run_id, b.read_at, b.is_certain
    FROM {runs.bindings} AS b SEMI JOIN extended AS c
        ON c.namespace = b.namespace AND c.name = b.name AND c.cell = b.cell
), whole AS (
    SELECT b.*, r.ended FROM {runs.bindings} AS b JOIN runs AS r
        ON r.started = b.read_at AND r.run_id = b.reader_run_id
    WHERE b.extent <> 'partition'
), vague AS (
    SELECT b.* FROM whole AS b
    SEMI JOIN (
        SELECT max_by(run_id, (ended, run_id)) AS run_id FROM runs
        WHERE state = 'COMPLETE' GROUP BY namespace, job
    ) AS latest ON latest.run_id = b.reader_run_id
    WHERE b.extent = 'unknown'
), parts AS MATERIALIZED (
    SELECT * FROM changes AS c SEMI JOIN (SELECT DISTINCT namespace, name FROM whole) AS d
        ON d.namespace = c.namespace AND d.name = c.name
), pairs AS (
    SELECT s.namespace, s.name, s.dims, t.dims AS other_dims FROM shapes AS s JOIN shapes AS t
        ON t.namespace = s.namespace AND t.name = s.name AND t.dims <> s.dims
), projected AS (
    SELECT c.*, p.other_dims, {sql.projected("c.cell", "p.other_dims")} AS common_cell
    FROM parts AS c JOIN pairs AS p
        ON p.namespace = c.namespace AND p.name = c.name AND p.dims = c.dims
), reads AS (
    SELECT b.namespace, b.name, b.dims, s.dims AS other_dims, b.reader_run_id, b.read_at,
        {sql.projected("b.cell", "s.dims")} AS common_cell,
        min(b.cell) AS cell, bool_or(b.is_certain) AS is_certain
    FROM {runs.bindings} AS b JOIN shapes AS s
        ON s.namespace = b.namespace AND s.name = b.name AND s.dims <> b.dims
    WHERE b.extent = 'partition'
    GROUP BY ALL
), writes AS (
    SELECT c.namespace, c.name, c.dims, r.dims AS other_dims, c.run_id, c.valid_from,
        {sql.projected("c.cell", "r.dims")} AS common_cell,
        min(c.cell) AS cell, min_by(c.mode, c.cell) AS mode
    FROM changes AS c JOIN (SELECT DISTINCT namespace, name, dims, other_dims FROM reads) AS r
        ON r.namespace = c.namespace AND r.name = c.name AND r.other_dims = c.dims
    GROUP BY ALL
), missed AS (
    SELECT b.reader_run_id, b.read_at, b.namespace, b.name, b.cell AS read_cell, c.cell, c.run_id,
        c.valid_from, c.mode, b.is_certain
    FROM cells AS b JOIN changes AS c
        ON c.namespace = b.namespace AND c.name = b.name AND c.cell = b.cell
        AND c.valid_from > b.read_at AND c.run_id <> b.reader_run_id
    UNION ALL
    SELECT b.reader_run_id, b.read_at, b.namespace, b.name, b.cell, c.cell, c.run_id,
        c.valid_from, c.mode, b.is_certain AND c.extent = 'all'
    FROM {runs.bindings} AS b JOIN coarse AS c
        ON c.namespace = b.namespace AND c.name = b.name
        AND c.valid_from > b.read_at AND c.run_id <> b.reader_run_id
    WHERE b.extent = 'partition' AND (c.extent <> 'range' OR {sql.within("b.partition", "c")})
    UNION ALL
    SELECT b.reader_run_id, b.read_at, b.namespace, b.name, b.cell, c.cell, c.run_id,
        c.valid_from, c.mode, b.is_certain
    FROM reads AS b JOIN writes AS c ON c.namespace = b.namespace AND c.name = b.name
        AND c.dims = b.other_dims AND c.other_dims = b.dims AND c.common_cell = b.common_cell
        AND c.valid_from > b.read_at AND c.run_id <> b.reader_run_id
    UNION ALL
    SELECT b.reader_run_id, b.read_at, b.namespace, b.name, NULL, c.cell, c.run_id,
        c.valid_from, c.mode, b.is_certain AND b.extent = 'all'
    FROM whole AS b
    JOIN parts AS c ON c.namespace = b.namespace AND c.name = b.name
        AND c.valid_from > b.read_at AND c.run_id <> b.reader_run_id
        AND c.cell IS NOT NULL AND (b.extent <> 'range' OR {sql.within("c.partition", "b")})
    SEMI JOIN parts AS v ON v.namespace = c.namespace AND v.name = c.name
        AND v.cell = c.cell AND {sql.found_by("b", "v")}
    UNION ALL
    SELECT b.reader_run_id, b.read_at, b.namespace, b.name, NULL, c.cell, c.run_id,
        c.valid_from, c.mode, b.is_certain AND b.extent = 'all'
    FROM whole AS b
    JOIN projected AS c ON c.namespace = b.namespace AND c.name = b.name
        AND c.valid_from > b.read_at AND c.run_id <> b.reader_run_id
        AND (b.extent <> 'range' OR {sql.within("c.partition", "b")})
    SEMI JOIN projected AS v ON v.namespace = c.namespace AND v.name = c.name
        AND v.dims = c.other_dims AND v.other_dims = c.dims AND v.common_cell = c.common_cell
        AND {sql.found_by("b", "v")}
    UNION ALL
    SELECT b.reader_run_id, b.read_at, b.namespace, b.name, NULL, c.cell, c.run_id,
        c.valid_from, c.mode, b.is_certain AND b.extent = 'all' AND (c.cell IS NULL)
    FROM whole AS b
    JOIN parts AS c ON c.namespace = b.namespace AND c.name = b.name
        AND c.valid_from > b.read_at AND c.run_id <> b.reader_run_id
        AND (b.extent <> 'range' OR c.cell IS NULL OR {sql.within("c.partition", "b")})
        AND (c.cell IS NOT NULL OR (c.extent = 'all' AND c.mode IN {sql.REPLACING}))
    SEMI JOIN parts AS v ON v.namespace = c.namespace AND v.name = c.name
        AND (c.cell IS NULL OR (v.cell IS NULL
            AND (v.extent <> 'range' OR {sql.within("c.partition", "v")})))
        AND {sql.found_by("b", "v")}
    UNION ALL
    SELECT b.reader_run_id, b.read_at, b.namespace, b.name, NULL, c.cell, c.run_id,
        c.valid_from, c.mode, FALSE
    FROM vague AS b
    JOIN parts AS c ON c.namespace = b.namespace AND c.name = b.name
        AND c.valid_from > b.read_at AND c.run_id <> b.reader_run_id AND {sql.vague("c")}
), judged AS (
    SELECT m.reader_run_id, m.namespace, m.name, m.cell, m.run_id, m.valid_from, m.mode, r.ended,
        r.state,
        bool_or(m.is_certain AND m.valid_from >= r.ended) OVER (PARTITION BY m.reader_run_id)
            AS is_certain,
        row_number() OVER (
            PARTITION BY m.reader_run_id
            ORDER BY m.valid_from, m.run_id, m.namespace, m.name, m.cell, m.read_cell
        ) AS place
    FROM missed AS m
    ANTI JOIN ignored AS i ON i.ignored_namespace = m.namespace AND i.ignored_name = m.name
    JOIN runs AS r ON r.run_id = m.reader_run_id AND r.started = m.read_at
)
SELECT reader_run_id, ended, namespace, name, cell, run_id, valid_from, mode, is_certain
FROM judged WHERE place = 1 AND state = 'COMPLETE'
"""


# The runs that read versions which stale runs wrote. A version that was replaced makes its readers
# stale only if the reader itself replaced it, i.e. read a table and overwrote it: any other reader
# has missed the replacement. If the task instance that wrote the version has run again since, that
# has repaired the table.
def _readers(runs: _Runs) -> str:
    return f"""
WITH {runs.tables}ignored AS ({sql.table_of(*_IGNORED)}), f AS ({sql.table_of(*sql.RUN)}),
written AS (
    SELECT c.* FROM changes_by_run AS c
    JOIN f ON c.valid_from = f.ended AND c.run_id = f.run_id
    ANTI JOIN ignored AS i ON i.ignored_namespace = c.namespace AND i.ignored_name = c.name
    WHERE c.mode NOT IN {sql.REMOVING}
), repeated AS (
    SELECT r.run_id FROM runs AS r JOIN f ON r.ended = f.ended AND r.run_id = f.run_id
    SEMI JOIN runs AS o ON o.namespace = r.namespace AND o.dag_id = r.dag_id
        AND o.task_id = r.task_id AND o.dag_run_id = r.dag_run_id
        AND o.map_index IS NOT DISTINCT FROM r.map_index
        AND o.state = 'COMPLETE' AND o.ended > r.ended
), versions AS (
    SELECT c.*, CASE WHEN c.valid_to IS NOT NULL THEN c.replaced_by END AS only_for
    FROM written AS c LEFT JOIN repeated AS o ON o.run_id = c.run_id
    WHERE c.valid_to IS NULL OR (c.replaced_by IS NOT NULL AND o.run_id IS NULL)
), whole AS (
    SELECT b.*, r.ended FROM {runs.bindings} AS b
    JOIN (SELECT DISTINCT namespace, name FROM versions) AS d
        ON b.namespace = d.namespace AND b.name = d.name
    JOIN runs AS r ON r.started = b.read_at AND r.run_id = b.reader_run_id
    WHERE b.extent <> 'partition'
), found AS (
    SELECT b.reader_run_id, b.read_at, c.run_id, {sql.SURELY_BOUND} AS is_certain
    FROM {runs.bindings} AS b JOIN versions AS c
        ON c.namespace = b.namespace AND c.name = b.name AND c.run_id = b.version_run_id
        AND c.valid_from = b.valid_from AND c.cell IS NOT DISTINCT FROM b.version_cell
    WHERE b.extent = 'partition' AND COALESCE(c.only_for = b.reader_run_id, TRUE)
    UNION ALL
    SELECT b.reader_run_id, b.read_at, c.run_id, {sql.surely_found("b", "c")}
    FROM whole AS b JOIN versions AS c
        ON c.namespace = b.namespace AND c.name = b.name AND {sql.found_by("b", "c")}
    WHERE COALESCE(c.only_for = b.reader_run_id, TRUE)
)
SELECT b.reader_run_id, r.ended, b.run_id, bool_or(b.is_certain) AS is_certain
FROM found AS b JOIN runs AS r ON r.started = b.read_at AND r.run_id = b.reader_run_id
WHERE r.state = 'COMPLETE'
GROUP BY b.reader_run_id, r.ended, b.run_id
"""


_DIRECT, _DIRECT_OF_ASKED = _direct(_ALL), _direct(_ASKED)
_READERS, _READERS_OF_ASKED = _readers(_ALL), _readers(_ASKED)

# The runs that wrote what is there of a dataset; and the runs that wrote what some runs have read.
_WRITERS = f"""
SELECT DISTINCT run_id, valid_from AS ended FROM changes
WHERE namespace = $namespace AND name = $name AND valid_to IS NULL AND mode NOT IN {sql.REMOVING}
"""
_SOURCES = f"""
WITH f AS ({sql.table_of(*sql.RUN)}), reads AS (
    SELECT b.*, r.ended FROM runs AS r JOIN f ON f.ended = r.ended AND f.run_id = r.run_id
    JOIN bindings_by_run AS b ON b.read_at = r.started AND b.reader_run_id = r.run_id
)
SELECT version_run_id AS run_id, valid_from AS ended FROM reads
WHERE extent = 'partition' AND version_run_id IS NOT NULL
UNION
SELECT c.run_id, c.valid_from FROM reads AS b JOIN changes AS c
    ON c.namespace = b.namespace AND c.name = b.name AND {sql.found_by("b", "c")}
WHERE b.extent <> 'partition'
"""

# Nobody says which earlier version a vague write (dbt, SQL) replaced: that of the latest run of its
# job stands for all of them.
_VERSIONS = f"""
WITH f AS ({sql.table_of(*sql.RUN)}), written AS (
    SELECT c.* FROM changes_by_run AS c JOIN f ON c.valid_from = f.ended AND c.run_id = f.run_id
    WHERE c.valid_to IS NULL AND c.mode NOT IN {sql.REMOVING}
        AND ($namespace IS NULL OR (c.namespace = $namespace AND c.name = $name))
), latest AS (
    SELECT c.namespace, c.name, max_by(c.run_id, (r.ended, r.run_id)) AS run_id
    FROM changes AS c
    JOIN (SELECT DISTINCT namespace, name FROM written AS c WHERE {sql.vague("c")}) AS d
        ON c.namespace = d.namespace AND c.name = d.name
    JOIN runs AS r ON r.ended = c.valid_from AND r.run_id = c.run_id
    WHERE {sql.vague("c")} GROUP BY c.namespace, c.name, r.namespace, r.job
)
SELECT c.namespace, c.name, c.cell, c.run_id
FROM written AS c LEFT JOIN latest AS l
    ON l.namespace = c.namespace AND l.name = c.name AND l.run_id = c.run_id
WHERE NOT {sql.vague("c")} OR l.run_id IS NOT NULL
ORDER BY c.namespace, c.name, c.cell NULLS FIRST, c.run_id
"""


# Of some changes, those before which nothing is known to have been written there.
_CHANGE = ("namespace", "name", "cell", "ended")
_FIRST = f"""
WITH f AS ({sql.table_of(*_CHANGE)}), earlier AS (
    SELECT c.namespace, c.name, c.cell, min(c.valid_from) AS first_at FROM changes AS c
    SEMI JOIN f ON f.namespace = c.namespace AND f.name = c.name
    GROUP BY c.namespace, c.name, c.cell
), of_dataset AS (
    SELECT namespace, name, min(first_at) AS first_at,
        min(CASE WHEN cell IS NULL THEN first_at END) AS whole_at
    FROM earlier GROUP BY namespace, name
)
SELECT f.namespace, f.name, f.cell, f.ended FROM f
LEFT JOIN earlier AS e ON e.namespace = f.namespace AND e.name = f.name AND e.cell = f.cell
LEFT JOIN of_dataset AS d ON d.namespace = f.namespace AND d.name = f.name
WHERE f.ended <= CASE WHEN f.cell IS NULL THEN d.first_at ELSE LEAST(d.whole_at, e.first_at) END
"""


class _StaleRun(NamedTuple):
    """A run that read data which has changed since, or versions that another stale run wrote.

    :param ended: the end of the run
    :param cause: the first change that the run missed, as a row; for a run that read versions of
        another stale run, the cause of that run
    :param is_direct: whether this run read the changed data itself
    :param is_certain: whether nothing of this is assumed
    """

    ended: Any
    cause: dict[str, Any]
    is_direct: bool
    is_certain: bool


def stale(
    history: sql.Rows,
    dataset: DatasetName | None = None,
    progress: Callable[[int], None] | None = None,
    ignored: Collection[DatasetName] = (),
) -> list[answers.Stale]:
    """List the versions that stale runs wrote and that still exist, by dataset and partition.

    A run with state COMPLETE is stale if, after it had started, another run overwrote, appended to
    or removed a partition that it read; if the other run ended before this one ended, that is not
    certain. New partitions of a dataset that the run read whole do not make the run stale. A run
    with state COMPLETE is stale, too, if it read a version that a stale run wrote, and that still
    exists or was replaced by the reading run itself.

    :param history: an opened store of the history
    :param dataset: None for all datasets
    :param progress: a function that is called with the number of stale runs so far
    :param ignored: datasets that make no run stale, such as a dimension table that is overwritten
        each day
    :raise TooManyError: if more than :data:`MAX_RUNS` runs are stale and all datasets are asked
        for, or if more runs made the dataset
    """
    without = sql.lists(_IGNORED, ignored)
    try:
        rows = history.rows(f"{_DIRECT} LIMIT {MAX_RUNS + 1}", without)
        stale_runs = _with_readers(history, rows, without, None, progress)
    except TooManyError:
        if dataset is None:
            raise
        return stale_alone(history, dataset, progress, ignored)
    return _listed(history, stale_runs, dataset)


def stale_alone(
    history: sql.Rows,
    dataset: DatasetName,
    progress: Callable[[int], None] | None = None,
    ignored: Collection[DatasetName] = (),
) -> list[answers.Stale]:
    """List the same for one dataset, without looking at runs that did not make what is there of it.

    Only where very many runs are stale this takes less time than to look at all runs.

    :raise TooManyError: if more than :data:`MAX_RUNS` runs made the dataset
    """
    without = sql.lists(_IGNORED, ignored)
    rows, asked = _of_makers(history, dataset, without)
    return _listed(history, _with_readers(history, rows, without, asked, progress), dataset)


MAX_RUNS = 300_000
"""Number of stale runs, or of runs that made a dataset, up to which they are looked at."""
_STALE = f"More than {MAX_RUNS:,} runs are stale: too many to list."
_MAKERS = f"More than {MAX_RUNS:,} runs made what is there of the dataset: too many to look at."
_FIX = "Ask for one dataset, or ignore datasets that are overwritten each day."


def _with_readers(
    history: sql.Rows,
    direct: Iterable[dict[str, Any]],
    without: dict[str, list[Any]],
    asked: Collection[str] | None,
    progress: Callable[[int], None] | None,
) -> dict[str, _StaleRun]:
    """Give the stale runs by run_id: those that read changed data, and those that read of these.

    :param direct: rows of the runs that read changed data
    :param without: the ignored datasets, as parameters
    :param asked: ids of the runs to find; None for all
    :raise TooManyError: if there are more than :data:`MAX_RUNS`
    """
    stale_runs = {
        row["reader_run_id"]: _StaleRun(row["ended"], row, True, bool(row["is_certain"]))
        for row in direct
    }
    query = _READERS if asked is None else _READERS_OF_ASKED
    among = {} if asked is None else {_ID: [*asked]}
    frontier = stale_runs
    while frontier:
        if len(stale_runs) > MAX_RUNS:
            raise TooManyError(_STALE, _FIX)
        if progress:
            progress(len(stale_runs))
        following: dict[str, _StaleRun] = {}
        for row in history.rows(query, {**_ends(frontier), **without, **among}):
            reader, source = row["reader_run_id"], frontier[row["run_id"]]
            if reader in stale_runs:
                continue
            is_certain = source.is_certain and bool(row["is_certain"])
            new = _StaleRun(row["ended"], source.cause, False, is_certain)
            known = following.get(reader, new)
            first = min(new, known, key=lambda one: _order(one.cause))
            following[reader] = first._replace(is_certain=is_certain or known.is_certain)
        frontier = following
        stale_runs |= frontier
    return stale_runs


def _of_makers(
    history: sql.Rows, dataset: DatasetName, without: dict[str, list[Any]]
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Give the runs that made what is there of a dataset, and those among them that are stale.

    What was read by a run that read changed data is not looked at: the run is stale anyway.

    :return: rows of the runs that read changed data, and the ends of all runs, by run_id
    :raise TooManyError: if there are more than :data:`MAX_RUNS`
    """
    direct: list[dict[str, Any]] = []
    asked: dict[str, Any] = {}
    rows = history.rows(_WRITERS, dataset._asdict())
    while new := {r["run_id"]: r["ended"] for r in rows if r["run_id"] not in asked}:
        asked |= new
        if len(asked) > MAX_RUNS:
            raise TooManyError(_MAKERS, _FIX)
        stale_rows = history.rows(_DIRECT_OF_ASKED, {_ID: [*new], **without})
        direct += stale_rows
        for row in stale_rows:
            del new[row["reader_run_id"]]
        rows = history.rows(_SOURCES, sql.lists(sql.RUN, new.items())) if new else []
    return direct, asked


_MOST = 3
_CAUSES = f"""
SELECT namespace, name, COUNT(*) AS runs FROM ({_DIRECT}) AS d
GROUP BY namespace, name ORDER BY runs DESC, namespace, name LIMIT {_MOST}
"""


def frequent_causes(history: sql.Rows, ignored: Collection[DatasetName] = ()) -> list[DatasetName]:
    """List the datasets whose changes make most runs stale, at most three; the first makes most.

    :param history: an opened store of the history
    :param ignored: datasets that make no run stale
    """
    rows = history.rows(_CAUSES, sql.lists(_IGNORED, ignored))
    return [DatasetName(row["namespace"], row["name"]) for row in rows]


def _ends(stale_runs: dict[str, _StaleRun]) -> dict[str, list[Any]]:
    return sql.lists(sql.RUN, ((run_id, one.ended) for run_id, one in stale_runs.items()))


def _order(cause: dict[str, Any]) -> tuple[Any, ...]:
    """Give a key that sorts causes by time, without ties: engines give rows in any order."""
    place = cause["namespace"], cause["name"], cause["cell"] or ""
    return *_when(cause), *place


def _when(cause: dict[str, Any]) -> tuple[Any, ...]:
    return cause["valid_from"], cause["run_id"]


def _listed(
    history: sql.Rows, stale_runs: dict[str, _StaleRun], dataset: DatasetName | None
) -> list[answers.Stale]:
    if not stale_runs:
        return []
    of_dataset = dataset._asdict() if dataset else {"namespace": None, "name": None}
    rows = history.rows(_VERSIONS, {**_ends(stale_runs), **of_dataset})
    writers = {row["run_id"]: stale_runs[row["run_id"]] for row in rows}
    changes = {_when(one.cause)[::-1] for one in writers.values()}
    runs = runs_of(history, {(run, one.ended) for run, one in writers.items()} | changes)
    # Many runs have the same cause.
    changed = {id(one.cause): one.cause for one in writers.values()}
    places = [(c["namespace"], c["name"], c["cell"], c["valid_from"]) for c in changed.values()]
    first = {tuple(row.values()) for row in history.rows(_FIRST, sql.lists(_CHANGE, places))}
    causes = {
        key: _cause(one, runs, is_first=place in first)
        for (key, one), place in zip(changed.items(), places, strict=True)
    }
    return [
        answers.Stale(
            answers.Dataset(row["namespace"], row["name"]),
            answers.values_of(row["cell"]),
            runs[row["run_id"]],
            writer.is_direct,
            causes[id(writer.cause)],
            writer.is_certain,
        )
        for row in rows
        for writer in (writers[row["run_id"]],)
    ]


def _cause(row: dict[str, Any], runs: dict[str, answers.Run], *, is_first: bool) -> answers.Cause:
    dataset = answers.Dataset(row["namespace"], row["name"])
    at, run = answers.at_utc(row["valid_from"]), runs[row["run_id"]]
    return answers.Cause(dataset, answers.values_of(row["cell"]), run, at, row["mode"], is_first)


def plan_of(history: sql.Rows, versions: Iterable[answers.Stale]) -> answers.Plan:
    """Make the plan that runs the writers of stale versions again.

    :param history: an opened store of the history
    """
    affected, reasons, certain = {}, {}, set()
    for one in versions:
        affected[one.run.run_id] = answers.of_tables(one.run.ended)
        if one.is_certain:
            certain.add(one.run.run_id)
        cause = one.cause
        why = answers.Reason(cause.dataset, cause.partition, cause=cause, is_direct=one.is_direct)
        reasons[one.run.run_id] = [why]
    ended = {run: at for run, at in affected.items() if at}
    return plan_for(history, ended, reasons, certain)
