"""Hops upstream or downstream for people: one line each, the nearest first."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from airflow_provider_sparklineage.cli import show
from airflow_provider_sparklineage.cli.history.tables import (
    Column,
    certainty_text,
    how_text,
    job_text,
    labels,
    partition_text,
    print_table,
    time_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_sparklineage.cli.history.tables import Document


def print_hops(hops: Sequence[Document], file: IO[str], *, empty: str) -> None:
    """Print hops, or a sentence if there are none."""
    out = show.console(file)
    if not hops:
        out.print(empty)
        return
    name = labels(hops, "dataset")
    columns = (
        Column("hop", lambda hop: str(hop["depth"])),
        Column("dataset", lambda hop: name(hop["dataset"]), "cyan"),
        Column("partition", lambda hop: partition_text(hop["partition"])),
        Column("column", lambda hop: hop["column"] or ""),
        Column("written by", lambda hop: job_text(hop["run"])),
        Column("at (UTC)", lambda hop: time_text((hop["run"] or {}).get("ended"))),
        Column("how", lambda hop: how_text(hop["transformations"])),
        Column("note", certainty_text, "yellow"),
    )
    print_table(columns, hops, file)
    out.print()
