"""The path of a column for people: one line a hop, indented by how far away it is."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from airflow_provider_sparklineage.cli.columns.paths import Direction, Hop, full_name
from airflow_provider_sparklineage.cli.show import console, escape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_sparklineage.lineage.columns import Column, Transformation


def print_paths(column: Column, direction: Direction, hops: Iterable[Hop], file: IO[str]) -> None:
    """Print where a column comes from, or what is made of it."""
    out = console(file)
    upstream = direction is Direction.UPSTREAM
    out.print(f"[bold]{escape(full_name(column))}[/]", soft_wrap=True)
    empty = True
    for depth, edge, repeated in hops:
        empty = False
        reached = edge.source if upstream else edge.target
        note = " (its path is above)" if repeated else ""
        out.print(
            f"{'  ' * depth}{'←' if upstream else '→'} [cyan]{escape(full_name(reached))}[/]  "
            f"{escape(_how(edge.transformations, of_dataset=edge.of_dataset))}"
            f"  [dim]{escape(edge.job.name)}[/]{note}",
            soft_wrap=True,
        )
    if empty:
        unknown = "No sources of it are known." if upstream else "Nothing is known to use it."
        out.print(f"  [yellow]{unknown}[/]")


def _how(transformations: Iterable[Transformation], *, of_dataset: bool) -> str:
    kinds = dict.fromkeys(
        f"{t.type or 'unknown'}{f'/{t.subtype}' if t.subtype else ''}"
        f"{' masked' if t.masking else ''}"
        for t in transformations
    )
    how = " + ".join(kinds)
    return f"{how} of all columns" if of_dataset else how
