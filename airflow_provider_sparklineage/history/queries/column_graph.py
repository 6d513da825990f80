"""A column, the columns of which it was made, and the columns that were made of it, run by run.

The graph is followed step by step in both directions. It begins with the latest run of each job
that wrote the dataset, or read it; for a partition, with all runs that wrote its version, and all
that ever read it.
From there on each step upstream follows the versions that the run before has read, and each step
downstream the readers of the version that the run before has written. A version that nobody has
read yet is followed by the latest run of each job that reads the dataset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_provider_sparklineage.history.facts.cells import cell_of_text
from airflow_provider_sparklineage.history.queries import sql
from airflow_provider_sparklineage.model.datasets import DatasetName

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import datetime

MAX_EDGES = 2000
"""The most edges of a graph; a step that would lead beyond is not followed."""
MAX_RUNS = 100
"""The most runs of one step, the latest ones."""

LATEST_RUNS = """
SELECT max_by(run_id, ended) AS run_id, max(ended) AS ended, dag_id, job FROM runs
WHERE state = 'COMPLETE' GROUP BY namespace, job, dag_id
"""
"""SQL for the latest successful run of each job."""
MAX_MATCHING = 1000
"""The most columns that :data:`MATCHING` finds."""
_MOST_ROWS = 5000  # of each kind; to sort all names that have a letter would take seconds
_KINDS = (
    "lower(col) = $last",
    "lower(col) <> $last AND starts_with(lower(col), $last)",
    "contains(lower(col), $last) AND NOT starts_with(lower(col), $last)",
)
_OF_EACH_KIND = " UNION ALL ".join(
    f"""(
    SELECT *, {kind} AS kind FROM named
    WHERE {condition} AND contains(lower(concat(namespace, name, col)), $first) LIMIT {_MOST_ROWS}
)"""
    for kind, condition in enumerate(_KINDS)
)
MATCHING = f"""
WITH f AS ({sql.table_of(*sql.RUN)}), near AS (
    SELECT c.* FROM columns AS c JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
), named AS (
    SELECT out_namespace AS namespace, out_name AS name, out_column AS col FROM near
    UNION ALL SELECT in_namespace, in_name, in_column FROM near
), matching AS ({_OF_EACH_KIND})
SELECT namespace, name, col, sum(count(*)) OVER (PARTITION BY kind) = {_MOST_ROWS} AS is_cut
FROM matching GROUP BY kind, namespace, name, col
ORDER BY kind, length(col), col, namespace, name LIMIT {MAX_MATCHING}
"""
"""SQL for the columns that some runs name: first those whose name is a text, then
those whose name begins with it, then others that have it; of each, the shortest first.

The text, and another that may be in the dataset's name as well, are in lower case. Not all are
looked at if they are many; then ``is_cut`` is true.
"""

_RUN = "r.run_id, r.namespace, r.job, r.dag_id, r.task_id, r.dag_run_id, r.map_index"
_TIMES = "r.logical_date, r.state, r.started, r.ended"
_RUNS_BY_END = f"""
WITH f AS ({sql.table_of(*sql.RUN)})
SELECT {_RUN}, {_TIMES} FROM runs AS r JOIN f ON r.ended = f.ended AND r.run_id = f.run_id
"""
_RUNS_BY_START = f"""
WITH f AS ({sql.table_of("run_id", "started")})
SELECT {_RUN}, {_TIMES} FROM runs AS r JOIN f ON r.started = f.started AND r.run_id = f.run_id
"""
_LATEST = f"""
WITH f AS ({sql.table_of(*sql.DATASET)})
SELECT a.namespace, a.name, a.job, a.dag_id, max_by(a.run_id, a.accessed_at) AS run_id,
    max(a.accessed_at) AS at
FROM accesses AS a JOIN f ON f.namespace = a.namespace AND f.name = a.name
WHERE a.side = $side
GROUP BY a.namespace, a.name, a.job, a.dag_id
"""
_WRITERS_OF_PARTITION = """
SELECT DISTINCT run_id, valid_from AS at FROM changes
WHERE namespace = $namespace AND name = $name AND valid_to IS NULL
    AND (cell = $cell OR cell IS NULL)
"""
_READERS_OF_PARTITION = """
SELECT DISTINCT reader_run_id AS run_id, read_at AS at FROM bindings
WHERE namespace = $namespace AND name = $name
    AND (cell = $cell OR version_cell = $cell OR (cell IS NULL AND version_cell IS NULL))
"""
_VERSIONS_READ = f"""
WITH f AS ({sql.table_of("run_id", "started")})
SELECT DISTINCT f.run_id AS by_run, b.namespace, b.name, b.version_run_id AS run_id,
    b.valid_from AS at
FROM bindings_by_run AS b JOIN f ON b.read_at = f.started AND b.reader_run_id = f.run_id
WHERE b.version_run_id IS NOT NULL
"""
_READERS_OF_VERSION = f"""
WITH f AS ({sql.table_of("run_id", "ended", "namespace", "name")})
SELECT DISTINCT f.run_id AS by_run, b.namespace, b.name, b.reader_run_id AS run_id, b.read_at AS at
FROM bindings AS b JOIN f ON f.namespace = b.namespace AND f.name = b.name
    AND b.version_run_id = f.run_id AND b.valid_from = f.ended
"""
_EDGE = """c.run_id, c.out_namespace, c.out_name, c.out_column, c.in_namespace, c.in_name,
    c.in_column, c.type, c.subtype, c.masking, c.description"""
_AT_COLUMN = sql.table_of("run_id", "ended", "namespace", "name", "col")
_SOURCES = f"""
WITH f AS ({_AT_COLUMN})
SELECT DISTINCT {_EDGE}, f.col FROM columns AS c
JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
    AND c.out_namespace = f.namespace AND c.out_name = f.name
WHERE c.out_column = f.col OR c.out_column IS NULL
"""
_TARGETS = f"""
WITH f AS ({_AT_COLUMN})
SELECT DISTINCT {_EDGE}, f.col FROM columns AS c
JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
    AND c.in_namespace = f.namespace AND c.in_name = f.name AND c.in_column = f.col
"""
_PART = "count(DISTINCT t.partition) AS partitions, min(t.partition) AS partition"
_PARTS_WRITTEN = f"""
WITH f AS ({sql.table_of(*sql.RUN)})
SELECT t.run_id, t.namespace, t.name, {_PART}
FROM changes_by_run AS t JOIN f ON t.valid_from = f.ended AND t.run_id = f.run_id
GROUP BY t.run_id, t.namespace, t.name
"""
_COLUMNS_OF = f"""
WITH f AS ({sql.table_of(*sql.RUN)}), near AS (
    SELECT c.* FROM columns AS c JOIN f ON c.ended = f.ended AND c.run_id = f.run_id
)
SELECT DISTINCT out_column AS col FROM near
WHERE out_namespace = $namespace AND out_name = $name AND out_column IS NOT NULL
UNION SELECT in_column FROM near
WHERE in_namespace = $namespace AND in_name = $name AND in_column IS NOT NULL
"""


class Column(NamedTuple):
    """A column of a dataset."""

    dataset: DatasetName
    name: str


_Times = dict[str, "datetime"]
"""A time of runs, by run_id: of runs that wrote, their end; of runs that read, their start."""
_Frontier = dict[Column, _Times]
"""Columns that are followed next, each with the runs that wrote it, or that read it."""


class ColumnGraph:
    """The edges that were followed, and the runs that made them.

    :param history: an opened store of the history
    :param sees: tells whether a run may be followed, given its row of the table ``runs``
    """

    def __init__(self, history: sql.Rows, sees: Callable[[Mapping[str, Any]], bool]) -> None:
        self._history, self._sees = history, sees
        self.edges: list[dict[str, Any]] = []
        """The edges, each with its ``run``, its ``side`` of the question, ``source`` and ``target``
        with ``source_column`` and ``target_column`` (None: a condition on all columns), ``type``,
        ``subtype``, ``masking`` and ``description``."""
        self.runs: dict[str, dict[str, Any]] = {}
        """The rows of the runs, by run_id."""
        self.hidden: set[str] = set()
        """Ids of the runs that may not be followed."""
        self.further: list[tuple[str, Column]] = []
        """The columns that can be followed further, each with its side of the question."""
        self._is_of_partition = False
        self.is_cut = False
        """Whether there are more edges than :data:`MAX_EDGES`."""

    def begin(self, dataset: DatasetName, partition: str | None) -> tuple[_Times, _Times]:
        """Give the runs that wrote a dataset or a partition, by their ends, and its readers.

        :param partition: text of the partition; None for all of the dataset
        :return: the writers, by their ends, and the readers, by their starts
        """
        cell = cell_of_text(partition or "")
        self._is_of_partition = cell is not None
        if cell is None:
            writers = self._latest([dataset], "write").get(dataset, {})
            readers = self._latest([dataset], "read").get(dataset, {})
        else:
            asked = {**dataset._asdict(), "cell": cell.cell}
            writers = _times(self._history.rows(_WRITERS_OF_PARTITION, asked))
            readers = _times(self._history.rows(_READERS_OF_PARTITION, asked))
        return self._seen("ended", writers), self._seen("started", readers)

    def follow_up(self, frontier: _Frontier, depth: int) -> None:
        """Follow columns to their sources.

        :param frontier: the columns with the runs that wrote them, by their ends
        :param depth: the most runs in a row that are followed
        """
        followed: set[tuple[Column, str]] = set()
        for _ in range(depth):
            frontier = _new(frontier, followed)
            rows = self._rows(_SOURCES, frontier)
            if not self._add(rows, "upstream"):
                return
            of_runs = {row["run_id"] for row in rows}
            started = {run_id: self.runs[run_id]["started"] for run_id in of_runs}
            versions = self._history.rows(
                _VERSIONS_READ, sql.lists(("run_id", "started"), started.items())
            )
            made = self._by_run("ended", versions)
            frontier = {}
            for row in rows:
                if row["type"] == _DIRECT and row["in_column"]:
                    source = Column(
                        DatasetName(row["in_namespace"], row["in_name"]), row["in_column"]
                    )
                    runs = made.get((row["run_id"], source.dataset), {})
                    frontier.setdefault(source, {}).update(runs)
        self._note_further("upstream", _new(frontier, followed))

    def follow_down(self, frontier: _Frontier, depth: int) -> None:
        """Follow columns to the columns that were made of them.

        :param frontier: the columns with the runs that read them, by their starts
        :param depth: the most runs in a row that are followed
        """
        followed: set[tuple[Column, str]] = set()
        for _ in range(depth):
            frontier = _new(frontier, followed)
            ended = {
                column: {run_id: self.runs[run_id]["ended"] for run_id in runs}
                for column, runs in frontier.items()
            }
            rows = self._rows(_TARGETS, ended)
            if not self._add(rows, "downstream"):
                return
            targets = [
                (
                    row["run_id"],
                    DatasetName(row["out_namespace"], row["out_name"]),
                    row["out_column"],
                )
                for row in rows
                if row["type"] == _DIRECT and row["out_column"]
            ]
            written = {
                (run_id, self.runs[run_id]["ended"], *dataset) for run_id, dataset, _ in targets
            }
            versions = self._history.rows(
                _READERS_OF_VERSION,
                sql.lists(("run_id", "ended", "namespace", "name"), written),
            )
            read = self._by_run("started", versions)
            unread = {dataset for run_id, dataset, _ in targets if (run_id, dataset) not in read}
            latest = {
                dataset: self._seen("started", runs)
                for dataset, runs in self._latest(sorted(unread), "read").items()
            }
            frontier = {}
            for run_id, dataset, column in targets:
                runs = read.get((run_id, dataset)) or latest.get(dataset, {})
                frontier.setdefault(Column(dataset, column), {}).update(runs)
        self._note_further("downstream", _new(frontier, followed))

    def _note_further(self, side: str, frontier: _Frontier) -> None:
        self.further += [(side, column) for column, runs in frontier.items() if runs]

    def _rows(self, query: str, frontier: _Frontier) -> list[dict[str, Any]]:
        asked = [
            (run_id, at, *column.dataset, column.name)
            for column, runs in frontier.items()
            for run_id, at in runs.items()
        ]
        names = ("run_id", "ended", "namespace", "name", "col")
        return self._history.rows(query, sql.lists(names, asked)) if asked else []

    def _add(self, rows: list[dict[str, Any]], side: str) -> bool:
        """Add edges; whether there are any, and all of them."""
        room = MAX_EDGES - len(self.edges)
        self.is_cut = self.is_cut or len(rows) > room
        self.edges += [
            {
                "run": row["run_id"],
                "side": side,
                "source": DatasetName(row["in_namespace"], row["in_name"]),
                "source_column": row["in_column"],
                "target": DatasetName(row["out_namespace"], row["out_name"]),
                "target_column": row["out_column"],
                **{key: row[key] for key in ("type", "subtype", "masking", "description")},
            }
            for row in rows[:room]
        ]
        return bool(rows) and len(rows) <= room

    def _latest(self, datasets: Collection[DatasetName], side: str) -> dict[DatasetName, _Times]:
        """Give the latest run of each job that read or wrote some datasets."""
        asked = {**sql.lists(sql.DATASET, sorted(datasets)), "side": side}
        found: dict[DatasetName, _Times] = {}
        for row in self._history.rows(_LATEST, asked) if datasets else ():
            of_dataset = found.setdefault(DatasetName(row["namespace"], row["name"]), {})
            of_dataset[row["run_id"]] = row["at"]
        return found

    def _by_run(
        self, time: str, rows: list[dict[str, Any]]
    ) -> dict[tuple[str, DatasetName], _Times]:
        """Select the runs that the user sees; by the run by which one came, and the dataset.

        :param time: the time of the runs in the rows: ``ended`` or ``started``
        """
        seen = self._seen(time, _times(rows))
        found: dict[tuple[str, DatasetName], _Times] = {}
        for row in rows:
            if row["run_id"] in seen:
                key = (row["by_run"], DatasetName(row["namespace"], row["name"]))
                found.setdefault(key, {})[row["run_id"]] = row["at"]
        return {key: self._last_of_jobs(runs) for key, runs in found.items()}

    def _seen(self, time: str, times: _Times) -> _Times:
        """Select the runs that the user may see, the last of each job, and note them.

        :param time: the time by which the runs are given: ``ended`` or ``started``
        """
        asked = sql.lists(("run_id", time), times.items())
        for run in self._history.rows(_RUNS_BY[time], asked) if times else ():
            if self._sees(run):
                self.runs[run["run_id"]] = run
            else:
                self.hidden.add(run["run_id"])
        return self._last_of_jobs({one: at for one, at in times.items() if one in self.runs})

    def _last_of_jobs(self, times: _Times) -> _Times:
        """Select the last run of each job; of a partition, all runs count."""
        last: dict[object, str] = {}
        for run_id in sorted(times, key=lambda one: (times[one], one)):
            run = self.runs[run_id]
            last[run_id if self._is_of_partition else (run["namespace"], run["job"])] = run_id
        return {run_id: times[run_id] for run_id in [*last.values()][-MAX_RUNS:]}

    def parts(self, run_ids: Collection[str]) -> list[dict[str, Any]]:
        """Give the partitions that runs wrote of each dataset, as a number and the first's name."""
        ends = {(run_id, self.runs[run_id]["ended"]) for run_id in run_ids}
        rows = self._history.rows(_PARTS_WRITTEN, sql.lists(sql.RUN, ends)) if ends else []
        return [{"run": row.pop("run_id"), **row} for row in rows]

    def columns_of(self, dataset: DatasetName, writers: _Times, readers: _Times) -> list[str]:
        """List the columns of a dataset that some runs name."""
        ends = {run_id: self.runs[run_id]["ended"] for run_id in (*writers, *readers)}
        asked = {**sql.lists(sql.RUN, ends.items()), **dataset._asdict()}
        return sorted(row["col"] for row in self._history.rows(_COLUMNS_OF, asked)) if ends else []


_RUNS_BY = {"ended": _RUNS_BY_END, "started": _RUNS_BY_START}
_DIRECT = "DIRECT"


def _times(rows: Iterable[Mapping[str, Any]]) -> _Times:
    return {row["run_id"]: row["at"] for row in rows}


def _new(frontier: _Frontier, followed: set[tuple[Column, str]]) -> _Frontier:
    """Leave out columns with runs that were followed already, and note the others as followed."""
    new = {
        column: {one: at for one, at in runs.items() if (column, one) not in followed}
        for column, runs in frontier.items()
    }
    followed.update((column, one) for column, runs in new.items() for one in runs)
    return new
