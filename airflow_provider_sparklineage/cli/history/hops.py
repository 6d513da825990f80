"""Hops upstream or downstream for people, the nearest first."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.cli.history.grouping import (
    MOST_LINES,
    grouped,
    more_text,
    partitions_text,
    rows_of,
    times_text,
)
from airflow_provider_sparklineage.cli.history.tables import (
    Column,
    certainty_text,
    how_text,
    job_text,
    labels,
    partition_text,
    print_table,
    short_jobs,
    time_text,
)
from airflow_provider_sparklineage.model.texts import some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.cli.history.tables import Document

_INDIRECT = "INDIRECT"
_MAX_COLUMNS = 5


def print_hops(
    hops: Sequence[Document],
    file: IO[str],
    *,
    empty: str,
    is_all: bool = False,
    has_plan: bool = False,
) -> None:
    """Print hops, or a sentence if there are none.

    Of each depth columns whose values went on come first, then, in one line for each version, those
    that decided which rows or groups there are.

    :param is_all: whether there is a line for each, however many there are
    :param has_plan: whether a plan follows, which has the runs
    """
    out = show.console(file)
    if not hops:
        out.print(empty)
        return
    lines = grouped(sorted(hops, key=_order), _version, is_all=is_all, most=0)
    if len(lines) > MOST_LINES:
        lines = grouped(sorted(hops, key=_order), _common, is_all=is_all)
    name = labels(hops, "dataset")
    job = short_jobs(hop["run"] for hop in hops)
    runs = (
        Column("written by", lambda hop: job(hop["run"]) or "nobody known"),
        Column("at (UTC)", lambda hop: times_text(hop, _time)),
    )
    columns = (
        Column("hop", lambda hop: str(hop["depth"])),
        Column("dataset", lambda hop: name(hop["dataset"]), "cyan"),
        Column("partition", partitions_text),
        Column("column", _columns),
        *(() if has_plan else runs),
        Column("how", _how),
        Column("note", _note, "yellow"),
    )
    print_table(columns, lines, file)
    if more := more_text(hops, lines):
        out.print(more)
    out.print()


def _order(hop: Document) -> tuple[int, bool]:
    return hop["depth"], _is_condition(hop)


def _is_condition(hop: Document) -> bool:
    kinds = [one.get("type") for one in hop["transformations"]]
    return bool(kinds) and all(kind == _INDIRECT for kind in kinds)


def _version(hop: Document) -> tuple[Any, ...]:
    """Give what hops have in common that differ in the column alone, or are conditions."""
    return *_common(hop), partition_text(hop["partition"]), (hop["run"] or {}).get("run_id")


def _common(hop: Document) -> tuple[Any, ...]:
    """Give what hops have in common that differ in partition and run as well."""
    dataset = hop["dataset"]
    how = None if _is_condition(hop) else how_text(hop["transformations"])
    what = (hop["depth"], dataset["namespace"], dataset["name"], how)
    return *what, job_text(hop["run"]), _note(hop)


def _columns(row: Document) -> str:
    return some(sorted({hop["column"] for hop in rows_of(row) if hop["column"]}), _MAX_COLUMNS)


def _how(row: Document) -> str:
    return how_text([one for hop in rows_of(row) for one in hop["transformations"]])


def _time(hop: Document) -> str:
    return "" if hop["run"] is None else time_text(hop["run"]["ended"])


def _note(hop: Document) -> str:
    """Give what is to be known of a hop; that nobody wrote it is where the writer would be."""
    return certainty_text(hop if hop["run"] else {**hop, "note": None})
