"""Answers of the history for people, as tables.

Tables are made from the documents that ``--json`` prints, so that both show the same facts. A
column that would be empty is left out; in a narrow terminal, texts that have no room in a row stand
above or below the rows. If there are many rows, rows that differ only in the partition become one
line. Of the hops of ``trace`` and ``impact`` (:class:`.answers.Hop`), the nearest are printed
first. The runs of a plan are printed in the order in which they have to run again.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec
from rich.cells import cell_len
from rich.padding import Padding
from rich.table import Table

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.model.datasets import DatasetName
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from rich.console import Console

    from airflow_provider_sparklineage.history.queries.answers import Plan, Unjudged
    from airflow_provider_sparklineage.history.queries.walk import Size


Document = dict[str, Any]

MAX_ROWS = 500
"""Most rows of a table: people do not read more, and a table of 50,000 rows takes seconds.

``--json`` has all rows.
"""


_PLAIN_WIDTH = 10_000
_CELL_WIDTH = 200
"""Greatest width of a cell. If the output is not a terminal, a row is one line, for ``grep``; one
name of 10,000 characters must not make all lines as long."""


class Column(NamedTuple):
    """A column of a table: its title, and the function that gives its text for a document.

    :param style: rich's style of the column; empty for the default
    :param detail: 1 if its texts are the first to stand below the rows in a narrow terminal, 2 if
        they are the next; 0 if they never do
    :param heading: a function that gives the part of the text that may stand once above the rows
        where the terminal is narrow, e.g. the DAG of a task; None if there is no such part
    :param below_heading: a function that gives the rest of the text
    """

    title: str
    text: Callable[[Document], str]
    style: str = ""
    detail: int = 0
    heading: Callable[[Document], str] | None = None
    below_heading: Callable[[Document], str] | None = None


def print_table(
    columns: Sequence[Column],
    documents: Sequence[Document],
    file: IO[str],
    *,
    of: int | None = None,
) -> None:
    """Print a row for each document, at most :data:`MAX_ROWS` rows.

    In a terminal in which the table has no room, common parts of a column stand above the rows, and
    details below each row. Where the output is no terminal, each row is a line.

    :param of: number of rows before they were grouped into these documents; None if they were not
    """
    out = show.console(file)
    if not out.is_terminal:
        out.width = _PLAIN_WIDTH
    table = _Layout(columns, documents[:MAX_ROWS])
    table.fit(out.width)
    table.print(out)
    if len(documents) > MAX_ROWS:
        out.print(f"… and {len(documents) - MAX_ROWS:,} more; --json prints all.")
    if of not in (None, len(documents)):
        lines = "1 line" if len(documents) == 1 else f"{len(documents):,} lines"
        out.print(f"{of:,} in {lines}; --all has a line for each.")


_GAP = 2  # spaces between columns
_INDENT = 4  # of what stands below a row


class _Layout:
    """The cells of a table, and their places: in columns, above the rows, or below the rows."""

    def __init__(self, columns: Sequence[Column], documents: Sequence[Document]) -> None:
        cells = {column: [*map(column.text, documents)] for column in columns}
        self._cells = {column: texts for column, texts in cells.items() if any(texts)}
        self._headings = self._details = [""] * len(documents)
        self._documents = documents

    def fit(self, width: int) -> None:
        """Move cells above and below the rows until the columns have room in a width."""
        details: list[Column] = []
        for column in [*self._cells]:
            if self._width() > width and column.heading and column.below_heading:
                self._headings = [*map(column.heading, self._documents)]
                self._cells[column] = [*map(column.below_heading, self._documents)]
                if not any(self._cells[column]):
                    del self._cells[column]
        movable = [column for column in reversed([*self._cells]) if column.detail]
        for column in sorted(movable, key=lambda one: one.detail):
            if self._width() > width:
                details.insert(0, column)
                del self._cells[column]
        self._details = [
            "; ".join(f"{column.title}: {text}" for column in details if (text := column.text(one)))
            for one in self._documents
        ]

    def _width(self) -> int:
        return sum(self._widths()) + _GAP * (len(self._cells) - 1)

    def _widths(self) -> list[int]:
        return [
            min(_CELL_WIDTH, max(map(cell_len, (column.title, *texts))))
            for column, texts in self._cells.items()
        ]

    def print(self, out: Console) -> None:
        """Print the rows; rows in a row that have the same text below them have it once."""
        cells = zip(*self._cells.values(), strict=True)
        rows = [*zip(self._headings, self._details, cells, strict=True)]
        has_room, heading, has_titles = self._width() <= out.width, "", True
        for (above, below), group in groupby(rows, itemgetter(0, 1)):
            if above != heading:
                if has_titles:
                    out.print(self._table([], has_room=has_room, has_titles=True))
                out.print(f"[bold]{show.escape(above)}[/]")
                heading, has_titles = above, False
            texts = [row for *_, row in group]
            out.print(self._table(texts, has_room=has_room, has_titles=has_titles))
            if below:
                out.print(Padding(show.escape(below), (0, 0, 0, _INDENT)))
            has_titles = False

    def _table(self, rows: Iterable[Sequence[str]], *, has_room: bool, has_titles: bool) -> Table:
        """Make a table of some rows.

        :param has_room: whether the columns keep their widths, so that tables can follow each other
        """
        table = Table(box=None, pad_edge=False, show_header=has_titles)
        for column, width in zip(self._cells, self._widths(), strict=True):
            table.add_column(
                column.title,
                overflow="fold",
                style=column.style,
                min_width=width if has_room else None,
                max_width=width,
            )
        for row in rows:
            table.add_row(*map(show.escape, row))
        return table


Names = Mapping[DatasetName, str]
"""The name by which people know a dataset of the store (:func:`.datasets.names_in`)."""


def dataset_text(dataset: Document | None, names: Names) -> str:
    """Name a dataset of a document; empty for None."""
    if dataset is None:
        return ""
    name = DatasetName(dataset["namespace"], dataset["name"])
    return names.get(name, str(name))


def namespace_column(rows: Sequence[Document]) -> Column:
    """Make the column of the job's namespace; it is empty if no job of another one has its name.

    :param rows: all rows of the answer, each with the namespace of its job
    """
    namespaces: dict[Hashable, set[str]] = defaultdict(set)
    for row in rows:
        namespaces[_job_name(row)].add(row["namespace"])

    def text(row: Document) -> str:
        return row["namespace"] if len(namespaces[_job_name(row)]) > 1 else ""

    return Column("namespace", text, detail=1)


def _job_name(row: Document) -> Hashable:
    return row.get("job") or (row["dag_id"], row["task_id"])


def partition_text(partition: Mapping[str, str | None] | None) -> str:
    """Format a partition as on the command line; ``all`` for None, which is the whole dataset."""
    if partition is None:
        return "all"
    return "/".join(f"{name}={'null' if v is None else v}" for name, v in partition.items())


def time_text(time: object) -> str:
    """Format a time in UTC, to the minute and without its zone; empty for None."""
    return "" if time is None else str(time)[:16].replace("T", " ")


def job_text(run: Document | None) -> str:
    """Name the job of a run; a run without a job is named by its id; empty if there is no run."""
    return "" if run is None else str(run.get("job") or run["run_id"])


def short_jobs(runs: Iterable[Document | None]) -> Callable[[Document | None], str]:
    """Give a function that names the job of a run: by its ``task_id`` if no other job ends with it.

    Any other job is named in full.
    """
    names = {job_text(run) for run in runs}
    ends = Counter(name.rpartition(".")[2] for name in names)

    def short(run: Document | None) -> str:
        end = job_text(run).rpartition(".")[2]
        return end if ends[end] == 1 else job_text(run)

    return short


def span_text(first: str, last: str) -> str:
    """Join two texts of :func:`time_text` to a span; give only one if they are equal."""
    if first == last:
        return first
    return f"{first} … {last[11:] if first[:10] == last[:10] else last}"


def how_text(transformations: Iterable[Mapping[str, Any]] | None) -> str:
    """Name the transformations of a column; name each kind only once."""
    return " + ".join(dict.fromkeys(map(_transformation_text, transformations or ())))


def _transformation_text(of: Mapping[str, Any]) -> str:
    # The subtype suffices: values (identity, …) and conditions (filter, …) have different ones.
    kind = str(of.get("subtype") or of.get("type") or "unknown").lower().replace("_", " ")
    return f"{kind}, masked" if of.get("masking") else kind


def certainty_text(document: Document) -> str:
    """Give the remarks on a row: ``not certain``, and the row's note, as far as they apply."""
    assumed = "" if document.get("is_certain", True) else "not certain"
    return ": ".join(filter(None, (assumed, document.get("note"))))


def print_size(size: Size, file: IO[str]) -> None:
    """Print how large versions are; nothing if the store has no sizes of them."""
    numbers = [f"{size.rows:,} rows"] if size.rows else []
    numbers += [_bytes_text(size.bytes)] if size.bytes else []
    if numbers:
        is_all = size.known >= size.versions
        of = "They have" if is_all else f"{size.known:,} of {size.versions:,} have a known size:"
        show.console(file).print(f"{of} {', '.join(numbers)}.")


def _bytes_text(count: int) -> str:
    """Give a number of bytes in the largest decimal unit of which there is at least one."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def print_unjudged(unjudged: Sequence[Unjudged], file: IO[str], *, empty: str = "") -> None:
    """Print what an answer cannot judge, a sentence each.

    :param empty: the sentence if there is nothing that it cannot judge; if it is empty, none
    """
    out = show.console(file)
    if unjudged:
        out.print("[bold]Not judged[/]")
        for one in unjudged:
            out.print(show.escape(one.text), soft_wrap=not out.is_terminal)
    elif empty:
        out.print(empty)


# --- many rows in few lines -----------------------------------------------------------------------


MOST_LINES = 20
"""An answer with more rows is grouped: people look for common facts then, not for one row."""
_ROWS = "rows"


def grouped(
    rows: Sequence[Document],
    key: Callable[[Document], Hashable],
    *,
    is_all: bool,
    most: int = MOST_LINES,
) -> Sequence[Document]:
    """Give one row for all rows with the same key: the first of them, with all of them added.

    :param key: a function that gives the part of a row that all rows of a group have in common
    :param is_all: whether to return the rows as they are, so that each row has a line
    :param most: number of rows up to which the rows are returned as they are
    :return: rows, of which :func:`rows_of` gives the rows of the group
    """
    if is_all or len(rows) <= most:
        return rows
    groups: dict[Hashable, list[Document]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return [{**group[0], _ROWS: group} for group in groups.values()]


def rows_of(row: Document) -> Sequence[Document]:
    """Give the rows of a group; for a row that is not a group, give a list with the row itself."""
    return row.get(_ROWS) or [row]


def ends_text(texts: Iterable[str]) -> str:
    """Give the text if all are equal; else the number of texts, with the first and the last.

    Numbers in texts are sorted as numbers: hour 9 comes before hour 10.
    """
    first, *others = sorted(set(texts), key=_with_equal_digits)
    return f"{1 + len(others):,}: {first} … {others[-1]}" if others else first


_DIGITS = re.compile("[0-9]+")


def _with_equal_digits(text: str) -> str:
    return _DIGITS.sub(lambda digits: digits[0].zfill(18), text)


def times_text(row: Document, text: Callable[[Document], str]) -> str:
    """Give the time of a row; for a group, the earliest and the latest time.

    :param text: a function that gives the time of a single row as text
    """
    times = sorted(text(one) for one in rows_of(row))
    return span_text(times[0], times[-1])


def partitions_text(row: Document) -> str:
    """Give the partition of a row; for a group, the number of partitions, the first and last."""
    return ends_text(partition_text(one["partition"]) for one in rows_of(row))


# --- hops -----------------------------------------------------------------------------------------


_INDIRECT = "INDIRECT"
_MAX_COLUMNS = 5


def print_hops(
    hops: Sequence[Document],
    file: IO[str],
    *,
    names: Names,
    empty: str,
    is_all: bool = False,
    has_plan: bool = False,
    size: Size | None = None,
) -> None:
    """Print hops (:class:`.answers.Hop`), or a sentence if there are no hops.

    At each depth, columns whose values were used come first. Then come the columns that decided
    which rows or groups there are, in one line for each version.

    :param names: the names of the store's datasets
    :param empty: the sentence for no hops; if it is empty, none
    :param is_all: whether each hop has a line, however many hops there are
    :param has_plan: whether a plan follows; if so, the plan shows the runs, and the hops do not
    :param size: how large they are, if it is to be printed
    """
    out = show.console(file)
    if not hops:
        if empty:
            out.print(empty)
        return
    lines = grouped(sorted(hops, key=_hop_order), _hop_version, is_all=is_all, most=0)
    if len(lines) > MOST_LINES:
        lines = grouped(sorted(hops, key=_hop_order), _hop_group, is_all=is_all)
    job = short_jobs(hop["run"] for hop in hops)
    runs = (
        Column("written by", lambda hop: job(hop["run"]) or "nobody known"),
        Column("at (UTC)", lambda hop: times_text(hop, _hop_time), detail=2),
    )
    columns = (
        Column("hop", lambda hop: str(hop["depth"])),
        Column("dataset", lambda hop: dataset_text(hop["dataset"], names), "cyan"),
        Column("partition", partitions_text),
        Column("column", _hop_columns, detail=1),
        *(() if has_plan else runs),
        Column("how", _hop_how, detail=1),
        Column("note", _hop_note, "yellow", detail=1),
    )
    print_table(columns, lines, file, of=len(hops))
    if size:
        print_size(size, file)
    out.print()


def _hop_order(hop: Document) -> tuple[int, bool]:
    return hop["depth"], _is_condition_hop(hop)


def _is_condition_hop(hop: Document) -> bool:
    kinds = [one.get("type") for one in hop["transformations"]]
    return bool(kinds) and all(kind == _INDIRECT for kind in kinds)


def _hop_version(hop: Document) -> tuple[Any, ...]:
    """Give a key that hops share if they belong in one line of the table.

    Such hops differ only in the column; or all of them are conditions, e.g. of filters, from one
    version.
    """
    return *_hop_group(hop), partition_text(hop["partition"]), (hop["run"] or {}).get("run_id")


def _hop_group(hop: Document) -> tuple[Any, ...]:
    """Give a key that hops share if they differ only in column, partition and run."""
    dataset = hop["dataset"]
    how = None if _is_condition_hop(hop) else how_text(hop["transformations"])
    what = (hop["depth"], dataset["namespace"], dataset["name"], how)
    return *what, job_text(hop["run"]), _hop_note(hop)


def _hop_columns(row: Document) -> str:
    return some(sorted({hop["column"] for hop in rows_of(row) if hop["column"]}), _MAX_COLUMNS)


def _hop_how(row: Document) -> str:
    return how_text([one for hop in rows_of(row) for one in hop["transformations"]])


def _hop_time(hop: Document) -> str:
    return "" if hop["run"] is None else time_text(hop["run"]["ended"])


def _hop_note(hop: Document) -> str:
    """Give the certainty of a hop and its note; no note if the writing run is not known.

    For a hop without a known run, the column ``written by`` has ``nobody known``.
    """
    return certainty_text(hop if hop["run"] else {**hop, "note": None})


# --- why something is stale -----------------------------------------------------------------------


INDIRECTLY = "its source is stale"

_CHANGES = {"overwrite": "was rewritten", "append": "was added to", "create": "was made anew"}
_CHANGES |= {"drop": "was dropped", "truncate": "was emptied", "removed": "was removed"}


def how_changed(cause: Document) -> str:
    """Describe the change that is a cause, without its time."""
    return "was written" if cause["is_first"] else _CHANGES.get(cause["how"], "was written")


def change_text(cause: Document) -> str:
    """Describe the change that is a cause, with the time of the change."""
    return f"{how_changed(cause)} {time_text(cause['at'])}"


def causes_text(row: Document, dataset: str) -> str:
    """Describe the change that made a version stale, with the time of the change.

    If the version is stale because one of its inputs is stale, the text begins with that fact.

    :param row: a stale version, or a group of versions that have changes of one kind as causes
    :param dataset: name of the causes' dataset
    """
    causes = [one["cause"] for one in rows_of(row)]
    parts = ends_text(partition_text(cause["partition"]) for cause in causes)
    times = sorted({time_text(cause["at"]) for cause in causes})
    what = f"{dataset} {parts} {how_changed(row['cause'])} {span_text(times[0], times[-1])}"
    return what if row["is_direct"] else f"{INDIRECTLY}: {what}"


# --- the plan -------------------------------------------------------------------------------------


_MAX_REASONS = 3


def plan_documents(plan: Plan) -> list[Document]:
    """Give a document for each run of a plan; runs that Airflow can clear come first.

    ``order`` counts from 1. Runs of other producers have ``job`` in place of a task instance.
    """
    rows = [msgspec.to_builtins(row) for row in (*plan.steps, *plan.by_hand)]
    return [{"order": number, **row} for number, row in enumerate(rows, 1)]


def print_plan(plan: Plan, file: IO[str], *, names: Names, is_all: bool = False) -> None:
    """Print the runs to clear, in order, and the runs that the user must start again by hand.

    :param names: the names of the store's datasets
    :param is_all: whether each run has a line, however many runs there are
    """
    rows = plan_documents(plan)
    steps, by_hand = rows[: len(plan.steps)], rows[len(plan.steps) :]
    because = _because_column(names)
    if not rows:
        show.console(file).print("There is nothing to run again.")
    if steps:
        _print_runs(
            "To clear, in this order",
            (*_STEP_COLUMNS, _ENDED_COLUMN, namespace_column(steps), because, _NOTE_COLUMN),
            steps,
            file,
            is_all=is_all,
        )
    if by_hand:
        title = "To run again by hand, as Airflow did not run it"
        columns = (_JOB_COLUMN, _ENDED_COLUMN, because, _NOTE_COLUMN)
        _print_runs(title, columns, by_hand, file, is_all=is_all)


def _print_runs(
    title: str, columns: Sequence[Column], rows: Sequence[Document], file: IO[str], *, is_all: bool
) -> None:
    def common(row: Document) -> tuple[Any, ...]:
        name = _task_text(row) if "task_id" in row else row["job"]
        return row["wave"], name, row.get("namespace"), row["is_certain"]

    show.console(file).print(f"[bold]{title}[/]")
    print_table(columns, grouped(rows, common, is_all=is_all), file, of=len(rows))


def _because_column(names: Names) -> Column:
    """Make the column that gives the reasons of each run of a plan."""

    def text(row: Document) -> str:
        each = {_reasons_text(one, names) for one in rows_of(row)}
        return each.pop() if len(each) == 1 else _datasets_text(row, names)

    return Column("because", text, detail=1)


def _reasons_text(row: Document, names: Names) -> str:
    reasons = grouped(row["reasons"], _reason_group, is_all=False, most=0)
    texts = list(dict.fromkeys(_reason_text(reason, names) for reason in reasons))
    more = len(texts) - _MAX_REASONS
    return "; ".join(texts[:_MAX_REASONS]) + (f"; and {more} more" if more > 0 else "")


def _reason_group(reason: Document) -> tuple[Any, ...]:
    """Give a key that reasons share if they differ only in the partition that was read."""
    dataset, cause = reason["dataset"], reason["cause"]
    change = cause and change_text(cause)
    how = (reason["is_direct"], tuple(reason["columns"]), change)
    return dataset["namespace"], dataset["name"], reason["partition"] is None, *how


def _reason_text(reason: Document, names: Names) -> str:
    what = dataset_text(reason["dataset"], names)
    if reason["partition"] is not None:
        what += f" {partitions_text(reason)}"
    if cause := reason["cause"]:
        if not reason["is_direct"]:
            return f"{INDIRECTLY}: {what} {change_text(cause)}"
        return f"read {what}, which {change_text(cause)}"
    through = some(reason["columns"], _MAX_REASONS)
    return f"read {what}" + (f" ({through})" if through else "")


def _datasets_text(row: Document, names: Names) -> str:
    """Name the datasets that the runs of a group read, without partitions, which can be many.

    :param row: the row of the group
    :param names: the names of the store's datasets
    """
    reasons = [reason for one in rows_of(row) for reason in one["reasons"]]
    texts = []
    for is_direct, what in ((True, "read "), (False, f"{INDIRECTLY}: ")):
        datasets = (one["dataset"] for one in reasons if one["is_direct"] is is_direct)
        if read := list(dict.fromkeys(dataset_text(one, names) for one in datasets)):
            texts.append(what + some(read, _MAX_REASONS))
    return "; ".join(texts)


def _task_text(row: Document) -> str:
    return f"{row['dag_id']}.{_short_task(row)}"


def _short_task(row: Document) -> str:
    mapped = "" if row["map_index"] < 0 else f"[{row['map_index']}]"
    return f"{row['task_id']}{mapped}"


def _ended_text(row: Document) -> str:
    return time_text(row["ended"])


_ENDED_COLUMN = Column("last ran (UTC)", lambda row: times_text(row, _ended_text), detail=2)
_STEP_COLUMNS = (
    Column("#", lambda row: str(row["order"]) if len(rows_of(row)) == 1 else ""),
    Column("wave", lambda row: str(row["wave"] + 1)),
    Column(
        "task",
        _task_text,
        "cyan",
        heading=lambda row: str(row["dag_id"]),
        below_heading=_short_task,
    ),
    Column("DAG run", lambda row: ends_text([one["dag_run_id"] for one in rows_of(row)])),
)
_NOTE_COLUMN = Column("note", certainty_text, "yellow", detail=1)
_JOB_COLUMN = Column("job", lambda row: row["job"] or row["run_id"], "cyan")
