"""Answers for people: tables of what ``--json`` prints.

They are made of the same documents, so that neither shows what the other has not. A column that
would be empty is left out; in a narrow terminal what is long is folded.
"""

from __future__ import annotations

from collections import Counter
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from rich.table import Table

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.model.datasets import DatasetName, short_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

Document = dict[str, Any]

MAX_ROWS = 500
"""More than that nobody reads, and a table of 50,000 rows takes seconds; ``--json`` has all."""


_PLAIN_WIDTH = 10_000
_CELL_WIDTH = 200
"""Where the output is no terminal a row is one line, for ``grep``; one name of 10,000 characters
must not make all lines as long."""


class Column(NamedTuple):
    """A column of a table: its title, and what it shows of a document."""

    title: str
    text: Callable[[Document], str]
    style: str = ""


def print_table(columns: Sequence[Column], documents: Sequence[Document], file: IO[str]) -> None:
    """Print a row for each document, up to :data:`MAX_ROWS`."""
    shown = documents[:MAX_ROWS]
    texts = [[column.text(document) for document in shown] for column in columns]
    kept = [(c, cells) for c, cells in zip(columns, texts, strict=True) if any(cells)]
    out = show.console(file)
    if not out.is_terminal:
        out.width = _PLAIN_WIDTH
    table = Table(box=None, pad_edge=False)
    for column, _ in kept:
        table.add_column(column.title, overflow="fold", style=column.style, max_width=_CELL_WIDTH)
    for cells in zip(*(cells for _, cells in kept), strict=True):
        table.add_row(*map(show.escape, cells))
    out.print(table)
    if len(documents) > len(shown):
        out.print(f"… and {len(documents) - len(shown):,} more; --json prints all.")


def labels(documents: Iterable[Document], *keys: str) -> Callable[[Document | None], str]:
    """Give what names the datasets under these keys in short, each unlike the others."""
    found = short_names(
        DatasetName(one[key]["namespace"], one[key]["name"])
        for one in documents
        for key in keys
        if one.get(key)
    )
    return lambda d: found[DatasetName(d["namespace"], d["name"])] if d else ""


def partition_text(partition: Mapping[str, str | None] | None) -> str:
    """Give a partition as it is written on the command line; of all of the dataset, ``all``."""
    if partition is None:
        return "all"
    return "/".join(f"{name}={'null' if v is None else v}" for name, v in partition.items())


def time_text(time: object) -> str:
    """Give a time, of which all here are in UTC, to the second."""
    return "" if time is None else str(time)[:19].replace("T", " ")


def job_text(run: Document | None) -> str:
    """Name the job of a run."""
    return "" if run is None else str(run.get("job") or run["run_id"])


def short_jobs(runs: Iterable[Document | None]) -> Callable[[Document | None], str]:
    """Give what names the jobs of runs in short: ``task_id``, if no other job ends like that."""
    names = {job_text(run) for run in runs}
    ends = Counter(name.rpartition(".")[2] for name in names)

    def short(run: Document | None) -> str:
        end = job_text(run).rpartition(".")[2]
        return end if ends[end] == 1 else job_text(run)

    return short


def span_text(first: str, last: str) -> str:
    """Give the first and the last of times that :func:`time_text` made."""
    if first == last:
        return first
    return f"{first} … {last[11:] if first[:10] == last[:10] else last}"


def how_text(transformations: Iterable[Mapping[str, Any]] | None) -> str:
    """Name what was done with a column, each kind once."""
    return " + ".join(dict.fromkeys(map(_kind, transformations or ())))


def _kind(of: Mapping[str, Any]) -> str:
    # Subtypes are different words for values (identity, …) and for conditions (filter, …).
    kind = str(of.get("subtype") or of.get("type") or "unknown").lower().replace("_", " ")
    return f"{kind}, masked" if of.get("masking") else kind


def certainty_text(document: Document) -> str:
    """Give what is to be known of a row: that it is assumed, and its note."""
    assumed = "" if document.get("is_certain", True) else "not certain"
    return ": ".join(filter(None, (assumed, document.get("note"))))
